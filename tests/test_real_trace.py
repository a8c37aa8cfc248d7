"""The real trace: ingested with nothing but a mapping file, evaluated, compared with what docs/real-trace.md says."""

from __future__ import annotations

import csv
import json
import re
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
from pyspark.sql import SparkSession

from lookup.cli import main

pytestmark = pytest.mark.spark

_ROOT = Path(__file__).parent.parent
_PAGE = (_ROOT / "docs" / "real-trace.md").read_text(encoding="utf-8")
_EVALUATION = _ROOT / "configs" / "nasa-evaluation.toml"
_STOCK = _ROOT / "configs" / "policies" / "stock.toml"
_REQUESTS = 30_969
_BUNDLES = 64
#: Unix seconds: the first request, the first that is scored, and when `broker-8` leaves.
_FIRST_S, _SCORED_S, _LEFT_S = 807_256_800, 807_260_400, 807_279_960
_RACKS = ("com", "edu", "net", "gov")


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
        wanted = {"policy": policy, "metric": metric, "key": key, "cluster": None, "by": None}
        (row,) = (row for row in self.summary["metrics"] if wanted.items() <= row.items())
        return float(row["value"])


@pytest.fixture(scope="module")
def source(shared_data: Path) -> Path:
    """Return the trace as it was published."""
    return shared_data / "nasa_http_19950801.tsv"


