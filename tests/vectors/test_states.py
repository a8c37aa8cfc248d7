"""Areas of ownership and registry records."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.files import outcome


def _side(state: str, dst: str | None, src: str | None, version: int) -> dict[str, Any]:
    return {"state": state, "dst": dst, "src": src, "version": version, "force": False}


_STEPS = ["first lookup", "admin transfer to the other broker", "admin unload without destination", "lookup again"]
_SIX, _TLS = {"pulsarServiceUrl": "pulsar://b"}, {"brokerUrlTls": None, "brokerUrl": "pulsar://b"}


@pytest.mark.parametrize(
    ("area", "given", "expected"),
    [
        (
            "assign.dedupe",
            {"concurrent_assign_same_bundle": [{}, {"rack": "a"}, {"rack": "b"}], "bundle_owner": None},
            {"selectAsync_calls": 1, "options_used": "those of the first call", "both_get": "the same broker"},
        ),
        (
            "assign.dedupe",
            {"concurrent_assign_same_bundle": [{}, {}], "bundle_owner": "b7"},
            {"selectAsync_calls": 0, "both_get": "the same broker"},
        ),
        ("assign.unregistered_owner", {"selected_owner": "b2", "b2_registered": False}, {"error": "IllegalState"}),
        ("assign.unregistered_owner", {"selected_owner": "b2", "b2_registered": True}, {"result": "b2"}),
        ("broker_lookup_data", _SIX, {"protocol(kafka)": None, "lookupResult": _TLS}),
        (
            "broker_lookup_data.to_lookup_result",
            {"advertisedListeners": {}, "options.advertisedListenerName": "x"},
            {"error": "PulsarServerException: the broker does not have it"},
        ),
        ("broker_lookup_data.to_lookup_result", {"options.advertisedListenerName": " ", **_SIX}, _TLS),
        (
            "conflict_resolver.should_keep_left",
            {"storage": "MetadataStore", "from": None, "to": _side("Owned", "b1", None, 2)},
            {"keep_left": True},
        ),
        (
            "service_unit_state.transitions",
            {"storage": "SystemTopic", "from": "Init"},
            {"valid_to": ["Free", "Owned", "Assigning", "Releasing", "Splitting", "Deleted"]},
        ),
        ("service_unit_state_data.construct", {"state": None, "dstBroker": "b"}, {"result": "error: NullPointer"}),
        ("service_unit_state_data.construct", {"state": "Free"}, {"result": "ok: nobody is named"}),
        (
            "unload.listener_counts",
            {"steps": _STEPS},
            {"onLoad_cumulative": [1, 2, 2, 3], "unLoad_cumulative": [0, 2, 3, 3]},
        ),
        (
            "unload.same_destination",
            {"bundle_owner": "x.b1:8080", "destination": "b1:8080"},
            {"error_contains": "same broker"},
        ),
    ],
)
def test_other_examples_of_the_areas_pass(area: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    """What the README describes works for values that are not in the file."""
    assert outcome(area, given, expected).ending == "passed"


@pytest.mark.parametrize(
    ("area", "given", "expected", "ending"),
    [
        ("service_unit_state.groups", {}, {"in_flight": ["Assigning"]}, "failed"),
        ("service_unit_state.transitions", {"storage": "Disk", "from": "Init"}, {"valid_to": []}, "not understood"),
        ("service_unit_state.transitions", {"storage": "SystemTopic", "from": "X"}, {"valid_to": []}, "not understood"),
        ("unload.listener_counts", {"steps": ["coffee"]}, {"onLoad_cumulative": [0]}, "not understood"),
        ("unload.same_destination", {"bundle_owner": "b1", "destination": "b2"}, {"error": "x"}, "not understood"),
    ],
)
def test_wrong_examples_do_not_pass(area: str, given: dict[str, Any], expected: dict[str, Any], ending: str) -> None:
    """A wrong value fails, an unknown word is not understood."""
    assert outcome(area, given, expected).ending == ending
