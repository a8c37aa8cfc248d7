"""What a third party's code raised: one line, with the place in the third party's own file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lookup.engine.answers import exhaust_generator
from lookup.errors import PluginError
from lookup.hooks.raised import describe_error, guard_call, in_one_line

PLUGIN = """\
from fractions import Fraction

def at_once():
    raise LookupError("no such rack")

def deeper():
    at_once()

def in_a_library():
    Fraction("half")

def half_way():
    yield 1.0
    raise KeyError("rack")
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("one\n  two"), "ValueError: one two"),
        (MemoryError(), "MemoryError"),
        (KeyError("rack"), "KeyError: 'rack'"),
    ],
)
def test_an_error_is_told_in_one_line(error: BaseException, line: str) -> None:
    """A third party's text may have several lines or none; a message of ours has one."""
    assert in_one_line(error) == line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("at_once", "LookupError: no such rack (mine.py, line 4)"),
        ("deeper", "LookupError: no such rack (mine.py, line 4)"),
        ("in_a_library", "ValueError: Invalid literal for Fraction: 'half' (mine.py, line 10)"),
        ("half_way", "KeyError: 'rack' (mine.py, line 14)"),
    ],
)
def test_the_place_is_in_the_file_that_was_called(tmp_path: Path, name: str, line: str) -> None:
    """An author reads which line of the plug-in was reached last, even where a library below it has raised."""
    (tmp_path / "mine.py").write_text(PLUGIN, encoding="utf-8")
    called = getattr(_module(tmp_path / "mine.py"), name)

    assert _told(lambda: exhaust_generator(called())) == line


def test_a_syntax_error_tells_its_place_once(tmp_path: Path) -> None:
    """Python's own text of a syntax error has file and line already."""
    (tmp_path / "mine.py").write_text("def f(:\n", encoding="utf-8")

    assert _told(lambda: _module(tmp_path / "mine.py")) == "SyntaxError: invalid syntax (mine.py, line 1)"


def test_an_error_that_nobody_raised_has_no_place() -> None:
    """Where no frame of a third party was reached there is no place to tell."""
    assert describe_error(KeyError("rack")) == "KeyError: 'rack'"


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _told(call: Callable[[], object]) -> str:
    """Return what is told of the error, as if the framework itself had made the call."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011  what is raised is what is looked at
        call()
    ours = caught.value.__traceback__
    while ours is not None and ours.tb_frame.f_code.co_filename == __file__:
        ours = ours.tb_next
    return describe_error(caught.value.with_traceback(ours))


class _UnspeakableError(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        """Raise instead."""
        raise RuntimeError


def test_an_error_without_text_is_told_by_its_name() -> None:
    """One whose text raises too."""
    assert in_one_line(_UnspeakableError()) == "_UnspeakableError"


def _end(error: BaseException) -> None:
    with guard_call("it failed: "):
        raise error


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit("x"), GeneratorExit("x"), BaseException("x")], ids=repr)
def test_whatever_is_raised_becomes_a_sentence(error: BaseException) -> None:
    """Which begins as it should, and knows where it came from."""
    with pytest.raises(
        PluginError, match=rf"^it failed: {type(error).__name__}: x \(test_raised\.py, line \d+\)$"
    ) as told:
        _end(error)
    assert told.value.__cause__ is error


def test_control_c_goes_through() -> None:
    """It is nobody's mistake."""
    with pytest.raises(KeyboardInterrupt):
        _end(KeyboardInterrupt())
