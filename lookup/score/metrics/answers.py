"""Count answers, which are lookups with a broker, with the logged broker, or with a broker of the client's label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lookup.hooks import Better, Question
from lookup.model.batch import Batch
from lookup.score.metrics.totals import FloatArray, LookupQuotient, of_pairs, per_bundle

__all__ = ["AgreementRatio", "AnsweredRatio", "IsolationRatio", "MatchRatio"]


@dataclass(frozen=True)
class AnsweredRatio(LookupQuotient):
    """Lookups that got a broker / lookups."""

    name: ClassVar[str] = "answered_ratio"
    better: ClassVar[Better] = "up"
    question: ClassVar[Question] = "log"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count answered lookups and lookups, shape (n_bundles, 2)."""
        served = batch.served
        answered = np.where(served.broker >= 0, served.lookups, 0.0)
        return per_bundle(batch, served.bundle, answered, served.lookups)


@dataclass(frozen=True)
class AgreementRatio(LookupQuotient):
    """Lookups answered as logged / answered lookups with a logged broker."""

    name: ClassVar[str] = "agreement_ratio"
    better: ClassVar[Better] = "info"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count lookups answered as logged and answered lookups with a logged broker, shape (n_bundles, 2)."""
        return np.stack([batch.agreed, batch.logged], axis=1)


@dataclass(frozen=True)
class IsolationRatio(LookupQuotient):
    """Lookups served by a broker of their namespace's isolation policies / answered lookups of such namespaces."""

    name: ClassVar[str] = "isolation_ratio"
    better: ClassVar[Better] = "up"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List one figure if a namespace has a policy, else none."""
        return (None,) if batch.namespaces.isolation else ()

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count lookups that brokers of the policies served and lookups of their namespaces, shape (n_bundles, 2)."""
        served, rules = batch.served, batch.namespaces
        namespaces = [bundle.rpartition("/")[0] for bundle in batch.bundles]
        # Unanswered lookups, with broker -1, do not have a broker.
        hosts = [*(broker.host for broker in batch.brokers), None]
        permits_of = {name: [bool(host and rules.permits(name, host)) for host in hosts] for name in {*namespaces}}
        permits = np.array([permits_of[name] for name in namespaces], dtype=np.float64)
        has_policy = np.array([bool(rules.isolation.get(name)) for name in namespaces], dtype=np.float64)
        counted = served.lookups * has_policy[served.bundle] * (served.broker >= 0)
        return per_bundle(batch, served.bundle, counted * permits[served.bundle, served.broker], counted)


@dataclass(frozen=True)
class MatchRatio(LookupQuotient):
    """Lookups served by a broker with the client's label / answered lookups whose client sent the property."""

    name: ClassVar[str] = "match_ratio"
    better: ClassVar[Better] = "up"
    #: they depend on the log
    every_key: ClassVar[tuple[str, ...] | None] = None

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List every lookup property that a client sends, sorted."""
        return sorted({key for client in batch.clients for key in client.properties})

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count matched lookups and lookups that could match, shape (n_bundles, 2)."""
        served = batch.served
        sent = [client.properties.get(str(key)) for client in batch.clients]
        # Row 0 is for unanswered lookups. It stays zero in both tables, so that these neither match nor count.
        counts = np.zeros((1 + len(batch.brokers), len(sent)))
        counts[1:] = [value is not None for value in sent]
        matches = np.zeros_like(counts)
        # Two absent labels compare as equal, but a client without the property does not count.
        is_same = batch.brokers.labels(str(key))[:, None] == np.array(sent, dtype=object)[None, :]
        matches[1:] = is_same & (counts[1:] > 0)
        matched, counted = (served.lookups * of_pairs(batch, table) for table in (matches, counts))
        return per_bundle(batch, served.bundle, matched, counted)
