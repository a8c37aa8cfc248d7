"""Releases of Pulsar: which one a cluster has."""

from __future__ import annotations

import pytest

from lookup.settings.releases import RELEASES, release_of_all


@pytest.mark.parametrize(
    ("versions", "release", "why"),
    [
        (("4.2.4", "4.2.3", None), "4.2", "the brokers run 4.2"),
        (("4.1.0", "4.0.8"), "4.0", "the brokers run 4.0 and 4.1"),
        (("4.3.0-SNAPSHOT",), "4.2", "4.3"),
        (("5.0.1", "6.1.0"), "5.0", "5.0 and 6.1"),
        (("3.3.7",), "4.0", "3.3"),
        (("4.0.8", "5.0.1"), "4.2", "4.0 and 5.0"),
        ((None, "", "trunk"), "4.2", "no broker names its version"),
        ((), "4.2", "no broker names its version"),
    ],
)
def test_a_cluster_has_the_nearest_release_that_is_not_newer(
    versions: tuple[str | None, ...], release: str, why: str
) -> None:
    """Of one whose brokers run several, or do not say, nothing is known."""
    found, reason = release_of_all(versions)

    assert found == release
    assert why in reason


def test_a_default_is_of_a_key_that_the_release_knows() -> None:
    """And all three have defaults of the same keys, but for those that 5.0 added."""
    assert all(not of.unknown & of.defaults.keys() for of in RELEASES.values())
    assert RELEASES["5.0"].defaults.keys() - RELEASES["4.0"].defaults.keys() <= RELEASES["4.2"].unknown
    assert [of.defaults["defaultNumberOfNamespaceBundles"] for of in RELEASES.values()] == [4, 4, 32]
