"""Read the records of a run about single decisions, cycles and owners from its folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.schema import CYCLES, DECISIONS, OWNERS
from lookup.logs.sources import locate
from lookup.model import TopicName
from lookup.model.bundles import BundleRange, topic_hash
from lookup.model.quoting import suggestion
from lookup.model.time import time_text
from lookup.replay.records import RunName
from lookup.report.figures import Run, open_result

__all__ = [
    "BundleHistory", "OwnerStep", "cycle_at", "decision_id", "decision_of", "history_of", "name_of", "recorded_table",
]  # fmt: skip

_SCHEMAS = {"decisions": DECISIONS, "owners": OWNERS, "cycles": CYCLES}
#: Figures of CYCLES that a step of a history repeats.
_FIGURES = ("label", "reason", "average", "deviation", "over", "excess")


@dataclass(frozen=True)
class OwnerStep:
    """One interval in which a broker owned a bundle, how it began and how it ended."""

    bundle: str
    broker: str
    state: str
    from_us: int
    #: None if it outlasts the log
    to_us: int | None
    #: "decision", "shedder" (it named this broker), "split" (of the bundle before), "log" (the owner before the run)
    began_by: str
    #: id of the decision, and the probability of the broker in it
    decision: str | None
    propensity: float | None
    #: "forced", "shed", "admin", "split", None if it lasts
    ended_by: str | None
    #: the shedder's reason for this unload, if it distinguishes them
    reason: str | None
    #: figures of the cycle that took the bundle away
    cycle: Mapping[str, Any] | None


@dataclass(frozen=True)
class BundleHistory:
    """The owners of a topic's bundles in one run."""

    name: RunName
    topic: str
    steps: tuple[OwnerStep, ...]
    #: cycles of the policy's shedder in the whole run, by the reason with which they ended
    cycles: Mapping[str, int]

    def document(self) -> dict[str, Any]:
        """Convert the history to a JSON object."""
        return {
            **asdict(self.name),
            "topic": self.topic,
            "owners": [
                {
                    **{key: value for key, value in asdict(step).items() if not key.endswith("_us")},
                    "from": time_text(step.from_us),
                    "to": time_text(step.to_us),
                }
                for step in self.steps
            ],
            "cycles": dict(self.cycles),
        }


def name_of(run: Run, *, cluster: str | None, policy: str, seed: int | None) -> RunName:
    """Find the requested replay by its cluster, policy and seed.

    Args:
        cluster: None for the only one.
        seed: None for the first.

    Raises:
        SettingsError: if the run lacks such a policy, cluster or seed, or has several clusters and none is given.
    """
    settings, clusters = run.manifest["settings"], run.results.inputs.clusters
    policies, seeds = [entry["name"] for entry in settings["policies"]], settings["evaluation"]["seeds"]
    if policy not in policies:
        raise SettingsError(Argument("policy"), f": the run has no policy {policy!r}; {suggestion(policy, policies)}")
    if cluster is None and len(clusters) > 1:
        raise SettingsError("which cluster? give ", Argument("cluster"), f"; known: {', '.join(clusters)}")
    if cluster is not None and cluster not in clusters:
        raise SettingsError(
            Argument("cluster"), f": the run has no cluster {cluster!r}; {suggestion(cluster, clusters)}"
        )
    if seed is not None and seed not in seeds:
        numbers = ", ".join(map(str, seeds))
        raise SettingsError(Argument("seed"), f": the run has no seed {seed}; known: {numbers}")
    return RunName(clusters[0] if cluster is None else cluster, policy, seeds[0] if seed is None else seed)


def recorded_table(run: Run, name: RunName, table: str) -> pa.Table:
    """Read a table of one replay, `decisions`, `owners` or `cycles`. Times are µs since the Unix epoch.

    Raises:
        InputError: if the folder has no such table of this replay.
    """
    place = sorted(run.results.inputs.clusters).index(name.cluster)
    number = [entry["name"] for entry in run.manifest["settings"]["policies"]].index(name.policy)
    system, folder = locate(run.path)
    file = f"{table}/{place:04d}-{number:04d}-{name.seed}.parquet"
    if system.get_file_info(f"{folder}/{file}").type is pafs.FileType.NotFound:
        raise InputError(f"{run.path}: has no {file}, the {table} of policy {name.policy!r}; evaluate again")
    with open_result(f"{run.path.rstrip('/')}/{file}", _SCHEMAS[table]) as parquet:
        read = parquet.read()
    for column in ("ts", "from", "to"):
        if column in read.column_names:
            read = read.set_column(read.column_names.index(column), column, read[column].cast(pa.int64()))
    return read


