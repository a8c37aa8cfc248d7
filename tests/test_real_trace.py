"""The real trace: ingested with nothing but a mapping file, evaluated, compared with what docs/real-trace.md says."""

from __future__ import annotations

import csv
import json
import re
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from pyspark.sql import SparkSession

import lookup
from lookup.cli import main
from lookup.errors import PulsarLookupError
from lookup.logs.jobs import InProcess
from tests.pages import ROOT, block, cells, page, shown

IntArray = NDArray[np.int64]

pytestmark = pytest.mark.spark

_PAGE = page("docs/real-trace.md")
_EVALUATION = ROOT / "configs" / "nasa-evaluation.toml"
#: What the table over `session_s` is of.
_INCUMBENT = (
    "{name = 'least-used', filters = ['load-manager-class', 'max-topics', 'version', 'anti-affinity', 'isolation'], "
    "selector = 'least-resource-usage', shedder = 'threshold'}"
)
_REQUESTS = 30_969
_BUNDLES = 64
#: Unix seconds: the first request that is scored
_SCORED_S = 807_260_400
_RACKS = ("com", "edu", "net", "gov")
_SHEDLESS = ["rack-only", "random", "rendezvous", "bounded-consistent-hash", "tight-hash", "power-of-two"]
_CANDIDATES = ["rack-then-load", *_SHEDLESS]
_BALANCE = ("imbalance_max_mean", None)
#: When each broker leaves, µs since 1970.
_RESTARTS = {
    row["id"]: round(row["until"].timestamp() * 1_000_000)
    for row in tomllib.loads(_EVALUATION.read_text(encoding="utf-8"))["brokers"]
    if "until" in row
}


