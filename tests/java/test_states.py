"""What is told to a class of Java's: the view in the words of Pulsar's load managers."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np

from lookup.model import BundleLoad, ClusterView
from lookup.testing import cluster
from lookup_java.states import extensible_state, modular_state

_A, _B, _UNOWNED = (f"t/n/0x{n}0000000_0x{n + 1}0000000" for n in range(3))


def _view() -> ClusterView:
    view = cluster("b1:8080", "b2:8080", "b3:8080", usage={"b1:8080": 0.5, "b2:8080": 0.25}, now_us=9_000_000)
    load = replace(
        view.load,
        throughput=np.array([80.0, 40.0, np.nan]),
        rates=np.array([8.0, 4.0, np.nan]),
        top_bundles=[(BundleLoad(_A, 10.0, 2.0), BundleLoad(_B, 70.0, 6.0)), (), ()],
        long_term_bundle_rates={_A: 3.0, _UNOWNED: 5.0},
        long_term_bundle_throughputs={_A: 12.0, _UNOWNED: 50.0},
        bundle_unit="bytes/s",
        updated_us=np.array([8_000_000, 9_000_000, 0]),
    )
    return replace(view, load=load)


def test_means_of_bundles_travel_as_numbers() -> None:
    """Messages and bytes of the short mean, then of the long one; what nobody knows is what Pulsar assumes."""
    state = modular_state(_view(), None)

    sums = np.frombuffer(base64.b64decode(state["sums"]), "<f8").reshape(-1, 4)
    assert dict(zip(state["names"], sums.tolist(), strict=True)) == {
        _A: [2.0, 10.0, 3.0, 12.0],
        _B: [6.0, 70.0, 100.0, 70.0],
        _UNOWNED: [5.0, 50.0, 5.0, 50.0],
    }


def test_a_broker_without_report_is_for_placements_only() -> None:
    """Brokers of the modular manager report before anything is placed; a shedder leaves out who has not."""
    view = _view()

    assert [*modular_state(view, None)["brokers"]] == ["b1:8080", "b2:8080", "b3:8080"]
    shown = modular_state(view, [5, 0, 0])["brokers"]
    assert [*shown] == ["b1:8080", "b2:8080"]
    assert (shown["b1:8080"]["bundles"], shown["b1:8080"]["unknown"]) == ([0, 1], 3)
    assert shown["b1:8080"]["cpu"] == [50.0, 100.0]
    assert shown["b2:8080"]["msgThroughputIn"] == shown["b2:8080"]["msgThroughputOut"] == 20.0


def test_the_extensible_manager_gets_what_brokers_publish() -> None:
    """Top bundles as they are ranked, ages of reports, and who is registered."""
    state = extensible_state(_view(), {"loadBalancerMaxNumberOfBundlesInBundleLoadReport": 1})

    assert [*state["brokers"]] == ["b1:8080", "b2:8080"]
    assert state["available"] == ["b1:8080", "b2:8080", "b3:8080"]
    first = state["brokers"]["b1:8080"]
    assert (first["weightedMaxEMA"], first["updatedAt"], first["msgThroughputEMA"]) == (0.5, 1.0, 80.0)
    assert [name for name, _ in first["bundles"]] == [_B]
