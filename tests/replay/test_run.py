"""Whole replays that cannot be: a mistake of a log, a table or a plug-in is one sentence, or a row in quarantine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.replay.outcome import ReplayOutcome
from tests.replay.layouts import write_rows
from tests.replay.small import BROKER, LOOKUP, replayed, write_log, write_table
from tests.replay.worlds import MICRO, START_US

_REGISTERED = {"ts": START_US, "cluster": "east", "broker": "b1:8080", "event": "registered"}


def _quarantine(folder: Path) -> list[tuple[str, int, str, str]]:
    rows = pq.read_table(folder / "output" / "quarantine").to_pylist()
    return [(row["table"], row["line"], row["reason"], row["text"]) for row in rows]


def _column(folder: Path, name: str, values: pa.Array) -> None:
    table = pa.table({**{key: pa.array([value]) for key, value in LOOKUP.items()}, name: values})
    (folder / "lookups").mkdir()
    pq.write_table(table, folder / "lookups" / "part.parquet")


def _nothing(folder: Path) -> None:
    (folder / "lookups").mkdir()


def _no_rows(folder: Path) -> None:
    write_rows([], "lookups", folder / "lookups" / "part.parquet")


def _no_bytes(folder: Path) -> None:
    (folder / "lookups").mkdir()
    (folder / "lookups" / "part.parquet").touch()


def _garbage(folder: Path) -> None:
    (folder / "lookups").mkdir()
    (folder / "lookups" / "part.parquet").write_bytes(b"\x00\xffno Parquet at all" * 99)


def _cut_off(folder: Path) -> None:
    write_log(folder)
    whole = (folder / "lookups" / "part.parquet").read_bytes()
    (folder / "lookups" / "part.parquet").write_bytes(whole[: len(whole) // 2])


def _damaged(folder: Path) -> None:
    write_log(folder, *({"topic": f"persistent://t/n/{number}"} for number in range(500)))
    whole = bytearray((folder / "lookups" / "part.parquet").read_bytes())
    whole[4:2000] = b"\xff" * 1996
    (folder / "lookups" / "part.parquet").write_bytes(whole)


def _without_topic(folder: Path) -> None:
    (folder / "lookups").mkdir()
    pq.write_table(pa.table({"ts": [START_US], "cluster": ["east"]}), folder / "lookups" / "part.parquet")


_UNUSABLE: Sequence[tuple[Callable[[Path], None], str]] = (
    (lambda folder: None, r"lookups: there is no such file or directory$"),
    (_nothing, r"lookups: holds no Parquet file; `lookup ingest` makes them from other formats$"),
    (_no_rows, r"lookups: the table lookups has no row$"),
    (_no_bytes, r"part\.parquet: cannot be read as Parquet: "),
    (_garbage, r"part\.parquet: is not a Parquet file, or was cut off"),
    (_cut_off, r"part\.parquet: is not a Parquet file, or was cut off"),
    (_damaged, r"part\.parquet: cannot be read as Parquet: "),
    (_without_topic, r"part\.parquet: has no column 'topic', which the table lookups needs$"),
    (
        lambda folder: _column(folder, "topic", pa.array([5])),
        r"part\.parquet: column 'topic' of the table lookups holds int64, not texts$",
    ),
    (
        lambda folder: _column(folder, "ts", pa.array(["2026-01-01"])),
        r"part\.parquet: column 'ts' of the table lookups holds string, not timestamps$",
    ),
    (
        lambda folder: _column(folder, "weight", pa.array(["1.0"])),
        r"column 'weight' of the table lookups holds string, not numbers$",
    ),
    (
        lambda folder: _column(folder, "read_only", pa.array([1])),
        r"column 'read_only' of the table lookups holds int64, not true or false$",
    ),
    (
        lambda folder: write_log(folder, {"topic": "a.*"}, {"topic": "no-topic"}),
        r"lookups: none of the 2 rows is a lookup that asks for a broker$",
    ),
    (
        lambda folder: write_log(folder, {}, {"ts": 0}),
        r"from 1970-01-01 to 2026-01-01, 29,455,196 ticks of 60 s: more than 5,000,000; is a timestamp wrong\?$",
    ),
)


@pytest.mark.parametrize(("make", "sentence"), _UNUSABLE)
def test_an_unusable_log_is_one_sentence(tmp_path: Path, make: Callable[[Path], None], sentence: str) -> None:
    """A log that is missing, empty, garbage, cut off, damaged, of wrong types or times ends in one sentence."""
    make(tmp_path)

    with pytest.raises(InputError, match=sentence) as raised:
        replayed(tmp_path)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "output" / "decisions").exists()


_ODD_ROWS: Sequence[tuple[dict[str, Any], str, str]] = (
    ({"cluster": None}, "the cluster is missing", ""),
    ({"cluster": ""}, "the cluster is empty", ""),
    ({"cluster": "  "}, "cluster '  ' begins or ends with a blank", ""),
    ({"cluster": "a\nb"}, "cluster 'a\\nb' has the character '\\n', which nobody sees", ""),
    ({"cluster": ".."}, "cluster '..' can name no folder", ""),
    ({"ts": None}, "the timestamp is missing", ""),
    ({"topic": None}, "the topic is missing", ""),
    ({"topic": "persistent://t/n/.*"}, "the topic is a regular expression, which topic list watchers look up", ""),
    ({"topic": "t"}, "topic 't' does not begin with persistent:// or non-persistent://", "t"),
    (
        {"topic": "persistent://t/n"},
        "topic 'persistent://t/n' is not of the form persistent://tenant/namespace/topic",
        "",
    ),
    ({"properties": "{rack: a}"}, "properties is not a JSON object of texts", "{rack: a}"),
    ({"properties": '{"rack":1}'}, "properties is not a JSON object of texts", '{"rack":1}'),
    ({"properties": '["rack"]'}, "properties is not a JSON object of texts", '["rack"]'),
    ({"properties": "[" * 100_000}, "properties is not a JSON object of texts", "[" * 200),
    ({"properties": '{"rack":"\\ud800"}'}, "properties is not a JSON object of texts", '{"rack":"\\ud800"}'),
    ({"result": "maybe"}, "result 'maybe' is not one of connect, redirect, failed, unknown", "maybe"),
    ({"weight": -1.0}, "weight -1.0 is not a finite number of at least 0", "-1.0"),
    ({"weight": float("nan")}, "weight nan is not a finite number of at least 0", "nan"),
    ({"weight": 2e10}, "weight 20000000000.0 is above 1e+10; a larger unit would do", "20000000000.0"),
    ({"weight": float("inf")}, "weight inf is not a finite number of at least 0", "inf"),
)


@pytest.mark.parametrize(("odd", "reason", "text"), _ODD_ROWS)
def test_a_row_that_cannot_be_used_goes_to_quarantine(
    tmp_path: Path, odd: dict[str, Any], reason: str, text: str
) -> None:
    """A row of the log that cannot be used is told with its line, why, and what stood there; others are replayed."""
    write_log(tmp_path, {}, odd, {})

    outcome = replayed(tmp_path)

    (found,) = _quarantine(tmp_path)
    assert found[:3] == ("lookups", 2, reason)
    assert found[3] == text or not text
    assert (outcome.inputs.quarantined, outcome.inputs.lookups) == (1, 2)


def test_too_many_rows_in_quarantine_fail_the_run(tmp_path: Path) -> None:
    """A share of unusable rows above max_quarantine_ratio ends the run with the most frequent reason."""
    write_log(tmp_path, {}, {"topic": None}, {"topic": None}, {"result": "maybe"})

    with pytest.raises(InputError, match=r"3 of 4 rows .*0\.5 allows; .*\(2 rows\): the topic"):
        replayed(tmp_path, evaluation={"max_quarantine_ratio": 0.5})


def test_bytes_that_are_no_text_do_not_stop_a_run(tmp_path: Path) -> None:
    """Bytes of a topic that are no UTF-8 are replaced, as readers of logs do; the row is a lookup like any other."""
    topics = pa.array([b"persistent://t/n/\xff\xfe"]).cast(pa.binary())
    _column(tmp_path, "topic", pa.StringArray.from_buffers(1, topics.buffers()[1], topics.buffers()[2]))

    assert replayed(tmp_path).inputs.lookups == 1


def test_a_cluster_without_brokers_is_named(tmp_path: Path) -> None:
    """A cluster of the log that no broker is registered in ends the run, and the sentence says where one should be."""
    write_log(tmp_path, {"cluster": "west"})
    elsewhere = {**BROKER, "clusters": ["east"]}

    with pytest.raises(InputError, match=r"'west' of the log .*\[\[brokers\]\]"):
        replayed(tmp_path, brokers=[elsewhere])
    write_table(tmp_path, "brokers", _REGISTERED)
    with pytest.raises(InputError, match=r"'west' of the log .* BROKERS table"):
        replayed(tmp_path)


_SMALL: Sequence[tuple[str, dict[str, Any], str]] = (
    ("brokers", {**_REGISTERED, "event": "joined"}, r"event: 'joined' is none of registered, updated, unregistered"),
    ("brokers", {**_REGISTERED, "broker": None}, r"broker is missing"),
    ("brokers", {**_REGISTERED, "lookup_data": "{"}, r"broker lookup data is not JSON: .*"),
    ("brokers", {**_REGISTERED, "lookup_data": '{"properties": 5}'}, r".*properties.*5.*"),
    ("ownership", {"bundle": "t/n", "event": "owned"}, r"bundle: namespace 't' is not of the form tenant/namespace"),
    ("ownership", {"event": "stolen"}, r"event: 'stolen' is none of owned, unloaded, split"),
    ("ownership", {"event": "owned", "broker": None}, r"an `owned` row names no broker"),
    ("ownership", {"event": "split", "boundaries": ["0xZ"]}, r"boundaries: .* is not a hash text like '0x40000000'"),
    ("ownership", {"event": "split", "boundaries": [None]}, r"boundaries: .* is not a hash text like '0x40000000'"),
    ("ownership", {"event": "split", "boundaries": None}, r"a `split` row needs `boundaries` inside its bundle .*"),
    ("ownership", {"event": "split", "boundaries": ["0x0"]}, r"a `split` row needs `boundaries` inside its bundle .*"),
    ("ownership", {"event": "unloaded", "by": "nobody"}, r"by: 'nobody' is none of policy, admin"),
    ("bundles", {"stats": "[]"}, r"bundle stats is not a JSON object but list"),
    ("loads", {"load": '{"topics": "many"}'}, r".*topics.*'many'.*"),
)
_WHOLE = {"ts": START_US, "cluster": "east", "bundle": "t/n/0x00000000_0x80000000", "broker": "b1:8080"}


_ROWS: Mapping[str, dict[str, Any]] = {
    "ownership": {"event": "owned"},
    "bundles": {"stats": '{"msgThroughputIn": 1.0}'},
    "loads": {"load": '{"cpu": {"usage": 1.0, "limit": 2.0}}'},
}


@pytest.mark.parametrize("table", _ROWS)
def test_a_table_with_another_name_for_a_cluster_is_refused(tmp_path: Path, table: str) -> None:
    """Its rows would be passed over; one that has more clusters than the log, or fewer, is sound."""
    write_log(tmp_path, {}, {"cluster": "west"})
    reported = {"evaluation": {"load": "reported"}} if table == "loads" else {}
    row = {**_WHOLE, **_ROWS[table]}
    write_table(tmp_path, table, row, {**row, "cluster": "prod-west"})

    with pytest.raises(InputError, match=f"'west' .* table {table.upper()}, .* of prod-west; "):
        replayed(tmp_path, **reported)
    write_table(tmp_path, table, row)
    replayed(tmp_path, **reported)
    write_table(tmp_path, table, row, {**row, "cluster": "west"}, {**row, "cluster": "prod-west"})
    replayed(tmp_path, **reported)


@pytest.mark.parametrize(("table", "row", "reason"), _SMALL)
def test_a_row_of_a_small_table_that_cannot_be_used_goes_to_quarantine(
    tmp_path: Path, table: str, row: dict[str, Any], reason: str
) -> None:
    """A row of BROKERS, OWNERSHIP, LOADS or BUNDLES that cannot be used is told with its line and why."""
    write_log(tmp_path)
    write_table(tmp_path, "brokers", _REGISTERED, *([row] if table == "brokers" else []))
    if table != "brokers":
        write_table(tmp_path, table, {**_WHOLE, **row})

    outcome = replayed(tmp_path, evaluation={"load": "reported" if table == "loads" else "simulated"})

    ((name, line, found, _),) = _quarantine(tmp_path)
    assert (name, line) == (table, 2 if table == "brokers" else 1)
    assert re.fullmatch(reason, found), found
    assert outcome.inputs.quarantined == 1


def test_a_small_table_may_be_empty(tmp_path: Path) -> None:
    """That nothing was owned is no mistake."""
    write_log(tmp_path)
    write_table(tmp_path, "ownership")

    assert replayed(tmp_path).inputs.lookups == 1


def test_unloads_by_a_policy_are_ignored_and_counted(tmp_path: Path) -> None:
    """What the logged policy unloaded is not repeated, and told."""
    write_log(tmp_path)
    write_table(tmp_path, "ownership", *({**_WHOLE, "event": "unloaded", "by": by} for by in ("policy", None, "admin")))

    assert replayed(tmp_path).inputs.ignored_unloads == 2


@pytest.mark.parametrize("second", [0.0, 59.0, 119.0])
def test_a_warmup_that_leaves_nothing_to_score_is_refused(tmp_path: Path, second: float) -> None:
    """A log whose last tick with a lookup begins before the warm-up ends is refused; nothing was replayed."""
    write_log(tmp_path, {}, {"ts": START_US + round(second * MICRO)})
    begins = int(second) // 60 * 60

    with pytest.raises(InputError, match=rf"^warmup_s = 61 .* begins {begins} s after"):
        replayed(tmp_path, evaluation={"warmup_s": 61})
    assert not (tmp_path / "output" / "decisions").exists()


def test_one_lookup_after_the_warmup_is_scored(tmp_path: Path) -> None:
    """The tick that begins when the warm-up ends counts, be it in one cluster of several."""
    write_log(tmp_path, {}, {"ts": START_US + 60 * MICRO}, {"cluster": "west"})

    outcome = replayed(tmp_path, evaluation={"warmup_s": 60})

    (answered,) = (one for one in outcome.sums if (one.cluster, one.metric) == ("east", "answered_ratio"))
    assert answered.sums.sum(axis=0).tolist() == [1.0, 1.0]


def test_cycles_of_the_warmup_are_recorded_but_not_added_up(tmp_path: Path) -> None:
    """What a shedder did is summed over the time that figures are of."""
    write_log(tmp_path, {}, {"ts": START_US + 300 * MICRO})
    policy = {"name": "p", "selector": "random", "shedder": "threshold"}

    outcome = replayed(tmp_path, policies=[policy], evaluation={"warmup_s": 240, "seeds": [1, 2]})

    recorded = pq.read_table(tmp_path / "output" / "cycles").num_rows
    assert (recorded, outcome.inputs.cycles["p"].cycles) == (6 * 2, 2 * 2)


_FAILING = """
from typing import ClassVar
from dataclasses import dataclass
from lookup.hooks import hookimpl

