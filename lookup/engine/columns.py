"""The columns a load manager shows in its views: figures of load and capacities, which nobody who sees them may change.

When they are shown, and next to what, is the manager's business.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LoadFigures
from lookup.model.broker import Roster

__all__ = ["capacities", "load_columns", "read_only"]

_Column = TypeVar("_Column", NDArray[np.bool_], NDArray[np.float64], NDArray[np.int64])


def capacities(roster: Roster, assumed: float | None) -> NDArray[np.float64]:
    """Return the weight per second at usage 1.0 of every broker, shape (n_brokers,), NaN where unknown.

    Args:
        assumed: that of every broker, where no broker's own is known.
    """
    given = (broker.capacity if assumed is None else assumed for broker in roster)
    return np.array([np.nan if capacity is None else capacity for capacity in given], dtype=np.float64)


def load_columns(load: LoadFigures) -> dict[str, Any]:
    """Return what figures of load say in a `ClusterView`, by the names of its fields."""
    return {
        "usage": read_only(load.usage),
        "broker_load": read_only(load.broker_load),
        "topics": read_only(load.topics),
        "top_bundles": load.top_bundles,
        "demand": load.demand,
        "load_source": load.source,
        "traffic": load.traffic,
        "max_usage": None if load.max_usage is None else read_only(load.max_usage),
        "load_ema": None if load.load_ema is None else read_only(load.load_ema),
        "updated_us": None if load.updated_us is None else read_only(load.updated_us),
        "store_order": load.store_order,
        "resources": None if load.resources is None else read_only(load.resources),
        "message_rate": None if load.message_rate is None else read_only(load.message_rate),
        "long_term_rate": None if load.long_term_rate is None else read_only(load.long_term_rate),
        "long_term_bundle_rates": load.long_term_bundle_rates,
    }


def read_only(column: _Column) -> _Column:
    """Return a view of an array that cannot be written to, and follows it."""
    view = column.view()
    view.flags.writeable = False
    return view
