"""Fixtures of the tests of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.logs.generator.generate import GenerateSettings, generate
from tests.commands.projects import Run, runner


@pytest.fixture
def lookup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command line in this process and gives back code, stdout and stderr."""
    monkeypatch.setenv("NO_COLOR", "1")
    return runner(capsys)


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables of a small log."""
    folder = tmp_path_factory.mktemp("log")
    settings = GenerateSettings(lookups=2_000, clusters=1, hours=2.0, topics=60, namespaces=6, tenants=2, clients=60)
    generate(settings, folder / "sample")
    return folder / "sample"
