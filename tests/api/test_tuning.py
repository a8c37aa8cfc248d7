"""`lookup.tune`: settings found over a real log, confirmed on its sealed part, or not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lookup
from lookup.api.given import given_tables
from lookup.api.log_trials import LogTrials
from lookup.errors import InputError, PulsarLookupError, SettingsError
from lookup.logs.jobs import InProcess
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.run import replay
from lookup.settings.loader import load_tuning
from tests.tuning.files import write_search_file

_HOURS = 48


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two days of lookups from three racks."""
    folder = tmp_path_factory.mktemp("log") / "sample"
    sizes = {"lookups": 20_000, "clusters": 1, "brokers": 6, "topics": 1_000, "tenants": 96, "namespaces": 96}
    lookup.generate(folder, hours=_HOURS, zipf=0.2, rack_affinity=1.0, losses=0, seed=3, **sizes)
    return folder


def _evaluation(log: Path) -> dict[str, Any]:
    nearest = {"use": "property-match", "key": "rack", "weight": 0.0}
    rules = {"session_s": 3600, "balance_s": 3600, "tick_s": 600, "seeds": 5}
    return {
        "evaluation": {"incumbent": "today", **rules},
        "inputs": {"lookups": str(log / "lookups"), "brokers": str(log / "brokers")},
        "policies": [{"name": "today", "scorers": ["headroom", nearest], "selector": "best"}],
    }


def _search(log: Path, vary: Mapping[str, Any], **tune: Any) -> dict[str, Any]:
    """Return a search in which moves are free, unless it says otherwise."""
    sought = {"candidates": 8, "objectives": ["match_ratio:rack"], "prices": []}
    return {"tune": {"evaluation": _evaluation(log), **sought, **tune}, "spaces": [{"name": "nearness", "vary": vary}]}


_WEIGHT = {"scorers[1].weight": {"low": 0.0, "high": 8.0}}


def _tuned(search: Mapping[str, Any], folder: Path, **given: Any) -> Any:
    return lookup.tune(search, output=folder, workers=InProcess(), **given)


@pytest.fixture(scope="module")
def found(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Search for the weight of nearness, which is 0 today."""
    return _tuned(_search(log, _WEIGHT), tmp_path_factory.mktemp("tuned") / "found")


def _row(found: Any, candidate: int, days: str, metric: str) -> Any:
    """Return a row of the search's figures."""
    table = found.figures
    rows = table[(table["candidate"] == candidate) & (table["days"] == days) & (table["metric"] == metric)]
    (row,) = rows.to_dict("records")
    return row


def test_what_is_bad_on_purpose_is_found_and_confirmed(found: Any) -> None:
    """Without a weight on nearness a third is near by chance; the key to change is that weight."""
    best = found.recommended[0]

    assert found.exit_code == 0
    assert set(best["changes"]) == {"scorers[1].weight"}
    assert _row(found, best["candidate"], "sealed", "match_ratio")["change_low"] > 0.1
    assert found.conclusion.startswith("Change scorers[1].weight = ")


def test_what_one_namespace_shows_is_told_and_decides_nothing(log: Path, tmp_path: Path) -> None:
    """Its bundles may send together, so that the gain is confirmed only if they do not."""
    lookups = pd.read_parquet(log / "lookups")
    lookups["topic"] = lookups["topic"].str.replace(r"//[^/]+/[^/]+/", "//t/n/", regex=True) + lookups["client"].str[:4]
    search = _search(log, _WEIGHT)
    search["tune"]["evaluation"] |= {"inputs": {"lookups": str(tmp_path), "brokers": str(log / "brokers")}}
    search["tune"]["evaluation"]["evaluation"]["default_bundles"] = 96
    lookups.to_parquet(tmp_path / "lookups.parquet")

    found = _tuned(search, tmp_path / "found")

    best = found.recommended[0]["candidate"]
    assert _row(found, best, "sealed", "match_ratio")["holds_for"] == "independence"
    assert found.conclusion.endswith(", only if bundles are independent")
    assert found.exit_code == 4


def test_a_cluster_that_begins_on_the_sealed_days_is_judged_too(log: Path, tmp_path: Path) -> None:
    """All of it, though the seal is further from its first lookup than its last one is."""
    east, brokers = (pd.read_parquet(log / name) for name in ("lookups", "brokers"))
    begins = east["ts"].min().to_pydatetime() + timedelta(hours=30)
    west = east[east["ts"] >= begins].assign(cluster="west")
    both = pd.concat([brokers, brokers.assign(cluster="west")])

    found = _tuned(_search(log, _WEIGHT, candidates=2), tmp_path / "out", lookups=pd.concat([east, west]), brokers=both)

    metrics = lookup.open_run(f"{found.folder}/sealed").figures
    shares = metrics[(metrics["metric"] == "answered_ratio") & (metrics["cluster"] == "west")]["value"]
    assert len(shares) > 0
    assert (shares > 0.9).all()


def test_the_recommended_policy_can_be_pasted(found: Any, log: Path) -> None:
    """Its table is a policy of an evaluation, which does what was promised."""
    table = found.recommended[0]["policy"]
    settings = _evaluation(log)
    settings["policies"].append(table)

    evaluation = lookup.evaluate(settings=settings, workers=InProcess())

    verdicts = {(row.metric, row.key): row.verdict for row in evaluation.figures.dropna(subset="verdict").itertuples()}
    assert verdicts["match_ratio", "rack"] == "better"


def test_sealed_days_are_not_looked_at_before(found: Any, log: Path, tmp_path: Path) -> None:
    """With another second day the search finds the same, and the confirmation something else."""
    for path in sorted((log / "lookups").rglob("*.parquet")):
        rows = pq.read_table(path)
        later = pc.greater_equal(rows["ts"], pa.scalar(datetime(2026, 1, 6, tzinfo=UTC), rows.schema.field("ts").type))
        unlabelled = pc.if_else(later, "{}", rows["properties"].cast(pa.string()))
        place = tmp_path / "lookups" / path.relative_to(log / "lookups")
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows.set_column(rows.schema.get_field_index("properties"), "properties", unlabelled), place)

    other = _tuned(_search(log, _WEIGHT), tmp_path / "out", lookups=tmp_path / "lookups").document()

    known = found.document()
    assert (known["sealed_from"], known["opened"]) == ("2026-01-06T00:00:00Z", 1)
    sought, sealed = (
        [[row for row in of["figures"] if row["days"] == days] for of in (other, known)]
        for days in ("search", "sealed")
    )
    assert other["candidates"] == known["candidates"]
    assert sought[0] == sought[1]
    assert sealed[0] != sealed[1]


