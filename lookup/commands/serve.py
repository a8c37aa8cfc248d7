"""Carry out `lookup serve`: run the decision server."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING

from lookup.commands.cluster_flags import TOKEN_VARIABLE
from lookup.commands.options import Command, Parser, add_set, require_extra, settings_flags, settings_path
from lookup.commands.streams import say
from lookup.errors import InputError
from lookup.settings import CollectSection, ServingFile, load_serving

if TYPE_CHECKING:
    from lookup.collect.observing import Record
    from lookup.collect.sources import AdminRest, Credentials, Source

__all__ = ["COMMAND", "admin_rest", "credentials_of", "load_settings", "state_topic"]


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
    require_extra("serve", "aiohttp", "prometheus_client", "pyarrow", extra="serve")
    from lookup.serve.running import serve

    asyncio.run(serve(partial(load_settings, arguments), say, state_topic, admin_rest))
    return 0


def load_settings(arguments: argparse.Namespace) -> ServingFile:
    """Read the settings of a server, flags first."""
    flags = {"serving.bind": arguments.bind, "serving.port": arguments.port, **settings_flags(arguments)}
    return load_serving(arguments.config, flags)


@contextmanager
def state_topic(section: CollectSection, records: Queue[Record]) -> Iterator[Source]:
    """Make the source of the state topic, and close its client at the end."""
    credentials = credentials_of(section)
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
    examples=(
        ("lookup serve --config serving.toml", "until Ctrl-C; SIGHUP loads the settings again"),
        ("lookup serve --config serving.toml --port 0 --set serving.flush_s=1", "on a free port, which the log names"),
        (
            "lookup serve --config serving.toml --set topics.catalog=topics.db --set topics.lister=indexed",
            "lists topics as well, out of this catalog and by this lister",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
