"""Measure load at grid instants, either simulated from the log's weights or reported by LOADS and BUNDLES."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO, LazyTopBundles
from lookup.model.load import RESOURCES, Load
from lookup.replay.atoms import BundleMap
from lookup.replay.days import SliceRows, Span, copy_tail
from lookup.replay.origins import Origins, Pairs, add_pairs, summed_pairs
from lookup.replay.plan import BundleReports, ClusterPlan, RunPlan
from lookup.replay.walk import SliceReports

__all__ = ["AtomLoads", "BrokerLoads", "Demand", "ReportedLoads", "set_spans"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Load of each atom in micro-units, and its messages in millionths per second, None if unknown.
Windows = tuple[Ints, Ints | None]


class _Cell:
    """The lookups of one cell of the grid, whose weights are summed when a policy reads them.

    Args:
        n_codes: number of sets of lookup properties, 0 if no part of the policy reads the origins of lookups.
    """

    def __init__(self, n_atoms: int, n_codes: int) -> None:
        self.spans: list[Span] = []
        self._n_atoms, self._n_codes = n_atoms, n_codes
        self._micro: Ints | None = None
        self._pairs: Pairs | None = None

    def micro(self) -> Ints:
        """Sum the weight of each atom in micro-units, shape (n_atoms,). No rows may be added afterwards."""
        if self._micro is None:
            sums = []
            for rows, low, high in self.spans:
                count = partial(_sum_weights, rows, slice(low, high), self._n_atoms)
                # Kept for other policies if the sums are no longer than the rows.
                sums.append(count() if high - low < self._n_atoms else rows.once(("weights", low, high), count))
            # A single one is not copied, as most cells have one span and most windows one cell.
            self._micro = reduce(np.add, sums) if sums else np.zeros(self._n_atoms, dtype=np.int64)
            self.spans = self.spans if self._n_codes else []
        return self._micro

    def pairs(self) -> Pairs:
        """Sum the weight of each pair of atom and properties that occurs. No rows may be added afterwards."""
        if self._pairs is None:
            sums = (
                rows.once(("origins", low, high), partial(summed_pairs, rows, slice(low, high), self._n_codes))
                for rows, low, high in self.spans
            )
            self._pairs = add_pairs(list(sums))
        return self._pairs


def _sum_weights(rows: SliceRows, span: slice, n_atoms: int) -> Ints:
    """Sum the weight of each atom in some rows, micro-units, shape (n_atoms,)."""
    constant = rows.constant("weight")
    atoms = rows.column("atom", span)
    if constant is not None:
        return np.bincount(atoms, minlength=n_atoms) * int(constant)
    return np.bincount(atoms, rows.column("weight", span), minlength=n_atoms).astype(np.int64)


class AtomLoads:
    """The weight of each atom in the last `session_s` before a grid instant.

    Args:
        with_origins: whether weights are also summed by the properties of clients.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, *, with_origins: bool = False) -> None:
        n_atoms, self._properties = cluster.words.atoms.count, cluster.words.properties
        self._has_origins = with_origins
        self._new_cell = partial(_Cell, n_atoms, len(self._properties) if with_origins else 0)
        self._cells: deque[_Cell] = deque(maxlen=run.session_us // run.tick_us)
        self._open = self._new_cell()
        self._instant_us: int | None = None
        self._session_s = run.session_us / MICRO
        self._reported = None if cluster.bundle_loads is None else _ReportedBundles(cluster.bundle_loads, n_atoms)
        self._window: Ints | None = None
        self._rates: Ints | None = None
        self._needs_lookups = self._reported is None or with_origins

    def begin_slice(self, reports: SliceReports, reached_us: int) -> None:
        """Add the reports of a slice. From now on only instants from `reached_us` on are read."""
        if self._reported is not None and reports.bundles is not None:
            self._reported.begin_slice(reports.bundles, reached_us)

    def add(self, rows: SliceRows, low: int, high: int) -> None:
        """Add the lookups of a tick to the open cell."""
        if high > low and self._needs_lookups:
            self._open.spans.append((rows, low, high))

    def end_slice(self, rows: SliceRows) -> None:
        """Release a slice except its rows of the last `session_s`."""
        copy_tail(rows, [cell.spans for cell in (*self._cells, self._open)])

    def close_cell(self, now_us: int) -> None:
        """Close the open cell at a grid instant."""
        if self._instant_us is not None and self._needs_lookups:
            self._cells.append(self._open)
            self._open = self._new_cell()
        self._instant_us, self._window, self._rates = now_us, None, None

    @property
    def window(self) -> Ints | None:
        """The weight of each atom at the last grid instant, micro-units, shape (n_atoms,).

        None before the first complete cell. It is summed at the first read, since in most ticks few policies decide.
        """
        if self._window is None and self._instant_us is not None:
            if self._reported is not None:
                self._window = self._reported.micro_at(self._instant_us)
            elif self._cells:
                self._window = reduce(np.add, [cell.micro() for cell in self._cells])
        return self._window

    @property
    def rates(self) -> Ints | None:
        """The messages of each atom at the last grid instant, millionths per second, None if unknown."""
        if self._rates is None and self._reported is not None and self._instant_us is not None:
            self._rates = self._reported.rates_at(self._instant_us)
        return self._rates

    @property
    def are_bytes(self) -> bool:
        """Whether the load is the traffic of bundles in bytes, from BUNDLES, and not the weight of their lookups."""
        return self._reported is not None

    @property
    def seconds(self) -> float:
        """The number of seconds over which the window's weight came, 1.0 if it is reported per second."""
        return self._session_s if self._reported is None else 1.0

    def origins(self, bundles: BundleMap) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
        """Build the origins of the lookups of the last `session_s`, empty if the policy does not read them."""
        if not self._has_origins:
            return {}
        cells = tuple(self._cells)
        return Origins(
            lambda: [cell.pairs() for cell in cells], self._properties, bundles.sort_bundles(), self._session_s
        )

    def weight_of(self, atoms: slice) -> float:
        """Compute the load of a bundle at the last grid instant, weight per second."""
        window = self.window
        if window is None:
            return 0.0
        # Without splits a bundle is one atom, which needs no sum.
        micro = window[atoms.start] if atoms.stop - atoms.start == 1 else window[atoms].sum()
        return int(micro) / (MICRO * self.seconds)


class _Latest(ABC):
    """The last reports at or before an instant, from rows in order of time. Instants must not go back."""

    def __init__(self) -> None:
        #: rows of each day, and the first row that was not applied yet
        self._days: list[tuple[SliceRows, int]] = []

    def begin_slice(self, rows: SliceRows, reached_us: int) -> None:
        """Add the reports of a slice. From now on only instants from `reached_us` on are read."""
        self.take(reached_us)
        # Of the earlier reports, only the rows that were not read yet are kept.
        days = [(before.after(low), 0) for before, low in self._days if low < len(before)]
        self._days = [*days, (rows, 0)]

    def take(self, now_us: int) -> None:
        for place, (rows, low) in enumerate(self._days):
            high = int(np.searchsorted(rows.ts, now_us, side="right"))
            if high > low:
                self._days[place] = rows, high
                self._write(rows, slice(low, high))

    @abstractmethod
    def _write(self, rows: SliceRows, span: slice) -> None:
        """Write the figures of some rows over those before."""


class ReportedLoads(_Latest):
    """The latest load reports of brokers at or before an instant.

    Args:
        figures: names of the columns of LOADS that any row gives.
    """

    def __init__(self, figures: Iterable[str], n_brokers: int) -> None:
        super().__init__()
        self._current = {name: np.full(n_brokers, np.nan) for name in figures}

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], n_brokers: int) -> ReportedLoads:
        """Build reports from the columns of one day, which are ts, broker (number), and figures."""
        reported = cls([name for name in columns if name not in ("ts", "broker")], n_brokers)
        reported.begin_slice(SliceRows(columns, {}), 0)
        return reported

    def at(self, now_us: int) -> Mapping[str, Floats]:
        """Copy every column of LOADS by broker, NaN where it is unknown. Instants must not go back."""
        self.take(now_us)
        return {name: current.copy() for name, current in self._current.items()}

    def _write(self, rows: SliceRows, span: slice) -> None:
        brokers = rows.column("broker", span)
        is_known = brokers >= 0
        for name, current in self._current.items():
            # Of several values for one place numpy keeps the last, which is the latest report.
            current[brokers[is_known]] = rows.column(name, span)[is_known]

    def figures(self, now_us: int, base: Load) -> Load:
        """Build the load that the view shows at an instant. Instants must not go back.

        Args:
            base: load whose other figures are kept, which are top bundles, demand, and topics if LOADS has none.
        """
        columns = self.at(now_us)
        topics = np.nan_to_num(columns["topics"]).astype(np.int64) if "topics" in columns else base.topics
        return replace(
            base,
            usage=columns["usage"],
            throughput=columns["load"],
            topics=topics,
            source="reported",
            max_usage=columns.get("max_usage"),
            smoothed_throughput=columns.get("smoothed_throughput"),
            resources=np.stack([columns[name] for name in RESOURCES], axis=1) if RESOURCES[0] in columns else None,
            rates=columns.get("rate"),
        )


