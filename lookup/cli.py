"""The command line: the list of commands, the one place where errors become sentences and exit codes.

Exit codes: 0 done; 2 could not run; 3 and 4 verdicts of `evaluate`; 130 interrupted; 141 stdout was closed. What a
command does is in `lookup.commands`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType
from typing import Any

from lookup.commands import (
    check,
    evaluate,
    explain,
    generate,
    ingest,
    plugins,
    show,
    simulation,
    topic_labels,
    topic_properties,
    topic_watch,
    topics,
)
from lookup.commands.failures import ENDING, is_interruption, sentences_of_spark, sentences_of_system
from lookup.commands.options import Command, Parser, parsed
from lookup.commands.streams import prints_apart, say
from lookup.errors import PulsarLookupError, SettingsError

__all__ = ["COMMANDS", "main", "root_parser"]

COMMANDS: tuple[Command, ...] = (
    evaluate.COMMAND,
    ingest.COMMAND,
    generate.COMMAND,
    explain.COMMAND,
    simulation.COMMAND,
    plugins.COMMAND,
    show.COMMAND,
    check.COMMAND,
    topics.LIST,
    topics.CREATE,
    topics.DELETE,
    topic_labels.SET,
    topic_labels.GET,
    topic_labels.REMOVE,
    topic_labels.LIST,
    topic_labels.QUERY,
    topic_properties.SET,
    topic_properties.GET,
    topic_properties.REMOVE,
    topic_watch.COMMAND,
)

_GROUPS = {
    "plugins": "see which parts, listers, log readers and metrics there are",
    "config": "look at settings and check them",
    "topics": "list, label and watch topics of a catalog",
    "topics labels": "labels of topics, and topics by labels",
    "topics properties": "properties of topics",
}
_INTERRUPTED = 130
#: As of a tool that SIGPIPE has ended, 128 + 13. Not 0: a verdict that nobody got must not look like consent.
_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the entry point of `lookup`."""
    try:
        with _terminated_like_interrupted():
            return _run(sys.argv[1:] if argv is None else argv)
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  the one catch site; what is no mistake is raised again
        if is_interruption(error):
            say("interrupted; nothing was written")
            return _INTERRUPTED
        return _answer(error)


def _answer(error: BaseException) -> int:
    """Tell a user's mistake in a sentence; what is none of that is raised again."""
    if isinstance(error, SettingsError):
        return _refuse(*error.problems)
    if isinstance(error, PulsarLookupError):
        return _refuse(str(error))
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has seen enough; what is still in the buffer has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED
    sentences = sentences_of_spark(error) or sentences_of_system(error)
    if not sentences:
        raise error
    return _refuse(*sentences)


def root_parser() -> Parser:
    """Build the parser of all commands."""
    root = Parser(
        prog="lookup",
        description="Replay lookup logs of Apache Pulsar against placement policies and judge the policies.",
        epilog=(
            "`lookup COMMAND --help` has flags and examples. Data goes to stdout, everything else to stderr.\n"
            "Exit codes: 0 done; 2 could not run; 3 a candidate is worse; 4 no decision; 130 interrupted;\n"
            "1 of `simulate`: an assertion or an expectation failed."
        ),
    )
    root.add_argument("--version", action="version", version=f"pulsar-lookup {version('pulsar-lookup')}")
    groups = {"": root.add_subparsers(metavar="COMMAND", title="commands", dest="command")}
    for command in COMMANDS:
        group, _, name = command.name.rpartition(" ")
        _add(_group(groups, group), name, command)
    return root


def _group(groups: dict[str, Any], group: str) -> Any:
    """Return the commands of a group, which is made where it is the first time asked for."""
    if group not in groups:
        above, _, name = group.rpartition(" ")
        own = _group(groups, above).add_parser(name, help=_GROUPS[group], description=_GROUPS[group])
        own.set_defaults(parser=own)
        groups[group] = own.add_subparsers(metavar="COMMAND", title="commands", dest=f"command of {group}")
    return groups[group]


def _add(commands: Any, name: str, command: Command) -> None:
    examples = [f"  {line}\n      {meaning}" for line, meaning in command.examples]
    parser = commands.add_parser(
        name,
        help=command.summary,
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog="\n".join(["examples:", *examples]),
    )
    command.add_arguments(parser)
    parser.set_defaults(parser=parser, run=command.run)


def _run(argv: Sequence[str]) -> int:
    root = root_parser()
    try:
        arguments = parsed(root, argv)
        arguments.argv = list(argv)
    except SystemExit as done:  # --help and --version have printed what was asked for
        return int(done.code or 0)
    if not hasattr(arguments, "run"):
        reached: Parser = getattr(arguments, "parser", root)
        reached.error("no command is given")
    with prints_apart():
        code: int = arguments.run(arguments)
    sys.stdout.flush()
    return code


def _refuse(*sentences: str) -> int:
    for sentence in sentences:
        say(f"error: {sentence}")
    return 2


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind as Ctrl-C does, so that half-written output goes; main threads alone get any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Under nohup a closed terminal is ignored, and stays so.
    heard = [number for number in ENDING if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
