"""Metrics that count answers, by hand."""

from __future__ import annotations

from dataclasses import replace

from lookup.model.batch import ClientClass
from lookup.model.broker import Broker
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.score.metrics import AnsweredRatio, IsolationRatio, MatchRatio
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


def test_a_client_without_label_does_not_count() -> None:
    """Two absent labels are no match."""
    assert ratio((NOWHERE, BARE), (NOWHERE, A), (IN_A, A)) == 1.0
