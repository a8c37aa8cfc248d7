"""Look at a log before it is replayed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from lookup.api.given import Table, given_tables
from lookup.api.selection import Selection
from lookup.errors import Argument, SettingsError
from lookup.model.quoting import join_names
from lookup.replay.inspecting import ClusterInspection, Inspection, inspect_log
from lookup.replay.outcome import Finding

__all__ = ["inspect", "inspect_selected"]

#: One or two addresses that send at least this share of at least so many lookups are not clients.
_NEARLY_ALL, _ENOUGH = 0.95, 100


def inspect(  # noqa: PLR0913  the tables of `evaluate`, by keyword
    lookups: Table | None = None,
    settings: str | os.PathLike[str] | Mapping[str, object] | None = None,
    *,
    brokers: Table | None = None,
    loads: Table | None = None,
    bundles: Table | None = None,
    ownership: Table | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Inspection:
    """Inspect a log before its replay, with demand, labels, load, and mismatches with settings.

    Args:
        lookups: the log, a path or a frame as for `evaluate`, read by this process, by default `inputs.lookups`.
        settings: an evaluation whose brokers, rules and policies are compared with the log, or its content.
        brokers: with settings, a table in place of theirs, as for `evaluate`. The same applies to the other three.
        overrides: settings by key path, which take precedence over those given.
        progress: called with one short sentence at each step.
        warn: called with a sentence that a user should read.
    """
    tables = {"brokers": brokers, "loads": loads, "bundles": bundles, "ownership": ownership}
    if settings is None:
        for name, table in {**tables, "overrides": overrides}.items():
            if table is not None:
                raise SettingsError(
                    Argument(name), ": belongs to an evaluation; give ", Argument("settings"), " as well"
                )
    with given_tables({"lookups": lookups, **tables}) as all_given:
        selection = None if settings is None else all_given.select(settings, overrides, warn)
        path = all_given.flags.get("inputs.lookups") if selection is None else selection.settings.inputs.lookups
        if path is None:
            raise SettingsError("there is no log: give ", Argument("lookups", "PATH"))
        return inspect_selected(str(path), selection, progress)


def inspect_selected(
    lookups: str, selection: Selection | None, progress: Callable[[str], None] = lambda message: None
) -> Inspection:
    """Look at a log of files, with an evaluation that was read before or without one."""
    with tempfile.TemporaryDirectory(prefix="lookup-inspect-") as folder:
        settings, policies = (None, ()) if selection is None else (selection.settings, selection.policies)
        inspection = inspect_log(lookups, folder, settings=settings, policies=policies, progress=progress)
        about = [*chain.from_iterable(map(_warn_about_proxies, inspection.clusters))]
        if settings is not None and "proxies" in settings.lint.accept:
            about = []
        return replace(inspection, findings=(*inspection.findings, *about))


def _warn_about_proxies(cluster: ClusterInspection) -> Iterator[Finding]:
    named = [(name, count) for name, count in cluster.clients.items() if name][:2]
    count = sum(count for _, count in named)
    if count >= max(_ENOUGH, _NEARLY_ALL * cluster.lookups):
        yield Finding(
            "proxies",
            f"{count / cluster.lookups:.1%} of the lookups of {cluster.cluster} come from "
            f"{join_names(name for name, _ in named)}: are there proxies? Then the log does not say where its clients "
            "are, and rules and figures by client are about the proxies",
            count,
        )
