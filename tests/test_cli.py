"""The one place where errors become sentences and exit codes."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from lookup import cli
from lookup.commands.options import Command, Parser
from lookup.commands.streams import data_console, print_json
from lookup.errors import InputError, PolicyError, SettingsError
from tests.commands.projects import evaluation

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


class PythonException(Exception):  # noqa: N818  the name Spark gives it
    """The error that Spark raises for an error in a task."""


def _raises(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        raise error

    return run


def _main(monkeypatch: pytest.MonkeyPatch, run: Callable[[argparse.Namespace], int]) -> int:
    """Run a command line whose only command does what the test says."""
    command = Command("try", (), lambda parser: None, run)
    monkeypatch.setattr(cli, "SUMMARIES", {"try": "try something"})
    monkeypatch.setattr(cli, "HEADINGS", {"Try": "try"})
    monkeypatch.setattr(cli, "commands", lambda first=None: (command,))
    return cli.main(["try"])


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (InputError("the log is empty"), ["error: the log is empty"]),
        (PolicyError("policy 'p': part 'x' raised"), ["error: policy 'p': part 'x' raised"]),
        (OSError(28, "Error writing. Detail: [errno 28] No space left"), ["error: Error writing: No space left"]),
        (SettingsError(["one", "two"]), ["error: one", "error: two"]),
        (PermissionError(13, "Permission denied", "/root/o"), ["error: /root/o: Permission denied"]),
        (KeyboardInterrupt(), ["interrupted; nothing was written"]),
        (KeyboardInterrupt("results are in report"), ["interrupted; results are in report"]),
        (SystemExit(0), [f"error: a plug-in ended the program: SystemExit(0) in {__file__}, line 32"]),
    ],
)
def test_errors_become_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, lines: list[str]
) -> None:
    """A mistake of the user's is one line each on stderr, nothing on stdout; exit code 2, or 130 if interrupted."""
    code = _main(monkeypatch, _raises(error))

    printed = capsys.readouterr()
    assert code == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert (printed.out, printed.err.splitlines()) == ("", lines)


TASK = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: (executor driver):
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
    process()
lookup.errors.PolicyError: policy 'p': part 'x' raised ValueError: none

	at org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
Driver stacktrace:
"""


def test_a_sentence_is_found_in_an_error_of_spark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours that a task raised comes back as its sentence, without Spark's traceback."""
    assert _main(monkeypatch, _raises(PythonException(TASK))) == 2
    assert capsys.readouterr().err == "error: policy 'p': part 'x' raised ValueError: none\n"


def test_a_sentence_is_found_in_a_cause(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence may stand in the error that caused the one that arrives."""
    error = RuntimeError("job failed")
    error.__cause__ = PythonException("lookup.errors.InputError: a.parquet: is cut off")

    assert _main(monkeypatch, _raises(error)) == 2
    assert capsys.readouterr().err == "error: a.parquet: is cut off\n"


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that was not raised on purpose is no sentence: it is a bug, and its traceback is wanted."""
    with pytest.raises(ZeroDivisionError):
        _main(monkeypatch, _raises(ZeroDivisionError()))


def test_prints_of_others_are_no_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints of a plug-in while a command runs go to stderr, data of the command to stdout, now and later."""

    def run(arguments: argparse.Namespace) -> int:
        print("a plug-in's own")  # noqa: T201  what is tried here
        data_console().print("for people")
        print_json({"for": "programs"})
        return 0

    assert _main(monkeypatch, run) == 0
    print_json([])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ('for people\n{\n  "for": "programs"\n}\n[]\n', "a plug-in's own\n")


def test_the_package_runs_as_the_command_does() -> None:
    """`python -m lookup` is `lookup`, its name in the help and its exit code included."""
    ran = subprocess.run([sys.executable, "-m", "lookup", "config"], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "`lookup config --help`" in ran.stderr


def test_exit_codes_come_from_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is the result of the command."""
    assert [_main(monkeypatch, lambda _, code=code: code) for code in (0, 3, 4)] == [0, 3, 4]  # type: ignore[misc]


def _unhandled(number: int, frame: FrameType | None) -> None:
    """Stand for the handler of before."""
    raise AssertionError("the command's own handler is not there")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["kill", "closed-terminal"])
