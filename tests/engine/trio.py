"""Three brokers and two bundles, which the tests of the load manager are about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lookup.model import Assigned, Unanswered
from lookup.model.load import Load
from lookup.testing import cluster

VIEW = cluster("b1:1", "b2:1", "b3:1")
IDS = ("b1:1", "b2:1", "b3:1")
BUNDLE, OTHER = "public/default/0x00000000_0x80000000", "public/default/0x80000000_0xffffffff"
TOPIC = "persistent://public/default/t"


def broker_of(answer: Assigned | Unanswered) -> str | None:
    """Return the broker that was answered, None for none."""
    return answer.broker if isinstance(answer, Assigned) else None


def registered(*ids: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the mask of a registry that has these brokers of the three."""
    return np.array([broker_id in ids for broker_id in IDS])


def figures(**changes: Any) -> Load:
    """Return load figures of the three brokers, all zero but for what is changed."""
    nothing = np.zeros(3)
    return replace(Load(nothing, nothing, np.zeros(3, np.int64), [()] * 3), **changes)
