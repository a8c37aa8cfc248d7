"""What each shedder says of a cycle in which it unloads nothing: the figure that fell short, and the limit."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.hooks import Shedder
from lookup.model import Shortfall
from lookup_policies.avg import Avg
from lookup_policies.threshold import Overload, Threshold
from lookup_policies.transfer import Transfer
from lookup_policies.uniform import Uniform
from tests.plugins.cycles import cycle, loaded, loading

MIB = 1024.0 * 1024.0
#: Two bundles on one broker, one on the other.
LOADS = {"full": {"a": 12 * MIB, "b": 8 * MIB}, "free": {"c": 10 * MIB}}
SINGLE = {"full": {"a": 90 * MIB}, "free": {"c": 10 * MIB}}
EVEN = {"full": 0.5, "free": 0.4}
APART = {"full": 0.9, "free": 0.1}


@pytest.mark.parametrize(
    ("shedder", "loads", "figures", "sentence"),
    [
        (Threshold(), LOADS, {"usage": EVEN}, "5 points of usage above the mean, minimum 10"),
        (
            Threshold(min_offload=10 * MIB),
            LOADS,
            {"usage": APART},
            # 20 MiB/s x (0.9 - 0.5 - 0.1 + 0.05)
            "7 MiB/s to unload, minimum 10",
        ),
        (Threshold(), SINGLE, {"usage": APART}, "1 bundles on full, minimum 2"),
        (Overload(), LOADS, {"usage": EVEN}, "50 % usage of the fullest broker, minimum 85"),
        (Overload(), SINGLE, {"usage": APART}, "1 bundles on full, minimum 2"),
        (Uniform(), LOADS, {"usage": EVEN}, "2 times the traffic of the idlest broker, minimum 4"),
        (
            Uniform(),
            LOADS,
            {"usage": EVEN, "rates": {"full": 120.0, "free": 100.0}},
            "20 % more messages than the idlest broker, minimum 50",
        ),
        (
            Uniform(),
            LOADS,
            {"usage": EVEN, "rates": {"full": 1100.0, "free": 100.0}},
            "200 messages/s to unload, minimum 1,000",
        ),
        (Uniform(min_throughput=20 * MIB), SINGLE, {"usage": APART}, "16 MiB/s to unload, minimum 20"),
        (Uniform(), SINGLE, {"usage": APART}, "1 bundles on full, minimum 2"),
        (Avg(), LOADS, {"usage": EVEN}, "10 points of score between two brokers, minimum 15"),
        (Avg(), LOADS, {"usage": APART}, "1 cycles in a row apart, minimum 2"),
        (
            Avg(high_hits=1, min_throughput=3 * MIB),
            LOADS,
            {"usage": APART, "rates": {"full": 9.0, "free": 4.0}},
            "1 messages/s to unload, minimum 1,000",
        ),
        (Avg(high_hits=1, min_throughput=3 * MIB), LOADS, {"usage": APART}, "2 MiB/s to unload, minimum 3"),
        (Transfer(), LOADS, {"usage": EVEN}, "0.05 deviation of usage, minimum 0.25"),
        (Transfer(), LOADS, {"usage": APART}, "1 cycles in a row out of balance, minimum 4"),
        (Transfer(hit_count=0), SINGLE, {"usage": APART}, "1 bundles in the report of full, minimum 2"),
    ],
)
def test_a_shedder_says_what_kept_it_still(
    shedder: Shedder, loads: dict[str, dict[str, float]], figures: dict[str, Any], sentence: str
) -> None:
    """In the unit of its own parameter, of the broker that came nearest."""
    view = loading(loaded(loads, **figures), bundle_unit="bytes/s")
    accepted, outcome = cycle(shedder, view)

    assert accepted == []
    assert str(outcome.short) == sentence


def test_the_weight_of_lookups_is_not_told_in_bytes() -> None:
    """Where load is no throughput there is no figure to compare with a limit in MiB/s."""
    assert cycle(Threshold(min_offload=10 * MIB), loaded(LOADS, usage=APART))[1].short is None


def test_what_is_switched_off_is_no_limit() -> None:
    """Without a limit on messages or throughput there is nothing to fall short of."""
    assert cycle(Uniform(rate_difference=0.0, throughput_multiple=0.0), loaded(LOADS, usage=EVEN))[1].short is None


def test_a_figure_is_told_apart_from_its_limit() -> None:
    """By as many digits as that takes."""
    assert str(Shortfall(9.9996, "MiB/s to unload", 10.0)) == "9.9996 MiB/s to unload, minimum 10"
    assert str(Shortfall(9_999.6, "messages/s to unload", 10_000.0)) == "9,999.6 messages/s to unload, minimum 10,000.0"
    assert str(Shortfall(4.0, "cycles in a row", 4.0)) == "4 cycles in a row, minimum 4"
