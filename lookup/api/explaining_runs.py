"""Explain the events of a finished run, such as the owners of a topic, a decision, or a cycle.

The records of a run are read from its folder. Unrecorded data, which is the load that policies saw and the answer of
every part, comes from replaying the log once more up to that instant. It is compared with the record.

All functions take the folder or URI that an evaluation has written. `cluster` and `policy` have to be given only if
several are possible, and `seed` is by default the first replicate. Functions that read the log again take `workers`, a
Spark session or `InProcess()`, by default as for `evaluate` with the same log. They call `progress` with one short
sentence at each step. All raise a `PulsarLookupError`, a sentence, for anything that the caller has to change.
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
from lookup.engine.explain import Explanation, SeenBroker, explain, seen_brokers
from lookup.engine.ledger import MICRO
from lookup.engine.manager import LoadManager, ManagerObserver
from lookup.engine.policy import memory_key
from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.jobs import Workers
from lookup.logs.sources import locate
from lookup.model import Decision, LookupRequest, Unload
from lookup.model.quoting import join_names
from lookup.model.time import time_text
from lookup.replay.again import Again, replay_again
from lookup.replay.records import RunName
from lookup.replay.reports import report_paths
from lookup.replay.tasks import build_on_driver
from lookup.replay.work import WorkDir
from lookup.report.figures import Run, read_run, settings_of
from lookup.report.manifest import fingerprint
from lookup.report.past import BundleHistory, cycle_at, decision_id, decision_of, history_of, name_of, recorded_table
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
    #: number of earlier draws for the bundle, and the drawn number, None if none was needed
    rolls: int | None
    dice: float | None
    #: difference from the record, a sentence, None if it is the same
    difference: str | None

    def document(self) -> dict[str, Any]:
        """Convert the decision to a JSON object."""
        request, decision = self.request, self.decision
        return {
            "decision": self.id,
            **asdict(self.name),
            "at": time_text(self.ts_us),
            "request": {name: getattr(request, name) for name in ("topic", "bundle", "client", "listener")}
            | {"properties": dict(sorted(request.properties.items()))},
            "seen": [_document_seen(broker) for broker in self.seen],
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
    """One cycle of a policy's shedder, run once more."""

    name: RunName
    ts_us: int
    shedder: str
    #: the shedder's settings, `grace_s` among them
    settings: Mapping[str, Any]
    #: registered brokers before the cycle
    seen: tuple[SeenBroker, ...]
    #: memory of the shedder before the cycle
    memory: Mapping[str, Any]
    report: CycleReport[Unload]
    #: difference from the record, a sentence, None if it is the same
    difference: str | None

    def document(self) -> dict[str, Any]:
        """Convert the cycle to a JSON object."""
        outcome = self.report.outcome
        return {
            **asdict(self.name),
            "at": time_text(self.ts_us),
            "shedder": self.shedder,
            "settings": dict(self.settings),
            **{name: _to_plain(getattr(outcome, name)) for name in _OUTCOME},
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
            "seen": [_document_seen(broker) for broker in self.seen],
            "memory": dict(self.memory),
            "difference": self.difference,
        }


def explain_owners(
    run: str | os.PathLike[str],
    *,
    topic: str,
    policy: str | Sequence[str] = (),
    cluster: str | None = None,
    seed: int | None = None,
) -> tuple[BundleHistory, ...]:
    """Explain the owners of a topic's bundles in a finished run, policy by policy, and the cause of each change.

    Args:
        topic: a short name is completed to one in public/default.
        policy: one or several names of policies, by default all.
    """
    past = _open_run(run)
    policies = [entry["name"] for entry in past.manifest["settings"]["policies"]]
    names = dict.fromkeys(names_of("policy", policy) or policies)
    replays = [name_of(past, cluster=cluster, policy=name, seed=seed) for name in names]
    return tuple(history_of(past, name, topic) for name in replays)


