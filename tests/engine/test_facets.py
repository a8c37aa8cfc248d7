"""What parts are handed: requests and views cut down to what they declare."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from lookup.engine.facets import request_facet, view_facet
from lookup.errors import ReadsError
from lookup.hooks import ALL_READS
from lookup.model.view import VIEW_READS
from lookup.testing import cluster, request

ASKED = request("persistent://t/n/topic", properties={"rack": "a", "zone": "z"}, client="c")
VIEW = cluster("b1:8080", memory={"mine": {"count": 3}}, now_us=5)


def _asked(*reads: str) -> Any:
    return request_facet("mine", frozenset(reads))(ASKED)


def _view(*reads: str) -> Any:
    return view_facet("mine", frozenset(reads), VIEW, {"count": 3})


@pytest.mark.parametrize("name", sorted(name for name in ALL_READS if not name.startswith("view.")))
def test_a_declared_field_of_the_request_is_there(name: str) -> None:
    """Each field may be declared alone and has the request's value."""
    assert getattr(_asked(name), name) == getattr(ASKED, name)


@pytest.mark.parametrize("name", sorted(name for name in ALL_READS if not name.startswith("view.")))
def test_an_undeclared_field_of_the_request_raises(name: str) -> None:
    """The error names the field and the part, and `getattr` with a default does not hide it."""
    with pytest.raises(ReadsError, match=f"part 'mine' read request.{name} without '{name}' in its reads"):
        getattr(_asked(), name, None)


@pytest.mark.parametrize(("name", "declared"), sorted(VIEW_READS.items()))
def test_an_undeclared_part_of_the_view_raises(name: str, declared: str) -> None:
    """Everything that changes within an epoch has to be declared."""
    with pytest.raises(ReadsError, match=f"part 'mine' read view.{name} without '{declared}' in its reads"):
        hasattr(_view(), name)
    getattr(_view(declared), name)


def test_declared_properties_alone_are_visible() -> None:
    """One declared property is read in any way, another raises whichever way it is touched."""
    asked = _asked("properties.rack")

    assert (asked.property_of("rack"), asked.properties["rack"], asked.properties.get("rack")) == ("a", "a", "a")
    assert dict(asked.properties) == {"rack": "a"}
    for touch in (asked.property_of, asked.properties.get, asked.properties.__getitem__, asked.properties.__contains__):
        with pytest.raises(ReadsError, match=r"part 'mine' .*'properties\.zone'"):
            touch("zone")


def test_a_declared_property_the_client_did_not_send_is_none() -> None:
    """Absence is None and no error, a default is used, and the property is not in the mapping."""
    asked = _asked("properties.rack", "properties.dc")

    assert asked.property_of("dc") is None
    assert asked.properties["dc"] is None
    assert asked.properties.get("dc", "none") == "none"
    assert "dc" not in asked.properties
    assert list(asked.properties) == ["rack"]
    assert len(asked.properties) == 1


def test_all_properties_may_be_declared() -> None:
    """With `properties` every one is there."""
    assert _asked("properties").property_of("zone") == "z"
    assert dict(_asked("properties").properties) == ASKED.properties


def test_a_figure_of_load_that_is_read_from_the_view_itself_names_its_place() -> None:
    """Parts written before the load was an object of its own say `view.usage`."""
    with pytest.raises(AttributeError, match=r"'usage' .* view\.load\.usage\?"):
        getattr(_view("view.load"), "usage")  # noqa: B009  a read is meant


@pytest.mark.parametrize("facet", [_asked("tenant"), _view("view.load"), _asked(*ALL_READS), _view(*ALL_READS)])
def test_facets_are_frozen(facet: Any) -> None:
    """No part can change what the next one sees."""
    with pytest.raises(AttributeError):
        facet.tenant = "other"


def test_a_part_that_declares_everything_gets_the_original() -> None:
    """No facet is put between."""
    assert _asked(*ALL_READS) is ASKED


def test_facets_can_be_copied_and_pickled() -> None:
    """A part may keep what it was handed, for its own tests."""
    copied = copy.deepcopy(_asked("tenant", "properties.rack"))
    revived = pickle.loads(pickle.dumps(_asked("tenant")))

    assert (copied.tenant, dict(copied.properties), revived.tenant) == ("t", {"rack": "a"}, "t")
