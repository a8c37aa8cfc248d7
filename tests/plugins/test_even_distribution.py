"""The filter `even-distribution`."""

from __future__ import annotations

from lookup.testing import candidates, cluster, engine_request
from lookup_policies.even_distribution import EvenDistribution
from tests.plugins.worlds import kept

OWNED = {"t/ns/0x00000000_0x40000000": "1", "t/ns/0x40000000_0x80000000": "2", "t/other/0x00000000_0x40000000": "3"}
VIEW = cluster("1", "2", "3", owned=OWNED)
ASKED = engine_request("t/ns/0x80000000_0xffffffff")


def test_brokers_with_the_fewest_bundles_of_the_namespace_are_kept() -> None:
    """Bundles of other namespaces do not count."""
    assert kept(EvenDistribution(), ASKED, VIEW) == {"3"}


def test_the_fewest_are_those_of_the_candidates() -> None:
    """A broker that is not offered sets no standard."""
    assert kept(EvenDistribution(), ASKED, VIEW, "1", "2") == {"1", "2"}


def test_a_rejection_names_the_count() -> None:
    """The explanation says how many bundles of the namespace the broker owns."""
    said = EvenDistribution().detail(ASKED, candidates(VIEW, "1")[0], VIEW)

    assert said == "owns 1 bundles of t/ns, another candidate fewer"
