"""Alerts and the dashboard that ship speak of every metric that a server exports, and of no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.serve.servers import settings_file, started

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
