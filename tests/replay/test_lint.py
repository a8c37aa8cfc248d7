"""Settings without effect: each fault of a catalogue is found, and about sound settings nothing is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.replay.inspecting import inspect_log
from lookup.replay.outcome import Finding
from tests.replay.small import evaluation_in, replayed, write_log, write_table
from tests.replay.worlds import START_US

_RACKS = ("a", "b", "c")
#: Filters that reject all or half.
_PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl
from lookup.model import Reason


@dataclass(frozen=True)
class Half:
    name: ClassVar[str] = "half"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()
    which: int = 0

    def admit(self, request, brokers, view):
        return [(number % 2 == self.which) or self.which > 1 for number in brokers.index]


@dataclass(frozen=True)
class Nobody:
    name: ClassVar[str] = "nobody"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = frozenset()

    def admit(self, request, brokers, view):
        return [False] * len(brokers)


@dataclass(frozen=True)
class OtherHalf(Half):
    name: ClassVar[str] = "other-half"
    which: int = 1


@hookimpl
def lookup_register_filters():
    return (Half, OtherHalf, Nobody)
"""
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
    plugin = folder / "planted.py"
    plugin.write_text(_PLUGIN, encoding="utf-8")
    settings = evaluation_in(folder, **{**_SOUND, "plugin_files": [str(plugin)], **given})
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


