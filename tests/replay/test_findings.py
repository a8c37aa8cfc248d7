"""Settings held against a log: each fault of a catalogue is found, and about sound settings nothing is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.replay.inspecting import inspect_log
from lookup.replay.outcome import Finding
from tests.replay.small import LOOKUP, evaluation_in, replayed, write_log, write_table
from tests.replay.worlds import START_US

_RACKS = ("a", "b", "c")
_RACK = {"use": "property-match", "key": "rack", "weight": 0.7}
_STOCK = {"name": "stock", "selector": "least-resource-usage"}
_RACK_THEN_LOAD = {"name": "new", "scorers": [_RACK, {"use": "headroom", "weight": 0.3}], "selector": "best"}
_BROKERS = [
    {"id": f"broker-{rack}{number}:8080", "properties": {"lookup.rack": rack, "lookup.tier": "gold"}}
    for rack in _RACKS
    for number in range(2)
]
#: For a log of ten minutes: twenty blocks of 30 s, and a session in which a broker serves some fifty lookups.
_EVALUATION = {"incumbent": "stock", "tick_s": 30, "session_s": 300, "balance_s": 30}
#: Settings about which nothing is to be said.
_SOUND: Mapping[str, Any] = {
    "evaluation": _EVALUATION,
    "verdict": {"block_s": 30},
    "brokers": _BROKERS,
    "policies": [_STOCK, _RACK_THEN_LOAD],
    "clients": [{"match": {"cidr": "10.0.0.0/24"}, "properties": {"zone": "z1"}}],
    "namespaces": [{"name": "t/n", "bundles": 4, "isolation": [{"primary": ["broker-.*"]}]}],
}


def _new(**policy: Any) -> dict[str, Any]:
    """Return settings with another policy as the candidate."""
    return {"policies": [_STOCK, {"name": "new", "selector": "best", **policy}]}


def _findings(folder: Path, log: list[dict[str, Any]], **given: Any) -> list[Finding]:
    folder.mkdir(exist_ok=True)
    write_log(folder, *log)
    settings = evaluation_in(folder, **{**_SOUND, **given})
    policies = build_policies(load_plugins(settings.plugin_files), settings.policies)
    (folder / "work").mkdir()
    inspection = inspect_log(str(folder / "lookups"), str(folder / "work"), settings=settings, policies=policies)
    return list(inspection.findings)


def _log(**changed: Any) -> list[dict[str, Any]]:
    """Return ten minutes of lookups, one a second, of clients of all racks; half of them send what is given instead."""
    rows = []
    for number in range(600):
        sent = f'{{"rack":"{_RACKS[number % 3]}"}}'
        topic = f"persistent://t/n/topic-{number % 40}"
        row = {"ts": START_US + number * 1_000_000, "topic": topic, "client": f"10.0.0.{number % 7}:5000"}
        rows.append({**row, "properties": changed.get("properties", sent) if number % 2 else sent})
    # A log without labels has none at all.
    return [{**row, "properties": None} for row in rows] if changed.get("properties") == "{}" else rows


def test_sound_settings_have_no_findings(tmp_path: Path) -> None:
    """Where every rule applies, every label meets and every part changes something, nothing is said."""
    assert _findings(tmp_path, _log()) == []


#: Kind, count, a part of the sentence, settings, and what half of the clients send in place of a rack.
_FAULTS: list[tuple[str, int, str, dict[str, Any], str | None]] = [
    (
        "client-rule",
        0,
        "clients[1], '10.9.0.0/16', ",
        {"clients": [*_SOUND["clients"], {"match": {"cidr": "10.9.0.0/16"}, "properties": {"rack": "a"}}]},
        None,
    ),
    ("namespace", 0, "did you mean 't/n'?", {"namespaces": [{"name": "t/nn", "bundles": 4}]}, None),
    (
        "isolation",
        0,
        "'brokr-.*'",
        {"namespaces": [{"name": "t/n", "bundles": 4, "isolation": [{"primary": ["brokr-.*", "broker-.*"]}]}]},
        None,
    ),
    ("policy-key", 0, "did you mean 'rack'?", _new(scorers=[{"use": "property-match", "key": "rck"}]), None),
    ("policy-key", 0, "clients send rack, zone", _new(scorers=[{"use": "property-match", "key": "colour"}]), None),
    (
        "broker-key",
        600,
        "did you mean 'rakc'?",
        {"brokers": [{**entry, "properties": {"lookup.rakc": entry["id"][7]}} for entry in _BROKERS]},
        None,
    ),
    ("client-label", 300, "rack = d, ", {}, '{"rack":"d"}'),
    ("broker-label", 0, "brokers publish rack, tier, ", {"clients": [], "policies": [_STOCK]}, "{}"),
    (
        "few-blocks",
        10,
        "verdict.min_units = 20",
        {"evaluation": {**_EVALUATION, "balance_s": 60}, "verdict": {"block_s": 30, "min_units": 20}},
        None,
    ),
    (
        "few-blocks",
        1,
        "give evaluation.balance_s = 60 and verdict.block_s = 60",
        {"evaluation": {**_EVALUATION, "balance_s": 300}, "verdict": {"min_units": 5}},
        None,
    ),
    ("short-session", 5, "evaluation.session_s = 600", {"evaluation": {**_EVALUATION, "session_s": 30}}, None),
    ("capacity-unit", 6, "0.1669 weight/s", {"brokers": [{**entry, "capacity": 1e5} for entry in _BROKERS]}, None),
    ("capacity-unit", 6, "about 0.334 ", {"brokers": [{**entry, "capacity": 0.01} for entry in _BROKERS]}, None),
    (
        "no-capacity",
        2,
        "broker-c0:8080, broker-c1:8080",
        {"brokers": [*({**entry, "capacity": 0.3} for entry in _BROKERS[:4]), *_BROKERS[4:]]},
        None,
    ),
]


@pytest.mark.parametrize(
    ("kind", "count", "says", "given", "properties"),
    _FAULTS,
    ids=[f"{number}-{fault[0]}" for number, fault in enumerate(_FAULTS)],
)
def test_planted_fault_is_found(
    kind: str, count: int, says: str, given: dict[str, Any], properties: str | None, tmp_path: Path
) -> None:
    """Each fault of the catalogue has one finding of its kind, with its count."""
    found = _findings(tmp_path, _log(**({"properties": properties} if properties else {})), **given)

    (finding,) = [finding for finding in found if finding.kind == kind]
    assert finding.count == count
    assert says in finding.sentence


def test_a_part_that_goes_by_levels_of_a_place_needs_one_of_them(tmp_path: Path) -> None:
    """A log need not have regions for a part that goes by region, zone and rack."""
    found = _findings(tmp_path, _log(), **_new(scorers=["topology-distance"]))

    assert "policy-key" not in {finding.kind for finding in found}


def test_every_run_notes_the_findings(tmp_path: Path) -> None:
    """A replay has the findings that a look at its log has, and none without a fault."""
    write_log(tmp_path, *_log())
    fault = _new(scorers=[{"use": "property-match", "key": "rck", "weight": 0.7}, {"use": "headroom", "weight": 0.3}])

    sound, faulty = (replayed(tmp_path, **{**_SOUND, **given}).inputs for given in ({}, fault))

    assert sound.findings is None
    assert [finding.kind for finding in faulty.findings or ()] == ["policy-key"]


def test_capacities_of_some_brokers_are_not_called_given(tmp_path: Path) -> None:
    """How many have none is a fact of its own: a third word for it would keep earlier versions from reading the run."""
    write_log(tmp_path, *_log())
    with_one = [{**entry, "capacity": 0.3} for entry in _BROKERS]

    some, every, none = (
        replayed(tmp_path, **{**_SOUND, "brokers": brokers}).inputs
        for brokers in ([*with_one[1:], _BROKERS[0]], with_one, _BROKERS)
    )

    assert (some.capacity, some.without_capacity) == (None, {"east": 1})
    assert some.document()["without_capacity"] == {"east": 1}
    assert [(one.capacity, one.without_capacity) for one in (every, none)] == [("given", None), ("assumed", None)]
    assert "without_capacity" not in every.document()
    assert [finding.kind for finding in some.findings or ()] == ["no-capacity"]


def test_times_that_are_all_midnights_are_found(tmp_path: Path) -> None:
    """Of a log whose times are days; one lookup at another moment says that there is a time of day."""
    days = [{**row, "ts": START_US // 86_400_000_000 * 86_400_000_000} for row in _log()]

    assert "time-of-day" in {finding.kind for finding in _findings(tmp_path / "days", days)}
    assert "time-of-day" not in {finding.kind for finding in _findings(tmp_path / "one", [*days[:-1], _log()[7]])}


@pytest.mark.parametrize(("times", "is_found"), [(1, False), (2, True), (3, False)])
def test_a_log_that_is_there_twice_is_found(tmp_path: Path, times: int, *, is_found: bool) -> None:
    """Whichever files its rows are in; clients that ask three times at once are no copy."""
    rows = [{**row, "ts": START_US + number * 1_000} for number, row in enumerate(_log() * 30)]

    assert ("doubled" in {finding.kind for finding in _findings(tmp_path, rows * times)}) == is_found


def test_many_lookups_in_one_second_are_no_copy(tmp_path: Path) -> None:
    """A clock of whole seconds, and topics that many clients ask for in each."""
    rows = [{**row, "ts": START_US + number // 7 * 1_000_000} for number, row in enumerate(_log() * 60)]

    assert "doubled" not in {finding.kind for finding in _findings(tmp_path, rows)}


_OWNED = {"ts": START_US - 1, "cluster": "east", "event": "owned", "broker": "broker-a0:8080"}


@pytest.mark.parametrize(("bundles", "owned"), [(8, 2), (4, 0), (None, 0)])
def test_other_bundles_than_the_owners_named_are_found(tmp_path: Path, bundles: int | None, owned: int) -> None:
    """The log of owners names two of a namespace's four, and a policy with eight has neither."""
    ends = ("0x00000000_0x40000000", "0x40000000_0x80000000")
    write_table(tmp_path, "ownership", *({**_OWNED, "bundle": f"t/m/{of}"} for of in ends))
    log = [{**row, "topic": row["topic"].replace("t/n", "t/m")} for row in _log()]
    own = {} if bundles is None else {"bundles": bundles}
    found = [one for one in _findings(tmp_path, log, **_new(scorers=[_RACK], **own)) if one.kind == "bundles"]

    assert [one.count for one in found] == [owned] * bool(owned)


