"""Carry out `lookup explain`: print why every policy answers one request as it does, without Spark.

The request is put to a cluster with the brokers that are registered at one moment. No broker owns a bundle yet, and
load is known only as far as `--usage` supposes it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from rich.console import Console

from lookup.api.explaining import Scene, answered_without_policy, changes_for, chosen_policies, scene_of
from lookup.api.selection import select
from lookup.commands.options import (
    COMMAND_LINE,
    Command,
    Parser,
    add_config,
    add_format,
    cluster,
    moment,
    pairs,
    settings_flags,
)
from lookup.commands.streams import data_console, plain, plain_table, print_json, say, warn
from lookup.engine.edits import Change, Edit, cost_of
from lookup.engine.explain import Explanation, explain
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.model.quoting import closest, listed
from lookup.model.time import time_text

__all__ = ["COMMAND", "add_arguments", "run"]

#: Brokers that a conclusion names; of many with equal odds the table has the rest.
_SHOWN_BROKERS = 5


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup explain`."""
    add_config(parser)
    parser.need(
        "--topic", metavar="TOPIC", help="topic of the lookup; a short name means persistent://public/default/NAME"
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="lookup property the client sends; repeatable",
    )
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME",
        help="policy to explain; repeatable; default: all of the evaluation",
    )
    parser.add_argument("--client", metavar="CLIENT", help="client, by which [[clients]] adds properties")
    parser.add_argument(
        "--cluster", type=cluster, metavar="NAME", help="cluster that is asked; needed where there are several"
    )
    parser.add_argument(
        "--at",
        type=moment,
        metavar="TIME",
        help="moment that decides who is registered, like 2026-01-01T12:00:00Z; default: when a broker last registered",
    )
    parser.add_argument(
        "--usage",
        action="append",
        default=[],
        metavar="BROKER=USAGE",
        help="load of a broker, 1.0 is full, of all others as *=0.5; repeatable; without it no broker has reported any",
    )
    parser.add_argument(
        "--wins",
        metavar="BROKER",
        help="also find the smallest change of a property, load or weight after which this broker is preferred",
    )
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Explain one lookup, policy by policy, and return 0.

    Raises:
        SettingsError: for mistakes in the evaluation, or a cluster or broker that is unknown.
        InvalidNameError: if the topic's name is malformed.
        InputError: if the BROKERS table cannot be used.
    """
    properties = dict(pairs("--property", arguments.property, "rack=a"))
    usage = _usage(arguments.usage)
    selection = select(arguments.config, settings_flags(arguments), warn, source=COMMAND_LINE)
    prefixes = sorted({"lookup.", *(entry.prefix for entry in selection.settings.brokers)})
    for key, prefix in product(properties, prefixes):
        if key.startswith(prefix) and key != prefix:
            bare = key.removeprefix(prefix)
            warn(f'--property {key}: "{prefix}" is the prefix of what brokers publish; clients send {bare}')
    chosen = chosen_policies(selection.policies, arguments.policy)
    scene = scene_of(
        selection.settings,
        arguments.topic,
        properties=properties,
        client=arguments.client,
        cluster=arguments.cluster,
        at_us=arguments.at,
        usage=usage,
        warn=warn,
    )
    special = answered_without_policy(scene.request)
    policies = () if special else chosen
    explanations = [explain(policy, scene.request, scene.instant(policy)) for policy in policies]
    wins = arguments.wins
    changes = [None if wins is None else changes_for(scene, policy, wins) for policy in policies]
    if arguments.format == "json":
        print_json(_json(scene, special, explanations, changes))
        return 0
    console = data_console()
    _print_request(console, scene)
    if special:
        console.print(plain(special))
    for explanation, changed in zip(explanations, changes, strict=True):
        _print_explanation(console, explanation)
        if changed is not None:
            for line in _about_changes(explanation, arguments.wins, changed):
                console.print(plain(line), soft_wrap=not console.is_terminal)
    for sentence in _unread(scene, policies, properties):
        say(f"note: {sentence}")
    readers = [policy.name for policy in policies if "view.load" in policy.reads]
    if readers and not usage:
        say(f"note: {', '.join(readers)} read load, of which nothing is known here; --usage BROKER=USAGE supposes some")
    return 0


def _unread(scene: Scene, policies: Sequence[Policy], properties: Mapping[str, str]) -> Iterator[str]:
    """Say which properties of the request no policy reads, and which was probably meant."""
    reads = frozenset[str]().union(*(policy.reads for policy in policies))
    if not policies or "properties" in reads:
        return
    read = {name.partition(".")[2] for name in reads if name.startswith("properties.")}
    for key in sorted(properties.keys() - read):
        meant = closest(key, read - scene.request.properties.keys())
        hint = f"; did you mean {meant}?" if meant else f"; they read {listed(sorted(read))}" if read else ""
        yield f"--property {key}: no policy here reads it{hint}"


def _usage(written: Sequence[str]) -> dict[str, float]:
    """Read load / capacity by broker."""
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


def _print_explanation(console: Console, explanation: Explanation) -> None:
    console.print()
    console.print(plain(f"policy {explanation.policy}", style="bold"))
    # By odds, then by score, since policies that choose the best give all others odds of 0; ties by name.
    candidates = sorted(
        (vote for vote in explanation.votes if vote.reason is None),
        key=lambda vote: (-vote.probability, -(vote.score or 0.0), vote.broker),
    )
    if candidates:
        scorers = [f"{name} × {weight:g}" for name, weight in explanation.weights.items()]
        rows = []
        for vote in candidates:
            scores = [f"{vote.scores[name]:.4f}" if name in vote.scores else "" for name in explanation.weights]
            total = "" if vote.score is None else f"{vote.score:.4f}"
            rows.append((vote.broker, f"{vote.probability:.4f}", total, *scores))
        plain_table(console, ("broker", "odds", "score", *scorers), rows)
    for line in _sentences(explanation):
        # Soft: in a file or a pipe a reason stays one line, however long a plug-in words it.
        console.print(plain(line), soft_wrap=not console.is_terminal)


def _sentences(explanation: Explanation) -> Iterator[str]:
    for vote in explanation.votes:
        if vote.reason is not None:
            why = f"{vote.reason.value}: {vote.detail}" if vote.detail else vote.reason.value
            yield f"Rejected: {vote.broker} by {why}"
    if explanation.failure:
        yield f"A part failed: {explanation.failure}"
    if explanation.declined is not None:
        yield f"Declined: {explanation.declined.value}."
        return
    chosen = explanation.chosen
    shown = ", ".join(f"{vote.broker} ({vote.probability:.4f})" for vote in chosen[:_SHOWN_BROKERS])
    rest = f" and {len(chosen) - _SHOWN_BROKERS} more" if len(chosen) > _SHOWN_BROKERS else ""
    yield f"Chosen: {'one of, by odds: ' if len(chosen) > 1 else ''}{shown}{rest}."
    if explanation.margin is None:
        yield f"Margin: none, all {explanation.ties} candidates have the same score."
    else:
        tied = "" if explanation.ties == 1 else f"; {explanation.ties} brokers share the best score"
        yield f"Margin: {explanation.margin:.4f} to the next best score{tied}."


def _about_changes(explanation: Explanation, broker: str, changes: Sequence[Change]) -> Iterator[str]:
    best = explanation.chosen[:2]
    if best and best[0].broker == broker and (len(best) == 1 or best[0].probability > best[1].probability):
        yield f"{broker} is preferred as it is."
    elif not changes:
        yield f"No change of a property, a load or a weight that was tried makes {broker} preferred."
    else:
        yield f"{broker} would be preferred with any one of these, the smallest change first:"
    for change in changes:
        yield f"  {' and '.join(map(_edit_text, change))}"


def _edit_text(edit: Edit) -> str:
    before, after = _value_text(edit.before), _value_text(edit.after)
    if edit.kind == "load":
        return f"usage {after} of {edit.broker} (is {before})"
    if edit.kind == "weight":
        return f"weight {after} of {edit.key} (is {before})"
    who = "the client sends" if edit.kind == "client property" else f"{edit.broker} publishes"
    return f"{who} {edit.key}={after} (is {before})"


def _value_text(value: str | float | None) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else value


def _json(
    scene: Scene, special: str | None, explanations: Sequence[Explanation], changes: Sequence[Sequence[Change] | None]
) -> dict[str, Any]:
    request = scene.request
    policies = [explanation.document() for explanation in explanations]
    for document, changed in zip(policies, changes, strict=True):
        if changed is not None:
            document["smallest_changes"] = [
                {"cost": cost_of(change), "edits": [edit.document() for edit in change]} for change in changed
            ]
    return {
        "request": {
            "topic": request.topic,
            "bundle": request.bundle,
            "client": request.client,
            "properties": dict(sorted(request.properties.items())),
        },
        "cluster": scene.cluster,
        "at": time_text(scene.at_us),
        "answered_without_policy": special,
        "policies": policies,
    }


COMMAND = Command(
    name="explain",
    summary="explain, policy by policy, how one lookup is decided",
    examples=(
        (
            "lookup explain --config evaluation.toml --topic persistent://public/default/orders --property rack=a",
            "who was rejected and why, every score, the odds and the margin",
        ),
        (
            "lookup explain --config evaluation.toml --topic orders --client 10.1.2.3 --at 2026-01-01T12:00:00Z",
            "a client known by its address, the brokers of that moment",
        ),
        (
            "lookup explain --config evaluation.toml --topic orders --usage broker-a:8080=0.9 --format json",
            "with a supposed load, for a program",
        ),
        (
            "lookup explain --config evaluation.toml --topic orders --policy rack --usage '*=0.5' --wins broker-b:8080",
            "one policy, all brokers half full, and what would have to change for another broker",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
