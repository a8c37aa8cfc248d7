"""Compare our policies with Pulsar's own classes, release by release, and print what came of it.

`make parity` runs it; without the jars of a release, or a Java that runs them, that release is passed over with the
reason. Parts are put drawn states, several cycles of them where they remember. Whole managers run scenarios of an hour:
free, each by itself, up to the first draw at random; or taught, each minute beginning with Pulsar's owners.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.parity import CLASSES_BEGIN, CLASSES_END
from tests.parity.java import BESIDE, beside, class_path, in_java, together
from tests.parity.jvm import Classes, NoClassesError
from tests.parity.loops import drawn_scenario, free, policy_of, taught
from tests.parity.parts import EXTENSIONS, IMPL, PARTS, compare

_PAGE = Path(__file__).parents[2] / "docs" / "pulsar-parity.md"
#: The releases that are asked, by those whose rules are ours.
_RELEASES = {"4.0": "4.0.8", "4.2": "4.2.4", "5.0": "5.0.1"}
#: Share of states in which there must be something to decide, or a row shows nothing.
_ACTING = 0.3
#: Least share of equal acting states: parts, minutes of taught managers, scenarios of free ones.
_LEAST = {"part": 1.0, "taught": 0.995, "free": 0.99, "pair": 1.0, "java": 1.0}
_NO_SPLITS = {"loadBalancerAutoBundleSplitEnabled": "false"}


def _modular(shedder: str, placement: str = "LeastLongTermMessageRate") -> dict[str, str]:
    keys = ("loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy")
    return dict(zip(keys, (f"{IMPL}{shedder}", f"{IMPL}{placement}"), strict=True))


#: Settings of whole managers, by their names in the table.
_MANAGERS: Mapping[str, Mapping[str, str]] = {
    "modular manager, defaults": {},
    "modular manager, ThresholdShedder": _modular("ThresholdShedder"),
    "modular manager, UniformLoadShedder": _modular("UniformLoadShedder"),
    "modular manager, OverloadShedder": _modular("OverloadShedder"),
    "modular manager, AvgShedder": _modular("AvgShedder", "AvgShedder"),
    "modular manager, LeastResourceUsageWithWeight": _modular("ThresholdShedder", "LeastResourceUsageWithWeight"),
    "extensible manager, defaults": {"loadManagerClassName": f"{EXTENSIONS}ExtensibleLoadManagerImpl"},
}
#: What is known not to be equal, and what a user would be misled about.
_DEVIATIONS = {
    "modular manager, LeastResourceUsageWithWeight": (
        "Pulsar places the bundles of a cycle in the order of a hash map, so two bundles may swap their brokers"
    )
}


@dataclass(frozen=True)
class Row:
    """What one comparison came to."""

    what: str
    release: str
    kind: str
    states: int
    acting: int
    equal: int
    #: the smallest difference, as JSON; empty if there is none
    smallest: str = ""

    @property
    def name(self) -> str:
        """The class or manager, whatever the kind of its states."""
        return self.what.partition(", ")[0] if self.kind == "part" else self.what

    @property
    def problem(self) -> str:
        """Return why the row does not hold; empty if it does."""
        if self.acting < _ACTING * self.states:
            return f"only {self.acting} of {self.states} states act"
        if self.what in _DEVIATIONS or self.equal >= _LEAST[self.kind] * self.acting:
            return ""
        return f"{self.equal} of {self.acting} are equal, {_LEAST[self.kind]:.1%} should be"


def _rows(release: str, states: int, scenarios: int) -> list[Row] | str:
    """Return what a release's classes say, or why they cannot be asked."""
    try:
        with Classes(_RELEASES[release]) as classes, tempfile.TemporaryDirectory() as folder:
            print(
                f"{classes.about['release']} on Java {classes.about['java']}: {_checksums(classes.about)}", flush=True
            )
            return [
                *_parts(classes, release, Path(folder), states),
                *_managers(classes, release, Path(folder), scenarios),
                *_java(classes, release, Path(folder), scenarios),
            ]
    except NoClassesError as error:
        return f"{_RELEASES[release]}: {error}"


def _checksums(about: Mapping[str, Any]) -> str:
    return ", ".join(f"{jar} sha256 {digest[:16]}" for jar, digest in about["jars"].items())


def _parts(classes: Classes, release: str, folder: Path, states: int) -> Iterator[Row]:
    for part in PARTS:
        acting = equal = 0
        smallest = ""
        for one in compare(part, classes, release, folder, states):
            acting += one.is_acting
            equal += one.is_acting and one.is_equal
            if not one.is_equal:
                smallest = _smaller(smallest, {"state": one.state, "ours": one.ours, "pulsar": one.pulsars})
        yield Row(part, release, "part", states, acting, equal, smallest)


def _smaller(before: str, difference: object) -> str:
    now = json.dumps(difference, default=str)
    return now if not before or len(now) < len(before) else before


