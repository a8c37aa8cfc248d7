"""Explain what happened in a finished run: the owners of a bundle, a decision, a cycle.

What a run recorded is read out of its folder. What it did not record, the load that policies saw and the answer of
every part, is found by replaying the log once more up to that instant, and compared with the record.

All functions take the folder or URI that an evaluation has written, `cluster` and `policy`, which have to be given only
if several are possible, and `seed`, by default the first replicate. Those that read the log again are given `workers`,
a Spark session or `InProcess()`, by default what `evaluate` takes for the same log, and call `progress` with
one short sentence at each step. All raise a `PulsarLookupError`, a sentence, for whatever the caller has to change.
"""

from __future__ import annotations

import copy
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from pyarrow.fs import FileType

from lookup.api.arguments import names_of, require_path
from lookup.api.given import FRAME
from lookup.api.workers import check_workers, workers_for
from lookup.engine.ballots import roll
from lookup.engine.build import part_table
from lookup.engine.cycles import CycleReport
from lookup.engine.edits import SettingEdit, edits_that_change
from lookup.engine.explain import Explanation, SeenBroker, explain, seen_brokers
from lookup.engine.ledger import MICRO
from lookup.engine.manager import LoadManager, ManagerObserver
from lookup.engine.policy import Policy, memory_key
from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.jobs import Workers
from lookup.logs.sources import locate
from lookup.model import Decision, LookupRequest, Unload
from lookup.model.quoting import listed
from lookup.model.time import time_text
from lookup.replay.again import Again, replay_again
from lookup.replay.records import RunName
from lookup.replay.reports import report_paths
from lookup.replay.tasks import built_here
from lookup.replay.work import WorkDir
from lookup.report.figures import Run, read_run, settings_of
from lookup.report.manifest import fingerprint
from lookup.report.past import (
    BundleHistory,
    cycle_at,
    decision_at,
    decision_id,
    decision_of,
    history_of,
    name_of,
    recorded_table,
)
from lookup.settings.evaluation import EvaluationFile
from lookup.spark.choosing import rows_of
from lookup.spark.cluster import check_reach, is_foreign, ship_code

__all__ = [
    "CycleExplained", "DecisionExplained", "explain_cycle", "explain_decision", "explain_owners",
]  # fmt: skip

#: Columns of DECISIONS that a decision taken once more must agree on.
_DECIDED = ("broker", "propensity", "declined", "odds", "rejected", "margin", "ties", "fingerprint")
#: Columns of CYCLES that a cycle taken once more must agree on.
_OUTCOME = ("label", "reason", "average", "deviation", "modelled_deviation", "over", "excess")


@dataclass(frozen=True)
class DecisionExplained:
    """One decision of a run, taken once more."""

    id: str
    name: RunName
    ts_us: int
    request: LookupRequest
    #: registered brokers before the decision
    seen: tuple[SeenBroker, ...]
    explanation: Explanation
    decision: Decision
    #: how often dice were rolled for the bundle before, and what they gave; None if none were needed
    rolls: int | None
    dice: float | None
    #: in what it differs from the record, a sentence; None: it is the same
    difference: str | None

    def document(self) -> dict[str, Any]:
        """Return the decision as JSON has it."""
        request, decision = self.request, self.decision
        return {
            "decision": self.id,
            **asdict(self.name),
            "at": time_text(self.ts_us),
            "request": {name: getattr(request, name) for name in ("topic", "bundle", "client", "listener")}
            | {"properties": dict(sorted(request.properties.items()))},
            "seen": [_seen_document(broker) for broker in self.seen],
            "explanation": self.explanation.document(),
            "rolls": self.rolls,
            "dice": self.dice,
            "broker": decision.broker,
            "propensity": decision.propensity,
            "declined": None if decision.declined is None else decision.declined.value,
            "difference": self.difference,
        }


