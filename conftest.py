"""Runs the code blocks of README.md and docs/: a page is a test, from top to bottom, in a folder of its own.

* A `python` block runs; all blocks of a page share their names. Blocks with `>>>` are compared with what they print.
* `<!-- file: NAME -->` before a block writes the block to NAME in the page's folder, for the blocks after it.
  A `python` block so marked is run as well.
* `<!-- run -->` before a `console` or `bash` block runs its commands in the page's folder; each must exit with 0,
  `<!-- run: exit 2 -->` says how the last one ends. In a `console` block the commands are the lines after `$`.
* `<!-- prints -->` before a block, such as one of `text`, compares it with what the last command that ran printed.
  With `<!-- prints: shortened -->` the command printed every line of the block, in the same order, and others between
  them; a line that ends with `...` is the beginning of one.
* `<!-- skip: next -->` leaves the next block out.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sybil import Document, Example, Region, Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

# How wide and how colourful somebody likes a terminal, and settings of the tools, are not what is tested: commands read
# them here and in every process that a test or a page starts.
for _name in [*os.environ]:
    if _name.startswith(("COLUMNS", "FORCE_COLOR", "LOOKUP_", "NO_COLOR", "PY_COLORS", "PYTEST_ADDOPTS", "TTY_")):
        del os.environ[_name]

# The settings of the docs are no module with examples, and need Sphinx, of an extra.
collect_ignore = ["docs/conf.py"]

_MARK = re.compile(
    r"^<!-- (?P<what>file|run|prints)(?:: (?P<detail>[^\n]+?))? -->\n+```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class _Page(ModuleType):
    """The names of a page as a module, so that its classes know where they come from and can be pickled."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        super().__init__(name)
        self.names = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self.names[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]  # dataclasses look names up here
        return self.names


@contextlib.contextmanager
def _folder_of_its_own(names: dict[str, Any]) -> Iterator[None]:
    """Give a page an empty current folder to write into and import from, and the environment's commands."""
    modules, path, folder, commands = set(sys.modules), list(sys.path), Path.cwd(), os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="page-") as own:
        os.chdir(own)
        sys.path.insert(0, own)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{commands}"
        names["__name__"] = "page"
        sys.modules["page"] = _Page("page", names)
        try:
            yield
        finally:
            os.chdir(folder)
            sys.path[:] = path
            os.environ["PATH"] = commands
            for name in set(sys.modules) - modules:
                if name == "page" or str(getattr(sys.modules[name], "__file__", "")).startswith(own):
                    del sys.modules[name]


def _enter(names: dict[str, Any]) -> None:
    names["_page"] = stack = contextlib.ExitStack()
    stack.enter_context(_folder_of_its_own(names))


def _leave(names: dict[str, Any]) -> None:
    names["_page"].close()


def _marks(document: Document) -> Iterator[Region]:
    """Find the marks of a page; the region is the comment alone, since the block itself may be somebody else's."""
    for found in _MARK.finditer(document.text):
        yield Region(found.start(), found.start() + found[0].index("\n"), found, _EVALUATED[found["what"]])


def _write(example: Example) -> None:
    target = Path(example.parsed["detail"])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(example.parsed["text"], encoding="utf-8")


def _run(example: Example) -> None:
    *before, last = _commands(example.parsed["language"], example.parsed["text"])
    for command in before:
        _call(command, 0)
    wanted = int((example.parsed["detail"] or "exit 0").removeprefix("exit "))
    example.namespace["_printed"] = _call(last, wanted)


def _compare(example: Example) -> None:
    printed = example.namespace.get("_printed")
    assert printed is not None, "no command ran before this block, so there is nothing that it shows"
    shown = example.parsed["text"]
    if example.parsed["detail"] == "shortened":
        rest = iter(printed.splitlines())
        for line in shown.splitlines():
            start, is_beginning = line.removesuffix("..."), line.endswith("...")
            assert any(one == line or (is_beginning and one.startswith(start)) for one in rest), (
                f"the last command did not print {line!r}, or printed it before the lines above it:\n{printed}"
            )
        return
    assert printed == shown, f"the last command printed\n{printed}and the page shows\n{shown}"


_EVALUATED: dict[str, Callable[[Example], None]] = {"file": _write, "run": _run, "prints": _compare}


def _commands(language: str, text: str) -> list[str]:
    if language == "console":
        return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return [text]


def _call(command: str, wanted: int) -> str:
    """Run a command, which must exit with this code; return what it printed, errors last."""
    done = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, check=False)
    assert done.returncode == wanted, f"{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser(), _marks],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    excludes=["docs/_build/**"],
    setup=_enter,
    teardown=_leave,
).pytest()
