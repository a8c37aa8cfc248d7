"""Requests made from codes, and their decision keys as integers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lookup.replay import requests as module
from lookup.replay.atoms import BundleMap
from lookup.replay.requests import KeyCoder, RequestMaker, key_text
from tests.replay.plans import Planned, lookup, planned, policy

ROWS = [
    lookup(0, topic="persistent://t/n/0", properties='{"rack":"a","zone":"1"}', client="x"),
    lookup(1, topic="persistent://t/n/1", properties='{"rack":"a","zone":"2"}', client="y"),
    lookup(2, topic="non-persistent://t/o/1", properties="{}", client="x"),
    lookup(3, topic="persistent://u/n/1", properties='{"rack":"b"}', client="x"),
    lookup(4, topic="persistent://t/n/0", properties='{"rack":"a","zone":"1"}', client="x"),
]
PARTS: tuple[Mapping[str, Any], ...] = (
    {"selector": "random"},
    {"scorers": [{"use": "property-match", "key": "rack"}]},
    {"filters": ["isolation"]},
    {"selector": {"use": "rendezvous", "key": "topic"}},
    {"selector": {"use": "rendezvous", "key": "client"}, "scorers": [{"use": "property-match", "key": "zone"}]},
    {"selector": {"use": "rendezvous", "key": "bundle"}},
)


def _texts(plan: Planned, parts: Mapping[str, Any]) -> tuple[list[int], list[str]]:
    chosen, bundles = policy(**parts), BundleMap(plan.cluster.words.atoms)
    requests = RequestMaker(plan.cluster, bundles)
    codes, bound = KeyCoder(plan.cluster, chosen, bundles).codes(plan.rows, 0, len(ROWS))
    assert 0 <= codes.min() <= codes.max() < bound
    return codes.tolist(), [key_text(chosen, requests.request(plan.rows, row)) for row in range(len(ROWS))]


@pytest.mark.parametrize("most", [0, 1 << 16])
@pytest.mark.parametrize("parts", PARTS)
def test_rows_have_the_same_number_where_the_policy_sees_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, Any], most: int
) -> None:
    """Two lookups share a number exactly if they share the decision key, few keys or many."""
    monkeypatch.setattr(module, "_SMALL", most)
    codes, texts = _texts(planned(tmp_path, ROWS), parts)

    for a, first in enumerate(texts):
        assert [codes[a] == code for code in codes] == [first == text for text in texts]


def test_a_key_is_written_with_the_names_of_its_fields(tmp_path: Path) -> None:
    """The text of a key is JSON of what the policy reads, None for what was not sent."""
    _, texts = _texts(planned(tmp_path, ROWS), {"scorers": [{"use": "property-match", "key": "zone"}]})

    assert texts[:3] == ['{"properties.zone": "1"}', '{"properties.zone": "2"}', '{"properties.zone": null}']