def _managers(classes: Classes, release: str, folder: Path, scenarios: int) -> Iterator[Row]:
    for name, keys in _MANAGERS.items():
        conf = {**_NO_SPLITS, **keys}
        policy = policy_of(conf, release, folder)
        # A placement that draws for nearly every bundle is compared minute by minute only.
        for kind in ("taught",) if name in _DEVIATIONS else ("free", "taught"):
            acting = equal = 0
            smallest = ""
            for seed in range(scenarios):
                scenario = drawn_scenario(seed, is_steady=kind == "free")
                is_acting, is_equal = False, True
                for number, minute in enumerate((free if kind == "free" else taught)(classes, scenario, policy, conf)):
                    if kind == "free" and minute.draws:
                        break
                    if minute.is_tied:
                        continue
                    is_acting |= minute.is_acting
                    is_equal &= minute.is_equal
                    if not minute.is_equal:
                        where = {"scenario": scenario.model_dump(mode="json"), "minute": number}
                        smallest = _smaller(smallest, where | {"ours": minute.ours, "pulsar": minute.pulsars})
                    if kind == "taught":
                        acting += minute.is_acting
                        equal += minute.is_acting and minute.is_equal
                if kind == "free":
                    acting += is_acting
                    equal += is_acting and is_equal
            yield Row(name, release, kind, scenarios, acting, equal, smallest)


def _java(classes: Classes, release: str, folder: Path, scenarios: int) -> Iterator[Row]:
    pairs = list(together(classes, release, folder))
    yield Row("createLoadBalanceStrategies", release, "pair", len(pairs), len(pairs), sum(pairs))
    lib = class_path(_RELEASES[release])
    for name, keys in BESIDE.items():
        conf = {**_NO_SPLITS, **keys}
        policies = policy_of(conf, release, folder), in_java(conf, release, folder, lib)
        found = [beside(drawn_scenario(seed, is_steady=False), policies) for seed in range(scenarios)]
        acting = sum(is_acting for is_acting, _ in found)
        yield Row(
            name, release, "java", scenarios, acting, sum(is_acting and is_equal for is_acting, is_equal in found)
        )


def _table(rows: Sequence[Row]) -> str:
    """Return a row for each class or manager, with its equal and its acting states by release."""
    drawn = {"part": "states", "free": "scenarios, free", "taught": "scenarios, taught", "java": "scenarios"}
    drawn["pair"] = "pairs"
    releases = list(dict.fromkeys(row.release for row in rows))
    lines = [
        f"| compared | drawn | {' | '.join(_RELEASES[release] for release in releases)} |",
        "|---|---|" + "---|" * len(releases),
    ]
    for name, kind in dict.fromkeys((row.name, row.kind) for row in sorted(rows, key=lambda row: row.kind != "part")):
        same = [row for row in rows if (row.name, row.kind) == (name, kind)]
        cells = [[row for row in same if row.release == release] for release in releases]
        figures = [f"{sum(row.equal for row in cell):,}/{sum(row.acting for row in cell):,}" for cell in cells]
        states = max(sum(row.states for row in cell) for cell in cells)
        lines.append(f"| {name} | {states:,} {drawn[kind]} | {' | '.join(figures)} |")
    return "\n".join(lines)


_HEAD = """## Beside Pulsar's own classes

Classes of three releases and the policy from the same `broker.conf` decided on the same random states. A cell is *equal
decisions/acting states*, in which either side did anything. For *taught* managers these are minutes, each of which
begins with Pulsar's owners. A *free* manager runs a whole scenario. `make parity ARGS=--write` writes the table.

"""

#: What the comparison leaves open.
_OPEN = """
Splits in closed loop, the times of load reports and the ownership channel are not compared. In a running cluster a
transfer after the pause of TransferShedder may come a minute later. On Pulsar 4.0, bundles of two namespaces with the
same range that a cycle unloads share a destination.
"""


def _write(rows: Sequence[Row]) -> None:
    before, _, rest = _PAGE.read_text(encoding="utf-8").partition(CLASSES_BEGIN)
    notes = "".join(f"\n{name}: {why}.\n" for name, why in _DEVIATIONS.items())
    table = f"{_HEAD}{_table(rows)}\n{notes}{_OPEN}\n"
    _PAGE.write_text(f"{before}{CLASSES_BEGIN}{table}{CLASSES_END}{rest.partition(CLASSES_END)[2]}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print the table, and return 1 if a row does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__.partition("\n")[0])
    parser.add_argument("--states", type=int, default=200, help="drawn states for each part (5000 by hand)")
    parser.add_argument("--scenarios", type=int, default=20, help="scenarios of an hour for each manager (200 by hand)")
    parser.add_argument("--release", choices=_RELEASES, action="append", help="default: all three")
    parser.add_argument("--write", action="store_true", help="write the table into docs/pulsar-parity.md")
    given = parser.parse_args(arguments)
    releases = given.release or list(_RELEASES)
    with ProcessPoolExecutor(min(len(releases), os.cpu_count() or 1)) as pool:
        found = list(pool.map(_rows, releases, [given.states] * len(releases), [given.scenarios] * len(releases)))
    rows = [row for one in found if not isinstance(one, str) for row in one]
    for reason in found:
        if isinstance(reason, str):
            print(f"skipped: {reason}")
    if not rows:
        return 0
    print(_table(rows))
    for row in rows:
        if row.smallest:
            file = Path("build", "parity", f"{row.what}-{row.kind}-{row.release}.json".replace(" ", "-"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(row.smallest, encoding="utf-8")
            print(f"smallest difference of {row.what}, {row.kind}, {row.release}: {file}")
    problems = [f"{row.what}, {_RELEASES[row.release]}: {row.problem}" for row in rows if row.problem]
    print(*problems, sep="\n")
    if given.write:
        _write(rows)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
