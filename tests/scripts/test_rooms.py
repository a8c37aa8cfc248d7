"""The sizes of the rooms."""

from __future__ import annotations

from pathlib import Path

from scripts.rooms import BOUNDS, PAGE, outgrown, page_with_rooms, sizes


def test_the_page_has_the_sizes_of_the_tree() -> None:
    """`python scripts/rooms.py` writes it anew."""
    page = PAGE.read_text(encoding="utf-8")

    assert page_with_rooms(page, sizes()) == page


def test_no_room_has_outgrown_its_bound() -> None:
    """Who adds lines cuts others, or writes down why there are more."""
    assert outgrown(sizes()) == []


def test_a_room_that_grows_is_named(tmp_path: Path) -> None:
    """With what it has and what was agreed on; a new room has no bound yet."""
    for room, lines in (("lookup/hooks", BOUNDS["lookup/hooks"] + 1), ("lookup/attic", 2), ("lookup/score", 3)):
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "__init__.py").write_text("\n" * lines, encoding="utf-8")
    (tmp_path / "plugins" / "lookup_policies").mkdir(parents=True)

    assert [sentence.partition(";")[0] for sentence in outgrown(sizes(tmp_path))] == [
        "lookup/attic: 2 lines, at most 0 are agreed on",
        "lookup/hooks: 501 lines, at most 500 are agreed on",
    ]
