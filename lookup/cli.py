"""Run one command of the command line, and turn errors into sentences and exit codes, only here.

Exit codes are 0 if done, 2 if it could not run, 3 and 4 for verdicts of `evaluate`, 4 also without advice
of `tune`, without a move of `plan` and with steps that `apply` did not make, 5 for an exceeded budget, 130
if interrupted, and 141 if stdout was closed. The commands themselves are in `lookup.commands`.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import platform
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lookup.commands.failures import (
    ENDING,
    handled_by,
    is_interruption,
    remaining_files,
    sentences_of_spark,
    sentences_of_system,
)
from lookup.commands.options import Command, Parser, add_volume, parse_command
from lookup.commands.streams import detail, redirect_prints, say, volume
from lookup.errors import PulsarLookupError, SettingsError

__all__ = ["HEADINGS", "SUMMARIES", "commands", "main", "root_parser"]

#: One line about each command. In addition, a help loads its own commands.
SUMMARIES = {
    "init": "write a first evaluation for your log, or a plug-in package",
    "evaluate": "compare policies with the incumbent over a lookup log",
    "report": "draw the page of a finished evaluation again",
    "diff": "compare two finished evaluations",
    "ingest": "convert log files into tables",
    "inspect": "show a log's demand, labels and load, and settings without effect",
    "collect": "record a live cluster into tables",
    "plan": "plan the bundle moves that balance a cluster now",
    "plan show": "print a plan",
    "generate": "write a synthetic log for trials",
    "explain": "explain one lookup, or the decisions of a finished run",
    "simulate": "run load-balancing scenarios and print each policy's trend",
    "tune": "search for better settings, and confirm them on unseen days",
    "serve": "choose owners for the brokers of a live cluster",
    "apply": "make the moves of a plan in a live cluster, or undo them",
    "verify": "recompute recorded decisions",
    "plugins list": "list policy parts, topic listers, log readers and metrics",
    "config show": "print a file that ships, or settings with their sources",
    "config list": "list the files that ship, with the names to give instead of a path",
    "config check": "check a file of settings, and the files that it names, for mistakes",
    "topics list": "list the topics of a namespace, by pattern, properties and labels",
    "topics create": "add a topic to the catalog",
    "topics delete": "delete a topic from the catalog",
    "topics labels set": "add labels to a topic, and replace those with the same keys",
    "topics labels get": "print the labels of a topic",
    "topics labels remove": "remove some or all labels of a topic",
    "topics properties set": "add properties to a topic, and replace those with the same keys",
    "topics properties get": "print the properties of a topic",
    "topics properties remove": "remove some or all properties of a topic",
    "topics watch": "print a list of topics, and then each change",
}
#: Modules of `lookup.commands` with the commands that begin with a word, where none is called as the word.
_MODULES = {"diff": ("report",), "config": ("show", "check"), "topics": ("topics", "topic_pairs", "topic_watch")}
_GROUPS = {
    "plugins": "list installed policy parts, listers, log readers and metrics",
    "config": "print and check settings",
    "topics": "list, label and watch the topics of a catalog",
    "topics labels": "set, print and query labels of topics",
    "topics properties": "set, print and remove properties of topics",
}
#: First words of commands under their headings, in the order of the help.
HEADINGS = {
    "Try": "init generate simulate",
    "Judge": "ingest inspect evaluate tune report diff",
    "Understand": "explain",
    "Run": "collect serve verify plan apply",
    "Look up": "topics config plugins",
}
_INTERRUPTED = 130
#: Rights that files and folders of a command never have, which are those of others, and writing for the group.
_MASK = 0o027
#: As of a tool that SIGPIPE has ended, 128 + 13. Not 0: a verdict that did not arrive must not look like consent.
_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. This is the entry point of `lookup`.

    Args:
        argv: words of the command line after `lookup`, None for those of this process.
    """
    # Loaded objects stay, and searches for cycles in them take a tenth of the time around a replay, and at the end.
    gc.set_threshold(20_000, 20, 20)
    atexit.register(gc.freeze)
    # SIGTERM and SIGHUP unwind as Ctrl-C does, so that half-written output is removed. An ignored SIGHUP, as under
    # nohup, stays ignored, since the run should outlive its terminal.
    ending = [number for number in ENDING if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN]
    if argv is None:
        # Output contains names of clients and topics, so it is for its owner, and readable for the group.
        os.umask(os.umask(_MASK) | _MASK)
    words = sys.argv[1:] if argv is None else argv
    completes = "_ARGCOMPLETE" in os.environ and find_spec("argcomplete") is not None
    # A command loads only its own modules, which saves half a second before it begins.
    parser, is_verbose = root_parser(None if completes else words), False
    if completes:
        # A shell requests completions, which are written, and this process ends.
        import_module("argcomplete").autocomplete(parser)
    try:
        with handled_by(signal.default_int_handler, ending):
            arguments = _parse_command(parser, words)
            if arguments is None:
                return 0
            parser, is_verbose = arguments.parser, arguments.verbose
            with redirect_prints(), volume(quiet=arguments.quiet, verbose=is_verbose):
                began = time.monotonic()
                versions = f"pulsar-lookup {version('pulsar-lookup')}, Python {platform.python_version()}"
                detail(f"{versions}: {shlex.join(arguments.argv)}")
                code: int = arguments.run(arguments)
                detail(f"done in {time.monotonic() - began:.1f} s with exit code {code}")
            # Within the `try`, since a closed pipe may be noticed only now.
            sys.stdout.flush()
            return code
    # Our own code does not exit, so a plug-in has. Its exit alone would print nothing, or look like success.
    except (KeyboardInterrupt, SystemExit, Exception) as error:
        if is_interruption(error):
            say(f"interrupted; {remaining_files(error) or 'nothing was written'}")
            return _INTERRUPTED
        if isinstance(error, BrokenPipeError):
            # The reader has seen enough. The rest is still in the buffer, and Python would complain of it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _CLOSED
        sentences = _describe_error(error)
        if sentences is None:
            raise
        if is_verbose:
            traceback.print_exception(error)
        for sentence in sentences:
            say(f"error: {parser.in_flags(sentence)}")
        return 2