def test_termination_unwinds_like_an_interruption(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    """SIGTERM and SIGHUP let a command tidy up, and the handler of before is back afterwards."""
    tidied = []

    def run(arguments: argparse.Namespace) -> int:
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            tidied.append(True)
        return 0

    before = signal.signal(number, _unhandled)
    try:
        assert _main(monkeypatch, run) == 130
        assert tidied == [True]
        assert signal.getsignal(number) is _unhandled
    finally:
        signal.signal(number, before)


def test_a_closed_terminal_may_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under nohup a run goes on when its terminal is closed."""

    def run(arguments: argparse.Namespace) -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        return 0

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert _main(monkeypatch, run) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("words", ["plugins list", "plugins list --format json", "explain {config} --topic t"])
def test_a_closed_pipe_is_quiet(tmp_path: Path, words: str) -> None:
    """`lookup ... | head` ends without a word, as a tool does that SIGPIPE has ended, tables and JSON alike."""
    read, write = os.pipe()
    os.close(read)
    argv = words.format(config=evaluation(tmp_path)).split()

    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "lookup.cli", *argv], stdout=closed, stderr=subprocess.PIPE, timeout=120, check=False
        )

    assert (done.returncode, done.stderr) == (141, b"")


def test_less_and_more_about_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--quiet` leaves out notes and keeps data and errors, `--verbose` adds times, and tracebacks to errors."""
    explain = ["explain", str(evaluation(tmp_path)), "--topic", "t"]

    printed = []
    for words in (explain, [*explain, "--quiet"], [*explain, "-v"]):
        assert cli.main(words) == 0
        printed.append(capsys.readouterr())

    assert printed[0].out == printed[1].out == printed[2].out
    assert ("note: " in printed[0].err, printed[1].err) == (True, "")
    assert re.match(r"pulsar-lookup .*, Python .*: explain ", printed[2].err)
    assert re.search(r"\ndone in \d+\.\d s with exit code 0\n\Z", printed[2].err)
    assert cli.main(["report", str(tmp_path), "--quiet"]) == 2
    assert re.fullmatch(r"error: [^\n]*\n", capsys.readouterr().err)
    assert cli.main(["report", str(tmp_path), "--verbose"]) == 2
    assert "\nTraceback (most recent call last):\n" in capsys.readouterr().err
    assert cli.main(["report", str(tmp_path), "-q", "-v"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lookup eval", {"evaluate"}),
        ("lookup config ", {"check", "list", "show"}),
        ("lookup explain --forma", {"--format"}),
        ("lookup evaluate --format m", {"markdown"}),
    ],
)
def test_a_shell_completes(tmp_path: Path, line: str, offered: set[str]) -> None:
    """Commands, flags and values, by the protocol of argcomplete."""
    pytest.importorskip("argcomplete")
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "offered"),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "IFS": "\n",
    }

    done = subprocess.run([sys.executable, "-m", "lookup.cli"], env=os.environ | asked, timeout=120, check=False)

    assert done.returncode == 0
    found = {word.strip() for word in re.split(r"[\n\x0b]", (tmp_path / "offered").read_text(encoding="utf-8"))}
    assert found - {"", "--help", "-h", "-q", "--quiet", "-v", "--verbose"} == offered


def test_help_needs_neither_spark_nor_arrow() -> None:
    """The help is printed without importing what only commands need."""
    code = (
        "import sys; from lookup.cli import main; main(['evaluate', '--help']);"
        "sys.exit(', '.join({'pyspark', 'pyarrow', 'pandas', 'py4j', 'scipy'} & set(sys.modules)) or 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def _parsers() -> list[tuple[str, Parser]]:
    words = [command.name.split() for command in cli.commands()]
    return [(" ".join(name), cli.root_parser().parse_known_args(name)[0].parser) for name in words]


def test_the_page_names_nothing_else() -> None:
    """`docs/cli.md` describes no command or flag there is not."""
    text = PAGE.read_text(encoding="utf-8")
    known = {flag for _, parser in _parsers() for action in parser._actions for flag in action.option_strings}

    assert re.findall(r"^## `lookup ([^`]+)`$", text, re.MULTILINE) == [command.name for command in cli.commands()]
    assert {flag for flag in re.findall(r"`(--[a-z-]+)", text) if flag not in known} <= {"--version"}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("plugins list", 0, ""),
        ("config check {config}", 0, ""),
        ("explain {config} --topic t", 0, "note: "),
        ("evaluate {config} --output o", 2, "error: `lookup evaluate` needs pyspark"),
    ],
)
def test_a_core_installation_works(tmp_path: Path, words: str, code: int, sentence: str) -> None:
    """Without Spark, Arrow, pandas and scipy commands that need none of them work; the others say what to install."""
    start = "import sys\nfor name in ('pyspark', 'pyarrow', 'pandas', 'py4j', 'scipy'): sys.modules[name] = None\n"
    script = f"{start}from lookup.cli import main\nsys.exit(main(sys.argv[1:]))"
    argv = words.format(config=evaluation(tmp_path)).split()

    done = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )

    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(sentence)


#: As Spark words it.
_CANCELLED = "Job 3 cancelled as part of cancellation of all jobs"


@pytest.mark.parametrize("said", [_CANCELLED, None])
def test_what_spark_makes_of_an_interruption_is_one(
    said: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that Spark's own handler of Ctrl-C has cancelled, or a failure on the way out of it, exits with 130."""

    def fail(arguments: argparse.Namespace) -> int:
        try:
            if said is None:
                raise KeyboardInterrupt
        finally:
            raise RuntimeError(said or "no connection to Java")

    assert _main(monkeypatch, fail) == 130
    assert capsys.readouterr().err == "interrupted; nothing was written\n"
