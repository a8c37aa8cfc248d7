"""Plans of moves, made, carried out and verified one after the other in a real cluster, beside clients that work on.

Three brokers, a namespace, a topic in each bundle, to which a client of Java or Python sends twice a second. Each plan
drains the broker that owns most of the namespace: a third of its bundles at least, since the one that was drained
before is filled again by that. So no plan is small, and each is made from the cluster as the last one has left it.

    verified      `lookup plan`, `lookup apply --yes --freeze-shedding`, `lookup verify JOURNAL`; some of these with
                `kill -9` of `apply` at a random moment, `--recover`, and the same command again
    rolled back the last verified plan of a group, with `lookup apply --rollback`, after it was verified
    disturbed   planned and applied while an administrator unloads and splits bundles at random; not verified

Brokers measure and report every five seconds in place of once a minute, so that a plan takes half a
minute; `--every` says otherwise. The shorter that is, the more a client or a broker that pauses for a moment shows in
what is measured: 0.3 s of 5 s are 6 %, of a minute 0.5 %. They report as many bundles as by default, ten. Pulsar's
shedder is on, so that there is something to freeze, but its next cycle is a day away: what moves is moved by `apply`
or by the administrator.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lookup.collect.collector import Endpoints, reading
from lookup.collect.sources import now_us
from lookup.logs.readers.system_topics import STATE_TOPIC
from lookup.model.time import parse_iso
from lookup.moving.shedding import KEY
from lookup.moving.watching import OwnerWatch
from tests.acceptance.pulsar.cluster import CLUSTER, Cluster, running_cluster
from tests.acceptance.pulsar.jvm import installation
from tests.acceptance.pulsar.live import topics_by_bundle
from tests.acceptance.pulsar.moves import Traffic, World, ended, traffic
from tests.processes import awaited

_NAMESPACE = "public/campaign"
_BUNDLES = 70
#: Messages per second and topic.
_PER_S = 2.0
#: µs after a move during which reports may have rates of before it.
_RATES_US = 60_000_000
#: Seconds in which an `apply` is killed, from its start: it takes two to start, and half a second for a step.
_KILLED_S = (0.5, 12.0)
#: Seconds between two acts of the administrator, the share of them that are splits, and that of planned bundles.
_ACT_S, _SPLITS, _PLANNED = 0.6, 0.15, 0.7
_RATE = "10/s"
#: Fewest moves of a plan.
_FEWEST = 20
_EXAMPLES = """examples:
  python -m tests.acceptance.pulsar.campaign --plans 2 --disturbed 1 --kills 2 --rollbacks 1
      a first look, in some minutes
  python -m tests.acceptance.pulsar.campaign --plans 30 --disturbed 10 --kills 20 > campaign.log
      about an hour; 1 if a promise is broken
  python -m tests.acceptance.pulsar.campaign --every 60
      brokers that measure as seldom as by default; some four hours
  python -m tests.acceptance.pulsar.campaign --folder campaign
      keeps plans, journals, and what the commands and brokers said
"""


@dataclass
class _Act:
    """What the administrator did."""

    bundle: str
    #: `split` or `unload`
    kind: str
    #: when it was done, µs
    at_us: int


@dataclass
class _Result:
    """What came of one plan."""

    number: int
    kind: str
    steps: int = 0
    #: steps whose bundle is at its destination, as brokers say
    owned: int = 0
    #: bundles that were given up more than once
    twice: int = 0
    #: by where a kill came: before anything was written, while shedding was frozen, ...
    kills: list[str] = field(default_factory=list)
    #: kills after which shedding was as it was found
    recovered: int = 0
    #: figures as `lookup verify` has them
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: owners that the way back restored, of those that moved; None: not taken back
    back: int | None = None
    #: acts on bundles of the plan before their step was asked for, those named, and those overridden
    acts: int = 0
    named: int = 0
    overridden: int = 0
    #: acts in the same instant as the step of the bundle
    crossed: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    worst_s: float = 0.0
    took_s: float = 0.0
    #: sentences of what went otherwise than promised
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the line that is printed when it has ended."""
        parts = [f"{self.owned} of {self.steps} steps owned as planned"]
        if self.kind == "disturbed":
            parts = [f"{self.steps} steps, {self.acts} acts before a step: {self.named} named"]
            parts += [f"{self.overridden} overridden", f"{self.crossed} in the same instant"]
        parts += [f"{name} {of['measured']:.4f}, predicted {of['value']:.4f}" for name, of in self.figures.items()]
        if self.kills:
            parts.append(f"killed {', '.join(self.kills)}; {self.recovered} of {len(self.kills)} recovered")
        if self.back is not None:
            parts.append(f"{self.back} of {self.steps} owners restored")
        parts += [f"{sum(self.errors.values())} client errors", f"slowest send {self.worst_s:.1f} s"]
        lines = [f"plan {self.number:2} {self.kind}: {'; '.join(parts)}; {self.took_s:.0f} s"]
        return "\n".join([*lines, *(f"    BROKEN: {sentence}" for sentence in self.broken)])


