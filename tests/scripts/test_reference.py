"""The reference in the documentation: tables of keys, and help texts of commands."""

from __future__ import annotations

import re
import sys

import pytest

from lookup import cli
from scripts.reference import CLI, SETTINGS, cli_page, settings_page
from scripts.schemas import FILES


def test_keys_are_those_of_the_models() -> None:
    """`python scripts/reference.py` would change nothing."""
    page = SETTINGS.read_text(encoding="utf-8")

    assert settings_page(page) == page


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="later releases of Python lay help texts out in another way")
def test_help_texts_are_those_of_the_commands() -> None:
    """Every command has its own, in the order of `lookup --help`."""
    page = CLI.read_text(encoding="utf-8")

    assert cli_page(page) == page
    names = [command.name for command in cli.commands()]
    assert (
        re.findall(r"<!-- help: ([\w -]+) -->", page)
        == re.findall(r"^## `lookup ([^`]+)`$", page, re.MULTILINE)
        == names
    )


def test_every_file_of_settings_has_its_table() -> None:
    """A wrong key in a page is changed back."""
    page = SETTINGS.read_text(encoding="utf-8")
    filled = set(re.findall(r"<!-- keys: (\w+) -->", page))

    assert settings_page(page.replace("| `tick_s` |", "| `tock_s` |")) == page
    assert {adapter.json_schema().get("title") for adapter in FILES.values()} - filled <= {
        None,
        "TopologyFile",
        "ClusterFile",
        "TuneFile",
    }