def _describe_error(error: BaseException) -> Sequence[str] | None:
    """Describe a user's mistake, or a failure of the system, in sentences, None for a bug of ours."""
    if isinstance(error, SettingsError):
        return error.problems
    if isinstance(error, PulsarLookupError):
        # Not `str(error)`, which would not know any more which of its words are arguments.
        return error.args
    if isinstance(error, SystemExit):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return [f"a plug-in ended the program: SystemExit({error.code!r}) in {frame.filename}, line {frame.lineno}"]
    return sentences_of_spark(error) or sentences_of_system(error) or None


def _parse_command(root: Parser, argv: Sequence[str]) -> argparse.Namespace | None:
    """Parse the command line. Return None for a help text or the version, which are then printed."""
    try:
        arguments = parse_command(root, argv)
    except SystemExit:  # argparse exits once it has printed --help or --version
        return None
    if not hasattr(arguments, "run"):
        reached: Parser = getattr(arguments, "parser", root)
        reached.error("no command is given")
    arguments.argv = list(argv)
    return arguments


def commands(first: str | None = None) -> tuple[Command, ...]:
    """Load the commands whose names begin with a word, or all of them for None."""
    firsts = [first] if first else [name.partition(" ")[0] for name in SUMMARIES]
    modules = dict.fromkeys(module for first in firsts for module in _MODULES.get(first, (first,)))
    loaded = [import_module(f"lookup.commands.{module}") for module in modules]
    # A module holds one command, or a few about the same things.
    return tuple(command for module in loaded for command in getattr(module, "COMMANDS", None) or (module.COMMAND,))


def root_parser(words: Sequence[str] | None = None) -> Parser:
    """Build the parser of all commands. Commands outside the command line have only their names.

    Args:
        words: the command line after `lookup`, None for any.
    """
    root = Parser(
        # The name of the typed script. If `lookup` is another project's, hints must not name it.
        prog="pulsar-lookup" if Path(sys.argv[0]).name == "pulsar-lookup" else "lookup",
        usage="%(prog)s [--help] [--version] COMMAND ...",
        description=_write_overview(),
        epilog=(
            "`%(prog)s COMMAND --help` has flags and examples. Data goes to stdout, everything else to stderr.\n"
            "Exit codes: 0 success, 1 a failed scenario or verification, 2 an error, 3 a worse candidate, "
            "4 no decision, 5 an exceeded budget, 130 an interruption."
        ),
    )
    root.add_argument("--version", action="version", version=f"pulsar-lookup {version('pulsar-lookup')}")
    # The overview has the commands under their headings, which argparse does not offer.
    groups = {"": root.add_subparsers(metavar="COMMAND", help=argparse.SUPPRESS, prog=root.prog, dest="command")}
    parsers: dict[str, Parser] = {}
    # A flag before its command is a mistake, which the parser of the command explains.
    path = None if words is None else [word for word in words if not word.startswith("-")]
    reached = [name for name in SUMMARIES if path is None or name.split() == path[: name.count(" ") + 1]]
    loaded = [command for first in {name.partition(" ")[0] for name in reached} for command in commands(first)]
    by_name = {command.name: command for command in loaded}
    for name, summary in SUMMARIES.items():
        group, _, last = name.rpartition(" ")
        parser = parsers[name] = _commands_of(group, groups, parsers).add_parser(last, help=summary)
        parser.set_defaults(parser=parser)
        if name in reached:
            # Also later than the start, since a variable may precede the command.
            lines = [(re.sub(r"\blookup\b", root.prog, line, count=1), about) for line, about in by_name[name].examples]
            parser.description = f"{summary[0].upper()}{summary[1:]}."
            parser.epilog = "\n".join(["examples:", *(f"  {line}\n      {about}" for line, about in lines)])
            by_name[name].add_arguments(parser)
            add_volume(parser)
            parser.set_defaults(run=by_name[name].run)
    return root


def _write_overview() -> str:
    lines = ["Replay lookup logs of Apache Pulsar against placement policies and judge the policies."]
    for heading, firsts in HEADINGS.items():
        lines += ["", f"{heading}:"]
        lines += [f"   {first:<9} {SUMMARIES.get(first) or _GROUPS[first]}" for first in firsts.split()]
    return "\n".join(lines)


def _commands_of(group: str, groups: dict[str, Any], parsers: Mapping[str, Parser]) -> Any:
    if group not in groups:
        above, _, name = group.rpartition(" ")
        parser: Any = parsers.get(group)
        if parser is None:
            about = _GROUPS[group]
            described = f"{about[0].upper()}{about[1:]}."
            parser = _commands_of(above, groups, parsers).add_parser(name, help=about, description=described)
            parser.set_defaults(parser=parser)
        groups[group] = parser.add_subparsers(metavar="COMMAND", title="commands", dest=f"command of {group}")
    return groups[group]


if __name__ == "__main__":
    sys.exit(main())
