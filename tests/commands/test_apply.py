"""`lookup apply` refuses what cannot work in a sentence, with exit code 2, before anything is changed or written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lookup.cli import main
from lookup.moving.journal import Journal
from lookup.moving.shedding import KEY
from tests.moving.plans import written
from tests.moving.standin import StandIn, running


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Run a cluster whose state topic nobody can read, and connect commands to it."""
    monkeypatch.setenv("LOOKUP_CLUSTER__SERVICE_URL", "pulsar://127.0.0.1:1")
    with running() as started:
        monkeypatch.setenv("LOOKUP_CLUSTER__ADMIN", started.url)
        yield started


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the sentences of a run that is refused."""
    assert main(["apply", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "one of PLAN, --rollback JOURNAL"),
        (("p", "--recover", "j"), "one of PLAN, --rollback JOURNAL"),
        (("--rollback", "j", "--journal", "j"), "--journal: --rollback and --recover"),
        (("--recover", "j", "--freeze-shedding"), "--freeze-shedding: --recover moves nothing"),
        (("--recover", "j", "--max-load-age", "5m"), "--max-load-age: --recover moves nothing"),
        (("p", "--rate", "2"), "--rate: '2' is not"),
        (("p", "--rate", "0/min"), "--rate: '0/min' is not"),
        (("p", "--in-flight", "0"), "--in-flight: 0 should be above 0"),
        (("p", "--guard", "up"), "--prometheus, --guard: "),
        (("p", "--cluster", "no.toml"), "no.toml: "),
        (("p", "--prometheus", "x", "--guard", "up"), "--prometheus: "),
    ],
)
def test_flags_that_cannot_work(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str) -> None:
    """Each names the flag, and what would be right."""
    assert sentence in _refused(capsys, *words)


def test_what_must_be_given(
    standin: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The REST moves bundles, the topic says where they are."""
    path = str(written(standin.plan(), tmp_path))

    monkeypatch.delenv("LOOKUP_CLUSTER__ADMIN")
    assert "cluster.admin must be given" in _refused(capsys, path)
    monkeypatch.delenv("LOOKUP_CLUSTER__SERVICE_URL")
    monkeypatch.setenv("LOOKUP_CLUSTER__ADMIN", standin.url)
    assert "cluster.service_url must be given" in _refused(capsys, path)


def test_a_journal_of_another_plan_is_refused(
    standin: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is no journal at all."""
    path, journal = str(written(standin.plan(), tmp_path)), tmp_path / "journal"
    with Journal(journal) as opened:
        opened.begin(standin.plan(2))

    assert f"of another plan than {path}; --journal" in _refused(capsys, path, "--journal", str(journal), "--yes")
    journal.write_text("mine\n")
    assert "line 1 is not an entry" in _refused(capsys, path, "--journal", str(journal), "--yes")
    assert journal.read_text() == "mine\n"


def test_recover_puts_shedding_back(standin: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it was found; a second time there is nothing to do. The service URL is not needed."""
    path, standin.configuration[KEY] = tmp_path / "journal", "false"
    with Journal(path) as journal:
        journal.begin(standin.plan())
        journal.write("freezing", found="true")

    assert main(["apply", "--recover", str(path)]) == 0
    assert standin.configuration == {KEY: "true"}
    assert f"{KEY} is true again" in capsys.readouterr().err
    assert main(["apply", "--recover", str(path)]) == 0
    assert "nothing was changed" in capsys.readouterr().err