class Demand(Mapping[str, Mapping[str, float]]):
    """Weight per second by value of a client property, over spans of a given length. A first read sums it."""

    def __init__(self, cluster: ClusterPlan, spans: list[Span], seconds: float) -> None:
        self._cluster, self.spans, self._seconds = cluster, spans, seconds
        self._sums: Ints | None = None

    def __getitem__(self, key: str) -> Mapping[str, float]:
        totals: dict[str, int] = {}
        for code, micro in enumerate(self._sum_by_code().tolist()):
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

    def _sum_by_code(self) -> Ints:
        if self._sums is None:
            self._sums = np.zeros(len(self._cluster.words.properties), dtype=np.int64)
            for rows, low, high in self.spans:
                span = slice(low, high)
                sums = np.bincount(
                    rows.column("properties", span), rows.column("weight", span), minlength=len(self._sums)
                )
                self._sums += sums.astype(np.int64)
            # The rows need not be held any longer.
            self.spans = []
        return self._sums


class _ReportedBundles(_Latest):
    """The traffic of bundles from one row of BUNDLES to the next, in millionths per second."""

    def __init__(self, reports: BundleReports, n_atoms: int) -> None:
        super().__init__()
        self._spans = reports.spans
        names = ("micro", "rate") if reports.has_rates else ("micro",)
        self._current = {name: np.zeros(n_atoms, dtype=np.int64) for name in names}

    def micro_at(self, now_us: int) -> Ints:
        """Copy the bytes of every atom at an instant, shape (n_atoms,). Instants must not go back."""
        self.take(now_us)
        return self._current["micro"].copy()

    def rates_at(self, now_us: int) -> Ints | None:
        """Copy the messages of every atom at an instant, None if no row gives any. Instants must not go back."""
        self.take(now_us)
        return self._current["rate"].copy() if "rate" in self._current else None

    def _write(self, rows: SliceRows, span: slice) -> None:
        codes = rows.column("bundle", span)
        is_known = codes >= 0
        first, stop = self._spans[codes[is_known]].T
        for name, current in self._current.items():
            set_spans(current, first, stop, rows.column(name, span)[is_known])


