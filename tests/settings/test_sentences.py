"""The sentences that users of settings meet most, word by word; other tests look for class, place and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.settings.files import MINIMAL, mistakes, write

_CLOCK = "should be a date and time with offset, like 2026-01-01T00:00:00Z"

#: What stands before the least evaluation, and what is said of it behind the name of the file.
SENTENCES = [
    ("x = ", "is not valid TOML: Invalid value (at line 1, column 5)"),
    ("verdict = 3", "verdict: should be a table, not 3"),
    ("brokers = 3", "brokers: should be a list, not 3"),
    ("brokers = [{ id = 'b:1', clusters = [] }]", "brokers[0].clusters: should not be empty"),
    ("brokers = [{ id = 'b:1', until = 'soon' }]", f"brokers[0].until: {_CLOCK}, not 'soon'"),
    (
        "brokers = [{ id = 'b:1', properties = { 'lookup.a' = 3 } }]",
        'brokers[0].properties."lookup.a": should be a text or a list of texts, not 3',
    ),
    (
        "brokers = [{ id = 'b:1', count = 2 }]",
        "brokers[0].id: a template's id should have {n} in it, like broker-{n}:8080",
    ),
    ("brokers = [{ id = 'b-{n}' }]", "brokers[0].id: {n} needs a count"),
    ("inputs = { lookups = 3 }", "inputs.lookups: should be a text, not 3"),
    ("inputs = { lokups = 'x' }", "inputs.lokups: there is no such key; did you mean 'lookups'?"),
    ("verdict = { require_decision = 1 }", "verdict.require_decision: should be true or false, not 1"),
    ("verdict = { margin = nan }", "verdict.margin: should be a finite number, not nan"),
    ("verdict = { margins = { moves = -1 } }", "verdict.margins.moves: should be greater than or equal to 0, not -1"),
    ("verdict = { min_units = 2026-01-01 }", "verdict.min_units: should be a whole number, not 2026-01-01"),
    (
        "topology = { distance_ms = { rak = 1 } }",
        "topology.distance_ms.rak: should be 'same', 'rack', 'zone' or 'region', not 'rak'",
    ),
    (
        "namespaces = [{ name = 'public' }]",
        "namespaces[0].name: namespace 'public' is not of the form tenant/namespace",
    ),
    (
        "failure_domains = { x = ['a:1'], y = ['a:1'] }",
        "failure_domains: broker 'a:1' is listed 2 times; it can be in one domain only",
    ),
    ("plugin_files = ['no.py']", "plugin_files: there is no file no.py"),
]


@pytest.mark.parametrize(("line", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_mistake_is_one_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    """File, key path, what would be right, and what is there."""
    assert mistakes(write(tmp_path, "e.toml", f"{line}\n{MINIMAL}")) == [f"e.toml: {sentence}"]
