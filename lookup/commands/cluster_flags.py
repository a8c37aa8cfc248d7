"""Flags of the commands that read a live cluster: where it is reached, and with which credentials."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lookup.commands.options import Parser, cluster
from lookup.model.names import endpoint_problem

if TYPE_CHECKING:
    from lookup.collect.collector import Endpoints

__all__ = ["TOKEN_VARIABLE", "add_cluster", "check_cluster", "endpoints_of"]

#: Variable of the environment with the token.
TOKEN_VARIABLE = "PULSAR_TOKEN"


def add_cluster(parser: Parser) -> None:
    """Add the addresses of a cluster, its name, and credentials."""
    parser.add_argument("--admin", metavar="URL", help="admin REST, like http://broker-0:8080,broker-1:8080")
    parser.add_argument("--service-url", metavar="URL", help="brokers, like pulsar://broker-0:6650,broker-1:6650")
    parser.add_argument(
        "--zookeeper", metavar="HOSTS", help="like zk-0:2181,zk-1:2181, with /chroot behind or tls:// before them"
    )
    parser.add_argument("--cluster", type=cluster, metavar="NAME", help="name of the cluster; default: asks --admin")
    parser.add_argument(
        "--token-file", metavar="FILE", help=f"file with a token; else the variable {TOKEN_VARIABLE} is the token"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="certificates to trust, PEM")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this client, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="key of that certificate, PEM")


def check_cluster(arguments: argparse.Namespace) -> list[str]:
    """Return a sentence for each of these flags that cannot work."""
    problems = []
    for name in ("admin", "service_url", "zookeeper"):
        url = getattr(arguments, name)
        problem = None if url is None else endpoint_problem(name, url)
        if problem is not None:
            problems.append(f"--{name.replace('_', '-')}: {problem}")
    for name in ("token_file", "tls_ca", "tls_cert", "tls_key"):
        path = getattr(arguments, name)
        if path is not None and not Path(path).is_file():
            problems.append(f"--{name.replace('_', '-')}: there is no file {path}")
    if (arguments.tls_cert is None) != (arguments.tls_key is None):
        problems.append("--tls-cert, --tls-key: one needs the other")
    return problems


def endpoints_of(arguments: argparse.Namespace) -> Endpoints:
    """Return where the cluster is reached."""
    from lookup.collect.collector import Endpoints
    from lookup.collect.sources import Credentials

    credentials = Credentials(
        token_file=arguments.token_file,
        token=os.environ.get(TOKEN_VARIABLE) or None,
        tls_ca=arguments.tls_ca,
        tls_cert=arguments.tls_cert,
        tls_key=arguments.tls_key,
    )
    return Endpoints(arguments.cluster, arguments.admin, arguments.service_url, arguments.zookeeper, credentials)
