"""`lookup config show` of settings of topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lookup.settings import TopicsSection, load_topics
from tests.commands.projects import Run

_TEXT = """
[topics]
lister = { use = "tenant-scope", key = "owner" }
queue_max = 5
poll_s = 2.5
from_broker_conf = "broker.conf"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file of settings with a `broker.conf` beside it."""
    (tmp_path / "broker.conf").write_text("subscriptionPatternMaxLength=80\n", encoding="utf-8")
    (tmp_path / "topics.toml").write_text(_TEXT, encoding="utf-8")
    return tmp_path / "topics.toml"


@pytest.mark.parametrize("flags", [(), ("--resolved",)])
def test_what_is_shown_reads_back(lookup: Run, path: Path, flags: tuple[str, ...]) -> None:
    """The printed TOML holds the same settings, comments and defaults or not."""
    ran = lookup("config", "show", "--config", path, *flags)
    copy = path.with_name("copy.toml")
    copy.write_text(ran.out, encoding="utf-8")

    assert (ran.code, ran.err) == (0, "")
    was, shown = (load_topics(one, environ={}).model_dump() for one in (path, copy))
    # A relative default is made absolute, from the same folder, by the file it is written to.
    was["topics"]["catalog"] = shown["topics"]["catalog"] = ""
    assert shown == was


def test_resolved_shows_every_setting_with_what_set_it(lookup: Run, path: Path) -> None:
    """A file, a `broker.conf`, a flag, or its default."""
    lines = lookup("config", "show", "--config", path, "--resolved", "--set", "topics.grace_s=3").out.splitlines()

    assert f'lister = {{ use = "tenant-scope", key = "owner" }}  # {path}' in lines
    assert f"pattern_max_length = 80  # {path.with_name('broker.conf')}" in lines
    assert "grace_s = 3.0  # command line" in lines
    assert "watchers_max = 10000  # default" in lines
    shown = {line.partition(" = ")[0] for line in lines}
    assert shown >= set(TopicsSection.model_fields) - {"allowed_label_keys"}


def test_a_broker_conf_is_shown_as_settings_of_topics(lookup: Run, path: Path) -> None:
    """JSON has what is set alone, and with `--resolved` what set it."""
    conf = path.with_name("broker.conf")
    plain = json.loads(lookup("config", "show", "--config", conf, "--format", "json").out)
    resolved = json.loads(lookup("config", "show", "--config", conf, "--format", "json", "--resolved").out)

    assert plain == {"settings": {"topics": {"pattern_max_length": 80}}}
    assert resolved["sources"]["topics.pattern_max_length"] == str(conf)


def test_a_mistake_is_a_sentence(lookup: Run, path: Path) -> None:
    """It names the file and the key."""
    path.write_text("[topics]\nqueue_max = 0\n", encoding="utf-8")

    ran = lookup("config", "show", "--config", path)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"error: {path}: topics.queue_max: should be greater than or equal to 1, not 0\n"
