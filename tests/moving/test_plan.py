"""A plan is read back as it was written, and refused by a sentence if it is anything else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.moving.plan import Fingerprint, MovePlan, PlannedFigure, Step, digest, plan_bytes, read_plan

_MADE = datetime(2026, 11, 26, 12, tzinfo=UTC)


def _plan() -> MovePlan:
    """One bundle goes from a broker to another."""
    fingerprint = Fingerprint(since=_MADE, epoch=7)
    step = Step(
        number=1,
        bundle="shop/orders/0x00000000_0xffffffff",
        source="a:8080",
        destination="b:8080",
        weight=1234.0,
        reason="overloaded",
        fingerprint=fingerprint,
        imbalance=1.1,
    )
    return MovePlan(
        cluster="east",
        made=_MADE,
        policy={"policy": "rebalance", "max_imbalance": 1.2},
        brokers=(),
        steps=(step,),
        figures=(PlannedFigure(metric="imbalance", value=1.1, unit="ratio", better="down", before=1.5),),
    )


def _refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_plan(path)
    return str(refused.value)


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Reading gives an equal plan, and writing that the same bytes."""
    (tmp_path / "plan.json").write_bytes(plan_bytes(_plan()))

    again = read_plan(tmp_path / "plan.json")

    assert again == _plan()
    assert plan_bytes(again) == plan_bytes(_plan())


def test_a_document_in_another_layout_is_the_same_plan(tmp_path: Path) -> None:
    """The order of keys and blanks do not count for the checksum: a tool may format the file."""
    content = json.loads(plan_bytes(_plan()))
    (tmp_path / "plan.json").write_text(json.dumps(dict(reversed(content.items()))))

    assert read_plan(tmp_path / "plan.json") == _plan()


def test_an_edit_is_noticed(tmp_path: Path) -> None:
    """Another destination, and a key that no plan has, are no plan of ours."""
    written = plan_bytes(_plan())
    added = json.dumps(json.loads(written) | {"force": True}).encode()

    for edited in (written.replace(b'"to": "b:8080"', b'"to": "c:8080"'), added):
        assert "was changed" in _refused(tmp_path / "plan.json", edited)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (plan_bytes(_plan())[:200], "is not a complete JSON document"),
        (b"\xff", "is not a complete JSON document"),
        (b"[]", "is not a plan"),
        (b'{"policies": []}', "is not a plan"),
        (b'{"plan": 1, "checksum": ""}', "plan of version 1"),
    ],
)
def test_what_is_no_plan_is_said(tmp_path: Path, content: bytes, sentence: str) -> None:
    """Half a file, another document and another version have a sentence each, with the path in it."""
    refused = _refused(tmp_path / "plan.json", content)

    assert refused.startswith(str(tmp_path))
    assert sentence in refused


def test_a_plan_of_a_program_of_its_own_is_checked_by_key(tmp_path: Path) -> None:
    """A checksum that fits does not let a step through that is none."""
    wrong = _plan().model_copy(update={"steps": ({"number": 1},)})

    with pytest.warns(UserWarning, match="serialized"):
        content = plan_bytes(wrong)

    assert "steps[0].bundle: is missing" in _refused(tmp_path / "plan.json", content)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"brokers": [{"id": "a:8080", "web_url": "file:///etc/passwd", "load": 1.0, "load_after": 1.0}]}, "web_url: "),
        (
            {"brokers": [{"id": "a:8080", "web_url": "http://a:x", "load": 1.0, "load_after": 1.0}]},
            "web_url: should be",
        ),
        ({"bundle": "shop/orders/../../brokers/configuration"}, "steps[0].bundle: "),
    ],
)
def test_what_goes_into_requests_is_checked(tmp_path: Path, edit: dict[str, Any], sentence: str) -> None:
    """A broker is asked over HTTP alone, and a bundle is part of a path."""
    content = json.loads(plan_bytes(_plan()))
    del content["checksum"]
    if "bundle" in edit:
        content["steps"][0] |= edit
    else:
        content |= edit

    assert sentence in _refused(tmp_path / "plan.json", json.dumps(content | {"checksum": digest(content)}).encode())
