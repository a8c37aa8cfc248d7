"""The oldest releases that `setup.cfg` permits."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from scripts.lowest import lowest

_SETUP = (Path(__file__).parents[2] / "setup.cfg").read_text(encoding="utf-8")
#: The first release without a published fault, by dependency, and where the fault is described.
_FIXED = {
    "aiohttp": ("3.14.4", "CVE-2026-128131, GHSA-h4cc-hm5h-fmm9; before that CVE-2026-54278 and CVE-2025-69223"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),
    "pydantic": ("2.4.0", "CVE-2024-3772"),
    "pydantic-settings": ("2.14.2", "GHSA-4xgf-cpjx-pc3j"),
    "pyspark": ("3.4.0", "CVE-2023-22946"),
    "pyyaml": ("5.4", "CVE-2020-14343"),
}


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


@pytest.mark.parametrize("name", _FIXED)
def test_no_release_with_a_published_fault_is_permitted(name: str) -> None:
    """The floor is the release that repairs it, or a later one."""
    fixed, source = _FIXED[name]
    floors = dict(constraint.split("==") for constraint in lowest(_SETUP))

    assert _numbers(floors[name]) >= _numbers(fixed), source


def test_every_dependency_has_a_floor() -> None:
    """Of the package and of what it can be installed with: without one any release would do, however old."""
    parser = ConfigParser(interpolation=None)
    parser.read_string(_SETUP)
    extras = {name: text for name, text in parser["options.extras_require"].items() if name not in ("test", "docs")}
    named = "\n".join([parser["options"]["install_requires"], *extras.values()]).split()

    assert {re.split(r"[\[>=<~]", line)[0] for line in named} == {line.split("==")[0] for line in lowest(_SETUP)}
