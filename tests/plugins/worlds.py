"""Small worlds for policy tests: a view, a request and scores drawn at random, and short ways to ask parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from lookup.hooks import Filter, Scorer, Selector
from lookup.model import Broker, BrokerLookupData, ClusterView, IsolationPolicy, LookupRequest, NamespacePolicies
from lookup.testing import broker, candidates, cluster, engine_request, request

RATIOS = st.floats(0, 1, allow_nan=False)


def labelled(broker_id: str, **fields: Any) -> Broker:
    """Build a broker with some fields of its lookup data."""
    return Broker(broker_id, BrokerLookupData(**fields))


def kept(part: Filter, asked: LookupRequest, view: ClusterView, *broker_ids: str) -> set[str]:
    """Return the ids a filter keeps of the named brokers, of all by default."""
    offered = candidates(view, *broker_ids)
    return {one.id for one, admitted in zip(offered, part.admit(asked, offered, view), strict=True) if admitted}


def scored(part: Scorer, asked: LookupRequest, view: ClusterView, *broker_ids: str) -> dict[str, float]:
    """Return each broker's score, to 9 digits."""
    offered = candidates(view, *broker_ids)
    scores = np.asarray(part.score(asked, offered, view)).tolist()
    return {one.id: round(score, 9) for one, score in zip(offered, scores, strict=True)}


def shares(
    part: Selector,
    view: ClusterView,
    *broker_ids: str,
    scores: Mapping[str, float] | None = None,
    asked: LookupRequest | None = None,
) -> dict[str, float]:
    """Return each broker's normalised odds above 0, to 9 digits; empty where the selector declines."""
    offered = candidates(view, *broker_ids)
    given = np.array([1.0 if scores is None else scores[one] for one in offered.ids])
    odds = np.asarray(part.odds(request() if asked is None else asked, offered, given, view), dtype=np.float64)
    total = odds.sum()
    return {one: round(odd / total, 9) for one, odd in zip(offered.ids, odds.tolist(), strict=True) if odd > 0}


@dataclass(frozen=True)
class World:
    """One decision to take."""

    view: ClusterView
    request: LookupRequest
    #: by broker id
    scores: Mapping[str, float]

    def odds(self, part: Selector, order: Sequence[str]) -> NDArray[np.float64]:
        """Ask a selector about the brokers in an order."""
        given = np.array([self.scores[broker_id] for broker_id in order])
        return np.asarray(part.odds(self.request, candidates(self.view, *order), given, self.view))

    @property
    def ids(self) -> list[str]:
        """Return the ids of all brokers, sorted."""
        return [one.id for one in self.view.brokers]


_LABELS = st.fixed_dictionaries({}, optional={"rack": st.sampled_from("ab"), "zone": st.sampled_from("xyz")})


@st.composite
def _brokers(draw: st.DrawFn) -> list[Broker]:
    count = draw(st.integers(1, 8))
    capacities = st.none() | st.floats(1, 1000)
    versions = st.none() | st.sampled_from(["3.0.0", "4.0.0-SNAPSHOT", "4.0.0", "nightly"])
    built = [broker(f"b{place}:8080", capacity=draw(capacities), **draw(_LABELS)) for place in range(count)]
    return [
        replace(one, lookup_data=replace(one.lookup_data, broker_version=draw(versions), properties=_properties(one)))
        for one in built
    ]


def _properties(one: Broker) -> dict[str, str]:
    return {**one.lookup_data.properties, "lookup.weight": str(len(one.lookup_data.properties))}


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a world: some brokers lack labels, reports or a capacity, some requests come from the engine itself."""
    brokers = draw(_brokers())
    ids = st.sampled_from([one.id for one in brokers])
    reported = [one for one in brokers if draw(st.booleans())]
    view = cluster(
        *brokers,
        usage={one.id: draw(st.floats(0, 1.5)) for one in reported},
        topics={one.id: draw(st.integers(0, 10)) for one in brokers},
        owned={
            f"public/default/{place:#010x}_{place + 1:#010x}": draw(ids) for place in range(draw(st.integers(0, 9)))
        },
        demand=draw(st.sampled_from([{}, {"zone": {"x": 3.0, "y": 1.0}}, {"zone": {"x": 0.0}}])),
        memory={"counter": draw(st.integers(0, 20))},
        namespaces=draw(_NAMESPACES),
    )
    asked = draw(
        st.just(engine_request()) | st.builds(request, properties=_LABELS, client=st.sampled_from(["c", None]))
    )
    return World(view, asked, {one.id: draw(RATIOS) for one in brokers})


_NAMESPACES = st.sampled_from(
    [
        NamespacePolicies(),
        NamespacePolicies(isolation={"public/default": (IsolationPolicy(("b[0-3]",), ("b.",), 2),)}),
        NamespacePolicies(isolation={"other/one": (IsolationPolicy(("b[0-3]",)),)}),
        NamespacePolicies(
            anti_affinity_group={"public/default": "g"}, failure_domains={"b0:8080": "d1", "b1:8080": "d2"}
        ),
    ]
)
