"""Carry out `lookup inspect`, which prints a log's contents before a replay, and mismatches with settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lookup.api.selection import select
from lookup.commands.options import (
    COMMAND_LINE,
    Command,
    Parser,
    add_format,
    add_set,
    require_extra,
    settings_flags,
    settings_path,
)
from lookup.commands.streams import data_console, plain, print_json, progress, warn
from lookup.errors import SettingsError
from lookup.model.quoting import quantity
from lookup.model.time import time_text

if TYPE_CHECKING:
    from lookup.replay.inspecting import ClusterInspection, Inspection

__all__ = ["COMMAND"]

#: Entries of a breakdown that are printed.
_SHOWN = 5


def _add_arguments(parser: Parser) -> None:
    parser.need("lookups", nargs="?", metavar="LOOKUPS", help="LOOKUPS table, a Parquet file or a folder of them")
    parser.add_argument(
        "config",
        nargs="?",
        type=settings_path,
        metavar="EVALUATION",
        help="TOML file of an evaluation, or shipped:NAME",
    )
    add_set(parser, "evaluation.session_s=300")
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.config is None and arguments.set:
        raise SettingsError("--set: changes a setting of an evaluation; give EVALUATION as well")
    require_extra("inspect", "pyspark", "pyarrow", "pandas")
    from lookup.api.inspecting import inspect_selected

    selection = None
    if arguments.config is not None:
        flags = {**settings_flags(arguments), "inputs.lookups": arguments.lookups}
        selection = select(arguments.config, flags, warn, source=COMMAND_LINE)
    with progress("reading the log") as report:
        inspection = inspect_selected(arguments.lookups, selection, report)
    if arguments.format == "json":
        print_json(inspection.document())
        return 0
    _print(inspection)
    if arguments.config is not None and not inspection.findings:
        data_console().print(plain("Nothing in the settings is without effect on this log."))
    return 0


def _print(inspection: Inspection) -> None:
    console = data_console()
    refused = sum(inspection.quarantined.values())
    console.print(plain(f"{quantity(inspection.rows, 'row')}, of which {refused:,} cannot be used"))
    for reason, count in list(inspection.quarantined.items())[:_SHOWN]:
        console.print(plain(f"  {count:,}: {reason}"), soft_wrap=True)
    for cluster in inspection.clusters:
        console.print()
        console.print(plain(f"cluster {cluster.cluster}"))
        rows = list(_iter_rows(cluster))
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            console.print(plain(f"  {name:<{width}}  {text}"), soft_wrap=True)
    if inspection.findings:
        console.print()
        for finding in inspection.findings:
            console.print(plain(f"{finding.kind}: {finding.sentence}"), soft_wrap=True)


def _iter_rows(cluster: ClusterInspection) -> Iterable[tuple[str, str]]:
    minutes = cluster.per_minute
    yield "lookups", f"{cluster.lookups:,}, from {time_text(cluster.first_us)} to {time_text(cluster.last_us)}"
    # Not demand, since only the lookup after a redirect counts, and brokers' own topics do not.
    own = f"{quantity(cluster.internal, 'lookup')} of topics that brokers use themselves"
    yield "left out", f"{quantity(cluster.redirects, 'redirect')}, {own}"
    most = f"95 % at most {minutes['p95']:,.0f}, at most {minutes['max']:,.0f}"
    yield "per minute", f"{minutes['mean']:,.1f} on average, median {minutes['median']:,.0f}, {most}"
    yield "brokers", f"{cluster.brokers:,}"
    yield "topics", f"{cluster.topics:,}"
    yield "tenants", _format_shares(cluster.tenants, cluster.lookups)
    yield "namespaces", _format_shares(cluster.namespaces, cluster.lookups)
    yield (
        "bundles",
        f"{cluster.busy_bundles:,} of {cluster.bundles:,} have lookups; most in "
        + _format_shares(cluster.top_bundles, cluster.lookups),
    )
    yield "clients", _format_shares(cluster.clients, cluster.lookups) or "not named in the log"
    for key, values in cluster.labels.items():
        lacking = _format_shares(cluster.unmatched.get(key, {}), cluster.lookups)
        shares = _format_shares(values, cluster.lookups, rest="none or others")
        yield f"property {key}", shares + (f"; no broker has {lacking}" if lacking else "")
    if not cluster.labels:
        yield "properties", "clients send none"
    if cluster.isolated:
        share = (
            f"{cluster.outside:,} of {quantity(cluster.isolated, 'lookup')}, {cluster.outside / cluster.isolated:.1%}"
        )
        yield (
            "isolation",
            f"{share}, in {quantity(cluster.outside_bundles, 'bundle')}, answered outside of their policy",
        )
    session = cluster.session
    if session is None:
        yield "load", "no broker is known: give EVALUATION, with the brokers of the log"
        return
    yield "mean load", f"{cluster.broker_load or 0.0:,.4g} weight/s of a broker, to be compared with its capacity"
    yield "load", f"session_s = {session.session_s}: a broker serves {session.expected:,.1f} lookups in that time"
    chance = f"{session.suggested_expected:,.1f} lookups, of which chance is {session.suggested_expected**-0.5:.0%}"
    yield "suggested", f"session_s = {session.suggested_s}: {chance}"


def _format_shares(counts: Mapping[str, int], total: int, *, rest: str = "others") -> str:
    """Format the greatest shares, and the remainder under a name of its own."""
    named = [(name, count) for name, count in counts.items() if name]
    others = counts.get("", 0) + sum(count for _, count in named[_SHOWN:])
    parts = [f"{name} {count / total:.1%}" for name, count in named[:_SHOWN]]
    return ", ".join([*parts, *([f"{rest} {others / total:.1%}"] if others and parts else [])])


COMMAND = Command(
    name="inspect",
    examples=(
        ("lookup inspect sample/lookups", "demand by tenant, namespace, bundle and label, with a suggested session_s"),
        ("lookup inspect sample/lookups evaluation.toml", "and the settings without effect on this log"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
