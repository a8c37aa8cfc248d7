"""The readers on real log lines of public threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.hooks import LogReader
from lookup.logs.readers import CppClientReader, JettyAccessReader, PulsarBrokerReader
from lookup.model.documents import Row
from tests.logs.readers.lines import read_lines


@pytest.fixture
def samples(shared_data: Path) -> dict[str, tuple[str, ...]]:
    """Return the raw lines of every sample by its id."""
    path = shared_data.parent / "facts" / "log_lines.txt"
    if not path.is_file():
        pytest.skip(f"{path} is absent: the repository holds no third-party data")
    records: dict[str, tuple[str, ...]] = {}
    for block in path.read_text().split("\n\n"):
        head, *lines = block.strip().splitlines()
        if head.startswith("# L"):
            records[head[2:5]] = tuple(lines)
    return records


@pytest.mark.shared
def test_all_samples_are_there(samples: dict[str, tuple[str, ...]]) -> None:
    """The file has the 32 records the facts promise."""
    assert list(samples) == [f"L{number:02}" for number in range(1, 33)]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (
            "L04",
            {"ts": 1640788657641000, "topic": "persistent://public/data-channel/tet-partition-30", "result": "failed"},
        ),
        (
            "L05",
            {
                "ts": 1695198452188000,
                "bundle": "pulsar/broker-0:8080/0x00000000_0xffffffff",
                "event": "owned",
                "broker": "broker-2:8080",
                "by": "policy",
            },
        ),
        (
            "L17",
            {
                "ts": 1759148285109000,
                "bundle": "pulsar/standalone/localhost:8080/0x00000000_0xffffffff",
                "event": "owned",
                "broker": "localhost:8080",
            },
        ),
    ],
)
def test_lines_of_lookups_and_ownership_are_rows(
    samples: dict[str, tuple[str, ...]], sample: str, expected: dict[str, object]
) -> None:
    """A failed lookup, a selection and an acquisition are read from what brokers really printed."""
    (row,) = read_lines(PulsarBrokerReader(), *samples[sample])

    assert isinstance(row, Row)
    assert row.values == expected


@pytest.mark.shared
@pytest.mark.parametrize(
    "reader", [PulsarBrokerReader(), JettyAccessReader(), CppClientReader()], ids=lambda it: it.name
)
def test_no_other_real_line_is_taken_for_one(samples: dict[str, tuple[str, ...]], reader: LogReader) -> None:
    """Admin calls, watchers, shedding reports, clients' reconnects and stack traces are nobody's lookups."""
    taken = [name for name, lines in samples.items() if read_lines(reader, *lines)]
    assert taken == (["L04", "L05", "L17"] if reader.name == "pulsar-broker" else [])


@pytest.mark.shared
def test_a_real_access_line_of_a_lookup_would_be_read(samples: dict[str, tuple[str, ...]]) -> None:
    """The real request line, with its path changed to a lookup's, gives time, client and latency."""
    line = samples["L01"][0].replace("POST", "GET")
    path = line.split("8081")[1].split(" ")[0]
    (row,) = read_lines(JettyAccessReader(), line.replace(path, "/lookup/v2/topic/persistent/tt1/testns1/t5%5Cmeta"))

    assert isinstance(row, Row)
    assert row.values["topic"] == "persistent://tt1/testns1/t5\\meta"
    assert (row.values["client"], row.values["latency_ms"]) == ("172.17.0.1", 173.0)
    assert row.values["asked_broker"] == "localhost:8081"