@pytest.mark.parametrize("default", [4, 16, 8, 2])
@pytest.mark.parametrize("table", ["ownership", "bundles"])
def test_bundles_that_no_namespace_has_are_found(tmp_path: Path, table: str, default: int) -> None:
    """The tables name a bundle of four, so another default leaves them without effect."""
    bundle = "t/m/0x40000000_0x80000000"
    row = (
        {**_OWNED, "bundle": bundle}
        if table == "ownership"
        else {"ts": START_US, "cluster": "east", "bundle": bundle, "stats": "{}"}
    )
    write_table(tmp_path, table, row)
    log = [{**row, "topic": row["topic"].replace("t/n", "t/m")} for row in _log()]
    found = _findings(tmp_path, log, evaluation={**_EVALUATION, "default_bundles": default})

    # Load of a bundle is shared out to finer ones.
    is_ignored = default != 4 if table == "ownership" else default < 4
    assert [one.count for one in found if one.kind == "bundles"] == [1] * is_ignored


@pytest.mark.parametrize(
    ("release", "bundles", "count"), [("5.0", None, 1), ("5.0", 32, 0), ("4.2", None, 0)], ids=["5.0", "given", "same"]
)
def test_a_release_that_creates_namespaces_with_more_bundles_is_a_finding(
    tmp_path: Path, release: str, bundles: int | None, count: int
) -> None:
    """The default of a release is for namespaces that it creates, and the replay keeps the bundles of all."""
    (tmp_path / "broker.conf").write_text("webServicePort=8080\n")
    conf = {"from_broker_conf": str(tmp_path / "broker.conf"), "pulsar": release}
    new = {"name": "new", **conf} | ({} if bundles is None else {"bundles": bundles})
    policies = [{"name": "stock", **conf, "pulsar": "4.2"}, new]

    found = [one for one in _findings(tmp_path, _log(), policies=policies) if one.kind == "new-namespaces"]

    assert [one.count for one in found] == [1] * count


