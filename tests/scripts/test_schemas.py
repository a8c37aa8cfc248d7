"""The published JSON Schemas and the page about settings say what the models say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import lookup.settings
from lookup.settings import PartSpec
from scripts.schemas import FILES, schema_text, write_schemas

_DOCS = Path(__file__).parents[2] / "docs"
#: All tables of the files but a part's, whose parameters stand with its class.
_MODELS = [
    model
    for model in (getattr(lookup.settings, name) for name in lookup.settings.__all__)
    if isinstance(model, type) and issubclass(model, BaseModel) and model is not PartSpec
]
_FIELDS = [(model, name, field) for model in _MODELS for name, field in model.model_fields.items()]


@pytest.mark.parametrize("name", FILES)
def test_the_published_schema_is_the_model_s(name: str) -> None:
    """The files under docs/schema/ are what the models say today."""
    assert (_DOCS / "schema" / f"{name}.schema.json").read_text(encoding="utf-8") == schema_text(name)


def test_nothing_else_is_published(tmp_path: Path) -> None:
    """The folder holds the schemas and nothing that was forgotten."""
    write_schemas(tmp_path / "schema")

    published = {path.name for path in (_DOCS / "schema").iterdir()}
    assert published == {path.name for path in (tmp_path / "schema").iterdir()}


def _tables(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            yield schema
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        yield from _tables(inner)


@pytest.mark.parametrize("name", FILES)
def test_schemas_are_as_strict_as_the_models(name: str) -> None:
    """No table takes further keys but a part's, whose parameters only its class knows; every key is described."""
    for table in _tables(json.loads(schema_text(name))):
        if "use" not in table["properties"]:
            assert table["additionalProperties"] is False
            assert all("description" in field or "$ref" in field for field in table["properties"].values())


@pytest.mark.parametrize("name", ["profile", "policies"])
def test_a_path_may_stand_for_a_table(name: str) -> None:
    """Editors accept the path of a file where the evaluation takes one."""
    definitions = json.loads(schema_text("evaluation"))
    where = definitions["properties"] if name == "policies" else definitions["$defs"]["BrokerEntry"]["properties"]

    assert '"type": "string"' in json.dumps(where[name])


def _rows() -> set[tuple[str, str]]:
    """Return key and default of every row of the tables of docs/settings.md."""
    text = (_DOCS / "settings.md").read_text(encoding="utf-8")
    return {(found[1], found[2]) for found in re.finditer(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|", text, re.MULTILINE)}


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "–"
    if isinstance(value, PartSpec):
        return f"`{json.dumps(value.use)}`"
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, dict) and value:
        return "`{ " + ", ".join(f"{key} = {figure}" for key, figure in value.items()) + " }`"
    return f"`{json.dumps(value)}`"


@pytest.mark.parametrize(("model", "name", "field"), _FIELDS, ids=[f"{m.__name__}.{name}" for m, name, _ in _FIELDS])
def test_every_setting_is_documented_with_its_default(model: type[BaseModel], name: str, field: FieldInfo) -> None:
    """docs/settings.md has a row for every key of every table, with the default the code has."""
    assert (field.alias or name, _default(field)) in _rows()


def test_every_key_of_a_part_is_documented() -> None:
    """A part's own keys are on the page as well."""
    text = (_DOCS / "settings.md").read_text(encoding="utf-8")

    assert all(f"`{name}`" in text for name in PartSpec.model_fields)
