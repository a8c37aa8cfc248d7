"""Which figures of load policies go by although no table of the run tells them; a sentence each, for before the run.

What stands in for them is the parts' own business, and documented there: a replay never makes figures up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lookup.engine.answers import checked_reads
from lookup.engine.policy import Policy
from lookup.engine.units import Rates, rates_without
from lookup.replay.clusters import SmallInputs
from lookup.replay.plan import RunPlan
from lookup.replay.tables import DETAILS, THROUGHPUT, SmallTable

__all__ = ["known_figures", "known_rates", "unknown_figures"]

#: What a part says it goes by, and why nobody knows it.
_GAPS = {
    "view.load.rates": (
        "rates of messages, which are known where BUNDLES, and with reported load LOADS too, gives msgRateIn or "
        "msgRateOut; load or its own default stands in"
    ),
    "view.load.resources": "single resources, of which LOADS gives none; usage as a whole stands in",
    "view.load.topics": "topics, of which LOADS gives none and a replay without owners counts none; it sees 0",
}


def known_figures(run: RunPlan, loads: SmallTable, bundles: SmallTable) -> frozenset[str]:
    """Return the details of load that policies will see, in the words of `reads`."""
    told = _told(loads)
    rates = "rates" in _told(bundles) and (not run.is_reported or "rates" in told) and not run.is_shared
    known = {
        "view.load.rates": rates,
        # Simulated load has one usage by definition.
        "view.load.resources": not run.is_reported or "resources" in told,
        "view.load.topics": not run.is_shared or "topics" in told,
    }
    return frozenset(name for name, is_known in known.items() if is_known)


def known_rates(run: RunPlan, inputs: SmallInputs) -> Rates:
    """Return which rates the tables of a run tell, and, without BUNDLES, whether bytes are stated."""
    without = rates_without(inputs.settings)
    if without is not None:
        return without
    tables = {"BUNDLES": inputs.bundles, **({"LOADS": inputs.loads} if run.is_reported else {})}
    silent = [name for name, table in tables.items() if not _tells(table, THROUGHPUT)]
    return Rates(
        has_bytes=not silent,
        has_messages="view.load.rates" in known_figures(run, inputs.loads, inputs.bundles),
        why=f"no row of {' and of '.join(silent)} gives msgThroughputIn or msgThroughputOut",
        remedy="give these, or leave inputs.bundles out and state evaluation.bytes_per_weight",
    )


def _told(table: SmallTable) -> frozenset[str]:
    return frozenset(name for name, keys in DETAILS.items() if _tells(table, keys))


def _tells(table: SmallTable, keys: Collection[str]) -> bool:
    return any(row["value"].tells(keys) for held in table.rows.values() for row in held)


def unknown_figures(policies: Sequence[Policy], known: Collection[str]) -> list[str]:
    """Return a sentence for each policy's part that goes by figures nobody knows."""
    return [
        f"policy {policy.name!r}: {name!r} goes by {_GAPS[detail]}"
        for policy in policies
        for name, reads in _parts(policy)
        for detail in sorted(reads & _GAPS.keys() - frozenset(known))
    ]


def _parts(policy: Policy) -> Iterator[tuple[str, frozenset[str]]]:
    for part, reads in zip(policy.parts, policy.part_reads, strict=True):
        yield part.name, reads
    if policy.shedder is not None:
        yield policy.shedder.name, checked_reads(policy.shedder)
