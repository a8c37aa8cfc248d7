"""Layers: where values come from and how they are laid over one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import SettingsError
from lookup.settings import EvaluationFile
from lookup.settings.layers import (
    anchored,
    from_environment,
    from_flags,
    leaves,
    merged,
    origins_of,
    read_toml,
    sourced,
    values_of,
)
from tests.settings.files import write

_TABLES = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers(), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers()),
    max_leaves=12,
)


@given(low=_TABLES, high=_TABLES)
def test_the_higher_layer_wins(low: dict[str, Any], high: dict[str, Any]) -> None:
    """Every value of the higher layer is in the result with its source; what is left comes from the lower one."""
    joined = merged(sourced(low, "low"), sourced(high, "high"))

    values, origins = values_of(joined), origins_of(joined)
    for loc, value in origins_of(sourced(high, "high")).items():
        assert origins[loc] == value
    assert set(origins.values()) <= {"low", "high"}
    assert set(values) == set(low) | set(high)


@given(table=_TABLES)
def test_a_layer_over_itself_changes_nothing(table: dict[str, Any]) -> None:
    """Merging is idempotent, and a layer gives back the values it was made of."""
    tree = sourced(table, "here")

    assert merged(tree, tree) == tree
    assert values_of(tree) == table


@pytest.mark.parametrize(
    ("text", "value"),
    [("30", 30), ("0.5", 0.5), ("true", True), ("[1, 2]", [1, 2]), ('{"moves": 0.1}', {"moves": 0.1}), ("x y", "x y")],
)
def test_a_variable_is_read_as_toml_or_json(text: str, value: object) -> None:
    """Numbers, truth values, lists and tables are recognised; anything else stays a text for the models to judge."""
    tree, problems = from_environment({"LOOKUP_VERDICT__MARGINS": text}, EvaluationFile)

    assert (values_of(tree), problems) == ({"verdict": {"margins": value}}, [])


def test_a_text_setting_takes_its_variable_literally() -> None:
    """A policy may be called 42."""
    tree, _ = from_environment({"LOOKUP_EVALUATION__INCUMBENT": "42"}, EvaluationFile)

    assert values_of(tree) == {"evaluation": {"incumbent": "42"}}


def test_other_variables_are_nobody_s_business() -> None:
    """Only names that begin with the prefix are settings."""
    assert from_environment({"PATH": "/bin", "LOOKUPS": "1", "MY_LOOKUP_X": "1"}, EvaluationFile) == ({}, [])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("LOOKUP_EVALUATION__TIK_S", "there is no setting evaluation.tik_s; did you mean 'tick_s'?"),
        ("LOOKUP_EVALUATON__TICK_S", "there is no setting evaluaton.tick_s; did you mean 'evaluation'?"),
        ("LOOKUP_EVALUATION__TICK_S__X", "there is no setting evaluation.tick_s.x; there are none"),
        ("LOOKUP_", "there is no setting"),
    ],
)
def test_a_misspelt_variable_is_a_mistake(name: str, sentence: str) -> None:
    """A variable with the prefix that names no setting is told with the nearest name of its table."""
    tree, problems = from_environment({name: "1"}, EvaluationFile)

    assert tree == {}
    assert problems[0].startswith(f"environment variable {name}: {sentence}")


def test_a_misspelt_flag_is_a_mistake() -> None:
    """A flag that names no setting is told like a variable."""
    assert from_flags({"verdict.margn": 1}, EvaluationFile) == (
        {},
        ["command line: there is no setting verdict.margn; did you mean 'margin'?"],
    )


def test_a_flag_that_was_not_given_sets_nothing() -> None:
    """None stands for a flag that was left out."""
    assert from_flags({"inputs.lookups": None}, EvaluationFile) == ({}, [])


def test_paths_start_from_the_folder_that_names_them(tmp_path: Path) -> None:
    """Inputs, topology, profiles, policy files and plug-ins become absolute; URIs and tables stay."""
    given_paths = {
        "inputs": {"lookups": "a/../b", "loads": "s3://bucket/loads"},
        "topology": {"file": "t.toml", "levels": ["rack"]},
        "brokers": [{"profile": "p.conf"}, {"profile": {"capacity": 1.0}}, {}],
        "policies": ["p.toml", {"name": "x"}],
        "plugin_files": ["x.py"],
    }

    found = anchored(given_paths, tmp_path)

    assert found["inputs"] == {"lookups": f"{tmp_path}/b", "loads": "s3://bucket/loads"}
    assert found["topology"] == {"file": f"{tmp_path}/t.toml", "levels": ["rack"]}
    assert found["brokers"] == [{"profile": f"{tmp_path}/p.conf"}, {"profile": {"capacity": 1.0}}, {}]
    assert found["policies"] == [f"{tmp_path}/p.toml", {"name": "x"}]
    assert found["plugin_files"] == [f"{tmp_path}/x.py"]


@pytest.mark.parametrize("value", [3, "x", [3], {"file": 3}, [[1]], None])
@pytest.mark.parametrize("key", ["inputs", "topology", "brokers", "policies", "plugin_files"])
def test_wrong_shapes_are_left_to_the_models(key: str, value: object) -> None:
    """Making paths absolute never fails, whatever stands where a path or table should."""
    assert set(anchored({key: value}, Path("/"))) == {key}


def test_leaves_are_values_and_lists_of_values() -> None:
    """Tables and lists of tables are walked; lists of plain values and empty ones are values."""
    found = dict(leaves({"a": {"b": 1}, "c": [{"d": 2}, "e"], "f": [1, 2], "g": {}, "h": []}))

    wanted = {("a", "b"): 1, ("c", 0, "d"): 2, ("c", 1): "e", ("f",): [1, 2], ("g",): {}, ("h",): []}
    assert found == wanted


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no such file"),
        (b"a = 1\nb = \n", "is no valid TOML: Invalid value (at line 2, column 5)"),
        (b"a = 1\na = 2\n", "is no valid TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"a = '\xff'", "is no text in UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_one_sentence(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    """A file that is absent, broken or not text is told with its path, a broken one with the line."""
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        read_toml(path)

    assert caught.value.problems == (f"{path}: {sentence}",)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in a file's place is told as the system tells it."""
    with pytest.raises(SettingsError, match=f"{tmp_path}: cannot be read: Is a directory"):
        read_toml(write(tmp_path, "a/x.toml", "").parent.parent)
