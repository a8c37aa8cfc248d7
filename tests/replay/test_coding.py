"""Coding: rows, topics and properties as small integers, and the sample that tells a log which is there twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.rows import LogBatch
from lookup.model.bundles import NamespacePolicies
from lookup.replay.atoms import AtomRule
from lookup.replay.coding import Coder, CodingPlan, Repeats, TopicCodes, keys_of, used_columns
from lookup.replay.work import WorkDir
from lookup.settings.resolve import ClientRule
from tests.replay.plans import NOON, TOPIC
from tests.replay.worlds import MICRO

DAY = 86_400 * MICRO


def _plan(*, extras: frozenset[str] = frozenset(), rules: tuple[ClientRule, ...] = (), tick_s: int = 60) -> CodingPlan:
    return CodingPlan(extras, rules, NamespacePolicies(default_bundles=2), {}, tick_s * MICRO)


def _coder(folder: Path, plan: CodingPlan | None = None) -> Coder:
    return Coder(plan or _plan(), "east", WorkDir(str(folder)), 0)


def _batch(**columns: list[object]) -> LogBatch:
    size = len(next(iter(columns.values())))
    rows = {"ts": [NOON] * size, "topic": [TOPIC] * size, **columns}
    return LogBatch(pa.RecordBatch.from_pydict(rows), "file", 0, "east")


@pytest.mark.parametrize("name", ["broker", "client", "listener", "properties", "result"])
def test_an_empty_text_is_none(tmp_path: Path, name: str) -> None:
    """As an ingest reads it: no broker was answered, no client is known, and no rule for clients applies."""
    shares = []
    for folder, text in (("empty", ""), ("absent", None)):
        (tmp_path / folder).mkdir()
        rules = (ClientRule(None, "*", {"rack": "x"}),)
        coder = _coder(tmp_path / folder, _plan(extras=frozenset({"client", "listener"}), rules=rules))
        coder.add(_batch(**{name: [text, text, "connect" if name == "result" else "{}"]}))
        found = coder.finish()
        shares.append((found.brokers, found.by_broker, found.extras, found.properties, found.by_rule, found.counts))

    assert shares[0] == shares[1]
    assert shares[0][-1]["demand"] == 3


def test_rules_meet_rows_that_cannot_be_used_and_batches_without_rows(tmp_path: Path) -> None:
    """No rule labels a row whose properties are no JSON: it is refused; a batch may be empty."""
    coder = _coder(tmp_path, _plan(rules=(ClientRule(None, "*", {"rack": "x"}),)))
    batch = _batch(client=["web", "web"], properties=["[1]", "{}"])
    coder.add(LogBatch(batch.rows.slice(0, 0), "file", 0, "east"))
    coder.add(batch)

    assert [text for text in coder.finish().properties if text is not None] == ['{"rack":"x"}']
    assert [row.reason.split()[0] for row in coder.quarantined] == ["properties"]


def test_only_what_demand_has_is_in_the_vocabularies(tmp_path: Path) -> None:
    """Topics, labels and brokers of rows that are left out have no say, also where a dictionary holds them."""
    other = "persistent://t/other/topic"
    coder = _coder(tmp_path)
    topics = pa.DictionaryArray.from_arrays([0, 1, 0], [TOPIC, other, "persistent://t/unused/topic"])
    rows = {
        "ts": [NOON] * 3,
        "topic": topics,
        "properties": ["{}", '{"rack":"a"}', "{}"],
        "result": ["connect", "redirect", "connect"],
        "broker": ["b1", "b2", "b1"],
    }
    coder.add(LogBatch(pa.RecordBatch.from_pydict(rows), "file", 0, "east"))
    share = coder.finish()

    assert (len(share.topics), share.properties, share.by_broker) == (1, ["{}", None], [2, 0])


def test_rows_are_parted_by_the_day_in_which_their_cell_begins(tmp_path: Path) -> None:
    """Where a cell of the grid crosses midnight, its rows after midnight belong to the day before."""
    midnight = NOON + 12 * 3600 * MICRO
    coder = _coder(tmp_path, _plan(tick_s=7))
    coder.add(_batch(ts=[midnight, midnight + 7 * MICRO]))

    days = [(part.day, part.first[0]) for part in coder.finish().parts]
    assert midnight // (7 * MICRO) * 7 * MICRO < midnight
    assert days == [(midnight // DAY - 1, midnight), (midnight // DAY, midnight + 7 * MICRO)]


def test_a_task_reads_the_columns_that_matter(tmp_path: Path) -> None:
    """Clients and listeners are read only where a policy or a rule asks for them."""
    present = ["ts", "topic", "client", "listener", "latency_ms", "host"]

    assert used_columns(present, _plan()) == ["ts", "topic"]
    assert used_columns(present, _plan(extras=frozenset({"listener", "domain"}))) == ["ts", "topic", "listener"]
    assert used_columns(present, _plan(rules=(ClientRule(None, "*", {}),))) == ["ts", "topic", "client"]


@pytest.fixture
def codes() -> TopicCodes:
    """Return codes of namespaces with two bundles."""
    return TopicCodes(AtomRule(NamespacePolicies(default_bundles=2), {}))


def test_only_topics_of_usable_rows_are_digested(codes: TopicCodes) -> None:
    """A topic counts once if any usable row has it, whatever else a dictionary holds."""
    column = pa.DictionaryArray.from_arrays([0, 0, 1, None], [TOPIC, "persistent://t/n/b", "persistent://t/n/c"])
    for text in column.dictionary.to_pylist():
        codes.code(text)
    codes.note(column, np.array([True, True, False, False]))
    codes.note(column, np.array([True, True, False, False]))

    assert codes.digests()[:, 1].tolist() == [codes.code(TOPIC)]


def _keys(count: int, *, seed: int = 1) -> np.ndarray:
    dice = np.random.default_rng(seed)
    return keys_of(dice.integers(0, 1 << 50, count), dice.integers(0, 1 << 31, count))


@given(st.lists(st.integers(0, 5000), max_size=6), st.integers(0, 99))
def test_how_rows_are_divided_does_not_matter(cuts: list[int], seed: int) -> None:
    """Tasks that share the rows in any way, and put their counts together, count what one task does."""
    once = _keys(2500, seed=seed)
    rows = np.concatenate([once, once[:1200]])
    whole, merged = Repeats(), Repeats()
    whole.add(rows)
    for part in np.split(rows, sorted(cuts)):
        task = Repeats()
        for batch in np.array_split(part, 3):
            task.add(batch)
        merged.merge(task)

    assert merged.even_ratio == whole.even_ratio
    assert 0.4 < whole.even_ratio < 0.56


def test_all_of_a_copy_is_even() -> None:
    """And nothing of a log without copies, or with two of them."""
    ratios = []
    for copies in (1, 2, 3):
        sample = Repeats()
        for _ in range(copies):
            sample.add(_keys(30_000))
        ratios.append(sample.even_ratio)

    assert ratios == [0.0, 1.0, 0.0]


def test_a_few_rows_say_nothing() -> None:
    """Two lookups of one topic in one microsecond are no copy of a log."""
    sample = Repeats()
    sample.add(np.repeat(_keys(19), 2))

    assert sample.even_ratio == 0.0
