"""`lookup.evaluate`: what a program or a notebook gets, and what it is told of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lookup
from lookup.errors import InputError, PulsarLookupError, SettingsError
from lookup.logs.jobs import InProcess
from tests.replay.small import LOOKUP

_RACK = {"name": "rack", "scorers": ["property-match"], "selector": "best"}
_SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": [1, 2]},
    "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("ab")],
    "policies": [{"name": "stock", "selector": "random"}, _RACK],
}


def log_of_racks(days: int = 0) -> pa.Table:
    """Return a hundred lookups of two racks for forty topics, one every ten seconds, so many days later."""
    rows = [
        {
            **LOOKUP,
            "ts": LOOKUP["ts"] + days * 86_400_000_000 + number * 10_000_000,
            "seq": number,
            "topic": f"persistent://t/n{number % 40}/x",
            "properties": json.dumps({"rack": "ab"[number % 40 % 2]}),
        }
        for number in range(100)
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the log as a table and return its path."""
    path = tmp_path_factory.mktemp("log") / "lookups.parquet"
    pq.write_table(log_of_racks(), path)
    return path


@pytest.fixture(scope="module")
def found(path: Path) -> Any:
    """Evaluate the settings over the log."""
    return lookup.evaluate(path, settings=_SETTINGS, workers=InProcess())


def test_no_settings_are_needed(path: Path, tmp_path: Path) -> None:
    """Policies are names, paths and mappings, and win over those of settings; the figures are the same."""
    (tmp_path / "rack.toml").write_text('name = "rack"\nscorers = ["property-match"]\nselector = "best"\n')
    given: dict[str, Any] = {"incumbent": "random", "brokers": _SETTINGS["brokers"], "workers": InProcess()}
    file = tmp_path / "rack.toml"

    found = [lookup.evaluate(path, policies=["random", one], **given) for one in (_RACK, file, str(file))]
    given |= {"settings": _SETTINGS, "overrides": {"evaluation.seeds": 7}}
    found.append(lookup.evaluate(path, policies=["shipped:random", _RACK], **given))

    assert found[0].figures.query("metric == 'match_ratio' and policy == 'rack'")["value"].tolist()[0] == 1.0
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0].figures, other.figures)


def test_results_are_tables(found: Any, tmp_path: Path) -> None:
    """Figures, decisions and owners are DataFrames, with columns even without rows, and agree with the files."""
    found.write(tmp_path / "results")

    summary = json.loads((tmp_path / "results" / "summary.json").read_text(encoding="utf-8"))
    assert found.figures["value"].dropna().tolist() == [
        row["value"] for row in summary["figures"] if row["value"] is not None
    ]
    assert (set(found.decisions["policy"]), set(found.decisions["seed"])) == ({"stock", "rack"}, {1, 2})
    assert set(found.owners.columns) >= {"bundle", "broker", "ended_by"}
    assert (found.exit_code, len(found.cycles), len(found.quarantine)) == (0, 0, 0)
    assert {"ts", "label", "accepted"} <= set(found.cycles.columns)
    assert {"source", "line", "reason"} <= set(found.quarantine.columns)
    assert found.report == (tmp_path / "results" / "report.md").read_text(encoding="utf-8")
    assert found.conclusion in found._repr_html_()
    assert found._repr_html_().count("<tr>") >= 10
    assert repr(found) == f"<Evaluation of stock (incumbent), rack; 1 cluster, 100 lookups: {found.conclusion}>"


def test_everything_in_a_folder_is_a_frame(tmp_path: Path) -> None:
    """Of a run with shedders, when it ends and when it is opened again."""
    log = lookup.generate(lookups=2000, clusters=1, topics=60, clients=60, hours=2, namespaces=8)
    rows = log.lookups.drop(columns="broker")
    rows.loc[rows.index[:3], "topic"] = "no topic"
    shedding = {"name": "shed", "selector": "random", "shedder": {"use": "threshold", "threshold": 0.05}}
    given = {
        "policies": [*_SETTINGS["policies"], shedding],
        "incumbent": "stock",
        "overrides": {"evaluation.seeds": [1, 2]},
    }
    tables = {"brokers": log.brokers, "ownership": log.ownership}
    found = lookup.evaluate(rows, **given, **tables, output=tmp_path / "run", workers=InProcess())

    again = lookup.open_run(tmp_path / "run")

    names = "figures decisions owners cycles cells flows quarantine findings".split()
    for name in names:
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name))
        assert len(getattr(found, name).columns), name
    assert set(found.quarantine["source"]) == {"lookups"}
    assert (len(found.quarantine), set(found.cycles["policy"])) == (3, {"shed"})
    assert found.cells["weight"].sum() > 0
    assert found.flows["lookups"].sum() > 0
    assert again.document() == json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert again.manifest["settings"]["evaluation"]["seeds"] == [1, 2]
    assert (repr(again), again.exit_code) == (repr(found), found.exit_code)
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        lookup.open_run(tmp_path)


