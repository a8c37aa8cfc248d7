"""Files of vectors and the conventions of their inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.model import ResourceUsage
from tests.vectors.reading import (
    NotUnderstood,
    Vector,
    configuration,
    hash_of,
    hash_text,
    hashes_of,
    only,
    read_vectors,
    usage,
)

_ENTRY: dict[str, Any] = {"id": "a/1", "area": "a", "input": {"x": 1}, "expected": {"y": 2}, "status": "derived"}


def _file(folder: Path, text: str) -> Path:
    path = folder / "vectors.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([_ENTRY, _ENTRY]),
        f"[\n{json.dumps(_ENTRY)},\n{json.dumps(_ENTRY)}\n]",
        f"{json.dumps(_ENTRY)}\n\n{json.dumps(_ENTRY)}\n",
        f"\ufeff{json.dumps([_ENTRY, _ENTRY])}",
    ],
)
def test_a_list_and_one_object_per_line_are_the_same(tmp_path: Path, text: str) -> None:
    """Both forms give the vectors in the file's order."""
    assert read_vectors(_file(tmp_path, text)) == [Vector("a/1", "a", {"x": 1}, {"y": 2})] * 2


def test_one_object_is_one_vector(tmp_path: Path) -> None:
    """A file of a single line is no list, but a vector all the same."""
    assert [vector.id for vector in read_vectors(_file(tmp_path, json.dumps(_ENTRY)))] == ["a/1"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 70_000, r"vectors\.json is nested too deep: at most 64 tables or lists"),
        (f"{'[' * 65}{']' * 65}\n{{}}", r"vectors\.json, line 1 is nested too deep: at most 64"),
        ('{"id": 1', r"vectors\.json, line 1 is no JSON \(.*\); a file holds a list, or one object per line"),
        ("[1]", r"vectors\.json, entry 1 is no object but int"),
        ("{}", r"entry 1: id is missing"),
        (json.dumps([{**_ENTRY, "input": []}]), "entry 1: input is not an object"),
        (json.dumps([_ENTRY, {**_ENTRY, "area": 5}]), "entry 2: area is not a text"),
        (json.dumps({**_ENTRY, "expected": None}), "expected is not an object"),
    ],
)
def test_what_is_no_vector_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    """In one sentence that names file and place."""
    with pytest.raises(InputError, match=sentence):
        read_vectors(_file(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(InputError, match=r"none\.json: No such file"):
        read_vectors(tmp_path / "none.json")


def test_bytes_are_refused(tmp_path: Path) -> None:
    """Vectors are text."""
    (tmp_path / "vectors.json").write_bytes(b"\xff\xfe[]")

    with pytest.raises(InputError, match="is no UTF-8 text"):
        read_vectors(tmp_path / "vectors.json")


def test_a_direct_key_wins_over_config_and_config_over_the_default() -> None:
    """Whatever is not given has Pulsar's value."""
    given = {
        "config": {"loadBalancerBrokerMaxTopics": 5, "loadBalancerTransferEnabled": False},
        "loadBalancerBrokerMaxTopics": 7,
        "broker": "x",
    }

    assert configuration(
        given,
        "loadBalancerBrokerMaxTopics",
        "loadBalancerTransferEnabled",
        "loadBalancerSheddingConditionHitCountThreshold",
    ) == {
        "loadBalancerBrokerMaxTopics": 7,
        "loadBalancerTransferEnabled": False,
        "loadBalancerSheddingConditionHitCountThreshold": 3,
    }


@pytest.mark.parametrize("given", [{}, {"config": "defaults"}, {"config": {"note": "nothing is set"}}])
def test_no_configuration_is_pulsars(given: dict[str, Any]) -> None:
    """Absent, in a word, or with an explanation only."""
    assert configuration(given, "loadBalancerCPUResourceWeight") == {"loadBalancerCPUResourceWeight": 1.0}


def test_the_old_spelling_counts_where_the_new_one_is_not_set() -> None:
    """Pulsar reads it where the new weight is exactly 1."""
    old, new = "loadBalancerBandwithInResourceWeight", "loadBalancerBandwidthInResourceWeight"

    assert configuration({old: 0.5}, new) == {new: 0.5}
    assert configuration({old: 0.5, new: 0.7}, new) == {new: 0.7}


@pytest.mark.parametrize("config", [{"loadBalancerNoSuchKey": 1}, "whatever"])
def test_unknown_configuration_is_not_understood(config: Any) -> None:
    """A key Pulsar does not have is never passed over."""
    with pytest.raises(NotUnderstood):
        configuration({"config": config})


def test_unknown_keys_are_not_understood() -> None:
    """Those that explain are fine."""
    only({"a": 1, "note": "", "why": "", "meaning": ""}, "a")

    with pytest.raises(NotUnderstood, match="'b' is not understood"):
        only({"a": 1, "b": 2}, "a")


def test_hashes_are_read_and_written() -> None:
    """In either case, with an offset behind, and in eight lower-case digits."""
    assert hashes_of(["0x0000000A", "0x00000000 + 10"]) == (10, 10)
    assert hash_text(hash_of("0xABCDEF01")) == "0xabcdef01"

    with pytest.raises(NotUnderstood):
        hash_of("lowest")


def test_usage_pairs_are_read() -> None:
    """Usage first, limit second."""
    assert usage([30, 100]) == ResourceUsage(30.0, 100.0)

    with pytest.raises(NotUnderstood):
        usage([30])
