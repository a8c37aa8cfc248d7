"""One run in one go on a real cluster: record, ingest, evaluate, shadow, decide, verify, evaluate everything."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.acceptance.pulsar.cluster import RACKS, Broker
from tests.acceptance.pulsar.jvm import Installation, with_bridge
from tests.acceptance.pulsar.live import Live, rows_of, running_live, topics_by_bundle
from tests.processes import awaited

pytestmark = pytest.mark.pulsar

_RECORDED, _SHADOWED, _DECIDED, _BEREFT = "public/recorded", "public/shadowed", "public/decided", "public/bereft"
#: Bundles of a namespace that are looked up, and all.
_ASKED, _BUNDLES = 24, 25
#: The broker on which shadow is tried.
_CANARY = "B"
_EVALUATION = """
[evaluation]
incumbent = "stock"
load = "reported"
owner_loss = "leader"
warmup_s = 0
seeds = 2

[inputs]
lookups = "record/lookups"
brokers = "collected/brokers"
loads = "collected/loads"
bundles = "collected/bundles"
ownership = "ingested/ownership"

[[policies]]
name = "stock"
selector = "least-resource-usage"
"""
_POLICY = """
[[policies]]
name = "rack-then-load"
scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = "best"
"""
#: Every mark of a verdict; `lookup evaluate` prints one behind each figure of a candidate.
_MARKS = frozenset("▲▼=≡?△▽▴▾")


@dataclass
class _Run:
    """What clients were answered in each step, and what the commands printed."""

    live: Live
    truth: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    printed: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)
    #: exit codes of the server and of the collector after SIGTERM
    ended: list[int] = field(default_factory=list)

    def first_answers(self, namespace: str) -> list[dict[str, Any]]:
        """Return the truth of the first lookup of each bundle in a namespace."""
        return self.truth[namespace][:_ASKED]

    def decisions(self, namespace: str) -> list[dict[str, Any]]:
        """Return the recorded decisions that lookups of a namespace's topics have caused."""
        rows = rows_of(self.live.folder / "record" / "decisions")
        topics = {row["topic"] for row in self.truth[namespace]}
        return [row for row in rows if row["topic"] in topics]

    def recorded(self, namespace: str) -> list[dict[str, Any]]:
        """Return the recorded lookups of a namespace's topics, without those of topics that brokers look up."""
        rows = rows_of(self.live.folder / "record" / "lookups")
        topics = {row["topic"] for row in self.truth[namespace]}
        return [row for row in rows if row["topic"] in topics]

    def rack_of(self, broker: str | None) -> str | None:
        """Return the rack of a broker's id."""
        return next((known.rack for known in self.live.cluster.brokers.values() if known.id == broker), None)


def _look_up(run: _Run, namespace: str, asked: Sequence[Broker] = ()) -> None:
    """Look every bundle of a new namespace up, then again from all racks and without properties; note the truth.

    Args:
        asked: who is asked first about each bundle; by default every broker that runs.
    """
    live = run.live
    live.cluster.create_namespace(namespace, _BUNDLES)
    topics = [*topics_by_bundle(namespace, _BUNDLES).values()]
    brokers, any_of = itertools.cycle(live.cluster.running), itertools.cycle(asked or live.cluster.running)
    first = [(rack, next(any_of), topic) for rack, topic in zip(itertools.cycle(RACKS), topics, strict=False)]
    again = [(rack, next(brokers), topic) for rack in ("B", "", "A") for topic in topics]
    run.truth[namespace] = live.look_up(first) + live.look_up(again)
    awaited(lambda: len(run.recorded(namespace)) >= len(run.truth[namespace]))


def _evaluate(run: _Run, report: str) -> None:
    """Ingest the brokers' logs, for owners and for who had them unloaded, and evaluate what has been recorded."""
    live = run.live
    run.printed[f"ingest {report}"] = live.ingest_logs()
    namespaces = (live.folder / "collected" / "namespaces.toml").read_text(encoding="utf-8")
    (live.folder / "evaluation.toml").write_text(_EVALUATION + _POLICY + namespaces, encoding="utf-8")
    run.printed[f"evaluate {report}"] = live.run("evaluate", "evaluation.toml", "--output", report)


@pytest.fixture(scope="module")
def run(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Run]:
    """Play the steps of docs/live.md on one cluster, command by command, as an operator types them."""
    try:
        with_bridge(installed)
    except RuntimeError as error:
        pytest.skip(str(error))
    with running_live(installed, tmp_path_factory.mktemp("live"), "record") as live:
        yield _played(live)


def _played(live: Live) -> _Run:
    run = _Run(live)
    live.write_serving(None, "")
    server = live.begin_server()
    live.cluster.set_debug(on=True)
    collector = live.begin_collector()
    _look_up(run, _RECORDED)

    _evaluate(run, "before")

    live.write_serving("rack-then-load", _POLICY)
    live.reload(server, "rack-then-load")
    live.roll_out("shadow", _CANARY)
    _look_up(run, _SHADOWED, [live.cluster.brokers[_CANARY]])

    live.roll_out("decide")
    _look_up(run, _DECIDED)
    live.cluster.kill(live.cluster.brokers["C"])
    live.await_brokers(len(RACKS) - 1)
    _look_up(run, _BEREFT)

    run.ended = [live.end(server), live.end(collector)]
    run.printed["verify"] = live.run("verify", "record")
    _evaluate(run, "after")
    return run


