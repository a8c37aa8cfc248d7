"""The filter `load-manager-class`: only brokers that run the expected load manager."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf
from lookup.model import Broker, Candidates, ClusterView, LookupRequest, Reason, Roster

__all__ = ["LoadManagerClass"]


@dataclass(frozen=True)
class LoadManagerClass:
    """Keep brokers whose registered load manager class is the expected one.

    During a roll-over from one manager to another two brokers could otherwise own the same bundle. A broker compares
    with the class it is configured with itself; a replay has no own broker, so without `class_name` the class that most
    registered brokers name is expected, the alphabetically first of several, and those that name none have no vote.

    Match -> Result -> Reason:
        * the broker names the expected class -> kept
        * it names another class, or none -> rejected -> `load-manager-class`
        * no `class_name`, and no registered broker names a class -> all kept

    Source: BrokerLoadManagerClassFilter.
    """

    name: ClassVar[str] = "load-manager-class"
    reason: ClassVar[Reason] = Reason.LOAD_MANAGER_CLASS
    reads: ClassVar[frozenset[str]] = frozenset()

    #: Java class name that brokers must have registered; None: that of the majority
    class_name: Annotated[str | None, Conf("loadManagerClassName")] = None

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> NDArray[np.bool_]:
        """Compare every candidate's class with the expected one."""
        mask: NDArray[np.bool_] = _running(view.brokers, self._expected(view))[brokers.index]
        return mask

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name both classes."""
        return f"runs {_class_of(broker)}, expected {self._expected(view)}"

    def _expected(self, view: ClusterView) -> str | None:
        return self.class_name or _majority(view.brokers, view.registered.tobytes())


def _class_of(broker: Broker) -> str | None:
    return broker.lookup_data.load_manager_class_name


@lru_cache(maxsize=64)
def _majority(roster: Roster, registered: bytes) -> str | None:
    classes = map(_class_of, compress(roster, registered))
    named = Counter(cls for cls in classes if cls)
    return min(named, key=lambda cls: (-named[cls], cls), default=None)


@lru_cache(maxsize=64)
def _running(roster: Roster, class_name: str | None) -> NDArray[np.bool_]:
    return np.array([class_name is None or _class_of(broker) == class_name for broker in roster], dtype=np.bool_)