@dataclass(frozen=True)
class Results:
    """What an evaluation printed and left behind."""

    printed: str
    folder: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Return `summary.json`."""
        found: dict[str, Any] = json.loads((self.folder / "summary.json").read_text(encoding="utf-8"))
        return found

    @property
    def owners(self) -> pa.Table:
        """Return OWNERS, times as µs."""
        table = pa.concat_tables(pq.read_table(path) for path in sorted((self.folder / "owners").iterdir()))
        for place, name in enumerate(table.column_names):
            if name in ("from", "to"):
                table = table.set_column(place, name, table[name].cast(pa.int64()))
        return table

    def value(self, policy: str, metric: str, key: str | None = None) -> float:
        """Return a pooled figure."""
        wanted = {"policy": policy, "metric": metric, "key": key, "scope": "all clusters"}
        (row,) = (row for row in self.summary["figures"] if wanted.items() <= row.items())
        return float(row["value"])

    def verdict(self, policy: str, metric: str, key: str | None = None) -> dict[str, Any]:
        """Return the verdict on a pooled figure."""
        wanted = {"policy": policy, "metric": metric, "key": key, "scope": "all clusters"}
        (row,) = (row for row in self.summary["figures"] if wanted.items() <= row.items())
        return dict(row)


@pytest.fixture(scope="module")
def source(shared_data: Path) -> Path:
    """Return the trace as it was published."""
    return shared_data / "nasa_http_19950801.tsv"


@pytest.fixture(scope="module")
def tables(source: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the trace as the page does."""
    output = tmp_path_factory.mktemp("nasa") / "tables"

    assert main(["ingest", str(source), "--mapping", str(ROOT / "configs" / "nasa.toml"), "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def evaluated(tables: Path) -> Results:
    """Evaluate the shipped settings as the page does."""
    return _evaluate(tables)


def _evaluate(tables: Path, *settings: str) -> Results:
    folder = tables.parent / f"report-{len(list(tables.parent.iterdir()))}"
    flags = [word for setting in settings for word in ("--set", setting)]
    words = ["evaluate", str(_EVALUATION), "--lookups", str(tables / "lookups"), "--output", str(folder)]
    with pytest.MonkeyPatch.context() as patch, (tables.parent / "printed").open("w+", encoding="utf-8") as printed:
        patch.setattr("sys.stdout", printed)
        ended = main([*words, *flags])
        printed.seek(0)
        text = printed.read()
    assert ended == 0
    return Results(text.replace(str(folder), "nasa-report"), folder)


def _requests(source: Path) -> list[dict[str, str]]:
    with source.open(encoding="latin-1", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


# Ingest


# The evaluation


def test_every_request_is_replayed_and_answered(evaluated: Results) -> None:
    """No policy leaves a request unanswered, and nothing is missing in the inputs."""
    inputs = evaluated.summary["inputs"]
    policies = {row["policy"] for row in evaluated.summary["figures"]}

    assert (inputs["rows"], inputs["lookups"], inputs["quarantined"]) == (_REQUESTS, _REQUESTS, 0)
    assert (inputs["brokers"], inputs["bundles"]) == ({"nasa": 8}, {"nasa": _BUNDLES})
    assert len(policies) == 8
    assert {evaluated.value(policy, "answered_ratio") for policy in policies} == {1.0}


def test_nothing_is_found_in_the_shipped_settings(evaluated: Results) -> None:
    """About settings that suit this log nothing is said."""
    assert evaluated.summary["inputs"].get("findings", []) == []


def test_the_page_shows_what_is_printed(evaluated: Results) -> None:
    """Every line of the comparison on the page is one of a fresh run."""
    assert set(shown(_PAGE, "lookup evaluate ").splitlines()) <= set(evaluated.printed.splitlines())


def test_the_reading_quotes_the_table(evaluated: Results) -> None:
    """The three figures of each policy that the page reads are those of the run."""
    quoted = {row[0]: row[1:4] for row in cells(_PAGE, "policy") if row[0].replace("-", "").isalpha()}
    metrics = (("match_ratio", "rack", "{:.3f}"), ("imbalance_max_mean", None, "{:.2f}"))

    assert len(quoted) == 8
    for policy, figures in quoted.items():
        assert figures[:2] == [form.format(evaluated.value(policy, name, key)) for name, key, form in metrics]
        assert float(figures[2]) == pytest.approx(evaluated.value(policy, "moves"), abs=0.5)


@pytest.mark.parametrize("policy", _CANDIDATES)
def test_what_the_page_calls_better_has_that_verdict(evaluated: Results, policy: str) -> None:
    """Locality, balance and moves are bold if the verdict is better, which on one namespace rests on its bundles."""
    line = re.search(rf"^\| `{policy}` \|.*\|$", _PAGE[_PAGE.index("| policy | locality") :], re.MULTILINE)
    assert line is not None
    bold = ["**" in cell for cell in line[0].split("|")[2:5]]
    verdicts = [evaluated.verdict(policy, *name) for name in (("match_ratio", "rack"), _BALANCE, ("moves", None))]

    assert bold == [one["verdict"] == "better" for one in verdicts]
    assert {one["holds_for"] for one in verdicts if one["verdict"] == "better"} <= {"independence"}


@pytest.mark.parametrize(
    ("policy", "metric", "key", "form"),
    [
        ("tight-hash", *_BALANCE, "{:.2f} ({:.2f} to {:.2f})"),
        ("rack-only", *_BALANCE, "{:.2f} ({:.2f} to {:.2f})"),
        ("rack-only", "match_ratio", "rack", "{:.3f} more than `least-used` ({:.3f} to {:.3f})"),
        ("rack-then-load", "match_ratio", "rack", "{:.3f} more ({:.3f} to {:.3f})"),
        ("rack-then-load", "moves", None, "{:.0f} more moves ({:.0f} to {:.0f})"),
    ],
)
def test_differences_on_the_page_have_the_intervals_of_the_run(
    evaluated: Results, policy: str, metric: str, key: str | None, form: str
) -> None:
    """A difference that the page states is one that the verdict is sure of, and so are its ends."""
    verdict = evaluated.verdict(policy, metric, key)
    size, *ends = (abs(verdict[name]) for name in ("change", "change_low", "change_high"))

    assert verdict["verdict"] in {"better", "worse"}
    assert form.format(size, *sorted(ends)) in " ".join(_PAGE.split())


def test_without_a_shedder_only_bundles_of_a_lost_broker_move(evaluated: Results) -> None:
    """An owner that lives keeps its bundles, one that leaves loses all of them at that moment."""
    owners = evaluated.owners
    ended = owners.filter(pc.and_(pc.is_valid(owners["to"]), pc.is_in(owners["policy"], pa.array(_SHEDLESS))))

    assert ended.num_rows > 0
    assert set(zip(ended["broker"].to_pylist(), ended["to"].to_pylist(), strict=True)) == set(_RESTARTS.items())


def test_the_page_says_how_many_bundles_a_restart_takes(evaluated: Results) -> None:
    """The means over replicates are those of OWNERS; of a hash the first restart takes one bundle in eight."""
    quoted = {row[0]: row[1:] for row in cells(_PAGE, "bundles at the restart")}
    taken = {policy: _taken(evaluated.owners, policy) for policy in quoted}

    assert quoted == {policy: [f"{mean:.1f}" for mean in counts.mean(axis=0)] for policy, counts in taken.items()}
    # three standard errors of the mean of ten replicates
    assert taken["rendezvous"][:, 0].mean() == pytest.approx(_BUNDLES / 8, abs=2.5)
    assert f"it is {taken['rendezvous'][:, 0].min()} to {taken['rendezvous'][:, 0].max()}" in _PAGE


def _taken(owners: pa.Table, policy: str) -> IntArray:
    """Count the bundles that each restart took from its broker, shape (n_seeds, n_restarts)."""
    rows = owners.filter(
        pc.and_(pc.equal(owners["policy"], policy), pc.equal(owners["ended_by"], "forced"))
    ).to_pylist()
    seeds = sorted({row["seed"] for row in rows})
    restarts = list(_RESTARTS.values())
    counts = np.zeros((len(seeds), len(restarts)), dtype=np.int64)
    for row in rows:
        counts[seeds.index(row["seed"]), restarts.index(row["to"])] += 1
    return counts


@pytest.mark.parametrize("policy", ["least-used", "rack-only", "rack-then-load", "rendezvous"])
def test_locality_can_be_had_from_owners_alone(source: Path, evaluated: Results, policy: str) -> None:
    """OWNERS joined with the raw file by hand gives the match ratio, without anything of the replay."""
    requests = [row for row in _requests(source) if int(row["time"]) >= _SCORED_S]
    shares = [_matched(requests, seed) for seed in _by_seed(evaluated.owners, policy)]

    assert evaluated.value(policy, "match_ratio", "rack") == pytest.approx(float(np.mean(shares)), abs=1e-12)


def _by_seed(owners: pa.Table, policy: str) -> Iterator[dict[int, list[tuple[int, str]]]]:
    """Yield for each seed the owners of every bundle by its place, as (since, broker) in order of time."""
    rows = owners.filter(pc.equal(pc.field("policy"), policy)).sort_by("from").to_pylist()
    for seed in sorted({row["seed"] for row in rows}):
        held: dict[int, list[tuple[int, str]]] = {}
        for row in rows:
            if row["seed"] == seed:
                lower = int(row["bundle"].rpartition("/")[2].partition("_")[0], 16)
                held.setdefault(lower * _BUNDLES >> 32, []).append((row["from"], row["broker"]))
        yield held


def _matched(requests: list[dict[str, str]], owners: dict[int, list[tuple[int, str]]]) -> float:
    matches = 0
    for request in requests:
        _, broker = [entry for entry in owners[_place(request)] if entry[0] <= int(request["time"]) * 1_000_000][-1]
        rack = _RACKS[(int(broker.removeprefix("broker-").partition(":")[0]) - 1) % 4]
        matches += request["host"].rpartition(".")[2].lower() == rack
    return matches / len(requests)


# The other tables of the page


@pytest.mark.thorough
def test_a_longer_memory_of_load_spares_moves(tables: Path) -> None:
    """The page's table over `session_s` is that of a run with `least-used` alone."""
    columns = ("imbalance_max_mean", "moves", "redundant_moves", "moved_weight")
    quoted = {row[0]: [float(cell) for cell in row[1:]] for row in cells(_PAGE, "`session_s`")}

    assert list(quoted) == ["60", "300", "900", "3600"]
    for seconds, figures in quoted.items():
        run = _evaluate(tables, f"evaluation.session_s={seconds}", f"policies=[{_INCUMBENT}]")
        assert [run.value("least-used", name) for name in columns] == pytest.approx(figures, rel=0.02, abs=0.0006)


@pytest.mark.thorough
def test_half_a_day_is_too_short_to_choose_settings_by(tables: Path, tmp_path: Path) -> None:
    """The page's search is refused, and with smaller blocks it ends in the sentence that the page shows."""
    search = tomllib.loads(block(_PAGE, "```toml\n# tune.toml"))
    search["tune"]["evaluation"] = str(_EVALUATION)
    refused, kept = (
        line for line in _PAGE.splitlines() if line.startswith(("error: the log is", "Keep today's settings"))
    )
    chosen: dict[str, object] = {"evaluation.incumbent": "rack-then-load"}
    finer: dict[str, object] = {"evaluation.balance_s": 1200, "verdict.block_s": 1200}

    with pytest.raises(PulsarLookupError) as error:
        lookup.tune(search, tables / "lookups", output=tmp_path / "a", overrides=chosen, workers=InProcess())
    assert refused.startswith(f"error: {str(error.value).partition(';')[0]}")
    found = lookup.tune(
        search, tables / "lookups", output=tmp_path / "b", overrides=chosen | finer, workers=InProcess()
    ).document()
    assert found["conclusion"] == kept
    assert f"{len(found['candidates'])} settings were tried" in _PAGE
    assert found["recommended"] == found["finalists"] == []


def test_no_owner_is_near_to_a_mixed_public(source: Path) -> None:
    """The page's limits of locality follow from the file: per request, and with one owner for each bundle."""
    requests = [row for row in _requests(source) if int(row["time"]) >= _SCORED_S]
    public = np.zeros((_BUNDLES, len(_RACKS)))
    for request in requests:
        label = request["host"].rpartition(".")[2].lower()
        if label in _RACKS:
            public[_place(request), _RACKS.index(label)] += 1
    limits = [row[1] for row in cells(_PAGE, "`match_ratio[rack]`")]

    at_home, single = public.sum() / len(requests), public.max(axis=1).sum() / len(requests)

    assert [limits[row] for row in (0, 1, 4)] == [f"{limit:.3f}" for limit in (at_home, single, at_home / 4)]
    assert np.bincount(public.argmax(axis=1)).tolist() == [58, 0, 0, 6]


def _place(request: dict[str, str]) -> int:
    topic = "persistent://nasa/http/" + quote(request["url"], safe="-_.~=:,@")
    return zlib.crc32(topic.encode()) * _BUNDLES >> 32
