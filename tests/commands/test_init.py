"""`lookup init`: what it writes passes the check, what it prints runs, and it replaces nothing."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.settings import load_evaluation
from tests.commands.projects import Run, names_in

_LINES = [f"{1769860800 + 7 * n}\th{n % 5}\t/page-{n % 40}\tz{n % 3}" for n in range(300)]
_LOG = "\n".join(["time\thost\turl\tzone", *_LINES])


def test_the_commands_that_it_prints_run(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a log to a report; brokers have the labels of the clients, and a policy goes by them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    Path("my log.tsv").write_text(_LOG, encoding="utf-8")

    ran = lookup("init", "trial", "--log", "my log.tsv")

    assert ran.code == 0, ran.err
    assert names_in(tmp_path / "trial") == ["brokers.toml", "evaluation.toml", "mapping.toml"]
    ingest, inspect, evaluate = map(shlex.split, ran.out.splitlines())
    assert ingest[-2:] == ["--master", "none"]
    assert lookup(*ingest[1:]).code == 0
    checked = lookup("config", "check", inspect[3])
    assert re.search("no mistakes; .*4 policies, 6 brokers", checked.out)
    assert "suggested" in lookup(*inspect[1:]).out
    done = lookup(*evaluate[1:])
    assert done.code in (0, 3, 4), done.err
    assert "zone-then-load" in done.out


def test_without_a_log_there_is_a_sample(lookup: Run, tmp_path: Path) -> None:
    """The settings have no mistake before there is one, and the sample goes where they look for it."""
    ran = lookup("init", tmp_path / "trial")

    assert ran.code == 0, ran.err
    generate, evaluate = map(shlex.split, ran.out.splitlines())
    assert lookup(*generate[1:], "--lookups", "1000").code == 0
    checked = lookup("config", "check", evaluate[2])
    assert (checked.code, "warning: inputs" in checked.err) == (0, False), checked.err


@pytest.mark.parametrize("policy", ["stock-modular-4.2", "stock-extensible-5.0"])
def test_the_incumbent_is_what_the_tables_beside_the_log_name(lookup: Run, tmp_path: Path, policy: str) -> None:
    """Load manager and release of BROKERS choose it, and the other tables are read: its shedder can act."""
    log = tmp_path / "record"
    generate(GenerateSettings(lookups=3_000, policy=policy, topics=200, clients=60), log)

    ran = lookup("init", tmp_path / "trial", "--log", log / "lookups", "--cluster", "east")
    written = tomllib.loads((tmp_path / "trial" / "evaluation.toml").read_text(encoding="utf-8"))
    done = lookup(*shlex.split(ran.out.splitlines()[-1])[1:], "--master", "none", "--set", "evaluation.seeds=[1]")

    assert written["evaluation"]["incumbent"] == policy
    assert written["evaluation"]["default_bundles"] == GenerateSettings().bundles_per_namespace
    assert set(written["inputs"]) == {"lookups", "brokers", "loads", "bundles", "ownership"}
    assert len(written["brokers"]) == 24
    assert all(broker["capacity"] > 1e8 for broker in written["brokers"])
    assert done.code in (0, 3, 4), done.err
    assert "cannot act" not in done.out


def test_a_log_that_names_no_load_manager_has_the_one_that_reads_properties(lookup: Run, tmp_path: Path) -> None:
    """Its brokers are of that class as well."""
    (tmp_path / "log.tsv").write_text(_LOG, encoding="utf-8")

    lookup("init", tmp_path / "trial", "--log", tmp_path / "log.tsv")

    assert 'incumbent = "stock-extensible-4.2"' in (tmp_path / "trial" / "evaluation.toml").read_text()
    assert "ExtensibleLoadManagerImpl" in (tmp_path / "trial" / "brokers.toml").read_text()


def test_a_broker_conf_is_the_incumbent(lookup: Run, tmp_path: Path) -> None:
    """As it is written, with the other keys of the release."""
    shedder = "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder"
    (tmp_path / "broker.conf").write_text(f"loadBalancerLoadSheddingStrategy={shedder}\n")
    (tmp_path / "log.tsv").write_text(_LOG, encoding="utf-8")

    flags = ("--log", tmp_path / "log.tsv", "--broker-conf", tmp_path / "broker.conf")
    assert lookup("init", tmp_path / "trial", *flags).code == 0

    settings = load_evaluation(tmp_path / "trial" / "evaluation.toml", environ={})
    assert (settings.evaluation.incumbent, settings.policies[0].shedder.use) == ("today", "overload")
    assert "ModularLoadManagerImpl" in (tmp_path / "trial" / "brokers.toml").read_text()


def test_each_label_has_two_brokers(lookup: Run, tmp_path: Path) -> None:
    """A policy that goes by labels has a choice, however many there are."""
    lines = [f"{1769860800 + n}\th{n % 5}\t/page-{n % 40}\tz{n % 7}" for n in range(300)]
    (tmp_path / "log.tsv").write_text("\n".join(["time\thost\turl\tzone", *lines]), encoding="utf-8")

    assert lookup("init", tmp_path / "trial", "--log", tmp_path / "log.tsv").code == 0

    assert "\ncount = 14\n" in (tmp_path / "trial" / "evaluation.toml").read_text(encoding="utf-8")


def test_what_stands_in_comments_may_be_used(lookup: Run, tmp_path: Path) -> None:
    """Settings that are written for their reader to uncomment are right."""
    (tmp_path / "log.tsv").write_text("time\thost\turl\n1769860800\t10.1.0.1\t/a\n", encoding="utf-8")
    assert lookup("init", tmp_path / "trial", "--log", tmp_path / "log.tsv").code == 0
    written = tmp_path / "trial" / "evaluation.toml"
    used = re.sub(r"^( *)# (?=\[|\w+ = |\"shipped)", r"\1", written.read_text(encoding="utf-8"), flags=re.MULTILINE)
    written.write_text(used, encoding="utf-8")

    checked = lookup("config", "check", written)

    assert (checked.code, "\n[[clients]]\n" in used) == (0, True), checked.err


def test_objects_with_keys_of_ones_own_become_a_table(lookup: Run, tmp_path: Path) -> None:
    """What is written reads the log, but for the line that is no object."""
    record = {"destination": "persistent://acme/ns/orders", "az": "a", "size": 12}
    lines = "".join(json.dumps({"epoch_ms": 1791266402107 + n, **record}) + "\n" for n in range(30))
    (tmp_path / "log.jsonl").write_text(f"{lines}no object\n", encoding="utf-8")

    assert lookup("init", tmp_path / "trial", "--log", tmp_path / "log.jsonl").code == 0
    ran = lookup(
        *("ingest", tmp_path / "log.jsonl", "--mapping", tmp_path / "trial" / "mapping.toml", "--cluster", "c"),
        *("--output", tmp_path / "tables", "--master", "none", "--format", "json"),
    )

    printed = json.loads(ran.out)
    assert (printed["rows"], sum(printed["quarantined"].values())) == ({"lookups": 30}, 1)
    assert printed["first"] == "2026-10-06T06:00:02.107000Z"


def test_nothing_is_replaced(lookup: Run, tmp_path: Path) -> None:
    """A file that is there already is named, and no other is written."""
    (tmp_path / "evaluation.toml").write_text("mine", encoding="utf-8")

    (mistake,) = lookup("init", tmp_path).mistakes

    assert mistake.startswith(f"{tmp_path}/evaluation.toml exists already")
    assert names_in(tmp_path) == ["evaluation.toml"]


@pytest.mark.parametrize(("folder", "relation"), [("logs", "is"), ("logs/trial", "lies in")])
def test_a_folder_that_is_read_as_a_log_is_not_written_into(
    lookup: Run, tmp_path: Path, folder: str, relation: str
) -> None:
    """The next command would read the settings as lines of the log; beside the one file that is read they may stand."""
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "log.tsv"
    log.write_text("time\tclient\ttopic\n2026-03-02T08:00:00Z\th1\tpersistent://a/b/c\n")

    (mistake,) = lookup("init", tmp_path / folder, "--log", log.parent).mistakes

    assert mistake.startswith(f"{tmp_path}/{folder} {relation} {log.parent}, which is --log")
    assert [path.name for path in log.parent.iterdir()] == ["log.tsv"]
    assert lookup("init", log.parent, "--log", log).code == 0


def test_a_log_of_no_known_form_is_one_sentence(lookup: Run, tmp_path: Path) -> None:
    """And leaves no folder behind."""
    (tmp_path / "log").write_text("words\n", encoding="utf-8")

    (mistake,) = lookup("init", tmp_path / "trial", "--log", tmp_path / "log").mistakes

    assert mistake.startswith(f"{tmp_path}/log: is in no form")
    assert names_in(tmp_path) == ["log"]


def test_the_first_lookup_is_shown_as_it_is_read(lookup: Run, tmp_path: Path) -> None:
    """So that a wrong guess is seen at once; a dash stands for what the log does not have."""
    (tmp_path / "log.csv").write_text("when,topic\n2026-01-31 12:00:00,acme/ns/orders\n", encoding="utf-8")

    ran = lookup("init", tmp_path / "trial", "--log", tmp_path / "log.csv", "--cluster", "east")

    values = ("time 2026-01-31T12:00:00Z", "cluster east", "topic persistent://acme/ns/orders", "client –", "broker –")
    assert ", ".join(values) in ran.err