@dataclass(frozen=True)
class Failing:
    name: ClassVar[str] = "failing"
    reads: ClassVar[frozenset[str]] = frozenset()

    def odds(self, request, brokers, scores, view):
        raise KeyError("rack")

@hookimpl
def lookup_register_selectors():
    return [Failing]
"""


def test_failures_that_are_let_pass_add_up_over_clusters_and_seeds(tmp_path: Path) -> None:
    """A policy that fails at the one lookup of each of two clusters, with each of three seeds, fails six times."""
    (tmp_path / "failing.py").write_text(_FAILING)
    write_log(tmp_path, {}, {"cluster": "west"})
    policies = [{"name": "p", "selector": "failing", "on_error": "skip"}, {"name": "q", "selector": "random"}]
    files, evaluation = [str(tmp_path / "failing.py")], {"seeds": [1, 2, 3]}
    inputs = replayed(tmp_path, policies=policies, plugin_files=files, evaluation=evaluation).inputs

    assert inputs.failures == {"p": 6}


def test_a_second_run_to_the_same_place_counts_anew(tmp_path: Path) -> None:
    """What a worker keeps of one run never answers for another, also where both have rows at the same times."""
    write_log(tmp_path, *({"ts": START_US + second * MICRO, "client": "web.example.com"} for second in range(9)))
    labels = [{"match": {"client": "web.*"}, "properties": {"rack": rack}} for rack in "ab"]

    ratios = []
    for label in labels:
        outcome = replayed(tmp_path, clients=[label], evaluation={"default_bundles": 1})
        ratios += [one.sums.sum(axis=0).tolist() for one in outcome.sums if one.metric == "match_ratio"]

    assert ratios == [[9.0, 9.0], [0.0, 9.0]]


def test_weights_count_anew_in_a_second_run_to_the_same_place(tmp_path: Path) -> None:
    """A log that was rewritten between two runs of a session is read as it is by then."""
    served = []
    for weight in (1.0, 3.0):
        write_log(tmp_path, *({"ts": START_US + second * MICRO, "weight": weight} for second in range(9)))
        outcome = replayed(tmp_path)
        served += [one.sums[:, 1].sum() for one in outcome.sums if one.metric == "imbalance_cv"]

    assert served == [9.0, 27.0]


_HASHING = """
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32
from lookup.hooks import hookimpl