def test_the_confirmation_has_other_seeds_than_the_search(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the evaluation lists its seeds: the same luck again would confirm itself."""
    search, seen = _search(log, _WEIGHT, candidates=2), []
    search["tune"]["evaluation"]["evaluation"]["seeds"] = [1, 2, 3, 4, 5]

    def watched(*given: Any, **named: Any) -> ReplayOutcome:
        outcome = replay(*given, **named)
        seen.append({*outcome.seeds})
        return outcome

    monkeypatch.setattr("lookup.api.log_trials.replay", watched)
    found = _tuned(search, tmp_path / "out")

    sealed = lookup.open_run(f"{found.folder}/sealed").results.seeds
    assert seen
    assert len(sealed) == 5
    assert all(seeds.isdisjoint(sealed) for seeds in seen)


def test_a_search_that_was_stopped_goes_on_to_the_same_bytes(found: Any, log: Path, tmp_path: Path) -> None:
    """After the first batch, and on Spark."""
    search = json.loads((Path(found.folder) / "search.json").read_text())
    (tmp_path / "again").mkdir()
    stopped = search | {"batches": search["batches"][:1], "opened": 0, "has_opened": False}
    write_search_file(tmp_path / "again" / "search.json", stopped)
    said: list[str] = []

    again = _tuned(_search(log, _WEIGHT), tmp_path / "again", progress=said.append)

    assert (tmp_path / "again" / "tune.json").read_bytes() == (Path(found.folder) / "tune.json").read_bytes()
    assert not any(text.startswith("wide") for text in said)
    assert again.recommended == found.recommended


def test_a_search_that_was_stopped_over_its_sealed_days_opens_them_once(found: Any, log: Path, tmp_path: Path) -> None:
    """A confirmation that was not finished has shown nothing."""
    (tmp_path / "again").mkdir()
    shutil.copy(Path(found.folder) / "search.json", tmp_path / "again")

    again = _tuned(_search(log, _WEIGHT), tmp_path / "again")

    assert again.document() == found.document()


def test_bounds_of_the_evaluation_hold_for_its_search(log: Path, tmp_path: Path) -> None:
    """What it does not read is neither searched nor sealed; an objective is no price by default."""
    search = _search(log, _WEIGHT, candidates=3, objectives=["moved_weight"])
    search["tune"]["evaluation"]["evaluation"] |= {"since": "2026-01-05T06:00:00Z", "until": "2026-01-06T18:00:00Z"}

    document = _tuned(search, tmp_path / "out").document()

    assert (document["objectives"], document["prices"]) == (["moved_weight"], [])
    assert document["first"] == "2026-01-05T06:00:00Z"
    assert "2026-01-06T00:00:00Z" < document["sealed_from"] < document["last"] < "2026-01-06T18:00:00Z"


def test_spark_finds_the_same(found: Any, log: Path, tmp_path: Path, spark: SparkSession) -> None:
    """Byte for byte."""
    lookup.tune(_search(log, _WEIGHT), output=tmp_path / "spark", workers=spark)

    assert (tmp_path / "spark" / "tune.json").read_bytes() == (Path(found.folder) / "tune.json").read_bytes()


def test_days_that_are_opened_again_are_counted(log: Path, tmp_path: Path) -> None:
    """`force` searches anew, and says that the seal has been broken."""
    said: list[str] = []
    _tuned(_search(log, _WEIGHT, candidates=4), tmp_path / "out")

    again = _tuned(_search(log, _WEIGHT, candidates=5), tmp_path / "out", force=True, warn=said.append)

    assert again.document()["opened"] == 2
    assert again.conclusion.endswith("opened 2 times")
    assert any(text.startswith("these days were opened 2 times") for text in said)


def test_without_sealed_days_nothing_is_recommended(log: Path, tmp_path: Path) -> None:
    """What is found is shown as what was not confirmed."""
    found = _tuned(_search(log, _WEIGHT, candidates=4), tmp_path / "out", no_holdout=True)

    assert (found.recommended, found.exit_code) == ([], 4)
    assert "no days were sealed" in found.conclusion
    assert found.document()["finalists"]


def test_moves_of_a_day_are_those_of_the_time_that_is_scored(log: Path, tmp_path: Path) -> None:
    """A warm-up of half the log moves nothing that is counted."""
    search = _search(log, {"grace_s": [0, 60]}, objectives=["answered_ratio"])
    search["tune"]["evaluation"]["evaluation"]["warmup_s"] = _HOURS // 2 * 3600
    file = load_tuning(search, {})
    with given_tables({}) as given:
        trials = LogTrials.of(file, given.select(file.tune.evaluation, {}, print), holdout=False)

    assert trials.days(is_sealed=True) == pytest.approx(_HOURS / 48, rel=0.02)


def test_totals_are_those_of_a_day_on_either_part_of_the_log(found: Any) -> None:
    """Moves of the sealed evaluation are those of all its hours; a ratio stays as it is."""
    first, last = (datetime.fromisoformat(found.document()[name]) for name in ("sealed_from", "last"))
    days = (last - first) / timedelta(days=1)
    whole = {name: figure.value for name, figure in found.sealed.results.pooled.items()}

    best = found.document()["finalists"][0]["candidate"]

    assert "moves" in found.document()["per_day"]
    assert "match_ratio:rack" not in found.document()["per_day"]
    for number, policy in ((0, "today"), (best, f"candidate-{best}")):
        moves, near = (_row(found, number, "sealed", metric) for metric in ("moves", "match_ratio"))
        assert moves["value"] * days == pytest.approx(whole[policy, "moves", None])
        assert near["value"] == pytest.approx(whole[policy, "match_ratio", "rack"])


def test_a_page_that_cannot_be_drawn_loses_nothing(
    found: Any, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning names the page of the sealed evaluation."""

    def fail(*given: Any, **named: Any) -> str:
        raise ValueError("math domain error")

    monkeypatch.setattr("lookup.report.page.html_report", fail)
    said: list[str] = []
    again = _tuned(_search(log, _WEIGHT), tmp_path / "out", warn=said.append)

    assert again.document() == found.document()
    assert (tmp_path / "out" / "tune.json").read_bytes() == (Path(found.folder) / "tune.json").read_bytes()
    assert again.sealed.exit_code == found.sealed.exit_code
    assert not list((tmp_path / "out").rglob("*.html"))
    assert [text.partition(" ")[0] for text in said if "could not be drawn" in text] == ["report.html"]


def test_a_finished_search_is_opened_again_and_not_overwritten(found: Any, log: Path) -> None:
    """With its candidates as a table, and the evaluation of its sealed days."""
    opened = lookup.open_tuning(found.folder)

    assert opened.conclusion == found.conclusion
    assert len(opened.candidates) == len(found.document()["candidates"])
    assert opened.sealed.exit_code in (0, 3, 4)
    assert "Change scorers[1].weight" in repr(opened)
    with pytest.raises(InputError, match="of other settings"):
        _tuned(_search(log, _WEIGHT, candidates=5), found.folder)
    with pytest.raises(InputError, match="finished; force=True"):
        _tuned(_search(log, _WEIGHT), found.folder)


@pytest.mark.parametrize("content", ["no JSON", "[]", '{"schema": 1}', None])
def test_a_folder_with_something_else_under_the_names_of_a_search_is_refused(
    found: Any, log: Path, tmp_path: Path, content: str | None
) -> None:
    """Also with a search of another schema, which stands for None; `force` begins anew."""
    for name in ("search.json", "tune.json"):
        other = json.dumps(json.loads((Path(found.folder) / name).read_text()) | {"schema": 1})
        (tmp_path / name).write_text(other if content is None else content)

    with pytest.raises(InputError, match=r"holds a search\.json "):
        _tuned(_search(log, _WEIGHT), tmp_path)
    with pytest.raises(InputError, match=r"holds a tune\.json "):
        lookup.open_tuning(tmp_path)
    assert _tuned(_search(log, _WEIGHT, candidates=2), tmp_path, force=True).document()["opened"] == 1


def test_when_time_is_up_what_there_is_races(log: Path, tmp_path: Path) -> None:
    """No batch around the best is begun then; the answer is confirmed as ever."""
    kinds = {}
    for minutes in (1e-6, 60.0):
        found = _tuned(_search(log, _WEIGHT, minutes=minutes, candidates=16), tmp_path / f"{minutes}")
        assert found.recommended
        kinds[minutes] = [batch["kind"] for batch in found.document()["batches"]]

    assert kinds[1e-6] == ["wide", "race"]
    assert "near" in kinds[60.0]


@pytest.mark.parametrize(
    ("tune", "change", "sentence"),
    [
        ({"objectives": ["match_ration:rack"]}, {}, "'match_ration'"),
        ({"objectives": ["moved_weight"], "prices": ["moved_weight"]}, {}, "tune: 'moved_weight' "),
        ({"candidates": 1}, {}, "tune.candidates: "),
        ({"holdout": 0.95}, {}, "tune.holdout"),
        ({"limits": {"movs": 1.0}}, {}, "'movs'"),
        ({"limits": {"imbalance_max_mean": 0.0}}, {}, "tune.limits: 'imbalance_max_mean': "),
        ({}, {"evaluation": {"seeds": 1}}, "replicate can .* 4 or more"),
        ({}, {"evaluation": {"seeds": [4, 5]}}, "replicates can .* 4 or more"),
        ({}, {"evaluation": {"since": "2030-01-01T00:00:00Z"}}, r"evaluation\.since to .* 2026-"),
        ({}, {"evaluation": {"until": "2020-01-01T00:00:00Z"}}, r"evaluation\.since to .* 2026-"),
        ({}, {"brokers": [{"id": "b:1", "from": "2030-01-01T00:00:00Z"}]}, "no broker is registered .* searched"),
        ({}, {"brokers": [{"id": "b:1", "until": "2026-01-06T00:00:00Z"}]}, "no broker is registered .* sealed"),
        ({}, {"shedder": {"use": "threshold", "min_offload": 1e7}}, r"incumbent today .* evaluation\.bytes_per_weight"),
        ({}, {"bundles": [40_001, 50_003]}, "90,006 ranges, more than 65,536"),
        ({}, {"bundles": [1, 16], "table": True}, "space 'nearness': bundles .*BUNDLES"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(
    log: Path, tmp_path: Path, tune: dict[str, Any], change: dict[str, Any], sentence: str
) -> None:
    """In one sentence, and nothing is written: else a search of hours would end with it."""
    search = _search(log, {"bundles": change["bundles"]} if "bundles" in change else _WEIGHT, **tune)
    evaluation = search["tune"]["evaluation"]
    evaluation["evaluation"] |= change.get("evaluation", {})
    if "brokers" in change:
        evaluation |= {"brokers": change["brokers"], "inputs": {"lookups": str(log / "lookups")}}
    if "shedder" in change:
        evaluation["policies"][0]["shedder"] = change["shedder"]
    row = {"ts": "2026-01-05", "cluster": "c", "bundle": "t/n/0x00000000_0xffffffff", "stats": {}}

    with pytest.raises(PulsarLookupError, match=sentence):
        _tuned(search, tmp_path / "out", bundles=[row] if "table" in change else None)
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("tune", "sentence"),
    [
        ({"objectives": ["match_ratio:planet"]}, "tune: 'match_ratio:planet' "),
        ({"limits": {"match_ratio:rack": 9.0}}, r"'match_ratio:rack': .* 9 times .* above 1"),
        ({"limits": {"imbalance_max_mean": 0.1}}, r"0\.1 times .* 1\.\d+ .* below 1"),
    ],
)
def test_what_the_first_batch_shows_to_be_impossible_is_refused(
    log: Path, tmp_path: Path, tune: dict[str, Any], sentence: str
) -> None:
    """As soon as today's figures are known, and not after a search in which nothing is within limits."""
    with pytest.raises(SettingsError, match=sentence):
        _tuned(_search(log, _WEIGHT, candidates=3, **tune), tmp_path / "out")