_FAULTS: list[tuple[str, str, dict[str, Any], str | None]] = [
    (
        "client-rule",
        "clients[1], '10.9.0.0/16', labels no client",
        {
            "clients": [
                *_SOUND["clients"],
                {"match": {"cidr": "10.9.0.0/16"}, "properties": {"rack": "a"}},
            ]
        },
        None,
    ),
    (
        "client-rule",
        "clients[0] comes first and matches all of its clients",
        {
            "clients": [
                {"match": {"cidr": "10.0.0.0/16"}, "properties": {"zone": "z1"}},
                {"match": {"cidr": "10.0.0.0/24"}, "properties": {"zone": "z2"}},
            ]
        },
        None,
    ),
    ("namespace", "did you mean 't/n'?", {"namespaces": [{"name": "t/nn", "bundles": 4}]}, None),
    (
        "isolation",
        "no broker has such a host",
        {"namespaces": [{"name": "t/n", "bundles": 4, "isolation": [{"primary": ["brokr-.*", "broker-.*"]}]}]},
        None,
    ),
    (
        "policy-key",
        "did you mean 'rack'?",
        _new(scorers=[{"use": "property-match", "key": "rck", "weight": 0.7}, {"use": "headroom", "weight": 0.3}]),
        None,
    ),
    (
        "policy-key",
        "clients send rack, zone",
        _new(scorers=[{"use": "property-match", "key": "colour", "weight": 0.7}, {"use": "headroom", "weight": 0.3}]),
        None,
    ),
    (
        "broker-key",
        "clients send 'rack', which no broker publishes",
        {"brokers": [{**entry, "properties": {"lookup.rakc": entry["id"][7]}} for entry in _BROKERS]},
        None,
    ),
    ("client-label", "clients send rack = d, which no broker has", {}, '{"rack":"d"}'),
    ("client-label", "'A' and 'a' are not the same", {}, '{"rack":"A"}'),
    (
        "broker-label",
        "brokers have rack = z, which no client sends",
        {"brokers": [*_BROKERS, {"id": "broker-z:8080", "properties": {"lookup.rack": "z"}}]},
        None,
    ),
    (
        "scorer",
        "the scores of property-match never differ",
        {"brokers": [{"id": f"broker-{n}:8080", "properties": {"lookup.rack": "a"}} for n in range(3)]},
        None,
    ),
    ("filters", "its filters leave no broker (all of", _new(filters=["nobody"], scorers=[_RACK]), None),
    (
        "filters",
        "rejections by filtered",
        _new(filters=["half", "other-half"], scorers=[_RACK]),
        None,
    ),
    (
        "selector",
        "the selector random does not go by its scores",
        _new(scorers=[_RACK], selector="random"),
        None,
    ),
    (
        "weight",
        "the weight 0.3 of headroom changes nothing",
        # With one broker for each label, nothing is left for load to decide.
        {"brokers": _BROKERS[::2]},
        None,
    ),
    (
        "no-load",
        "stock, new go by load, and load was 0 or nearly so",
        {
            "brokers": [{"id": f"broker-{n}:8080", "properties": {"lookup.rack": "abc"[n % 3]}} for n in range(90)],
            "evaluation": {**_EVALUATION, "session_s": 60},
        },
        None,
    ),
    (
        "broker-label",
        "brokers publish rack, tier, and no client sends any property",
        {"clients": [], "policies": [_STOCK]},
        "{}",
    ),
    (
        "client-key",
        "'rck', which no broker publishes (600 of 600 lookups): brokers publish rack, tier; did you mean 'rack'?",
        {"clients": [{"match": {"cidr": "10.0.0.0/24"}, "properties": {"rck": "a"}}]},
        None,
    ),
    (
        "few-blocks",
        "the log has 10 blocks of 60 s, fewer than verdict.min_units = 20 (599 s are scored)",
        {"evaluation": {**_EVALUATION, "balance_s": 60}, "verdict": {"block_s": 30, "min_units": 20}},
        None,
    ),
    (
        "few-blocks",
        "give evaluation.balance_s = 60 and verdict.block_s = 60",
        {"evaluation": {**_EVALUATION, "balance_s": 300}, "verdict": {"min_units": 5}},
        None,
    ),
    (
        "few-blocks",
        "inconclusive for that; take a longer log, of 600 s at least",
        {"evaluation": {**_EVALUATION, "warmup_s": 300}, "verdict": {"block_s": 30, "min_units": 20}},
        None,
    ),
    (
        "short-session",
        "in evaluation.session_s = 30 a broker serves few lookups (on average 5.0 lookups in east)",
        {"evaluation": {**_EVALUATION, "session_s": 30}},
        None,
    ),
    (
        "short-session",
        "give evaluation.session_s = 600, if sessions of clients last that long",
        {"evaluation": {**_EVALUATION, "session_s": 120}},
        None,
    ),
    (
        "capacity-unit",
        "a broker of east has a capacity of 100000 weight/s on average, and serves 0.1669 weight/s",
        {"brokers": [{**entry, "capacity": 1e5} for entry in _BROKERS]},
        None,
    ),
    (
        "capacity-unit",
        "state it in weight/s: about 0.334 if brokers are half used on average",
        {"brokers": [{**entry, "capacity": 0.01} for entry in _BROKERS]},
        None,
    ),
    (
        "no-capacity",
        "some brokers have a capacity, and others have none: broker-c0:8080, broker-c1:8080 (2 of 6 brokers)",
        {"brokers": [*({**entry, "capacity": 0.3} for entry in _BROKERS[:4]), *_BROKERS[4:]]},
        None,
    ),
    (
        "single-broker",
        "new goes by rack, and each rack has one broker (3 labels)",
        {"brokers": _BROKERS[::2]},
        None,
    ),
    ("alike", "policies 'stock' and 'twin' decide alike", {"policies": [_STOCK, {**_STOCK, "name": "twin"}]}, None),
]


@pytest.mark.parametrize(
    ("rule", "says", "given", "properties"),
    _FAULTS,
    ids=[f"{number}-{fault[0]}" for number, fault in enumerate(_FAULTS)],
)
def test_planted_fault_is_found(
    rule: str, says: str, given: dict[str, Any], properties: str | None, tmp_path: Path
) -> None:
    """Each fault of the catalogue has a finding of its rule: what, how often, evidence, remedy."""
    found = _findings(tmp_path, _log(**({"properties": properties} if properties else {})), **given)

    sentences = [finding.sentence for finding in found if finding.rule == rule]
    assert any(says in sentence for sentence in sentences), [finding.sentence for finding in found]
    assert all(all(asdict(finding).values()) for finding in found)


