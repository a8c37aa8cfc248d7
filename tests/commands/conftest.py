"""What the tests of the commands share."""

from __future__ import annotations

import pytest

from tests.commands.projects import Run, runner


@pytest.fixture
def lookup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command line in this process and gives back code, stdout and stderr."""
    monkeypatch.setenv("NO_COLOR", "1")
    return runner(capsys)
