"""Probe policies for salt to find parts that separate equal brokers by name in the same way under each salt.

A placement by hash is one random draw. Every replicate of a replay has a salt of its own, which a hashing
part mixes in. A part without salt has the same draw in every replicate, and its random effect looks like
merit. The probe calls parts with brokers that differ only in their names, under several salts. Odds that
are uneven and always the same can only come from the names.

Broker names are invented, so that parts whose parameters name brokers are not mistaken for hashing parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Instant, Policy, WeightedScorer
from lookup.errors import PulsarLookupError
from lookup.hooks.protocols import Filter, Scorer, Selector
from lookup.model import Broker, Candidates, ClusterView, LookupOptions, LookupRequest, Reason, Roster, Topology
from lookup.model.request import request_of

__all__ = ["probe_requests", "unsalted_parts"]

#: How many requests are made up, kinds of brokers tried, and requests repeated with the labels of such a kind.
_REQUESTS, _KINDS, _LABELLED = 64, 4, 8
#: Eight brokers under eight salts, so a salted part is mistaken for an unsalted one once in 8 ** 7 single requests.
_NAMES: Final = "abcdefgh"
_SALTS: Final = ("1", "2", "3", "4", "5", "6", "7", "8")
#: Odds this close are equal.
_CLOSE: Final = 1e-9

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Even:
    """A filter, scorer and selector that treats all brokers alike, but for the scores it is handed."""

    name: ClassVar[str] = "even"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        return [True] * len(brokers)

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Score all 1."""
        return [1.0] * len(brokers)

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        return scores


_EVEN: Final = _Even()


def unsalted_parts(
    policies: Sequence[Policy], requests: Sequence[LookupRequest], brokers: Sequence[Broker], topology: Topology
) -> dict[str, tuple[str, ...]]:
    """Name the parts of each policy that separate equal brokers by their names and ignore the salt.

    Each filter, scorer and selector is called alone, and wrappers separately from their children, so that
    neither random draws nor a salted part hides another one. Equal parts of several policies are called once.
    In the probe no bundle has an owner, memory is empty, load is unknown, and there are no namespace policies.

    A part that raises counts as salted. So does a part that is `order_sensitive`, since it uses the places of
    candidates in a list and does not hash, and other names would only exchange equal brokers.

    Args:
        requests: for example from `probe_requests`.
        brokers: examples of the kinds of brokers, each of which is cloned for the calls.
        topology: topology of the run.

    Returns:
        By policy the names in the order in which it calls its parts, each once, or the selector's if the parts
            ignore the salt only together. Policies without such parts are left out.
    """
    # One broker of each kind. Kinds differ in labels, in place, or in whether their capacity is known.
    kinds = {(tuple(sorted(b.lookup_data.properties.items())), b.location, b.capacity is None): b for b in brokers}
    some = _pick_spread(list(kinds.values()), _KINDS)
    probe = _Probe([(_build_views(kind, topology), _asked_of(kind, requests)) for kind in some])
    # Brokers without load may make a part divide by zero, and numpy's warnings about that would only confuse.
    with np.errstate(all="ignore"):
        by_policy = {policy.name: probe.find_unsalted(policy) for policy in policies}
    return {name: parts for name, parts in by_policy.items() if parts}


def probe_requests(bundles: Sequence[str], properties: Sequence[Mapping[str, str]]) -> list[LookupRequest]:
    """Invent requests, each by another client for another topic, over the given bundles and properties in turn.

    Args:
        bundles: complete names. If there are none, one is invented.
        properties: lookup properties of clients. If there are none, clients do not send any.
    """
    names = _pick_spread(bundles, _REQUESTS) or ["public/default/0x00000000_0xffffffff"]
    sent = _pick_spread(properties, _REQUESTS) or [{}]
    requests = []
    for number in range(_REQUESTS):
        bundle, options = names[number % len(names)], LookupOptions(properties=sent[number % len(sent)])
        topic = f"persistent://{bundle.rpartition('/')[0]}/probe-{number}"
        requests.append(request_of(topic, bundle, options, f"192.0.2.{number}:6650"))
    return requests