@dataclass(frozen=True)
class ByName:
    name: ClassVar[str] = "by-name"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "properties.rack"})

    def odds(self, request, brokers, scores, view):
        hashes = [crc32(f"{request.bundle} {broker.id}".encode()) for broker in brokers]
        asks = request.property_of("rack") == "b"
        return [float(not asks or one == max(hashes)) for one in hashes]

@hookimpl
def lookup_register_selectors():
    return [ByName]
"""


def test_policies_that_ignore_the_salt_are_named(tmp_path: Path) -> None:
    """The outcome names the part that hashes what a client of some cluster sends, and nobody else's."""
    (tmp_path / "hashing.py").write_text(_HASHING)
    write_log(tmp_path, {}, {"cluster": "west", "properties": '{"rack":"b"}'})
    policies = [
        {"name": "p", "selector": {"use": "explore", "child": "by-name"}},
        {"name": "q", "selector": "rendezvous"},
        {"name": "r", "selector": "random"},
    ]
    outcome = replayed(tmp_path, policies=policies, plugin_files=[str(tmp_path / "hashing.py")])

    assert outcome.unsalted == {"p": ("by-name",)}


_NINE_ROWS = tuple(
    {"ts": LOOKUP["ts"] + second * 1_000_000, "topic": f"persistent://t/n/{second}"} for second in range(9)
)


