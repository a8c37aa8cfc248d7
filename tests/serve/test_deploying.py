"""Alerts and the dashboard that ship speak of every metric that a server exports, and of no other."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.processes import awaited
from tests.serve.servers import Server, settings_file, started

_DEPLOY = Path(__file__).parents[2] / "configs" / "deploy"
#: Prometheus says so of every server.
_OF_PROMETHEUS = {"up"}


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((_DEPLOY / "prometheus-rules.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _panels() -> list[dict[str, Any]]:
    panels = json.loads((_DEPLOY / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    return [dict(panel) for panel in panels]


def _expressions() -> list[str]:
    of_panels = [target["expr"] for panel in _panels() for target in panel["targets"]]
    # Grafana puts a duration there.
    return [*(rule["expr"] for rule in _rules()), *(text.replace("$__rate_interval", "5m") for text in of_panels)]


def _metrics(expression: Any) -> Iterator[str]:
    """Yield the metrics that a parsed expression selects."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression.name
    for part in ("expr", "lhs", "rhs", "vector_selector", "vs"):
        inner = getattr(expression, part, None)
        if inner is not None:
            yield from _metrics(inner)
    for inner in getattr(expression, "args", None) or ():
        yield from _metrics(inner)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names under which a server exports its metrics, as Prometheus selects them."""
    with started(settings_file(tmp_path_factory.mktemp("serve"))) as server:
        _, text = server.ask("GET", "/metrics")
    named = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))
    # When each child of a counter was made says nothing that a rate does not.
    return {
        f"{name}_bucket" if kind == "histogram" else name for name, kind in named.items() if name[-8:] != "_created"
    }


@pytest.mark.process
def test_every_metric_is_in_an_alert_or_a_panel_and_no_other(exported: set[str]) -> None:
    """What nobody looks at need not be counted, and what is not counted cannot be looked at."""
    named = {name for text in _expressions() for name in _metrics(promql_parser.parse(text))}

    assert named - _OF_PROMETHEUS == exported


def test_what_is_counted_by_labels_is_there_from_the_start(tmp_path: Path) -> None:
    """At 0, and for the policies of settings that are loaded again too: an alert sees the first of its kind."""
    path = settings_file(tmp_path)
    with started(path) as server:
        begun = _figures(server)
        path.write_text(path.read_text().replace("by-rack", "elsewhere"))
        server.signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        loaded = _figures(server)

    outcomes = {(outcome, "by-rack"): 0 for outcome in ("chosen", "declined", "error")}
    assert {key: begun["lookup_decisions_total"][key] for key in outcomes} == outcomes
    assert begun["lookup_reloads_total"] == {("refused",): 0, ("taken",): 0}
    tables = ("brokers", "decisions", "loads", "lookups", "owner_changes", "views")
    assert begun["lookup_lost_rows"] == {(table,): 0 for table in tables}
    refusals = {(path, status) for path in ("/decide", "/list", "/record", "other") for status in ("401", "500", "503")}
    assert {begun["lookup_requests_total"][key] for key in refusals} == {0}
    assert loaded["lookup_decisions_total"]["error", "elsewhere"] == 0


def _figures(server: Server) -> dict[str, dict[tuple[str, ...], float]]:
    """Return figures by name and labels, of which the values are in the order of their names."""
    figures: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(server.ask("GET", "/metrics")[1]):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels))
            figures.setdefault(sample.name, {})[labels] = sample.value
    return figures


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    """Names are there once, and Prometheus knows every key."""
    rules = _rules()

    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert rule["annotations"].keys() == {"summary", "do"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_panels_have_places_of_their_own() -> None:
    """None covers another, and each has a number of its own, as Grafana wants."""
    panels = _panels()
    fields = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(set(fields)) == len(fields)
    assert max(x for x, _ in fields) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
