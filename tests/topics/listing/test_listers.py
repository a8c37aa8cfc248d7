"""The contract of a lister: its interests exist, and an error of it is a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ContractError, PolicyError, StateError
from lookup.hooks import Lister
from lookup.topics.listing.listers import interests_of, lister_failing
from tests.topics.listers import Listed, Scripted


@dataclass(frozen=True)
class Careless(Scripted):
    """Name as interests whatever a test says, or fail to."""

    name: ClassVar[str] = "careless"
    given: Any = None

    @property
    def interests(self) -> Any:  # type: ignore[override]  # a careless lister
        """Answer, or raise."""
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given


class _Worn(BaseException):
    """An error that is no `Exception`."""


# Interests


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


@given(st.sets(st.sampled_from(["created", "deleted", "labels", "properties"])), st.text())
def test_only_kinds_of_events_are_interests(kinds: set[str], other: str) -> None:
    """Any set of them is one; with any other text in it, none is."""
    assert interests_of(Careless(given=kinds)) == kinds
    if other not in ("created", "deleted", "labels", "properties"):
        with pytest.raises(ContractError, match="is no kind of event"):
            interests_of(Careless(given=[*kinds, other]))


# Failures


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), _Worn("out"), StopIteration(), RuntimeError("gone")])
def test_whatever_a_lister_raises_is_a_sentence(error: BaseException) -> None:
    """One that exits does not end its caller."""
    said = rf"^lister 'x' could not begin: {type(error).__name__}.* \(test_listers\.py, line"
    with pytest.raises(PolicyError, match=said), lister_failing("x", "could not begin"):
        raise error
    with pytest.raises(PolicyError, match=f"lister 'careless' .* interests: {type(error).__name__}"):
        interests_of(Careless(given=error))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), StateError("it is closed")])
def test_interruptions_and_what_is_refused_on_purpose_stay_as_they_are(error: BaseException) -> None:
    """Ctrl-C is not the lister's, and its own refusal needs no other words."""
    with pytest.raises(type(error)) as raised, lister_failing("x", "could not begin"):
        raise error

    assert raised.value is error


def test_a_lister_is_still_a_lister() -> None:
    """The doubles of these tests satisfy the protocol."""
    assert isinstance(Careless(given=()), Lister)
