"""The filter `load-manager-class`."""

from __future__ import annotations

import pytest

from lookup.testing import cluster, request
from lookup_policies.load_manager_class import LoadManagerClass
from tests.plugins.worlds import kept, labelled


@pytest.mark.parametrize(
    ("classes", "class_name", "expected"),
    [
        ({"b1": "A", "b2": "B", "b3": None}, "A", {"b1"}),
        ({"b1": "A", "b2": "B", "b3": "B"}, None, {"b2", "b3"}),
        ({"b1": "B", "b2": "A"}, None, {"b2"}),
        ({"b1": None, "b2": None, "b3": "A"}, None, {"b3"}),
        ({"b1": None, "b2": None}, None, {"b1", "b2"}),
    ],
    ids=["given", "majority", "first-of-a-draw", "silent-brokers-have-no-vote", "nobody-says"],
)
def test_brokers_of_the_expected_class_are_kept(
    classes: dict[str, str | None], class_name: str | None, expected: set[str]
) -> None:
    """The class is the one given, or the one most registered brokers name."""
    view = cluster(*(labelled(broker_id, load_manager_class_name=cls) for broker_id, cls in classes.items()))

    assert kept(LoadManagerClass(class_name), request(), view) == expected


def test_only_registered_brokers_vote() -> None:
    """A broker that has left does not say which manager the cluster runs."""
    brokers = [labelled(f"b{place}", load_manager_class_name="old" if place < 3 else "new") for place in range(5)]
    view = cluster(*brokers, registered=["b2", "b3", "b4"])

    assert kept(LoadManagerClass(), request(), view) == {"b3", "b4"}


def test_the_detail_names_both_classes() -> None:
    """An explanation says what the broker runs and what was expected."""
    view = cluster(labelled("b1", load_manager_class_name="A"))

    assert LoadManagerClass("B").detail(request(), view.brokers[0], view) == "runs A, expected B"
