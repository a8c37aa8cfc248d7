"""Codes of topics as one task meets them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule
from lookup.replay.topics import TopicCodes


def codes() -> TopicCodes:
    """Build codes of namespaces with Pulsar's number of bundles each."""
    return TopicCodes(AtomRule(NamespacePolicies(), {}))


def test_namespaces_are_numbered_as_they_occur() -> None:
    """One after the other, each with as many codes as it has atoms; the same topic keeps its code."""
    some = codes()
    first, second = some.code("persistent://t/b/x"), some.code("persistent://t/a/x")

    assert some.bases == {"t/b": 0, "t/a": len(NamespacePolicies().boundaries_of("t/b")) - 1}
    assert 0 <= first < some.bases["t/a"] <= second
    assert some.code("persistent://t/b/x") == first


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (None, "the topic is missing"),
        ("persistent://t/n/x.*", "the topic is a regular expression"),
        ("ftp://t/n/x", "ftp"),
    ],
)
def test_what_is_no_topic_has_a_reason(topic: str | None, reason: str) -> None:
    """It is bad, and why is kept for quarantine."""
    some = codes()

    assert some.code(topic) == TopicCodes.BAD
    assert reason in some.reasons[topic]


def test_topics_of_the_load_manager_are_no_demand() -> None:
    """They have a code of their own, and their namespace no atoms."""
    some = codes()

    assert some.code("persistent://pulsar/system/loadbalancer-service-unit-state") == TopicCodes.INTERNAL
    assert some.bases == {}


def test_only_topics_of_usable_rows_are_digested() -> None:
    """A dictionary also holds topics of rows that are left out; each is counted once, whatever the batches."""
    some = codes()
    topics = pa.array(["persistent://t/n/a", "persistent://t/n/b", "persistent://t/n/a"]).dictionary_encode()
    known = {text: some.code(text) for text in topics.dictionary.to_pylist()}

    some.note(topics, np.array([True, False, True]))
    some.note(pa.array(["persistent://t/n/a"]).dictionary_encode(), np.array([True]))

    assert some.digests()[:, 1].tolist() == [known["persistent://t/n/a"]]
