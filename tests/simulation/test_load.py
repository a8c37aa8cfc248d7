"""What topics carry over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.simulation.load import MIB, TopicLoads
from lookup.simulation.scenario import NamespaceLoad, ScenarioEvent


def _loads(seed: int = 1, **changes: Any) -> TopicLoads:
    return TopicLoads(NamespaceLoad.model_validate({"name": "t/n", "topics": 8, "load": 8.0} | changes), seed)


def test_topics_are_spread_evenly_and_alike() -> None:
    """Each is in the middle of its share of the hashes and carries its share of the load."""
    topics = _loads()

    assert topics.hashes.tolist() == [(2 * place + 1) * 2**28 for place in range(8)]
    assert topics.at(0).tolist() == [MIB] * 8
    assert topics.at(5).tolist() == topics.at(0).tolist()


def test_skew_is_zipfs_law() -> None:
    """The largest topic carries twice what the second does, wherever they are; the sum stays."""
    carried = sorted(_loads(skew=1.0).at(0), reverse=True)

    assert carried[0] / carried[1] == pytest.approx(2.0)
    assert carried[0] / carried[7] == pytest.approx(8.0)
    assert sum(carried) == pytest.approx(8.0 * MIB)


@given(st.integers(-(2**63), 2**63), st.integers(0, 2000), st.floats(0.01, 1.0))
def test_jitter_stays_within_its_share(seed: int, minute: int, jitter: float) -> None:
    """And follows from seed and minute alone."""
    carried = _loads(seed, jitter=jitter).at(minute)

    assert (np.abs(carried / MIB - 1.0) <= jitter + 1e-12).all()
    assert carried.tolist() == _loads(seed, jitter=jitter).at(minute).tolist()


def test_jitter_differs_by_topic_minute_and_seed() -> None:
    """No two draws are the same; over many they even out."""
    topics = _loads(jitter=0.5, topics=2000, load=2000.0)
    drawn = [*topics.at(0), *topics.at(1), *_loads(2, jitter=0.5, topics=2000, load=2000.0).at(0)]

    assert len(set(drawn)) == 6000
    assert np.mean(drawn) / MIB == pytest.approx(1.0, abs=0.03)


def test_a_wave_comes_back() -> None:
    """A quarter of the period later it is at its height, after the whole period where it was."""
    topics = _loads(wave=0.5, period=60)

    assert topics.at(15)[0] == pytest.approx(1.5 * MIB)
    assert topics.at(45)[0] == pytest.approx(0.5 * MIB)
    assert topics.at(60)[0] == pytest.approx(topics.at(0)[0])


def test_events_multiply_what_topics_carried_at_the_start() -> None:
    """Of the named topics, or all; other namespaces are left alone; a second event does not add up."""
    topics = _loads()
    topics.change(ScenarioEvent(at=0, factor=3.0, topics=(1,)))
    topics.change(ScenarioEvent(at=0, factor=9.0, namespace="t/other"))
    topics.change(ScenarioEvent(at=0, leave=("b1",)))

    assert (topics.at(0) / MIB).tolist() == [1.0, 3.0, *[1.0] * 6]
    topics.change(ScenarioEvent(at=1, factor=2.0))
    assert (topics.at(0) / MIB).tolist() == [2.0] * 8
