"""The conflict rule: versions first, then force, transitions and brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.service_unit import (
    VERSION_MAX,
    VERSION_MIN,
    ChannelStorage,
    ServiceUnitState,
    ServiceUnitStateData,
    next_states,
    should_keep_left,
)

_S = ServiceUnitState
_TOPIC, _STORE = ChannelStorage.SYSTEM_TOPIC, ChannelStorage.METADATA_STORE
_RECORDS = st.builds(
    ServiceUnitStateData,
    state=st.sampled_from(ServiceUnitState),
    dst_broker=st.sampled_from(["b1", "b2"]),
    source_broker=st.sampled_from([None, "b1", "b2"]),
    force=st.booleans(),
    version_id=st.integers(1, 4),
)


def _owned(version: int, broker: str = "b1") -> ServiceUnitStateData:
    return ServiceUnitStateData(_S.OWNED, broker, version_id=version)


def _released(version: int, *, force: bool = False) -> ServiceUnitStateData:
    return ServiceUnitStateData(_S.RELEASING, "b2", "b1", force=force, version_id=version)


@given(before=st.none() | _RECORDS, storage=st.sampled_from(ChannelStorage))
def test_a_tombstone_is_always_accepted(before: ServiceUnitStateData | None, storage: ChannelStorage) -> None:
    """Removing a record needs no version."""
    assert not should_keep_left(before, None, storage)


@given(before=_RECORDS, after=_RECORDS, storage=st.sampled_from(ChannelStorage))
def test_no_older_or_equal_version_is_accepted(
    before: ServiceUnitStateData, after: ServiceUnitStateData, storage: ChannelStorage
) -> None:
    """Not even by force."""
    if after.version_id <= before.version_id:
        assert should_keep_left(before, after, storage)


@given(before=_RECORDS, after=_RECORDS, storage=st.sampled_from(ChannelStorage))
def test_the_next_version_without_force_is_accepted_only_as_a_transition(
    before: ServiceUnitStateData, after: ServiceUnitStateData, storage: ChannelStorage
) -> None:
    """What is accepted in turn and unforced is valid for its storage."""
    if not should_keep_left(before, after, storage) and after.version_id == before.version_id + 1 and not after.force:
        assert after.state in next_states(before.state, storage)


@pytest.mark.parametrize(("storage", "kept"), [(_TOPIC, False), (_STORE, True)])
def test_a_gap_in_versions_is_compaction_or_a_fault(storage: ChannelStorage, *, kept: bool) -> None:
    """The topic loses messages in compaction, a store never does."""
    assert should_keep_left(_owned(1), _owned(3), storage) is kept
    assert should_keep_left(_owned(1), _released(4, force=True), storage) is kept


def test_versions_wrap() -> None:
    """The smallest version follows the largest one, and no other."""
    assert not should_keep_left(_owned(VERSION_MAX), _released(VERSION_MIN), _TOPIC)
    assert should_keep_left(_owned(VERSION_MAX - 1), _released(VERSION_MIN), _TOPIC)


@pytest.mark.parametrize("state", sorted(set(_S) - {_S.INIT}))
def test_first_records(state: ServiceUnitState) -> None:
    """A topic's reader accepts any first record; a store's reader any that is the first version."""
    first, later = (ServiceUnitStateData(state, "b1", version_id=version) for version in (1, 7))

    assert not should_keep_left(None, first, _TOPIC)
    assert not should_keep_left(None, later, _TOPIC)
    assert not should_keep_left(None, first, _STORE)
    assert should_keep_left(None, later, _STORE)


def test_force_holds_against_transitions_and_brokers() -> None:
    """A forced record of the next version is accepted whatever it says."""
    foreign = ServiceUnitStateData(_S.OWNED, "b9", "b8", force=True, version_id=2)

    assert not should_keep_left(_owned(1), foreign, _STORE)


_MISFITS = [
    # before, after; each differs from an accepted pair in one broker
    ((_S.OWNED, "b1", None), (_S.SPLITTING, "b2", "b1")),
    ((_S.OWNED, "b1", None), (_S.SPLITTING, None, "b2")),
    ((_S.OWNED, "b1", None), (_S.RELEASING, "b2", None)),
    ((_S.OWNED, "b1", None), (_S.RELEASING, "b2", "b2")),
    ((_S.OWNED, "b1", None), (_S.RELEASING, "b1", "b1")),
    ((_S.ASSIGNING, "b1", None), (_S.OWNED, "b2", None)),
    ((_S.ASSIGNING, "b1", "b2"), (_S.OWNED, "b1", None)),
    ((_S.RELEASING, None, "b1"), (_S.FREE, None, "b2")),
    ((_S.RELEASING, "b2", "b1"), (_S.FREE, None, "b1")),
    ((_S.RELEASING, None, "b1"), (_S.ASSIGNING, None, "b1")),
    ((_S.RELEASING, "b2", "b1"), (_S.ASSIGNING, "b3", "b1")),
    ((_S.SPLITTING, None, "b1"), (_S.DELETED, None, "b2")),
    ((_S.FREE, None, "b1"), (_S.ASSIGNING, "b2", "b1")),
    ((_S.FREE, None, "b1"), (_S.ASSIGNING, None, "b1")),
]


@pytest.mark.parametrize(("before", "after"), _MISFITS)
def test_brokers_must_fit(
    before: tuple[ServiceUnitState, str | None, str | None], after: tuple[ServiceUnitState, str | None, str | None]
) -> None:
    """A valid transition that names the wrong brokers is rejected, unless it is forced."""
    held, said = ServiceUnitStateData(*before), ServiceUnitStateData(*after, version_id=2)
    forced = ServiceUnitStateData(*after, force=True, version_id=2)

    assert said.state in next_states(held.state, _STORE)
    assert should_keep_left(held, said, _STORE)
    assert not should_keep_left(held, forced, _STORE)