def seeds_of(folder: Path, rows: tuple[dict[str, Any], ...] = _NINE_ROWS, **evaluation: Any) -> tuple[int, ...]:
    """Replay a log and return the seeds."""
    write_log(folder, *rows)
    outcome: ReplayOutcome = replayed(folder, evaluation=evaluation)

    assert {part.seed for part in outcome.sums if part.policy == "p"} == set(outcome.seeds)
    return outcome.seeds


def test_a_list_is_taken_as_it_is(tmp_path: Path) -> None:
    """Whatever the log."""
    assert seeds_of(tmp_path, seeds=[7, 3]) == (7, 3)


def test_a_number_is_drawn(tmp_path: Path) -> None:
    """So many different ones, the same for the same log, and fewer are among more."""
    drawn = seeds_of(tmp_path / "a", seeds=5)

    assert len(set(drawn)) == 5
    assert seeds_of(tmp_path / "b", seeds=5) == drawn
    assert set(seeds_of(tmp_path / "c", seeds=3)) < set(drawn)


def test_how_a_log_is_cut_into_files_does_not_matter(tmp_path: Path) -> None:
    """A log is its lookups."""
    whole = seeds_of(tmp_path / "whole", seeds=4)
    parts = tmp_path / "parts"
    for number, rows in enumerate((_NINE_ROWS[:2], _NINE_ROWS[2:])):
        write_rows([{**LOOKUP, **row} for row in rows], "lookups", parts / "lookups" / f"part-{number}.parquet")

    assert replayed(parts, evaluation={"seeds": 4}).seeds == whole


def test_another_log_has_others(tmp_path: Path) -> None:
    """A lookup less, another day or another cluster is another log."""
    day = 86_400 * 1_000_000
    logs = (
        _NINE_ROWS,
        _NINE_ROWS[:-1],
        tuple({**row, "ts": row["ts"] + day} for row in _NINE_ROWS),
        tuple({**row, "cluster": "west"} for row in _NINE_ROWS),
    )
    found = [set(seeds_of(tmp_path / str(number), rows, seeds=5)) for number, rows in enumerate(logs)]

    assert all(not one & other for place, one in enumerate(found) for other in found[:place])


def test_another_draw_has_others(tmp_path: Path) -> None:
    """Of the same log."""
    first, second = (set(seeds_of(tmp_path / str(draw), seeds=5, draw=draw)) for draw in (0, 1))

    assert not first & second
