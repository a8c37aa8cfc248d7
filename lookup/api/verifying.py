"""Hold a plan that was carried out against the cluster as it is now, or as its record has it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from lookup.api.moving import Source
from lookup.collect.sources import now_us
from lookup.model.time import US_PER_S
from lookup.moving.journal import read_journal
from lookup.moving.state import state_of
from lookup.moving.verifying import PlanMeasured, measured_from_us, plan_measured

__all__ = ["verify"]


def verify(
    journal: str | Path, source: Source | str | Path, *, progress: Callable[[str], None] = lambda message: None
) -> PlanMeasured:
    """Measure what a plan predicted, after its bundles have moved.

    Args:
        journal: path of the journal that `lookup.apply` wrote.
        source: a cluster that is reached, or its record; a path is a record, at its end.
        progress: called with one short sentence at each step.

    Raises:
        InputError: if nothing has moved, the plan was taken back, it is another cluster, or a broker has not reported
            its load since.
    """
    source = source if isinstance(source, Source) else Source(str(source))
    carried_out = read_journal(journal)
    wait_s = (measured_from_us(carried_out) - now_us()) / US_PER_S
    if source.record is None and wait_s > 0:
        progress(f"waiting {wait_s:.0f} s for rates of after the last move")
        time.sleep(wait_s)
    return plan_measured(carried_out, state_of(source.rows(progress)))
