"""`lookup.evaluate`: what a program or a notebook gets, from a log in any form, and what it is told of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lookup
from lookup.errors import InputError, SettingsError
from lookup.logs.jobs import InProcess
from tests.replay.small import LOOKUP

_SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": [1, 2]},
    "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("ab")],
    "policies": [
        {"name": "stock", "selector": "random"},
        {"name": "rack", "scorers": ["property-match"], "selector": "best"},
    ],
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write the log as a table and return its path."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    return tmp_path / "lookups.parquet"


def _figures(found: Any) -> pd.DataFrame:
    return found.figures


def test_the_form_of_the_log_does_not_matter(path: Path) -> None:
    """A path, a table of Arrow and one of pandas give the same figures."""
    table = log_of_racks()

    found = [
        lookup.evaluate(_SETTINGS, log, workers=InProcess()) for log in (path, str(path), table, table.to_pandas())
    ]

    assert found[0].figures.query("metric == 'match_ratio' and policy == 'rack'")["value"].tolist()[0] == 1.0
    for other in found[1:]:
        pd.testing.assert_frame_equal(_figures(found[0]), _figures(other))


@pytest.mark.spark
def test_a_session_and_its_tables_are_used(spark: SparkSession, path: Path) -> None:
    """A DataFrame of Spark is replayed by its session, with the same figures."""
    frame = spark.createDataFrame(log_of_racks().to_pandas())

    pd.testing.assert_frame_equal(
        _figures(lookup.evaluate(_SETTINGS, frame)), _figures(lookup.evaluate(_SETTINGS, path, workers=InProcess()))
    )


def test_results_are_tables(path: Path, tmp_path: Path) -> None:
    """Figures, verdicts, decisions and owners are DataFrames; they agree with what is written."""
    found = lookup.evaluate(_SETTINGS, path, overrides={"evaluation.seeds": [3]}, workers=InProcess())

    found.write(tmp_path / "results")
    summary = json.loads((tmp_path / "results" / "summary.json").read_text(encoding="utf-8"))
    assert found.figures["value"].dropna().tolist() == [row["value"] for row in summary["figures"] if row["value"] is not None]
    assert set(found.decisions["policy"]) == {"stock", "rack"}
    assert set(found.decisions["seed"]) == {3}
    assert set(found.owners.columns) >= {"bundle", "broker", "ended_by"}
    assert found.exit_code == 0
    assert found.report == (tmp_path / "results" / "report.md").read_text(encoding="utf-8")
    assert found.conclusion in found._repr_html_()
    assert found._repr_html_().count("<tr>") > 10


def test_everything_in_a_folder_is_a_frame(tmp_path: Path) -> None:
    """Of a run with shedders and of one without, when it ends and when it is opened again."""
    log = lookup.generate(lookups=2000, clusters=1, topics=60, clients=60, hours=2, namespaces=8)
    rows = log.lookups.drop(columns="broker")
    rows.loc[rows.index[:3], "topic"] = "no topic"
    shedding = {"name": "shed", "selector": "random", "shedder": {"use": "threshold", "threshold": 0.05}}
    settings = {**_SETTINGS, "policies": [*_SETTINGS["policies"], shedding], "clients": []}
    del settings["brokers"]
    found = lookup.evaluate(
        settings, rows, brokers=log.brokers, ownership=log.ownership, output=tmp_path / "run", workers=InProcess()
    )

    again = lookup.open_run(tmp_path / "run")

    names = "metrics verdicts decisions owners cycles cells flows quarantine findings winners fidelity".split()
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


def test_a_table_without_rows_has_its_columns(path: Path) -> None:
    """No shedder has a cycle, and no row is in quarantine."""
    found = lookup.evaluate(_SETTINGS, path, workers=InProcess())

    assert (len(found.cycles), len(found.quarantine)) == (0, 0)
    assert {"ts", "label", "accepted"} <= set(found.cycles.columns)
    assert {"source", "line", "reason"} <= set(found.quarantine.columns)


def test_a_folder_that_is_no_run_is_a_sentence(tmp_path: Path) -> None:
    """As the commands say it."""
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        lookup.open_run(tmp_path)
    with pytest.raises(SettingsError, match=r"^run is 7, "):
        lookup.open_run(7)


def test_settings_may_be_a_file(path: Path, tmp_path: Path) -> None:
    """With paths relative to its folder; results go where they are wanted."""
    (tmp_path / "evaluation.toml").write_text(
        'inputs = { lookups = "lookups.parquet" }\n[evaluation]\nincumbent = "a"\nseeds = 1\n'
        '[[brokers]]\nid = "b:1"\n[[policies]]\nname = "a"\nselector = "random"\n',
        encoding="utf-8",
    )
    said: list[str] = []

    found = lookup.evaluate(
        tmp_path / "evaluation.toml", output=tmp_path / "out", workers=InProcess(), progress=said.append
    )

    assert found.folder == str(tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").exists()
    assert any("replaying 1 policy" in sentence for sentence in said)


def test_mistakes_are_sentences_about_arguments(path: Path, tmp_path: Path) -> None:
    """No flag is named: there is no command line."""
    with pytest.raises(SettingsError, match=r"lookups='PATH', or inputs\.lookups"):
        lookup.evaluate(_SETTINGS)
    with pytest.raises(SettingsError, match=r"^settings: evaluation\.tik_s: "):
        lookup.evaluate({**_SETTINGS, "evaluation": {"incumbent": "stock", "tik_s": 5}}, path)
    with pytest.raises(SettingsError, match=r"^overrides: .*evaluation\.tik_s; "):
        lookup.evaluate(_SETTINGS, path, overrides={"evaluation.tik_s": 30})
    with pytest.raises(InputError, match="lookups: is of type list"):
        lookup.evaluate(_SETTINGS, [1, 2])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(InputError, match="is not empty"):
        lookup.evaluate(_SETTINGS, path, output=tmp_path / "full", workers=InProcess())


def test_a_result_prints_in_a_few_words(path: Path) -> None:
    """Its policies, how much was replayed, and its conclusion, which says what is undecided."""
    few = lookup.evaluate(
        _SETTINGS, path, overrides={"verdict.primary": ["match_ratio"], "verdict.min_units": 90}, workers=InProcess()
    )

    assert repr(few) == (f"<Evaluation of stock (incumbent), rack; 1 cluster, 100 lookups: {few.conclusion}>")
    assert few.conclusion.endswith("Undecided: every primary comparison.")


def test_functions_for_programs_are_listed() -> None:
    """Before they are loaded, beside the names of the model and of the hooks."""
    assert {"confirm", "diff", "evaluate", "explain", "generate", "inspect", "simulate", "__all__"} <= set(dir(lookup))


def test_names_that_do_not_exist_are_refused() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'evalute'"):
        lookup.evalute  # noqa: B018


def test_charts_are_those_of_the_page(path: Path) -> None:
    """By name, each with its data; another name is a sentence with one that there is."""
    found = lookup.evaluate(_SETTINGS, path, workers=InProcess())

    charts = found.charts

    assert {"trade", "load", "moves"} <= set(charts)
    assert found.chart("load", policy="rack").to_dict() == charts["load"].to_dict()
    with pytest.raises(SettingsError, match="'laod'; did you mean 'load'"):
        found.chart("laod")


_TO_CONFIRM: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": 5},
    "verdict": {"primary": ["match_ratio"]},
    "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("abab")],
    "policies": [
        {"name": "stock", "selector": "random"},
        {"name": "rack", "scorers": ["property-match"], "selector": "best"},
        {"name": "same", "selector": "random"},
    ],
}


def test_the_winner_is_replayed_with_other_seeds(tmp_path: Path) -> None:
    """It and the incumbent alone, over the same log, and what is left of every difference is said."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    lookup.evaluate(_TO_CONFIRM, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    again, left = lookup.confirm(tmp_path / "run", output=tmp_path / "again", workers=InProcess())

    seeds = [json.loads((tmp_path / name / "manifest.json").read_text())["seeds"] for name in ("run", "again")]
    assert len(seeds[0]) == len(seeds[1]) == 5
    assert not set(seeds[0]) & set(seeds[1])
    assert again.results.policies == ("stock", "rack")
    assert left[0].startswith("What is left of rack in ")
    assert any(sentence.startswith("match_ratio[rack]: +") for sentence in left)


