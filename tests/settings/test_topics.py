"""The table `[topics]`: its layers and its mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import SettingsError
from lookup.settings import ListingSection, PartSpec, TopicsFile, describe, load_evaluation, load_topics
from tests.settings.files import MINIMAL, write


def _mistakes(path: Path | None, overrides: dict[str, object] | None = None, **environ: str) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        load_topics(path, overrides, environ)
    return list(refused.value.problems)


def test_without_a_file_everything_has_its_default() -> None:
    """The defaults are Pulsar's."""
    assert load_topics(environ={}) == TopicsFile()
    assert ListingSection().lister == PartSpec(use="default")


def test_a_file_is_read_with_its_paths(tmp_path: Path) -> None:
    """Paths start from the file's folder, parts may be names or tables."""
    text = '[topics]\ncatalog = "t.db"\nlister = { use = "tenant-scope", key = "owner" }\nallowed_label_keys = ["env"]'

    found = load_topics(write(tmp_path, "topics.toml", text), environ={}).topics

    assert found.catalog == str(tmp_path / "t.db")
    assert (found.lister.use, found.lister.parameters) == ("tenant-scope", {"key": "owner"})
    assert found.allowed_label_keys == ("env",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics]\nwatchers_maks = 1", "did you mean 'watchers_max'?"),
        ('[topics]\nwatchers_max = "many"', "topics.watchers_max: "),
        ("[topics]\nqueue_max = 0", "topics.queue_max: "),
        ("[topics]\nlock_timeout_s = -1", "topics.lock_timeout_s: "),
        ("[topics]\nlock_timeout_s = 1e-9", "topics.lock_timeout_s: should be 0 or"),
        ("[topics]\nlister = 7", "topics.lister: "),
        ('[topics]\nlister = { use = "indexed", weight = 1 }', "topics.lister.weight: "),
        ('[topics]\nallowed_label_keys = [""]', "topics.allowed_label_keys[0]: "),
        ("topics = 1", "topics: should be a table"),
        ('plugin_files = ["no.py"]', "there is no file"),
        ("[topics", "is not valid TOML"),
    ],
)
def test_a_mistake_is_a_sentence_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    """File and key come first."""
    path = write(tmp_path, "topics.toml", text)

    [problem] = _mistakes(path)
    assert problem.startswith(str(tmp_path))
    assert said in problem


@pytest.mark.parametrize("overrides", [None, {"plugin_files": '["no.py"]'}])
def test_a_plugin_file_that_is_missing_is_told_with_what_names_it(overrides: dict[str, object] | None) -> None:
    """Where there is no file of settings, that is a variable or a flag."""
    variables = {} if overrides else {"LOOKUP_PLUGIN_FILES": '["no.py"]'}

    [told] = _mistakes(None, overrides, **variables)
    assert told.startswith("command line: " if overrides else "environment variable LOOKUP_PLUGIN_FILES: ")
    assert told.endswith("no.py")


def test_variables_of_the_other_kind_of_file_are_left_alone(tmp_path: Path) -> None:
    """One environment serves evaluations and topics; a name that neither knows is a mistake to both."""
    variables = {"LOOKUP_TOPICS__MAX_PROPERTIES": "7", "LOOKUP_EVALUATION__TICK_S": "30"}

    assert load_topics(environ=variables).topics.max_properties == 7
    assert load_evaluation(write(tmp_path, "e.toml", MINIMAL), environ=variables).evaluation.tick_s == 30
    assert "there is no setting topcs" in _mistakes(None, LOOKUP_TOPCS__CATALOG="x")[0]


def test_what_set_a_value_is_known(tmp_path: Path) -> None:
    """A value that has no source has its default."""
    path = write(tmp_path, "topics.toml", "[topics]\nqueue_max = 5")

    found = load_topics(path, {"topics.max_properties": 3}, {"LOOKUP_TOPICS__MAX_PROPERTY_LENGTH": "5"})

    assert found.sources == {
        "topics.queue_max": str(path),
        "topics.max_properties": "command line",
        "topics.max_property_length": "environment variable LOOKUP_TOPICS__MAX_PROPERTY_LENGTH",
    }
    assert ("topics.watchers_max", 10_000, "default") in describe(found)
