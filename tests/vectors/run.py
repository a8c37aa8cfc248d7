"""Runs vectors and tells how they ended: one line per area, then every failure with what was expected and what came.

Exit codes: 0 all passed; 1 something failed or was not understood; 2 nothing could be run.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from lookup.errors import InputError, PulsarLookupError, SettingsError
from lookup.model.quoting import suggestion
from tests.vectors.areas import AREAS
from tests.vectors.comparing import Difference, differences
from tests.vectors.reading import Handler, NotUnderstood, Vector, read_vectors

__all__ = ["Ending", "Outcome", "main", "run_vector"]

Ending: TypeAlias = Literal["passed", "failed", "not understood"]

_ENDINGS: tuple[Ending, ...] = ("passed", "failed", "not understood")

_EXAMPLES = """examples:
  python -m tests.vectors loadmanager.json
      run every vector of a file and print one line per area
  python -m tests.vectors loadmanager.json more.json --area topk --area bundles.split
      run the vectors of two areas from two files
  python -m tests.vectors loadmanager.json --format json
      print areas, failures and totals as one JSON object

exit codes: 0 all passed; 1 something failed or was not understood; 2 nothing could be run
"""


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
    return Outcome(vector, "failed" if found else "passed", tuple(found), _broken(answer) if found else "")


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
    try:
        arguments = _parser().parse_args(argv)
        vectors = _selected(arguments.files, arguments.area)
    except PulsarLookupError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    outcomes = [run_vector(vector) for vector in vectors]
    sys.stdout.write({"table": _table, "json": _json}[arguments.format](outcomes))
    return int(any(outcome.ending != "passed" for outcome in outcomes))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; see `{self.prog} --help`")


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m tests.vectors",
        description="Run examples of Pulsar's load management, kept as data, through the public API.",
        epilog=_EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path, help="a JSON list of vectors, or one per line")
    parser.add_argument("--area", action="append", metavar="AREA", help="run this area only; repeatable")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="what to print: table, json")
    return parser


def _selected(files: Iterable[Path], areas: Sequence[str] | None) -> list[Vector]:
    """Read files and keep the areas asked for.

    Raises:
        InputError: where a file is none, or an area has no vectors: running nothing must not look like passing.
    """
    paths = tuple(files)
    vectors = [vector for path in paths for vector in read_vectors(path)]
    there = sorted({vector.area for vector in vectors})
    for area in areas or ():
        if area not in there:
            raise InputError(f"there is no vector of area {area!r}; {suggestion(area, there)}")
    if not vectors:
        raise InputError(f"{' and '.join(map(str, paths))}: there is no vector in it")
    return [vector for vector in vectors if areas is None or vector.area in areas]


# Telling


def _counts(outcomes: Sequence[Outcome]) -> dict[str, dict[Ending, int]]:
    """Count endings per area, areas in order of their names."""
    counts: dict[str, dict[Ending, int]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.vector.area):
        row = counts.setdefault(outcome.vector.area, dict.fromkeys(_ENDINGS, 0))
        row[outcome.ending] += 1
    return counts


def _total(counts: Mapping[str, Mapping[Ending, int]]) -> dict[Ending, int]:
    return {ending: sum(row[ending] for row in counts.values()) for ending in _ENDINGS}


def _table(outcomes: Sequence[Outcome]) -> str:
    counts = _counts(outcomes)
    rows = [*counts.items(), ("total", _total(counts))]
    width = max(len("area"), *(len(area) for area, _ in rows))
    lines = [f"{'area':<{width}}  {'  '.join(_ENDINGS)}"]
    lines += [f"{area:<{width}}  {_cells(row)}" for area, row in rows]
    lines += [line for outcome in outcomes if outcome.ending != "passed" for line in _told(outcome)]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[Ending, int]) -> str:
    return "  ".join(f"{row[ending]:>{len(ending)}}" for ending in _ENDINGS)


def _told(outcome: Outcome) -> list[str]:
    lines = ["", f"{outcome.vector.id}: {outcome.ending}"]
    if outcome.why:
        lines.append(f"  {outcome.why}")
    for found in outcome.differences:
        lines += [
            f"  {found.key}",
            f"    expected {_written(found.expected)}",
            f"    actual   {_written(found.actual)}",
        ]
    return lines


def _json(outcomes: Sequence[Outcome]) -> str:
    counts = _counts(outcomes)
    record = {
        "areas": [{"area": area, **_keys(row)} for area, row in counts.items()],
        "failures": [_failure(outcome) for outcome in outcomes if outcome.ending != "passed"],
        "total": _keys(_total(counts)),
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
        "differences": [
            {"key": found.key, "expected": found.expected, "actual": found.actual} for found in outcome.differences
        ],
    }


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
