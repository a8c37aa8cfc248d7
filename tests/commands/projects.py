"""Evaluations in a folder of their own, and how their commands are run; for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from lookup.cli import main

__all__ = ["EVALUATION", "FAILING", "Ran", "Run", "evaluation", "evaluation_of", "names_in", "runner"]

#: Three brokers in two racks, two policies, nothing that needs a log.
EVALUATION = """
[evaluation]
incumbent = "stock"
default_bundles = 4

[[brokers]]
id = "broker-a:8080"
properties = { "lookup.rack" = "a" }
capacity = 100.0

[[brokers]]
id = "broker-b:8080"
properties = { "lookup.rack" = "b" }
capacity = 100.0

[[brokers]]
id = "broker-late:8080"
properties = { "lookup.rack" = "a" }
capacity = 100.0
from = 2026-01-01T12:00:00Z
until = 2026-01-02T00:00:00Z

[[policies]]
name = "stock"
selector = "best"

[[policies]]
name = "rack"
filters = ["load-manager-class"]
scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = "best"
"""

#: A plug-in file whose scorer fails in the middle of a log.
FAILING = """
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl


@dataclass(frozen=True)
class Failing:
    name: ClassVar[str] = "failing"
    is_silent: bool = False

    def score(self, request, brokers, view):
        if not self.is_silent:
            raise LookupError("no such rack")
        return [float("nan")] * len(brokers)


@hookimpl
def lookup_register_scorers():
    return (Failing,)
"""


@dataclass(frozen=True)
class Ran:
    """The exit code and the printed lines of a command."""

    code: int
    out: str
    err: str

    @property
    def mistakes(self) -> list[str]:
        """Return the sentences of a command that refused; it printed nothing else and no traceback."""
        lines = self.err.splitlines()

        assert (self.code, self.out) == (2, "")
        assert "Traceback" not in self.err
        return [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]


Run = Callable[..., Ran]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line in this process."""

    def run(*argv: object) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


def evaluation(folder: Path, text: str = "", *, start: str = EVALUATION) -> Path:
    """Write an evaluation with some text behind it and return its path."""
    path = folder / "evaluation.toml"
    path.write_text(dedent(start) + dedent(text), encoding="utf-8")
    return path


def evaluation_of(folder: Path, log: Path, text: str = "", head: str = "") -> Path:
    """Write an evaluation of the tables of a log, with some text behind them and before everything."""
    inputs = f'[inputs]\nlookups = "{log}/lookups"\nbrokers = "{log}/brokers"\nownership = "{log}/ownership"\n'
    return evaluation(folder, inputs + text, start=head + EVALUATION)


def names_in(folder: Path) -> list[str]:
    """Return what is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())
