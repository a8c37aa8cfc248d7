"""The files of `lookup init --plugin`: a distribution with one scorer, its tests, and settings that use it."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec

from lookup.engine.plugins import Registry
from lookup.errors import SettingsError
from lookup.model.quoting import shown

__all__ = ["COMMANDS", "package_files", "plugin_name"]

#: What to type in the folder of the package, in this order.
COMMANDS = (
    "pip install -e '.[test]'",
    "pytest",
    "lookup generate --output sample --clusters 1 --hours 6 --lookups 50000 --set brokers=6",
    "lookup evaluate --config evaluation.toml --output report",
    "lookup serve --config serving.toml",
)
#: The files by path. `my-plugin`, `my_plugin` and `MyPlugin` stand for the names of distribution and scorer, of module
#: and of class, RELEASE and NEXT for the release of pulsar-lookup that is installed and the next that may break it.
_FILES: Mapping[str, str] = {
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "my-plugin"
version = "0.1.0"
description = "A scorer for placement policies of pulsar-lookup"
readme = "README.md"
# The licence is yours to choose: an SPDX expression here, and its text in a file LICENSE.
# license = "Apache-2.0"
# license-files = ["LICENSE"]
requires-python = ">=3.11"
dependencies = ["pulsar-lookup>=RELEASE,<NEXT"]

[project.optional-dependencies]
test = ["pytest>=8"]

# The door: by this group pulsar-lookup finds the module wherever the distribution is installed.
[project.entry-points.lookup]
my_plugin = "my_plugin"

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "src/my_plugin/__init__.py": '''\
"""A scorer for placement policies of pulsar-lookup; the entry point in pyproject.toml names this module."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from lookup.hooks import Ge, Le, hookimpl
from lookup.model import Candidates, ClusterView, LookupRequest

__all__ = ["MyPlugin"]


@dataclass(frozen=True)
class MyPlugin:
    """Score brokers of the client's rack 1, all others `elsewhere`, and all brokers 1 if the client names no rack."""

    name: ClassVar[str] = "my-plugin"
    #: what the scorer looks at; it is shown nothing else
    reads: ClassVar[frozenset[str]] = frozenset({"properties.rack"})

    #: score of a broker in another rack
    elsewhere: Annotated[float, Ge(0), Le(1)] = 0.75

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Return a score in [0, 1] for each broker."""
        rack = request.property_of("rack")
        return [1.0 if rack in (None, own) else self.elsewhere for own in brokers.labels("rack")]


@hookimpl
def lookup_register_scorers() -> list[type]:
    """Return the scorers of this distribution."""
    return [MyPlugin]
''',
    "tests/test_my_plugin.py": '''\
"""The scorer keeps the promises that every part makes, and its own."""

from importlib.metadata import entry_points

from lookup.testing import candidates, parametrize_with_policies, request, three_racks

import my_plugin


@parametrize_with_policies([my_plugin.MyPlugin(), my_plugin.MyPlugin(elsewhere=0.0)])
def test_conformance(policy, check) -> None:
    check(policy)


def test_brokers_of_the_clients_rack_come_first() -> None:
    view = three_racks(per_rack=1)

    scores = my_plugin.MyPlugin(elsewhere=0.5).score(request(properties={"rack": "b"}), candidates(view), view)

    assert dict(zip(candidates(view).ids, scores, strict=True)) == {"a1:8080": 0.5, "b1:8080": 1.0, "c1:8080": 0.5}


def test_pulsar_lookup_finds_the_module() -> None:
    (point,) = entry_points(group="lookup", name="my_plugin")

    assert point.load() is my_plugin
''',
    "policy.toml": """\
# A policy of the new scorer and a built-in one; `lookup plugins list` has all parts there are.
name = "my-plugin"
scorers = [{ use = "my-plugin", elsewhere = 0.75, weight = 0.7 }, { use = "headroom", weight = 0.3 }]
selector = "best"
shedder = "threshold"           # for evaluations; a server leaves shedding to the brokers
""",
    "evaluation.toml": """\
# The policy over a log, compared with what Pulsar does: lookup evaluate --config evaluation.toml --output report
policies = ["shipped:stock", "policy.toml", "shipped:rack-then-load", "shipped:random"]

[evaluation]
incumbent = "stock"
default_bundles = 16
balance_s = 900

[verdict]
block_s = 900
# What the policy is for, chosen before there is a result; a candidate that is worse in one gives exit code 3.
primary = ["answered_ratio", "match_ratio"]

