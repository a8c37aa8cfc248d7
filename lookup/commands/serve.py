"""Carry out `lookup serve`, which runs the decision server."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING

from lookup.commands.cluster_flags import add_cluster, credentials_of, serving_of
from lookup.commands.options import Command, Parser, add_config, require_extra
from lookup.commands.streams import say
from lookup.settings import CollectSection, ServingFile

if TYPE_CHECKING:
    from lookup.collect.observing import Record
    from lookup.collect.sources import AdminRest, Source

__all__ = ["COMMAND", "admin_rest", "load_settings", "state_topic"]


def _add_arguments(parser: Parser) -> None:
    add_config(parser, "SETTINGS", "TOML file of the server, read again after SIGHUP", "serving.flush_s=1")
    add_cluster(parser)
    parser.add_argument("--bind", metavar="ADDRESS", help="address of the server (default: serving.bind, 127.0.0.1)")
    parser.add_argument("--port", metavar="PORT", help="port of the server (default: serving.port, 8900)")


def _run(arguments: argparse.Namespace) -> int:
    require_extra("serve", "aiohttp", "prometheus_client", "pyarrow", extra="serve")
    from lookup.serve.running import serve

    asyncio.run(serve(partial(load_settings, arguments), say, state_topic, admin_rest))
    return 0


def load_settings(arguments: argparse.Namespace) -> ServingFile:
    """Read the settings of a server, flags first."""
    return serving_of(arguments, {"serving.bind": arguments.bind, "serving.port": arguments.port})


@contextmanager
def state_topic(section: CollectSection, records: Queue[Record]) -> Iterator[Source]:
    """Make the source of the state topic, and close its client at the end."""
    require_extra("serve", "kazoo", "pulsar", extra="collect")
    credentials = credentials_of(section, "collect")
    from lookup.collect.sources import PulsarTopicSource, pulsar_client
    from lookup.logs.readers.system_topics import STATE_TOPIC

    assert section.service_url is not None
    client = pulsar_client(section.service_url, credentials)
    try:
        yield PulsarTopicSource(STATE_TOPIC, client, records)
    finally:
        client.close()


def admin_rest(section: CollectSection) -> AdminRest:
    """Make the source of topics."""
    require_extra("serve", "kazoo", "pulsar", extra="collect")
    credentials = credentials_of(section, "collect")
    from lookup.collect.sources import AdminRest

    assert section.admin is not None
    return AdminRest(section.admin, credentials)


COMMAND = Command(
    name="serve",
    examples=(
        ("lookup serve serving.toml", "serve until Ctrl-C. SIGHUP reads the settings again"),
        ("lookup serve serving.toml --cluster cluster.toml", "serve with the owners of all bundles"),
        ("lookup serve serving.toml --set topics.catalog=topics.db", "list topics as well"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
