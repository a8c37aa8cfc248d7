"""The SQLite storage: what survives, what several processes see of each other, and files that are no catalog."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lookup.errors import InputError, NotFoundError
from lookup.topics.catalog import Catalog, SqliteStorage
from tests.topics.catalogs import NAMESPACE, everything, filled, heard, index, rebuilt, topic

_WRITER = Path(__file__).with_name("writer.py")


def _opened(folder: Path, **options: int) -> Catalog:
    return Catalog(SqliteStorage(folder / "topics.db", **options))


def _killed(folder: Path, way: str, n_lines: int) -> list[str]:
    """Let a process write, kill it after some lines, return all it said."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(_WRITER), str(folder / "topics.db"), way]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(n_lines)]
        process.kill()
        return said + process.stdout.read().split()


def test_a_catalog_opens_as_it_was_closed(tmp_path: Path) -> None:
    """Namespaces, topics, revision and events are all there."""
    catalog = filled(SqliteStorage(tmp_path / "topics.db"))
    before, events = everything(catalog), catalog.events_since(0)
    catalog.close()
    again = _opened(tmp_path)

    assert (everything(again), again.events_since(0)) == (before, events)
    assert index(again) == rebuilt(again)
    again.close()


def test_a_catalog_that_missed_too_much_reads_the_topics_anew(tmp_path: Path) -> None:
    """Listeners get the differences up to the file's revision, after a gap."""
    one, two = filled(SqliteStorage(tmp_path / "topics.db", n_events=2)), _opened(tmp_path)
    start, events = two.revision, heard(two)
    one.create_namespace("t/other")
    for value in "abc":
        one.set_pairs("labels", topic("q"), {"env": value})
    one.delete(topic("n", "non-persistent"))
    two.refresh()

    assert [(event.revision - start, event.kind) for event in events] == [
        (3, "deleted"),
        (4, "namespace-created"),
        (5, "labels"),
    ]
    assert everything(two) == everything(one)
    assert index(two) == rebuilt(two)
    one.close()
    two.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topics SET labels = '[]'",
        "UPDATE topics SET labels = '{\"a\": 1}'",
        "UPDATE topics SET properties = '{\"a\":'",
        "UPDATE topics SET labels = '{}, {}'",
        "UPDATE topics SET name = 'orders' WHERE name IN (SELECT name FROM topics LIMIT 1)",
        "DELETE FROM namespaces",
    ],
)
def test_rows_that_no_catalog_has_are_a_sentence(tmp_path: Path, statement: str) -> None:
    """Whoever wrote them."""
    path = tmp_path / "topics.db"
    filled(SqliteStorage(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()

    with pytest.raises(InputError, match="changed by another program"):
        _opened(tmp_path)


def test_a_killed_process_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Every topic whose write had returned is there with its labels, and at most one more."""
    said = _killed(tmp_path, "one by one", 25)
    catalog = _opened(tmp_path)
    found = catalog.topics(NAMESPACE)

    assert len(said) >= 25
    assert set(said) <= set(found)
    assert len(found) <= len(said) + 1
    assert [dict(entry.labels) for name in said if (entry := catalog.entry(name)) is not None] == [
        {"number": str(int(name.rsplit("/", 1)[1]) % 7), "more": "yes"} for name in said
    ]
    assert [event.revision for event in catalog.events_since(0)] == list(range(1, catalog.revision + 1))
    assert index(catalog) == rebuilt(catalog)
    catalog.create(topic("goes-on"))
    catalog.close()


def test_a_process_killed_inside_a_block_leaves_none_of_it(tmp_path: Path) -> None:
    """A transaction is there as a whole or not at all."""
    assert _killed(tmp_path, "block", 1) == ["inside"]
    catalog = _opened(tmp_path)

    assert (list(catalog.topics(NAMESPACE)), catalog.revision) == ([], 1)
    catalog.close()


def test_two_catalogs_on_one_file_hear_each_other(tmp_path: Path) -> None:
    """A write takes in what the other wrote first, `refresh` does too; revisions have no gaps."""
    one, two = filled(SqliteStorage(tmp_path / "topics.db")), _opened(tmp_path)
    heard_by_one, heard_by_two, start = heard(one), heard(two), one.revision
    two.create_namespace("t/other")
    two.set_pairs("labels", topic("q"), {"env": "prod"})
    one.set_pairs("properties", topic("q"), {"seen": "1"})
    two.refresh()

    assert heard_by_one == heard_by_two
    assert [(event.revision, event.kind) for event in heard_by_one] == [
        (start + 1, "namespace-created"),
        (start + 2, "labels"),
        (start + 3, "properties"),
    ]
    assert everything(one) == everything(two)
    one.close()
    two.close()


def test_what_another_process_deleted_cannot_be_changed(tmp_path: Path) -> None:
    """A write is judged by what is in the file, not by what was in memory; listeners hear at once what that is."""
    one, two = filled(SqliteStorage(tmp_path / "topics.db")), _opened(tmp_path)
    events = heard(two)
    one.delete(topic("q"))

    with pytest.raises(NotFoundError, match="there is no topic"):
        two.set_pairs("labels", topic("q"), {"env": "prod"})
    assert [event.kind for event in events] == ["deleted"]
    two.set_pairs("properties", topic("p"), {"seen": "1"})
    assert [event.kind for event in events] == ["deleted", "properties", "properties"]
    one.close()
    two.close()


def test_what_is_written_meanwhile_is_not_taken_for_lost(tmp_path: Path) -> None:
    """A question for events gets none if there are none, though another process writes before the answer."""
    one = filled(SqliteStorage(tmp_path / "topics.db"))

    class Overtaken(SqliteStorage):
        """A storage with another writer."""

        @property
        def revision(self) -> int:
            """Write one more event."""
            one.create(topic("meanwhile"))
            return super().revision

    two = Overtaken(tmp_path / "topics.db")
    assert list(two.events_since(one.revision)) == []
    two.close()
    one.close()


def test_a_write_waits_for_another_and_gives_up_with_a_sentence(tmp_path: Path) -> None:
    """A file that another process is writing to for too long is a mistake of the user's, not a traceback."""
    catalog = filled(SqliteStorage(tmp_path / "topics.db", lock_timeout_s=0.2))
    before = everything(catalog)
    other = sqlite3.connect(tmp_path / "topics.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(InputError, match=r"topics.db cannot be used: .* locked"):
        catalog.delete(topic("q"))
    other.close()
    assert everything(catalog) == before
    catalog.delete(topic("q"))
    catalog.close()


def test_a_missing_file_is_made_unless_it_must_exist(tmp_path: Path) -> None:
    """A reader gets an error and leaves no file behind."""
    with pytest.raises(InputError, match="there is no catalog"):
        SqliteStorage(tmp_path / "topics.db", must_exist=True)

    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_stays_empty_unless_something_is_written(tmp_path: Path) -> None:
    """A reader makes no catalog of it."""
    (tmp_path / "topics.db").touch()

    with pytest.raises(InputError, match="there is no catalog"):
        SqliteStorage(tmp_path / "topics.db", must_exist=True)
    assert (tmp_path / "topics.db").stat().st_size == 0


@pytest.mark.parametrize("must_exist", [True, False])
def test_a_folder_is_no_catalog(tmp_path: Path, must_exist: bool) -> None:
    """The sentence says that it is one, and what would be right."""
    with pytest.raises(InputError, match=rf"{tmp_path} is a folder; .*/topics\.db$"):
        SqliteStorage(tmp_path, must_exist=must_exist)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    """A text and another program's database are no catalogs."""
    text, foreign = tmp_path / "text.db", tmp_path / "foreign.db"
    text.write_text("not a database" * 70, encoding="utf-8")
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = foreign.read_bytes()

    with pytest.raises(InputError, match="file is not a database"):
        SqliteStorage(text)
    with pytest.raises(InputError, match="no catalog of topics"):
        SqliteStorage(foreign)
    assert foreign.read_bytes() == before


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    """The path is named."""
    with pytest.raises(InputError, match=r"nowhere/topics.db cannot be used"):
        SqliteStorage(tmp_path / "nowhere" / "topics.db")


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    """A file of a later release is not written to."""
    SqliteStorage(tmp_path / "topics.db").close()
    with sqlite3.connect(tmp_path / "topics.db") as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()

    with pytest.raises(InputError, match="catalog of version 3"):
        SqliteStorage(tmp_path / "topics.db")


def test_who_only_reads_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    """A catalog opens while another process writes to it, and shows the state before."""
    before = everything(filled(SqliteStorage(tmp_path / "topics.db")))
    other = sqlite3.connect(tmp_path / "topics.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM topics")
    catalog = _opened(tmp_path)

    assert everything(catalog) == before
    other.close()
    catalog.close()