# What `lookup generate` wrote; for a log of your own begin with `lookup init --log FILE`.
[inputs]
lookups = "sample/lookups"
brokers = "sample/brokers"
loads = "sample/loads"
ownership = "sample/ownership"
""",
    "serving.toml": """\
# The policy for a live cluster: lookup serve --config serving.toml
policies = ["policy.toml"]

[serving]
cluster = "main"
record = "record"
active = "my-plugin"
""",
    ".github/workflows/tests.yml": """\
name: tests
on: [push, pull_request]

permissions:
  contents: read

jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix:
        python: ["3.11", "3.13"]
        # The oldest release of pulsar-lookup that pyproject.toml permits, and the newest one.
        release: ["pulsar-lookup==RELEASE", "pulsar-lookup"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: pip install -e '.[test]' '${{ matrix.release }}'
      - run: pytest
""",
    ".gitignore": """\
__pycache__/
*.egg-info/
dist/
record/
report/
sample/
""",
    "README.md": """\
# my-plugin

A scorer for placement policies of [pulsar-lookup](https://github.com/pulsar-lookup/pulsar-lookup): it prefers brokers
of the client's rack. With the distribution installed, settings may use it by its name:

```toml
scorers = [{ use = "my-plugin", elsewhere = 0.75, weight = 0.7 }, { use = "headroom", weight = 0.3 }]
```

## From here

```console
COMMANDS
```

`lookup explain --config evaluation.toml --topic orders --property rack=a` shows the scorer's vote on one lookup. The
scorer is in `src/my_plugin/__init__.py`, the policy that uses it in `policy.toml`.

Before this is published it needs a licence, a description and this page in your own words:
<https://github.com/pulsar-lookup/pulsar-lookup/blob/main/docs/publishing.md>.
""",
}


def plugin_name(text: str) -> str:
    """Read the name of a distribution to be made, and return it in lower case with hyphens, as package indexes do.

    Raises:
        argparse.ArgumentTypeError: if it is no such name, or hides a module or replaces a distribution that is there.
    """
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        right = "letters, digits and, between them, '-', '_' and '.' would be right, as in rack-aware"
        raise argparse.ArgumentTypeError(f"{shown(text)} is no name of a distribution; {right}")
    name = re.sub(r"[-_.]+", "-", text).lower()
    module = _module(name)
    imported = f"{text} would be imported as {module}"
    if not module.isidentifier() or keyword.iskeyword(module):
        raise argparse.ArgumentTypeError(f"{imported}, which is no name of a Python module; rack-aware would be right")
    if module in sys.stdlib_module_names:
        raise argparse.ArgumentTypeError(f"{imported}, which is a module of Python itself; choose another name")
    spec = find_spec(module)
    # A spec without a file is any folder beside which Python was started.
    if spec is not None and spec.origin is not None:
        raise argparse.ArgumentTypeError(f"{imported}, which is installed already; choose another name")
    try:
        there = distribution(name)
    except PackageNotFoundError:
        return name
    raise argparse.ArgumentTypeError(f"{text} would replace {there.name} {there.version}; choose another name")


def package_files(name: str, registry: Registry) -> dict[str, str]:
    """Return the text of every file, by its path in the folder of the package.

    Args:
        name: name of the distribution, as `plugin_name` returns it.
        registry: what is installed; names of plug-ins and of scorers are given once.

    Raises:
        SettingsError: if a plug-in or a scorer has the name.
    """
    module = _module(name)
    if module in {source.name for source in registry.sources} or name in registry.classes["scorers"]:
        raise SettingsError(f"--plugin: a plug-in or scorer named {name} is installed already; choose another name")
    release = version("pulsar-lookup")
    major, minor = map(int, release.split(".")[:2])
    names = {
        "my-plugin": name,
        "my_plugin": module,
        "MyPlugin": "".join(word.capitalize() for word in name.split("-")),
        "COMMANDS": "\n".join(f"$ {command}" for command in COMMANDS),
        "RELEASE": release,
        "NEXT": f"{major + 1}" if major else f"0.{minor + 1}",
    }

    def named(text: str) -> str:
        return re.sub("|".join(names), lambda stand_in: names[stand_in[0]], text)

    return {named(path): named(text) for path, text in _FILES.items()}


def _module(name: str) -> str:
    return name.replace("-", "_")
