"""Writes the table of columns in `docs/getting-lookups.md` from `lookup/logs/columns.py`.

`python scripts/columns.py` writes it; a test fails if the page and the code differ.
"""

from __future__ import annotations

from pathlib import Path

from lookup.logs.columns import TABLES, Column, Kind

__all__ = ["PAGE", "page_with_columns"]

PAGE = Path(__file__).parents[1] / "docs" / "getting-lookups.md"
_BEGIN, _END = "<!-- columns: written by scripts/columns.py -->\n", "<!-- end of columns -->\n"
_KINDS: dict[Kind, str] = {
    "time": "timestamp or integer",
    "integer": "integer",
    "number": "number",
    "flag": "true or false",
    "text": "text",
    "json": "JSON text",
    "properties": "JSON text",
    "texts": "list of texts",
}


def page_with_columns(page: str) -> str:
    """Return the page with its table of columns as the code has them."""
    lines = ["| table | column | type | meaning, unit, range | if absent or null |", "|---|---|---|---|---|"]
    shared = [column for column in TABLES["lookups"] if all(column in columns for columns in TABLES.values())]
    lines += [_row("all", column) for column in shared]
    lines += [
        _row(f"`{table}`", column) for table, columns in TABLES.items() for column in columns if column not in shared
    ]
    before, _, rest = page.partition(_BEGIN)
    after = rest.partition(_END)[2]
    return before + _BEGIN + "\n" + "\n".join(lines) + "\n\n" + _END + after


def _row(table: str, column: Column) -> str:
    if column.is_required:
        absent = f"{column.absent}, else refused" if column.absent else "refused"
    else:
        absent = column.absent or "not known"
    return f"| {table} | `{column.name}` | {_KINDS[column.kind]} | {column.meaning} | {absent} |"


if __name__ == "__main__":
    PAGE.write_text(page_with_columns(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
