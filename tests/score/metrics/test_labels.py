"""Match ratios by hand."""

from __future__ import annotations

import math

from lookup.model.batch import ClientClass
from lookup.model.broker import Broker
from lookup.score.metrics import MatchRatio
from tests.score.oracle import Happenings, Lookup
from tests.score.worlds import HOUR, batch_of, labelled

A, B, BARE = labelled("a:8080", "a"), labelled("b:8080", "b"), labelled("c:8080")
BROKERS = [A, B, BARE]
IN_A, NOWHERE = ClientClass({"rack": "a"}), ClientClass()


def ratio(*answers: tuple[ClientClass, Broker | None], key: str = "rack") -> float:
    """Return the match ratio of some lookups of one bundle."""
    lookups = [Lookup("c", 0, "b0", broker, client) for client, broker in answers]
    batch = batch_of(Happenings(lookups, (), {("c", 0): frozenset(one.id for one in BROKERS)}, HOUR), BROKERS)
    return float(MatchRatio().value(MatchRatio().accumulate(batch, key).sum(axis=0)))


def test_same_label_matches() -> None:
    """One of two answered clients of rack a met rack a."""
    assert ratio((IN_A, A), (IN_A, B)) == 0.5


def test_a_broker_without_label_does_not_match() -> None:
    """A client with a label at a broker without one counts below the line."""
    assert ratio((IN_A, BARE), (IN_A, A)) == 0.5


def test_a_client_without_label_does_not_count() -> None:
    """Two absent labels are no match."""
    assert ratio((NOWHERE, BARE), (NOWHERE, A), (IN_A, A)) == 1.0


def test_unanswered_lookups_do_not_count() -> None:
    """Declines are what answered_ratio is for."""
    assert ratio((IN_A, None), (IN_A, A)) == 1.0


def test_nobody_sent_the_property() -> None:
    """Then there is nothing to measure."""
    assert math.isnan(ratio((IN_A, A), key="tier"))


def test_keys_are_the_properties_clients_send() -> None:
    """One figure per property, sorted."""
    clients = [ClientClass({"zone": "z", "rack": "a"}), ClientClass({"rack": "b"})]
    world = Happenings([Lookup("c", 0, "b0", A, one) for one in clients], (), {("c", 0): frozenset({A.id})}, HOUR)

    assert MatchRatio().keys(batch_of(world, BROKERS)) == ["rack", "zone"]