def decision_id(name: RunName, number: int) -> str:
    """Build the id of a decision, `CLUSTER/POLICY/SEED/NUMBER`, from its row in the replay's DECISIONS, from 0."""
    return f"{name.cluster}/{name.policy}/{name.seed}/{number}"


def decision_of(run: Run, text: str) -> tuple[RunName, int]:
    """Find the replay and the row for the id of a decision.

    Raises:
        SettingsError: if it is not an id, or there is no such decision in the run.
    """
    cluster, _, rest = text.partition("/")
    parts = rest.rsplit("/", 2)
    right = "like CLUSTER/POLICY/SEED/NUMBER, where NUMBER is the row in its file of decisions, from 0"
    if len(parts) < 3 or not parts[2].isdecimal() or not parts[1].removeprefix("-").isdecimal():
        raise SettingsError(Argument("decision"), f": {text!r} is not an id of a decision; one is {right}")
    name, number = name_of(run, cluster=cluster, policy=parts[0], seed=int(parts[1])), int(parts[2])
    count = recorded_table(run, name, "decisions").num_rows
    if number >= count:
        hint = f"they are numbered from 0 to {count - 1:,}" if count else "it has none"
        raise SettingsError(Argument("decision"), f": {text!r} is not a decision of the run; {hint}")
    return name, number


def history_of(run: Run, name: RunName, topic: str) -> BundleHistory:
    """Find the owners of a topic's bundle, and of its parents before splits, with the cause of each change.

    Raises:
        SettingsError: if no broker ever owned it under this policy.
        InvalidNameError: if the topic's name is malformed.
        InputError: if the folder lacks a table.
    """
    owners, whole = recorded_table(run, name, "owners"), TopicName.expand(topic)
    hashed = topic_hash(str(whole))
    in_namespace = ((bundle, bundle.rpartition("/")) for bundle in pc.unique(owners["bundle"]).to_pylist())
    chosen = [
        bundle
        for bundle, (namespace, _, ends) in in_namespace
        if namespace == str(whole.namespace) and hashed in BundleRange.parse(ends)
    ]
    if not chosen:
        raise SettingsError(Argument("topic"), f": no broker ever owned {whole} under {name.policy}")
    rows = owners.filter(pc.is_in(owners["bundle"], value_set=pa.array(chosen))).to_pylist()
    decisions = recorded_table(run, name, "decisions")
    numbered = decisions.append_column("number", pa.array(range(decisions.num_rows), pa.int64()))
    decided = numbered.filter(pc.is_in(numbered["bundle"], value_set=pa.array(chosen))).to_pylist()
    by_key = {(row["ts"], row["bundle"], row["broker"]): row for row in decided if row["broker"] is not None}
    cycles = recorded_table(run, name, "cycles").to_pylist()
    by_time = {row["ts"]: {key: row[key] for key in _FIGURES} for row in cycles}
    steps: list[OwnerStep] = []
    for row in sorted(rows, key=lambda row: (row["from"], row["to"] is None, row["to"])):
        decision = by_key.get((row["from"], row["bundle"], row["broker"]))
        before = [step for step in steps if step.to_us == row["from"]]
        ends = {step.ended_by for step in before if step.bundle == row["bundle"]}
        began_by = "log"
        if decision is not None:
            began_by = "decision"
        elif any(step.ended_by == "split" for step in before):
            began_by = "split"
        elif "shed" in ends:
            began_by = "shedder"
        step = OwnerStep(
            bundle=row["bundle"],
            broker=row["broker"],
            state=row["state"],
            from_us=row["from"],
            to_us=row["to"],
            began_by=began_by,
            decision=None if decision is None else decision_id(name, decision["number"]),
            propensity=None if decision is None else decision["propensity"],
            ended_by=row["ended_by"],
            reason=row["reason"],
            cycle=by_time.get(row["to"]) if row["ended_by"] == "shed" else None,
        )
        steps.append(step)
    return BundleHistory(name, str(whole), tuple(steps), Counter(row["reason"] for row in cycles))


def cycle_at(run: Run, name: RunName, at_us: int) -> dict[str, Any]:
    """Find the row of the last cycle of a shedder at or before an instant.

    Raises:
        SettingsError: if the policy does not have a shedder, or there was no cycle up to then.
    """
    cycles = recorded_table(run, name, "cycles")
    if not cycles.num_rows:
        raise SettingsError(
            f"there are no cycles of policy {name.policy!r}: it has no shedder, or the run has no instant of the grid"
        )
    before = pc.sum(pc.less_equal(cycles["ts"], at_us)).as_py()
    if not before:
        first = time_text(cycles["ts"][0].as_py())
        problem = f": there was no cycle up to {time_text(at_us)}; the first one was at {first}"
        raise SettingsError(Argument("at_us"), problem)
    row: dict[str, Any] = cycles.slice(before - 1, 1).to_pylist()[0]
    return row
