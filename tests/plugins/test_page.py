"""The page `docs/policies.md`: its tables say of every part what the code says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import lookup_policies
from lookup.hooks import Conf, reads_of

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
KINDS: Mapping[str, tuple[type[Any], ...]] = {
    "Filters": lookup_policies.FILTERS,
    "Scorers": lookup_policies.SCORERS,
    "Selectors": lookup_policies.SELECTORS,
    "Shedders": lookup_policies.SHEDDERS,
    "Splitters": lookup_policies.SPLITTERS,
    "Split algorithms": lookup_policies.SPLIT_ALGORITHMS,
}


def _rows(kind: str) -> dict[str, list[str]]:
    """Return the cells behind the name of every row of a kind's table."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}


def _toml(value: Any) -> str:
    """Write a default as a settings file would."""
    if hasattr(value, "__dataclass_fields__"):
        given = [entry for entry in fields(value) if getattr(value, entry.name) != entry.default]
        inside = [f'use = "{value.name}"', *(f"{entry.name} = {_toml(getattr(value, entry.name))}" for entry in given)]
        return "{ " + ", ".join(inside) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return "unset" if value is None else str(value).lower()


def _default(entry: Field[Any]) -> str:
    return "{}" if entry.default is MISSING else _toml(entry.default)


def _key(found: type[Any], entry: Field[Any]) -> str | None:
    markers = getattr(get_type_hints(found, include_extras=True)[entry.name], "__metadata__", ())
    return next((marker.key for marker in markers if isinstance(marker, Conf)), None)


def _expected(found: type[Any]) -> list[str]:
    parameters = [f"`{entry.name} = {_default(entry)}`" for entry in fields(found)]
    keys = [f"`{entry.name}`: `{_key(found, entry)}`" for entry in fields(found) if _key(found, entry)]
    reads = [f"`{name}`" for name in sorted(reads_of(found()))]
    return ["<br>".join(parameters), ", ".join(reads), "<br>".join(keys)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_a_row_in_the_order_of_registration(kind: str) -> None:
    """The tables hold the registered parts and no others."""
    assert list(_rows(kind)) == [found.name for found in KINDS[kind]]


@pytest.mark.parametrize(("kind", "found"), [(kind, found) for kind, tuples in KINDS.items() for found in tuples])
def test_a_row_names_parameters_defaults_reads_and_keys(kind: str, found: type[Any]) -> None:
    """What a row says of a part is what its class says."""
    says, *facts = _rows(kind)[found.name]

    assert says
    assert facts == _expected(found)


@pytest.mark.parametrize(
    "found", [found for tuples in KINDS.values() for found in tuples], ids=lambda found: found.name
)
def test_a_docstring_says_what_leads_to_what(found: type[Any]) -> None:
    """Every part documents Match -> Result -> Reason, and every parameter has a comment."""
    assert "Match -> Result -> Reason" in (found.__doc__ or "")
