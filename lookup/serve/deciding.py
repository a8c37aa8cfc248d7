"""Answer brokers by a policy, which includes storing their views, evaluation, the random draw, and recorded rows."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from lookup.engine.ballots import Ballot, roll
from lookup.engine.explain import explain
from lookup.engine.owners import Owners
from lookup.engine.policy import Instant, Policy
from lookup.errors import InputError
from lookup.logs.columns import canonical_json
from lookup.logs.schema import SERVED_DECISIONS
from lookup.model.recent import Recent
from lookup.serve.messages import DecideMessage, recorded_client, recorded_properties
from lookup.serve.policies import ServedPolicies
from lookup.serve.views import Surroundings, View, digest_of, view_digest, view_of

__all__ = ["Deciders", "PolicyAnswer", "Views", "reads_owners"]

#: Brokers whose views are kept, and views of each.
_MOST_SENDERS, _VIEWS_EACH = 1000, 4
#: Sets of candidates whose instants are kept, and ballots of each.
_MOST_INSTANTS, _MOST_BALLOTS = 256, 10_000
_COLUMNS = SERVED_DECISIONS.names


def reads_owners(policy: Policy) -> bool:
    """Check whether a policy reads the owners of bundles."""
    return "view.ownership" in policy.reads


class Views:
    """A store of the last views of every requesting broker. Views with the same content are one view."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._by_sender: Recent[str, Recent[str, View]] = Recent(_MOST_SENDERS)
        #: as long as a broker may name them, or a decision on them be explained
        self._by_digest: WeakValueDictionary[str, View] = WeakValueDictionary()

    def find(self, message: DecideMessage, now_us: int) -> View | None:
        """Find the view of a request, which is kept if the request contains it. Return None for an unknown name.

        Raises:
            InputError: if a record of the view does not have Pulsar's form, or a candidate is not in the view.
        """
        recent = self._by_sender.get(message.broker)
        if message.view is not None:
            digest = view_digest(message.view)
            view = self._by_digest.get(digest) or view_of(message.view, now_us, self._surroundings)
            self._by_digest[digest] = view
            recent = Recent(_VIEWS_EACH) if recent is None else recent
            # A broker that uses one id for two contents means the later one.
            recent.put(message.view_id, view)
            self._by_sender.put(message.broker, recent)
        elif recent is None or message.view_id not in recent:
            return None
        else:
            view = recent[message.view_id]
        # Once for each set of candidates, since most requests have the same.
        if message.candidates not in view.offered:
            strange = next((broker for broker in message.candidates if broker not in view.records), None)
            if strange is not None:
                raise InputError(f"candidates names {strange!r}, which is not in the view")
            if len(view.offered) >= _MOST_INSTANTS:
                view.offered.clear()
            view.offered.add(message.candidates)
        return view

    @property
    def current(self) -> list[View]:
        """The latest view of every broker that asked."""
        return [next(reversed(views.values())) for views in self._by_sender.values()]


class PolicyAnswer(NamedTuple):
    """A policy's answer to one request, with all that is needed to give it again."""

    decision: str
    policy: Policy
    ballot: Ballot
    broker: str | None
    propensity: float | None
    #: the random number, None if none was needed
    rolls: int | None
    dice: float | None
    ts_us: int
    message: DecideMessage
    view: View
    #: reference of the state of owners at the decision, None if the policy does not read owners
    owners: str | None

    def row(self, served: ServedPolicies, masked: Collection[str], *, is_carried: bool) -> tuple[Any, ...]:
        """Convert the answer to a row of SERVED_DECISIONS, without the values of masked fields."""
        request, ballot = self.message.request, self.ballot
        values = {
            "cluster": served.surroundings.cluster,
            "policy": self.policy.name,
            "seed": served.seed,
            "ts": self.ts_us,
            "bundle": request.bundle,
            "broker": self.broker,
            "propensity": self.propensity,
            "declined": None if ballot.declined is None else ballot.declined.value,
            "odds": (*ballot.odds.items(),),
            "rejected": tuple([(reason.value, count) for reason, count in ballot.rejected.items()]),
            "margin": ballot.margin,
            "ties": ballot.ties,
            "fingerprint": self._fingerprint,
            "decision": self.decision,
            "carried": is_carried,
            "asked_broker": self.message.broker,
            "asked_ts": self.message.asked_us,
            "topic": request.topic,
            "client": recorded_client(request.client, masked),
            "listener": request.listener,
            "properties": canonical_json(recorded_properties(request.properties, masked)),
            "candidates": self.message.candidates,
            "view": self.view.reference,
            "owners": self.owners,
            "rolls": self.rolls,
            "dice": self.dice,
            "settings": served.reference,
        }
        return tuple(map(values.get, _COLUMNS))

    @property
    def _fingerprint(self) -> str:
        """The name of everything but the request that the odds depend on."""
        candidates, view = self.message.candidates, self.view
        among = "all" if len(candidates) == len(view.records) else _digest_of_set(candidates)
        instant = f"/{self.ts_us}" if "view.now" in self.policy.reads else ""
        owners = "" if self.owners is None else f"/{self.owners}"
        return f"{view.reference}/{among}{instant}{owners}"

    def explain(self, owners: Owners) -> dict[str, Any]:
        """Evaluate the policy again, and return every broker's rejection, scores and odds, as JSON."""
        ownership = None if self.owners is None else owners.at(self.owners, self.view.roster.ids)
        if self.owners is not None and ownership is None:
            raise InputError(f"the owners that decision {self.decision} saw are not kept any more; its record has them")
        view = self.view.at(self.ts_us, self.message.candidates, ownership)
        return {
            "decision": self.decision,
            "broker": self.broker,
            "propensity": self.propensity,
            "dice": self.dice,
            "view": self.view.reference,
            **explain(self.policy, self.message.request, view).document(),
        }


