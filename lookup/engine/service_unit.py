"""Service units, Pulsar's name for bundles in this channel, with their states, records, and rule for conflicts.

    Init ──> Assigning ──> Owned ──┬──> Releasing ──┬──> Assigning      a transfer
              ^                    │                └──> Free           a plain unload
              └── Free <───────────┤
                                   └──> Splitting ─────> Deleted        its children begin as Owned

All brokers and compaction apply one conflict rule to the same sequence of messages, so all find the same owner.

Source: ServiceUnitState, ServiceUnitStateData, ServiceUnitStateDataConflictResolver (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lookup.errors import ArgumentError
from lookup.model.documents import flag, mapping, parsed_object, text, whole_number

__all__ = [
    "FIRST_VERSION", "VERSION_MAX", "VERSION_MIN", "ChannelStorage", "ServiceUnitState", "ServiceUnitStateData",
    "is_blank", "next_states", "should_keep_left", "state_of",
]  # fmt: skip

#: Version of a service unit's first record.
FIRST_VERSION = 1
#: Versions are Java's `long` and begin again at the bottom.
VERSION_MAX, VERSION_MIN = 2**63 - 1, -(2**63)


class ServiceUnitState(StrEnum):
    """A service unit's state."""

    #: there is no record
    INIT = "Init"
    #: given up by its last owner, without a new one
    FREE = "Free"
    #: a broker serves it
    OWNED = "Owned"
    #: a broker was chosen and has not confirmed yet
    ASSIGNING = "Assigning"
    #: its owner is closing its topics
    RELEASING = "Releasing"
    #: its owner is putting its children in its place
    SPLITTING = "Splitting"
    #: its children are in its place
    DELETED = "Deleted"


class ChannelStorage(StrEnum):
    """The storage that keeps records. The two kinds differ in their valid transitions."""

    SYSTEM_TOPIC = "SystemTopic"
    METADATA_STORE = "MetadataStore"


_S = ServiceUnitState
#: Both storages agree on everything from Owned on.
_FROM_OWNED: Mapping[ServiceUnitState, frozenset[ServiceUnitState]] = {
    _S.OWNED: frozenset({_S.SPLITTING, _S.RELEASING}),
    _S.ASSIGNING: frozenset({_S.OWNED}),
    _S.RELEASING: frozenset({_S.ASSIGNING, _S.FREE}),
    _S.SPLITTING: frozenset({_S.DELETED}),
    _S.DELETED: frozenset({_S.INIT}),
}
#: A reader of the topic may meet any state first, because compaction removed those before.
_NEXT: Mapping[ChannelStorage, Mapping[ServiceUnitState, frozenset[ServiceUnitState]]] = {
    ChannelStorage.SYSTEM_TOPIC: {
        _S.INIT: frozenset(_S) - {_S.INIT},
        _S.FREE: frozenset({_S.ASSIGNING, _S.INIT}),
        **_FROM_OWNED,
    },
    ChannelStorage.METADATA_STORE: {
        _S.INIT: frozenset({_S.ASSIGNING}),
        _S.FREE: frozenset({_S.ASSIGNING}),
        **_FROM_OWNED,
    },
}


def next_states(state: ServiceUnitState, storage: ChannelStorage) -> frozenset[ServiceUnitState]:
    """List the states that may follow a state."""
    return _NEXT[storage][state]


