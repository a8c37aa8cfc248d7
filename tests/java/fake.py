"""A stand-in for Java: a program that reads what the parts write, and answers as a class of a test's would."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

__all__ = ["asked", "install"]

_PROGRAM = """#!{python}
import json, os, sys, time

def line():
    text = sys.stdin.readline()
    return text if text else sys.exit(0)

if {dies!r}:
    sys.exit({dies!r})
paths = set()
for text in iter(line, ""):
    number, _, question = text.partition("\\t")
    if number not in paths:
        paths.add(number)
        path, question = question.strip(), line()
    asked = json.loads(question)
    with open({log!r}, "a") as log:
        print(json.dumps({{"process": os.getppid(), **asked}}), file=log)
    answer = {answers!r}.get(asked["ask"], {{}})
    if answer == "sleep":
        time.sleep(60)
    if answer == "crash":
        print("the last word", file=sys.stderr)
        os._exit(3)
    print(answer if isinstance(answer, str) else json.dumps(answer), flush=True)
    if isinstance(answer, str):
        sys.exit(3)
"""

#: A class of the modular manager that names nothing and chooses the first of two equals.
ANSWERS: Mapping[str, Any] = {
    "strategy.open": {"extensible": False, "dice": False},
    "strategy.shed": {"unloads": []},
    "strategy.place": {"ties": ["b1:8080", "b2:8080"]},
}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, dies: object = 0, **answers: Any) -> Path:
    """Let the parts start the stand-in in place of Java; return the file of what it was asked.

    Args:
        answers: by the last word of a question.
        dies: what it ends with at its start.
    """
    java, log = folder / "bin" / "java", folder / "asked.jsonl"
    java.parent.mkdir()
    told = {**ANSWERS, **{f"strategy.{name}": answer for name, answer in answers.items()}}
    java.write_text(_PROGRAM.format(python=sys.executable, dies=dies, log=str(log), answers=told), encoding="utf-8")
    java.chmod(0o755)
    jar = folder / "parts.jar"
    jar.touch()
    monkeypatch.setenv("JAVA_HOME", str(folder))
    monkeypatch.setenv("PULSAR_PARTS_JAR", str(jar))
    return log


def asked(log: Path, what: str) -> list[dict[str, Any]]:
    """Return the questions of a kind."""
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["ask"] == f"strategy.{what}" or row["ask"] == what]