def test_every_client_is_answered(run: _Run) -> None:
    """In no step any lookup of a client fails."""
    assert [row for rows in run.truth.values() for row in rows if row["broker"] is None] == []
    assert run.ended == [0, 0]


@pytest.mark.parametrize("namespace", [_RECORDED, _SHADOWED, _DECIDED, _BEREFT])
def test_record_has_every_lookup_with_its_properties(run: _Run, namespace: str) -> None:
    """In every mode the record has what clients asked, with their properties, and what they were answered."""
    expected = Counter(
        (row["asked"], row["topic"], json.dumps(row["properties"], sort_keys=True), row["broker"])
        for row in run.truth[namespace]
    )

    assert expected == Counter(
        (
            row["asked_broker"],
            row["topic"],
            json.dumps(json.loads(row["properties"] or "{}"), sort_keys=True),
            row["broker"],
        )
        for row in run.recorded(namespace)
    )


def test_logs_add_the_clients_that_the_record_lacks(run: _Run) -> None:
    """`lookup ingest` of the brokers' DEBUG logs finds the same lookups and answers, with each client's address."""
    assert run.printed["ingest after"].returncode == 0, run.printed["ingest after"].stderr
    logged = Counter(
        (row["client"], row["topic"], row["broker"]) for row in rows_of(run.live.folder / "ingested" / "lookups")
    )

    asked = Counter(
        (row["local"].rpartition(":")[0], row["topic"], row["broker"]) for rows in run.truth.values() for row in rows
    )
    assert asked - logged == Counter()


def test_what_was_recorded_is_evaluated(run: _Run) -> None:
    """`lookup evaluate` reads the tables of the record while it grows, and prints a verdict on each figure."""
    for name in ("evaluate before", "evaluate after"):
        done = run.printed[name]
        assert done.returncode in (0, 3, 4), done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("| ↑ match_ratio[rack]")]
        assert _MARKS & set(line), done.stdout


def test_shadow_records_decisions_and_changes_no_owner(run: _Run) -> None:
    """In shadow the policy's choice for each bundle is recorded, and the bundle gets and keeps the broker's own."""
    decisions = run.decisions(_SHADOWED)
    answered = {row["topic"]: row["broker"] for row in run.first_answers(_SHADOWED)}

    assert {row["carried"] for row in decisions} == {False}
    assert Counter(row["topic"] for row in decisions) == Counter(list(answered))
    assert {row["propensity"] for row in run.recorded(_SHADOWED)} == {None}
    assert [row for row in run.truth[_SHADOWED] if row["broker"] != answered[row["topic"]]] == []
    # By chance the broker's own choice is the policy's for a third of the bundles; for all it would be the policy's.
    assert sum(row["broker"] != answered[row["topic"]] for row in decisions) > 0


def test_decide_gives_every_first_lookup_a_broker_of_its_rack(run: _Run) -> None:
    """A bundle's first lookup gets a broker of the client's rack: all of them while the rack has a broker."""
    for namespace, racks in ((_DECIDED, {"A", "B", "C"}), (_BEREFT, {"A", "B"})):
        first = [row for row in run.first_answers(namespace) if row["properties"]["rack"] in racks]
        assert len(first) == _ASKED * len(racks) // len(RACKS)
        assert [row for row in first if run.rack_of(row["broker"]) != row["properties"]["rack"]] == []


def test_answers_of_decided_bundles_have_true_propensities(run: _Run) -> None:
    """Every lookup of a decided bundle is recorded with the odds under which its owner was drawn."""
    for namespace in (_DECIDED, _BEREFT):
        decided = {row["topic"]: row for row in run.decisions(namespace) if row["carried"]}
        assert len(decided) == _ASKED
        for row in run.recorded(namespace):
            decision = decided[row["topic"]]
            assert (row["broker"], row["propensity"]) == (decision["broker"], dict(decision["odds"])[row["broker"]])


def test_every_decision_is_verified(run: _Run) -> None:
    """`lookup verify` takes each decision of the whole run again, and all agree."""
    done = run.printed["verify"]
    count = len(rows_of(run.live.folder / "record" / "decisions"))

    assert count >= 3 * _ASKED
    assert (done.returncode, done.stdout) == (0, f"{count} of {count} decisions agree, 100.00%\n"), done.stderr


def test_collector_recorded_the_decided_owners(run: _Run) -> None:
    """The first owner of each decided bundle in the collector's record is what its first client was answered."""
    owned = [row for row in rows_of(run.live.folder / "collected" / "ownership") if row["event"] == "owned"]
    first = {row["bundle"]: row["broker"] for row in reversed(owned)}

    answered = zip(topics_by_bundle(_DECIDED, _BUNDLES), run.first_answers(_DECIDED), strict=True)
    assert [(bundle, row["broker"]) for bundle, row in answered if first.get(bundle) != row["broker"]] == []
