"""`lookup config list`: what ships, by name."""

from __future__ import annotations

import json
from pathlib import Path

from lookup.logs.generator.generate import GenerateSettings, generate
from tests.commands.projects import Run


def test_what_ships_is_listed(lookup: Run) -> None:
    """As a table for people, and with paths for programs."""
    table, listed = lookup("config", "list"), lookup("config", "list", "--format", "json")

    assert "|shipped:access-log" in table.out
    assert "A broker joins four that are evenly loaded" in table.out
    paths = {entry["name"]: Path(entry["path"]).name for entry in json.loads(listed.out)}
    assert paths["shipped:large"] == "large.conf"


def test_settings_that_ship_can_be_named_in_place_of_a_file(lookup: Run) -> None:
    """`--config`, and a scenario; a name that is misspelt is one sentence."""
    assert lookup("config", "check", "--config", "shipped:evaluation").code == 0
    (mistake,) = lookup("config", "check", "--config", "shipped:evaluatin").mistakes
    assert mistake.startswith("--config: nothing ships under the name 'evaluatin'; did you mean 'evaluation'?")
    assert lookup("simulate", "shipped:drain").code == 0


def test_the_sample_has_no_finding(lookup: Run, tmp_path: Path) -> None:
    """What `make demo` runs is in proportion to its log, and everything in it has an effect."""
    generate(GenerateSettings(), tmp_path / "sample")
    tables = [f"inputs.{name}={tmp_path}/sample/{name}" for name in ("brokers", "loads", "ownership")]
    flags = [word for table in tables for word in ("--set", table)]

    ran = lookup("inspect", tmp_path / "sample" / "lookups", "--config", "shipped:evaluation", *flags)

    assert ran.out.endswith("Nothing in the settings is without effect on this log.\n"), ran.out