def _pick_spread(items: Sequence[_Item], most: int) -> list[_Item]:
    return list(items[:: -(-len(items) // most) or 1])


def _build_views(broker: Broker, topology: Topology) -> list[ClusterView]:
    """Build a cluster of brokers that differ from one only in their names, under every salt."""
    roster = Roster([_rename_broker(broker, name) for name in _NAMES])
    manager = LoadManager(Policy("probe", _EVEN), "probe", roster, conditions=Conditions(topology=topology))
    manager.set_registry(roster, np.ones(len(roster), dtype=np.bool_))
    return [replace(manager.view(), salt=salt) for salt in _SALTS]


def _rename_broker(broker: Broker, name: str) -> Broker:
    renamed = replace(broker, id=f"probe-{name}.{broker.id}")
    lookup_data = replace(
        broker.lookup_data,
        web_service_url=f"http://{renamed.host}:8080",
        web_service_url_tls=f"https://{renamed.host}:8443",
        pulsar_service_url=f"pulsar://{renamed.host}:6650",
        pulsar_service_url_tls=f"pulsar+ssl://{renamed.host}:6651",
    )
    return replace(renamed, lookup_data=lookup_data)


def _asked_of(broker: Broker, requests: Sequence[LookupRequest]) -> list[LookupRequest]:
    # A part that compares labels is even until a client asks for just these.
    prefix, published = broker.property_prefix, broker.lookup_data.properties
    labels = {key.removeprefix(prefix): value for key, value in published.items() if key.startswith(prefix)}
    return [*requests, *(replace(request, properties=labels) for request in requests[:_LABELLED] if labels)]


def _iter_pieces(part: Any) -> Iterator[Any]:
    children = {}
    for entry in fields(part) if is_dataclass(part) else ():
        value = getattr(part, entry.name)
        if _is_part(value) or (isinstance(value, tuple | list) and value and all(map(_is_part, value))):
            children[entry.name] = value
    # With children of its own, a wrapper that ignores the salt would be taken for salted if one child mixes it in.
    try:
        evened = {name: _EVEN if _is_part(value) else tuple(_EVEN for _ in value) for name, value in children.items()}
        yield replace(part, **evened) if children else part
    except Exception:  # noqa: BLE001  a third party's class may refuse the children
        yield part
    for value in children.values():
        for child in (value,) if _is_part(value) else value:
            yield from _iter_pieces(child)


def _is_part(value: Any) -> bool:
    return isinstance(value, Filter | Scorer | Selector)


def _is_order_sensitive(part: Any) -> bool:
    return bool(getattr(part, "order_sensitive", False))


def _isolate_part(part: Any) -> Policy:
    """Build a policy whose odds are uneven exactly if one part's answer is."""
    if isinstance(part, Filter):
        return Policy(part.name, _EVEN, filters=(part,))
    if isinstance(part, Scorer):
        return Policy(part.name, _EVEN, scorers=(WeightedScorer(part),))
    return Policy(part.name, part)


class _Probe:
    """A probe that calls policies and single parts with equal brokers under several salts.

    Args:
        scenes: for each kind of brokers the cluster under every salt, and the requests.
    """

    def __init__(self, scenes: Sequence[tuple[Sequence[ClusterView], Sequence[LookupRequest]]]) -> None:
        self._scenes = scenes
        #: by the calls, since candidates of a search have most of their parts in common
        self._known: dict[Policy, bool] = {}

    def find_unsalted(self, policy: Policy) -> tuple[str, ...]:
        """Name the parts of a policy that ignore the salt, or its selector if they do so only together."""
        pieces = [piece for part in policy.parts for piece in _iter_pieces(part)]
        names = [
            piece.name for piece in pieces if not _is_order_sensitive(piece) and self._is_unsalted(_isolate_part(piece))
        ]
        # Without the parts that do not affect the odds.
        deciding = Policy("probe", policy.selector, policy.filters, policy.scorers, second_choice=policy.second_choice)
        if len(pieces) > 1 and not names and not any(map(_is_order_sensitive, policy.parts)):
            names = [policy.selector.name] if self._is_unsalted(deciding) else []
        return tuple(dict.fromkeys(names))

    def _is_unsalted(self, policy: Policy) -> bool:
        """Check whether a policy's odds over equal brokers are uneven, and the same under every salt."""
        try:
            is_unsalted = self._known.get(policy)
        except TypeError:  # a third party's part may have fields without a hash
            return self._depends_on_names(policy)
        if is_unsalted is None:
            is_unsalted = self._known[policy] = self._depends_on_names(policy)
        return is_unsalted

    def _depends_on_names(self, policy: Policy) -> bool:
        try:
            for views, requests in self._scenes:
                # Requests with one decision key have the same odds, so a policy that reads little is asked little.
                distinct = list({policy.decision_key(request): request for request in requests}.values())
                first = list(_iter_odds(policy, distinct, views[0]))
                if all(max(odds) - min(odds) <= _CLOSE for odds in first):
                    continue
                # Lazily, since most salted parts differ under the second salt, and further salts need not be tried.
                pairs = (
                    pair for view in views[1:] for pair in zip(first, _iter_odds(policy, distinct, view), strict=True)
                )
                if all(abs(a - b) <= _CLOSE for odds in pairs for a, b in zip(*odds, strict=True)):
                    return True
        except PulsarLookupError:
            return False
        return False


def _iter_odds(policy: Policy, requests: Sequence[LookupRequest], view: ClusterView) -> Iterator[list[float]]:
    """Yield the odds of each request by the number of the broker, all 0.0 if it is declined."""
    instant = Instant(policy, view)
    for request in requests:
        stated = policy.ballot(request, instant).odds
        yield [stated.get(broker, 0.0) for broker in view.brokers.ids]
