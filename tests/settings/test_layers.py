"""Layers: values with their sources, read from flags, variables and files, and laid over one another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.settings import EvaluationFile
from lookup.settings.layers import flag_layers, join_layers, make_layer, origins_of, values_of, variable_layers

_LAYERS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.integers(), max_size=2)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers()),
    max_leaves=12,
)


@given(table=_LAYERS)
def test_a_layer_gives_back_what_it_was_made_of(table: dict[str, Any]) -> None:
    """Every value of a layer has its source, and the values are as they were."""
    tree = make_layer(table, "here")

    assert values_of(tree) == table
    assert set(origins_of(tree).values()) <= {"here"}


@given(low=_LAYERS, high=_LAYERS)
def test_the_higher_source_wins(low: dict[str, Any], high: dict[str, Any]) -> None:
    """Every value of the higher source is in the result with its origin; what is left comes from the lower one."""
    tree = join_layers(make_layer(high, "high"), make_layer(low, "low"))

    origins = origins_of(tree)
    assert origins_of(make_layer(high, "high")).items() <= origins.items()
    assert set(origins.values()) <= {"low", "high"}
    assert set(tree) == set(low) | set(high)


def _variables(**environ: str) -> tuple[dict[str, Any], list[str]]:
    """Return what variables set, and the mistakes in them."""
    layers, problems = variable_layers(environ, EvaluationFile)
    return values_of(join_layers(*layers)), problems


def _flags(flags: dict[str, object]) -> tuple[dict[str, Any], list[str]]:
    """Return what flags set, and the mistakes in them."""
    layers, problems = flag_layers(flags, EvaluationFile, "command line")
    return values_of(join_layers(*layers)), problems


@pytest.mark.parametrize("key", ["sources", "self", "model_config", "_env_file", "Evaluation", "__class__"])
def test_a_key_of_a_file_is_never_taken_for_an_argument(key: str) -> None:
    """Whatever a file says at the top comes out as it was written, for the models to judge."""
    assert values_of(join_layers(make_layer({key: 1}, "e.toml"))) == {key: 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [("30", 30), ("0.5", 0.5), ("true", True), ("[1, 2]", [1, 2]), ('{"moves": 0.1}', {"moves": 0.1}), ("x y", "x y")],
)
def test_a_variable_is_read_as_toml_or_json(text: str, value: object) -> None:
    """Numbers, truth values, lists and tables are recognised; anything else stays a text for the models to judge."""
    assert _variables(LOOKUP_VERDICT__MARGINS=text) == ({"verdict": {"margins": value}}, [])


def test_a_text_setting_takes_its_variable_literally() -> None:
    """A policy may be called 42."""
    assert _variables(LOOKUP_EVALUATION__INCUMBENT="42") == ({"evaluation": {"incumbent": "42"}}, [])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("LOOKUP_EVALUATION__TIK_S", "evaluation.tik_s; did you mean 'tick_s'?"),
        ("LOOKUP_EVALUATON__TICK_S", "evaluaton.tick_s; did you mean 'evaluation'?"),
        ("LOOKUP_EVALUATION__TICK_S__X", "evaluation.tick_s.x; there are none"),
        ("LOOKUP_", ""),
    ],
)
def test_a_misspelt_variable_is_a_mistake(name: str, sentence: str) -> None:
    """A variable with the prefix that names no setting is told with the nearest name of its table."""
    values, (problem,) = _variables(**{name: "1"})

    assert values == {}
    assert problem.startswith(f"environment variable {name}: there is no setting {sentence}")


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("brokers.capacity", "capacity into [[brokers]] of a file"),
        ("brokers.0.capactiy", "[[brokers]] of a file; did you mean 'capacity'?"),
        ("brokers[0].capacity", "capacity into [[brokers]] of a file"),
        ("topology.edges.ms", "ms into [[topology.edges]] of a file"),
    ],
)
def test_entries_of_lists_are_written_into_a_file(name: str, end: str) -> None:
    """A list is set as a whole, so a path into one is answered with the place of its entries."""
    values, (problem,) = _flags({name: 1})

    assert values == {}
    assert problem.endswith(end)


def test_a_flag_that_was_not_given_sets_nothing() -> None:
    """None stands for a flag that was left out."""
    assert _flags({"inputs.lookups": None}) == ({}, [])


@pytest.mark.parametrize("table", ["{ moves = 0.1 }", "{}"])
def test_a_key_counts_before_the_table_it_is_in(table: str) -> None:
    """A variable for one key is laid over a variable for its table, whether that is empty or not."""
    values, _ = _variables(LOOKUP_VERDICT__MARGINS__MOVES="0.2", LOOKUP_VERDICT__MARGINS=table)

    assert values == {"verdict": {"margins": {"moves": 0.2}}}


def test_flags_keep_their_case() -> None:
    """Names of metrics and failure domains are the user's own; only variables have no case."""
    assert _flags({"failure_domains.East": "['a:1']"})[0] == {"failure_domains": {"East": ["a:1"]}}
    assert _variables(Lookup_Failure_Domains__East="['a:1']")[0] == {"failure_domains": {"east": ["a:1"]}}


@pytest.mark.parametrize("text", ["[" * 3_000, f"{'[' * 65}{']' * 65}", f"{'{a = ' * 65}1{'}' * 65}"])
def test_a_value_that_is_nested_too_deep_is_a_mistake(text: str) -> None:
    """Of a variable or a flag, named with its key, and the source has nothing of it."""
    limit = "evaluation.seeds: is nested too deep"

    for source, (values, (problem,)) in {
        "environment variable LOOKUP_EVALUATION__SEEDS": _variables(LOOKUP_EVALUATION__SEEDS=text),
        "command line": _flags({"evaluation.seeds": text}),
    }.items():
        assert values == {}
        assert problem.startswith(f"{source}: {limit}")
