"""Metrics that count answers, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lookup.model.batch import ClientClass
from lookup.model.broker import Broker
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.score.metrics import AgreementRatio, AnsweredRatio, IsolationRatio, MatchRatio
from tests.score.oracle import Happenings, Lookup
from tests.score.worlds import HOUR, batch_of, labelled

ONE, TWO = labelled("one:8080"), labelled("two:8080")
ANYBODY = ClientClass()


def world(*lookups: Lookup) -> Happenings:
    """Put lookups into one cell in which both brokers are registered."""
    return Happenings(lookups, (), {("c", 0): frozenset({ONE.id, TWO.id})}, HOUR)


def test_answered_ratio_counts_lookups_by_bundle() -> None:
    """Two of three lookups of b0 are answered, none of b2; weights do not matter."""
    answered = [Lookup("c", 0, "b0", ONE, ANYBODY, weight=9.0), Lookup("c", 1, "b0", TWO, ANYBODY)]
    lost = [Lookup("c", 2, "b0", None, ANYBODY), Lookup("c", 3, "b2", None, ANYBODY)]

    sums = AnsweredRatio().accumulate(batch_of(world(*answered, *lost), [ONE, TWO]), None)

    assert sums[:3].tolist() == [[2, 3], [0, 0], [0, 1]]
    assert AnsweredRatio().value(sums.sum(axis=0)) == 0.5


def test_agreement_ratio_is_about_answered_lookups_with_a_logged_broker() -> None:
    """Two of four lookups have an answer and a logged broker; for one of these they are the same."""
    lookups = [
        Lookup("c", 0, "b0", ONE, ANYBODY, logged=ONE.id),
        Lookup("c", 1, "b1", ONE, ANYBODY, logged=TWO.id),
        Lookup("c", 2, "b1", ONE, ANYBODY),
        Lookup("c", 3, "b1", None, ANYBODY, logged=ONE.id),
    ]

    sums = AgreementRatio().accumulate(batch_of(world(*lookups), [ONE, TWO]), None)

    assert sums.sum(axis=0).tolist() == [1, 2]


def test_isolation_ratio_is_about_namespaces_with_a_policy() -> None:
    """One of two answered lookups of t/a came to its own broker; t/b may go anywhere, and nobody answers the last."""
    lookups = [
        Lookup("c", 0, "b0", ONE, ANYBODY),
        Lookup("c", 1, "b0", TWO, ANYBODY),
        Lookup("c", 2, "b1", TWO, ANYBODY),
        Lookup("c", 3, "b0", None, ANYBODY),
    ]
    policies = NamespacePolicies(isolation={"t/a": (IsolationPolicy(("x",), ("on.",)),)})
    batch = batch_of(world(*lookups), [ONE, TWO])
    named = tuple(f"t/{'a' if bundle == 'b0' else 'b'}/{bundle}" for bundle in batch.bundles)
    isolated = replace(batch, bundles=named, namespaces=policies)

    assert (IsolationRatio().keys(batch), IsolationRatio().keys(isolated)) == ((), (None,))
    assert IsolationRatio().accumulate(isolated, None).sum(axis=0).tolist() == [1, 2]


def test_quotients_of_nothing_are_nan() -> None:
    """Without lookups there is no ratio, and no warning either."""
    assert np.isnan(AnsweredRatio().value(np.zeros((3, 2)))).all()


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