def explain_decision(
    run: str | os.PathLike[str],
    decision: str,
    *,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> DecisionExplained:
    """Repeat one decision of a finished run.

    Args:
        decision: its id, `CLUSTER/POLICY/SEED/NUMBER`.
    """
    past = _open_run(run, workers)
    name, number = decision_of(past, decision)
    recorded: dict[str, Any] = recorded_table(past, name, "decisions").slice(number, 1).to_pylist()[0]
    again = _build_again(past, name, recorded["ts"])
    position = 0
    #: the request, and the number of earlier draws for its bundle
    explanations: list[tuple[int, LookupRequest, tuple[SeenBroker, ...], Explanation, int]] = []

    def look(manager: LoadManager, request: LookupRequest, ts_us: int, is_repeated: bool) -> None:
        nonlocal position
        if position == number and not is_repeated:
            # Before the decision, since an assignment changes owners and memory.
            view = manager.view()
            rolls = manager.draws.rolls(request.bundle)
            explanations.append((ts_us, request, seen_brokers(view), explain(again.policy, request, view), rolls))
        position += not is_repeated

    with _provide_workers(past, workers, progress) as (works, work):
        replay = replay_again(works, again, work, ManagerObserver(before_decision=look), progress=progress)
    if not explanations:
        raise InputError(f"{past.path}: decision {decision} was not taken when the log was replayed once more")
    ts_us, request, brokers, explanation, rolls = explanations[-1]
    taken_again = replay.decisions[number].decision
    has_dice = len(taken_again.odds) > 1
    return DecisionExplained(
        id=decision_id(name, number),
        name=name,
        ts_us=ts_us,
        request=request,
        seen=brokers,
        explanation=explanation,
        decision=taken_again,
        rolls=rolls if has_dice else None,
        dice=roll(name.seed, name.cluster, request.bundle, rolls) if has_dice else None,
        difference=_find_difference(recorded, {column: getattr(taken_again, column) for column in _DECIDED}),
    )


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
    """Run the last cycle of a policy's shedder up to an instant once more.

    Args:
        at_us: µs since the Unix epoch.
    """
    past = _open_run(run, workers)
    chosen = _choose_policy(past, names_of("policy", policy))
    name = name_of(past, cluster=cluster, policy=chosen, seed=seed)
    recorded = cycle_at(past, name, at_us)
    again = _build_again(past, name, recorded["ts"])
    shedder = again.policy.shedder
    #: brokers and memory before the cycle. The replay ends with it, so the last of each belongs to it
    before: list[tuple[tuple[SeenBroker, ...], Mapping[str, Any]]] = []
    reports: list[CycleReport[Unload]] = []

    def look(manager: LoadManager) -> None:
        if manager.view().now_us == recorded["ts"]:
            # The memory of a shedder changes with the cycle.
            before.append((seen_brokers(manager.view()), copy.deepcopy(manager.memory.get(memory_key(shedder), {}))))

    with _provide_workers(past, workers, progress) as (works, work):
        observer = ManagerObserver(before_cycle=look, after_cycle=reports.append)
        replay_again(works, again, work, observer, progress=progress)
    (brokers, memory), report, table = before[0], reports[-1], part_table(shedder)
    # Of a class in Java, and not its own.
    table.pop("broker_conf", None)
    ended = {column: getattr(report.outcome, column) for column in _OUTCOME}
    return CycleExplained(
        name=name,
        ts_us=recorded["ts"],
        shedder=table.pop("use"),
        settings=table | {"grace_s": again.policy.grace_us // MICRO},
        seen=brokers,
        memory=memory,
        report=report,
        difference=_find_difference(recorded, ended | {"accepted": len(report.accepted), "rejected": report.rejected}),
    )


def _open_run(run: str | os.PathLike[str], workers: Workers | None = None) -> Run:
    check_workers(workers)
    return read_run(require_path("run", run))


def _choose_policy(run: Run, named: Sequence[str]) -> str:
    names = [entry["name"] for entry in run.manifest["settings"]["policies"] if entry["shedder"] is not None]
    chosen = list(dict.fromkeys(named)) or names
    if len(chosen) == 1:
        return str(chosen[0])
    if not chosen:
        raise SettingsError("no policy of the run has a shedder, so there are no cycles")
    raise SettingsError("which policy? give ", Argument("policy"), f" once; those with a shedder: {join_names(names)}")


@contextmanager
def _provide_workers(
    run: Run, workers: Workers | None, progress: Callable[[str], None]
) -> Iterator[tuple[Workers, WorkDir]]:
    """Yield workers for a run's log, and a folder for their files, which is removed afterwards.

    The folder is next to the run if the worker machines do not share another one.
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


def _build_again(run: Run, name: RunName, until_us: int) -> Again:
    settings = _require_same_inputs(run)
    policy = next(policy for policy in build_on_driver(settings) if policy.name == name.policy)
    return Again(settings, name, policy, until_us)


def _find_difference(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    for column, value in now.items():
        before, after = _to_plain(recorded[column]), _to_plain(value)
        if before != after:
            return f"its {column} was {before} and is {after}"
    return None


def _document_seen(broker: SeenBroker) -> dict[str, Any]:
    return {name: _to_plain(value) for name, value in asdict(broker).items()}


def _to_plain(value: Any) -> Any:
    """Convert a value for tables and JSON, with texts for members of enumerations, None for NaN, dicts for maps."""
    if isinstance(value, Mapping):
        return {str(key): _to_plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return {str(key): _to_plain(entry) for key, entry in value}
    if isinstance(value, str):
        return str(value)
    return None if isinstance(value, float) and math.isnan(value) else value