@dataclass(frozen=True)
class CycleExplained:
    """One cycle of a policy's shedder, run once more, with settings that change it."""

    name: RunName
    ts_us: int
    shedder: str
    #: the shedder's settings, `grace_s` among them
    settings: Mapping[str, Any]
    #: registered brokers before the cycle
    seen: tuple[SeenBroker, ...]
    #: what the shedder remembered before the cycle
    memory: Mapping[str, Any]
    report: CycleReport[Unload]
    #: changes after which something moves if nothing did, and nothing if something did, the smallest first
    edits: Sequence[tuple[SettingEdit, ...]]
    #: in what it differs from the record, a sentence; None: it is the same
    difference: str | None

    def document(self) -> dict[str, Any]:
        """Return the cycle as JSON has it."""
        outcome = self.report.outcome
        return {
            **asdict(self.name),
            "at": time_text(self.ts_us),
            "shedder": self.shedder,
            "settings": dict(self.settings),
            **{name: _plain(getattr(outcome, name)) for name in _OUTCOME},
            "accepted": [
                {
                    "bundle": unload.bundle,
                    "source": unload.source,
                    "destination": unload.destination,
                    "reason": None if unload.reason is None else unload.reason.value,
                }
                for unload in self.report.accepted
            ],
            "rejected": {reason.value: count for reason, count in self.report.rejected.items()},
            "seen": [_seen_document(broker) for broker in self.seen],
            "memory": dict(self.memory),
            "edits": [[edit.document() for edit in edits] for edits in self.edits],
            "difference": self.difference,
        }


def explain_owners(
    run: str | os.PathLike[str],
    *,
    topic: str | None = None,
    bundle: str | None = None,
    policy: str | Sequence[str] = (),
    cluster: str | None = None,
    seed: int | None = None,
) -> tuple[BundleHistory, ...]:
    """Explain who owned a bundle in a finished run, policy by policy, and why each change was made.

    Args:
        topic: the bundles it was in; a short name means one in public/default. One of the two is given.
        policy: names of policies, or one of them; default: all.
    """
    past = _opened(run)
    _require_one_subject(topic, bundle)
    known = [entry["name"] for entry in past.manifest["settings"]["policies"]]
    names = dict.fromkeys(names_of("policy", policy) or known)
    replays = [name_of(past, cluster=cluster, policy=name, seed=seed) for name in names]
    return tuple(history_of(past, name, topic=topic, bundle=bundle) for name in replays)


