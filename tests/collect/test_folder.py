"""Folders of records: complete files, what an earlier record ends with, and who may write."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lookup.collect.folder import RecordFolder
from lookup.collect.observing import COLLECTED, BrokerRegistry, Bundles, Observer
from lookup.errors import InputError
from lookup.logs.schema import CANONICAL
from tests.collect.session import records, rows_of, state_records, taken
from tests.programs import Elsewhere, written


def _write(folder: RecordFolder, observer: Observer, until_us: int) -> None:
    for table, rows in observer.pending.items():
        if rows:
            folder.write(table, rows, until_us=until_us, position=observer.position)
            rows.clear()


def test_rows_are_in_the_tables_as_they_were_taken(tmp_path: Path) -> None:
    """What an observer found in a real session is read back from the canonical tables."""
    observer = taken(Observer("east"), list(records()))
    expected = {table: [row[2:] for row in observer.pending[table]] for table in COLLECTED}

    with RecordFolder(str(tmp_path)) as folder:
        _write(folder, observer, 1)

    for table in COLLECTED:
        read = [tuple(row.values()) for row in pq.read_table(tmp_path / table).to_pylist()]
        assert [row[2:] for row in read] == expected[table]
        assert {row[1] for row in read} <= {"east"}


@pytest.mark.parametrize("table", COLLECTED)
def test_other_programs_read_a_record_while_it_grows(elsewhere: Elsewhere, tmp_path: Path, table: str) -> None:
    """First a table without rows, then the rows of a session."""
    observer = taken(Observer("007"), list(records()))
    schema = CANONICAL[table]

    with RecordFolder(str(tmp_path)) as folder:
        assert elsewhere(tmp_path / table, schema) == []
        _write(folder, observer, 1)
        assert elsewhere(tmp_path / table, schema) == written(tmp_path / table, schema)


def test_past_is_what_the_record_ends_with(tmp_path: Path) -> None:
    """Owners, brokers, bundles, the place in the state topic and the time are found again."""
    observer = taken(Observer("east"), state_records())
    taken(observer, [BrokerRegistry({"a": '{"brokerVersion":"4.2.4"}', "b": None}, 7), BrokerRegistry({"b": None}, 8)])
    taken(observer, [Bundles("public/orders", (0, 0x80000000, 0xFFFFFFFF), 9)])
    splits = [row for row in rows_of(observer, "ownership") if row["event"] == "split"]
    with RecordFolder(str(tmp_path)) as folder:
        _write(folder, observer, 10)
        folder.write_namespaces(observer.first_boundaries)

    with RecordFolder(str(tmp_path)) as folder:
        past = folder.past("east")

    assert past.brokers == {"b": None}
    assert past.boundaries == {"public/orders": (0, 0x80000000, 0xFFFFFFFF)}
    assert past.cuts == {"public/orders": {int(end, 16) for split in splits for end in split["boundaries"]}}
    assert (past.position, past.until_us) == (observer.position, 10)
    assert past.owners == observer._owners


def test_place_in_the_state_topic_comes_from_ownership_alone(tmp_path: Path) -> None:
    """Killed between two tables, rows of OWNERSHIP that were not written yet are read again."""
    observer = taken(Observer("east"), list(records()))
    with RecordFolder(str(tmp_path)) as folder:
        for table, until_us in {"brokers": 9, "loads": 10, "bundles": 8}.items():
            folder.write(table, observer.pending[table], until_us=until_us, position=observer.position)

        past = folder.past("east")

    assert (past.position, past.until_us) == (None, 10)


def test_half_written_file_is_removed(tmp_path: Path) -> None:
    """What a process that was killed left half-written is gone before anything is recorded."""
    with RecordFolder(str(tmp_path)):
        pass
    torn = tmp_path / "loads" / ".part-000002.parquet"
    torn.write_bytes(b"PAR1")

    with RecordFolder(str(tmp_path)):
        assert not torn.exists()


def test_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """A refusal of the system leaves no file, and the next attempt writes the rows."""
    observer = taken(Observer("east"), list(records()))
    with RecordFolder(str(tmp_path / "record")) as folder:
        loads = tmp_path / "record" / "loads"
        loads.rename(tmp_path / "elsewhere")
        loads.write_text("in the way")
        with pytest.raises(OSError, match="loads"):
            _write(folder, observer, 1)
        loads.unlink()
        (tmp_path / "elsewhere").rename(loads)

        _write(folder, observer, 2)

        assert [part.name for part in sorted(loads.iterdir())] == ["part-000001.parquet", "part-000002.parquet"]


def test_two_processes_cannot_record_into_one_folder(tmp_path: Path) -> None:
    """Whoever comes second is refused in a sentence, until the first has ended."""
    with RecordFolder(str(tmp_path)), pytest.raises(InputError, match="another process records into it"):
        RecordFolder(str(tmp_path)).__enter__()

    with RecordFolder(str(tmp_path)):
        pass


def test_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """A folder with other files is named and left as it was."""
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(InputError, match="holds no record"):
        RecordFolder(str(tmp_path)).__enter__()

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("brokers/part-copy.parquet", "", "part-copy.parquet is not a file"),
        ("brokers/part-000001 (1).parquet", "", "is not a file of this record"),
        ("brokers/part-000009.parquet", "PAR1", "cannot be read as Parquet"),
        ("namespaces.toml", "x =", "Invalid value"),
        ("namespaces.toml", "x = 1", ": 'namespaces'"),
        ("namespaces.toml", '[[namespaces]]\nname = "t/n"\nboundaries = ["x"]', "invalid literal"),
        ("namespaces.toml", "namespaces = 3", "is not a file of `lookup collect`"),
    ],
    ids=["copy", "another copy", "torn", "no TOML", "another table", "no boundary", "no list"],
)
def test_record_that_somebody_changed_is_refused(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    """A file that the collector did not write ends in a sentence that names it."""
    with RecordFolder(str(tmp_path)):
        pass
    (tmp_path / name).write_text(text)

    with pytest.raises(InputError) as raised, RecordFolder(str(tmp_path)) as folder:
        folder.past("east")

    assert name.rpartition("/")[2] in str(raised.value)
    assert sentence in str(raised.value)


def test_record_of_another_cluster_is_refused(tmp_path: Path) -> None:
    """Two clusters do not share a record."""
    observer = taken(Observer("east"), [BrokerRegistry({"a": None}, 7)])
    with RecordFolder(str(tmp_path)) as folder:
        _write(folder, observer, 1)

        with pytest.raises(InputError, match="cluster 'east', not of 'west'"):
            folder.past("west")


def test_namespaces_are_settings_of_an_evaluation(tmp_path: Path) -> None:
    """The bundles of namespaces are written as `[[namespaces]]` has them, the latest last."""
    with RecordFolder(str(tmp_path)) as folder:
        folder.write_namespaces({"t/b\U0001d400": (0, 0xFFFFFFFF), "t/a": (0, 16, 0xFFFFFFFF)})

    assert tomllib.loads((tmp_path / "namespaces.toml").read_text()) == {
        "namespaces": [
            {"name": "t/b\U0001d400", "boundaries": ["0x00000000", "0xffffffff"]},
            {"name": "t/a", "boundaries": ["0x00000000", "0x00000010", "0xffffffff"]},
        ]
    }
