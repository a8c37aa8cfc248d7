"""A journal is read as it was written, refused if it is none, and written by one process at a time."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from lookup.errors import InputError, StateError
from lookup.moving.journal import Journal, read_journal
from tests.moving.plans import plan_of_moves

_PLAN = plan_of_moves([("a/b/0x00000000_0xffffffff", "a:1", "b:1", 1)], ["a:1", "b:1"])


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """The plan, the latest entry of each step there and back, and what shedding was."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.begin(_PLAN)
        journal.write("freezing", found="true")
        journal.write("requested", step=1, bundle="b")
        journal.write("moved", step=1, bundle="b")
        journal.write("skipped", step=1, bundle="b", back=True, reason="lost")

    read = read_journal(path)

    assert read.plan == _PLAN
    assert (read.there[1]["event"], read.back[1]["reason"]) == ("moved", "lost")
    assert read.frozen is not None
    assert read.frozen["found"] == "true"
    with Journal(path) as journal:
        journal.write("thawed")
    assert read_journal(path).frozen is None


def test_a_journal_without_entries_is_not_left_behind(tmp_path: Path) -> None:
    """A run that is refused after it has taken the journal leaves the disk as it was."""
    with Journal(tmp_path / "journal") as journal:
        assert journal.is_new

    assert [*tmp_path.iterdir()] == []


def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    """The second is refused; reading is free."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.begin(_PLAN)
        with pytest.raises(InputError, match="another `lookup apply`"), Journal(path):
            pass
        assert read_journal(path).plan == _PLAN


def test_a_line_that_is_no_entry_is_named(tmp_path: Path) -> None:
    """Its number and what stands there; an entry that is not the last is never half."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.begin(_PLAN)
    path.write_bytes(path.read_bytes() + b"mine\n" + b'{"event": "thawed"}\n')

    with pytest.raises(InputError, match=r"journal, line 2 .*'mine'"):
        read_journal(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty"),
        (b'{"event": "begun", "journal": 2, "at": "x", "plan": {}}\n', "journal of version 2"),
        (b'{"event": "begun", "journal": 1, "at": "x", "plan": {}}\n', "line 1 was changed"),
        (b'{"event": "thawed", "at": "x"}\n', "line 1 was changed"),
        (b"[]\n", "line 1 is not an entry"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    """Each in one sentence."""
    path = tmp_path / "journal"
    path.write_bytes(content)

    with pytest.raises(InputError, match=sentence):
        read_journal(path)


def _written(path: Path) -> list[bytes]:
    """Write a journal, and return its lines."""
    with Journal(path) as journal:
        journal.begin(_PLAN)
        journal.write("freezing", found="true")
        journal.write("requested", step=1, bundle="b", **{"from": "a:1", "to": "b:1", "since_us": 1})
        journal.write("moved", step=1, bundle="b")
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (lambda lines: [lines[0].replace(b'"to": "b:1"', b'"to": "c:1"'), *lines[1:]], 1),
        (lambda lines: [lines[0], lines[1].replace(b'"true"', b'"x/y"'), *lines[2:]], 2),
        (lambda lines: [lines[0], lines[1].replace(b'"found"', b'"fund"'), *lines[2:]], 2),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
        (lambda lines: [*lines, lines[3]], 5),
    ],
    ids=["plan", "value", "key", "without a line", "in another order", "a line twice"],
)
def test_a_journal_that_was_edited_is_refused(
    tmp_path: Path, lines: Callable[[list[bytes]], list[bytes]], named: int
) -> None:
    """Each entry has a checksum of itself and the one before; it is what the way back goes by."""
    path = tmp_path / "journal"
    path.write_bytes(b"".join(lines(_written(path))))

    with pytest.raises(InputError, match=f"journal, line {named} was changed"):
        read_journal(path)


def test_a_disk_that_is_full_is_named_and_spoils_nothing(tmp_path: Path) -> None:
    """No part of the entry stays, so that the next one follows the one before."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.begin(_PLAN)
        before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, limits[1]))
        try:
            with pytest.raises(StateError, match=r"^journal: .*/journal cannot be written: File too large"):
                journal.write("freezing", found="true")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
        journal.write("stopped", reason="the disk")

    assert read_journal(path).frozen is None
