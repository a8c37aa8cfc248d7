"""Parts for the engine's tests: each does one thing it is told to, right or wrong."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.policy import Instant, Policy, WeightedScorer
from lookup.hooks import ALL_READS
from lookup.model import (
    Broker,
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupRequest,
    Probe,
    Reason,
    Ruling,
    Unload,
)

DONE = CycleOutcome(CycleLabel.SUCCESS, CycleReason.OVERLOADED)


@dataclass(frozen=True)
class Keep:
    """A filter that keeps the named brokers, or answers and raises what it is told to."""

    name: ClassVar[str] = "keep"

    ids: tuple[str, ...] = ()
    reason: Reason = Reason.FILTERED
    reads: frozenset[str] = frozenset()
    answer: Callable[[Candidates], Any] | None = None

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Iterable[bool]:
        """Keep who is named."""
        return self.answer(brokers) if self.answer else [broker.id in self.ids for broker in brokers]


@dataclass(frozen=True)
class Score:
    """A scorer with a number for each broker, or one that answers and raises what it is told to."""

    name: ClassVar[str] = "score"

    by_id: Mapping[str, float] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    answer: Callable[[Candidates], Any] | None = None

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> Any:
        """Look the numbers up."""
        return self.answer(brokers) if self.answer else [self.by_id.get(broker.id, 0.0) for broker in brokers]


@dataclass(frozen=True)
class Odds:
    """A selector with odds for each broker: its scores by default."""

    name: ClassVar[str] = "odds"

    by_id: Mapping[str, float] | None = None
    reads: frozenset[str] = frozenset()
    answer: Callable[[Candidates], Any] | None = None
    asked: list[LookupRequest] = field(default_factory=list, compare=False)

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Look the odds up."""
        self.asked.append(request)
        if self.answer:
            return self.answer(brokers)
        return scores if self.by_id is None else [self.by_id.get(broker.id, 0.0) for broker in brokers]


@dataclass(frozen=True)
class Counting(Odds):
    """A selector that counts its assignments in its memory."""

    name: ClassVar[str] = "counting"
    reads: frozenset[str] = frozenset({"view.memory"})

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Count."""
        memory["count"] = memory.get("count", 0) + 1


@dataclass(frozen=True)
class Proposing:
    """A shedder that makes the given proposals and keeps the rulings in its memory."""

    name: ClassVar[str] = "proposing"
    reads: ClassVar[frozenset[str]] = ALL_READS

    proposals: tuple[Any, ...] = ()
    outcome: Any = DONE
    error: BaseException | None = None

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose one after the other."""
        memory["rulings"] = rulings = []
        for proposal in self.proposals:
            ruling = yield proposal
            rulings.append(None if ruling.accepted else str(ruling.reason))
        if self.error:
            raise self.error
        return self.outcome  # type: ignore[no-any-return]  # a test may hand in anything


def raising(error: BaseException) -> Callable[[Candidates], Any]:
    """Return an answer that raises."""

    def answer(brokers: Candidates) -> Any:
        raise error

    return answer


def policy(*parts: Any, **changes: Any) -> Policy:
    """Compose a policy of parts by what they are; `Odds()` selects where no selector is given."""
    scorers = [part for part in parts if isinstance(part, WeightedScorer) or hasattr(part, "score")]
    given: dict[str, Any] = {
        "name": "tested",
        "selector": next((part for part in parts if hasattr(part, "odds")), Odds()),
        "filters": tuple(part for part in parts if hasattr(part, "admit")),
        "scorers": tuple(part if isinstance(part, WeightedScorer) else WeightedScorer(part) for part in scorers),
        "shedder": next((part for part in parts if hasattr(part, "propose")), None),
    }
    return Policy(**given | changes)


def instant(tested: Policy, view: ClusterView) -> Instant:
    """Prepare a view for a policy."""
    return Instant(tested, view)


def owner_of(made: LoadManager, bundle: str) -> str | None:
    """Return the broker that owns a bundle, None if none does."""
    number = made.ownership.owner(bundle)
    return None if number is None else made.roster.ids[number]


def manager(tested: Policy, view: ClusterView, *, seed: int = 1, **conditions: Any) -> LoadManager:
    """Return a load manager at work in a view's cluster, nothing owned."""
    made = LoadManager(tested, "east", view.brokers, seed=seed, conditions=Conditions(**conditions))
    made.set_registry(view.brokers, view.registered)
    return made
