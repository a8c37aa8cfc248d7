"""What a plug-in author imports: the `hookimpl` marker, the parts' protocols, the markers of their parameters."""

from __future__ import annotations

from lookup.hooks.protocols import (
    ALL_READS,
    ENTRY_POINT_GROUP,
    LOAD_DETAILS,
    PROJECT,
    Better,
    Conf,
    Filter,
    Ge,
    Grain,
    Gt,
    Le,
    Lister,
    LogReader,
    Lt,
    Luck,
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
    Unit,
    hookimpl,
    reads_of,
)

# Filled by hand: at one name a line, the list would be longer than all else.
# fmt: off
__all__ = [
    "ALL_READS", "ENTRY_POINT_GROUP", "LOAD_DETAILS", "PROJECT", "Better", "Conf", "Filter", "Ge", "Grain", "Gt",
    "Le", "Lister", "LogReader", "Lt", "Luck", "Metric", "Observing", "Offer", "Part", "Remembering", "Resample",
    "Scorer", "Selector", "Shedder", "SplitAlgorithm", "Splitter", "Unit", "hookimpl", "reads_of",
]
# fmt: on
