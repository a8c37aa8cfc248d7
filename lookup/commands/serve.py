"""Carry out `lookup serve`: run the decision server until it is stopped."""

from __future__ import annotations

import argparse
import asyncio

from lookup.commands.options import Command, Parser, add_set, require_extra, settings_flags
from lookup.commands.streams import say
from lookup.settings import load_serving

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup serve`."""
    parser.need("--config", metavar="FILE", help="settings of the server, a TOML file; SIGHUP loads it again")
    parser.add_argument("--bind", metavar="ADDRESS", help="address to listen on; default: serving.bind, 127.0.0.1")
    parser.add_argument("--port", metavar="PORT", help="port to listen on; default: serving.port, 8900")
    add_set(parser, "serving.flush_s=1")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C, then write what waits and return 0.

    Raises:
        SettingsError: for mistakes in settings.
        InputError: if the record cannot be written or the port is taken.
    """
    require_extra("serve", "aiohttp", "prometheus_client", "pyarrow", extra="serve")
    from lookup.serve.server import serve

    flags = {"serving.bind": arguments.bind, "serving.port": arguments.port, **settings_flags(arguments)}
    asyncio.run(serve(lambda: load_serving(arguments.config, flags), say))
    return 0


COMMAND = Command(
    name="serve",
    summary="answer the brokers of a live cluster by a policy, and record lookups and decisions",
    examples=(
        ("lookup serve --config serving.toml", "until Ctrl-C; SIGHUP loads the settings again"),
        ("lookup serve --config serving.toml --port 0 --set serving.flush_s=1", "on a free port, which the log names"),
    ),
    add_arguments=add_arguments,
    run=run,
)
