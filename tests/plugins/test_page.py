"""The page `docs/policies.md`: its tables have every part and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lookup_policies

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
KINDS: Mapping[str, tuple[type[Any], ...]] = {
    "Filters": lookup_policies.FILTERS,
    "Scorers": lookup_policies.SCORERS,
    "Selectors": lookup_policies.SELECTORS,
    "Shedders": lookup_policies.SHEDDERS,
    "Splitters": lookup_policies.SPLITTERS,
    "Split algorithms": lookup_policies.SPLIT_ALGORITHMS,
}


def _rows(kind: str) -> dict[str, str]:
    """Return the cell beside the name in every row of a kind's table."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {name.strip(" `"): does.strip() for name, does in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_every_part_has_a_row_in_the_order_of_registration(kind: str) -> None:
    """Parameters, reads and keys are in `docs/gallery.md` and `docs/pulsar-parity.md`, which scripts write."""
    rows = _rows(kind)

    assert list(rows) == [found.name for found in KINDS[kind]]
    assert all(rows.values())


@pytest.mark.parametrize(
    "found", [found for tuples in KINDS.values() for found in tuples], ids=lambda found: found.name
)
def test_a_docstring_says_what_leads_to_what(found: type[Any]) -> None:
    """Every part documents Match -> Result -> Reason."""
    assert "Match -> Result -> Reason" in (found.__doc__ or "")
