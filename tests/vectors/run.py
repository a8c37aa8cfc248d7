"""Runs vectors and tells how they ended: one line per area, then every failure with what was expected and what came.

Exit codes: 0 all passed; 1 something failed or was not understood; 2 nothing could be run.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lookup.errors import InputError, PulsarLookupError
from lookup.model.quoting import suggestion
from tests.vectors.areas import AREAS
from tests.vectors.comparing import Difference, differences
from tests.vectors.reading import Handler, NotUnderstood, Vector, read_vectors

__all__ = ["Ending", "Outcome", "main", "run_vector"]

Ending: TypeAlias = Literal["passed", "failed", "not understood"]

_ENDINGS: tuple[Ending, ...] = ("passed", "failed", "not understood")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one vector ended."""

    vector: Vector
    ending: Ending
    #: what was not met, key by key; empty unless it failed
    differences: tuple[Difference, ...] = ()
    #: what is not understood, or how the call broke; empty where neither happened
    why: str = ""


def run_vector(vector: Vector, areas: Mapping[str, Handler] = AREAS) -> Outcome:
    """Put a vector to the API and compare; no error of the code under examination comes out of here."""
    handler = areas.get(vector.area)
    if handler is None:
        return Outcome(vector, "not understood", why=f"there is no area {vector.area!r}")
    try:
        answer = _answer(handler, vector)
        found = differences(vector.area, vector.expected, answer)
    except NotUnderstood as refusal:
        return Outcome(vector, "not understood", why=str(refusal))
    broken = _broken(answer)
    return Outcome(vector, "failed" if found or broken else "passed", tuple(found), broken)


def _answer(handler: Handler, vector: Vector) -> Mapping[str, Any] | Exception:
    try:
        # Copies: a handler that changes what it is given must not change what is compared.
        return handler(copy.deepcopy(vector.input), copy.deepcopy(vector.expected))
    except NotUnderstood:
        raise
    except Exception as error:  # noqa: BLE001  whatever breaks in a call is the result of this vector
        return error


def _broken(answer: Mapping[str, Any] | Exception) -> str:
    """Tell a call that broke from one that refused: only the framework's own errors are meant."""
    if not isinstance(answer, Exception) or isinstance(answer, PulsarLookupError):
        return ""
    return f"the call broke: {type(answer).__name__}: {answer}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run files of vectors and return the exit code; the entry point of `python -m tests.vectors`."""
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description=__doc__, allow_abbrev=False)
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a JSON list of vectors, or one per line")
    parser.add_argument("--area", action="append", metavar="AREA", help="run this area only; repeatable")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="what to print: table, json")
    arguments = parser.parse_args(argv)
    try:
        vectors = _selected(arguments.files, arguments.area)
    except InputError as error:
        parser.error(str(error))
    outcomes = [run_vector(vector) for vector in vectors]
    sys.stdout.write(_json(outcomes) if arguments.format == "json" else _table(outcomes))
    return int(any(outcome.ending != "passed" for outcome in outcomes))


def _selected(paths: Sequence[Path], areas: Sequence[str] | None) -> list[Vector]:
    """Read files and keep the areas asked for.

    Raises:
        InputError: where a file is none, or an area has no vectors: running nothing must not look like passing.
    """
    vectors = [vector for path in paths for vector in read_vectors(path)]
    there = {vector.area for vector in vectors}
    for area in areas or ():
        if area not in there:
            raise InputError(f"there is no vector of area {area!r}; {suggestion(area, sorted(there))}")
    if not vectors:
        raise InputError(f"{' and '.join(map(str, paths))}: there is no vector in it")
    return [vector for vector in vectors if areas is None or vector.area in areas]


def _counts(outcomes: Sequence[Outcome]) -> dict[str, dict[Ending, int]]:
    """Count endings per area, areas in order of their names, and of all."""
    areas = [*sorted({outcome.vector.area for outcome in outcomes}), "total"]
    counts = {area: dict.fromkeys(_ENDINGS, 0) for area in areas}
    for outcome in outcomes:
        counts[outcome.vector.area][outcome.ending] += 1
        counts["total"][outcome.ending] += 1
    return counts


def _table(outcomes: Sequence[Outcome]) -> str:
    counts = _counts(outcomes)
    width = max(map(len, counts))
    lines = [f"{'area':<{width}}  {'  '.join(_ENDINGS)}"]
    for area, row in counts.items():
        lines.append(f"{area:<{width}}  {'  '.join(f'{row[ending]:>{len(ending)}}' for ending in _ENDINGS)}")
    for outcome in outcomes:
        if outcome.ending != "passed":
            lines += ["", f"{outcome.vector.id}: {outcome.ending}", f"  {outcome.why}"]
        for found in outcome.differences:
            lines.append(f"  {found.key}: expected {_written(found.expected)}, actual {_written(found.actual)}")
    return "\n".join(lines) + "\n"


def _json(outcomes: Sequence[Outcome]) -> str:
    counts = _counts(outcomes)
    total = counts.pop("total")
    record = {
        "areas": [{"area": area, **_keys(row)} for area, row in counts.items()],
        "failures": [_failure(outcome) for outcome in outcomes if outcome.ending != "passed"],
        "total": _keys(total),
    }
    return json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n"


def _keys(row: Mapping[Ending, int]) -> dict[str, int]:
    return {ending.replace(" ", "_"): count for ending, count in row.items()}


def _failure(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.vector.id,
        "area": outcome.vector.area,
        "ending": outcome.ending.replace(" ", "_"),
        "why": outcome.why,
        "differences": [asdict(found) for found in outcome.differences],
    }


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