@lru_cache(maxsize=_MOST_INSTANTS)
def _digest_of_set(candidates: tuple[str, ...]) -> str:
    return digest_of(sorted(candidates))


@dataclass(slots=True)
class _Asked:
    """A policy's answers about one set of candidates of one view."""

    instant: Instant
    #: state of the owners that the ballots hold for
    owners: str | None
    ballots: dict[Hashable, Ballot]


class Deciders:
    """Evaluators of policies, for one request at a time. Equal requests with equal views and owners are cached.

    Args:
        owners: the present owners, for policies that read them.
        started_us: makes the names of decisions differ between runs of the server.
        count: number of decisions named before.
    """

    def __init__(self, served: ServedPolicies, owners: Owners, started_us: int, *, count: int = 0) -> None:
        self._served, self._owners, self._started_us, self.count = served, owners, started_us, count
        self._asked: Recent[Hashable, _Asked] = Recent(_MOST_INSTANTS)

    def answer(self, policy: Policy, message: DecideMessage, view: View, ts_us: int) -> PolicyAnswer:
        """Decide, or raise PolicyError if a part fails and `on_error` is stop, or it breaks its protocol.

        Args:
            ts_us: time, different for all decisions of a server, so that all draws of a bundle differ.
        """
        self.count += 1
        decision = f"{self._started_us:x}-{self.count:06d}"
        owners = self._owners.reference if reads_owners(policy) else None
        ballot = self._compute_ballot(policy, message, view, ts_us, owners)
        broker = rolls = dice = None
        if len(ballot.numbers) == 1:
            broker = view.roster[ballot.numbers[0]].id
        elif ballot.numbers:
            rolls = ts_us
            dice = roll(self._served.seed, self._served.surroundings.cluster, message.request.bundle, rolls)
            broker = view.roster[ballot.pick(dice)].id
        propensity = None if broker is None else ballot.odds[broker]
        return PolicyAnswer(decision, policy, ballot, broker, propensity, rolls, dice, ts_us, message, view, owners)

    def _compute_ballot(
        self, policy: Policy, message: DecideMessage, view: View, ts_us: int, owners: str | None
    ) -> Ballot:
        ownership = None if owners is None else self._owners.seen_by(view.roster.ids)
        if "view.now" in policy.reads:
            return policy.ballot(message.request, Instant(policy, view.at(ts_us, message.candidates, ownership)))
        key = (policy.name, view.reference, message.candidates)
        entry = self._asked.get(key)
        # Owners that are seen follow every change, until their roster was not asked about for long.
        if entry is None or (ownership is not None and entry.instant.view.ownership is not ownership):
            instant = Instant(policy, view.at(ts_us, message.candidates, ownership))
            entry = _Asked(instant, owners, {})
            self._asked.put(key, entry)
        if entry.owners != owners:
            entry.owners = owners
            entry.ballots.clear()
        decision_key = policy.decision_key(message.request)
        ballot = entry.ballots.get(decision_key)
        if ballot is None:
            # Keys contain data from clients, so there may be any number of them.
            if len(entry.ballots) >= _MOST_BALLOTS:
                entry.ballots.clear()
                entry.instant.answers.clear()
                entry.instant.standing.clear()
            ballot = entry.ballots[decision_key] = policy.ballot(message.request, entry.instant)
        return ballot
