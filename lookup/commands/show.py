"""`lookup config show`: an evaluation as the framework understands it, and where every value comes from.

Settings of topics, which are a file of their own, are shown by `show_topics.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from lookup.commands.options import Command, Parser, add_config, add_format, settings_flags
from lookup.commands.show_topics import ANY_SETTINGS, is_about_topics, set_by, show_topics
from lookup.commands.streams import print_json, stdout, warn
from lookup.commands.toml import to_toml
from lookup.engine.build import build_policies, policy_table
from lookup.engine.plugins import load_plugins
from lookup.model.quoting import one_line
from lookup.model.time import time_text
from lookup.settings import (
    BrokerInterval,
    EvaluationFile,
    broker_intervals,
    describe,
    load_evaluation,
    load_manager_keys,
    load_manager_sources,
    policy_warnings,
)

__all__ = ["COMMAND"]

_INTRODUCTION = "# Settings as resolved; behind each value stands what set it. Paths are absolute.\n\n"


def _add_arguments(parser: Parser) -> None:
    add_config(parser, ANY_SETTINGS)
    parser.add_argument(
        "--resolved",
        action="store_true",
        help="defaults too, what set each value, and what the brokers register; without it only what is set",
    )
    add_format(parser, "toml", "json")


def _run(arguments: argparse.Namespace) -> int:
    if is_about_topics(arguments.config):
        show_topics(arguments)
        return 0
    settings = load_evaluation(arguments.config, settings_flags(arguments))
    for sentence in policy_warnings(settings.policies):
        warn(sentence)
    if arguments.format == "json":
        print_json(_json(settings, is_resolved=arguments.resolved))
    elif arguments.resolved:
        stdout().write(_INTRODUCTION + to_toml(_resolved(settings), _Sources(settings)) + _registered(settings))
    else:
        stdout().write(to_toml(_with_parts(settings.model_dump(exclude_unset=True), settings)))
    return 0


class _Sources:
    """Says of a place what set its value; of a value made of several, all that did."""

    def __init__(self, settings: EvaluationFile) -> None:
        self._sources = {path: source for path, _, source in describe(settings)}
        # What stands in a policy that was read from a broker.conf; its name and what was written beside do not.
        self._read = {
            ("policies", place, key): policy.conf_file
            for place, policy in enumerate(settings.policies)
            for key in ("filters", "selector", "shedder", "splitter", "on_error")
            if policy.conf_file is not None and f"policies[{place}].{key}" not in settings.sources
        }

    def __call__(self, loc: tuple[str | int, ...]) -> str:
        return self._read[loc] if loc in self._read else set_by(self._sources, loc)


def _resolved(settings: EvaluationFile) -> dict[str, Any]:
    """Return every value, but for the first number of what is no template, which may not be written."""
    values = settings.model_dump()
    for entry in values["brokers"]:
        if entry["count"] is None:
            del entry["first"]
    return _with_parts(values, settings)


def _with_parts(values: dict[str, Any], settings: EvaluationFile) -> dict[str, Any]:
    """Write out the parts of policies that were read from a `broker.conf`, in place of its keys."""
    if any(policy.conf_file for policy in settings.policies):
        registry = load_plugins(settings.plugin_files)
        conf, sources = load_manager_keys(settings), load_manager_sources(settings)
        values["policies"] = [
            policy_table(*build_policies(registry, [policy], conf, sources)) if policy.conf_file else entry
            for policy, entry in zip(settings.policies, values["policies"], strict=True)
        ]
    return values


def _json(settings: EvaluationFile, *, is_resolved: bool) -> dict[str, Any]:
    if not is_resolved:
        return {"settings": _with_parts(settings.model_dump(mode="json", exclude_unset=True), settings)}
    return {
        "settings": _with_parts(settings.model_dump(mode="json"), settings),
        "sources": {path: source for path, _, source in describe(settings)},
        "registered": [
            {
                "cluster": cluster,
                "broker": interval.broker.id,
                "from": time_text(interval.from_us),
                "until": time_text(interval.until_us),
                "capacity": interval.broker.capacity,
                "lookup_data": json.loads(interval.broker.lookup_data.to_json()),
            }
            for cluster, interval in _intervals(settings)
        ],
    }


def _registered(settings: EvaluationFile) -> str:
    records = [f"{_place(cluster, one)}: {one.broker.lookup_data.to_json()}" for cluster, one in _intervals(settings)]
    lines = [f"# {one_line(record)}" for record in records]
    return "\n".join(["", "# What the brokers register:", *lines, ""]) if lines else ""


def _intervals(settings: EvaluationFile) -> Iterator[tuple[str | None, BrokerInterval]]:
    """Yield brokers by cluster; None stands for all clusters where no broker is tied to one."""
    named = {name for entry in settings.brokers for name in entry.clusters or ()}
    clusters: list[str | None] = [*sorted(named)]
    for cluster in clusters or [None]:
        for interval in broker_intervals(settings, cluster or ""):
            yield cluster, interval


def _place(cluster: str | None, interval: BrokerInterval) -> str:
    place = f"{interval.broker.id} in {cluster or 'every cluster'}"
    begin = "" if interval.from_us is None else f" from {time_text(interval.from_us)}"
    return place + begin + ("" if interval.until_us is None else f" until {time_text(interval.until_us)}")


COMMAND = Command(
    name="config show",
    summary="print an evaluation, or settings of topics, as they are understood",
    examples=(
        ("lookup config show --config evaluation.toml", "what is set, files that it names read into it"),
        ("lookup config show --config evaluation.toml --resolved", "every value and what set it"),
        ("lookup config show --config topics.toml --resolved", "the same of settings of topics, or of a broker.conf"),
        ("LOOKUP_EVALUATION__TICK_S=30 lookup config show --config evaluation.toml --resolved", "what a variable does"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
