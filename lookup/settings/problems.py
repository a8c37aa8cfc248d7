"""Write mistakes in settings as sentences with their place, the mistake and the right form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from lookup.model.quoting import shown, suggestion

__all__ = [
    "LIST", "NUMBER", "TABLE", "Loc", "choices_at", "descend", "key_of", "key_path", "known_keys", "place",
    "problems_of", "table_at", "unknown_keys", "without",
]  # fmt: skip

#: Place of a value, as keys and positions from the top of the settings.
Loc = tuple[str | int, ...]

#: Kinds of a value that may be one of two, which pydantic puts into the place of a mistake.
NUMBER, LIST, TABLE = "[number]", "[list]", "[table]"

# A key path and a colon. Other sentences have a blank before their first colon.
_KEYED = re.compile(r"[A-Za-z_][^\s:]*: ")
#: A position, a quoted key or a bare one of a key path.
_STEP = re.compile(r'\[(\d+)\]|"([^"]*)"|([\w-]+)')
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def key_path(loc: Iterable[str | int]) -> str:
    """Write a place as `brokers[0].properties."lookup.rack"`."""
    text = ""
    for step in loc:
        name = f"[{step}]" if isinstance(step, int) else step if _BARE.match(step) else json.dumps(step)
        text += name if isinstance(step, int) or not text else f".{name}"
    return text


def place(loc: Iterable[str | int], sentence: str) -> str:
    """Put a place before a sentence. Checks of a table begin their sentences with its own key and a colon."""
    path = key_path(loc)
    joint = "." if _KEYED.match(sentence) else ": "
    return f"{path}{joint}{sentence}" if path else sentence


def key_of(loc: Loc, sentence: str) -> Loc:
    """Find the place of a sentence from the key it begins with, as sentences of a table's checks do."""
    keyed = _KEYED.match(sentence)
    steps = _STEP.findall(keyed[0]) if keyed else ()
    return (*loc, *(int(position) if position else quoted or bare for position, quoted, bare in steps))


def problems_of(error: ValidationError, model: object) -> Iterator[tuple[Loc, str]]:
    """Yield place and sentence of every mistake from pydantic. A model's own check may have found several."""
    details = error.errors(include_url=False)
    for detail in details:
        above = detail["loc"]
        inside = (other["loc"] for other in details if len(other["loc"]) > len(above))
        # pydantic also complains that a list is too short if some of its items were wrong, which is only a consequence.
        if detail["type"] == "too_short" and any(loc[: len(above)] == above for loc in inside):
            continue
        loc = _strip_markers(detail["loc"])
        for sentence in _write_sentences(detail, loc, model):
            yield loc, sentence


def unknown_keys(error: ValidationError) -> set[Loc]:
    """List the places of keys that do not belong to any table."""
    return {_strip_markers(detail["loc"]) for detail in error.errors() if detail["type"] == "extra_forbidden"}


def _strip_markers(loc: Loc) -> Loc:
    return tuple(step for step in loc if step not in ("[key]", NUMBER, LIST, TABLE))


def without(value: Any, locs: set[Loc]) -> Any:
    """Copy tables and lists without the values at some places."""
    below = {loc[0]: {other[1:] for other in locs if other[0] == loc[0]} for loc in locs}
    if isinstance(value, Mapping):
        entries = {key: inner for key, inner in value.items() if () not in below.get(key, ())}
        return {key: without(inner, below.get(key, set())) for key, inner in entries.items()}
    if isinstance(value, list):
        return [without(inner, below.get(index, set())) for index, inner in enumerate(value)]
    return value


def _write_sentences(detail: ErrorDetails, loc: Loc, model: object) -> list[str]:
    if detail["type"] == "extra_forbidden":
        return [f"there is no such key; {_suggest_key(loc, model)}"]
    if detail["type"] == "missing":
        return ["is missing"]
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"]).split("\n")
    if detail["type"] == "too_short" and not detail["input"]:
        return ["should not be empty"]
    rule = f"should be {_KINDS[detail['type']]}" if detail["type"] in _KINDS else _WORDS.sub("should", detail["msg"])
    value = detail["input"]
    # In TOML's form, true and 2026-01-01, not True and datetime.date(2026, 1, 1).
    written = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, date) else shown(value)
    return [f"{rule}, not {written}"]


def _suggest_key(loc: Loc, model: object) -> str:
    """Write the clause that suggests a key, one of this name in a neighbouring table, else a similar one."""
    *above, wrong = loc
    keys = choices_at(model, above)
    inside = [table for table in keys if wrong in choices_at(model, (*above, table))]
    if len(inside) == 1:
        return f"did you mean {key_path((*above, inside[0], wrong))}?"
    return suggestion(str(wrong), keys)


# TOML's words for types that pydantic names by Python's.
_KINDS = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "float_type": "a number",
    "int_type": "a whole number",
    "mapping_type": "a table",
    "model_type": "a table",
    "string_type": "a text",
    "tuple_type": "a list",
}
# pydantic begins with "Input should", "Tuple should", "Dictionary should", ...
_WORDS = re.compile(r"\A\w+ should")


def known_keys(model: type[BaseModel]) -> dict[str, Any]:
    """Map the keys of a table, as they are written, to the types of their values."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def choices_at(model: object, loc: Iterable[str | int]) -> list[str]:
    """List the keys that may be written at a place, none without a table of fixed keys."""
    table = table_at(model, loc)
    return [] if table is None else list(known_keys(table))


def table_at(model: object, loc: Iterable[str | int]) -> type[BaseModel] | None:
    """Find the model of the table of fixed keys at a place, required or not, None if there is none."""
    reached: object = model
    for step in loc:
        reached = descend(reached, step)
    inner = _strip_annotation(reached)
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def descend(annotation: object, step: str | int) -> object:
    """Find the type of the value under a key, or at a position, of a value of a type, None if it cannot exist."""
    inner = _strip_annotation(annotation)
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return known_keys(inner).get(str(step))
    origin = get_origin(inner)
    if isinstance(step, int):
        return get_args(inner)[0] if origin is tuple else None
    return get_args(inner)[-1] if origin is Mapping else None


def _strip_annotation(annotation: object) -> object:
    if get_origin(annotation) is Annotated:
        return _strip_annotation(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        inside = [arg for arg in get_args(annotation) if arg is not type(None)]
        # A list or a table, of which only a table has keys.
        inside = [arg for arg in inside if Tag(TABLE) in get_args(arg)] or inside
        return _strip_annotation(inside[0]) if len(inside) == 1 else annotation
    return annotation
