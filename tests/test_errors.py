"""The exception tree."""

from __future__ import annotations

import inspect
import re

import pytest

from lookup import errors
from lookup.errors import ContractError, PolicyError, PulsarLookupError, ReadsError, SettingsError


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_descends_from_the_root(name: str) -> None:
    """One `except` at the command line catches them all."""
    assert issubclass(getattr(errors, name), PulsarLookupError)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    """Every exception is drawn, each below its parent."""
    drawn = re.findall(r"^(.*?)(\w+Error)\b", str(errors.__doc__), re.MULTILINE)
    depth = {name: len(indent) for indent, name in drawn}

    assert depth.keys() == set(errors.__all__)
    for name in depth.keys() - {"PulsarLookupError"}:
        parent = getattr(errors, name).__base__.__name__
        above = [other for other in list(depth)[: list(depth).index(name)] if depth[other] < depth[name]]
        assert parent == above[-1]


def test_settings_errors_keep_their_problems_apart() -> None:
    """One sentence, or several, one per line."""
    assert SettingsError("one").problems == ("one",)
    assert SettingsError(["one", "two"]).problems == ("one", "two")
    assert str(SettingsError(["one", "two"])) == "one\ntwo"


def test_an_undeclared_read_is_a_breach_of_contract() -> None:
    """And never an AttributeError, which `getattr` with a default would hide."""
    assert issubclass(ReadsError, ContractError)
    assert issubclass(ContractError, PolicyError)
    assert not issubclass(ReadsError, AttributeError)


def test_errors_say_what_they_are() -> None:
    """Each has a docstring that begins with a sentence."""
    for name in errors.__all__:
        assert str(inspect.getdoc(getattr(errors, name))).splitlines()[0].endswith((".", ":", "`."))
