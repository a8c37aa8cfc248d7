"""The house itself: packages, import contracts, what imports without extras, the wheel, the scripts of the Makefile."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parent.parent
POLICIES = ROOT / "plugins" / "lookup_policies"


def _setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


def _lines(section: str, option: str) -> list[str]:
    return _setup_cfg()[section][option].split()


def _packages_in(folder: Path, name: str) -> Iterator[str]:
    for found in sorted(folder.rglob("__init__.py")):
        yield ".".join((name, *found.parent.relative_to(folder).parts))


def _modules() -> list[Path]:
    return sorted([*(ROOT / "lookup").rglob("*.py"), *POLICIES.rglob("*.py"), *(ROOT / "configs").rglob("*.py")])


def _run(
    *command: str | Path, folder: Path, stdin: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=os.environ | environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def _tool(name: str) -> Path:
    return Path(sys.executable).parent / name


# Packages


def test_setup_cfg_names_every_package_of_the_tree() -> None:
    """The packages of setup.cfg are the folders that hold code, no more and no fewer."""
    found = [
        *_packages_in(ROOT / "lookup", "lookup"),
        *_packages_in(ROOT / "configs", "lookup.configs"),
        *_packages_in(POLICIES, "lookup_policies"),
    ]

    assert _lines("options", "packages") == sorted(found)


def test_every_entry_point_names_a_module_that_exists() -> None:
    """What the distribution announces at its own door can be imported."""
    own = [point for point in entry_points(group="lookup") if point.dist and point.dist.name == "pulsar-lookup"]

    assert {point.name for point in own} == {"builtin", "metrics", "readers"}
    assert [point.value for point in own if find_spec(point.module) is None] == []


def test_settings_that_ship_are_data_of_a_package() -> None:
    """The shipped evaluation is found wherever the framework is installed."""
    assert (files("lookup.configs") / "evaluation.toml").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel from a copy of the tree; return the names in it."""
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed: nothing to build a wheel with")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    _copy_code(source)
    for name in ("README.md", "LICENSE", "pulsar_lookup.py", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, source / name)
    built = _run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", target, ".", folder=source
    )
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(target.glob("pulsar_lookup-*.whl"))).namelist()


def test_wheel_has_no_other_top_level_names(wheel: list[str]) -> None:
    """Nothing called `plugins`, `configs` or `tests` reaches anyone's site-packages."""
    top = {name.split("/")[0] for name in wheel if ".dist-info/" not in name}

    assert top == {"lookup", "lookup_policies", "pulsar_lookup.py"}


def test_wheel_holds_every_module(wheel: list[str]) -> None:
    """No module of the tree is missing from the wheel."""
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lookup").rglob("*.py")}
    wanted |= {path.relative_to(ROOT / "plugins").as_posix() for path in POLICIES.rglob("*.py")}

    assert wanted - set(wheel) == set()


def test_wheel_holds_settings_licence_and_the_mark_of_types(wheel: list[str]) -> None:
    """Settings ship as data, the licence beside the metadata, and type checkers are told to look."""
    configs = ROOT / "configs"
    data = {
        f"lookup/configs/{p.relative_to(configs).as_posix()}"
        for p in configs.rglob("*")
        if p.suffix in (".toml", ".conf", ".sh", ".service", ".timer")
    }

    assert data - set(wheel) == set()
    assert {"lookup/py.typed", "lookup_policies/py.typed"} <= set(wheel)
    for folder in (ROOT / "lookup" / "report" / "assets", ROOT / "lookup" / "commands" / "plugin_template"):
        assert {path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()} <= set(wheel)
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    # Vega's as well, which the wheel holds.
    assert sum("licenses/" in name and "LICENSE-vega" in name for name in wheel) == 3


