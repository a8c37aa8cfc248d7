"""The house itself, by what stands in it: packages, modules, import contracts. Nothing is started."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

ROOT = Path(__file__).parent.parent
POLICIES = ROOT / "plugins" / "lookup_policies"
JAVA = ROOT / "plugins" / "lookup_java"


def _packages_in(folder: Path, name: str) -> Iterator[str]:
    for found in sorted(folder.rglob("__init__.py")):
        yield ".".join((name, *found.parent.relative_to(folder).parts))


@cache
def _trees() -> dict[Path, ast.Module]:
    paths = [
        *(ROOT / "lookup").rglob("*.py"),
        *POLICIES.rglob("*.py"),
        *JAVA.rglob("*.py"),
        *(ROOT / "configs").rglob("*.py"),
    ]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(paths)}


# Packages


def test_setup_cfg_names_every_package_of_the_tree() -> None:
    """The packages of setup.cfg are the folders that hold code, no more and no fewer."""
    found = [
        *_packages_in(ROOT / "lookup", "lookup"),
        *_packages_in(ROOT / "configs", "lookup.configs"),
        *_packages_in(JAVA, "lookup_java"),
        *_packages_in(POLICIES, "lookup_policies"),
    ]

    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    assert parser["options"]["packages"].split() == sorted(found)


def test_every_entry_point_names_a_module_that_exists() -> None:
    """What the distribution announces at its own door can be imported."""
    own = [point for point in entry_points(group="lookup") if point.dist and point.dist.name == "pulsar-lookup"]

    assert {point.name for point in own} == {"builtin", "java", "metrics", "readers"}
    assert [point.value for point in own if find_spec(point.module) is None] == []


# Modules


def test_modules_say_what_they_hold() -> None:
    """Every module begins with a docstring and names what it offers in `__all__`."""
    silent = []
    for path, tree in _trees().items():
        assigned = [node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
        targets = [target for node in assigned for target in getattr(node, "targets", [getattr(node, "target", None)])]
        if not ast.get_docstring(tree) or "__all__" not in [getattr(target, "id", None) for target in targets]:
            silent.append(path)

    assert silent == []


#: A flag in a text: two dashes that no word or dash precedes.
_FLAG = re.compile(r"(?<![\w-])--[a-z]")


def test_no_text_of_the_library_names_a_flag() -> None:
    """Who calls a function knows its arguments; flags are named by the command line alone."""
    command_line = {ROOT / "lookup" / "cli.py", *(ROOT / "lookup" / "commands").glob("*.py")}
    # What a report asks its reader to type next is a command line.
    command_line.add(ROOT / "lookup" / "report" / "sentences" / "cards.py")
    # So is what changes a running cluster, for Pulsar's own tool.
    command_line.add(ROOT / "lookup" / "tuning" / "advice.py")
    nodes = [(path, node) for path, tree in _trees().items() if path not in command_line for node in ast.walk(tree)]

    flags = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FLAG.search(node.value)
    ]
    assert flags == []


def test_nothing_multiplies_matrices() -> None:
    """A product of BLAS depends on the processor in its last digit, and workers' results are equal byte by byte."""
    products = [path for path, tree in _trees().items() for node in ast.walk(tree) if isinstance(node, ast.MatMult)]

    assert products == []


# Imports


@pytest.fixture(scope="module")
def graph() -> Any:
    """Return who imports whom, type-only imports and other packages included."""
    # Comes with import-linter, which the oldest releases do without.
    grimp = pytest.importorskip("grimp")
    return grimp.build_graph("lookup", "lookup_java", "lookup_policies", include_external_packages=True, cache_dir=None)


def test_no_module_is_part_of_a_cycle(graph: Any) -> None:
    """Module by module, packages' own `__init__` included, imports never lead back, not even type-only ones."""
    imports = nx.DiGraph(
        (module, imported) for module in graph.modules for imported in graph.find_modules_directly_imported_by(module)
    )

    assert [sorted(ring) for ring in nx.strongly_connected_components(imports) if len(ring) > 1] == []
