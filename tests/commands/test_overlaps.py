"""How two paths lie to each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.commands.overlaps import relation


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", "is"),
        ("a/", "a", "is"),
        ("a/../a", "a", "is"),
        ("a/b", "a", "lies in"),
        ("a", "a/b/c", "holds"),
        ("a", "ab", None),
        ("ab/c", "a", None),
        ("/", "/a", "holds"),
        ("file:///x/y", "/x", "lies in"),
    ],
)
def test_a_place_is_compared_by_its_steps(one: str, other: str, expected: str | None) -> None:
    """A name that only begins alike is another place; a URI of this machine is a path."""
    assert relation(one, other) == expected


def test_links_are_followed(tmp_path: Path) -> None:
    """What a link leads to counts, not how it is called."""
    (tmp_path / "log").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "log")

    assert relation(str(tmp_path / "alias" / "x"), str(tmp_path / "log")) == "lies in"


def test_other_file_systems_are_other_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same path in a bucket and on this machine are two."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    assert relation("s3://bucket/a?region=eu-west-1", "/bucket/a") is None
    assert relation("s3://bucket/a/b?region=eu-west-1", "s3://bucket/a?region=eu-west-1") == "lies in"
