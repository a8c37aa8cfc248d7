"""Evaluations as commands read them, and what users are warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.commands.selection import select
from tests.commands.projects import evaluation


@pytest.mark.parametrize(("flags", "warned"), [({"verdict.resamples": 2000}, True), ({}, False)])
def test_resamples_are_accepted_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: dict[str, object], warned: bool
) -> None:
    """Settings of earlier versions go on working; who does not set them hears nothing."""
    selection = select(str(evaluation(tmp_path)), flags)

    assert selection.settings.verdict.resamples == flags.get("verdict.resamples")
    assert ("warning: verdict.resamples is no longer used" in capsys.readouterr().err) is warned
