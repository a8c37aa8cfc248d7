"""The filter `version`: only the brokers of the latest version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.hooks import Conf
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason, Roster

__all__ = ["Version"]

_NUMBER = r"(0|[1-9][0-9]*)"
_PRE = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_SEMANTIC = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PRE}(?:\.{_PRE})*))?(?:\+{_BUILD}(?:\.{_BUILD})*)?")

#: What versions sort by: numbers, whether it is a release, and the identifiers of a pre-release.
_Order = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]


@dataclass(frozen=True)
class Version:
    """Keep the candidates with the highest semantic version.

    A pre-release such as a SNAPSHOT is older than its release. Build metadata (`+...`) does not count: in Pulsar the
    outcome for versions that differ in nothing else hangs on its library.

    In Pulsar a version that is missing or not semantic makes the filter fail. What follows is the policy's `on_error`
    there: `skip` goes on with all candidates, as Pulsar does, and a shedder that asks takes it for a no, as Pulsar's.

    Match -> Result -> Reason:
        * `prefer_later` is off -> all kept
        * a candidate's version is missing or not semantic, `unreadable = "keep"` -> all kept
        * such a version, `unreadable = "fail"` -> the filter fails, nobody is rejected
        * the version is the highest of the candidates -> kept
        * a candidate has a higher version -> rejected -> `version`

    Source: BrokerVersionFilter; semver.org 2.0.0, item 11.
    """

    name: ClassVar[str] = "version"
    reason: ClassVar[Reason] = Reason.VERSION
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether the filter does anything
    prefer_later: Annotated[bool, Conf("preferLaterVersions")] = False
    #: what follows from a version that cannot be compared; "fail" is Pulsar's way
    unreadable: Literal["keep", "fail"] = "keep"

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's version with the highest."""
        if not self.prefer_later:
            return np.ones(len(brokers), dtype=np.bool_)
        ranks = _ranks(view.brokers)[brokers.index]
        if ranks.min() < 0 and self.unreadable == "fail":
            odd = brokers[int(np.argmin(ranks))]
            raise InputError(f"broker {odd.id} has version {odd.lookup_data.broker_version!r}, which is not semantic")
        mask: NDArray[np.bool_] = (ranks == ranks.max()) | (ranks.min() < 0)
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the broker's version."""
        return f"runs version {broker.lookup_data.broker_version}, a later one is there"


@lru_cache(maxsize=64)
def _ranks(roster: Roster) -> NDArray[np.int64]:
    # Shape (n_brokers,): equal versions have equal ranks, later ones higher; -1 where there is nothing to compare.
    orders = [_order(broker.lookup_data.broker_version or "") for broker in roster]
    ascending = sorted({order for order in orders if order is not None})
    places = {order: place for place, order in enumerate(ascending)}
    return np.array([-1 if order is None else places[order] for order in orders], dtype=np.int64)


def _order(version: str) -> _Order | None:
    found = _SEMANTIC.fullmatch(version)
    if found is None:
        return None
    pre = tuple(map(_identifier, found[4].split("."))) if found[4] else ()
    return (int(found[1]), int(found[2]), int(found[3])), not pre, pre


def _identifier(text: str) -> tuple[bool, int, str]:
    # Numbers sort before words, and numerically among themselves.
    return (False, int(text), "") if text.isdigit() else (True, 0, text)
