"""Carry out `lookup serve`: run the decision server."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Queue
from typing import TYPE_CHECKING

from lookup.api.files import PAGE_PACKAGES
from lookup.commands.cluster_flags import TOKEN_VARIABLE
from lookup.commands.options import Command, Parser, add_set, require_extra, settings_flags, settings_path
from lookup.commands.streams import say
from lookup.errors import InputError, SettingsError
from lookup.settings import CollectSection, ServingFile, load_serving

if TYPE_CHECKING:
    from lookup.collect.collector import Endpoints
    from lookup.collect.observing import Record
    from lookup.collect.sources import AdminRest, Credentials, Source
    from lookup.moving.applying import Applied
    from lookup.moving.leading import Leader
    from lookup.moving.plan import MovePlan
    from lookup.serve.balancing import Control

__all__ = ["COMMAND", "credentials_of", "require_planning"]


def _add_arguments(parser: Parser) -> None:
    parser.need(
        "--config",
        type=settings_path,
        metavar="FILE",
        help="settings of the server, a TOML file; SIGHUP loads it again",
    )
    parser.add_argument("--bind", metavar="ADDRESS", help="address to listen on; default: serving.bind, 127.0.0.1")
    parser.add_argument("--port", metavar="PORT", help="port to listen on; default: serving.port, 8900")
    add_set(parser, "serving.flush_s=1")


def _run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C, then write what waits and return 0."""
    require_extra("serve", "aiohttp", "jinja2", "prometheus_client", "pyarrow", extra="serve")
    from lookup.report.serving import html_overview
    from lookup.serve.balancing import Moves
    from lookup.serve.running import serve

    flags = {"serving.bind": arguments.bind, "serving.port": arguments.port, **settings_flags(arguments)}

    def load() -> ServingFile:
        """Read the settings, and refuse a policy that cannot plan now, not at the first look at the cluster."""
        settings = load_serving(arguments.config, flags)
        require_planning(settings)
        if settings.balance is not None and settings.balance.mode == "apply":
            _endpoints(settings)
        return settings

    moves = Moves(_proposed, _leader, _carried_out, _has_shedder)
    asyncio.run(serve(load, say, _state_topic, _admin_rest, moves, html_overview))
    return 0


def require_planning(settings: ServingFile) -> None:
    """Refuse a policy that cannot plan.

    Raises:
        SettingsError: with the key that names it.
    """
    if settings.balance is None:
        return
    require_extra("serve", *PAGE_PACKAGES, "kazoo", "pulsar", extra="collect,report")
    from lookup.api.moving import planning_policy

    try:
        planning_policy(settings.balance.policy, settings.plugin_files)
    except SettingsError as error:
        raise SettingsError([f"balance.policy: {text.removeprefix('policy: ')}" for text in error.problems]) from None


def _proposed(settings: ServingFile) -> tuple[MovePlan, list[str]]:
    """Make a plan of what is recorded, and write it with its page over the one before.

    Returns:
        It, and those of its brokers whose loads are of before they took a bundle.

    Raises:
        PulsarLookupError: in one sentence, if none can be made.
    """
    from lookup.api.moving import Plan, planning_policy
    from lookup.moving.origins import with_lookups
    from lookup.moving.plan import Limits
    from lookup.moving.planning import make_plan
    from lookup.moving.reading import recorded
    from lookup.moving.state import state_of

    section = settings.balance
    assert section is not None
    policy = planning_policy(section.policy, settings.plugin_files)
    rows = recorded(section.record, cluster=settings.serving.cluster)
    if policy.asks_origins:
        try:
            rows = with_lookups(rows, f"{settings.serving.record}/lookups")
        except InputError as error:
            # None may have been recorded yet; balance needs none.
            rows = replace(rows, missing=(*rows.missing, f"where clients are is not known: {error}"))
    state = state_of(rows)
    made = make_plan(state, policy, Limits(max_moves=section.max_moves, max_weight=section.max_weight))
    written = Plan(made).write(section.plans, force=True).plan
    return written, state.unmeasured(end for step in made.steps for end in (step.source, step.destination))


