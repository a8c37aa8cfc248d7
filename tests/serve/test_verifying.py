"""Verifying a record: what a server decided is decided again to the last digit, and what was changed is named."""

from __future__ import annotations

import json
import math
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.cli import main
from lookup.errors import InputError
from lookup.serve.recording import TABLES
from lookup.serve.verifying import verify
from tests.processes import awaited
from tests.programs import Elsewhere, written
from tests.serve.servers import BUNDLE, POLICIES, decide, lookup_entry, read_table, settings_file, started, view

#: A plug-in file whose scorer can be changed.
_PLUGIN = '''
"""A plug-in."""
from dataclasses import dataclass
from typing import ClassVar
from lookup.hooks import hookimpl


@dataclass(frozen=True)
class ByLength:
    """Score brokers by the hour and their names."""

    name: ClassVar[str] = "by-length"
    reads: ClassVar[frozenset[str]] = frozenset({"view.now"})

    def score(self, request, brokers, view):
        """Depend on the instant."""
        return [(view.now_us // 7 + position) % 10 / FACTOR for position in range(len(brokers))]


@hookimpl
def lookup_register_scorers():
    """Register."""
    return (ByLength,)
'''
_POLICIES = """
plugin_files = ["plugin.py"]

[[policies]]
name = "by-rack"
scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = { use = "softmax", temperature = 0.3 }

[[policies]]
name = "by-instant"
scorers = ["by-length"]
selector = "weighted-random"
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a server that decided 60 times under each of two policies, and the settings beside it."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "plugin.py").write_text(_PLUGIN.replace("FACTOR", "10"))
    text = settings_file(folder, policies="x").read_text().rpartition("x")[0]
    path = folder / "serving.toml"
    path.write_text(
        _POLICIES.partition("[[policies]]")[0] + text + "[[policies]]" + _POLICIES.partition("[[policies]]")[2]
    )
    views = [view("a", "b", "a", usage=0.3), view("a", "b", "c", usage=0.61), view("a", "b")]
    with started(path) as server:
        for number in range(120):
            if number == 60:
                path.write_text(path.read_text().replace('active = "by-rack"', 'active = "by-instant"'))
                server.signal(signal.SIGHUP)
                awaited(lambda: "the settings were loaded again" in server.said)
            seen, rack = views[number % 3], "abx"[number // 3 % 3]
            among = [*seen["brokers"]][: 2 + number % 2]
            body = decide(seen, rack, bundle=BUNDLE, candidates=among, listener=f"l{number % 2}")
            assert server.ask("POST", "/decide", body)[0] == 200
        assert server.stop() == 0
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the record that a test may change."""
    for file in original.rglob("*"):
        if file.is_file():
            target = tmp_path / file.relative_to(original)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    return tmp_path


