"""What all tests share: the one Spark session, the data that is no part of the repository, the order of the suite."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from lookup.logs.readers import DelimitedReader
from lookup.spark.session import create_session

#: Plug-ins that are installed or loaded by tests; some are broken on purpose, none is a test.
collect_ignore = ["assets"]

_ROOT = Path(__file__).parent.parent
_SHARED_DATA = _ROOT.parent / "shared" / "data"

# Every run tries the same examples: what fails was broken by the change, and not found in it by chance. Examples that
# take long on a busy machine are no failure either: each test has a timeout of its own.
settings.register_profile(
    "suite", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# New examples each time, for who looks for what nobody has found yet: `pytest --hypothesis-profile=search`.
settings.register_profile("search", settings.get_profile("suite"), derandomize=False)
settings.load_profile("suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests without Spark first, then the documentation, then those with Spark; with a cluster if asked for."""
    # Not by `-m "not pulsar"` in setup.cfg: any other `-m` would replace it and start a cluster.
    for marker in ("pulsar", "cluster"):
        if marker not in config.option.markexpr:
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("spark") is not None:
        return 2
    return 1 if item.path.suffix == ".md" else 0


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the only Spark session of this process: starting one takes ten seconds, tests share it."""
    scratch = tmp_path_factory.mktemp("spark")
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


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let Ctrl-C interrupt this process, also where a shell has started it in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
