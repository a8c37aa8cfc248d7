"""Names out of settings and logs rule no terminal, no CI and no page, in whatever a command prints or writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lookup.model.broker import BrokerLookupData
from lookup.settings import load_evaluation
from tests.commands.projects import Run
from tests.replay.layouts import write_rows

#: A new line that orders a CI about, an escape, a mark that turns text round, a tag, a link, and addresses alone.
_EVIL = "a\n::error::x\x1b[31m\u202e<script>y</script>[z](http://evil) https://evil.example www.evil.example"
_TOML = _EVIL.replace("\n", "\\n").replace("\x1b", "\\u001b").replace("\u202e", "\\u202e")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an evaluation in which policies, a broker, a label, its key, clients and a namespace have such names."""
    folder = tmp_path_factory.mktemp("evil")
    start = 1_767_571_200_000_000
    labels = [f'{{"rack":"{_TOML}"}}', f'{{"{_TOML}":"a"}}', "{}"]
    rows = [
        {
            "ts": start + 1_000_000 * number,
            "cluster": "east",
            "topic": f"persistent://t/n/topic-{number % 9}",
            "client": f"{_EVIL}{number % 3}",
            "properties": labels[number % 3].replace("\\u001b", "\\u001b"),
            "broker": f"{_EVIL}:8080",
        }
        for number in range(400)
    ]
    write_rows(rows, "lookups", folder / "lookups" / "part.parquet")
    data = BrokerLookupData(properties={"lookup.rack": _EVIL}).to_json()
    brokers = [
        {"ts": start, "cluster": "east", "broker": name, "event": "registered", "lookup_data": data}
        for name in (f"{_EVIL}:8080", "b:8080")
    ]
    write_rows(brokers, "brokers", folder / "brokers" / "part.parquet")
    (folder / "evaluation.toml").write_text(
        f'''
[evaluation]
incumbent = "{_TOML}"
balance_s = 60
seeds = 2

[verdict]
block_s = 60

[inputs]
lookups = "lookups"
brokers = "brokers"

[[policies]]
name = "{_TOML}"
selector = "random"

[[policies]]
name = "::add-mask::{_TOML}"
selector = "random"
shedder = {{ use = "threshold", history = 0.0 }}
''',
        encoding="utf-8",
    )
    return folder


def _is_harmless(text: str) -> None:
    assert not [line for line in text.splitlines() if line.startswith("::")]
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_no_output_is_ruled_by_names(lookup: Run, project: Path) -> None:
    """Tables, sentences, the report, the page, and a comparison of the run with itself."""
    flags = (project / "evaluation.toml", "--master", "none", "--output", project / "run")
    ran = lookup("evaluate", *flags, "--by", "rack", "--junit", project / "junit.xml")
    assert ran.code in (0, 3, 4), ran.err
    printed = [
        ran,
        lookup("inspect", project / "lookups", project / "evaluation.toml"),
        lookup("diff", project / "run", project / "run"),
        lookup("report", project / "run"),
        lookup("config", "check", project / "evaluation.toml"),
        lookup("explain", project / "evaluation.toml", "--topic", "t", "--cluster", "east"),
        lookup("config", "show", project / "evaluation.toml"),
        lookup("config", "show", project / "evaluation.toml", "--resolved"),
        lookup("config", "show", project / "evaluation.toml", "--format", "json"),
    ]

    assert {each.code for each in printed[1:]} == {0}
    # A line end in a name ends no comment.
    (project / "copy.toml").write_text(printed[-2].out, encoding="utf-8")
    paths = project / "copy.toml", project / "evaluation.toml"
    copy, original = (load_evaluation(path, environ={}).model_dump() for path in paths)
    assert copy == original
    for each in printed:
        _is_harmless(each.out)
        _is_harmless(each.err)
    markdown = (project / "run" / "report.md").read_text()
    _is_harmless(markdown)
    assert "<script" not in markdown
    assert "](http" not in markdown
    assert not re.search(r"https?://evil|www\.evil", markdown)
    page = (project / "run" / "report.html").read_text()
    assert "\u202e" not in page
    assert "<script>y" not in page
    assert not re.search(r"<a [^>]*evil", page)
    text = (project / "junit.xml").read_text()
    assert "\u202e" not in text
    assert "<script>y" not in text
    assert "\x1b" not in text
