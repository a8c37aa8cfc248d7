"""Connect commands to a live cluster with the flag `--cluster`, related variables, and credentials."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lookup.commands.options import Parser, require_extra, settings_flags, settings_path
from lookup.errors import InputError
from lookup.settings.loader import examine_settings, load_serving
from lookup.settings.serving import ClusterFile, ClusterSection, ConnectionSection, ServingFile

if TYPE_CHECKING:
    from lookup.collect.collector import Endpoints
    from lookup.collect.sources import Credentials

__all__ = ["CONNECTION", "add_cluster", "cluster_of", "credentials_of", "endpoints_of", "load_cluster", "serving_of"]

#: Keys with the addresses of a cluster.
CONNECTION = ("admin", "service_url", "zookeeper")


def add_cluster(parser: Parser) -> None:
    """Add `--cluster`, the file with addresses and credentials."""
    parser.add_argument(
        "--cluster",
        dest="cluster_file",
        type=settings_path,
        metavar="FILE",
        help="TOML file with the connection, like shipped:cluster. Variables such as LOOKUP_CLUSTER__ADMIN win over it",
    )
    parser.keys = {name: f"cluster.{name}" for name in ClusterSection.model_fields} | {"cluster": "cluster.name"}


def load_cluster(path: str | None, overrides: Mapping[str, object] | None = None) -> ClusterFile:
    """Read the connection to a cluster, for None from the environment alone."""
    return examine_settings(ClusterFile, {} if path is None else path, overrides).require()


def cluster_of(arguments: argparse.Namespace) -> ClusterSection:
    """Read the connection that `--cluster` and the environment give."""
    return load_cluster(arguments.cluster_file).cluster


def endpoints_of(arguments: argparse.Namespace) -> Endpoints:
    """Find the addresses of the cluster, with credentials."""
    section = cluster_of(arguments)
    require_extra(arguments.parser.prog.partition(" ")[2], "pyarrow", "kazoo", "pulsar", extra="collect")
    from lookup.collect.collector import Endpoints

    credentials = credentials_of(section, "cluster")
    return Endpoints(section.name, section.admin, section.service_url, section.zookeeper, credentials)


def serving_of(arguments: argparse.Namespace, flags: Mapping[str, object]) -> ServingFile:
    """Read the settings of a server with the connection of `--cluster` as that of `[collect]`."""
    flags = {**flags, **settings_flags(arguments)}
    settings, cluster = load_serving(arguments.config, flags), cluster_of(arguments)
    values = cluster.model_dump(exclude={"name", "zookeeper"} | ({"admin"} if settings.topics is None else set()))
    if values["service_url"] is None and values.get("admin") is None:
        return settings
    return load_serving(arguments.config, {f"collect.{key}": value for key, value in values.items()} | flags)


def credentials_of(section: ConnectionSection, table: str) -> Credentials:
    """Read the credentials of a connection. The variable `PULSAR_TOKEN` may hold the token."""
    from lookup.collect.sources import Credentials

    token = os.environ.get("PULSAR_TOKEN") or None
    credentials = Credentials(section.token_file, token, section.tls_ca, section.tls_cert, section.tls_key)
    try:
        # Before any connection, since the client's own threads report a bad file only as a refusal.
        credentials.current_token()
        credentials.tls_context()
    except OSError as error:
        raise InputError(f"{table}: {error.filename or section.tls_ca} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{table}: {error}") from None
    return credentials
