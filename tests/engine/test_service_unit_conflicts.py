"""The conflict rule: versions first, then force, transitions and brokers."""

from __future__ import annotations

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


def test_versions_wrap() -> None:
    """The smallest version follows the largest one, and no other."""
    assert not should_keep_left(_owned(VERSION_MAX), _released(VERSION_MIN), _TOPIC)
    assert should_keep_left(_owned(VERSION_MAX - 1), _released(VERSION_MIN), _TOPIC)