def test_another_log_is_a_better_test(tmp_path: Path) -> None:
    """It draws seeds of its own."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    lookup.evaluate(_TO_CONFIRM, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    again, _ = lookup.confirm(tmp_path / "run", log_of_racks(days=1), workers=InProcess())

    assert (
        again.results.inputs.first_us > json.loads((tmp_path / "run" / "summary.json").read_text())["inputs"]["first_us"]
    )


def test_a_run_without_candidates_confirms_nothing(tmp_path: Path) -> None:
    """It says what to name."""
    pq.write_table(log_of_racks(), tmp_path / "lookups.parquet")
    alone = {**_TO_CONFIRM, "policies": _TO_CONFIRM["policies"][:1], "verdict": {}}
    lookup.evaluate(alone, tmp_path / "lookups.parquet", output=tmp_path / "run", workers=InProcess())

    with pytest.raises(SettingsError, match="has no winner"):
        lookup.confirm(tmp_path / "run", workers=InProcess())


def test_a_cluster_without_answers_is_warned_of(path: Path) -> None:
    """It is no note alone, which a quiet command leaves out: policies that answer nobody are alike."""
    between = {"from": "2026-01-01T23:56:01Z", "until": "2026-01-01T23:56:09Z"}
    settings = {**_SETTINGS, "brokers": [{"id": "b:8080", **between}]}
    said: list[str] = []

    lookup.evaluate(settings, path, workers=InProcess(), warn=said.append)

    assert [sentence for sentence in said if sentence.startswith("No policy") and "cluster east" in sentence]
