"""The hooks, and that the manual has each of them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pluggy
import pytest

from lookup.hooks import PROJECT, protocols, specs
from lookup.model.view import REQUEST_READS, VIEW_READS
from lookup.testing import conformance

_DOCS = Path(__file__).parents[2] / "docs"
MANUAL = (_DOCS / "writing-plugins.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", specs.__all__)
def test_every_hook_has_a_heading_with_its_signature(hook: str) -> None:
    """The manual says what a hook is called and what it returns."""
    returned = getattr(specs, hook).__annotations__["return"]

    assert f"\n### `{hook}() -> {returned}`\n" in MANUAL


def test_the_manual_has_no_other_hooks() -> None:
    """What was renamed or removed is not described any more."""
    assert set(re.findall(r"^### `(lookup_\w+)", MANUAL, re.MULTILINE)) == set(specs.__all__)


@pytest.mark.parametrize("hook", specs.__all__)
def test_a_hook_takes_nothing_and_answers_nothing_by_itself(hook: str) -> None:
    """It is called without arguments, and who leaves it out adds no class."""
    spec = getattr(specs, hook)

    assert not inspect.signature(spec).parameters
    assert spec() == ()
    assert str(spec.__doc__).splitlines()[0].endswith(".")


def test_pluggy_takes_every_hook() -> None:
    """Each function of the module is marked as a hook of the project."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)

    assert {name for name in vars(manager.hook) if name.startswith("lookup_")} == set(specs.__all__)


@pytest.mark.parametrize(
    "protocol",
    [
        "Filter",
        "Scorer",
        "Selector",
        "Shedder",
        "Splitter",
        "SplitAlgorithm",
        "Lister",
        "LogReader",
        "Metric",
        "Remembering",
    ],
)
def test_every_protocol_and_its_methods_are_described(protocol: str) -> None:
    """Each has a heading, and each method is named with its arguments below it."""
    methods = [
        f"`{name}({', '.join(list(inspect.signature(method).parameters)[1:])})`"
        for name, method in vars(getattr(protocols, protocol)).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    section = MANUAL.partition(f"\n### {protocol}\n")[2].partition("\n##")[0]

    assert methods
    assert [method for method in methods if method not in section] == []


def test_every_read_is_described() -> None:
    """What can be declared stands in the manual, with what it gives."""
    table = MANUAL.partition("## What a part may see")[2]

    assert [name for name in (*REQUEST_READS, *VIEW_READS.values()) if f"`{name}`" not in table] == []
    assert [name for name in VIEW_READS if f"`view.{name}`" not in table] == []


def test_every_check_of_the_kit_is_described() -> None:
    """In the page of the API, and no others."""
    page = (_DOCS / "api.md").read_text(encoding="utf-8")
    described = re.findall(r"^\.\. autofunction:: lookup\.testing\.conformance\.(check_\w+)$", page, re.MULTILINE)

    assert sorted(described) == [name for name in conformance.__all__ if name.startswith("check_")]