class _Campaign:
    """A cluster with traffic, and what came of the plans so far."""

    def __init__(self, clients: Traffic, watch: OwnerWatch, world: World, given: argparse.Namespace) -> None:
        self._clients, self._watch, self._cluster, self._folder = clients, watch, world.cluster, world.folder
        self._dice = random.Random(given.seed)
        self.results: list[_Result] = []
        #: kills that are still to be made
        self.kills_left = 0
        self._moved_us = now_us()

    # A plan

    def _plan(self) -> World:
        """Plan the drain of the broker that owns most of the namespace, and read the steps."""
        owners = Counter(broker.id for broker in self._cluster.owned(_NAMESPACE).values())
        drained = owners.most_common(1)[0][0]
        folder = self._folder / f"plan-{len(list(self._folder.glob('plan-*'))):02}"
        folder.mkdir()
        world = World(self._cluster, folder, _NAMESPACE, {}, folder / "plan" / "plan.json")
        words = ("--drain", drained, "--only", _NAMESPACE, "--wait", "30m", "--quiet")
        process = world.begin_typed("plan", *words, "--output", str(folder / "plan"))
        said, _ = process.communicate(timeout=1_800.0)
        (world.folder / "plan.txt").write_text(said, encoding="utf-8")
        assert process.returncode == 0, said
        document = json.loads(world.plan.read_text(encoding="utf-8"))
        world.steps = [(step["bundle"], step["from"], step["to"]) for step in document["steps"]]
        return world

    def _begin(self, kind: str) -> tuple[_Result, float]:
        self._clients.worst_s = 0.0
        return _Result(len(self.results) + 1, kind, errors=dict(self._clients.errors)), time.monotonic()

    def _end(self, result: _Result, began: float) -> None:
        """Keep a result and print its line."""
        before = Counter(result.errors)
        result.errors = dict(Counter(self._clients.errors) - before)
        result.worst_s, result.took_s = self._clients.worst_s, time.monotonic() - began
        if result.errors:
            result.broken.append(f"clients saw errors: {result.errors}")
        self.results.append(result)
        _say(str(result))

    # Verified

    def verify(self, kills: int, *, goes_back: bool) -> None:
        """Plan, apply and verify."""
        result, began = self._begin("verified")
        self.kills_left += kills
        # What brokers report is of after the last move then, as an operator is advised to wait for.
        time.sleep(max(0.0, (self._moved_us + _RATES_US - now_us()) / 1e6))
        world = self._plan()
        result.steps = len(world.steps)
        if result.steps < _FEWEST:
            result.broken.append(f"the plan has {result.steps} steps, fewer than {_FEWEST}")
        with self._found(is_set=bool(len(self.results) % 2)) as found:
            releases = self._releases(world)
            self._apply(world, result, found)
            self._require_owned(world, result, releases)
        words = (str(world.journal), "--wait", "30m", "--format", "json", "--quiet")
        verifying = world.begin_typed("verify", *words, errors=subprocess.PIPE)
        self._moved_us = now_us()
        said, errors = verifying.communicate(timeout=1_800.0)
        (world.folder / "verify.json").write_text(said + errors, encoding="utf-8")
        if verifying.returncode == 0 and said:
            result.figures = {of["metric"]: of for of in json.loads(said)["figures"]}
        else:
            result.broken.append(f"verify ended with {verifying.returncode}: {errors.strip()[-300:]}")
        if goes_back:
            self._take_back(world, result)
        self._compact()
        self._end(result, began)

    def _apply(self, world: World, result: _Result, found: str | None) -> None:
        """Carry a plan out, with kills in between while there are any left for it."""
        words = (str(world.plan), "--freeze-shedding")
        while self.kills_left > 0:
            process, owed = world.begin(*words, rate=_RATE), self._dice.uniform(*_KILLED_S)
            try:
                process.wait(owed)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                self.kills_left -= 1
                self._recover(world, result, found)
            else:
                # It was faster; the kill is left for the next plan.
                self._applied(world, result, ended(process), found)
                return
        self._applied(world, result, ended(world.begin(*words, rate=_RATE)), found)

    def _applied(self, world: World, result: _Result, done: tuple[int, str], found: str | None) -> None:
        code, said = done
        (world.folder / "apply.txt").write_text(said, encoding="utf-8")
        if code != 0:
            result.broken.append(f"apply ended with {code}: {said.strip()[-300:]}")
        if world.shedding != found:
            result.broken.append(f"shedding was {found} and is {world.shedding} after apply")

    def _recover(self, world: World, result: _Result, found: str | None) -> None:
        """Put shedding back after a kill, and say at which moment that came."""
        requested = len(world.entries("requested"))
        over = sum(len(world.entries(event)) for event in ("moved", "elsewhere", "skipped", "failed"))
        if not world.journal.exists() or not world.entries("begun"):
            result.kills.append("before the journal")
        else:
            moment = "in step" if requested > over else "after step"
            frozen = " frozen" if world.shedding == "false" else ""
            result.kills.append(f"{moment} {over + (requested > over)}{frozen}")
            code, said = world.run("--recover", str(world.journal))
            if code != 0:
                result.broken.append(f"recover ended with {code}: {said.strip()[-300:]}")
        if world.shedding == found:
            result.recovered += 1
        else:
            result.broken.append(f"shedding was {found} and is {world.shedding} after a kill and --recover")

    @contextmanager
    def _found(self, *, is_set: bool) -> Iterator[str | None]:
        """Let `apply` find shedding with or without a value of dynamic configuration."""
        if is_set:
            self._cluster.admin("POST", f"brokers/configuration/{KEY}/true")
        found = "true" if is_set else None
        values = "brokers/configuration/values"
        awaited(lambda: self._cluster.admin("GET", values).get(KEY) == found)
        yield found
        if is_set:
            self._cluster.admin("DELETE", f"brokers/configuration/{KEY}")

    def _releases(self, world: World) -> dict[str, int]:
        """Return how often bundles of a plan were given up so far."""
        self._watch.look()
        return {bundle: self._watch.releases[bundle] for bundle, _, _ in world.steps}

    def _require_owned(self, world: World, result: _Result, before: dict[str, int]) -> None:
        """Hold the steps against what brokers say they own, and against how often bundles were given up."""
        owners = world.owners()
        result.owned = sum(owners.get(bundle) == to for bundle, _, to in world.steps)
        if result.owned < result.steps:
            result.broken.append(f"{result.steps - result.owned} bundles are not where the plan has them")
        # What this process has read of the state topic may be a moment behind.
        moved = {entry["bundle"] for entry in world.entries("moved")}
        awaited(lambda: all(self._releases(world)[bundle] > before[bundle] for bundle in moved))
        result.twice = sum(self._releases(world)[bundle] - before[bundle] > 1 for bundle in moved)
        if result.twice:
            result.broken.append(f"{result.twice} bundles were moved more than once")

    def _take_back(self, world: World, result: _Result) -> None:
        code, said = world.run("--rollback", str(world.journal), rate=_RATE)
        (world.folder / "rollback.txt").write_text(said, encoding="utf-8")
        owners = world.owners()
        self._moved_us = now_us()
        result.back = sum(owners.get(bundle) == source for bundle, source, _ in world.steps)
        if code != 0 or result.back < result.steps:
            result.broken.append(f"rollback ended with {code}: {said.strip()[-300:]}")

    def _compact(self) -> None:
        """Let the state topic be compacted, as Pulsar does from 5 MB on.

        Each command reads it from its start, and the broker that has it would report that as load.
        """
        with suppress(urllib.error.HTTPError):
            self._cluster.admin("PUT", f"persistent/{STATE_TOPIC.partition('://')[2]}/compaction")

    # Disturbed

    def disturb(self) -> None:
        """Plan and apply beside an administrator."""
        result, began = self._begin("disturbed")
        world = self._plan()
        result.steps = len(world.steps)
        process, acts = world.begin(str(world.plan), "--freeze-shedding", rate=_RATE), list[_Act]()
        with (world.folder / "apply.txt").open("w", encoding="utf-8") as log:
            while process.poll() is None:
                act = self._act([bundle for bundle, _, _ in world.steps], acts)
                acts += [act] if act else []
                time.sleep(_ACT_S)
            code, said = ended(process)
            log.write("".join(f"{act}\n" for act in acts) + said)
        self._moved_us = now_us()
        if code not in (0, 4):
            result.broken.append(f"apply ended with {code}: {said.strip()[-300:]}")
        if world.shedding is not None:
            result.broken.append(f"shedding is {world.shedding} after apply")
        self._require_named(world, result, acts, said)
        self._compact()
        self._end(result, began)

    def _act(self, planned: Sequence[str], acts: Sequence[_Act]) -> _Act | None:
        """Split or unload a bundle that was not touched before; None if a broker refuses."""
        done = {act.bundle for act in acts}
        every = {f"{_NAMESPACE}/{bounds}" for bounds in self._cluster.bundles(_NAMESPACE)} - done
        of_plan = [bundle for bundle in planned if bundle in every]
        bundle = self._dice.choice(of_plan if of_plan and self._dice.random() < _PLANNED else sorted(every))
        bounds = bundle.rpartition("/")[2]
        kind = "split" if self._dice.random() < _SPLITS else "unload"
        try:
            if kind == "split":
                self._cluster.split(_NAMESPACE, bounds)
            else:
                owner = self._cluster.owned(_NAMESPACE).get(bounds)
                others = [broker for broker in self._cluster.running if broker is not owner]
                # Without a destination Pulsar chooses the next owner.
                self._cluster.unload(_NAMESPACE, bounds, self._dice.choice([None, *others]))
        except urllib.error.HTTPError:
            return None
        return _Act(bundle, kind, now_us())

    def _require_named(self, world: World, result: _Result, acts: Sequence[_Act], said: str) -> None:
        """Hold what `apply` did and said against what the administrator had done before each step."""
        requested = {entry["bundle"]: parse_iso(entry["at"]) for entry in world.entries("requested")}
        over = {
            entry["bundle"]: parse_iso(entry["at"])
            for event in ("moved", "elsewhere", "skipped", "failed")
            for entry in world.entries(event)
        }
        skipped = {entry["bundle"] for entry in world.entries("skipped")}
        for act in acts:
            if act.bundle not in over:
                continue
            asked = requested.get(act.bundle)
            if asked is not None and act.at_us >= asked:
                result.crossed += act.at_us <= over[act.bundle]
            elif asked is not None or act.at_us < over[act.bundle]:
                result.acts += 1
                result.overridden += asked is not None
                result.named += act.bundle in skipped and act.bundle in said
        if result.named < result.acts or result.overridden:
            result.broken.append(f"of {result.acts} acts {result.named} are named, {result.overridden} overridden")
        left = [bundle for bundle, _, _ in world.steps if bundle not in over]
        failed = [entry["reason"] for entry in world.entries("failed")]
        if left or failed:
            result.broken.append(f"{len(left)} steps were not begun, {len(failed)} failed: {said.strip()[-300:]}")


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def _shares(total: int, count: int) -> list[int]:
    """Divide a number into so many whole ones, as equal as they can be."""
    return [(place + 1) * total // count - place * total // count for place in range(count)]


def _summary(results: Sequence[_Result], counts: Counter[str]) -> tuple[str, bool]:
    """Return the table of all plans, and whether every promise was kept."""
    verified = [result for result in results if result.kind == "verified"]
    disturbed = [result for result in results if result.kind == "disturbed"]
    back = [result for result in verified if result.back is not None]
    steps = sum(result.steps for result in verified)
    kills = [kill for result in verified for kill in result.kills]
    acts, named = (sum(getattr(result, name) for result in disturbed) for name in ("acts", "named"))
    errors = counts.total() - counts["sent"] - counts["received"]
    rows = [
        ("steps at their destination, as brokers say", sum(result.owned for result in verified), steps),
        ("kills after which shedding was as found", sum(result.recovered for result in verified), len(kills)),
        ("kills while shedding was frozen", sum("frozen" in kill for kill in kills), len(kills)),
        ("bundles moved more than once", sum(result.twice for result in verified), steps),
        ("owners restored by the way back", sum(result.back or 0 for result in back), sum(r.steps for r in back)),
        ("acts of the administrator that were named", named, acts),
        ("of them overridden", sum(result.overridden for result in disturbed), acts),
        ("client errors and lost messages, of messages sent", errors, counts["sent"]),
    ]  # fmt: skip
    width = max(len(name) for name, _, _ in rows)
    lines = [f"{len(verified)} verified plans, {len(back)} of them taken back, and {len(disturbed)} disturbed"]
    lines += [f"{name:{width}}  {count:,} of {of:,}" for name, count, of in rows]
    lines.append(f"slowest send: {max((result.worst_s for result in results), default=0.0):.1f} s")
    is_kept = not errors and not any(result.broken for result in results)
    lines.append("every promise was kept" if is_kept else "a promise was BROKEN")
    return "\n".join(lines), is_kept


def _run(cluster: Cluster, folder: Path, given: argparse.Namespace) -> int:
    cluster.create_namespace(_NAMESPACE, _BUNDLES)
    topics = list(topics_by_bundle(_NAMESPACE, _BUNDLES).values())
    java = cluster.java_clients().open("campaign", cluster.service_url, {})
    world = World(cluster, folder, _NAMESPACE, {}, folder)
    with reading(Endpoints(CLUSTER, None, cluster.service_url), None, CLUSTER) as records:
        watch = OwnerWatch(CLUSTER, records)
        watch.settle(60.0)
        with traffic(world, java, topics, _PER_S) as clients:
            campaign = _Campaign(clients, watch, world, given)
            failure = None
            # What has come of it so far is worth a table.
            try:
                _play(campaign, given)
            except KeyboardInterrupt:
                failure = "interrupted"
            except AssertionError as error:
                failure = str(error)
    text, is_kept = _summary(campaign.results, clients.counts)
    if failure is not None:
        text, is_kept = f"{text}\nended early: {failure}", False
    sys.stdout.write(f"{text}\n")
    return 0 if is_kept else 1


def _play(campaign: _Campaign, given: argparse.Namespace) -> None:
    """Make all plans: in groups that end with one that is taken back, and some that are disturbed."""
    groups = max(1, given.rollbacks)
    kills = iter(_shares(given.kills, given.plans) if given.plans else [])
    for plans, disturbed in zip(_shares(given.plans, groups), _shares(given.disturbed, groups), strict=True):
        for place in range(plans):
            campaign.verify(next(kills), goes_back=place == plans - 1 and given.rollbacks > 0)
        for _ in range(disturbed):
            campaign.disturb()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; return 1 if a promise is broken, 2 if the cluster cannot be had."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.pulsar.campaign",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--plans", type=int, default=30, help="plans that are verified (default: 30)")
    parser.add_argument("--disturbed", type=int, default=10, help="plans beside an administrator (default: 10)")
    parser.add_argument("--kills", type=int, default=20, help="kills of `apply`, over the plans (default: 20)")
    parser.add_argument("--rollbacks", type=int, help="plans that are taken back (default: 5, or all)")
    parser.add_argument(
        "--every", type=int, default=5, help="seconds between two measurements of a broker (default: 5)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of kills and of the administrator (default: 1)")
    parser.add_argument("--folder", type=Path, help="where plans, journals and logs stay; must not exist")
    given = parser.parse_args(arguments)
    given.rollbacks = min(5, given.plans) if given.rollbacks is None else given.rollbacks
    if given.folder is not None and given.folder.exists():
        parser.error(f"{given.folder} exists already; name a folder that does not")
    if min(given.plans, given.disturbed, given.kills, given.rollbacks) < 0 or given.rollbacks > given.plans:
        parser.error("--plans, --disturbed, --kills and --rollbacks are 0 or more, and --rollbacks at most --plans")
    if given.every < 1:
        parser.error(f"--every is {given.every}, and should be 1 or more")
    settings = {
        "statsUpdateFrequencyInSecs": str(given.every),
        "statsUpdateInitialDelayInSecs": str(given.every),
        "loadBalancerReportUpdateMinIntervalMillis": str(given.every * 1000),
        "loadBalancerSheddingEnabled": "true",
        "loadBalancerSheddingIntervalMinutes": "1440",
    }
    try:
        installed = installation()
        with tempfile.TemporaryDirectory(prefix="pulsar-campaign-") as scratch:
            folder = given.folder or Path(scratch) / "campaign"
            folder.mkdir(parents=True)
            with running_cluster(installed, folder / "cluster", dict.fromkeys("ABC", settings)) as cluster:
                return _run(cluster, folder, given)
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
