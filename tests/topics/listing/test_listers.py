"""The contract of a lister: its interests exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from lookup.errors import ContractError
from lookup.topics.listing.listers import interests_of
from tests.topics.listers import Listed, Scripted


@dataclass(frozen=True)
class Careless(Scripted):
    """Name as interests whatever a test says."""

    name: ClassVar[str] = "careless"
    given: Any = None

    @property
    def interests(self) -> Any:  # type: ignore[override]  # a careless lister
        """Answer."""
        return self.given


def test_interests_may_come_in_any_collection() -> None:
    """In a list, or made as they are read."""
    assert interests_of(Listed()) == {"created", "labels"}
    assert interests_of(Careless(given=())) == frozenset()
    assert interests_of(Careless(given=iter(["labels", "labels"]))) == {"labels"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"createt"}, "has 'createt' .*; did you mean 'created'?"),
        (["created", 7], "has 7 .*; known: created, deleted, labels, nam"),
        ([["created"]], r"has \['created'\] among its interests"),
        (["x" * 10**6], r"has 'xxx.*\.\.\.' among its interests"),
        ("created", "has the interests 'created', .* like {'created'}"),
        (None, "has the interests None"),
    ],
)
def test_interests_that_are_none_are_refused(given: Any, said: str) -> None:
    """A lister would wait for such an event for ever, and its watchers would miss what changes, in silence."""
    with pytest.raises(ContractError, match=f"^lister 'careless' {said}") as raised:
        interests_of(Careless(given=given))

    assert len(str(raised.value)) < 300
