"""Topology files."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lookup.model import Topology
from lookup.settings import TopologyFile


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"levels": ["rack", "zone"]}, 'levels: should be "region", "zone" and "rack", outermost first'),
        ({"levels": ["rack", "rack"]}, 'levels: should be "region", "zone" and "rack", outermost first'),
        ({"levels": []}, 'levels: should be "region", "zone" and "rack", outermost first'),
        ({"levels": ["rack"], "distance_ms": {"zone": 1.0}}, "distance_ms.zone: is not one of `levels`"),
        ({"levels": ["rack"], "price_per_gb": {"zone": 1.0}}, "price_per_gb.zone: is not one of `levels`"),
        ({"edges": [{"a": "x", "b": "x", "ms": 1.0}]}, "edges[0]: joins 'x' with itself"),
        ({"distance_ms": {"rack": -1.0}}, "Input should be greater than or equal to 0"),
        ({"edges": [{"a": "x", "b": "y"}]}, "Field required"),
    ],
)
def test_a_topology_that_makes_no_sense_is_refused(keys: dict[str, Any], sentence: str) -> None:
    """Levels are listed outermost first and once, figures belong to them, links join two places."""
    with pytest.raises(ValidationError) as caught:
        TopologyFile.model_validate(keys)

    assert caught.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(sentence)


def test_the_defaults_are_the_model_s() -> None:
    """An empty file means what the model means without any figures."""
    file, model = TopologyFile(), Topology()

    assert dict(file.distance_ms.items()) == model.distance_ms
    assert dict(file.price_per_gb.items()) == model.price_per_gb
    assert (len(file.edges), len(model.edges)) == (0, 0)
