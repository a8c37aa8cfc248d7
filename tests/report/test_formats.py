"""The three forms on stdout."""

from __future__ import annotations

import io
import json
from typing import get_args

import pytest
from rich.console import Console

from lookup.report.formats import Format, show
from lookup.report.markdown import markdown_report
from lookup.score.summary import summary
from tests.report.results import result


def shown(form: Format) -> str:
    """Show a report in memory."""
    file = io.StringIO()
    show(result(), form, Console(file=file, width=40))
    return file.getvalue()


def test_json_is_the_summary() -> None:
    """Nothing else, unwrapped."""
    assert json.loads(shown("json")) == summary(result())


def test_markdown_is_the_report() -> None:
    """To the letter."""
    assert shown("markdown") == markdown_report(result())


@pytest.mark.parametrize("form", get_args(Format))
def test_every_form_ends_with_a_line(form: Format) -> None:
    """And says something of every policy."""
    assert shown(form).endswith("\n")
    assert all(policy in shown(form) for policy in ("stock", "new", "twin"))