@dataclass(frozen=True, slots=True)
class ServiceUnitStateData:
    """The record of one service unit, as brokers write it into the channel.

    Raises:
        ArgumentError: if neither broker is given in a state other than Free ("Empty broker").
    """

    state: ServiceUnitState
    #: the broker that serves the unit, or is to serve it
    dst_broker: str | None = None
    #: the broker that gave it up, gives it up or splits it
    source_broker: str | None = None
    #: destination by child's range, None if its last owner stays, empty unless splitting
    split: Mapping[str, str | None] = field(default_factory=dict)
    #: holds against transitions and brokers, never against a version
    force: bool = False
    #: ms since the epoch
    timestamp: int = 0
    version_id: int = FIRST_VERSION

    def __post_init__(self) -> None:
        # Only Free may have no broker, since a unit can be released whose last owner is unknown.
        if self.state is not ServiceUnitState.FREE and is_blank(self.dst_broker) and is_blank(self.source_broker):
            raise ArgumentError(f"a service unit's record in state {self.state} names no broker")

    @classmethod
    def from_json(cls, source: str) -> ServiceUnitStateData:
        """Read Pulsar's JSON. Unknown keys are ignored.

        Raises:
            InputError: if the text is not a JSON object, or the type of a value differs from Pulsar's.
            ArgumentError: if there is no state, or no broker in a state other than Free.
        """
        record = parsed_object(source, "service unit state data")
        state = record.get("state")
        if not isinstance(state, str) or state not in list(ServiceUnitState):
            states = ", ".join(ServiceUnitState)
            raise ArgumentError(f"state is {state!r}, which is not a state of a service unit: {states}")
        brokers = {
            name: None if record.get(key) is None else text(record[key], key)
            for name, key in (("dst_broker", "dstBroker"), ("source_broker", "sourceBroker"))
        }
        key = "splitServiceUnitToDestBroker"
        split = {} if record.get(key) is None else mapping(record[key], key)
        version = record.get("versionId", FIRST_VERSION)
        # The smallest `long` is a valid version, and its absolute value exceeds the limit of other integers.
        is_least = isinstance(version, int) and version == VERSION_MIN
        return cls(
            state=ServiceUnitState(state),
            **brokers,
            split={child: None if name is None else text(name, f"{key}.{child}") for child, name in split.items()},
            force=flag(record.get("force", False), "force"),
            timestamp=whole_number(record.get("timestamp", 0), "timestamp"),
            version_id=VERSION_MIN if is_least else whole_number(version, "versionId"),
        )


def is_blank(broker: str | None) -> bool:
    """Check whether a broker is absent, which a blank name also means."""
    return broker is None or not broker.strip()


def state_of(data: ServiceUnitStateData | None) -> ServiceUnitState:
    """Find a record's state, Init if there is no record."""
    return ServiceUnitState.INIT if data is None else data.state


def should_keep_left(
    before: ServiceUnitStateData | None, after: ServiceUnitStateData | None, storage: ChannelStorage
) -> bool:
    """Check whether a record stays the same because the message after it is rejected.

    Match -> Result:
        * `after` is None, a tombstone -> accepted
        * version not above the record's -> rejected. The largest is followed by the smallest
        * version leaves a gap -> accepted from the topic, which was compacted, but rejected by the metadata
          store
        * no record, metadata store -> accepted if it is the first version, else rejected
        * `after.force` -> accepted
        * transition not valid -> rejected
        * brokers do not fit the transition -> rejected
        * otherwise -> accepted

    Args:
        before: the record, None if there is none.
        after: the message, None for a tombstone.
    """
    if after is None:
        return False
    # Versions come before all other checks, since `force` overrides transitions and brokers, never a version.
    by_version = _judge_version(before, after, storage)
    if by_version is not None:
        return by_version
    if after.force:
        return False
    if after.state not in next_states(state_of(before), storage):
        return True
    return before is not None and _has_misfit(before, after)


def _judge_version(
    before: ServiceUnitStateData | None, after: ServiceUnitStateData, storage: ChannelStorage
) -> bool | None:
    """Check whether versions alone reject (true) or accept (false) a record, None if they do not decide."""
    is_store = storage is ChannelStorage.METADATA_STORE
    if before is None:
        return after.version_id != FIRST_VERSION if is_store else None
    if before.version_id == VERSION_MAX and after.version_id == VERSION_MIN:
        return None
    if before.version_id >= after.version_id:
        return True
    # A gap in the topic is a record that compaction has removed, so newer ones hold. The store keeps every record.
    return is_store if before.version_id < after.version_id - 1 else None


def _has_misfit(before: ServiceUnitStateData, after: ServiceUnitStateData) -> bool:
    """Check whether the brokers of a valid transition do not fit it."""
    names_others = before.dst_broker != after.dst_broker or before.source_broker != after.source_broker
    match before.state, after.state:
        case _S.OWNED, _S.SPLITTING:
            return not is_blank(after.dst_broker) or before.dst_broker != after.source_broker
        case _S.OWNED, _S.RELEASING:
            is_foreign = is_blank(after.source_broker) or before.dst_broker != after.source_broker
            return is_foreign or before.dst_broker == after.dst_broker
        case _S.RELEASING, _S.ASSIGNING:
            return is_blank(after.dst_broker) or names_others
        case _S.FREE, _S.ASSIGNING:
            return not is_blank(after.source_broker) or is_blank(after.dst_broker)
        case (_S.ASSIGNING, _S.OWNED) | (_S.RELEASING, _S.FREE) | (_S.SPLITTING, _S.DELETED):
            return names_others
    return False
