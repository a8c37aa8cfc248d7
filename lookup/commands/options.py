"""Define commands and their flags, with the parser, its messages, common flags, and values of flags.

The parser is `argparse` with sentences in place of its own messages. A mistake names the flag, a right
value and the help, and flags are neither abbreviated nor guessed.
"""

from __future__ import annotations

import argparse
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from typing import Any, NoReturn

from lookup.errors import Sentence, SettingsError
from lookup.model.names import cluster_problem
from lookup.model.quoting import suggestion
from lookup.model.time import is_in_calendar, to_us

__all__ = [
    "Command", "Parser", "add_config", "add_format", "add_master", "add_output",
    "add_plugin_files", "add_set", "add_volume", "cluster", "duration", "moment", "number", "pairs", "parse_command",
    "ratio", "require_extra", "settings_flags", "settings_path", "whole",
]  # fmt: skip


#: Seconds of the units of a duration.
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
#: Name of values of `--set` in messages.
COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Command:
    """One command as users see it."""

    #: as it is typed, `plugins list`
    name: str
    #: pairs of a command line and its effect
    examples: tuple[tuple[str, str], ...]
    add_arguments: Callable[[Parser], None]
    #: does the work and returns the exit code. Mistakes that the user has to change are raised as `PulsarLookupError`,
    #: in one sentence each, and an output is then unchanged
    run: Callable[[argparse.Namespace], int]


class _HelpFormatter(argparse.HelpFormatter):
    """A formatter of help that wraps sentences only at blanks and lists commands before flags. So flags stay whole."""

    # argparse does not have a public place for either, so tests/commands/test_options.py pins the result.
    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            words = line.lstrip()
            margin = indent + line[: len(line) - len(words)]
            # Two blanks precede a command line among the examples.
            wrap = _break_command if margin == "  " else self._split_lines
            lines += [margin + part for part in wrap(words, width - len(margin))] or [""]
        return "\n".join(lines)


def _break_command(command: str, width: int) -> list[str]:
    """Break a command before its flags into lines that a shell reads as one."""
    if len(command) <= width:
        return [command]
    first, *rest = re.split(r" (?=-)", command)
    lines = [first]
    for part in rest:
        # With room for the backslash.
        if len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


class Parser(argparse.ArgumentParser):
    """A parser that raises `SettingsError` in place of printing a usage and exiting."""

    def __init__(self, **keywords: Any) -> None:
        # `add_help=False`, since argparse's own text for --help cannot be changed.
        super().__init__(allow_abbrev=False, formatter_class=_HelpFormatter, add_help=False, **keywords)
        self.add_argument("-h", "--help", action="help", help="print this and exit")
        #: name in messages by destination, for arguments that must be given
        self.needed: dict[str, str] = {}
        #: key of the settings that has an argument of the library, by its name
        self.keys: dict[str, str] = {}
        #: destinations of the arguments of which one does in its place, by destination
        self.instead: dict[str, tuple[str, ...]] = {}

    def need(self, *names: str, **keywords: Any) -> None:
        """Add an argument that must be given."""
        # Not `required=True`, as argparse would report a missing flag before an unknown one, its likely misspelling.
        action = self.add_argument(*names, **keywords)
        self.needed[action.dest] = names[0] if names[0].startswith("-") else str(action.metavar or action.dest)

    def many(self, *names: str, **keywords: Any) -> None:
        """Add a flag that may be repeated."""
        text = keywords["help"]
        keywords["help"] = f"{text[:-1]}, repeatable)" if text.endswith(")") else f"{text} (repeatable)"
        self.add_argument(*names, action="append", default=[], **keywords)

    def format_help(self) -> str:
        """Format the help, with required arguments without brackets."""
        with self._mark_required():
            return super().format_help()

    def format_usage(self) -> str:
        """Format the usage, with required arguments without brackets."""
        with self._mark_required():
            return super().format_usage()

    @contextmanager
    def _mark_required(self) -> Iterator[None]:
        """Treat arguments that must be given and have no replacement as required, while argparse writes about them."""
        needed = [action for action in self._actions if action.dest in self.needed and action.dest not in self.instead]
        before = [(action, action.required, action.nargs) for action in needed]
        for action in needed:
            action.required = True
            if not action.option_strings:
                action.nargs = {"?": None, "*": "+"}.get(str(action.nargs), action.nargs)
        try:
            yield
        finally:
            for action, required, nargs in before:
                action.required, action.nargs = required, nargs

    def error(self, message: str) -> NoReturn:
        """Raise a mistake as a sentence that ends with the command for help."""
        raise SettingsError(f"{message.removeprefix('argument ')}; see `{self.prog} --help`")

    def in_flags(self, sentence: str) -> str:
        """Replace arguments in a sentence of the library by this command's flags.

        An argument's flag is the one whose value the parser keeps under the argument's name.
        """
        if not isinstance(sentence, Sentence):
            return sentence
        actions = {action.dest: action for action in self._actions}
        words = []
        for part in sentence.parts:
            action = None if isinstance(part, str) else actions.get(part.name)
            if isinstance(part, str) or action is None:
                words.append(part if isinstance(part, str) else self.keys.get(part.name, str(part)))
                continue
            words.append(action.option_strings[-1] if action.option_strings else str(action.metavar))
            # A switch, which takes no value, is given by its name alone.
            if part.value is not None and action.nargs != 0:
                words.append(f" {part.value}")
        return "".join(words)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse does not have a public place for this message, so tests/commands/test_options.py pins the result.
        if action.choices is not None and value not in action.choices:
            problem = f"{action.option_strings[0]}: there is no" if action.option_strings else "there is no command"
            self.error(f"{problem} {value!r}; {suggestion(str(value), map(str, action.choices))}")


