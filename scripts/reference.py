"""Writes the tables of keys in `docs/settings.md` from the models, and the help in `docs/cli.md` from the parsers.

`python scripts/reference.py` writes both pages. Their texts between the marks of the tables stay as they are.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from lookup import cli
from scripts.schemas import FILES, schema_text

__all__ = ["CLI", "SETTINGS", "cli_page", "settings_page"]

_DOCS = Path(__file__).parents[1] / "docs"
CLI, SETTINGS = _DOCS / "cli.md", _DOCS / "settings.md"
_KEYS = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
_HELP = re.compile(r"(<!-- help: ([\w -]+) -->\n).*?(<!-- end of help -->)", re.DOTALL)
#: A longer list of texts is not written into a table.
_MOST = 6
#: Characters of a line of help.
_WIDTH = 110
_WORDS = {"string": "text", "boolean": "boolean", "integer": "integer", "number": "number", "object": "table"}


def settings_page(page: str) -> str:
    """Fill the tables of keys of a page."""
    tables = _tables()
    return _KEYS.sub(lambda found: f"{found[1]}\n{_markdown(tables[found[2]])}\n\n{found[3]}", page)


def cli_page(page: str) -> str:
    """Fill the help texts of a page."""
    return _HELP.sub(lambda found: f"{found[1]}\n```text\n{_help(found[2])}```\n\n{found[3]}", page)


def _help(command: str) -> str:
    printed = io.StringIO()
    columns = mock.patch.dict(os.environ, COLUMNS=str(_WIDTH))
    with columns, contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main([*command.split(), "--help"])
    return textwrap.dedent(printed.getvalue())


def _tables() -> Mapping[str, Mapping[str, Any]]:
    """List the schemas of all tables by the names of their models."""
    tables: dict[str, Mapping[str, Any]] = {}
    for name in FILES:
        schema = json.loads(schema_text(name))
        tables |= schema.get("$defs", {})
        if "title" in schema:
            tables[schema["title"]] = schema
    return tables


def _markdown(table: Mapping[str, Any]) -> str:
    rows = [["key", "type", "default", "meaning"], ["---"] * 4, *_rows(table)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(table: Mapping[str, Any]) -> Iterator[list[str]]:
    for key, field in table["properties"].items():
        default = _default(field) if "default" in field else "required"
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield [f"`{key}`", _type(field), default, meaning]


def _default(field: Mapping[str, Any]) -> str:
    value = field["default"]
    if value is None:
        return "–"
    if _is_part(field):
        return f"`{json.dumps(value if isinstance(value, str) else value['use'])}`"
    if "$ref" in field:
        return "its defaults"
    if isinstance(value, dict) and value:
        return "`{ " + ", ".join(f"{key} = {json.dumps(each)}" for key, each in value.items()) + " }`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _is_part(field: Mapping[str, Any]) -> bool:
    return str(field.get("$ref", "")).endswith("/PartSpec")


def _type(field: Mapping[str, Any]) -> str:
    """Describe the values that a key may have."""
    if _is_part(field):
        return "part"
    if len(field.get("enum", ())) > _MOST:
        return "text"
    if not {"type", "enum", "const", "anyOf", "$ref"} & field.keys():
        return "value"
    if "enum" in field or "const" in field:
        return " or ".join(f"`{json.dumps(value)}`" for value in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        kinds = dict.fromkeys(_type(kind) for kind in field["anyOf"] if kind.get("type") != "null")
        return " or ".join(kinds)
    if field.get("format") in ("date-time", "path"):
        return {"date-time": "time with offset", "path": "path"}[field["format"]]
    if field.get("type") == "array":
        return f"list of {_plural(_type(field.get('items', {})))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"table of {_plural(_type(field['additionalProperties']))}"
    return _WORDS.get(field.get("type", "object"), "table") + _bounds(field)


def _plural(words: str) -> str:
    return re.sub(r"\b(text|boolean|integer|number|table|part|value|list)\b(?! of)", r"\1s", words)


def _bounds(field: Mapping[str, Any]) -> str:
    least, most = field.get("minimum", field.get("exclusiveMinimum")), field.get("maximum")
    if least is None:
        return "" if most is None else f" ≤ {most:g}"
    sign = ">" if "exclusiveMinimum" in field else "≥"
    return f" {sign} {_number(least)}" if most is None else f", {_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}".replace("e-0", "e-").replace("e+", "e")


if __name__ == "__main__":
    for path, filled in ((CLI, cli_page), (SETTINGS, settings_page)):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
