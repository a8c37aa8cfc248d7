"""Decision keys as integers, and the rows of a stretch counted by key and tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.replay import stretches as module
from lookup.replay.atoms import BundleMap
from lookup.replay.stretches import KeyCoder, Stretch, classes_of, count_stretch, demand_by_key, key_text
from lookup.replay.walk import RequestMaker
from tests.replay.plans import Planned, lookup, planned, policy

#: Seconds after noon, property `k` and weight of lookups in two minutes.
ROWS = [(0, "x", 1.0), (1, "y", 2.0), (2, "x", 4.0), (61, "z", 8.0), (62, "x", 16.0), (63, "y", 32.0)]


def _stretch(folder: Path) -> tuple[Planned, Stretch]:
    plan = planned(folder, [lookup(at, properties=f'{{"k":"{k}"}}', weight=weight) for at, k, weight in ROWS])
    return plan, Stretch(plan.ticks, 0, 0)


def test_demand_adds_up_the_classes_of_a_key_tick_by_tick(tmp_path: Path) -> None:
    """Whatever classes share a key, lookups and weight are those of the rows, and a key without rows is not there."""
    plan, stretch = _stretch(tmp_path)
    classes = classes_of(plan.cluster, stretch)
    # The first two client classes share key 5; the third has key 2.
    keys = np.where(classes.client < 2, 5, 2)

    demand = demand_by_key(count_stretch(plan.cluster, stretch, classes), keys, len(stretch.ticks))

    starts = [tick.low for tick in stretch.ticks]
    lookups, weight = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row, (client, (_, _, each)) in enumerate(zip(classes.client[classes.codes], ROWS, strict=True)):
        key, tick = (5 if client < 2 else 2), int(np.searchsorted(starts, row, side="right")) - 1
        lookups[key, tick] += 1
        weight[key, tick] += round(each * 1e6)
    assert set(demand.pairs) == {2, 5}
    assert [
        (key, tick, count, micro)
        for key, pairs in demand.pairs.items()
        for tick, count, micro in zip(demand.tick[pairs], demand.lookups[pairs], demand.micro[pairs], strict=True)
    ] == [(key, tick, lookups[key, tick], weight[key, tick]) for key, tick in sorted(lookups)]


_ASKED = [
    lookup(0, topic="persistent://t/n/0", properties='{"rack":"a","zone":"1"}', client="x"),
    lookup(1, topic="persistent://t/n/1", properties='{"rack":"a","zone":"2"}', client="y"),
    lookup(2, topic="non-persistent://t/o/1", properties="{}", client="x"),
    lookup(3, topic="persistent://u/n/1", properties='{"rack":"b"}', client="x"),
    lookup(4, topic="persistent://t/n/0", properties='{"rack":"a","zone":"1"}', client="x"),
]
_PARTS: tuple[Mapping[str, Any], ...] = (
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
    codes, bound = KeyCoder(plan.cluster, chosen, bundles).codes(plan.rows, 0, len(_ASKED))
    assert 0 <= codes.min() <= codes.max() < bound
    return codes.tolist(), [key_text(chosen, requests.request(plan.rows, row)) for row in range(len(_ASKED))]


@pytest.mark.parametrize("most", [0, 1 << 16])
@pytest.mark.parametrize("parts", _PARTS)
def test_rows_have_the_same_number_where_the_policy_sees_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, Any], most: int
) -> None:
    """Two lookups share a number exactly if they share the decision key, few keys or many."""
    monkeypatch.setattr(module, "_SMALL", most)
    codes, texts = _texts(planned(tmp_path, _ASKED), parts)

    for a, first in enumerate(texts):
        assert [codes[a] == code for code in codes] == [first == text for text in texts]


def test_a_key_is_written_with_the_names_of_its_fields(tmp_path: Path) -> None:
    """The text of a key is JSON of what the policy reads, None for what was not sent."""
    _, texts = _texts(planned(tmp_path, _ASKED), {"scorers": [{"use": "property-match", "key": "zone"}]})

    assert texts[:3] == ['{"properties.zone": "1"}', '{"properties.zone": "2"}', '{"properties.zone": null}']
