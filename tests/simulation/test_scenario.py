"""Scenarios as written: what is read, and what is wrong with them in sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import SettingsError
from lookup.simulation import read_scenario
from tests.simulation.scenarios import SMALL, written


def test_a_group_is_numbered_from_one(tmp_path: Path) -> None:
    """`{n}` stands for the number."""
    text = SMALL.replace('{ id = "b2", capacity', '{ id = "b{n:02}", count = 2, capacity').replace(
        '"b2" = 1', '"b02" = 1'
    )

    assert read_scenario(written(tmp_path, text)).scenario.broker_ids == ("b1", "b01", "b02")


#: A line of a scenario, and the sentence it ends in.
SENTENCES = [
    ("minuts = 3", "small.scenario: minuts: there is no such key; did you mean 'minutes'?"),
    ("events = [{ at = 1 }]", "events[0]: nothing happens: give leave, join or factor"),
    ("events = [{ at = 1, topics = [1] }]", "factor: the event names a load but not how much it changes"),
    ("events = [{ at = 12, factor = 1.0 }]", "minute 12 does not come, the last one is 11"),
    ('events = [{ at = 1, leave = ["b3"] }]', "there is no broker 'b3'; known: b1, b2"),
    ("events = [{ at = 1, topics = [8], factor = 2.0 }]", "minute 1 names topic 8, the last one of 't/n' is 7"),
    ('events = [{ at = 1, namespace = "t/m", factor = 2.0 }]', "there is no namespace 't/m'; did you mean 't/n'?"),
    ('assertions = [{ figure = "moves" }]', "assertions[0]: should have at_most or at_least"),
    ('assertions = [{ figure = "moves", policy = "x", at_most = 1 }]', "there is no policy 'x'; known: stays"),
    ('assertions = [{ figure = "speed", at_most = 1 }]', "assertions[0].figure"),
    (
        'assertions = [{ figure = "moves", at_least = 2, at_most = 1 }]',
        "assertions[0].at_least: 2 is more than at_most, 1; no figure is both",
    ),
    (
        'assertions = [{ figure = "moves", policy = "stays", unlike = ["stays"], at_most = 1 }]',
        "assertions[0].unlike: 'stays' is the policy the assertion is about; name others",
    ),
    (
        'assertions = [{ figure = "moves", unlike = ["stay"], at_most = 1 }]',
        "assertions: there is no policy 'stay'; did you mean 'stays'?",
    ),
    (
        'assertions = [{ figure = "matched", at_most = 1 }]',
        "assertions: matched needs clients that send properties; give the scenario `properties`",
    ),
    (
        'events = [{ at = 2, leave = ["b1"] }, { at = 1, leave = ["b1"] }]',
        "events: minute 2: 'b1' cannot leave, it is not there",
    ),
    ('events = [{ at = 2, join = ["b1"] }]', "events: minute 2: 'b1' cannot join, it is there"),
    ('reports = "new"', "reports: should be 'fresh' or 'published', not 'new'"),
    ("history = 1.5", "history: should be less than or equal to 1, not 1.5"),
    ("seed = true", "seed"),
    ("minutes: 3", "small.scenario: is not valid TOML"),
]


@pytest.mark.parametrize(("more", "sentence"), SENTENCES)
def test_a_mistake_is_a_sentence(tmp_path: Path, more: str, sentence: str) -> None:
    """With file and place."""
    with pytest.raises(SettingsError) as caught:
        read_scenario(written(tmp_path, f"{SMALL}{more}\n"))

    assert any(sentence in problem for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("window = 2", "window = 13", "window: 13 minutes"),
        ('id = "b2"', 'id = "b1"', "brokers: 'b1' occurs"),
        ('"b2" = 1', '"bb" = 1', "owners: .* 'bb'"),
        ('"b1" = 3', '"b1" = 30', "owners: 31 bundles"),
        ("capacity = 20.0", "capacity = 20.0, present = false", "owners: 'b2' is not present"),
        ('id = "b2", ', 'id = "b2", count = 2, ', r"brokers\[1\].id: 'b2' "),
        ("capacity = 20.0", "capacity = 0.0", r"brokers\[1\].capacity: "),
        ("capacity = 20.0", "capacity = 2.0, busy = 70", r"brokers\[1\].busy: "),
        ("t/n", "public", r"namespaces\[0\].name: namespace 'public' "),
        ("bundles = 4", "bundles = 4_000_000", r"namespaces\[0\].bundles: "),
        ("minutes = 12", "minutes = 0", "minutes: "),
        ('"round-robin"', '"round-robin", bundles = 8', r"policies\[0\].bundles: "),
    ],
)
def test_tables_have_to_meet(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    """Names are given once and exist, and the window lies within the scenario."""
    with pytest.raises(SettingsError, match=sentence):
        read_scenario(written(tmp_path, SMALL.replace(before, after)))


def test_what_i_run_today_is_beside_the_scenario(tmp_path: Path) -> None:
    """A path to a broker.conf is relative to the file that names it."""
    shedder = "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"
    (tmp_path / "broker.conf").write_text(f"loadBalancerLoadSheddingStrategy={shedder}\n", encoding="utf-8")
    text = SMALL.replace('selector = "round-robin"', 'from_broker_conf = "broker.conf"')
    (policy,) = read_scenario(written(tmp_path, text)).scenario.policies

    assert policy.shedder is not None
    assert policy.shedder.use == "uniform"


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are told."""
    path = tmp_path / "small.scenario"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not UTF-8 text"):
        read_scenario(path)
