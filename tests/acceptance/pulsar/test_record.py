"""The truth of a recorded session agrees with what brokers wrote."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.pulsar import record
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import LAYOUTS, Cluster
from tests.processes import awaited

#: What a broker writes of a lookup: up to 4.2, and since 5.0 with attributes, in text and in JSON.
_RECEIVED = re.compile(
    r"\[(?P<topic>\S+)\] Received Lookup from /(?P<client>\S+) for"
    r'|Received Lookup request.*?remoteAddress"?[=:]"?/(?P<remote>[^,"]+).*?topic"?[=:]"?(?P<asked>[^,"}]+)'
)


@pytest.mark.pulsar
def test_every_lookup_of_the_truth_is_in_the_logs(cluster: Cluster, python: PythonClients, tmp_path: Path) -> None:
    """Each answered lookup by Java and Python is in every layout of the asked broker, by client and topic."""
    cluster.set_debug(on=True)
    session = record.Session(cluster, python, tmp_path, rate=50, seed=1)
    session.create_namespace("public/recorded", bundles=4, topics=20)
    session.start()

    awaited(
        lambda: dict(session.counts),
        "200 lookups by Java and 5 by Python",
        enough=lambda counts: counts.get("lookup java", 0) > 200 and counts.get("lookup python", 0) > 5,
    )
    session.unload("public/recorded", session.any_owned("public/recorded")[0])
    session.close()

    cluster.set_debug(on=False)
    truth = [json.loads(line) for line in (tmp_path / "truth.jsonl").read_text().splitlines()]
    rows = [row for row in truth if row["kind"] == "lookup" and row["via"] != "http" and row["broker"]]
    answered = Counter((row["asked"], row["local"], row["topic"]) for row in rows)
    assert answered.total() > 200
    for layout in LAYOUTS:
        logged = Counter(
            (broker.id, match["client"] or match["remote"], match["topic"] or match["asked"])
            for broker in cluster.brokers.values()
            for match in _RECEIVED.finditer(broker.log(layout).read_text())
        )
        assert answered - logged == Counter(), layout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [([], "exists already; name a folder that does not"), (["--rate", "0"], "--rate is 0.0, and should be above 0")],
)
def test_bad_arguments_end_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    """A folder that exists and a rate of nothing are refused before anything starts."""
    with pytest.raises(SystemExit) as ended:
        record.main([str(tmp_path), *arguments])

    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
