"""`lookup collect` on the command line, with an admin REST and without a cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lookup.cli import main
from lookup.commands.collect import duration
from lookup.logs.sources import list_log
from tests.collect.rest import Rest, running_rest
from tests.processes import HEEDING, awaited


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rest]:
    """Run an admin REST, and connect commands to it."""
    with running_rest() as running:
        monkeypatch.setenv("LOOKUP_CLUSTER__ADMIN", running.url)
        yield running


def _rows(record: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(record / table).to_pylist()
    return rows


def _events(record: Path) -> list[str]:
    return [row["event"] for row in _rows(record, "journal")]


def _started(rest: Rest, record: Path, *before_it: str) -> subprocess.Popen[str]:
    """Start a collector; return it when the first rows of the cluster are on disk.

    Args:
        before_it: a command that runs it.
    """
    process = subprocess.Popen(
        [
            *before_it, sys.executable, "-c", HEEDING, "collect", "--output", str(record), "--every", "0.1s",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    before = _events(record).count("started") if record.exists() else 0
    awaited(lambda: (record / "namespaces.toml").exists() and _events(record).count("started") > before)
    return process


def test_record_of_a_while(rest: Rest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After `--for` the tables are complete, what they lack was said, and the counts are printed as JSON."""
    record = tmp_path / "record"

    code = main(["collect", "--output", str(record), "--for", "1s", "--format", "json"])

    out, err = capsys.readouterr()
    assert code == 0
    assert json.loads(out)["rows"] == {"brokers": 2, "loads": 0, "bundles": 0, "ownership": 0}
    assert "without cluster.zookeeper BROKERS" in err
    assert "without cluster.service_url there" in err
    assert [(row["cluster"], row["broker"], row["event"]) for row in _rows(record, "brokers")] == [
        ("east", "a:8080", "registered"),
        ("east", "b:8080", "registered"),
    ]
    assert _events(record) == ["started", "stopped"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_record_cleanly(rest: Rest, tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM are the usual end: what waits is written, and the exit code is 0."""
    record = tmp_path / "record"
    process = _started(rest, record)

    process.send_signal(number)
    out, err = process.communicate()

    assert (process.returncode, "Traceback" in err) == (0, False)
    assert "brokers" in out
    assert _events(record)[-1] == "stopped"


def test_collector_under_nohup_outlives_its_terminal(rest: Rest, tmp_path: Path) -> None:
    """A SIGHUP that is ignored does not end a record."""
    record = tmp_path / "record"
    process = _started(rest, record, "nohup")

    process.send_signal(signal.SIGHUP)
    rest.answers["brokers/east"] = []
    awaited(lambda: len(_rows(record, "brokers")) == 4)

    process.terminate()
    process.communicate()
    assert process.returncode == 0


def test_killed_collector_goes_on_and_marks_the_gap(rest: Rest, tmp_path: Path) -> None:
    """After SIGKILL every file is whole; the next run writes who left meanwhile, and marks the time without record."""
    record = tmp_path / "record"
    process = _started(rest, record)
    awaited(lambda: len(_rows(record, "brokers")) == 2)
    process.kill()
    process.communicate()
    files = {table: list_log(str(record / table), table) for table in ("brokers", "loads", "bundles", "ownership")}
    rest.answers["brokers/east"] = ["b:8080"]

    again = _started(rest, record)
    awaited(lambda: len(_rows(record, "brokers")) == 3)
    again.terminate()
    _, err = again.communicate()

    assert sum(file.rows for file in files["brokers"]) == 2
    assert (_rows(record, "brokers")[-1]["broker"], _rows(record, "brokers")[-1]["event"]) == ("a:8080", "unregistered")
    (gap,) = [row for row in _rows(record, "journal") if row["event"] == "gap"]
    assert gap["since"] < gap["ts"]
    assert "nothing was recorded from " in err


def test_token_is_sent_and_never_shown(rest: Rest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The token of the environment reaches the server, and neither output nor record has it, even if it is refused."""
    monkeypatch.setenv("PULSAR_TOKEN", "s3cret")
    rest.answers["tenants"] = 401
    record = tmp_path / "record"

    main(["collect", "--output", str(record), "--for", "1s"])

    out, err = capfd.readouterr()
    assert rest.tokens == {"Bearer s3cret"}
    assert "HTTP status 401" in err
    assert "s3cret" not in out + err
    assert not [path for path in record.rglob("*") if path.is_file() and b"s3cret" in path.read_bytes()]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("token", ["s3cret\nof two lines", "s3cr\u00e9t", "s3cret\0", ""])
def test_token_that_no_header_holds_is_never_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str, scheme: str
) -> None:
    """A file that holds no token is named, what it holds is not."""
    (tmp_path / "token").write_text(token, encoding="utf-8")
    text = f'[cluster]\nadmin = "{scheme}://127.0.0.1:1"\ntoken_file = "token"\n'
    (tmp_path / "cluster.toml").write_text(text)

    assert main(["collect", "--cluster", str(tmp_path / "cluster.toml"), "--output", str(tmp_path / "record")]) == 2
    err = capsys.readouterr().err
    assert f"the token in {tmp_path / 'token'} " in err
    assert "s3c" not in err


def test_disk_that_refuses_makes_rows_wait(rest: Rest, tmp_path: Path) -> None:
    """While a table cannot be written the collector runs on and says so, and nothing is lost when it can."""
    record = tmp_path / "record"
    process = _started(rest, record)
    awaited(lambda: len(_rows(record, "brokers")) == 2)
    brokers, aside = record / "brokers", tmp_path / "aside"
    brokers.rename(aside)
    brokers.write_text("in the way")
    rest.answers["brokers/east"] = []
    assert process.stderr is not None

    lines = iter(process.stderr.readline, "")
    assert next(line for line in lines if f"--output: {record}/brokers cannot be written, rows wait" in line)
    brokers.unlink()
    aside.rename(brokers)
    assert next(line for line in lines if "can be written again" in line)
    process.terminate()
    process.communicate()

    assert [row["event"] for row in _rows(record, "brokers")] == ["registered"] * 2 + ["unregistered"] * 2


def test_rows_that_the_disk_never_took_are_named(rest: Rest, tmp_path: Path) -> None:
    """A collector that ends while it cannot write says how many it has lost."""
    record = tmp_path / "record"
    process = _started(rest, record)
    awaited(lambda: len(_rows(record, "brokers")) == 2)
    (record / "brokers").rename(tmp_path / "aside")
    (record / "brokers").write_text("in the way")
    rest.answers["brokers/east"] = []
    assert process.stderr is not None
    assert next(line for line in iter(process.stderr.readline, "") if "rows wait in memory" in line)

    process.terminate()
    _, said = process.communicate()

    assert "lost, since nothing could be written: 2 rows of brokers" in said


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "--cluster: give a file with an address"),
        ({"admin": "b:8080"}, "cluster.toml: cluster.admin: should be of"),
        ({"service_url": "http://b"}, "cluster.service_url: "),
        ({"service_url": "pulsar://[::1]:1"}, "cluster.service_url: has an IPv6 address"),
        ({"zookeeper": "a/../b"}, "cluster.zookeeper: should be of the form HOST:PORT"),
        ({"admin": "http://me:pw@b"}, "cluster.admin: names a user"),
        ({"zookeeper": "z", "tls_ca": "/no/ca"}, "cluster: /no/ca cannot be read"),
        ({"admin": "https://h:1", "tls_ca": __file__}, f"cluster.tls_ca: {__file__} "),
        ({"admin": "https://h:1", "tls_cert": __file__, "tls_key": __file__}, "cluster.tls_cert, cluster.tls_key: "),
        ({"zookeeper": "z", "tls_key": __file__}, "tls_cert and tls_key: one needs"),
        ({"zookeeper": "z"}, "cluster.name must be given where"),
        ({"admin": "http://127.0.0.1:1"}, "cluster.name must be given, since"),
        ({"adnim": "http://b:1"}, "adnim"),
    ],
)
def test_mistake_is_a_sentence(
    keys: dict[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong with the connection is said with what would be right, without a password, and nothing is made."""
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    (tmp_path / "cluster.toml").write_text(f"[cluster]\n{lines}")

    code = main(["collect", "--cluster", str(tmp_path / "cluster.toml"), "--output", str(tmp_path / "record")])

    err = capsys.readouterr().err
    assert (code, "pw" in err) == (2, False)
    assert sentence in err
    assert not (tmp_path / "record").exists()


def test_durations() -> None:
    """A duration is a number with a unit, seconds if it has none."""
    assert [duration(text) for text in ("90", "30s", "1.5m", "2h", "1d")] == [90, 30, 90, 7_200, 86_400]
