"""What operators decide about namespaces."""

from __future__ import annotations

from lookup.model import NamespacePolicies
from lookup.model.bundles import equal_boundaries


def test_boundaries_are_the_namespaces_own_or_equal_ones() -> None:
    """Four bundles where nothing is said."""
    policies = NamespacePolicies(boundaries={"a/b": (0, 5, 0xFFFFFFFF)})

    assert policies.boundaries_of("a/b") == (0, 5, 0xFFFFFFFF)
    assert policies.boundaries_of("a/c") == equal_boundaries(4)
    assert NamespacePolicies(default_bundles=1).boundaries_of("a/c") == (0, 0xFFFFFFFF)


def test_groups_compare_without_regard_to_case() -> None:
    """Members come sorted."""
    policies = NamespacePolicies(anti_affinity_group={"b/x": "Bills", "a/x": "BILLS", "c/x": "other"})

    assert policies.group_members("bills") == policies.group_members("bILLS") == ("a/x", "b/x")
    assert policies.group_members("none") == ()
