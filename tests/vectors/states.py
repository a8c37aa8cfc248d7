"""Areas about ownership and the registry: service-unit states, conflicts, assigns in progress, unloads, broker records.

Where an example speaks of several brokers or of time between two steps, they are put together as `Channels`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lookup.engine.service_unit import (
    ChannelStorage,
    ServiceUnitState,
    ServiceUnitStateData,
    next_states,
    should_keep_left,
)
from lookup.errors import StateError
from lookup.model.broker import BrokerLookupData
from lookup.model.request import LookupOptions
from tests.engine.channel.broker import ACTIVE, IN_FLIGHT, Settled
from tests.engine.channel.channels import Channels
from tests.engine.channel.lookups import RESULT_TYPE, Assigns, Joined, LookupResult, Selecting, lookup_result
from tests.vectors.reading import Handler, NotUnderstood, only

__all__ = ["AREAS"]

_UNIT = "tenant/namespace/0x00000000_0xffffffff"
_Given = Mapping[str, Any]


# States


def _transitions(given: _Given, expected: _Given) -> _Given:
    only(given, "storage", "from")
    only(expected, "valid_to", "everything_else")
    valid = next_states(_state(given["from"]), _storage(given["storage"]))
    return {"valid_to": sorted(valid), "everything_else": "invalid"}


def _groups(given: _Given, expected: _Given) -> _Given:
    only(given)
    only(expected, "in_flight", "active")
    return {"in_flight": sorted(IN_FLIGHT), "active": sorted(ACTIVE)}


def _construct(given: _Given, expected: _Given) -> _Given:
    only(given, "state", "dstBroker", "sourceBroker")
    only(expected, "result")
    ServiceUnitStateData.from_json(json.dumps(given))
    return {"result": "ok"}


def _keep_left(given: _Given, expected: _Given) -> _Given:
    only(given, "storage", "from", "to")
    only(expected, "keep_left")
    before, after = (None if given[key] is None else _record(given[key]) for key in ("from", "to"))
    return {"keep_left": should_keep_left(before, after, _storage(given["storage"]))}


def _record(given: _Given) -> ServiceUnitStateData:
    only(given, "state", "dst", "src", "version", "force")
    return ServiceUnitStateData(
        _state(given["state"]),
        given.get("dst"),
        given.get("src"),
        force=given.get("force", False),
        version_id=given.get("version", 1),
    )


def _state(name: str) -> ServiceUnitState:
    if name not in list(ServiceUnitState):
        raise NotUnderstood(f"state {name}")
    return ServiceUnitState(name)


def _storage(name: str) -> ChannelStorage:
    if name not in list(ChannelStorage):
        raise NotUnderstood(f"storage {name}")
    return ChannelStorage(name)


# Assigns


def _dedupe(given: _Given, expected: _Given) -> _Given:
    only(given, "concurrent_assign_same_bundle", "bundle_owner")
    only(expected, "selectAsync_calls", "options_used", "both_get")
    clients, owner = given["concurrent_assign_same_bundle"], given["bundle_owner"]
    world = Channels({"asked", "other", *([] if owner is None else [owner])})
    if owner is not None:
        _owned_by(world, owner)
    assigns = Assigns(world.brokers["asked"].channel)
    steps = [assigns.begin(_UNIT, _options(client), registered=list(world.brokers), now_ms=0) for client in clients]
    selected = [step.options.properties for step in steps if isinstance(step, Selecting)]
    told = {step.owner for step in steps if isinstance(step, Settled)}
    if selected:
        told.add(_carried_through(world, assigns, "other"))
    # Who joined gets what the one that selected gets.
    others = [step for step in steps if not isinstance(step, Selecting | Joined | Settled)]
    return {
        "selectAsync_calls": len(selected),
        "options_used": selected == clients[:1],
        "both_get": len(told) == 1 and None not in told and not others,
    }


def _options(properties: Mapping[str, str]) -> LookupOptions:
    return LookupOptions(properties=properties)


def _carried_through(world: Channels, assigns: Assigns, choice: str) -> str | None:
    """Publish a choice, let all brokers read and act, and return the owner the caller gets."""
    caller = world.brokers[assigns.channel.broker]
    published = assigns.chosen(_UNIT, choice, world.now_ms)
    caller.carry_out([published])
    world.settle()
    return assigns.end(caller.settled[-1], list(world.brokers)).owner


def _existing_owner(given: _Given, expected: _Given) -> _Given:
    only(given, "bundle_owner", "client_properties", "brokers")
    only(expected, "result", "selectAsync_called")
    world = Channels({*given["brokers"], given["bundle_owner"]})
    _owned_by(world, given["bundle_owner"])
    asked = Assigns(next(iter(world.brokers.values())).channel)
    step = asked.begin(_UNIT, _options(given["client_properties"]), registered=list(world.brokers), now_ms=0)
    return {
        "result": step.owner if isinstance(step, Settled) else None,
        "selectAsync_called": isinstance(step, Selecting),
    }


def _owned_by(world: Channels, owner: str) -> None:
    holder = world.brokers[owner]
    holder.carry_out([holder.channel.assign(_UNIT, owner, world.now_ms)])
    world.settle()


def _same_owner(given: _Given, expected: _Given) -> _Given:
    only(given, "calls")
    only(expected, "result")
    world = Channels(["primary", "secondary"])
    assigns = {name: Assigns(held.channel) for name, held in world.brokers.items()}
    for name, asked in assigns.items():
        step = asked.begin(_UNIT, LookupOptions(), registered=list(world.brokers), now_ms=0)
        # Each looks itself up before it hears of the other, and each chooses itself.
        if isinstance(step, Selecting):
            published = asked.chosen(_UNIT, name, world.now_ms)
            world.brokers[name].carry_out([published])
    world.settle()
    answers = {asked.end(world.brokers[name].settled[-1], list(world.brokers)) for name, asked in assigns.items()}
    serving = [name for name, held in world.brokers.items() if _UNIT in held.serving]
    return {"result": len(answers) == 1 and [answer.owner for answer in answers] == serving}


def _unregistered_owner(given: _Given, expected: _Given) -> _Given:
    only(expected, "error", "result")
    owner = given["selected_owner"]
    only(given, "selected_owner", f"{owner}_registered")
    world = Channels(["asked", owner])
    registered = ["asked", *([owner] if given[f"{owner}_registered"] else [])]
    assigns, asked = Assigns(world.brokers["asked"].channel), world.brokers["asked"]
    assigns.begin(_UNIT, LookupOptions(), registered=registered, now_ms=0)
    asked.carry_out([assigns.chosen(_UNIT, owner, world.now_ms)])
    world.settle()
    try:
        return {"result": assigns.end(asked.settled[-1], registered).owner}
    except StateError as error:
        if assigns.counters.failure != 1:
            return {"error": f"{assigns.counters.failure} failures were counted"}
        return {"error": error}


# Unloads


def _same_destination(given: _Given, expected: _Given) -> _Given:
    only(given, "bundle_owner", "destination")
    only(expected, "error_contains")
    world = Channels([given["bundle_owner"]])
    _owned_by(world, given["bundle_owner"])
    channel = world.brokers[given["bundle_owner"]].channel
    return {"unloaded": channel.unload(_UNIT, given["destination"], now_ms=world.now_ms)}


def _listener_counts(given: _Given, expected: _Given) -> _Given:
    only(given, "steps")
    only(expected, "onLoad_cumulative", "unLoad_cumulative")
    world, loads, unloads = Channels(["primary", "secondary"]), [], []
    for step in given["steps"]:
        if step not in _STEPS:
            raise NotUnderstood(f"step {step}")
        _STEPS[step](world)
        world.settle()
        loads.append(sum(held.loads for held in world.brokers.values()))
        unloads.append(sum(held.unloads for held in world.brokers.values()))
    return {"onLoad_cumulative": loads, "unLoad_cumulative": unloads}


def _look_up(world: Channels) -> None:
    assigns = Assigns(world.brokers["primary"].channel)
    step = assigns.begin(_UNIT, LookupOptions(), registered=list(world.brokers), now_ms=world.now_ms)
    if isinstance(step, Selecting):
        _carried_through(world, assigns, "primary")


def _unload(world: Channels) -> None:
    held = world.brokers["primary"]
    held.carry_out([held.channel.unload(_UNIT, now_ms=world.now_ms)])


def _transfer(world: Channels) -> None:
    held = world.brokers["primary"]
    other = next(name for name, broker in world.brokers.items() if _UNIT not in broker.serving)
    held.carry_out([held.channel.unload(_UNIT, other, now_ms=world.now_ms)])


_STEPS = {
    "first lookup": _look_up,
    "lookup again": _look_up,
    "admin unload without destination": _unload,
    "admin transfer to the other broker": _transfer,
}


# Registry records

_LOOKUP_KEYS: Mapping[str, str] = {
    "httpUrl": "http_url",
    "httpUrlTls": "http_url_tls",
    "brokerUrl": "broker_url",
    "brokerUrlTls": "broker_url_tls",
    "authoritativeRedirect": "authoritative_redirect",
}
_URLS = ("webServiceUrl", "webServiceUrlTls", "pulsarServiceUrl", "pulsarServiceUrlTls")


def _broker_lookup_data(given: _Given, expected: _Given) -> _Given:
    flags = ("persistentTopicsEnabled", "nonPersistentTopicsEnabled")
    later = ("loadManagerClassName", "startTimestamp", "properties")
    only(given, *_URLS, "advertisedListeners", "protocols", *flags, "brokerVersion", *later)
    data = BrokerLookupData.from_json(json.dumps(given))
    answers: dict[str, Any] = {}
    for key in expected:
        if key.startswith("protocol(") and key.endswith(")"):
            answers[key] = data.protocols.get(key[len("protocol(") : -1])
        elif key == "lookupResult":
            answers[key] = _told(lookup_result("broker", data, LookupOptions()))
    return answers


def _to_lookup_result(given: _Given, expected: _Given) -> _Given:
    only(given, *_URLS, "advertisedListeners", "options.advertisedListenerName")
    record = {key: value for key, value in given.items() if not key.startswith("options.")}
    options = LookupOptions(advertised_listener_name=given.get("options.advertisedListenerName"))
    return _told(lookup_result("broker", BrokerLookupData.from_json(json.dumps(record)), options))


def _told(result: LookupResult) -> _Given:
    return {"type": RESULT_TYPE, **{key: getattr(result, name) for key, name in _LOOKUP_KEYS.items()}}


#: Area -> what puts its inputs to the API.
AREAS: Mapping[str, Handler] = {
    "assign.dedupe": _dedupe,
    "assign.existing_owner_wins": _existing_owner,
    "assign.same_owner": _same_owner,
    "assign.unregistered_owner": _unregistered_owner,
    "broker_lookup_data": _broker_lookup_data,
    "broker_lookup_data.to_lookup_result": _to_lookup_result,
    "conflict_resolver.should_keep_left": _keep_left,
    "service_unit_state.groups": _groups,
    "service_unit_state.transitions": _transitions,
    "service_unit_state_data.construct": _construct,
    "unload.listener_counts": _listener_counts,
    "unload.same_destination": _same_destination,
}
