"""Areas of names, hashes and bundles."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        ("bundles.find", {"boundaries": ["0x0", "0xffffffff"], "topic": "persistent://t/n/x"}, {"hash": "0x064eefed"}),
        (
            "bundles.find",
            {"boundaries": ["0x0", "0xffffffff"], "namespace": "p/g/n", "topic": "persistent://p/g/n/x"},
            {"bundle": "0x00000000_0xffffffff"},
        ),
        ("bundles.find_by_hash", {"boundaries": ["0x10", "0x20"], "hash": "0x0f"}, {"error": "IndexOutOfBounds"}),
        ("bundles.name_parts", {"bundle": "no-slash"}, {"error": "IllegalArgument"}),
        ("bundles.parse_range", {"range": "0x00000000"}, {"error": "IllegalArgumentException: no underscore"}),
        (
            "bundles.parse_range",
            {"range": "0x0000000A_0xFFFFFFFF"},
            {"lower": "0x0000000a", "upper": "0xffffffff", "upper_closed": True},
        ),
        (
            "bundles.split_at",
            {"boundaries": ["0x0", "0x80", "0xff"], "split_index": 1, "split_boundaries": ["0x90", "0x80 + 2"]},
            {
                "new_bundles": ["0x00000080_0x00000082", "0x00000082_0x00000090", "0x00000090_0x000000ff"],
                "boundary_equal_to_either_endpoint": "IllegalArgument",
            },
        ),
    ],
)
def test_other_examples_of_the_areas_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the README describes works for values that are not in the file."""
    assert outcome(area, given, expected).ending == "passed"


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        ("bundles.find", {"boundaries": "above", "topic": "persistent://t/n/x", "hash": "0x1"}, {"error": "IndexOut"}),
        ("bundles.split", {"boundaries": ["0x0", "0xff"], "split_index": 0, "num_bundles": 2}, {"bundle_count": 3}),
        ("bundles.can_split", {"lower": "0x0", "upper": "0x2"}, {"can_split": False}),
        ("bundles.topic_hash", {"topic": "persistent://t/n/x", "extra": 1}, {"hash": "0x064eefed"}),
    ],
)
def test_wrong_examples_do_not_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """A wrong value fails, an unknown key is not understood."""
    assert outcome(area, given, expected).ending != "passed"
