"""Inputs, outputs and work folders in an object store give the bytes of a disk; what is unfinished is not read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lookup.collect.folder import RecordFolder
from lookup.collect.observing import Observer
from lookup.errors import InputError
from lookup.logs import sources
from lookup.logs.sources import UNFINISHED, list_log
from tests.collect.session import records, taken
from tests.processes import awaited
from tests.replay.commands import ROOT, differences, evaluation, lookup
from tests.replay.object_store import BUCKET, ObjectStore, running_object_store
from tests.replay.standalone import running_standalone

pytestmark = pytest.mark.cluster

_TABLES = ("brokers", "bundles", "loads", "lookups", "ownership")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """Start an object store, and let this process and those it starts use it."""
    try:
        running = running_object_store(tmp_path_factory.mktemp("store"))
        with running as started, pytest.MonkeyPatch.context() as patched:
            for name, value in started.variables.items():
                patched.setenv(name, value)
            yield started
    except RuntimeError as error:
        pytest.skip(str(error))
    finally:
        # Later tests may fork again.
        sources._bucket.cache_clear()
        sources._CONNECTED.clear()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a log of two clusters on disk."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    done = lookup("generate", "--lookups", "20000", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def stored(store: ObjectStore) -> str:
    """Generate the same log in the store."""
    done = lookup("generate", "--lookups", "20000", "--output", f"s3://{BUCKET}/sample")
    assert done.returncode == 0, done.stderr
    return f"s3://{BUCKET}/sample"


def _evaluation(sample: str, output: str) -> list[str]:
    return [*evaluation(sample, output), "--set", "evaluation.seeds=2"]


def _fetched(store: ObjectStore, folder: str, target: Path) -> Path:
    """Copy a folder of the store to the disk."""
    for name in store.names(folder):
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.system.open_input_file(f"{BUCKET}/{folder}/{name}").read())
    return target


def test_log_is_generated_as_on_a_disk(store: ObjectStore, stored: str, sample: Path, tmp_path: Path) -> None:
    """Every file of every table, and the manifest; no other object is left."""
    assert differences(sample, _fetched(store, "sample", tmp_path)) == []
    assert [name for name in store.names("sample") if name.partition("/")[0] not in _TABLES] == ["manifest.json"]


@pytest.mark.parametrize("master", ["none", "local[2]"])
def test_evaluation_in_a_store_is_that_of_a_disk(
    store: ObjectStore, stored: str, sample: Path, tmp_path: Path, master: str
) -> None:
    """Inputs, work folder and output; no secret is written down, and nothing of the work is left."""
    output = f"runs/{master.partition('[')[0]}"
    here = lookup(*_evaluation(str(sample), str(tmp_path / "here")), "--master", "none")
    assert here.returncode in (0, 3, 4), here.stderr

    done = lookup(*_evaluation(stored, f"s3://{BUCKET}/{output}"), "--master", master)

    assert done.returncode == here.returncode, done.stderr
    there = _fetched(store, output, tmp_path / "there")
    assert differences(tmp_path / "here", there) == []
    assert not any(UNFINISHED in name or name.startswith(".") for name in store.names(output))
    assert store.variables["AWS_SECRET_ACCESS_KEY"] not in (there / "manifest.json").read_text()


def test_workers_of_a_cluster_use_the_store(
    store: ObjectStore, stored: str, sample: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """They share nothing else: neither a disk nor the package."""
    here = lookup(*_evaluation(str(sample), str(tmp_path / "here")), "--master", "none")
    assert here.returncode in (0, 3, 4), here.stderr
    with (
        running_standalone(tmp_path_factory.mktemp("spark")) as cluster,
        # Listens where workers in networks of their own can reach it.
        running_object_store(tmp_path / "store", cluster.host) as reached,
        pytest.MonkeyPatch.context() as patched,
    ):
        for name, value in reached.variables.items():
            patched.setenv(name, value)
        for number in (1, 2):
            cluster.start_worker(number)
        made = lookup("generate", "--lookups", "20000", "--output", f"s3://{BUCKET}/sample")
        assert made.returncode == 0, made.stderr
        arguments = _evaluation(f"s3://{BUCKET}/sample", f"s3://{BUCKET}/run")
        done = lookup(*arguments, "--master", cluster.master, variables=cluster.variables())

        assert done.returncode == here.returncode, done.stderr
        assert differences(tmp_path / "here", _fetched(reached, "run", tmp_path / "there")) == []


def test_run_in_a_store_is_read_by_every_command(store: ObjectStore, stored: str, tmp_path: Path) -> None:
    """Its page is drawn again, it is compared with another, and its decisions are explained."""
    run = f"s3://{BUCKET}/runs/read"
    assert lookup(*_evaluation(stored, run), "--master", "none").returncode in (0, 3, 4)
    before = store.names("runs/read")

    summary, manifest = (
        json.loads(store.system.open_input_file(f"{BUCKET}/runs/read/{name}.json").read())
        for name in ("summary", "manifest")
    )
    settings = manifest["settings"]
    cluster, policy = summary["inputs"]["clusters"][0], settings["policies"][0]["name"]
    decision = f"{cluster}/{policy}/{settings['evaluation']['seeds'][0]}"

    drawn, compared = lookup("report", run), lookup("diff", run, run)
    decided = lookup("explain", run, "--decision", f"{decision}/0", "--master", "none")

    assert drawn.returncode == 0, drawn.stderr
    assert compared.returncode == 0, compared.stderr
    assert decided.returncode == 0, decided.stderr
    assert store.names("runs/read") == before


def test_log_is_ingested_from_a_store_into_it(store: ObjectStore, tmp_path: Path) -> None:
    """The same rows as from a disk to a disk."""
    log = tmp_path / "access.log"
    line = '10.0.0.{0} - - [01/Aug/1995:00:{1:02d}:01 -0400] "GET /a/{2} HTTP/1.0" 200 5\n'
    log.write_text("".join(line.format(n % 9, n % 60, n % 7) for n in range(200)))
    with store.system.open_output_stream(f"{BUCKET}/logs/access.log") as sink:
        sink.write(log.read_bytes())
    flags = ["--mapping", "shipped:access-log", "--cluster", "web", "--master", "none"]
    here = lookup("ingest", str(log), *flags, "--output", str(tmp_path / "here"))
    assert here.returncode == 0, here.stderr

    done = lookup("ingest", f"s3://{BUCKET}/logs/access.log", *flags, "--output", f"s3://{BUCKET}/ingested")

    assert done.returncode == 0, done.stderr
    rows = [
        pq.read_table(folder / "lookups", columns=["ts", "topic", "seq"], partitioning=None)
        for folder in (tmp_path / "here", _fetched(store, "ingested", tmp_path / "there"))
    ]
    assert rows[0].equals(rows[1])
    assert not any(name.startswith(".") for name in store.names("ingested"))


def test_run_that_was_killed_is_not_read(store: ObjectStore, stored: str) -> None:
    """Neither by `report` nor as a log, until another one takes its place."""
    output = f"s3://{BUCKET}/runs/killed"
    command = [sys.executable, "-m", "lookup", *_evaluation(stored, output), "--master", "none"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        awaited(lambda: any(name.startswith(("decisions/", ".work/")) for name in store.names("runs/killed")))
        process.send_signal(signal.SIGKILL)

    drawn = lookup("report", output)
    again = lookup(*_evaluation(stored, output), "--master", "none")
    forced = lookup(*_evaluation(stored, output), "--master", "none", "--force")

    assert drawn.returncode == 2
    assert "is being written, since" in drawn.stderr
    assert (again.returncode, "is not empty" in again.stderr) == (2, True)
    assert forced.returncode in (0, 3, 4), forced.stderr
    assert lookup("report", output).returncode == 0


def test_record_goes_on_in_a_store(store: ObjectStore) -> None:
    """`lookup collect` finds what it ended with; a second process that would write the same file is refused."""
    observer = taken(Observer("east"), list(records()))
    expected = {table: len(rows) for table, rows in observer.pending.items()}
    with RecordFolder(f"s3://{BUCKET}/record") as folder, RecordFolder(f"s3://{BUCKET}/record") as second:
        for table, rows in observer.pending.items():
            folder.write(table, rows, until_us=7, position=observer.position)
        with pytest.raises(InputError, match="another process records into it"):
            second.write("brokers", [], until_us=8, position=None)
        folder.write_namespaces({"public/a": (0, 0xFFFFFFFF)})

    with RecordFolder(f"s3://{BUCKET}/record") as again:
        past = again.past("east")

    assert (past.until_us, past.position) == (7, observer.position)
    assert past.boundaries == {"public/a": (0, 0xFFFFFFFF)}
    written = {
        table: sum(file.rows for file in list_log(f"s3://{BUCKET}/record/{table}", table))
        for table in ("brokers", "ownership")
    }
    assert written == {table: expected[table] for table in written}


def test_store_without_rights_is_a_sentence(store: ObjectStore, tmp_path: Path) -> None:
    """As is one that does not answer."""
    wrong = {**os.environ, "AWS_SECRET_ACCESS_KEY": "wrong"}
    refused = lookup("generate", "--lookups", "100", "--output", f"s3://{BUCKET}/x", variables=wrong)

    assert refused.returncode == 2
    assert f"--output: s3://{BUCKET}/x cannot be written" in refused.stderr
    assert "Traceback" not in refused.stderr
