"""`lookup explain`: one request, every policy, and every way to ask for it wrongly."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands.projects import EVALUATION, Run, evaluation

FILTERED = """
[[policies]]
name = "few-topics"
filters = [{ use = "load-manager-class", class_name = "org.example.Other" }]
selector = "best"
"""


def _asked(lookup: Run, config: Path, *flags: object) -> dict[str, Any]:
    ran = lookup("explain", config, "--topic", "orders", "--format", "json", *flags)

    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def _policy(found: dict[str, Any], name: str) -> dict[str, Any]:
    policy: dict[str, Any] = next(one for one in found["policies"] if one["policy"] == name)
    return policy


def test_the_rack_wins_and_the_table_says_why(lookup: Run, tmp_path: Path) -> None:
    """The table names bundle and properties, and of every broker the odds, the sum and each scorer's part in it."""
    ran = lookup("explain", evaluation(tmp_path), "--topic", "orders", "--property", "rack=a", "--at", AT)

    assert ran.code == 0
    assert "bundle:     public/default/0x80000000_0xc0000000" in ran.out
    assert "brokers:    2 of 3 registered at 2026-01-01T00:00:00Z" in ran.out
    section = ran.out.partition("policy rack")[2]
    assert "property-match × 0.7" in section
    assert _cells(section, "broker-a:8080") == ["broker-a:8080", "1.0000", "0.8500", "1.0000", "0.5000"]
    assert _cells(section, "broker-b:8080") == ["broker-b:8080", "0.0000", "0.1500", "0.0000", "0.5000"]
    assert "Chosen: broker-a:8080 (1.0000)." in section
    assert "Margin: 0.7000 to" in section
    assert "note: rack read load" in ran.err


AT = "2026-01-01T00:00:00Z"


def _cells(text: str, broker: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"|{broker}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_broker_s_name_of_a_property_is_warned_of(lookup: Run, tmp_path: Path, output: str) -> None:
    """The prefix is the brokers': a client's `rack` meets their `lookup.rack`, a client's `lookup.rack` nothing."""
    flags = ("--topic", "t", "--property", "lookup.rack=a", "--property", "lookup.=b", "--property", "app=c")

    ran = lookup("explain", evaluation(tmp_path), *flags, "--format", output)

    (warning,) = (line for line in ran.err.splitlines() if line.startswith("warning: "))
    assert ran.code == 0
    assert warning.startswith("warning: --property lookup.rack: ")
    assert warning.endswith("clients send rack")


def test_rejections_are_reasoned(lookup: Run, tmp_path: Path) -> None:
    """A rejected broker is listed with the filter's reason and words; with no broker left the policy declines."""
    ran = lookup("explain", evaluation(tmp_path, FILTERED), "--topic", "orders")

    section = ran.out.partition("policy few-topics")[2]
    assert "Rejected: broker-a:8080 by load-manager-class: " in section
    assert "|broker-a:8080" not in section
    assert "Declined: no-candidates." in section


def test_registration_ends_at_its_instant(lookup: Run, tmp_path: Path) -> None:
    """`--at` decides who is registered, in [from, until)."""
    config = evaluation(tmp_path)

    counts = [
        len(_policy(_asked(lookup, config, "--at", at), "stock")["brokers"])
        for at in ("2026-01-01T11:59:59Z", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00Z")
    ]
    assert counts == [2, 3, 2]


def test_the_default_moment_is_the_last_registration(lookup: Run, tmp_path: Path) -> None:
    """Without `--at` it is when a broker last registered; the answer says when."""
    found = _asked(lookup, evaluation(tmp_path))

    assert found["at"] == "2026-01-01T12:00:00Z"
    assert len(_policy(found, "stock")["brokers"]) == 3


def test_a_client_gets_its_labels(lookup: Run, tmp_path: Path) -> None:
    """Properties of `[[clients]]` are added to those that are sent, which win."""
    text = '[[clients]]\nmatch = { cidr = "10.1.0.0/16" }\nproperties = { rack = "b", app = "x" }\n'
    config = evaluation(tmp_path, text)

    found = _asked(lookup, config, "--client", "10.1.2.3", "--property", "app=mine")

    assert found["request"]["properties"] == {"app": "mine", "rack": "b"}


def test_clusters_are_told_apart(lookup: Run, tmp_path: Path) -> None:
    """If brokers belong to clusters, one must be named; a wrong name gets a suggestion."""
    config = evaluation(tmp_path, start=EVALUATION.replace("capacity = 100.0", 'clusters = ["east", "west"]', 1))

    (missing,) = lookup("explain", config, "--topic", "t").mistakes
    assert missing.endswith("give --cluster; known: east, west")
    (wrong,) = lookup("explain", config, "--topic", "t", "--cluster", "eats").mistakes
    assert wrong.startswith("--cluster: ")
    assert wrong.endswith("did you mean 'east'?")
    assert _asked(lookup, config, "--cluster", "west")["cluster"] == "west"


def test_without_arrow_the_table_is_left_out(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without Arrow explains with `[[brokers]]` and warns that the table was not read."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    ran = lookup("explain", evaluation(tmp_path), "--topic", "t", "--set", "inputs.brokers=/no/table")

    assert ran.code == 0
    assert "inputs.brokers is not read" in ran.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--topic", "persistent://a"), "topic 'persistent://a' is not"),
        (("--topic", "t", "--property", "rack"), "--property: 'rack' should be"),
        (("--topic", "t", "--usage", "broker-a=1"), "--usage: there is no broker"),
        (("--topic", "t", "--usage", "broker-a:8080=nan"), "--usage: 'nan' is not"),
        (("--topic", "t", "--at", "noon"), "--at: 'noon' is not"),
        (("--topic", "t", "--set", "inputs.brokers=/no/table"), "/no/table: "),
        (("--topic", "t", "--set", "evaluation.tick=1"), "command line: "),
    ],
)
def test_wrong_requests_are_one_sentence(lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    """Any mistake in the request ends in one sentence and exit code 2."""
    (mistake,) = lookup("explain", evaluation(tmp_path), *flags).mistakes

    assert mistake.startswith(sentence)


def test_one_policy_is_explained(lookup: Run, tmp_path: Path) -> None:
    """`--policy` chooses, in its own order; a name that does not exist gets a suggestion."""
    path = evaluation(tmp_path)

    assert [entry["policy"] for entry in _asked(lookup, path, "--policy", "rack")["policies"]] == ["rack"]
    both = _asked(lookup, path, "--policy", "rack", "--policy", "stock", "--policy", "rack")
    assert [entry["policy"] for entry in both["policies"]] == ["rack", "stock"]
    ran = lookup("explain", path, "--topic", "t", "--policy", "rak")
    assert "did you mean 'rack'" in ran.mistakes[0]


def test_a_load_is_supposed_of_all_brokers(lookup: Run, tmp_path: Path) -> None:
    """`*` stands for every broker that is not named."""
    flags = ("--usage", "*=0.5", "--usage", "broker-b:8080=0.9", "--at", AT)

    found = _policy(_asked(lookup, evaluation(tmp_path), *flags), "rack")

    assert {entry["broker"]: round(entry["scores"]["headroom"], 9) for entry in found["brokers"]} == {
        "broker-a:8080": 0.5,
        "broker-b:8080": 0.1,
    }


def test_a_property_that_no_policy_reads_is_noted(lookup: Run, tmp_path: Path) -> None:
    """With the one that was probably meant."""
    ran = lookup("explain", evaluation(tmp_path), "--topic", "t", "--property", "rakc=a")

    assert "note: --property rakc: " in ran.err
