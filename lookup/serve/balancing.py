"""Plan moves every so often beside the answers to brokers, and say what came of it; nothing is moved.

A plan is made from what a collector has recorded, in a thread, and takes the place of the one before. What each look at
the cluster led to is kept for `/balance`, and appended to a file.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from lookup.errors import PulsarLookupError
from lookup.model.quoting import quantity
from lookup.model.time import US_PER_S, time_text, to_us
from lookup.moving.plan import MovePlan
from lookup.serve.metrics import Metrics
from lookup.settings.serving import ServingFile

__all__ = ["Balancer", "Propose"]

#: Makes a plan as the settings say, and writes it where they say.
Propose: TypeAlias = Callable[[ServingFile], MovePlan]

#: Looks that `/balance` shows, the latest first.
_SHOWN = 50
_CYCLES = "cycles.jsonl"


class Balancer:
    """Looks at a cluster again and again, and keeps what came of it.

    Args:
        settings: with a table [balance].
        report: takes a sentence for the operator.
    """

    def __init__(
        self,
        settings: ServingFile,
        propose: Propose,
        metrics: Metrics,
        report: Callable[[str], None],
    ) -> None:
        assert settings.balance is not None
        self._settings, self._section, self._propose = settings, settings.balance, propose
        self._metrics, self._report = metrics, report
        self._looks: deque[Mapping[str, Any]] = deque(maxlen=_SHOWN)
        #: why the last look led to nothing that can be relied on
        self.trouble: str | None = None

    async def work(self) -> None:
        """Look until cancelled."""
        while True:
            look = await asyncio.to_thread(self._look)
            self._take(look)
            await asyncio.sleep(self._section.every_s)

    def document(self) -> dict[str, Any]:
        """Return what the last looks led to, the latest first."""
        return {"every_s": self._section.every_s, "plan": self._section.plans, "looks": [*self._looks]}

    def _look(self) -> dict[str, Any]:
        """Make a plan, append what came of it to the file, and return that."""
        look: dict[str, Any] = {"at": time_text(now_us := time.time_ns() // 1000)}
        try:
            look |= self._planned(now_us)
        except (PulsarLookupError, OSError, ValueError) as error:
            look["trouble"] = str(error)
        folder = Path(self._section.plans)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / _CYCLES).open("a", encoding="utf-8") as file:
                file.write(json.dumps(look, ensure_ascii=False) + "\n")
        except OSError as error:
            look.setdefault("trouble", f"{folder / _CYCLES} cannot be written: {error.strerror}")
        return look

    def _planned(self, now_us: int) -> dict[str, Any]:
        """Make a plan; return what a look says of it."""
        plan = self._propose(self._settings)
        look: dict[str, Any] = {
            "made": time_text(made_us := to_us(plan.made)),
            "steps": len(plan.steps),
            "why": plan.why,
            "imbalance": {
                "now": plan.before["imbalance"],
                "planned": plan.after["imbalance"].value,
                "bound": plan.bound.get("imbalance"),
            },
            "possible": plan.possible,
            "missing": [*plan.missing],
        }
        age_s = (now_us - made_us) / US_PER_S
        if age_s > self._section.stale_s:
            look["trouble"] = f"the record ends {age_s:,.0f} s ago: is `lookup collect` still running?"
        return look

    def _take(self, look: Mapping[str, Any]) -> None:
        """Keep what came of a look, count it, and report what has changed."""
        trouble, steps = look.get("trouble"), look.get("steps", 0)
        if trouble is not None and self.trouble is None:
            self._report(f"no plan can be relied on: {trouble}")
        elif trouble is None and self.trouble is not None:
            self._report("plans can be relied on again")
        if trouble is None and steps and steps != self._last_steps():
            imbalance = look["imbalance"]
            self._report(
                f"{self._section.plans} proposes {quantity(steps, 'move')}: imbalance from "
                f"{imbalance['now']:.3g} to {imbalance['planned']:.3g}"
            )
        self._metrics.show_look(look)
        self._looks.appendleft(look)
        self.trouble = trouble

    def _last_steps(self) -> int:
        """Return how many moves the look before proposed."""
        return int(self._looks[0].get("steps", 0)) if self._looks else 0
