"""JSON Schemas of the settings files, for editors that complete and check TOML; published under `docs/schema/`.

They say what may be written, which is a little more than the models hold: a path where a file may stand for a table.
`python scripts/schemas.py FOLDER` writes them.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from lookup.settings.base import Strict
from lookup.settings.broker import BrokerProfile
from lookup.settings.cluster import TopologyFile
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.files import BudgetFile
from lookup.settings.policy import PolicyFile, PolicySpec
from lookup.settings.serving import ClusterFile, ServingFile
from lookup.settings.topics import TopicsFile
from lookup.settings.tuning import SpaceEntry, TuneFile

__all__ = ["FILES", "schema_text", "write_schemas"]

#: What may stand in a file, by the name of its schema.
FILES: Mapping[str, TypeAdapter[Any]] = {
    "evaluation": TypeAdapter(EvaluationFile),
    "policy": TypeAdapter(PolicySpec | PolicyFile),
    "broker-profile": TypeAdapter(BrokerProfile),
    "budget": TypeAdapter(BudgetFile),
    "cluster": TypeAdapter(ClusterFile),
    "serving": TypeAdapter(ServingFile),
    "topics": TypeAdapter(TopicsFile),
    "topology": TypeAdapter(TopologyFile),
    "tune": TypeAdapter(TuneFile),
    "space": TypeAdapter(SpaceEntry),
}


class _Described(GenerateJsonSchema):
    """Takes the docstring below a field as its description."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        described, model = super().model_schema(schema), schema["cls"]
        for parent in (parent for parent in reversed(model.__mro__) if issubclass(parent, Strict)):
            for field, text in pairwise(ast.parse(inspect.getsource(parent)).body[0].body):  # type: ignore[attr-defined]
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                        key = model.model_fields[name].alias or name
                        described["properties"][key]["description"] = inspect.cleandoc(words)
        return described


def schema_text(name: str) -> str:
    """Return the schema of one kind of file as text."""
    described = FILES[name].json_schema(schema_generator=_Described)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write_schemas(folder: Path) -> None:
    """Write every schema into a folder, as NAME.schema.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]))
