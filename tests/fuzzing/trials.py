"""Trials: sound inputs of each kind, what is damaged of them, and the command that reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lookup.cli import main
from lookup.logs.generator.generate import GenerateSettings, generate
from tests.commands.projects import FAILING, evaluation_of
from tests.fuzzing.damage import damaged_bytes, damaged_json, damaged_parquet, damaged_text

__all__ = ["KINDS", "Sound", "Trial"]

_EVALUATION = """
[verdict]
margin = 0.01
primary = ["answered_ratio"]
[topology.distance_ms]
rack = 0.1
zone = 0.5
[[namespaces]]
name = "tenant-0/ns-0"
bundles = 4
anti_affinity_group = "g"
[[clients]]
match = { client = "10.*" }
properties = { rack = "a" }
[[policies]]
name = "shedding"
filters = ["load-manager-class", "max-topics", "version", "anti-affinity", "isolation"]
selector = { use = "explore", epsilon = 0.05, child = "best" }
shedder = { use = "threshold" }
on_error = "skip"
[[policies]]
name = "today"
from_broker_conf = "broker.conf"
broker_conf = { loadBalancerBrokerThresholdShedderPercentage = 5 }
"""
_CONF = """# a broker.conf
loadManagerClassName=org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl
loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder
loadBalancerBrokerThresholdShedderPercentage=10
loadBalancerNamespaceBundleMaxTopics = 1000
loadBalancerAutoBundleSplitEnabled=true
"""
_SCENARIO = """
about = "Two brokers, one leaves."
minutes = 20
every = 5
owners = { "b-1:8080" = 8 }
[[brokers]]
id = "b-{n}:8080"
count = 2
capacity = 100.0
busy = 0.1
[[namespaces]]
name = "public/default"
bundles = 8
topics = 16
load = 40.0
message_bytes = 1024
[[events]]
at = 5
topics = [0, 1]
factor = 2.0
[[events]]
at = 10
leave = ["b-2:8080"]
[[policies]]
name = "stock"
selector = "least-resource-usage"
shedder = "transfer"
splitter = "default-split"
[[assertions]]
figure = "moves"
at_least = 0
"""
_MAPPING = """
use = "delimited"
pattern = '''(?P<host>\\S+) (?P<time>\\S+) (?P<path>\\S+) (?P<bytes>\\d+)'''
timestamp = { column = "time", format = "iso" }
topic = "persistent://web/paths/{path}"
client = "host"
only = { path = "/.*" }
result = { column = "bytes", rule = "map", values = { 200 = "connect" }, default = "failed" }
weight = { column = "bytes", default = 512.0, min = 1.0 }
[properties]
zone = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "outside" }
"""
_LOG = "".join(f"10.1.0.{n} 2026-01-05T00:00:{n:02}Z /p/{n % 5} {200 + n % 2}\n" for n in range(40))
_BUDGET = '[budget]\nanswered_ratio = 0.01\n"match_ratio:rack" = 0.02\nmoves = 100\n'
_SERVING = """
[serving]
cluster = "c1"
record = "record"
port = 0
flush_s = 0.2
active = "by-rack"
[[policies]]
name = "by-rack"
scorers = [{ use = "property-match", key = "rack" }]
selector = "weighted-random"
"""
_TOPICS = "[topics]\nlister = 'indexed'\nqueue_max = 100\nallowed_label_keys = ['a']\n"


@dataclass(frozen=True)
class Sound:
    """A folder with sound inputs of every kind, made once."""

    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> Sound:
        """Write a small log, an evaluation, its results and one file of each other kind."""
        generate(
            GenerateSettings(
                lookups=300,
                clusters=1,
                hours=1.0,
                topics=30,
                namespaces=3,
                tenants=1,
                clients=10,
                brokers=4,
                losses=1,
                joins=1,
                leaves=0,
            ),
            folder / "sample",
        )
        evaluation_of(folder, Path("sample"), _EVALUATION, 'plugin_files = ["failing.py"]\n')
        files = {
            "broker.conf": _CONF,
            "failing.py": FAILING,
            "x.scenario": _SCENARIO,
            "m.toml": _MAPPING,
            "l.log": _LOG,
        }
        for name, text in (files | {"budget.toml": _BUDGET, "serving.toml": _SERVING, "topics.toml": _TOPICS}).items():
            (folder / name).write_text(text, encoding="utf-8")
        return cls(folder)

    def evaluated(self) -> None:
        """Write the results of the evaluation, as `run`."""
        code = main(["evaluate", "evaluation.toml", "--output", "run", "--master", "none", "-q"])
        assert code in (0, 3, 4), code


@dataclass(frozen=True)
class Trial:
    """A command line to be run in a folder whose inputs have been damaged, and where it writes."""

    words: Sequence[str]
    output: str | None = None


def _text(folder: Path, dice: Random, name: str) -> None:
    path = folder / name
    path.write_bytes(damaged_text(dice, path.read_text(encoding="utf-8")))


def _evaluate(*more: str, force: bool = False) -> Trial:
    words = ["evaluate", "evaluation.toml", "--output", "out", "--master", "none", "-q", *more]
    return Trial([*words, "--force"] if force else words, "out")


def _settings(folder: Path, dice: Random) -> Trial:
    """Damage an evaluation or the broker.conf that it names."""
    _text(folder, dice, dice.choice(("evaluation.toml", "evaluation.toml", "broker.conf")))
    check = ["evaluation.toml"]
    others = (
        ["config", "check", *check],
        ["config", "show", *check],
        ["explain", *check, "--topic", "persistent://a/b/c"],
    )
    return dice.choice((_evaluate(), *(Trial(words) for words in others)))


def _served(folder: Path, dice: Random) -> Trial:
    """Damage the settings of a server or of topics."""
    name = dice.choice(("serving.toml", "topics.toml", "broker.conf"))
    _text(folder, dice, name)
    return Trial(["config", "check", name])


def _mapping(folder: Path, dice: Random) -> Trial:
    """Damage a mapping, or the log that it reads."""
    if dice.random() < 0.7:
        _text(folder, dice, "m.toml")
    else:
        log = folder / "l.log"
        log.write_bytes(damaged_bytes(dice, log.read_bytes()))
    words = ["ingest", "l.log", "--mapping", "m.toml", "--cluster", "c", "--output", "out", "--master", "none", "-q"]
    ratio = ["--max-quarantine-ratio", "1"]
    return dice.choice((Trial([*words, *ratio], "out"), Trial(["init", "new", "--log", "l.log"])))


def _scenario(folder: Path, dice: Random) -> Trial:
    """Damage a scenario."""
    _text(folder, dice, "x.scenario")
    return Trial(["simulate", "x.scenario"])


def _budget(folder: Path, dice: Random) -> Trial:
    """Damage a budget that an evaluation or a finished run is held against."""
    _text(folder, dice, "budget.toml")
    return dice.choice(
        (_evaluate("--budget", "budget.toml"), Trial(["report", "run", "--budget", "budget.toml", "-q"]))
    )


def _run_folder(folder: Path, dice: Random) -> Trial:
    """Damage a file of a finished run."""
    files = sorted(path for path in (folder / "run").rglob("*") if path.suffix in (".json", ".parquet"))
    path = dice.choice((folder / "run" / "manifest.json", folder / "run" / "summary.json", dice.choice(files)))
    shutil.copytree(folder / "run", folder / "sound")
    damage: Callable[[Random, bytes], bytes] = damaged_json if path.suffix == ".json" else damaged_parquet
    path.write_bytes(damage(dice, path.read_bytes()))
    explain = ["explain", "run", "--policy", "stock", "--at", "2026-01-05T00:30:00Z"]
    why = ["explain", "run", "--policy", "rack", "--bundle", "tenant-01/ns-03/0x00000000_0x40000000"]
    return dice.choice(
        (
            Trial(["report", "run", "-q"]),
            Trial(["diff", "run", "sound"]),
            Trial(["diff", "sound", "run"]),
            Trial(explain),
            Trial(why),
            _evaluate("--against", "run", "--budget", "budget.toml"),
        )
    )


def _tables(folder: Path, dice: Random) -> Trial:
    """Damage a table of a log; the results of an earlier run are there or not."""
    path = dice.choice(sorted((folder / "sample").rglob("*.parquet")))
    path.write_bytes(damaged_parquet(dice, path.read_bytes()))
    if dice.random() < 0.3:
        shutil.copytree(folder / "run", folder / "out")
        return _evaluate(force=True)
    return dice.choice((_evaluate(), Trial(["inspect", "sample/lookups"])))


def _json_lines(folder: Path, dice: Random) -> Trial:
    """Damage a log of JSON lines."""
    lines = [
        {"ts": f"2026-01-05T00:00:{n:02}Z", "topic": f"persistent://a/b/{n % 5}", "client": "c"} for n in range(20)
    ]
    written = [json.dumps(line).encode() for line in lines]
    for _ in range(dice.choice((1, 5, 20))):
        number = dice.randrange(len(written))
        written[number] = damaged_json(dice, json.dumps(lines[number]).encode()).replace(b"\n", b" ")
    (folder / "l.jsonl").write_bytes(b"\n".join(written))
    words = [
        "ingest",
        "l.jsonl",
        "--cluster",
        "c",
        "--output",
        "out",
        "--master",
        "none",
        "-q",
        "--max-quarantine-ratio",
        "1",
    ]
    return dice.choice((Trial(words, "out"), Trial(["init", "new", "--log", "l.jsonl"])))


KINDS: dict[str, Callable[[Path, Random], Trial]] = {
    "settings": _settings,
    "serving": _served,
    "mapping": _mapping,
    "scenario": _scenario,
    "budget": _budget,
    "run folder": _run_folder,
    "tables": _tables,
    "json lines": _json_lines,
}
