"""Load at grid instants: simulated from the log's weights, or reported by LOADS and BUNDLES.

Source: `design/architecture.md` section 6.3 (ledger).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO, LazyTopBundles, LoadFigures, no_load, simulated_load
from lookup.replay.bundle_map import BundleMap
from lookup.replay.ordering import DayRows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.walk import Tick
from lookup.replay.work import WorkDir

__all__ = ["AtomLoads", "BrokerLoads", "Demand", "ReportedLoads", "SharedLoads"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class _Cell:
    """The lookups of one cell of the grid; what each atom weighed is summed when somebody asks."""

    def __init__(self, n_atoms: int) -> None:
        self.spans: list[tuple[DayRows, int, int]] = []
        self._n_atoms = n_atoms
        self._micro: Ints | None = None

    def micro(self) -> Ints:
        """Return the weight of each atom in micro-units, shape (n_atoms,); no rows may come after."""
        if self._micro is None:
            self._micro = np.zeros(self._n_atoms, dtype=np.int64)
            for rows, low, high in self.spans:
                self._micro += _weights(rows, slice(low, high), self._n_atoms)
            self.spans = []
        return self._micro


def _weights(rows: DayRows, span: slice, n_atoms: int) -> Ints:
    constant = rows.constant("weight")
    atoms = rows.column("atom", span)
    if constant is not None:
        return np.bincount(atoms, minlength=n_atoms) * constant
    return np.bincount(atoms, rows.column("weight", span), minlength=n_atoms).astype(np.int64)


class AtomLoads:
    """What each atom weighed in the last `session_s` before a grid instant."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> None:
        self._n_atoms = n_atoms = cluster.words.atoms.count
        self._cells: deque[_Cell] = deque(maxlen=run.session_us // run.tick_us)
        self._open = _Cell(n_atoms)
        self._instant_us: int | None = None
        self._session_s = run.session_us / MICRO
        self._reported = None if cluster.bundle_loads is None else _Steps(work.read(cluster.bundle_loads)[0], n_atoms)
        self._window: Ints | None = None

    def add(self, rows: DayRows, low: int, high: int) -> None:
        """Add the lookups of a tick to the open cell."""
        if high > low and self._reported is None:
            self._open.spans.append((rows, low, high))

    def close_cell(self, now_us: int) -> None:
        """Note a grid instant."""
        if self._instant_us is not None and self._reported is None:
            self._cells.append(self._open)
            self._open = _Cell(self._n_atoms)
        self._instant_us, self._window = now_us, None

    @property
    def window(self) -> Ints | None:
        """Return the weight of each atom at the last grid instant, micro-units, shape (n_atoms,).

        None before the first complete cell. Summed when first asked for: most ticks of most policies decide nothing.
        """
        if self._window is None and self._instant_us is not None:
            if self._reported is not None:
                self._window = self._reported.at(self._instant_us)
            elif self._cells:
                self._window = np.sum([cell.micro() for cell in self._cells], axis=0)
        return self._window

    @property
    def seconds(self) -> float:
        """Return over how many seconds the window's weight came; 1.0 where it is reported per second."""
        return self._session_s if self._reported is None else 1.0

    def weight_of(self, atoms: slice) -> float:
        """Return the load of a bundle at the last grid instant, weight per second."""
        window = self.window
        return 0.0 if window is None else int(window[atoms].sum()) / (MICRO * self.seconds)


class ReportedLoads:
    """Load reports of brokers: the latest at or before an instant."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], n_brokers: int) -> None:
        self._columns, self._next = columns, 0
        self._usage, self._load = np.full(n_brokers, np.nan), np.full(n_brokers, np.nan)
        self._topics = np.zeros(n_brokers, dtype=np.int64)

    def at(self, now_us: int) -> tuple[Floats, Floats, Ints]:
        """Return usage, load and topics by broker; instants must not go back."""
        stop = int(np.searchsorted(self._columns["ts"], now_us, side="right"))
        for row in range(self._next, stop):
            broker = self._columns["broker"][row]
            self._usage[broker], self._load[broker] = self._columns["usage"][row], self._columns["load"][row]
            self._topics[broker] = self._columns["topics"][row]
        self._next = max(stop, self._next)
        return self._usage.copy(), self._load.copy(), self._topics.copy()


class Demand(Mapping[str, Mapping[str, float]]):
    """Weight per second by value of a client property, over some rows; summed when a policy asks.

    Args:
        sums: micro-units by code of the lookup properties, computed when first needed.
    """

    def __init__(self, cluster: ClusterPlan, spans: list[tuple[DayRows, int, int]], seconds: float) -> None:
        self._cluster, self._spans, self._seconds = cluster, spans, seconds
        self._sums: Ints | None = None

    def __getitem__(self, key: str) -> Mapping[str, float]:
        totals: dict[str, int] = {}
        for code, micro in enumerate(self._by_code().tolist()):
            value = self._cluster.words.properties[code].get(key)
            if value is not None and micro:
                totals[value] = totals.get(value, 0) + micro
        if not totals:
            raise KeyError(key)
        return {value: micro / (MICRO * self._seconds) for value, micro in sorted(totals.items())}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({key for properties in self._cluster.words.properties for key in properties}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _by_code(self) -> Ints:
        if self._sums is None:
            self._sums = np.zeros(len(self._cluster.words.properties), dtype=np.int64)
            for rows, low, high in self._spans:
                span = slice(low, high)
                sums = np.bincount(
                    rows.column("properties", span), rows.column("weight", span), minlength=len(self._sums)
                )
                self._sums += sums.astype(np.int64)
        return self._sums


class _Steps:
    """Loads of bundles that hold from one row of BUNDLES to the next, in micro-units per second."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], n_atoms: int) -> None:
        self._columns, self._next = columns, 0
        self._current = np.zeros(n_atoms, dtype=np.int64)

    def at(self, now_us: int) -> Ints:
        """Return the load of every atom at an instant no earlier than the last asked for, shape (n_atoms,)."""
        stop = int(np.searchsorted(self._columns["ts"], now_us, side="right"))
        for row in range(self._next, stop):
            # The first atom carries the bundle's load: an atom has no report of its own.
            self._current[self._columns["first"][row] : self._columns["stop"][row]] = 0
            self._current[self._columns["first"][row]] = self._columns["micro"][row]
        self._next = max(stop, self._next)
        return self._current.copy()


class BrokerLoads:
    """What each broker carries at grid instants, under exclusive ownership."""

    def __init__(self, cluster: ClusterPlan, loads: AtomLoads, bundles: BundleMap, work: WorkDir) -> None:
        self._topics_by_atom = cluster.words.topics
        self._loads, self._bundles = loads, bundles
        self._n_brokers = len(cluster.timeline.roster)
        self._reported = None if cluster.loads is None else ReportedLoads(work.read(cluster.loads)[0], self._n_brokers)
        self._seen: NDArray[np.int32] = np.empty(0, np.int32)
        self._topics = np.zeros(self._n_brokers, dtype=np.int64)

    def at(
        self, now_us: int, owners: NDArray[np.int32], *, capacity: Floats, registered: NDArray[np.bool_], demand: Demand
    ) -> LoadFigures:
        """Return what the view shows of load; instants must not go back.

        Args:
            owners: number of each atom's owner, shape (n_atoms,), -1 for none.
        """
        window = self._loads.window
        if window is None and self._reported is None:
            return no_load(self._n_brokers, self._topics_of(owners))
        window = np.zeros(len(owners), np.int64) if window is None else window
        bundles = _BundleLoads(self._bundles, owners.copy(), window, self._loads.seconds)
        top, rates = LazyTopBundles(self._n_brokers, bundles), _BundleRates(bundles)
        if self._reported is not None:
            reported = self._reported.at(now_us)
            return LoadFigures(*reported, top, demand, "reported", long_term_bundle_rates=rates)
        micro = _by_broker(owners, window, self._n_brokers)
        usage, load = simulated_load(micro, seconds=self._loads.seconds, capacity=capacity, registered=registered)
        return LoadFigures(usage, load, self._topics_of(owners), top, demand, long_term_bundle_rates=rates)

    def _topics_of(self, owners: NDArray[np.int32]) -> Ints:
        # Topics stand still while owners do, which is most of the time.
        if not np.array_equal(owners, self._seen):
            self._seen = owners.copy()
            self._topics = _by_broker(owners, self._topics_by_atom, self._n_brokers)
        return self._topics


class SharedLoads:
    """What each broker carries at grid instants, under shared ownership: the weight it was expected to serve."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, work: WorkDir) -> None:
        self._cluster, self._run = cluster, run
        self._n_brokers = len(cluster.timeline.roster)
        self._reported = None if cluster.loads is None else ReportedLoads(work.read(cluster.loads)[0], self._n_brokers)
        self._window: deque[Floats] = deque(maxlen=run.session_us // run.tick_us)
        self._open = np.zeros(self._n_brokers)
        self._spans: list[tuple[DayRows, int, int]] = []
        self._closed_at = -1
        self._figures = no_load(self._n_brokers)

    def serve(self, tick: Tick, served: Floats) -> None:
        """Add what each broker served in a tick, micro-units, shape (n_brokers,)."""
        self._open = self._open + served
        self._spans.append((tick.rows, tick.low, tick.high))

    def usage(self, tick: Tick, capacity: Floats, registered: NDArray[np.bool_]) -> Floats:
        """Return usage at a tick that begins at a grid instant."""
        return self.figures(tick, capacity, registered).usage

    def figures(self, tick: Tick, capacity: Floats, registered: NDArray[np.bool_]) -> LoadFigures:
        """Return what the view shows of load at a tick that begins at a grid instant; instants must not go back."""
        if self._closed_at != tick.start_us:
            self._closed_at = tick.start_us
            if tick.number:
                self._window.append(self._open)
                self._open = np.zeros(self._n_brokers)
            self._figures = self._at(tick.start_us, capacity, registered)
            self._spans = []
        return self._figures

    def _at(self, now_us: int, capacity: Floats, registered: NDArray[np.bool_]) -> LoadFigures:
        nothing: list[tuple[()]] = [()] * self._n_brokers
        demand = Demand(self._cluster, self._spans, self._run.tick_us / MICRO)
        if self._reported is not None:
            return LoadFigures(*self._reported.at(now_us), nothing, demand, "reported")
        if not self._window:
            return no_load(self._n_brokers)
        micro = np.add.accumulate(list(self._window), axis=0)[-1]
        load = np.where(registered, micro / self._run.session_us, np.nan)
        return LoadFigures(load / capacity, load, np.zeros(self._n_brokers, dtype=np.int64), nothing, demand)


class _BundleLoads:
    """Loads of the bundles of one broker as they stood at an instant."""

    def __init__(self, bundles: BundleMap, owners: NDArray[np.int32], window: Ints, seconds: float) -> None:
        self._starts, self._names = bundles.ordered()
        self._owners, self._window, self._seconds = owners, window, seconds
        self._known: tuple[NDArray[np.int32], Ints] | None = None

    def __call__(self, broker: int) -> Iterator[tuple[str, float]]:
        owners, micro = self._figures()
        return self._at(np.flatnonzero((owners == broker) & (micro > 0)))

    def loaded(self) -> Iterator[tuple[str, float]]:
        """Yield every bundle with a load, owned or not."""
        return self._at(np.flatnonzero(self._figures()[1] > 0))

    def _figures(self) -> tuple[NDArray[np.int32], Ints]:
        if self._known is None:
            self._known = self._owners[self._starts], np.add.reduceat(self._window, self._starts)
        return self._known

    def _at(self, places: NDArray[np.intp]) -> Iterator[tuple[str, float]]:
        micro = self._figures()[1]
        loads = micro[places] / (MICRO * self._seconds)
        return zip(self._names[places].tolist(), loads.tolist(), strict=True)


class _BundleRates(Mapping[str, float]):
    """Load by bundle in the last window, which stands in for rates of the long run; written out when first asked."""

    def __init__(self, bundles: _BundleLoads) -> None:
        self._bundles = bundles
        self._known: dict[str, float] | None = None

    def __getitem__(self, bundle: str) -> float:
        return self._rates()[bundle]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rates())

    def __len__(self) -> int:
        return len(self._rates())

    def _rates(self) -> dict[str, float]:
        if self._known is None:
            self._known = dict(self._bundles.loaded())
        return self._known


def _by_broker(owners: NDArray[np.int32], values: Ints, n_brokers: int) -> Ints:
    sums: Ints = np.bincount(owners + 1, weights=values, minlength=n_brokers + 1)[1:].astype(np.int64)
    return sums
