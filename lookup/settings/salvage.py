"""What is right in settings that are wrong as a whole, so that one mistake hides no other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel, TypeAdapter

from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import Loc

__all__ = ["named_policies", "right_values", "sound_tables"]


def right_values(model: type[BaseModel], values: Mapping[str, Any], wrong: Collection[str | int]) -> dict[str, Any]:
    """Return the values of a table, defaults included, by key, without those that are wrong."""
    return dict(_right_values(model, values, wrong))


def sound_tables(values: Mapping[str, Any], wrong: Collection[Loc]) -> dict[str, Any]:
    """Return what is right in the wrong tables of an evaluation: an object with the right keys, the right policies.

    Args:
        values: an evaluation without unknown keys.
        wrong: the place of every mistake.
    """
    inside = {str(loc[0]): {step for other in wrong if other[0] == loc[0] for step in other[1:2]} for loc in wrong}
    found: dict[str, Any] = {
        name: SimpleNamespace(**right_values(model, values[name], inside[name]))
        for name, model in _models().items()
        if name in inside and isinstance(values.get(name), Mapping)
    }
    if isinstance(values.get("policies"), list):
        entries = enumerate(values["policies"])
        found["policies"] = tuple(
            PolicySpec.model_validate(entry) for place, entry in entries if place not in inside.get("policies", ())
        )
    return found


def named_policies(written: object) -> tuple[SimpleNamespace, ...] | None:
    """Return the policies with nothing but their names; None where there are none or a name cannot be read."""
    names = [_name_of(entry) for entry in written] if isinstance(written, list) else []
    return None if None in names or not names else tuple(SimpleNamespace(name=name) for name in names)


def _right_values(
    model: type[BaseModel], values: Mapping[str, Any], wrong: Collection[str | int]
) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        if name in values and name not in wrong:
            yield name, TypeAdapter(info.rebuild_annotation()).validate_python(values[name])
        elif name not in wrong:
            yield name, info.get_default(call_default_factory=True)


def _models() -> dict[str, type[BaseModel]]:
    """Return the tables of an evaluation that have fixed keys."""
    types = {name: info.annotation for name, info in EvaluationFile.model_fields.items()}
    return {name: found for name, found in types.items() if isinstance(found, type) and issubclass(found, BaseModel)}


def _name_of(entry: object) -> str | None:
    name = entry.name if isinstance(entry, PolicySpec) else entry.get("name") if isinstance(entry, Mapping) else None
    return name if isinstance(name, str) else None
