"""The filter `version`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.testing import cluster, request
from lookup_policies.version import Version
from tests.plugins.worlds import kept, labelled


def _kept(*versions: str | None, prefer_later: bool = True) -> set[int]:
    view = cluster(*(labelled(f"b{place}", broker_version=version) for place, version in enumerate(versions)))
    return {int(broker_id[1:]) for broker_id in kept(Version(prefer_later), request(), view)}


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (("2.10.0", "2.10.1", "2.10.1", "2.10.1"), {1, 2, 3}),
        (("2.10.0", "2.10.1-SNAPSHOT", "2.10.1", "2.10.2-SNAPSHOT"), {3}),
        (("2.10.1-SNAPSHOT", "2.10.1"), {1}),
        (("2.9.9", "2.10.0", "2.2.0"), {1}),
        (("4.0.0-rc.2", "4.0.0-rc.10", "4.0.0-preview"), {1}),
        (("4.0.0-1", "4.0.0-alpha"), {1}),
        (("4.0.0+one", "4.0.0+two"), {0, 1}),
        (("2.10.0", "xxx", "2.10.1"), {0, 1, 2}),
        (("2.10.0", None), {0, 1}),
        (("2.10.0", "2.10.1.4"), {0, 1}),
    ],
)
def test_the_latest_version_is_kept(versions: tuple[str | None, ...], expected: set[int]) -> None:
    """The highest semantic version wins; one that cannot be read keeps everybody."""
    assert _kept(*versions) == expected


def test_nothing_happens_by_default() -> None:
    """Without `prefer_later` every version is kept."""
    assert _kept("2.10.0", "2.10.1", prefer_later=False) == {0, 1}


def test_only_the_candidates_are_compared() -> None:
    """A later version that another filter has dropped does not count."""
    view = cluster(*(labelled(f"b{place}", broker_version=f"3.0.{place}") for place in range(3)))

    assert kept(Version(True), request(), view, "b0", "b1") == {"b1"}


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 3), min_size=1, max_size=6))
def test_numbers_are_compared_as_numbers(versions: list[tuple[int, int, int]]) -> None:
    """Releases sort like the tuples of their numbers."""
    best = {place for place, version in enumerate(versions) if version == max(versions)}

    assert _kept(*(".".join(map(str, version)) for version in versions)) == best


def test_an_unreadable_version_fails_the_filter_where_that_is_asked_for() -> None:
    """As in Pulsar nobody is rejected; what follows from the failure is for `on_error` to say."""
    view = cluster(labelled("1", broker_version="4.0.0"), labelled("2", broker_version="04.0.0"))

    with pytest.raises(InputError, match=r"broker 2 has version '04\.0\.0', which is not semantic"):
        kept(Version(prefer_later=True, unreadable="fail"), request(), view)
    assert kept(Version(prefer_later=True), request(), view) == {"1", "2"}
    assert kept(Version(unreadable="fail"), request(), view) == {"1", "2"}