def set_spans(current: Ints, first: Ints, stop: Ints, values: Ints) -> None:
    """Set values of spans of atoms, one after the other, in place.

    The first atom has the value and the others of the span 0, since an atom does not have a report of its own.
    """
    if (stop - first != 1).any():
        order = np.lexsort((stop, first))
        starts, ends = first[order], stop[order]
        is_same = (starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])
        if not (is_same | (ends[:-1] <= starts[1:])).all():
            # This happens for example to a bundle and its split's children. The later report replaces the earlier.
            for low, high, value in zip(first.tolist(), stop.tolist(), values.tolist(), strict=True):
                current[low:high] = 0
                current[low] = value
            return
        edges = np.zeros(len(current) + 1, dtype=np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, stop, -1)
        current[np.cumsum(edges)[:-1] > 0] = 0
    # Of several values for one atom numpy keeps the last.
    current[first] = values


class BrokerLoads:
    """The load of each broker at grid instants."""

    def __init__(self, cluster: ClusterPlan, loads: AtomLoads, bundles: BundleMap) -> None:
        self._topics_by_atom = cluster.words.topics.astype(np.float64)
        self._loads, self._bundles = loads, bundles
        self._n_brokers = len(cluster.timeline.roster)
        self._reported = None if cluster.loads is None else ReportedLoads(cluster.loads.figures, self._n_brokers)
        self._seen = self._places = np.empty(0, np.int64)
        self._topics = np.zeros(self._n_brokers, dtype=np.int64)

    def begin_slice(self, reports: SliceReports, reached_us: int) -> None:
        """Add the reports of a slice. From now on only instants from `reached_us` on are read."""
        self._loads.begin_slice(reports, reached_us)
        if self._reported is not None and reports.loads is not None:
            self._reported.begin_slice(reports.loads, reached_us)

    def at(self, now_us: int, owners: Ints, *, capacity: Floats, registered: NDArray[np.bool_], demand: Demand) -> Load:
        """Build the load that the view shows. Instants must not go back.

        Args:
            owners: owner by atom, shape (n_atoms,), -1 for none, never changed, and the same array until owners change.
        """
        window, topics = self._loads.window, self._topics_of(owners)
        if window is None and self._reported is None:
            return Load.unknown(self._n_brokers, topics)
        window = np.zeros(len(owners), np.int64) if window is None else window
        windows, are_bytes = (window, self._loads.rates), self._loads.are_bytes
        bundles = _BundleLoads(self._bundles, owners, windows, self._loads.seconds, are_bytes=are_bytes)
        micro = _sum_by_broker(self._places, window, self._n_brokers)
        load = np.where(registered, micro / (MICRO * self._loads.seconds), np.nan)
        rates, of_bundles = None, bundles.loads
        if self._reported is None and self._loads.rates is not None:
            sent = _sum_by_broker(self._places, self._loads.rates, self._n_brokers) / MICRO
            rates, of_bundles = np.where(registered, sent, np.nan), bundles.rates
        figures = Load(
            load / capacity,
            load,
            topics,
            LazyTopBundles(self._n_brokers, bundles),
            demand,
            rates=rates,
            # Without rates of messages, loads replace the rates of bundles, as they do for brokers.
            long_term_bundle_rates=_BundleRates(of_bundles),
            bundle_unit="bytes/s" if are_bytes else "weight/s",
            origins=self._loads.origins(self._bundles),
        )
        if self._reported is None:
            return figures
        figures = self._reported.figures(now_us, figures)
        return figures if figures.rates is None else _with_bundle_rates(figures, bundles)

    def _topics_of(self, owners: Ints) -> Ints:
        # Topics change only when owners do, which is rare.
        if owners is not self._seen:
            self._seen, self._places = owners, owners + 1
            self._topics = _sum_by_broker(self._places, self._topics_by_atom, self._n_brokers)
        return self._topics


