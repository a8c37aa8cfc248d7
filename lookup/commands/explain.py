"""Carry out `lookup explain`, which explains every policy's answer to one request, or the events of a run.

A request is evaluated, without Spark, in a cluster with the brokers that are registered at one moment. No broker owns a
bundle yet, and load is known only from `--usage`. Questions about a run's folder are answered in `explain_run.py`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from rich.console import Console

from lookup.api.explaining import Scene, explain_selected
from lookup.api.selection import select
from lookup.commands.explain_run import print_explanation, run_explained
from lookup.commands.options import (
    COMMAND_LINE,
    Command,
    Parser,
    add_config,
    add_format,
    add_master,
    cluster,
    moment,
    pairs,
    settings_flags,
    whole,
)
from lookup.commands.streams import data_console, note, plain, print_json, warn
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.model.quoting import closest, join_names
from lookup.model.time import time_text

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    text = "folder or URI of a finished run, or TOML file of an evaluation"
    add_config(parser, "EVALUATION_OR_RUN", text)
    parser.add_argument(
        "--topic", metavar="TOPIC", help="topic of the lookup. A short name means persistent://public/default/NAME"
    )
    parser.many("--property", metavar="KEY=VALUE", help="lookup property of the client")
    parser.many("--policy", metavar="NAME", help="policy to explain (default: all)")
    parser.add_argument("--client", metavar="CLIENT", help="address of the client, for its labels in [[clients]]")
    parser.add_argument("--cluster", type=cluster, metavar="NAME", help="cluster of the lookup, if there are several")
    parser.add_argument(
        "--at",
        dest="at_us",
        type=moment,
        metavar="TIME",
        help="time of the lookup, like 2026-01-01T12:00:00Z (default: the last registration of a broker), or in a run "
        "the time of a shedder cycle",
    )
    parser.many(
        "--usage",
        metavar="BROKER=USAGE",
        help="load of a broker, where 1.0 is full, or of all others as in '*=0.5' (default: unknown)",
    )
    parser.add_argument("--decision", metavar="ID", help="decision of a run, as CLUSTER/POLICY/SEED/NUMBER")
    parser.add_argument("--seed", type=whole, metavar="N", help="seed of the replicate in a run (default: the first)")
    add_master(parser)
    add_format(parser, "table", "json")


#: Destinations of flags that are about a lookup that is made up, and about a run.
_OF_LOOKUP = ("set", "property", "client", "usage")
_OF_RUN = ("decision", "seed", "master")


def _run(arguments: argparse.Namespace) -> int:
    path = Path(arguments.config)
    is_run = path.is_dir() or "://" in arguments.config or not (path.suffix or path.is_file())
    for dest in _OF_LOOKUP if is_run else _OF_RUN:
        if getattr(arguments, dest) not in (None, []):
            where = "belongs to a lookup of an evaluation, not to a run" if is_run else "needs the folder of a run"
            raise SettingsError(f"--{dest.removesuffix('_s')}: {where}; see `lookup explain --help`")
    if is_run:
        return run_explained(arguments)
    if not arguments.topic:
        arguments.parser.error("--topic must be given")
    return _explain_lookup(arguments)


def _explain_lookup(arguments: argparse.Namespace) -> int:
    properties = dict(pairs("--property", arguments.property, "rack=a"))
    usage = _read_usage(arguments.usage)
    selection = select(arguments.config, settings_flags(arguments), warn, source=COMMAND_LINE)
    prefixes = sorted({"lookup.", *(entry.prefix for entry in selection.settings.brokers)})
    for key, prefix in product(properties, prefixes):
        if key.startswith(prefix) and key != prefix:
            bare = key.removeprefix(prefix)
            warn(f'--property {key}: "{prefix}" is the prefix of properties that brokers publish; clients send {bare}')
    result = explain_selected(
        selection,
        arguments.topic,
        properties=properties,
        client=arguments.client,
        cluster=arguments.cluster,
        at_us=arguments.at_us,
        usage=usage,
        policy=arguments.policy,
        warn=warn,
    )
    if arguments.format == "json":
        print_json(result.document())
        return 0
    console = data_console()
    _print_request(console, result.scene)
    if result.answered_without_policy:
        console.print(plain(result.answered_without_policy))
    for explanation in result.policies.values():
        print_explanation(console, explanation)
    by_name = {policy.name: policy for policy in selection.policies}
    policies = [by_name[name] for name in result.policies]
    for sentence in _warn_about_unread(result.scene, policies, properties):
        note(f"note: {sentence}")
    readers = [policy.name for policy in policies if "view.load" in policy.reads]
    if readers and not usage:
        note(
            f"note: {', '.join(readers)} read load, of which nothing is known here; --usage BROKER=USAGE supposes some"
        )
    return 0


def _warn_about_unread(scene: Scene, policies: Sequence[Policy], properties: Mapping[str, str]) -> Iterator[str]:
    reads = frozenset[str]().union(*(policy.reads for policy in policies))
    if not policies or "properties" in reads:
        return
    read = {name.partition(".")[2] for name in reads if name.startswith("properties.")}
    for key in sorted(properties.keys() - read):
        guess = closest(key, read - scene.request.properties.keys())
        hint = f"; did you mean {guess}?" if guess else f"; they read {join_names(sorted(read))}" if read else ""
        yield f"--property {key}: no policy here reads it{hint}"


def _read_usage(written: Sequence[str]) -> dict[str, float]:
    usage_by_broker = {}
    for broker, text in pairs("--usage", written, "broker-1:8080=0.7"):
        try:
            usage = float(text)
        except ValueError:
            usage = math.nan
        if not 0.0 <= usage < math.inf:  # which is false of NaN as well
            raise SettingsError(f"--usage: {text!r} is not a number of at least 0, like 0.7")
        usage_by_broker[broker] = usage
    return usage_by_broker


def _print_request(console: Console, scene: Scene) -> None:
    request = scene.request
    properties = ", ".join(f"{key}={value}" for key, value in sorted(request.properties.items())) or "none"
    at = f" at {time_text(scene.at_us)}" if scene.at_us else ""
    for name, value in (
        ("topic", str(request.topic)),
        ("bundle", request.bundle),
        ("properties", properties),
        ("cluster", scene.cluster),
        ("brokers", f"{int(scene.registered.sum())} of {len(scene.roster)} registered{at}"),
    ):
        console.print(plain(f"{name + ':':<12}{value}"))


COMMAND = Command(
    name="explain",
    examples=(
        ("lookup explain evaluation.toml --topic orders --property rack=a", "every policy's answer to one lookup"),
        ("lookup explain evaluation.toml --topic orders --usage '*=0.5'", "with half-full brokers"),
        ("lookup explain report --topic orders", "the owners of the topic's bundle in a run"),
        ("lookup explain report --policy stock --at 2026-01-01T12:00:00Z", "the shedder's cycle at that time"),
        ("lookup explain report --decision east/stock/1/0", "a decision of the run"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
