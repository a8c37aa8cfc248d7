"""Carry out `lookup serve` and `lookup verify`: run the decision server, and take its recorded decisions again."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from queue import Queue
from typing import TYPE_CHECKING

from lookup.commands.cluster_flags import TOKEN_VARIABLE
from lookup.commands.options import (
    Command,
    Parser,
    add_format,
    add_master,
    add_plugin_files,
    add_set,
    require_extra,
    settings_flags,
    settings_path,
)
from lookup.commands.streams import data_console, plain, print_json, say
from lookup.errors import InputError
from lookup.model.quoting import quantity
from lookup.settings import CollectSection, load_serving

if TYPE_CHECKING:
    from lookup.collect.observing import Record
    from lookup.collect.sources import AdminRest, Credentials, Source
    from lookup.serve.verifying import Verified

__all__ = ["COMMANDS", "add_arguments", "credentials_of", "run"]

#: Exit code of `lookup verify` if a decision was not the same.
_DIFFERENT = 1


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup serve`."""
    parser.need(
        "--config",
        type=settings_path,
        metavar="FILE",
        help="settings of the server, a TOML file; SIGHUP loads it again",
    )
    parser.add_argument("--bind", metavar="ADDRESS", help="address to listen on; default: serving.bind, 127.0.0.1")
    parser.add_argument("--port", metavar="PORT", help="port to listen on; default: serving.port, 8900")
    add_set(parser, "serving.flush_s=1")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C, then write what waits and return 0."""
    require_extra("serve", "aiohttp", "prometheus_client", "pyarrow", extra="serve")
    from lookup.serve.running import serve

    flags = {"serving.bind": arguments.bind, "serving.port": arguments.port, **settings_flags(arguments)}
    asyncio.run(serve(lambda: load_serving(arguments.config, flags), say, _state_topic, _admin_rest))
    return 0


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


def _add_verify(parser: Parser) -> None:
    parser.need("record", nargs="?", metavar="RECORD", help="folder or URI in which `lookup serve` recorded")
    add_master(parser, "verify on Spark, with this master, like local[*]; default: in this process")
    add_plugin_files(parser, "parts of the policies")
    add_format(parser, "table", "json")


def _run_verify(arguments: argparse.Namespace) -> int:
    """Verify a record, print the share that agrees and what does not, and return 0, or 1 if anything does not."""
    require_extra("verify", "pyarrow", extra="serve")
    from lookup.serve.verifying import verify

    files = tuple(arguments.plugin_file)
    if arguments.master is None:
        verified = verify(arguments.record, plugin_files=files)
    else:
        require_extra("verify", "pyspark", "pandas")
        from lookup.commands.sessions import spark_session
        from lookup.logs.jobs import run_tasks

        with spark_session(arguments.master, wait_s=arguments.wait_s) as spark:
            verified = verify(
                arguments.record,
                plugin_files=files,
                run_tasks=lambda chunks, job, task: run_tasks(spark, chunks, job, task),
            )
    _print_verified(verified, arguments.format)
    return 0 if verified.agree == verified.decisions else _DIFFERENT


def _print_verified(verified: Verified, form: str) -> None:
    if form == "json":
        examples = [asdict(entry) for entry in verified.examples]
        figures = {"decisions": verified.decisions, "agree": verified.agree, "share": verified.share}
        print_json({**figures, "causes": dict(verified.causes), "examples": examples})
        return
    console = data_console()
    share = f"{verified.agree:,} of {quantity(verified.decisions, 'decision')} agree, {verified.share:.2%}"
    console.print(plain(share))
    for cause, count in verified.causes.most_common():
        console.print(plain(f"{count:,} do not, by their {cause}"))
    for entry in verified.examples:
        console.print(plain(f"{entry.decision} of {entry.policy}, {entry.cause}: {entry.detail}"), soft_wrap=True)


COMMANDS = (
    Command(
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
        add_arguments=add_arguments,
        run=run,
    ),
    Command(
        name="verify",
        summary="take recorded decisions of a live cluster again, and name those that are not the same",
        examples=(
            ("lookup verify record", "everything that `lookup serve` recorded there"),
            ("lookup verify record --master 'local[*]' --format json", "a large record on Spark, for a program"),
        ),
        add_arguments=_add_verify,
        run=_run_verify,
    ),
)