# Modules


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_module_says_what_it_holds(path: Path) -> None:
    """Every module begins with a docstring and names what it offers in `__all__`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    names = [getattr(target, "id", None) for node in assigned for target in _targets(node)]

    assert ast.get_docstring(tree)
    assert "__all__" in names


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


#: A flag in a text: two dashes that no word or dash precedes.
_FLAG = re.compile(r"(?<![\w-])--[a-z]")


def test_no_text_of_the_library_names_a_flag() -> None:
    """Who calls a function knows its arguments; flags are named by the command line alone."""
    command_line = {ROOT / "lookup" / "cli.py", *(ROOT / "lookup" / "commands").glob("*.py")}
    # What a report asks its reader to type next is a command line.
    command_line.add(ROOT / "lookup" / "report" / "steps.py")
    # So is what changes a running cluster, for Pulsar's own tool.
    command_line.add(ROOT / "lookup" / "tuning" / "advice.py")
    nodes = [
        (path, node)
        for path in _modules()
        if path not in command_line
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    ]

    flags = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FLAG.search(node.value)
    ]
    assert flags == []


# Imports

_WITHOUT_EXTRAS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"altair", "google_crc32c", "jinja2", "pandas", "pyarrow", "pyspark", "re2"}:
            raise ImportError(f"{name} comes with an extra")

sys.meta_path.insert(0, Refuse())
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.mark.parametrize(
    "module",
    [
        "lookup",
        "lookup.hooks",
        "lookup.engine",
        "lookup.settings",
        "lookup.testing",
        "lookup.topics",
        "lookup_policies",
        "lookup.cli",
    ],
)
def test_core_imports_without_extras(module: str, tmp_path: Path) -> None:
    """The core is importable where Spark, Arrow and pandas are not installed."""
    done = _run(sys.executable, "-c", _WITHOUT_EXTRAS, module, folder=tmp_path)

    assert done.returncode == 0, done.stderr


def test_entry_points_load_without_extras(tmp_path: Path) -> None:
    """The readers and metrics of the framework register without Spark, Arrow and pandas."""
    modules = [
        point.module for point in entry_points(group="lookup") if point.dist and point.dist.name == "pulsar-lookup"
    ]

    done = _run(sys.executable, "-c", _WITHOUT_EXTRAS, *modules, folder=tmp_path)

    assert done.returncode == 0, done.stderr


def test_no_module_is_part_of_a_cycle() -> None:
    """Module by module, packages' own `__init__` included, imports never lead back, not even type-only ones."""
    # Comes with import-linter, which the oldest releases do without.
    graph = pytest.importorskip("grimp").build_graph("lookup", "lookup_policies", cache_dir=None)
    imports = nx.DiGraph(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )

    assert [sorted(ring) for ring in nx.strongly_connected_components(imports) if len(ring) > 1] == []