class _BundleLoads:
    """Loads of the bundles of one broker at an instant.

    Args:
        are_bytes: a bundle without load is idle. Otherwise it had no lookups, and its traffic is unknown.
    """

    def __init__(self, bundles: BundleMap, owners: Ints, windows: Windows, seconds: float, *, are_bytes: bool) -> None:
        self._least = 0 if are_bytes else 1
        self._starts, self._names = bundles.sort_bundles()
        self._owners, self._windows, self._seconds = owners, windows, seconds
        self._known: tuple[Ints, Ints, Floats] | None = None

    def __call__(self, broker: int) -> Iterator[tuple[float, str, float]]:
        owners, micro, rates = self._figures()
        owned = ((owners == broker) & (micro >= self._least)).nonzero()[0]
        loads = micro[owned] / (MICRO * self._seconds)
        return zip(loads.tolist(), self._names[owned].tolist(), rates[owned].tolist(), strict=True)

    @property
    def has_rates(self) -> bool:
        """Whether rates of messages are known."""
        return self._windows[1] is not None

    def loads(self) -> Iterator[tuple[str, float]]:
        return self._iter_positive(self._figures()[1] / (MICRO * self._seconds))

    def rates(self) -> Iterator[tuple[str, float]]:
        """Yield every bundle with messages, owned or not, and how many per second."""
        return self._iter_positive(self._figures()[2])

    def _iter_positive(self, figures: Floats) -> Iterator[tuple[str, float]]:
        positive = np.flatnonzero(figures > 0)
        return zip(self._names[positive].tolist(), figures[positive].tolist(), strict=True)

    def _figures(self) -> tuple[Ints, Ints, Floats]:
        if self._known is None:
            window, rated = self._windows
            micro = np.add.reduceat(window, self._starts)
            rates = np.zeros(len(micro)) if rated is None else np.add.reduceat(rated, self._starts) / MICRO
            self._known = self._owners[self._starts], micro, rates
        return self._known


class _BundleRates(Mapping[str, float]):
    """Substitutes for the long-term rate of each bundle, computed at the first read."""

    def __init__(self, rates: Callable[[], Iterator[tuple[str, float]]]) -> None:
        self._compute = rates
        self._known: dict[str, float] | None = None

    def __getitem__(self, bundle: str) -> float:
        return self._rates()[bundle]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rates())

    def __len__(self) -> int:
        return len(self._rates())

    def _rates(self) -> dict[str, float]:
        if self._known is None:
            self._known = dict(self._compute())
        return self._known


def _with_bundle_rates(figures: Load, bundles: _BundleLoads) -> Load:
    """Add rates of messages of bundles to load figures with rates of brokers, or remove both rates.

    A broker's message rate counts for shedding only with bundle rates. Else seemingly idle bundles would move in vain.
    """
    if not bundles.has_rates:
        return replace(figures, rates=None, long_term_rates=figures.rates, long_term_bundle_rates={})
    return replace(figures, long_term_bundle_rates=_BundleRates(bundles.rates))


def _sum_by_broker(places: Ints, values: Ints | Floats, n_brokers: int) -> Ints:
    sums: Ints = np.bincount(places, weights=values, minlength=n_brokers + 1)[1:].astype(np.int64)
    return sums