def changed(folder: Path, table: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change rows of a recorded table in place; a row for which `change` answers False is taken out."""
    for file in (folder / "record" / table).rglob("*.parquet"):
        schema = pq.ParquetFile(file).schema_arrow
        rows = pq.read_table(file, partitioning=None).to_pylist()
        pq.write_table(pa.Table.from_pylist([row for row in rows if change(row) is not False], schema=schema), file)


def causes(folder: Path) -> dict[str, int]:
    """Verify the record of a folder and return the disagreements by cause."""
    verified = verify(str(folder / "record"), plugin_files=[str(folder / "plugin.py")])
    assert verified.agree + sum(verified.causes.values()) == verified.decisions == 120
    return dict(verified.causes)


def test_every_decision_is_the_same_again(folder: Path) -> None:
    """Odds, dice and choice of both policies agree to the last digit, also of one that reads the time."""
    assert causes(folder) == {}


@pytest.mark.parametrize("table", ["decisions", "views", "brokers", "loads"])
def test_other_programs_read_the_record(elsewhere: Elsewhere, original: Path, table: str) -> None:
    """With the odds and the candidates of each decision."""
    assert elsewhere(original / "record" / table, TABLES[table]) == written(original / "record" / table, TABLES[table])


def test_a_file_of_a_record_is_named_by_the_day_of_its_first_row(original: Path) -> None:
    """What is old can be found, and removed, by its name; there are no folders in a table's."""
    files = [path for table in ("decisions", "views", "brokers") for path in (original / "record" / table).iterdir()]

    assert files
    for file in files:
        first = pq.ParquetFile(file).read(["ts"])["ts"][0].as_py()
        assert re.fullmatch(rf"part-[0-9a-f]+-\d+-\d{{6}}-{first:%Y-%m-%d}\.parquet", file.name)


def test_a_record_of_an_earlier_release_goes_on(folder: Path) -> None:
    """Files in folders of cluster and day are verified, and a server writes beside them; half a file goes."""
    for file in [*(folder / "record").rglob("*.parquet")]:
        older = file.parent / "cluster=c1" / "date=2026-01-05" / file.name
        older.parent.mkdir(parents=True, exist_ok=True)
        file.rename(older)
    half = folder / "record" / "decisions" / "cluster=c1" / "date=2026-01-05" / ".part-9.parquet"
    half.write_bytes(b"PAR1")
    assert causes(folder) == {}
    with started(folder / "serving.toml") as server:
        assert server.ask("POST", "/decide", decide(view("a", "b"), "a"))[0] == 200
        assert server.stop() == 0
    assert not half.exists()

    verified = verify(str(folder / "record"), plugin_files=[str(folder / "plugin.py")])

    assert (verified.agree, verified.decisions) == (121, 121)


def test_the_command_prints_the_share(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The share that agrees is printed, with exit code 0 if it is all of them, else 1 and the causes."""
    words = ["verify", str(folder / "record"), "--plugin-file", str(folder / "plugin.py")]

    assert main(words) == 0
    assert capsys.readouterr().out == "120 of 120 decisions agree, 100.00%\n"
    changed(folder, "decisions", lambda row: row.update(seed=9, propensity=0.5) if row["broker"] == "b2:8080" else None)
    assert main([*words, "--format", "json"]) == 1
    content = json.loads(capsys.readouterr().out)
    assert content["causes"]["policy"] == content["decisions"] - content["agree"] > 0
    assert "0.5, and it is b2:8080" in content["examples"][0]["detail"]


def _nudge(row: dict[str, Any]) -> None:
    """Change the last bit of the first odds."""
    (broker, odds), *others = row["odds"]
    row["odds"] = [(broker, odds * (1 + 2**-52)), *others]


_LOAD, _DATA = '{"weightedMaxEMA":0.9}', '{"properties":{"lookup.rack":"z"}}'


@pytest.mark.parametrize(
    ("table", "change", "cause", "least"),
    [
        ("views", lambda row: row.update(load=_LOAD) if row["broker"] == "b1:8080" else None, "load", 1),
        ("views", lambda row: row.update(lookup_data=_DATA), "registry", 1),
        # The load comes first.
        ("views", lambda row: row.update(lookup_data=_DATA, load=_LOAD), "load", 1),
        ("views", lambda row: row["broker"] != "b2:8080", "view", 120),
        ("decisions", _nudge, "policy", 120),
        ("decisions", lambda row: row.update(declined="no-odds"), "policy", 120),
        # The choice is the same.
        ("decisions", lambda row: row.update(dice=row["dice"] and math.nextafter(row["dice"], 1.0)), "policy", 1),
    ],
    ids=["load", "registry", "both", "no-view", "odds", "declined", "dice"],
)
def test_what_was_changed_is_named(
    folder: Path, table: str, change: Callable[[dict[str, Any]], Any], cause: str, least: int
) -> None:
    """Decisions that depend on what is not as it was differ by that, to the last bit."""
    changed(folder, table, change)
    found = causes(folder)

    assert ({*found}, found[cause] >= least) == ({cause}, True)


def test_other_plugin_is_named(folder: Path) -> None:
    """If a plug-in is another one, decisions of its parts differ by its version; others agree."""
    (folder / "plugin.py").write_text(_PLUGIN.replace("FACTOR", "11 ** 0.5 * (1 + position)"))

    found = causes(folder)

    assert {*found} == {"plug-in version"}
    assert 0 < found["plug-in version"] <= 60


def test_changed_or_missing_settings_are_named(folder: Path) -> None:
    """If the document of settings is another one, or none, decisions differ by the settings."""
    (document,) = (folder / "record" / "settings").glob("*.json")
    document.write_text(document.read_text().replace('"temperature": 0.3', '"temperature": 0.4'))
    assert causes(folder)["settings"] > 0

    document.unlink()
    assert causes(folder) == {"settings": 120}


def documented(folder: Path, **changes: Any) -> None:
    """Change the document of settings; None takes a key out."""
    (path,) = (folder / "record" / "settings").glob("*.json")
    document = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in document.items() if value is not None}))


@pytest.mark.parametrize(
    "changes", [{"seed": None}, {"seed": "x"}, {"plugins": [1]}, {"prefix": 3}, {"policies": [3]}, {"topology": []}]
)
def test_document_that_is_none_is_named(folder: Path, changes: dict[str, Any]) -> None:
    """A document that no server wrote is a cause, and no failure."""
    documented(folder, **changes)

    assert causes(folder) == {"settings": 120}


def test_other_seed_is_named(folder: Path) -> None:
    """With another seed in the document the dice fall otherwise, by the settings."""
    documented(folder, seed=9)

    assert {*causes(folder)} == {"settings"}


@pytest.mark.parametrize(
    ("table", "values", "cause"),
    [
        ("decisions", {"properties": "{"}, "policy"),
        ("decisions", {"properties": "[1]"}, "policy"),
        ("decisions", {"properties": None}, "policy"),
        ("decisions", {"candidates": None}, "policy"),
        ("decisions", {"bundle": None}, "policy"),
        ("decisions", {"view": None}, "view"),
        ("decisions", {"settings": None}, "settings"),
        ("views", {"lookup_data": None}, "registry"),
        ("views", {"lookup_data": "{"}, "registry"),
        ("views", {"load": "[]"}, "load"),
    ],
)
def test_rows_that_no_server_wrote_are_named(folder: Path, table: str, values: dict[str, Any], cause: str) -> None:
    """Whatever stands in a row, its decision is one that does not agree, and the others are verified."""
    changed(folder, table, lambda row: row.update(values))

    assert cause in causes(folder)


@pytest.mark.parametrize(
    ("table", "column", "sentence"),
    [("decisions", "odds", "no column 'odds'"), ("views", "load", "cannot be read as views: ")],
)
def test_table_of_another_kind_is_a_sentence(folder: Path, table: str, column: str, sentence: str) -> None:
    """A file without a column, or that is torn, is refused with its name."""
    file = next((folder / "record" / table).rglob("*.parquet"))
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns([column]), file)
    with pytest.raises(InputError, match=sentence):
        verify(str(folder / "record"))

    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"\.parquet: "):
        verify(str(folder / "record"))


def test_folder_that_is_no_record_is_a_sentence(tmp_path: Path) -> None:
    """A folder without decisions is refused in one sentence."""
    with pytest.raises(InputError, match="is not a record with decisions"):
        verify(str(tmp_path))


def test_recorded_tables_are_inputs_of_an_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log that a server recorded is evaluated as it is, while the server runs, with the registry it recorded."""
    with started(settings_file(tmp_path)) as server:
        for number in range(40):
            topic, bundle = f"persistent://public/default/t{number}", "public/default/0x00000000_0xffffffff"
            answer = server.ask("POST", "/decide", decide(view("a", "b", "a", usage=0.2), topic=topic, bundle=bundle))[
                1
            ]
            entry = lookup_entry(topic=topic, bundle=bundle, answer=answer["broker"])
            server.ask("POST", "/record", {"broker": "b1:8080", "lookups": [entry]})
        awaited(lambda: len(read_table(server.record, "lookups")) == 40)
        (tmp_path / "evaluation.toml").write_text(
            'evaluation = { incumbent = "anywhere", seeds = 2 }\n'
            'inputs = { lookups = "record/lookups", brokers = "record/brokers", loads = "record/loads" }\n' + POLICIES
        )
        words = ["evaluate", str(tmp_path / "evaluation.toml"), "--output", str(tmp_path / "out")]
        code = main([*words, "--format", "json"])
    summary = json.loads(capsys.readouterr().out)
    rows = read_table(server.record, "lookups")

    assert code in {0, 3, 4}
    assert {row["propensity"] for row in rows} == {0.5}
    assert {entry["policy"] for entry in summary["figures"]} == {"by-rack", "anywhere"}
    pooled = [row for row in summary["figures"] if row["scope"] == "all clusters"]
    match = {row["policy"]: row["value"] for row in pooled if row["metric"] == "match_ratio"}
    assert match["by-rack"] == 1.0
