"""Codes of topics as they occur."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule
from lookup.replay.topics import TopicCodes

TOPIC = "persistent://t/n/a"


@pytest.fixture
def codes() -> TopicCodes:
    """Return codes of namespaces with two bundles."""
    return TopicCodes(AtomRule(NamespacePolicies(default_bundles=2), {}))


def test_namespaces_are_numbered_as_they_occur(codes: TopicCodes) -> None:
    """Each namespace takes as many codes as it has atoms; domains share them."""
    found = {codes.code(f"persistent://t/n/{number}") for number in range(50)}
    other = {codes.code(f"non-persistent://t/o/{number}") for number in range(50)}

    assert (found, other, codes.bases) == ({0, 1}, {2, 3}, {"t/n": 0, "t/o": 2})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("persistent://t/n/.*", "the topic is a regular expression, which topic list watchers look up"),
        ("other://t/n/a", "topic 'other://t/n/a' does not begin with persistent:// or non-persistent://"),
        ("persistent://t/n/", "topic 'persistent://t/n/' is not of the form persistent://tenant/namespace/topic"),
        (None, "the topic is missing"),
    ],
)
def test_what_is_no_topic_is_told_why(codes: TopicCodes, text: str | None, reason: str) -> None:
    """Bad texts have no code but a reason, also in namespaces that are known already."""
    codes.code(TOPIC)

    assert codes.code(text) == TopicCodes.BAD
    assert codes.reasons[text] == reason


def test_topics_of_the_load_manager_are_told_apart(codes: TopicCodes) -> None:
    """Internal topics have a code of their own and do not make their namespace known."""
    assert codes.code("non-persistent://pulsar/system/loadbalancer-broker-load-data") == TopicCodes.INTERNAL
    assert codes.bases == {}


def test_only_topics_of_usable_rows_are_digested(codes: TopicCodes) -> None:
    """A topic counts once if any usable row has it, whatever else a dictionary holds."""
    column = pa.DictionaryArray.from_arrays([0, 0, 1, None], [TOPIC, "persistent://t/n/b", "persistent://t/n/c"])
    for text in column.dictionary.to_pylist():
        codes.code(text)
    codes.note(column, np.array([True, True, False, False]))
    codes.note(column, np.array([True, True, False, False]))

    assert codes.digests()[:, 1].tolist() == [codes.code(TOPIC)]