def test_policies_that_shed_other_namespaces_are_not_alike(tmp_path: Path) -> None:
    """They state the same odds, and unload other bundles."""
    shedding = {**_STOCK, "shedder": "threshold"}
    policies = [shedding, {**shedding, "name": "spares", "excluded_namespaces": ["team/a"]}]

    assert "alike" not in {finding.rule for finding in _findings(tmp_path, _log(), policies=policies)}


def test_every_run_notes_the_findings(tmp_path: Path) -> None:
    """A replay has the findings that a look at its log has, and none without a fault."""
    write_log(tmp_path, *_log())
    fault = _new(scorers=[{"use": "property-match", "key": "rck", "weight": 0.7}, {"use": "headroom", "weight": 0.3}])

    sound, faulty = (replayed(tmp_path, **{**_SOUND, **given}).inputs for given in ({}, fault))

    assert sound.findings is None
    assert [finding.rule for finding in faulty.findings or ()] == ["policy-key", "scorer"]


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
    assert [finding.rule for finding in some.findings or ()] == ["no-capacity"]


def test_times_that_are_all_midnights_are_found(tmp_path: Path) -> None:
    """Of a log whose times are days; one lookup at another moment says that there is a time of day."""
    days = [{**row, "ts": START_US // 86_400_000_000 * 86_400_000_000} for row in _log()]

    assert "time-of-day" in {finding.rule for finding in _findings(tmp_path / "days", days)}
    assert "time-of-day" not in {finding.rule for finding in _findings(tmp_path / "one", [*days[:-1], _log()[7]])}


@pytest.mark.parametrize(("times", "is_found"), [(1, False), (2, True), (3, False)])
def test_a_log_that_is_there_twice_is_found(tmp_path: Path, times: int, *, is_found: bool) -> None:
    """Whichever files its rows are in; clients that ask three times at once are no copy."""
    rows = [{**row, "ts": START_US + number * 1_000} for number, row in enumerate(_log() * 30)]

    assert ("doubled" in {finding.rule for finding in _findings(tmp_path, rows * times)}) == is_found


def test_many_lookups_in_one_second_are_no_copy(tmp_path: Path) -> None:
    """A clock of whole seconds, and topics that many clients ask for in each."""
    rows = [{**row, "ts": START_US + number // 7 * 1_000_000} for number, row in enumerate(_log() * 60)]

    assert "doubled" not in {finding.rule for finding in _findings(tmp_path, rows)}


_OWNED = {"ts": START_US - 1, "cluster": "east", "event": "owned", "broker": "broker-a0:8080"}


@pytest.mark.parametrize(("bundles", "owned"), [(8, 2), (4, 0), (None, 0)])
def test_other_bundles_than_the_owners_named_are_found(tmp_path: Path, bundles: int | None, owned: int) -> None:
    """The log of owners names two of a namespace's four, and a policy with eight has neither."""
    ends = ("0x00000000_0x40000000", "0x40000000_0x80000000")
    write_table(tmp_path, "ownership", *({**_OWNED, "bundle": f"t/m/{of}"} for of in ends))
    log = [{**row, "topic": row["topic"].replace("t/n", "t/m")} for row in _log()]
    own = {} if bundles is None else {"bundles": bundles}
    found = [one for one in _findings(tmp_path, log, **_new(scorers=[_RACK], **own)) if one.rule == "bundles"]

    assert [one.how_often for one in found] == [f"{owned} of 2 bundles that it names"] * bool(owned)


def test_policies_that_differ_in_their_bundles_do_not_decide_alike(tmp_path: Path) -> None:
    """Their odds are the same, and what they place is not."""
    same = {"policies": [_STOCK, {**_STOCK, "name": "new"}]}
    other = {"policies": [_STOCK, {**_STOCK, "name": "new", "bundles": 16}]}

    assert "alike" in {one.rule for one in _findings(tmp_path / "a", _log(), **same)}
    assert "alike" not in {one.rule for one in _findings(tmp_path / "b", _log(), **other)}
