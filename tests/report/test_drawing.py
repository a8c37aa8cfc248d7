"""Charts of the page as Altair charts."""

from __future__ import annotations

import json

import pytest

from lookup.errors import SettingsError
from lookup.report.drawing import draw, drawable
from lookup.report.figures import Run, read_run
from tests.report.runs import CELL_US, START_US, broad


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Write a run of three policies over two clusters, and read it back."""
    return read_run(str(broad(tmp_path_factory.mktemp("runs") / "run", policies=3, clusters=2, hours=24, brokers=4)))


def test_every_chart_of_the_page_can_be_drawn(run: Run) -> None:
    """With data, with colours in place of their names, and in a form that Altair checks."""
    charts = {name: draw(run, chart).to_dict() for name, chart in drawable(run).items()}

    assert list(charts) == ["trade", "load", "flows", "moves"]
    assert all(chart["datasets"]["rows"] for chart in charts.values())
    assert '"@' not in json.dumps(charts)
    assert "#0072b2" in json.dumps(charts["moves"])


def test_a_chart_over_time_has_the_incumbent_and_one_candidate(run: Run) -> None:
    """Of the cluster that was asked for; the last broker comes late and leaves early, and is marked so."""
    chart = drawable(run)["load"]

    rows = draw(run, chart, policy="policy-02", cluster="cluster-1").to_dict()["datasets"]["rows"]

    assert {row["policy"] for row in rows} == {"policy-00", "policy-02"}
    assert {row["y"].partition("-broker")[0] for row in rows} == {"cluster-1"}
    late = [row for row in rows if row["y"].endswith("03:8080") and row["policy"] == "policy-02" and "value" in row]
    assert [row["x"] for row in late if row["comes"]] == [(START_US + 7 * CELL_US) // 1000]
    assert late[0]["x2"] - late[0]["x"] == CELL_US // 1000
    assert len([row for row in late if row["leaves"]]) <= 1


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [({"policy": "policy-3"}, "policy: .*'policy-3' "), ({"cluster": "cluster-9"}, "cluster: .*'cluster-9' ")],
)
def test_what_the_run_does_not_have_is_one_sentence(run: Run, choice: dict[str, str], sentence: str) -> None:
    """The names it has are suggested."""
    with pytest.raises(SettingsError, match=sentence):
        draw(run, drawable(run)["load"], **choice)
