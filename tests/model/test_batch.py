"""What metrics are handed: nothing in a batch can be written into, and nothing of it is copied."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from lookup.model.batch import Batch, ClientClass, Served
from lookup.model.broker import Broker, Location, Roster
from tests.score.oracle import Happenings
from tests.score.worlds import batch_of, labelled, worlds


def _columns(batch: Batch) -> Iterator[np.ndarray]:
    for record in (batch, batch.served, batch.cells, batch.changes):
        if record is not None:
            yield from (value for value in vars(record).values() if isinstance(value, np.ndarray))


@given(worlds())
def test_no_column_of_a_batch_can_be_written_into(drawn: tuple[Happenings, list[Broker]]) -> None:
    """Whatever it was made of, and also of one that was made of another."""
    batch = batch_of(*drawn)

    assert len([*_columns(batch)]) >= 10
    assert not any(column.flags.writeable for one in (batch, replace(batch)) for column in _columns(one))


def test_columns_follow_the_arrays_they_show() -> None:
    """They are views; whoever counts goes on counting."""
    counted = np.zeros(3)
    served = Served(*[np.zeros(3, dtype=np.int64)] * 3, counted, counted)
    counted[1] = 5.0

    assert served.lookups.tolist() == [0.0, 5.0, 0.0]
    with pytest.raises(ValueError, match="read-only"):
        served.lookups[:] = 0.0


def test_properties_of_clients_cannot_be_changed() -> None:
    """They show what they were made of, equal it, and travel."""
    client = ClientClass({"rack": "a"}, Location(rack="a"))

    with pytest.raises(TypeError, match="does not support item assignment"):
        client.properties["rack"] = "b"  # type: ignore[index]  # that it cannot be done is the test
    assert client.properties == {"rack": "a"}
    assert pickle.loads(pickle.dumps(client)) == client == ClientClass({"rack": "a"}, Location(rack="a"))


def test_labels_of_a_roster_cannot_be_written_into() -> None:
    """All who ask for a label or a column get the same array."""
    roster = Roster([labelled("b1:8080", "a")])

    for column in (roster.labels("rack"), roster.column("length", lambda broker: len(broker.id))):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = "b"