def parse_command(parser: Parser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line."""
    arguments, rest = parser.parse_known_args(argv)
    reached: Parser = getattr(arguments, "parser", parser)
    # A command with subcommands accepts its flags before their names as well, but the subcommand does not get them.
    for word, argument in zip(reached.prog.split()[1:], argv, strict=False):
        if word != argument and argument.startswith("-"):
            reached.error(f"{argument.partition('=')[0]} stands before the command; it comes after `{reached.prog}`")
    if rest:
        flag = rest[0].partition("=")[0]
        if not flag.startswith("-"):
            reached.error(f"{rest[0]!r} is one argument too many")
        if flag == "--config" and hasattr(arguments, "config"):
            words = [str(action.metavar) for action in reached._actions if not action.option_strings]
            reached.error(f"--config: give the file without this flag, as in `{reached.prog} {' '.join(words)}`")
        flags = [name for action in reached._actions for name in action.option_strings]
        reached.error(f"there is no flag {flag}; {suggestion(flag, flags)}")
    missing = [
        name
        for dest, name in reached.needed.items()
        if not any(getattr(arguments, name) for name in (dest, *reached.instead.get(dest, ())))
    ]
    if missing:
        reached.error(f"{' and '.join(missing)} must be given")
    return arguments


def require_extra(command: str, *packages: str, extra: str = "spark") -> None:
    """Refuse to run a command whose packages are not installed, before anything imports them."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"`lookup {command}` needs {missing[0]}: install it with pip install 'pulsar-lookup[{extra}]'"
        )


# Flags that several commands share.


def add_config(
    parser: Parser,
    name: str = "EVALUATION",
    what: str = "TOML file of the evaluation",
    example: str = "evaluation.seeds=[1,2]",
) -> None:
    """Add the file of settings as an argument, and `--set`, which wins over it."""
    parser.need("config", nargs="?", type=settings_path, metavar=name, help=f"{what}, or shipped:NAME")
    add_set(parser, example)


def add_set(parser: Parser, example: str) -> None:
    """Add `--set`."""
    parser.many(
        "--set", metavar="KEY=VALUE", help=f"setting to change, like {example}. It wins over file and environment"
    )


def settings_flags(arguments: argparse.Namespace) -> dict[str, object]:
    """Collect the values of `--set` by key path."""
    return dict(pairs("--set", arguments.set, "evaluation.tick_s=30"))


def add_output(parser: Parser, what: str) -> None:
    """Add `--output` and `--force`."""
    parser.need("--output", metavar="DIR", help=f"new or empty folder for {what}")
    parser.add_argument("--force", action="store_true", help="replace earlier results in it, but no other file")


def add_format(parser: Parser, *forms: str) -> None:
    """Add `--format`. The first form is the default."""
    words = f"form of the output: {', '.join(forms)} (default: {forms[0]})"
    parser.add_argument("--format", choices=forms, default=forms[0], metavar="FORM", help=words)


def add_master(parser: Parser) -> None:
    """Add `--master`."""
    text = "Spark's master, like local[*] or sc://host, or none to run in this process without Java"
    parser.add_argument("--master", metavar="URL", help=f"{text} (default: none below 200,000 rows, else local[*])")


def add_plugin_files(parser: Parser, what: str = "parts or log readers") -> None:
    """Add `--plugin-file`."""
    parser.many("--plugin-file", metavar="FILE", help=f"Python file that registers {what}")


def add_volume(parser: Parser) -> None:
    """Add `--quiet` and `--verbose`, which every command has."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "-q", "--quiet", action="store_true", help="hide progress and notes, but not warnings and errors"
    )
    group.add_argument(
        "-v", "--verbose", action="store_true", help="print progress as lines, times, and tracebacks of errors"
    )


# Values of flags.


def pairs(flag: str, written: Iterable[str], example: str) -> list[tuple[str, str]]:
    """Read `KEY=VALUE` texts."""
    parts = [text.partition("=") for text in written]
    for key, equals, value in parts:
        if not key.strip() or not equals:
            raise SettingsError(f"{flag}: {key + equals + value!r} should be of the form {example}")
    return [(key.strip(), value) for key, _, value in parts]


def settings_path(text: str) -> str:
    """Read the path of a file of settings, which `shipped:NAME` names as well."""
    if not text.startswith("shipped:"):
        return text
    # Settings take long to load, and files are named by most.
    from lookup.settings.shipped import shipped_path

    try:
        return shipped_path(text)
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole(text: str) -> int:
    """Read an integer. Digits may be grouped by underscores."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def number(text: str) -> float:
    """Read a finite number."""
    with suppress(ValueError):
        if math.isfinite(value := float(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number")


def ratio(text: str) -> float:
    """Read a share, a number in [0, 1]."""
    with suppress(ValueError):
        if 0.0 <= (value := float(text)) <= 1.0:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")


def duration(text: str) -> float:
    """Read a duration in seconds, from `90`, `30s`, `10m`, `2h` or `1d`."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration like 30s, 10m, 2h or 1d")
    return float(match[1]) * _UNITS[match[2]]


def cluster(text: str) -> str:
    """Read the name of a cluster."""
    problem = cluster_problem(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return text


def moment(text: str) -> int:
    """Read a time with its offset, in µs since the Unix epoch."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-01-01T12:00:00Z") from None
    if time.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no offset; write 2026-01-01T12:00:00Z or ...+01:00")
    if not is_in_calendar(time):
        raise argparse.ArgumentTypeError(f"{text!r} does not lie in the years 1 to 9999 of UTC")
    return to_us(time)