def explain_decision(  # noqa: PLR0913  what names a decision, by keyword
    run: str | os.PathLike[str],
    decision: str | None = None,
    *,
    topic: str | None = None,
    bundle: str | None = None,
    at_us: int | None = None,
    policy: str | Sequence[str] = (),
    cluster: str | None = None,
    seed: int | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> DecisionExplained:
    """Take one decision of a finished run once more: the one with an id, or the one that made an owner.

    Args:
        decision: id of a decision, `CLUSTER/POLICY/SEED/NUMBER`; else a topic or a bundle and an instant are given.
        topic: its bundle; a short name means one in public/default.
        at_us: when the bundle had the owner that the decision has made, µs since the Unix epoch.
    """
    past = _opened(run, workers)
    named = names_of("policy", policy)
    if decision is not None:
        _require_of_decision(decision, cluster=cluster, policy=named, seed=seed)
        return _decision(past, *decision_of(past, decision), workers, progress)
    _require_one_subject(topic, bundle)
    if at_us is None:
        raise SettingsError("which decision? give ", Argument("decision"), " or ", Argument("at_us"))
    name = name_of(past, cluster=cluster, policy=_one_policy(past, named, with_shedder=False), seed=seed)
    number = decision_at(past, history_of(past, name, topic=topic, bundle=bundle), at_us)
    return _decision(past, name, number, workers, progress)


def explain_cycle(  # noqa: PLR0913  what names a cycle, by keyword
    run: str | os.PathLike[str],
    at_us: int,
    *,
    policy: str | Sequence[str] = (),
    cluster: str | None = None,
    seed: int | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> CycleExplained:
    """Run the last cycle of a policy's shedder up to an instant once more, and look for what would have changed it.

    Settings are looked for with which something moves if nothing did, and nothing if something did.

    Args:
        at_us: µs since the Unix epoch.
    """
    past = _opened(run, workers)
    chosen = _one_policy(past, names_of("policy", policy), with_shedder=True)
    name = name_of(past, cluster=cluster, policy=chosen, seed=seed)
    recorded = cycle_at(past, name, at_us)
    found: list[CycleExplained] = []

    def look(manager: LoadManager) -> None:
        if manager.view().now_us != recorded["ts"]:
            return
        progress("looking for settings that change the cycle")
        own, shedder = manager.policy, manager.policy.shedder
        report = manager.rehearsed(own)
        has_moved = bool(report.accepted)
        ended = {name: getattr(report.outcome, name) for name in _OUTCOME}

        def is_other(changed: Policy) -> bool:
            return bool(manager.rehearsed(changed).accepted) != has_moved

        table = part_table(shedder)
        settings = {key: value for key, value in table.items() if key != "use"} | {"grace_s": own.grace_us // MICRO}
        found.append(
            CycleExplained(
                name=name,
                ts_us=recorded["ts"],
                shedder=table["use"],
                settings=settings,
                seen=seen_brokers(manager.view()),
                # What a shedder keeps changes with the next cycle.
                memory=copy.deepcopy(manager.memory.get(memory_key(shedder), {})),
                report=report,
                edits=edits_that_change(own, is_other),
                difference=_difference(
                    recorded, ended | {"accepted": len(report.accepted), "rejected": report.rejected}
                ),
            )
        )

    again = _again(past, name, recorded["ts"])
    with _at_work(past, workers, progress) as (works, work):
        replay_again(works, again, work, ManagerObserver(before_cycle=look), progress=progress)
    return found[0]


def _opened(run: str | os.PathLike[str], workers: Workers | None = None) -> Run:
    check_workers(workers)
    return read_run(require_path("run", run))


def _require_one_subject(topic: str | None, bundle: str | None) -> None:
    if (topic is None) == (bundle is None):
        ending = "" if topic is None else ", not both"
        raise SettingsError("give ", Argument("topic"), " or ", Argument("bundle"), ending)


def _require_of_decision(decision: str, *, cluster: str | None, policy: Sequence[str], seed: int | None) -> None:
    """Refuse a cluster, policies or a seed that are not those of a decision's id."""
    given = (("cluster", cluster), *(("policy", one) for one in policy), ("seed", seed))
    parts = dict(zip(("cluster", "policy", "seed"), decision.split("/"), strict=False))
    for name, value in given:
        if value is not None and name in parts and str(value) != parts[name]:
            what = f" contradicts the decision {decision}, whose {name} is {parts[name]}; leave it out"
            raise SettingsError(Argument(name, value), what)


def _one_policy(run: Run, named: Sequence[str], *, with_shedder: bool) -> str:
    policies = run.manifest["settings"]["policies"]
    known = [entry["name"] for entry in policies if entry["shedder"] is not None or not with_shedder]
    chosen = list(dict.fromkeys(named)) or known
    if len(chosen) == 1:
        return str(chosen[0])
    if not chosen:
        raise SettingsError("no policy of the run has a shedder, so there are no cycles")
    what = "those with a shedder" if with_shedder else "those of the run"
    raise SettingsError("which policy? give ", Argument("policy"), f" once; {what}: {listed(known)}")


def _decision(
    run: Run, name: RunName, number: int, workers: Workers | None, progress: Callable[[str], None]
) -> DecisionExplained:
    recorded: dict[str, Any] = recorded_table(run, name, "decisions").slice(number, 1).to_pylist()[0]
    again = _again(run, name, recorded["ts"])
    taken = 0
    #: what was asked about, and how often dice were rolled for its bundle before
    asked: list[tuple[int, LookupRequest, tuple[SeenBroker, ...], Explanation, int]] = []

    def look(manager: LoadManager, request: LookupRequest, ts_us: int, is_repeated: bool) -> None:
        nonlocal taken
        if taken == number and not is_repeated:
            # Before the decision: an assignment changes owners and memory.
            view = manager.view()
            rolls = manager.draws.rolls(request.bundle)
            asked.append((ts_us, request, seen_brokers(view), explain(again.policy, request, view), rolls))
        taken += not is_repeated

    with _at_work(run, workers, progress) as (works, work):
        replay = replay_again(works, again, work, ManagerObserver(before_decision=look), progress=progress)
    if not asked:
        text = decision_id(name, number)
        raise InputError(f"{run.path}: decision {text} was not taken when the log was replayed once more")
    ts_us, request, seen, explanation, rolls = asked[-1]
    decision = replay.decisions[number].decision
    has_dice = len(decision.odds) > 1
    return DecisionExplained(
        id=decision_id(name, number),
        name=name,
        ts_us=ts_us,
        request=request,
        seen=seen,
        explanation=explanation,
        decision=decision,
        rolls=rolls if has_dice else None,
        dice=roll(name.seed, name.cluster, request.bundle, rolls) if has_dice else None,
        difference=_difference(recorded, {column: getattr(decision, column) for column in _DECIDED}),
    )


@contextmanager
def _at_work(run: Run, workers: Workers | None, progress: Callable[[str], None]) -> Iterator[tuple[Workers, WorkDir]]:
    """Yield what works on a run's log, and a folder for its files, which is removed.

    The folder is beside the run if machines that work share no other.
    """
    rows = run.summary["inputs"]["rows"]
    works = workers_for(workers, lambda: rows_of(rows), progress)
    ship_code(works)
    if not is_foreign(works):
        with tempfile.TemporaryDirectory(prefix="lookup-explain-") as folder:
            yield works, WorkDir(folder)
        return
    work = WorkDir(f"{run.path.rstrip('/')}/.explain-{uuid4().hex}")
    settings = settings_of(run)
    log = settings.inputs.lookups
    try:
        check_reach(works, [*([] if log is None else [log]), *report_paths(settings).values()], work.root)
        yield works, work
    finally:
        work.remove()


def _require_same_inputs(run: Run) -> EvaluationFile:
    """Return the settings of a run whose tables are what they were."""
    settings = settings_of(run)
    if settings.inputs.lookups is None:
        raise InputError(f"{run.path}: its lookups were {FRAME}, which cannot be read again; evaluate a file")
    for name, before in run.manifest["inputs"].items():
        path = getattr(settings.inputs, name)
        if before["path"] == FRAME:
            raise InputError(f"{run.path}: its {name} were {FRAME}, which cannot be read again; evaluate a file")
        system, inner = locate(path)
        if system.get_file_info(inner).type is FileType.NotFound:
            raise InputError(f"{path}: inputs.{name} of the run in {run.path} is gone")
        if fingerprint(path)["blake2b"] != before["blake2b"]:
            raise InputError(f"{path}: inputs.{name} is no longer what the run in {run.path} has read; evaluate again")
    return settings


def _again(run: Run, name: RunName, until_us: int) -> Again:
    settings = _require_same_inputs(run)
    policy = next(policy for policy in built_here(settings) if policy.name == name.policy)
    return Again(settings, name, policy, until_us)


def _difference(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    for column, value in now.items():
        before, after = _plain(recorded[column]), _plain(value)
        if before != after:
            return f"its {column} was {before} and is {after}"
    return None


def _seen_document(broker: SeenBroker) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(broker).items()}


def _plain(value: Any) -> Any:
    """Return a value as a table and JSON have it: texts for members of enumerations, None for NaN, dicts for maps."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return {str(key): _plain(entry) for key, entry in value}
    if isinstance(value, str):
        return str(value)
    return None if isinstance(value, float) and math.isnan(value) else value
