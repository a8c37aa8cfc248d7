"""Determine before a run which figures of load its tables give, and the mean load of a broker as a yardstick.

A warning names each figure that a part of a policy reads and no table gives. The part documents what it uses instead: a
replay never makes figures up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lookup.engine.answers import checked_reads
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.engine.units import Rates, policies_named, rates_without
from lookup.logs.columns import MAX_WEIGHT
from lookup.logs.sources import list_log, open_parquet, statistics_of, table_span
from lookup.replay.plan import RunPlan
from lookup.replay.reports import ReportTable, Tables
from lookup.replay.tables import DETAILS, THROUGHPUT, registrations
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals

__all__ = ["known_figures", "known_rates", "mean_load", "unknown_figures"]

#: Figures that a part may read and a run may lack, in the words of a warning.
_GAPS = {
    "view.load.rates": (
        "rates of messages, which are known where BUNDLES, and with reported load LOADS too, gives msgRateIn or "
        "msgRateOut; load or its own default stands in"
    ),
    "view.load.resources": "single resources, of which LOADS gives none; usage as a whole stands in",
    "view.load.topics": "topics, of which LOADS gives none and a replay without owners counts none; it sees 0",
}


def known_figures(run: RunPlan, tables: Tables) -> frozenset[str]:
    """Return the details of load that policies will see, in the words of `reads`."""
    reported = {name for name, keys in DETAILS.items() if tables.gives("loads", keys)}
    rates = (
        tables.gives("bundles", DETAILS["rates"]) and (not run.is_reported or "rates" in reported) and not run.is_shared
    )
    known = {
        "view.load.rates": rates,
        # Simulated load has one usage by definition.
        "view.load.resources": not run.is_reported or "resources" in reported,
        "view.load.topics": not run.is_shared or "topics" in reported,
    }
    return frozenset(name for name, is_known in known.items() if is_known)


def known_rates(run: RunPlan, tables: Tables) -> Rates:
    """Return which rates the tables of a run give, and, without BUNDLES, whether bytes are stated."""
    without = rates_without(tables.settings)
    if without is not None:
        return without
    asked: tuple[ReportTable, ...] = ("bundles", "loads") if run.is_reported else ("bundles",)
    silent = [table.upper() for table in asked if not tables.gives(table, THROUGHPUT)]
    return Rates(
        has_bytes=not silent,
        has_messages="view.load.rates" in known_figures(run, tables),
        why=f"no row of {' and of '.join(silent)} gives msgThroughputIn or msgThroughputOut",
        remedy="give these, or leave inputs.bundles out and state evaluation.bytes_per_weight",
    )


def unknown_figures(policies: Sequence[Policy], known: Collection[str]) -> list[str]:
    """Return a warning for each figure that a part of a policy reads and the run does not know."""
    reading: dict[tuple[str, str], list[str]] = {}
    for policy in policies:
        reads = [(part.name, reads) for part, reads in zip(policy.parts, policy.part_reads, strict=True)]
        if policy.shedder is not None:
            reads.append((policy.shedder.name, checked_reads(policy.shedder)))
        for name, details in reads:
            for detail in sorted(details & _GAPS.keys() - frozenset(known)):
                names = reading.setdefault((name, detail), [])
                names += [policy.name] if policy.name not in names else []
    return [f"{policies_named(names)}: {name!r} goes by {_GAPS[detail]}" for (name, detail), names in reading.items()]


def mean_load(settings: EvaluationFile) -> float | None:
    """Return the weight per second that a broker serves on average over a log; None if it cannot be computed.

    Not exact, and cheap: it takes footers and one column of the log. Redirects count, rows that are quarantined for
    anything but their weight too, and a broker counts for the whole time of the log.

    Raises:
        InputError: if a table cannot be read.
    """
    if settings.inputs.lookups is None:
        return None
    weight, clusters, files = 0.0, set[str](), list_log(settings.inputs.lookups)
    for file in files:
        with open_parquet(file.path) as parquet:
            weight += _weight(parquet)
            for _, statistics in statistics_of(parquet, ("cluster",)):
                clusters |= {str(statistics.min), str(statistics.max)}
        clusters |= {file.cluster} if file.cluster is not None else set()
    first, last = table_span(files) or (0, 0)
    seconds = (last - first) / MICRO
    # Those of a BROKERS table are all of them, whatever clusters the log has.
    if settings.inputs.brokers is not None:
        rows = registrations(settings.inputs.brokers).rows
        brokers = len({(cluster, entry.broker) for cluster, entries in rows.items() for entry in entries})
    else:
        brokers = sum(len({interval.broker.id for interval in broker_intervals(settings, name)}) for name in clusters)
    return weight / seconds / brokers if seconds and brokers and weight else None


def _weight(parquet: pq.ParquetFile) -> float:
    """Return the weight of all rows of a file; a row without one weighs 1.0."""
    if "weight" not in parquet.schema_arrow.names:
        return float(parquet.metadata.num_rows)
    weight = 0.0
    for batch in parquet.iter_batches(columns=["weight"], use_threads=False):
        values = pc.fill_null(batch.column(0).cast(pa.float64()), 1.0).to_numpy(zero_copy_only=False)
        weight += float(values[(values >= 0.0) & (values <= MAX_WEIGHT)].sum())
    return weight