@pytest.fixture(scope="module")
def tables(source: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest the trace as the page does."""
    output = tmp_path_factory.mktemp("nasa") / "tables"

    assert (
        main(["ingest", str(source), "--mapping", str(_ROOT / "configs" / "nasa.toml"), "--output", str(output)]) == 0
    )
    return output


@pytest.fixture(scope="module")
def evaluated(tables: Path) -> Results:
    """Evaluate the shipped settings as the page does."""
    return _evaluate(tables)


def _evaluate(tables: Path, *settings: str) -> Results:
    folder = tables.parent / f"report-{len(list(tables.parent.iterdir()))}"
    flags = [word for setting in settings for word in ("--set", setting)]
    words = ["evaluate", "--config", str(_EVALUATION), "--lookups", str(tables / "lookups"), "--output", str(folder)]
    with pytest.MonkeyPatch.context() as patch, (tables.parent / "printed").open("w+", encoding="utf-8") as printed:
        patch.setattr("sys.stdout", printed)
        code = main([*words, *flags])
        printed.seek(0)
        text = printed.read()
    assert code == 0
    return Results(text, folder)


def _rows(tables: Path, table: str) -> pa.Table:
    files = sorted((tables / table).rglob("*.parquet"))
    return pa.concat_tables(pq.ParquetFile(path).read() for path in files)


def _requests(source: Path) -> list[dict[str, str]]:
    with source.open(encoding="latin-1", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def _cells(text: str, first: str) -> list[list[str]]:
    """Return the cells of the table whose head begins with a text, without its head."""
    lines = text[text.index(f"| {first}") :].split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip(" *`") for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")][2:]


# Ingest


def test_no_request_is_lost(tables: Path) -> None:
    """Every request is a row of LOOKUPS or of the quarantine; here none is in quarantine."""
    assert (_rows(tables, "lookups").num_rows, _rows(tables, "quarantine").num_rows) == (_REQUESTS, 0)


def test_requests_keep_their_order_and_labels(source: Path, tables: Path) -> None:
    """Times, clients and racks stand in LOOKUPS as in the file, line by line."""
    rows = _rows(tables, "lookups").sort_by([("ts", "ascending"), ("seq", "ascending")])
    requests = _requests(source)
    racks = [json.loads(text)["rack"] for text in rows["properties"].to_pylist()]

    assert pc.cast(rows["ts"], pa.int64()).to_pylist() == [int(row["time"]) * 1_000_000 for row in requests]
    assert rows["client"].to_pylist() == [row["host"] for row in requests]
    assert [rack for rack in racks if rack in _RACKS] == [
        label for row in requests if (label := row["host"].rpartition(".")[2].lower()) in _RACKS
    ]


# The evaluation


def test_every_request_is_replayed_and_answered(evaluated: Results) -> None:
    """No policy leaves a request unanswered, and nothing is missing in the inputs."""
    inputs = evaluated.summary["inputs"]
    policies = {row["policy"] for row in evaluated.summary["metrics"]}

    assert (inputs["rows"], inputs["lookups"], inputs["quarantined"]) == (_REQUESTS, _REQUESTS, 0)
    assert (inputs["brokers"], inputs["bundles"]) == ({"nasa": 8}, {"nasa": _BUNDLES})
    assert len(policies) == 8
    assert {evaluated.value(policy, "answered_ratio") for policy in policies} == {1.0}


def test_the_page_shows_what_is_printed(evaluated: Results) -> None:
    """Every line of the comparison on the page is one of a fresh run."""
    shown = re.search(r"^\$ lookup evaluate [^\n]*\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)

    assert shown is not None
    assert shown[1].rstrip() in evaluated.printed


def test_the_reading_quotes_the_table(evaluated: Results) -> None:
    """The three figures of each policy that the page reads are those of the run."""
    quoted = {row[0]: row[1:4] for row in _cells(_PAGE, "policy") if row[0].replace("-", "").isalpha()}
    metrics = (("match_ratio", "rack", "{:.3f}"), ("imbalance_max_mean", None, "{:.2f}"))

    assert len(quoted) == 8
    for policy, figures in quoted.items():
        assert figures[:2] == [form.format(evaluated.value(policy, name, key)) for name, key, form in metrics]
        assert float(figures[2]) == pytest.approx(evaluated.value(policy, "moves"), abs=0.5)


def test_a_lost_broker_moves_its_own_bundles_and_no_others(evaluated: Results) -> None:
    """Under rendezvous hashing about one bundle in eight moves, from the broker that left, when it left."""
    owners = evaluated.owners.filter(pc.equal(pc.field("policy"), "rendezvous"))
    ended = owners.filter(pc.is_valid(owners["to"]))

    assert evaluated.value("rendezvous", "moves") == ended.num_rows / 5 == pytest.approx(_BUNDLES / 8, abs=1.5)
    assert set(ended["broker"].to_pylist()) == {"broker-8:8080"}
    assert set(ended["to"].to_pylist()) == {_LEFT_S * 1_000_000}


@pytest.mark.parametrize("policy", ["stock", "rack-only", "rack-then-load", "rendezvous"])
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


def test_a_longer_memory_of_load_spares_moves(tables: Path) -> None:
    """The page's table over `session_s` is that of a run with `stock` alone."""
    columns = ("imbalance_max_mean", "moves", "redundant_moves", "moved_weight")
    quoted = {row[0]: [float(cell) for cell in row[1:]] for row in _cells(_PAGE, "`session_s`")}

    assert list(quoted) == ["60", "300", "900", "3600"]
    for seconds, figures in quoted.items():
        run = _evaluate(tables, f"evaluation.session_s={seconds}", f'policies=["{_STOCK}"]')
        assert [run.value("stock", name) for name in columns] == pytest.approx(figures, rel=0.04, abs=0.0006)


def test_deciding_every_row_anew_overstates_the_gain(tables: Path, evaluated: Results) -> None:
    """Without owners the same rules match several times as many requests; the page says how many."""
    rules = (
        '[{ name = "random", selector = "random" },'
        ' { name = "rack-only", scorers = ["property-match"], selector = "best" }]'
    )
    naive = _evaluate(tables, "evaluation.ownership=shared", "evaluation.incumbent=random", f"policies={rules}")
    gains = []
    for run, row in zip((naive, evaluated), _cells(_PAGE, "| `random`"), strict=True):
        matched = [run.value(policy, "match_ratio", "rack") for policy in ("random", "rack-only")]
        gains.append(matched[1] - matched[0])
        assert row[1:] == [f"{figure:.3f}" for figure in (*matched, gains[-1])]

    assert gains[0] > 5 * gains[1]


def test_no_owner_is_near_to_a_mixed_public(source: Path) -> None:
    """The page's limits of locality follow from the file: per request, and with one owner for each bundle."""
    requests = [row for row in _requests(source) if int(row["time"]) >= _SCORED_S]
    public = np.zeros((_BUNDLES, len(_RACKS)))
    for request in requests:
        label = request["host"].rpartition(".")[2].lower()
        if label in _RACKS:
            public[_place(request), _RACKS.index(label)] += 1
    limits = [row[1] for row in _cells(_PAGE, "| `match_ratio[rack]`")]

    assert limits[:2] == [f"{found / len(requests):.3f}" for found in (public.sum(), public.max(axis=1).sum())]
    assert np.bincount(public.argmax(axis=1)).tolist() == [58, 0, 0, 6]


def _place(request: dict[str, str]) -> int:
    topic = "persistent://nasa/http/" + quote(request["url"], safe="-_.~=:,@")
    return zlib.crc32(topic.encode()) * _BUNDLES >> 32
