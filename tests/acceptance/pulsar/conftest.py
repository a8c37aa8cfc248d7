"""The one cluster of a run of tests, its clients and namespaces.

This folder has no `__init__.py`: pytest would import it as `pulsar`, and the Python client has that name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.acceptance.pulsar.clients import JavaClients, PythonClients
from tests.acceptance.pulsar.cluster import Cluster, running_cluster
from tests.acceptance.pulsar.jvm import Installation, installation

_NUMBERS = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose the release of Pulsar; `make integration` reads this flag too, in this form."""
    parser.addoption("--pulsar", metavar="VERSION", help="release of Pulsar that the cluster runs, such as 4.0.7")


@pytest.fixture(scope="session")
def installed(pytestconfig: pytest.Config) -> Installation:
    """Return Java and the jars of Pulsar; without them skip the test, or end the run if this release was asked for."""
    version = pytestconfig.getoption("--pulsar", default=None)
    try:
        return installation(version)
    except RuntimeError as error:
        if version:
            pytest.exit(str(error), returncode=2)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cluster(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start the run's only cluster: this takes half a minute, tests share it and leave three brokers running."""
    with running_cluster(installed, tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def java(cluster: Cluster) -> JavaClients:
    """Start the run's only JVM for Java clients."""
    return cluster.java_clients()


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> PythonClients:
    """Build Python clients into one log."""
    return PythonClients(tmp_path_factory.mktemp("python") / "client.log")


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """Create a namespace of four bundles that no other test uses."""
    name = f"public/test-{next(_NUMBERS)}"
    cluster.create_namespace(name, 4)
    return name