def test_settings_may_be_a_file(path: Path, tmp_path: Path) -> None:
    """With paths relative to its folder; results go where they are wanted."""
    (tmp_path / "evaluation.toml").write_text(
        f'inputs = {{ lookups = "{path}" }}\n[evaluation]\nincumbent = "a"\nseeds = 1\n'
        '[[brokers]]\nid = "b:1"\n[[policies]]\nname = "a"\nselector = "random"\n',
        encoding="utf-8",
    )
    said: list[str] = []
    given = {"output": tmp_path / "out", "workers": InProcess(), "progress": said.append}

    found = lookup.evaluate(settings=tmp_path / "evaluation.toml", **given)

    assert found.folder == str(tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").exists()
    assert any("replaying 1 policy" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "which policies? give policies and incumbent, or settings"),
        ({"policies": ["random"]}, "which policies? "),
        ({"policies": "random", "incumbent": "random"}, "policies is 'random', "),
        ({"policies": ["randm"], "incumbent": "randm"}, "policies: no policy ships under the name 'randm'; did you "),
        ({"policies": ["random", {"name": "p"}], "incumbent": "random"}, "policies[1].selector: is missing"),
        ({"policies": ["random", 3], "incumbent": "random"}, "policies[1]: "),
        ({"policies": ["random"], "incumbent": "rndom"}, "incumbent: there is no policy named 'rndom'; did you mean"),
        ({"settings": _SETTINGS, "lookups": None}, "there is no log: give lookups='PATH', or inputs.lookups"),
        ({"settings": {**_SETTINGS, "evaluation": {"tik_s": 5}}}, "settings: evaluation.incumbent: is missing"),
        ({"settings": _SETTINGS, "overrides": {"evaluation.tik_s": 30}}, "overrides: there is no setting "),
    ],
)
def test_mistakes_are_sentences_about_arguments(path: Path, given: dict[str, Any], sentence: str) -> None:
    """No flag is named: there is no command line."""
    with pytest.raises(PulsarLookupError) as raised:
        lookup.evaluate(**{"lookups": path, "workers": InProcess(), **given})

    assert str(raised.value).startswith(sentence)


def test_public_names_alone_are_listed() -> None:
    """Before they are loaded; what the package itself uses is not among them, and what does not exist is refused."""
    listed = {name for name in dir(lookup) if not name.startswith("__")}

    assert {"confirm", "evaluate", "errors", "inspect", "simulate", "Broker", "hookimpl"} <= listed
    assert listed.isdisjoint({"Any", "TYPE_CHECKING", "import_module", "_FUNCTIONS", "_WHOLE"})
    assert all(hasattr(lookup, name) for name in listed)
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        lookup.evalute  # noqa: B018


def test_the_winner_is_replayed_with_other_seeds(path: Path, tmp_path: Path) -> None:
    """It and the incumbent alone, over the same log or another; what is left of every difference is said."""
    settings = {
        "evaluation": {"incumbent": "stock", "seeds": 5},
        "verdict": {"primary": ["match_ratio"]},
        "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("abab")],
        "policies": [*_SETTINGS["policies"], {"name": "same", "selector": "random"}],
    }
    run = lookup.evaluate(path, settings=settings, output=tmp_path / "run", workers=InProcess())

    again, left = lookup.confirm(tmp_path / "run", workers=InProcess())
    later, _ = lookup.confirm(tmp_path / "run", log_of_racks(days=1), workers=InProcess())

    seeds = [each.manifest["seeds"] for each in (run, again)]
    assert len(seeds[0]) == len(seeds[1]) == 5
    assert not set(seeds[0]) & set(seeds[1])
    assert again.results.policies == ("stock", "rack")
    assert left[0].startswith("Changes of rack in ")
    assert any(sentence.startswith("match_ratio[rack]: +") for sentence in left)
    assert later.results.inputs.first_us > run.results.inputs.first_us


def test_a_run_without_candidates_confirms_nothing(path: Path, tmp_path: Path) -> None:
    """It says what to name."""
    alone = {**_SETTINGS, "policies": _SETTINGS["policies"][:1]}
    lookup.evaluate(path, settings=alone, output=tmp_path / "run", workers=InProcess())

    with pytest.raises(SettingsError, match="has no winner"):
        lookup.confirm(tmp_path / "run", workers=InProcess())
    with pytest.raises(InputError, match="is not empty"):
        lookup.evaluate(path, settings=alone, output=tmp_path, workers=InProcess())


def test_a_cluster_without_answers_is_warned_of(path: Path) -> None:
    """It is no note alone, which a quiet command leaves out: policies that answer nobody are alike."""
    between = {"from": "2026-01-01T23:56:01Z", "until": "2026-01-01T23:56:09Z"}
    settings = {**_SETTINGS, "brokers": [{"id": "b:8080", **between}]}
    said: list[str] = []

    lookup.evaluate(path, settings=settings, workers=InProcess(), warn=said.append)

    assert [sentence for sentence in said if sentence.startswith("No policy") and "cluster east" in sentence]
