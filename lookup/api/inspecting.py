"""Look at a log before it is replayed, and hold what it is like as DataFrames."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from lookup.api.given import Table, given_tables
from lookup.api.outputs import as_html, data_frame
from lookup.api.selection import Selection
from lookup.errors import Argument, SettingsError
from lookup.model.quoting import listed, quantity
from lookup.model.time import moment_at
from lookup.replay.inspecting import ClusterInspection, Inspection, inspect_log
from lookup.replay.outcome import Finding

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["InspectedLog", "inspect", "inspect_selected"]

_SHARES = ("cluster", "of", "name", "lookups", "share")
#: Addresses that send nearly all lookups are no clients: this share of so many lookups at least, by two at most.
_NEARLY_ALL, _ENOUGH = 0.95, 100


@dataclass(frozen=True, eq=False, repr=False)
class InspectedLog:
    """What a log holds, and what settings miss in it."""

    inspection: Inspection

    @property
    def clusters(self) -> pd.DataFrame:
        """Return each cluster's lookups, their times and rates per minute, brokers, topics, bundles and load."""
        named = "brokers topics busy_bundles bundles broker_load redirects internal isolated outside".split()
        return data_frame(
            {
                "cluster": cluster.cluster,
                "lookups": cluster.lookups,
                "first": moment_at(cluster.first_us),
                "last": moment_at(cluster.last_us),
                **{f"per_minute_{name}": rate for name, rate in cluster.per_minute.items()},
                **{name: getattr(cluster, name) for name in named},
                **({} if cluster.session is None else asdict(cluster.session)),
            }
            for cluster in self.inspection.clusters
        )

    @property
    def shares(self) -> pd.DataFrame:
        """Return the lookups of each tenant, namespace, bundle, client and value of a property, the most first.

        The column `of` says which of these a name is; the lookups of all that are not named have the name "".
        """
        return data_frame((row for cluster in self.inspection.clusters for row in _share_rows(cluster)), list(_SHARES))

    @property
    def quarantined(self) -> pd.DataFrame:
        """Return how many rows a replay would refuse, by reason."""
        reasons = self.inspection.quarantined.items()
        return data_frame(({"reason": reason, "rows": rows} for reason, rows in reasons), ["reason", "rows"])

    @property
    def findings(self) -> pd.DataFrame:
        """Return what in the settings has no effect on the log: the kind, a sentence and a count."""
        return data_frame(map(asdict, self.inspection.findings), [field.name for field in fields(Finding)])

    def document(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return self.inspection.document()

    def __repr__(self) -> str:
        """Return how many rows there are, of how many clusters, and how many findings."""
        found = self.inspection
        refused = f", of which {sum(found.quarantined.values()):,} cannot be used" if found.quarantined else ""
        counts = f"{quantity(len(found.clusters), 'cluster')}, {quantity(len(found.findings), 'finding')}"
        return f"<Log of {quantity(found.rows, 'row')}{refused}: {counts}>"

    def _repr_html_(self) -> str:
        """Return the clusters, and what was found in the settings, for a notebook."""
        shown = as_html(repr(self), self.clusters)
        return shown + (self.findings.to_html(index=False) if self.inspection.findings else "")


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
) -> InspectedLog:
    """Look at a log before it is replayed: demand, labels, load, and what settings miss in it.

    Args:
        lookups: the log, a path or a frame as for `evaluate`, which this process reads; default: `inputs.lookups` of
            the settings.
        settings: an evaluation whose brokers, rules and policies are held against the log, or what would stand in it.
        brokers: with settings, a table in place of theirs, as for `evaluate`; so are the other three.
        overrides: settings by key path, which win over those given.
        progress: called with one short sentence at each step.
        warn: called with a sentence a user should read.
    """
    tables = {"brokers": brokers, "loads": loads, "bundles": bundles, "ownership": ownership}
    if settings is None:
        for name, given in {**tables, "overrides": overrides}.items():
            if given is not None:
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
) -> InspectedLog:
    """Look at a log of files, with an evaluation that was read before or without one."""
    with tempfile.TemporaryDirectory(prefix="lookup-inspect-") as folder:
        settings, policies = (None, ()) if selection is None else (selection.settings, selection.policies)
        found = inspect_log(lookups, folder, settings=settings, policies=policies, progress=progress)
        about = [*chain.from_iterable(map(_about_proxies, found.clusters))]
        if settings is not None and "proxies" in settings.lint.accept:
            about = []
        return InspectedLog(replace(found, findings=(*found.findings, *about)))


def _about_proxies(cluster: ClusterInspection) -> Iterator[Finding]:
    """Find one or two addresses from which nearly all lookups come."""
    named = [(name, count) for name, count in cluster.clients.items() if name][:2]
    count = sum(count for _, count in named)
    if count >= max(_ENOUGH, _NEARLY_ALL * cluster.lookups):
        yield Finding(
            "proxies",
            f"{count / cluster.lookups:.1%} of the lookups of {cluster.cluster} come from "
            f"{listed(name for name, _ in named)}: are there proxies? Then the log does not say where its clients are, "
            "and rules and figures by client are about the proxies",
            count,
        )


def _share_rows(cluster: ClusterInspection) -> Iterator[dict[str, Any]]:
    kinds = {
        "tenant": cluster.tenants,
        "namespace": cluster.namespaces,
        "bundle": cluster.top_bundles,
        "client": cluster.clients,
        **{f"property {key}": values for key, values in cluster.labels.items()},
    }
    for kind, counts in kinds.items():
        for name, count in counts.items():
            row = (cluster.cluster, kind, name, count, count / cluster.lookups)
            yield dict(zip(_SHARES, row, strict=True))
