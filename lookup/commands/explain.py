"""`lookup explain`: why every policy answers one request as it does."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from rich.console import Console

from lookup.commands.options import Command, Parser, add_config, add_format, cluster, moment, pairs, settings_flags
from lookup.commands.scene import Asked, Scene, scene_of
from lookup.commands.selection import select
from lookup.commands.streams import data_console, plain, plain_table, print_json, say, warn
from lookup.engine.explain import Explanation, explain
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.model.decision import BrokerVote
from lookup.model.names import is_internal_topic, pinned_broker
from lookup.model.request import LookupRequest
from lookup.model.time import time_text
from lookup.settings import EvaluationFile

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
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
        help="load of a broker, 1.0 is full; repeatable; without it no broker has reported any",
    )
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    asked = Asked(
        topic=arguments.topic,
        properties=dict(pairs("--property", arguments.property, "rack=a")),
        client=arguments.client,
        cluster=arguments.cluster,
        at_us=arguments.at,
        usage=dict(_usages(arguments.usage)),
    )
    selection = select(arguments.config, settings_flags(arguments))
    _warn_of_prefixes(selection.settings, asked.properties)
    scene = scene_of(selection.settings, asked)
    special = _answered_without_policy(scene.request)
    policies = () if special else selection.policies
    explanations = [explain(policy, scene.request, scene.instant(policy)) for policy in policies]
    if arguments.format == "json":
        print_json(_json(scene, special, explanations))
    else:
        _print(scene, special, explanations)
        _hint(policies, asked)
    return 0


def _print(scene: Scene, special: str | None, explanations: Sequence[Explanation]) -> None:
    console = data_console()
    _print_request(console, scene)
    if special:
        console.print(plain(special))
    for explanation in explanations:
        _print_explanation(console, explanation)


def _usages(written: Sequence[str]) -> Iterator[tuple[str, float]]:
    for broker, text in pairs("--usage", written, "broker-1:8080=0.7"):
        try:
            usage = float(text)
        except ValueError:
            usage = math.nan
        if not 0.0 <= usage < math.inf:
            raise SettingsError(f"--usage: {text!r} is not a number of at least 0, like 0.7")
        yield broker, usage


def _warn_of_prefixes(settings: EvaluationFile, properties: Iterable[str]) -> None:
    prefixes = sorted({"lookup.", *(entry.prefix for entry in settings.brokers)})
    for key, prefix in product(properties, prefixes):
        if key.startswith(prefix) and key != prefix:
            bare = key.removeprefix(prefix)
            warn(f'--property {key}: "{prefix}" is the prefix of what brokers publish; clients send {bare}')


def _answered_without_policy(request: LookupRequest) -> str | None:
    if request.topic is not None and is_internal_topic(request.topic):
        return "This topic is the load manager's own; the leader serves it and no policy is asked."
    broker = pinned_broker(request.namespace)
    return None if broker is None else f"The broker in the namespace's name serves it ({broker}); no policy is asked."


def _hint(policies: Sequence[Policy], asked: Asked) -> None:
    readers = [policy.name for policy in policies if "view.load" in policy.reads]
    if readers and not asked.usage:
        say(f"note: {', '.join(readers)} read load, of which nothing is known here; --usage BROKER=USAGE supposes some")


def _print_request(console: Console, scene: Scene) -> None:
    request = scene.request
    properties = ", ".join(f"{key}={value}" for key, value in sorted(request.properties.items())) or "none"
    for name, value in (
        ("topic", str(request.topic)),
        ("bundle", request.bundle),
        ("properties", properties),
        ("cluster", scene.cluster),
        ("brokers", f"{int(scene.registered.sum())} of {len(scene.roster)} registered{_when(scene)}"),
    ):
        console.print(plain(f"{name + ':':<12}{value}"))


def _when(scene: Scene) -> str:
    return f" at {time_text(scene.at_us)}" if scene.at_us else ""


def _print_explanation(console: Console, explanation: Explanation) -> None:
    console.print()
    console.print(plain(f"policy {explanation.policy}", style="bold"))
    candidates = sorted((vote for vote in explanation.votes if vote.reason is None), key=_by_odds)
    if candidates:
        scorers = [f"{name} × {weight:g}" for name, weight in explanation.weights.items()]
        rows = [_row(vote, explanation.weights) for vote in candidates]
        plain_table(console, ("broker", "odds", "score", *scorers), rows)
    for line in (*_rejections(explanation), *_conclusion(explanation)):
        console.print(plain(line), soft_wrap=not console.is_terminal)


def _by_odds(vote: BrokerVote) -> tuple[float, float, str]:
    return -vote.probability, -(vote.score or 0.0), vote.broker


def _row(vote: BrokerVote, weights: Mapping[str, float]) -> tuple[str, ...]:
    scores = [f"{vote.scores[name]:.4f}" if name in vote.scores else "" for name in weights]
    return vote.broker, f"{vote.probability:.4f}", "" if vote.score is None else f"{vote.score:.4f}", *scores


def _rejections(explanation: Explanation) -> Iterator[str]:
    for vote in explanation.votes:
        if vote.reason is not None:
            why = f"{vote.reason.value}: {vote.detail}" if vote.detail else vote.reason.value
            yield f"Rejected: {vote.broker} by {why}"


def _conclusion(explanation: Explanation) -> Iterator[str]:
    if explanation.failure:
        yield f"A part failed: {explanation.failure}"
    if explanation.declined is not None:
        yield f"Declined: {explanation.declined.value}."
        return
    chosen = explanation.chosen
    shown = ", ".join(f"{vote.broker} ({vote.probability:.4f})" for vote in chosen[:5])
    yield f"Chosen: {shown}{f' and {len(chosen) - 5} more' if len(chosen) > 5 else ''}."
    if explanation.margin is None:
        yield f"Margin: none, all {explanation.ties} candidates have the same score."
    else:
        tied = "" if explanation.ties == 1 else f"; {explanation.ties} brokers share the best score"
        yield f"Margin: {explanation.margin:.4f} to the next best score{tied}."


def _json(scene: Scene, special: str | None, explanations: Sequence[Explanation]) -> dict[str, Any]:
    request = scene.request
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
        "policies": [_explanation_json(explanation) for explanation in explanations],
    }


def _explanation_json(explanation: Explanation) -> dict[str, Any]:
    return {
        "policy": explanation.policy,
        "declined": None if explanation.declined is None else explanation.declined.value,
        "margin": explanation.margin,
        "ties": explanation.ties,
        "failure": explanation.failure,
        "weights": dict(explanation.weights),
        "brokers": [
            {
                "broker": vote.broker,
                "reason": None if vote.reason is None else vote.reason.value,
                "detail": vote.detail,
                "score": vote.score,
                "scores": dict(vote.scores),
                "probability": vote.probability,
            }
            for vote in explanation.votes
        ],
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
    ),
    add_arguments=_add_arguments,
    run=_run,
)
