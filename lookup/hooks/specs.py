"""The hooks: through these, and only these, plug-ins hand their classes to the framework.

Every hook is called once, when a command starts, with no arguments; a plug-in returns an iterable of classes and may
leave out the hooks it does not need. The classes of all plug-ins are collected; two of one kind and name are refused.
Nothing is called on the path of a decision: the engine calls the objects.
"""

from __future__ import annotations

from collections.abc import Iterable

from lookup.hooks.protocols import (
    Filter,
    Lister,
    LogReader,
    Metric,
    Scorer,
    Selector,
    Shedder,
    SplitAlgorithm,
    Splitter,
    hookspec,
)

__all__ = [
    "lookup_register_filters", "lookup_register_listers", "lookup_register_log_readers", "lookup_register_metrics",
    "lookup_register_scorers", "lookup_register_selectors", "lookup_register_shedders",
    "lookup_register_split_algorithms", "lookup_register_splitters",
]  # fmt: skip


@hookspec
def lookup_register_filters() -> Iterable[type[Filter]]:
    """Return filter classes, which say whether a broker may serve a request at all."""
    return ()


@hookspec
def lookup_register_scorers() -> Iterable[type[Scorer]]:
    """Return scorer classes, which say how good each broker is."""
    return ()


@hookspec
def lookup_register_selectors() -> Iterable[type[Selector]]:
    """Return selector classes, wrappers included, which state the odds of each broker."""
    return ()


@hookspec
def lookup_register_shedders() -> Iterable[type[Shedder]]:
    """Return shedder classes, which propose bundles for their owners to give up."""
    return ()


@hookspec
def lookup_register_splitters() -> Iterable[type[Splitter]]:
    """Return splitter classes, which propose bundles to divide."""
    return ()


@hookspec
def lookup_register_split_algorithms() -> Iterable[type[SplitAlgorithm]]:
    """Return split algorithm classes, which choose the hashes at which a bundle is cut; children of splitters."""
    return ()


@hookspec
def lookup_register_listers() -> Iterable[type[Lister]]:
    """Return lister classes, which list the topics of a namespace for a client; `[topics]` chooses one."""
    return ()


@hookspec
def lookup_register_log_readers() -> Iterable[type[LogReader]]:
    """Return log reader classes, which turn lines into canonical rows for `lookup ingest`."""
    return ()


@hookspec
def lookup_register_metrics() -> Iterable[type[Metric]]:
    """Return metric classes; every registered metric is computed by every evaluation."""
    return ()