def _endpoints(settings: ServingFile) -> Endpoints:
    """Return where the cluster is reached whose bundles are moved; errors as of `credentials_of`."""
    from lookup.collect.collector import Endpoints

    assert settings.collect is not None
    credentials = credentials_of(settings.collect)
    where = settings.collect.admin, settings.collect.service_url
    return Endpoints(settings.serving.cluster, *where, credentials=credentials)


def _leader(settings: ServingFile, say: Callable[[str], None]) -> Leader:
    """Build what asks for the lock of the servers that move bundles."""
    from lookup.moving.leading import Leader

    assert settings.balance is not None
    assert settings.balance.zookeeper is not None
    assert settings.collect is not None
    cluster, rest = settings.serving.cluster, _admin_rest(settings.collect)
    return Leader(settings.balance.zookeeper, cluster, rest, credentials_of(settings.collect), say)


def _has_shedder(settings: ServingFile) -> bool:
    from lookup.moving.shedding import stock_shedding

    assert settings.collect is not None
    return stock_shedding(_admin_rest(settings.collect))


def _carried_out(settings: ServingFile, plan: MovePlan, control: Control) -> Applied:
    """Make the moves of a plan, as `lookup apply --yes` does.

    Raises:
        PulsarLookupError: as of `lookup.apply`.
    """
    from lookup.api.applying import How, apply
    from lookup.moving.applying import Pace
    from lookup.moving.guards import Tolerances

    section = settings.balance
    assert section is not None
    tolerances = Tolerances(
        section.max_load_age_s,
        section.max_publish_latency_ms,
        section.max_backlog,
        section.prometheus,
        section.guards,
    )
    how = How(
        Pace(section.interval_s, section.in_flight),
        tolerances,
        freeze_shedding=section.freeze_shedding,
        stop=control.stop,
        say=control.say,
        guards=control.guards,
        share=control.share,
    )
    return apply(plan, _endpoints(settings), yes=True, journal=control.journal, how=how)


@contextmanager
def _state_topic(section: CollectSection, records: Queue[Record]) -> Iterator[Source]:
    """Make the source of the state topic, and close its client at the end.

    Raises:
        SettingsError, InputError: as `credentials_of` does.
    """
    credentials = credentials_of(section)
    from lookup.collect.sources import PulsarTopicSource, pulsar_client
    from lookup.logs.readers.system_topics import STATE_TOPIC

    assert section.service_url is not None
    client = pulsar_client(section.service_url, credentials)
    try:
        yield PulsarTopicSource(STATE_TOPIC, client, records)
    finally:
        client.close()


def _admin_rest(section: CollectSection) -> AdminRest:
    """Make the source of topics.

    Raises:
        SettingsError, InputError: as `credentials_of` does.
    """
    credentials = credentials_of(section)
    from lookup.collect.sources import AdminRest

    assert section.admin is not None
    return AdminRest(section.admin, credentials)


def credentials_of(section: CollectSection) -> Credentials:
    """Read what the settings and the environment prove us by.

    Raises:
        SettingsError: if a package is missing.
        InputError: if a file of the settings is not what it should be.
    """
    require_extra("serve", "kazoo", "pulsar", extra="collect")
    from lookup.collect.sources import Credentials

    token = os.environ.get(TOKEN_VARIABLE) or None
    credentials = Credentials(section.token_file, token, section.tls_ca, section.tls_cert, section.tls_key)
    try:
        # Before anything connects: to the client's own threads a bad file is no more than a refusal.
        credentials.current_token()
        credentials.tls_context()
    except OSError as error:
        raise InputError(f"collect: {error.filename or section.tls_ca} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"collect: {error}") from None
    return credentials


COMMAND = Command(
    name="serve",
    summary="answer the brokers of a live cluster by a policy, and record lookups and decisions",
    examples=(
        ("lookup serve --config serving.toml", "until Ctrl-C; SIGHUP loads the settings again"),
        (
            "lookup serve --config serving.toml --port 0 --set serving.flush_s=1",
            "on a free port, which the log names",
        ),
        (
            "lookup serve --config serving.toml --set topics.catalog=topics.db --set topics.lister=indexed",
            "lists topics as well, out of this catalog and by this lister",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
