"""What a plug-in author imports: the `hookimpl` marker, the parts' protocols, the markers of their parameters."""

from __future__ import annotations

from lookup.hooks.markers import ENTRY_POINT_GROUP, PROJECT, hookimpl
from lookup.hooks.parameters import Conf, Ge, Gt, Le, Lt, Unit
from lookup.hooks.protocols import (
    ALL_READS,
    LOAD_DETAILS,
    Better,
    Filter,
    Grain,
    Lister,
    LogReader,
    Metric,
    Observing,
    Offer,
    Part,
    Remembering,
    Resample,
    Scorer,
    Selector,
    Shedder,
    SplitAlgorithm,
    Splitter,
    reads_of,
)

__all__ = [
    "ALL_READS",
    "ENTRY_POINT_GROUP",
    "LOAD_DETAILS",
    "PROJECT",
    "Better",
    "Conf",
    "Filter",
    "Ge",
    "Grain",
    "Gt",
    "Le",
    "Lister",
    "LogReader",
    "Lt",
    "Metric",
    "Observing",
    "Offer",
    "Part",
    "Remembering",
    "Resample",
    "Scorer",
    "Selector",
    "Shedder",
    "SplitAlgorithm",
    "Splitter",
    "Unit",
    "hookimpl",
    "reads_of",
]
