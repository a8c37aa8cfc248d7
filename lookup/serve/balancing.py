"""Plan moves every so often beside the answers to brokers, make them if the settings say so, and say what came of it.

A plan is made from what a collector has recorded, in a thread, and takes the place of the one before. What each look at
the cluster led to, and why nothing was moved, is kept for `/balance`, and appended to a file.

    plan ──> trouble | nothing | proposed | outside-windows | not-leader | waiting     nothing is moved
      └────> stopped | cut-short | applied                                             steps were begun, or might have
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias

from lookup.errors import PulsarLookupError
from lookup.model.pacing import Window
from lookup.model.quoting import listed, quantity
from lookup.model.time import US_PER_S, moment_at, time_text, to_us
from lookup.moving.plan import MovePlan
from lookup.serve.metrics import Metrics
from lookup.settings.serving import BalanceSection, ServingFile

if TYPE_CHECKING:
    # With the client of Pulsar, which a server without these tables need not have.
    from lookup.moving.applying import Applied
    from lookup.moving.guards import Guard
    from lookup.moving.leading import Leader

__all__ = ["Balancer", "Control", "Moves"]

#: Looks that `/balance` shows, the latest first.
_SHOWN = 50
_CYCLES = "cycles.jsonl"
#: Seconds for which the first look waits until it is known who holds the lock.
_SETTLED_S = 15.0


@dataclass(frozen=True)
class Control:
    """What the server holds in its hands while steps are made."""

    #: of the plan
    journal: Path
    #: looked at before each step
    guards: Sequence[Guard]
    #: takes the journal's entries of shedding
    share: Callable[[Mapping[str, Any]], None]
    #: ends it after the step under way
    stop: Event
    #: takes a sentence about each step
    say: Callable[[str], None]


@dataclass(frozen=True)
class Moves:
    """What the rooms above the server do for it."""

    #: makes a plan as the settings say, writes it where they say, and names the brokers whose loads are of before they
    #: took a bundle
    propose: Callable[[ServingFile], tuple[MovePlan, list[str]]]
    #: asks for the lock; called with the settings and what takes sentences
    lead: Callable[[ServingFile, Callable[[str], None]], Leader]
    #: makes the steps of a plan
    carry_out: Callable[[ServingFile, MovePlan, Control], Applied]
    #: returns whether Pulsar's own shedder is on, or raises why that is not known
    has_shedder: Callable[[ServingFile], bool]


@dataclass(frozen=True)
class _InWindow:
    """A guard: it is a time at which bundles may be moved."""

    windows: Sequence[Window]

    def __str__(self) -> str:
        return f"the time is within the windows: {listed(map(str, self.windows)) or 'always'}"

    def look(self) -> str | None:
        now_us = time.time_ns() // 1000
        if not self.windows or any(window.holds(now_us) for window in self.windows):
            return None
        return f"it is {moment_at(now_us):%a %H:%M} UTC, outside the windows: {listed(map(str, self.windows))}"


_Look: TypeAlias = dict[str, Any]


@dataclass
class Balancer:
    """Looks at a cluster again and again, and keeps what came of it.

    Args:
        settings: with a table [balance].
        report: takes a sentence for the operator.
    """

    settings: ServingFile
    moves: Moves
    metrics: Metrics
    report: Callable[[str], None]
    #: why the last look led to nothing that can be relied on
    trouble: str | None = None
    _looks: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_SHOWN))
    _stop: Event = field(default_factory=Event)
    _leader: Leader | None = None
    #: the look that is under way
    _under_way: asyncio.Task[_Look] | None = None
    #: what Pulsar's own shedder does meanwhile, as it was at the start
    _shedding: str | None = None

    @property
    def _section(self) -> BalanceSection:
        assert self.settings.balance is not None
        return self.settings.balance

    async def work(self) -> None:
        """Look until cancelled; `end` follows then."""
        if self._section.mode == "apply":
            self._leader = self.moves.lead(self.settings, self.report)
            self._leader.start()
            self.metrics.leads.set_function(self._leads)
            self._shedding = await asyncio.to_thread(self._stock_shedding)
            self.report(self._shedding)
            # Else the first look would find that the lock has only just been asked for, and the next is far away.
            await asyncio.to_thread(self._leader.is_settled.wait, _SETTLED_S)
        while True:
            self._under_way = asyncio.create_task(asyncio.to_thread(self._look))
            # A thread cannot be cancelled: `end` waits for it.
            self._take(await asyncio.shield(self._under_way))
            self._under_way = None
            await asyncio.sleep(self._section.every_s)

    async def end(self) -> None:
        """Let the step under way end, make no further one, and give the lock up."""
        self._stop.set()
        if self._under_way is not None:
            self.report("a look at the cluster is under way: the server ends after the step under way, if there is one")
            self._take(await self._under_way)
        if self._leader is not None:
            await asyncio.to_thread(self._leader.close)

    def _leads(self) -> bool:
        return self._leader is not None and self._leader.is_leading

    def document(self) -> dict[str, Any]:
        """Return what the last looks led to, the latest first."""
        leads = {} if self._leader is None else {"leads": self._leads(), "shedding": self._shedding}
        about = {"mode": self._section.mode, "every_s": self._section.every_s, "plan": self._section.plans}
        return {**about, **leads, "looks": [*self._looks]}

    @property
    def latest(self) -> Mapping[str, Any] | None:
        """Return what the last look led to; None if there was none."""
        return self._looks[0] if self._looks else None

    def _stock_shedding(self) -> str:
        is_frozen = self._section.freeze_shedding
        try:
            is_on = self.moves.has_shedder(self.settings)
        except (PulsarLookupError, OSError, ValueError) as error:
            return f"warning: it is not known whether Pulsar's own shedder is on: {error}"
        if not is_on:
            return "Pulsar's own shedder is off (loadBalancerSheddingEnabled), so this server alone moves bundles"
        if is_frozen:
            return (
                "Pulsar's own shedder is on, and kept still while this server moves bundles (balance.freeze_shedding)"
            )
        return (
            "warning: Pulsar's own shedder is on (loadBalancerSheddingEnabled) and balance.freeze_shedding is not set: "
            "both will move bundles, and what it moves between a plan and its step is skipped"
        )

    def _look(self) -> _Look:
        """Make a plan and its moves, append what came of it to the file, and return that."""
        now_us = time.time_ns() // 1000
        look: _Look = {"at": time_text(now_us)}
        try:
            self._cycle(look, now_us)
        except (PulsarLookupError, OSError, ValueError) as error:
            look["trouble"] = str(error)
        # Whatever it is: a job that ends would make no plan any more, and say nothing of it.
        except Exception as error:  # noqa: BLE001
            look["trouble"] = f"{type(error).__name__}: {error}"
        if "trouble" in look:
            look |= {"outcome": "trouble", "reason": look["trouble"]}
        folder = Path(self._section.plans)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / _CYCLES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(look, ensure_ascii=False) + "\n")
        except OSError as error:
            look.setdefault("trouble", f"{folder / _CYCLES} cannot be written: {error.strerror}")
        return look

    def _cycle(self, look: _Look, now_us: int) -> None:
        """Make a plan and its moves; say in a look what came of it, as far as it comes."""
        plan, unmeasured = self.moves.propose(self.settings)
        look |= {
            "made": time_text(made_us := to_us(plan.made)),
            "steps": len(plan.steps),
            "why": plan.why,
            "imbalance": {
                "now": plan.before["imbalance"],
                "planned": plan.after["imbalance"].value,
            },
            "missing": [*plan.missing],
        }
        age_s = (now_us - made_us) / US_PER_S
        if age_s > self._section.stale_s:
            look["trouble"] = f"the record ends {age_s:,.0f} s ago: is `lookup collect` still running?"
            return
        look["outcome"], look["reason"] = self._obstacle(plan, unmeasured) or ("applied", "")
        if look["outcome"] == "applied":
            self._carry_out(plan, look, now_us)

    def _obstacle(self, plan: MovePlan, unmeasured: Sequence[str]) -> tuple[str, str] | None:
        """Return why a plan is not carried out, as outcome and sentence; None if it is."""
        if not plan.steps:
            return "nothing", f"nothing is worth moving: {plan.why}"
        if self._leader is None:
            return "proposed", 'balance.mode is "propose": nothing is moved'
        if (reason := _InWindow(self._section.open_windows()).look()) is not None:
            return "outside-windows", reason
        if unmeasured:
            what = f"no load is known of {listed(unmeasured)} since the last bundle came there"
            return "waiting", f"{what}: the next report is awaited"
        reason = self._leader.look()
        return None if reason is None else ("not-leader", reason)

    def _carry_out(self, plan: MovePlan, look: _Look, now_us: int) -> None:
        """Make the steps of a plan, and say in a look what became of them."""
        assert self._leader is not None
        # If this server itself could not, after an earlier plan.
        self._leader.recover()
        journal = Path(self._section.plans, f"plan-{moment_at(now_us):%Y%m%dT%H%M%SZ}.journal")
        look["journal"] = str(journal)
        window = _InWindow(self._section.open_windows())
        control = Control(journal, (window, self._leader), self._leader.share, self._stop, self.report)
        applied = self.moves.carry_out(self.settings, plan, control)
        counts = Counter(outcome.event for outcome in applied.outcomes)
        look["moves"] = {event: counts[event] for event in ("moved", "elsewhere", "skipped", "failed")}
        look["odd"] = [
            {"step": of.step, "bundle": of.bundle, "event": of.event, "reason": of.reason}
            for of in applied.outcomes
            if of.event != "moved"
        ]
        sentence = f"{counts['moved']} of {quantity(len(plan.steps), 'step')} made, {counts['skipped']} skipped"
        if applied.stopped is None:
            look["reason"] = sentence
        else:
            is_expected = applied.is_interrupted or window.look() is not None
            look["outcome"] = "cut-short" if is_expected else "stopped"
            look["reason"] = f"{sentence}; {applied.stopped}"

    def _take(self, look: Mapping[str, Any]) -> None:
        """Keep what came of a look, count it, and report what has changed."""
        trouble, steps = look.get("trouble"), look.get("steps", 0)
        if trouble is not None and self.trouble is None:
            self.report(f"no plan can be relied on: {trouble}")
        elif trouble is None and self.trouble is not None:
            self.report("plans can be relied on again")
        last = self._looks[0] if self._looks else {}
        outcome = look.get("outcome")
        if trouble is None and steps and steps != last.get("steps", 0):
            imbalance = look["imbalance"]
            self.report(
                f"{self._section.plans} proposes {quantity(steps, 'move')}: imbalance from "
                f"{imbalance['now']:.3g} to {imbalance['planned']:.3g}"
            )
        if outcome in ("applied", "stopped", "cut-short") or (
            self._leader and outcome not in ("trouble", last.get("outcome"))
        ):
            self.report(f"{outcome}: {look['reason']}")
        self.metrics.show_look(look)
        self._looks.appendleft(look)
        self.trouble = trouble
