"""What all tests share: the one Spark session, data from outside, the order of the suite, and which tests are quick."""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from lookup.logs.readers import DelimitedReader
from tests.programs import PROGRAMS, Elsewhere, texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Plug-ins that are installed or loaded by tests; some are broken on purpose, none is a test.
collect_ignore = ["assets"]

_TESTS = Path(__file__).parent
_ROOT = _TESTS.parent
_SHARED_DATA = _ROOT.parent / "shared" / "data"

# Every run tries the same examples: what fails was broken by the change, and not found in it by chance. Examples that
# take long on a busy machine are no failure either: each test has a timeout of its own.
settings.register_profile(
    "suite", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# What other releases of the packages do otherwise shows in few of them: `make test-lowest` and `make test-newest`.
settings.register_profile("few", settings.get_profile("suite"), max_examples=20)
# New examples each time, for who looks for what nobody has found yet: `pytest --hypothesis-profile=search`.
settings.register_profile("search", settings.get_profile("suite"), derandomize=False)
settings.load_profile("suite")

#: Markers of tests that are not quick.
_SLOW = ("browser", "cluster", "docs", "long", "process", "pulsar", "spark", "thorough")
#: Markers of tests that run only if asked for, but for one real path each.
_APART = ("cluster", "docs", "pulsar", "thorough")
#: The file of what is equal on Spark and in this process: the other tests with Spark are for `make cluster`.
_ON_SPARK = "test_on_spark.py"
#: The pages that a new user reads first, whose commands run in `make test`.
_FIRST_PAGES = ("README.md", "first-policy.md", "getting-lookups.md")
#: Markers by the fixtures that start something.
_FIXTURES = {"browser": "browser", "spark": "spark"} | dict.fromkeys(
    "at_server either endless guarded installed printed sdist server site unchanged wheel".split(), "process"
)
#: What a test calls that starts a process itself.
_CALLS = {"output_of", "started_apart", "subprocess"}
#: Markers of all tests of a file.
FILES = {
    "long": """
        commands/test_simulate.py fuzzing/test_fuzzing.py
        logs/test_foreign_forms.py plugins/test_conformance.py plugins/test_shedders.py replay/test_exact.py
        replay/test_reports.py replay/test_walk.py topics/catalog/test_faults.py
    """.split(),
    "thorough": ["acceptance/calibration/test_calibration.py", "test_docs_site.py"],
    "process": """
        commands/test_collect.py commands/test_evaluate_processes.py commands/test_streams.py java/test_asking.py
        moving/test_kills.py scripts/test_tools.py serve/test_faults.py serve/test_verifying.py test_pulsar_lookup.py
        topics/catalog/test_sqlite.py
    """.split(),
}
#: Seconds that a thorough test may take.
_THOROUGH_S = 2400
#: What a page of docs does that starts a process.
_STARTS = re.compile(r"^<!-- run|create_session\(", re.MULTILINE)
#: The quick test that runs, if one does.
_QUICK: list[str] = []


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist, which who runs one test need not have
def pytest_xdist_auto_num_workers() -> int:
    """Return half as many processes again as there are cores: tests of servers and programs wait much of their time."""
    cores = os.cpu_count() or 1
    return cores + cores // 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run long tests first, then those without Spark, the documentation, those with Spark; others if asked for."""
    for item in items:
        _mark(item)
    # Not by `-m "not pulsar"` in setup.cfg: any other `-m` would replace it and start a cluster.
    unasked = [marker for marker in _APART if marker not in config.option.markexpr]
    left = [item for item in items if item.get_closest_marker("path") or not any(map(item.get_closest_marker, unasked))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(left)])
    items[:] = left
    items.sort(key=_turn)


def _mark(item: pytest.Item) -> None:
    """Mark a test by its file, its fixtures and the functions that it calls, a page of docs by its text."""
    needed = {_FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in _FIXTURES}
    needed |= {marker for marker, files in FILES.items() if any(item.path == _TESTS / file for file in files)}
    if isinstance(item, pytest.Function) and _CALLS & {*item.function.__code__.co_names}:
        needed.add("process")
    marked = needed | {mark.name for mark in item.iter_markers()}
    if "spark" in marked and "thorough" not in marked and item.path.name != _ON_SPARK:
        needed.add("cluster")
    # The blocks of a page share their names, so that all run or none.
    if item.path.suffix == ".md" and _STARTS.search(item.path.read_text(encoding="utf-8")):
        needed |= {"docs", "process"} | ({"path"} if item.path.name in _FIRST_PAGES else set())
    for marker in sorted(needed):
        item.add_marker(marker)
    if not any(item.get_closest_marker(marker) for marker in _SLOW):
        item.add_marker("quick")
    if item.get_closest_marker("thorough"):
        # They run beside others that come first.
        item.add_marker(pytest.mark.timeout(_THOROUGH_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the name of a quick test, which must not start a process."""
    _QUICK[:] = [item.nodeid] if item.get_closest_marker("quick") else []
    try:
        return (yield)
    finally:
        _QUICK.clear()


def _refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    """Let a quick test fail that starts a program; forks, in which this process goes on, are quick."""
    if event in {"os.posix_spawn", "os.system", "subprocess.Popen"} and _QUICK:
        raise AssertionError(f"{_QUICK[0]} starts {arguments[0]!r}: mark it `process`")


# Once in a process these start `uname`, of which a manifest has what it says, and with NumPy 2.0 `lscpu`; SciPy imports
# the second.
platform.platform()
importlib.import_module("numpy.testing")
sys.addaudithook(_refuse_processes)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("spark") is not None:
        return 3
    if item.path.suffix == ".md":
        return 2
    return 0 if item.get_closest_marker("long") is not None else 1


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the only Spark session of this process: starting one takes ten seconds, tests share it."""
    scratch = tmp_path_factory.mktemp("spark")
    from lookup.spark.session import create_session  # noqa: PLC0415  few files need Spark, whose import takes a second

    session = create_session(
        "local[2]",
        "pulsar-lookup-tests",
        settings={
            # Tables and shuffle files of tests go where pytest cleans up.
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.local.dir": str(scratch / "local"),
            # Two cores; more partitions of tiny data are only more tasks.
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    session.stop()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.spark) if name == "spark" else name for name in PROGRAMS])
def elsewhere(request: pytest.FixtureRequest) -> Elsewhere:
    """Return what reads a table's folder in another program; a test with it runs for each of them."""
    read = PROGRAMS[request.param]
    return lambda folder, schema: texts(read(str(folder), schema, lambda: request.getfixturevalue("spark")), schema)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of shared data; skip the test where it is absent."""
    if not _SHARED_DATA.is_dir():
        pytest.skip(f"{_SHARED_DATA} is absent: the repository holds no third-party data")
    return _SHARED_DATA


@pytest.fixture
def nasa_reader() -> DelimitedReader:
    """Build the reader of the NASA trace from the shipped mapping."""
    mapping = tomllib.loads((_ROOT / "configs" / "nasa.toml").read_text())
    assert mapping.pop("use") == DelimitedReader.name
    return DelimitedReader(**mapping)
