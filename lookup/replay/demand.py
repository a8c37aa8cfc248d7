"""Count the demand of a log in this process, before anything is replayed: by tick, by bundle, by what clients send.

The log is coded as a replay codes it, so names, bundles, labels of clients and refused rows are the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError
from lookup.logs.sources import list_log, share_out
from lookup.model.quoting import quantity
from lookup.replay.coding import CodingPlan, Share
from lookup.replay.days import Part, SliceRows, rows_of
from lookup.replay.shares import Coded, code_share
from lookup.replay.slices import slices_of_day
from lookup.replay.vocabulary import ClusterWords, merge_words, recoding_of
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import SLICE_ROWS

__all__ = ["ClusterDemand", "Demand", "read_demand"]

Ints = NDArray[np.int64]
#: Rows for which another process is worth its start.
_ROWS_PER_PROCESS = 2_000_000


@dataclass(frozen=True)
class ClusterDemand:
    """The lookups of one cluster that ask for a broker, counted."""

    words: ClusterWords
    #: starts of the ticks that have lookups, µs, ascending, and the lookups of each; shape (n_ticks,)
    ticks: tuple[Ints, Ints]
    #: lookups of each atom, shape (n_atoms,)
    by_atom: Ints
    #: lookups of the clients that are named, by client; empty if the log names none or was not asked for them
    by_client: Mapping[str, int]
    #: median time after which a client asks for a bundle again, µs; None if none does, or the log names none
    return_us: float | None

    @property
    def lookups(self) -> int:
        """Return how many lookups there are."""
        return int(self.by_atom.sum())

    @property
    def seconds(self) -> float:
        """Return how long the log is, from its first lookup to its last."""
        return (self.words.last_us - self.words.first_us) / MICRO


@dataclass(frozen=True)
class Demand:
    """What a log asks for, by cluster, and its rows that cannot be used, by reason."""

    clusters: tuple[ClusterDemand, ...]
    rows: int
    quarantined: Mapping[str, int]
    shares: Mapping[str, Sequence[Share]]


def read_demand(
    path: str, plan: CodingPlan, work: WorkDir, *, progress: Callable[[str], None] = lambda message: None
) -> Demand:
    """Count the demand of a log.

    Args:
        path: file or folder of LOOKUPS.
        plan: how rows are coded; with `client` among its extras, clients are counted as well.
        work: folder for what passes between processes; the caller removes it.
        progress: called with a short sentence at each step.

    Raises:
        InputError: if the log cannot be read, or has no lookup that asks for a broker.
    """
    files = list_log(path)
    rows = sum(file.rows for file in files)
    processes = min(os.cpu_count() or 1, -(-rows // _ROWS_PER_PROCESS))
    items = list(enumerate(share_out(files, processes)))
    progress(f"reading {quantity(rows, 'row')} of {quantity(len(files), 'file')}")
    code = partial(_coded, plan=plan, work=work)
    if len(items) == 1:
        coded = [code(items[0])]
    else:
        # Not forked: a process that has threads, as a notebook's has, may hang in the copy.
        with ProcessPoolExecutor(len(items), mp_context=get_context("spawn")) as pool:
            coded = list(pool.map(code, items))
    shares: dict[str, list[Share]] = {}
    for share in chain.from_iterable(task.shares for task in coded):
        if share.counts["demand"]:
            shares.setdefault(share.cluster, []).append(share)
    reasons: Counter[str] = Counter()
    for task in coded:
        reasons.update(task.quarantined)
    if not shares:
        why = f"; most often: {reasons.most_common(1)[0][0]}" if reasons else ""
        raise InputError(f"{path}: none of the {rows:,} rows is a lookup that asks for a broker{why}")
    clusters = tuple(
        _counted(merge_words(name, plan.rule(name), of_cluster), of_cluster, plan, work)
        for name, of_cluster in sorted(shares.items())
    )
    return Demand(clusters, rows, dict(reasons.most_common()), shares)


def _coded(item: tuple[int, Sequence[object]], *, plan: CodingPlan, work: WorkDir) -> Coded:
    return code_share(item[0], item[1], plan, work=work, quarantine=f"{work.root}/quarantine")  # type: ignore[arg-type]


def _counted(words: ClusterWords, shares: Sequence[Share], plan: CodingPlan, work: WorkDir) -> ClusterDemand:
    """Count the rows of one cluster, a slice at a time."""
    days: dict[int, list[Part]] = {}
    for share in shares:
        recoding = recoding_of(words, share, {})
        for part in share.parts:
            days.setdefault(part.day, []).append(Part(part, recoding))
    ticks: list[tuple[Ints, Ints]] = []
    by_atom = np.zeros(words.atoms.count, dtype=np.int64)
    clients = words.extras.get("client", ())
    by_client = np.zeros(len(clients), dtype=np.int64)
    gaps: list[Ints] = []
    for rows in chain.from_iterable(_slices(parts, words.cluster, plan, work) for _, parts in sorted(days.items())):
        everything = slice(0, len(rows))
        atoms = rows.column("atom", everything).astype(np.int64)
        ticks.append(np.unique(rows.ts // plan.tick_us * plan.tick_us, return_counts=True))
        by_atom += np.bincount(atoms, minlength=len(by_atom))
        if clients:
            codes = rows.column("client", everything).astype(np.int64)
            by_client += np.bincount(codes, minlength=len(clients))
            gaps.append(_gaps(rows.ts, codes * len(by_atom) + atoms))
    gap = np.concatenate(gaps) if gaps else np.empty(0, np.int64)
    return ClusterDemand(
        words,
        (np.concatenate([starts for starts, _ in ticks]), np.concatenate([counts for _, counts in ticks])),
        by_atom,
        {name: int(count) for name, count in zip(clients, by_client.tolist(), strict=True) if name is not None},
        float(np.median(gap)) if len(gap) else None,
    )


def _slices(parts: Sequence[Part], cluster: str, plan: CodingPlan, work: WorkDir) -> Iterator[SliceRows]:
    """Yield the rows of one day, so many at a time as a replay holds unless its settings say otherwise."""
    first, last = min(part.written.first for part in parts)[0], max(part.written.last for part in parts)[0]
    grid = np.arange(first // plan.tick_us * plan.tick_us, last + 1, plan.tick_us)
    for cut in slices_of_day(work, [parts], grid, most_rows=SLICE_ROWS, cluster=cluster):
        yield rows_of(work, cut.tables[0])


def _gaps(ts: Ints, keys: Ints) -> Ints:
    """Return the times between neighbouring rows of one key, µs."""
    order = np.lexsort((ts, keys))
    is_same = keys[order][1:] == keys[order][:-1]
    gaps: Ints = np.diff(ts[order])[is_same]
    return gaps
