"""Which of two records of a service unit wins: the rule by which brokers read the channel and compaction shortens it.

Everybody applies the same rule to the same sequence of messages, so everybody arrives at the same owner.

Source: ServiceUnitStateDataConflictResolver (`docs/pulsar/load-managers.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lookup.engine.service_unit import (
    FIRST_VERSION,
    VERSION_MAX,
    VERSION_MIN,
    ServiceUnitState,
    ServiceUnitStateData,
    Storage,
    is_blank,
    next_states,
    state_of,
)

__all__ = ["should_keep_left"]

_S = ServiceUnitState
_Data = ServiceUnitStateData


def should_keep_left(before: _Data | None, after: _Data | None, storage: Storage) -> bool:
    """Tell whether a record stays as it is, because what came after it is rejected.

    Match -> Result:
        * `after` is None, a tombstone -> accepted
        * version not above the record's -> rejected; the largest is followed by the smallest
        * version leaves a gap -> accepted from the topic, which was compacted; rejected by the metadata store
        * no record, metadata store -> accepted if it is the first version, else rejected
        * `after.force` -> accepted
        * transition not valid -> rejected
        * brokers do not fit the transition -> rejected
        * otherwise -> accepted

    Args:
        before: the record, None where there is none.
        after: the message, None for a tombstone.
    """
    if after is None:
        return False
    by_version = _judge_version(before, after, storage)
    if by_version is not None:
        return by_version
    if after.force:
        return False
    if after.state not in next_states(state_of(before), storage):
        return True
    check = None if before is None else _MISFITS.get((before.state, after.state))
    return check is not None and before is not None and check(before, after)


def _judge_version(before: _Data | None, after: _Data, storage: Storage) -> bool | None:
    """Return what versions alone decide, None where they decide nothing."""
    is_store = storage is Storage.METADATA_STORE
    if before is None:
        return after.version_id != FIRST_VERSION if is_store else None
    if before.version_id == VERSION_MAX and after.version_id == VERSION_MIN:
        return None
    if before.version_id >= after.version_id:
        return True
    return is_store if before.version_id < after.version_id - 1 else None


def _names_others(before: _Data, after: _Data) -> bool:
    return before.dst_broker != after.dst_broker or before.source_broker != after.source_broker


def _splits_wrongly(before: _Data, after: _Data) -> bool:
    return not is_blank(after.dst_broker) or before.dst_broker != after.source_broker


def _releases_wrongly(before: _Data, after: _Data) -> bool:
    is_foreign = is_blank(after.source_broker) or before.dst_broker != after.source_broker
    return is_foreign or before.dst_broker == after.dst_broker


def _hands_over_wrongly(before: _Data, after: _Data) -> bool:
    return is_blank(after.dst_broker) or _names_others(before, after)


def _assigns_wrongly(before: _Data, after: _Data) -> bool:
    return not is_blank(after.source_broker) or is_blank(after.dst_broker)


#: What about the brokers of a valid transition is wrong.
_MISFITS: Mapping[tuple[ServiceUnitState, ServiceUnitState], Callable[[_Data, _Data], bool]] = {
    (_S.OWNED, _S.SPLITTING): _splits_wrongly,
    (_S.OWNED, _S.RELEASING): _releases_wrongly,
    (_S.ASSIGNING, _S.OWNED): _names_others,
    (_S.RELEASING, _S.FREE): _names_others,
    (_S.RELEASING, _S.ASSIGNING): _hands_over_wrongly,
    (_S.SPLITTING, _S.DELETED): _names_others,
    (_S.FREE, _S.ASSIGNING): _assigns_wrongly,
}
