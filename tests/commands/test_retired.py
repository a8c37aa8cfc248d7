"""Flags and commands that are gone: each is refused with what does its work now."""

from __future__ import annotations

import pytest

from tests.commands.projects import Run


@pytest.mark.parametrize(
    ("words", "gone", "instead"),
    [
        ("explain run --versus rack", "--versus", "docs/explain.md"),
        ("config check --against lookups", "--against", "lookup inspect"),
        ("simulate --tune tune.toml", "--tune", "lookup tune"),
        ("evaluate --annotations github", "--annotations", "--junit"),
        ("report run --comment comment.md", "--comment", "report.md"),
        ("report run --page-url https://ci.example.org", "--page-url", "report.md"),
        ("generate --output o --rack-affinity 1", "--rack-affinity", "--set rack_affinity="),
        ("history nightly", "history", "docs/report.md"),
    ],
)
def test_the_sentence_names_what_to_do_instead(lookup: Run, words: str, gone: str, instead: str) -> None:
    """One sentence, which begins with what was typed."""
    (mistake,) = lookup(*words.split()).mistakes

    assert mistake.startswith(f"{gone} is gone; ")
    assert instead in mistake
