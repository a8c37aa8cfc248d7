"""What the leader of the modular manager knows of bundles, against the rules of Pulsar's classes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.leader import BundleMeans, TrafficRates


def _after(*rates: float) -> tuple[float, float]:
    """Return the short and the long mean after these reports of one bundle."""
    means = BundleMeans(forgets=True)
    for rate in rates:
        means.take({"b": TrafficRates(rate, 0.0)})
    return means.short["b"].messages, means.long["b"].messages


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_the_long_mean_is_plain_up_to_a_thousand_reports(rates: list[float]) -> None:
    """And the short one up to ten."""
    assert _after(*rates)[1] == pytest.approx(math.fsum(rates) / len(rates), abs=1e-6)
    assert _after(*rates[:10])[0] == pytest.approx(math.fsum(rates[:10]) / len(rates[:10]), abs=1e-6)


def test_beyond_their_samples_means_are_exponential() -> None:
    """The next report moves the short one by a tenth of the difference, the long one by a thousandth."""
    short, long = _after(*[10.0] * 1000, 1010.0)

    assert (short, long) == pytest.approx((110.0, 11.0))


def test_a_bundle_that_no_report_names_is_forgotten() -> None:
    """ModularLoadManagerImpl.updateBundleData drops it: after it comes back it has one sample."""
    means = BundleMeans(forgets=True)
    for reported in ({"a": 1.0, "b": 8.0}, {"a": 1.0}, {"a": 1.0, "b": 2.0}):
        means.take({bundle: TrafficRates(rate, rate) for bundle, rate in reported.items()})

    assert means.short == means.long == {"a": TrafficRates(1.0, 1.0), "b": TrafficRates(2.0, 2.0)}


def test_who_does_not_forget_keeps_the_mean() -> None:
    """Policies of our own know a bundle although its owner is lost."""
    means = BundleMeans(forgets=False)
    for reported in ({"b": 8.0}, {}, {"b": 2.0}):
        means.take({bundle: TrafficRates(rate, rate) for bundle, rate in reported.items()})

    assert means.long["b"].messages == pytest.approx(5.0)