def _copy_code(target: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copy(ROOT / "setup.cfg", target / "setup.cfg")
    for folder in ("lookup", "plugins", "configs"):
        shutil.copytree(ROOT / folder, target / folder, ignore=ignored)


def _lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a copy; its packages come before the installed ones."""
    path = os.pathsep.join([str(folder), str(folder / "plugins")])
    return _run(_tool("lint-imports"), "--no-cache", *arguments, folder=folder, PYTHONPATH=path)


def test_contracts_are_kept() -> None:
    """The tree as it stands keeps every import contract."""
    done = _lint(ROOT)

    assert done.returncode == 0, done.stdout + done.stderr


_TYPE_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {}\n"
#: One fault per way to break a contract: contract, file, what is planted at its end.
FAULTS = [
    ("rooms", "lookup/model/names.py", "import lookup.engine"),
    ("rooms", "lookup/settings/__init__.py", "import lookup.hooks"),
    ("rooms", "lookup/attic.py", '"""A room nobody has placed."""'),
    ("acyclic", "lookup/model/names.py", _TYPE_ONLY.format("import lookup.model.view")),
    ("acyclic", "lookup/hooks/protocols.py", "import lookup.hooks.specs\nimport lookup.engine"),
    ("door", "lookup/engine/__init__.py", "import lookup_policies"),
    ("policies", "plugins/lookup_policies/attic.py", "import lookup.engine"),
    ("policies", "plugins/lookup_policies/attic.py", "from lookup import Broker"),
    ("policies", "plugins/lookup_policies/attic.py", _TYPE_ONLY.format("import lookup.settings")),
    *(("pure", "lookup/model/names.py", f"import {m}") for m in ("time", "random", "datetime", "asyncio", "socket")),
    ("pure", "lookup/hooks/protocols.py", "from time import monotonic"),
    ("pure", "lookup/engine/__init__.py", "import pyspark"),
    ("pure", "plugins/lookup_policies/attic.py", "import random"),
    ("rooms", "lookup/collect/observing.py", "import lookup.replay"),
    ("light", "lookup/collect/__init__.py", "import pyspark"),
    ("light", "lookup/report/__init__.py", "import pyspark"),
    ("light", "lookup/settings/__init__.py", "from pyspark.sql import SparkSession"),
    ("core", "lookup/testing/__init__.py", "import pyarrow"),
    ("rooms", "lookup/topics/listing/topic_list.py", "import lookup.engine"),
    ("topics", "lookup/topics/catalog/naming.py", "import lookup.topics.listing"),
    ("pure", "lookup/topics/listing/topic_list.py", "import time"),
    ("light", "lookup/topics/listing/topic_list.py", "import pyspark"),
    ("core", "lookup/topics/listing/topic_list.py", "import google_crc32c"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the code once; each test plants its fault and takes it away again."""
    folder = tmp_path_factory.mktemp("planted")
    _copy_code(folder)
    return folder


@pytest.mark.parametrize(("contract", "path", "fault"), FAULTS)
def test_contract_notices_a_planted_fault(copy: Path, contract: str, path: str, fault: str) -> None:
    """The contract that stands in setup.cfg is broken by what it is there to forbid."""
    place = copy / path
    before = place.read_text(encoding="utf-8") if place.exists() else None
    place.write_text(f"{before or ''}\n{fault}\n", encoding="utf-8")

    done = _lint(copy, "--contract", contract)

    place.unlink() if before is None else place.write_text(before, encoding="utf-8")
    assert done.returncode == 1
    assert "Contracts: 0 kept, 1 broken." in done.stdout, done.stdout + done.stderr


def test_dice_of_numpy_are_banned_where_decisions_are_made() -> None:
    """Ruff refuses `numpy.random` in an engine and lets a generator roll."""
    rolls = "import numpy as np\n\nrolled = np.random.default_rng(1)\n"

    done = {
        name: _run(
            _tool("ruff"), "check", "--select", "TID251", "--stdin-filename", name, "-", folder=ROOT, stdin=rolls
        )
        for name in ("lookup/engine/ballots.py", "plugins/lookup_policies/scorers.py", "lookup/logs/generator/log.py")
    }

    assert [ended.returncode for ended in done.values()] == [1, 1, 0]


# Scripts of the Makefile


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """Make a folder of commands in which there is neither Java nor Python nor a package manager."""
    for name in ("sh", "id", "sed", "printf", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    return tmp_path


def _command(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    (folder / name).chmod(0o755)


def _script(name: str, *arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return _run(ROOT / "scripts" / name, *arguments, folder=path, PATH=str(path), **environment)


def test_missing_java_ends_in_one_sentence(bare_path: Path) -> None:
    """Where there is no Java and none can be installed, `make` says what to do and exits with 2."""
    done = _script("ensure-java.sh", path=bare_path, JAVA_HOME="")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "Spark needs Java 17 or newer, and there is none. Install one (Debian, Ubuntu: apt-get install "
        "openjdk-17-jre-headless) or set JAVA_HOME to one.\n"
    )


@pytest.mark.parametrize(("version", "accepted"), [("1.8", False), ("11", False), ("17", True), ("25", True)])
def test_java_is_judged_by_its_version(bare_path: Path, version: str, *, accepted: bool) -> None:
    """Java 17 and newer is taken, with its home; an older one is named in the sentence."""
    _command(
        bare_path, "java", f"echo '    java.specification.version = {version}'", "echo '    java.home = /opt/java'"
    )

    done = _script("ensure-java.sh", path=bare_path, JAVA_HOME="")

    assert (done.stdout == "/opt/java\n") is accepted
    assert (f"java is Java {version}." in done.stderr) is not accepted


def test_missing_java_is_installed_by_root_on_debian(bare_path: Path) -> None:
    """Where `apt-get` is there and the user is root, the first package that installs provides Java."""
    _command(bare_path, "id", "echo 0")
    java = 'printf \'#!/bin/sh\\necho "  java.specification.version = 17"\\necho "  java.home = /opt/apt"\\n\''
    chmod = shutil.which("chmod")
    _command(
        bare_path,
        "apt-get",
        'case "$*" in *openjdk-17*)',
        f"{java} > {bare_path}/java",
        f"{chmod} +x {bare_path}/java ;; esac",
    )

    done = _script("ensure-java.sh", path=bare_path, JAVA_HOME="")

    assert (done.returncode, done.stdout) == (0, "/opt/apt\n")


def _without_network(folder: Path) -> None:
    """Add what the scripts that build Java call, with a Maven that reaches nothing."""
    for name in ("cat", "cksum", "mkdir", "tail", "tr"):
        (folder / name).symlink_to(shutil.which(name) or name)
    _command(folder, "javac")
    _command(
        folder,
        "mvn",
        "echo '[INFO] Scanning'",
        "echo '[ERROR] 1 error: Could not transfer a.pom: Unknown host -> [Help 2]'",
        "exit 1",
    )


def _built_anew(script: str, *, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script over a copy of the Java sources in which nothing was built."""
    for folder in ("scripts", "plugins/pulsar_bridge", "tests/acceptance/pulsar", "tests/spark/yarn"):
        shutil.copytree(ROOT / folder, path / "copy" / folder, ignore=shutil.ignore_patterns("target"))
    return _run(
        path / "copy" / "scripts" / script,
        folder=path, PATH=str(path), JAVA_HOME="", XDG_CACHE_HOME=str(path / "cache"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "needing"), [("ensure-pulsar.sh", "A Pulsar cluster"), ("ensure-bridge.sh", "The jar for brokers")]
)
def test_missing_maven_ends_in_one_sentence(bare_path: Path, script: str, needing: str) -> None:
    """Without Maven, and without rights to install it, `make integration` and `make bridge` say what to do."""
    _without_network(bare_path)
    (bare_path / "mvn").unlink()

    done = _built_anew(script, path=bare_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"{needing} needs Maven, and there is none; install it (Debian, Ubuntu: apt-get install maven).\n"
    )


@pytest.mark.parametrize("script", ["ensure-pulsar.sh", "ensure-bridge.sh", "ensure-yarn.sh"])
def test_unreachable_jars_end_in_one_sentence(bare_path: Path, script: str) -> None:
    """Without a network the jars cannot be had: the last line says so with Maven's reason, and it ends with 2."""
    _without_network(bare_path)

    done = _built_anew(script, path=bare_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "Jars could not be had from Maven Central: Could not transfer a.pom: Unknown host. Run this "
        "again with a network, or with a mirror in ~/.m2/settings.xml."
    )


@pytest.mark.parametrize("version", ["4.0.x", "newest", "3.3.9", "../4.2.4"])
def test_what_is_no_release_of_pulsar_ends_in_one_sentence(bare_path: Path, version: str) -> None:
    """What `make integration ARGS=--pulsar=...` cannot run is refused before Maven is asked for."""
    done = _script("ensure-pulsar.sh", version, path=bare_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"'{version}' is no release of Pulsar to test with; it should be one of Maven Central from 4.0.0 on, such as "
        "4.0.7 or 5.0.0-M1.\n"
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["NoTest"], "'NoTest' is none of the tests that are run here; see scripts/upstream-tests.sh --help."),
        (["--mode", "dry"], "--mode is 'dry', and should be record, shadow or decide."),
        (["--mode"], "--mode is '', and should be record, shadow or decide."),
    ],
)
def test_wrong_arguments_of_upstreams_tests_end_in_one_sentence(
    bare_path: Path, given: list[str], sentence: str
) -> None:
    """A test or a mode that is not known is refused before anything is built or run."""
    done = _script("upstream-tests.sh", *given, path=bare_path)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")


def test_missing_go_ends_in_one_sentence(bare_path: Path) -> None:
    """Without Go the Go clients are not built: the sentence is why their tests skip."""
    _without_network(bare_path)

    done = _built_anew("ensure-go-clients.sh", path=bare_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "The Go clients need Go 1.24 or newer, and there is none; install it (https://go.dev/dl).\n"


def test_unreachable_go_modules_end_in_one_sentence(bare_path: Path) -> None:
    """Where Go cannot build, the last line says so with Go's reason, and it ends with 2."""
    _without_network(bare_path)
    _command(bare_path, "go", "echo 'go: downloading x' >&2", "echo 'main.go:16:2: no such host' >&2", "exit 1")

    done = _built_anew("ensure-go-clients.sh", path=bare_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "The Go clients could not be built: main.go:16:2: no such host"


def test_missing_python_ends_in_one_sentence(bare_path: Path) -> None:
    """Where there is no Python 3.11, `make` says so and exits with 2."""
    _command(bare_path, "python3", "exit 1")

    done = _script("make-venv.sh", "venv", path=bare_path, PYTHON="")

    assert done.returncode == 2
    assert done.stderr == "There is no Python 3.11 or newer on the path; install one or set PYTHON to it.\n"


def test_unfit_python_is_named(bare_path: Path) -> None:
    """A PYTHON that is too old is refused by name instead of being replaced in silence."""
    done = _script("make-venv.sh", "venv", path=bare_path, PYTHON="/no/python3")

    assert done.returncode == 2
    assert done.stderr.startswith("PYTHON is /no/python3, which is no Python 3.11 or newer")
