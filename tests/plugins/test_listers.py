"""The built-in listers: what each shows to whom."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookup_policies
from lookup.errors import ArgumentError
from lookup.model.catalog import CatalogView, Listing
from lookup_policies.listers import Default, Indexed, TenantScope
from tests.topics.filled import HERE, catalog_of, name_of
from tests.topics.listers import Listed, Scripted

PAGE = Path(__file__).parents[2] / "docs" / "topics.md"
_CATALOG = catalog_of(
    name_of("plain"),
    billing={"team": "billing", "tenant": "acme"},
    both={"team": "billing", "stage": "raw"},
    other={"team": "Billing", "tenant": "public"},
)


def _listed(lister: Any, **properties: str) -> list[str]:
    found = lister.list_topics(HERE, "persistent", properties, _CATALOG)

    assert not found.partial
    return sorted(name.rpartition("/")[2] for name in found.topics)


def test_default_ignores_properties() -> None:
    """A stock broker lists every topic whatever a consumer sends."""
    assert _listed(Default(), team="billing") == ["billing", "both", "other", "plain"]


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, ["billing", "both", "other", "plain"]),
        ({"team": "billing"}, ["billing", "both"]),
        ({"team": "billing", "stage": "raw"}, ["both"]),
        ({"team": ""}, []),
        ({"unknown": "x"}, []),
    ],
)
def test_properties_are_an_exact_and(properties: dict[str, str], wanted: list[str]) -> None:
    """Every property must be there with exactly that value; none at all filters nothing."""
    assert _listed(Indexed(), **properties) == wanted


_PAIRS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(st.lists(_PAIRS, max_size=6), _PAIRS)
def test_the_index_and_a_scan_agree(described: list[dict[str, str]], wanted: dict[str, str]) -> None:
    """It finds what a look at each topic would."""
    catalog = catalog_of(**{f"t{number}": properties for number, properties in enumerate(described)})

    indexed = Indexed().list_topics(HERE, "all", wanted, catalog).topics
    found = (entry for name in catalog.topics(HERE, "all") if (entry := catalog.entry(name)) is not None)
    assert sorted(indexed) == [entry.name for entry in found if wanted.items() <= entry.properties.items()]


def test_a_tenant_sees_its_own_topics() -> None:
    """A topic belongs to the tenant it names, else to that of its namespace."""
    assert _listed(TenantScope(), tenant="acme") == ["billing"]
    assert _listed(TenantScope(), tenant="public") == ["both", "other", "plain"]
    assert _listed(TenantScope(), tenant="nobody") == []


def test_a_client_without_tenant_sees_all_or_is_refused() -> None:
    """An empty list would make its consumers drop their subscriptions."""
    assert _listed(TenantScope()) == ["billing", "both", "other", "plain"]
    with pytest.raises(ArgumentError, match=r"public/default .* property 'owner'"):
        _listed(TenantScope(key="owner", required=True), tenant="acme")


def test_a_child_filters_by_the_other_properties() -> None:
    """The tenant's own property is not handed on."""
    scope = TenantScope(child=Indexed())

    assert _listed(scope, tenant="public", team="billing") == ["both"]
    assert scope.interests == {"created", "deleted", "properties"}


def test_a_child_may_name_its_interests_in_any_collection() -> None:
    """They are read as a set, as wherever a lister is asked for them."""
    scope = TenantScope(child=Listed())

    assert scope.interests == {"created", "labels", "properties"}


@dataclass(frozen=True)
class _Recording(Scripted):
    """Note when it is opened and closed."""

    calls: list[str] = field(default_factory=list)

    def initialize(self, catalog: CatalogView) -> None:
        """Note the call."""
        self.calls.append("initialize")

    def close(self) -> None:
        """Note the call."""
        self.calls.append("close")


def test_a_child_is_opened_closed_and_believed() -> None:
    """What the child takes it lets go of, and a partial list of it stays partial."""
    child = _Recording(lambda _: Listing((), partial=True))
    scope = TenantScope(child=child)

    scope.initialize(_CATALOG)
    found = scope.list_topics(HERE, "persistent", {"tenant": "acme"}, _CATALOG)
    scope.close()

    assert found.partial
    assert child.calls == ["initialize", "close"]


def test_an_empty_key_is_refused() -> None:
    """A scope that looks at nothing is a mistake."""
    with pytest.raises(ValueError, match="tenant-scope has an empty key"):
        TenantScope(key="")


@pytest.mark.parametrize("found", lookup_policies.LISTERS, ids=lambda found: found.name)
def test_a_lister_is_a_part_like_any_other(found: Any) -> None:
    """Equal parameters make equal listers; one pickles and its repr rebuilds it."""
    lister = found()

    assert pickle.loads(pickle.dumps(lister)) == lister
    assert eval(repr(lister), {one.__name__: one for one in lookup_policies.LISTERS}) == lister
    assert lister.interests <= {"created", "deleted", "properties"}


@pytest.mark.parametrize("found", lookup_policies.LISTERS, ids=lambda found: found.name)
def test_a_lister_says_what_leads_to_what_and_is_on_the_page(found: Any) -> None:
    """The docstring has its table and source, docs/topics.md a row."""
    text = inspect.getdoc(found) or ""

    assert "Match -> Result -> Reason:" in text
    assert "Source: " in text
    assert f"| `{found.name}` |" in PAGE.read_text(encoding="utf-8")
