"""Count the events of the decision server, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lookup.engine.owners import Owners
from lookup.serve.following import Follower
from lookup.serve.policies import ServedPolicies
from lookup.serve.recording import TABLES, Recorder

__all__ = ["Metrics"]

#: Seconds. A broker waits for 0.1 of them by default.
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
#: Of all answers.
_STATUSES = (200, 204, 400, 401, 403, 404, 405, 409, 413, 500, 501, 503, 507)


class Metrics:
    """The figures of one server. Children with labels are looked up once, since that takes longer than counting."""

    def __init__(self) -> None:
        own = self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=own), partial(Gauge, registry=own)
        requests = counter("lookup_requests", "requests by path and status", ["path", "status"])
        decisions = counter("lookup_decisions", "answers by policy and outcome", ["policy", "outcome"])
        self.requests, self.decisions = cache(requests.labels), cache(decisions.labels)
        self.lookups = counter("lookup_recorded_lookups", "lookups taken into the record")
        self.refused = counter("lookup_refused_lookups", "lookups that cannot be recorded")
        self.clock_jumps = counter("lookup_clock_jumps", "times the clock went back")
        self.reloads = counter("lookup_reloads", "settings loaded again, by outcome", ["outcome"])
        self.dropped = gauge("lookup_sender_dropped", "lookups of a broker that are lost", ["broker"])
        # A broker's figure begins with its first batch, so an alert does not see an increase of an absent figure.
        self.dropped_of_all = gauge("lookup_dropped_lookups", "lookups of all brokers that are lost")
        self.pending = gauge("lookup_pending_rows", "rows that wait to be written")
        self.failing = gauge("lookup_record_failing", "1 if rows cannot be written")
        self.written = gauge("lookup_written_rows", "rows written since the start", ["table"])
        self.lost = gauge("lookup_lost_rows", "rows lost since the start, too many waited", ["table"])
        self.owners_unknown = counter(
            "lookup_owners_unknown", "requests refused since the owners of bundles are not known"
        )
        self.owners = gauge("lookup_owners", "bundles that have an owner")
        self.owners_lag = gauge("lookup_owners_lag_seconds", "age of the latest moment for which all owners are known")
        self.owners_lost = gauge("lookup_owners_lost", "1 if the state topic cannot be read")
        self.owners_losses = gauge("lookup_owners_losses", "times the state topic was lost since the start")
        self.owners_refused = gauge("lookup_owners_refused", "records of the state topic that Pulsar does not write")
        self.topics_lost = gauge("lookup_topics_lost", "1 if the topics of the cluster cannot be read")
        self.loads_age = gauge("lookup_loads_age_seconds", "age of the oldest load that the latest decision saw")
        self.seconds = Histogram("lookup_decide_seconds", "time to answer a broker", buckets=_BUCKETS, registry=own)

    def begin(self, paths: Iterable[str], served: ServedPolicies) -> None:
        """Initialise counters to 0, since the first event is otherwise not an increase of an existing figure."""
        for path, status in product((*paths, "other"), _STATUSES):
            self.requests(path, status)
        for outcome in ("taken", "refused"):
            self.reloads.labels(outcome)
        if served.active is not None:
            for outcome in ("chosen", "declined", "error"):
                self.decisions(served.active.name, outcome)

    def show_owners(self, follower: Follower, owners: Owners, lag_s: float) -> None:
        """Take over the figures of the owners as they are now."""
        self.owners.set(len(owners))
        self.owners_lag.set(lag_s)
        self.owners_lost.set(follower.problem(0.0) is not None)
        self.owners_losses.set(follower.losses)
        self.owners_refused.set(follower.refused)

    def text(self, recorder: Recorder) -> bytes:
        """Format all figures, with the present ones of the record."""
        self.pending.set(recorder.pending)
        self.failing.set(recorder.refusal is not None)
        self.dropped_of_all.set(recorder.senders.lost_of_all)
        # A stranger may send any number of names.
        self.dropped.clear()
        for broker, lost in recorder.senders.lost.items():
            self.dropped.labels(broker).set(lost)
        for table in TABLES:
            self.written.labels(table).set(recorder.written[table])
            self.lost.labels(table).set(recorder.lost[table])
        return generate_latest(self.registry)