_NAMESPACES = 20


def _skewed(folder: Path, heavy: int, **given: Any) -> list[Finding]:
    """Replay ten lookups of each of twenty namespaces and so many more of the first; return the findings of a kind."""
    topics = [f"persistent://t/n{number}/x" for number in [*list(range(_NAMESPACES)) * 10, *[0] * heavy]]
    write_log(
        folder, *({"ts": LOOKUP["ts"] + second * 1_000_000, "topic": topic} for second, topic in enumerate(topics))
    )
    outcome = replayed(folder, evaluation={"default_bundles": 1}, **given)
    return [finding for finding in outcome.inputs.findings or () if finding.kind == "skewed"]


def test_one_bundle_with_most_of_the_traffic_is_a_finding(tmp_path: Path) -> None:
    """With its share, and how many bundles the log is worth: 490² / (300² + 19 · 10²)."""
    (finding,) = _skewed(tmp_path, heavy=290)

    assert finding.count == 20
    assert "61%" in finding.sentence
    assert "2.6 bundles of equal weight" in finding.sentence


def test_traffic_that_is_spread_is_none(tmp_path: Path) -> None:
    """Twenty equal bundles are twenty, and a limit below the evidence asks for nothing."""
    assert _skewed(tmp_path / "even", heavy=0) == []
    assert _skewed(tmp_path / "enough", heavy=290, verdict={"min_units": 2}) == []


def test_it_can_be_accepted(tmp_path: Path) -> None:
    """As every finding."""
    assert _skewed(tmp_path, heavy=290, lint={"accept": ["skewed"]}) == []


def test_with_bundles_capacities_are_in_bytes(tmp_path: Path) -> None:
    """One in bytes is no other unit, and a cluster without any is found."""
    write_log(tmp_path, *_log())
    stats = json.dumps({"msgThroughputIn": 1e6, "msgThroughputOut": 1e6})
    write_table(
        tmp_path, "bundles", {"ts": START_US, "cluster": "east", "bundle": "t/n/0x00000000_0x40000000", "stats": stats}
    )
    in_bytes = [{**entry, "capacity": 4e6} for entry in _BROKERS]

    without, given = (
        replayed(tmp_path, **{**_SOUND, "brokers": brokers}).inputs.findings or () for brokers in (_BROKERS, in_bytes)
    )

    assert ([finding.kind for finding in without], [*given]) == (["no-capacity"], [])
