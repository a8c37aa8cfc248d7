"""What is seen of the load of brokers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookup.engine.ledger import LoadFigures
from lookup.engine.policy import Policy
from lookup.engine.reporting import Cadence
from lookup.simulate.reports import FreshReports, reports_of
from lookup_policies.random import Random
from tests.simulate.scenarios import scenario, trends

_MINUTE_US = 60_000_000
_BUNDLES = np.array([3])
_PULSARS = Cadence()


def _figures(usage: float) -> LoadFigures:
    """Build what one broker of capacity 100 measures, 10 messages to the unit of load."""
    load = np.array([usage * 100.0])
    return LoadFigures(np.array([usage]), load, np.array([4]), [()], message_rate=load * 10.0)


def _published(*usages: float, cadence: Cadence = _PULSARS) -> list[LoadFigures]:
    """Show minute by minute what is seen of a broker without smoothing."""
    one = scenario(reports="published", owners={}, brokers=[{"id": "b1", "capacity": 100.0}])
    reports = reports_of(one, Policy("p", Random(), cadence=cadence), 0)
    return [reports.shown(_figures(usage), _BUNDLES, minute * _MINUTE_US) for minute, usage in enumerate(usages)]


def test_fresh_figures_are_smoothed_over_the_minutes() -> None:
    """Half of the past and half of now; who was away begins anew."""
    reports = FreshReports(1, 0.5)
    seen = [reports.shown(_figures(usage), _BUNDLES, 0).usage[0] for usage in (0.4, 0.8, np.nan, 0.2)]

    assert seen == pytest.approx([0.4, 0.6, np.nan, 0.2], nan_ok=True)


def test_small_changes_are_not_published() -> None:
    """Load and message rate stay as they were at 0.40 until they are off by more than a tenth."""
    seen = _published(0.40, 0.43, 0.60)

    assert [figures.usage[0] for figures in seen] == pytest.approx([0.40, 0.40, 0.60])
    assert [figures.broker_load[0] for figures in seen] == pytest.approx([40.0, 40.0, 60.0])
    assert [float(figures.message_rate[0]) for figures in seen if figures.message_rate is not None] == pytest.approx(
        [400.0, 400.0, 600.0]
    )


def test_how_small_and_how_long_is_the_policys_cadence() -> None:
    """A change of seven percent is enough for one that says so, two minutes for another."""
    told = _published(0.40, 0.43, cadence=Cadence(change_percent=5.0))
    hurried = _published(*[0.40] * 2, *[0.41] * 2, cadence=Cadence(max_interval_ms=120_000, history=0.5))

    assert told[1].usage[0] == pytest.approx(0.43)
    assert [figures.usage[0] for figures in hurried] == pytest.approx([0.40, 0.40, 0.40, 0.41])


def test_a_quarter_of_an_hour_is_long_enough() -> None:
    """Then even a small change is published."""
    seen = _published(0.40, *[0.43] * 17)

    assert seen[15].usage[0] == pytest.approx(0.40)
    assert seen[17].usage[0] == pytest.approx(0.43)


def test_a_scenario_says_what_is_seen() -> None:
    """Load grows by 8 %, which lifts one broker above the threshold: nobody is told of so small a change."""
    changes: dict[str, Any] = {
        "minutes": 8,
        "owners": {"b1": 2, "b2": 2},
        "policies": [{"name": "p", "selector": "random", "shedder": {"use": "threshold", "threshold": 0.16}}],
        "namespaces": [{"name": "t/n", "bundles": 4, "topics": 8, "load": 12.0}],
        "events": [{"at": 3, "factor": 1.08}],
    }
    changes["policies"][0]["shedder"]["history"] = 0.0
    (fresh,), (published,) = trends(**changes), trends(**changes, reports="published")

    assert fresh.figures.sheds > 0
    assert published.figures.sheds == 0
