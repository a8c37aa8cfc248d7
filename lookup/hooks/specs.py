"""The hooks through which plug-ins register their classes with the framework.

Every hook is called once, when a command starts, without arguments. A plug-in returns an iterable of
classes and may leave out the hooks it does not need. The classes of all plug-ins are collected, and two of
one kind and name are rejected. Decisions do not call hooks, since the engine calls the objects.
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
    """Register filter classes, which decide whether a broker may serve a request at all."""
    return ()


@hookspec
def lookup_register_scorers() -> Iterable[type[Scorer]]:
    """Register scorer classes, which rate each broker."""
    return ()


@hookspec
def lookup_register_selectors() -> Iterable[type[Selector]]:
    """Register selector classes, including wrappers, which compute the odds of each broker."""
    return ()


@hookspec
def lookup_register_shedders() -> Iterable[type[Shedder]]:
    """Register shedder classes, which propose bundles for their owners to give up."""
    return ()


@hookspec
def lookup_register_splitters() -> Iterable[type[Splitter]]:
    """Register splitter classes, which propose bundles to divide."""
    return ()


@hookspec
def lookup_register_split_algorithms() -> Iterable[type[SplitAlgorithm]]:
    """Register split algorithm classes, children of splitters, which choose the hashes of a division."""
    return ()


@hookspec
def lookup_register_listers() -> Iterable[type[Lister]]:
    """Register lister classes, which list the topics of a namespace for a client. `[topics]` chooses one."""
    return ()


@hookspec
def lookup_register_log_readers() -> Iterable[type[LogReader]]:
    """Register log reader classes, which convert lines to canonical rows for `lookup ingest`."""
    return ()


@hookspec
def lookup_register_metrics() -> Iterable[type[Metric]]:
    """Register metric classes. Every evaluation computes every registered metric."""
    return ()
