"""Damage files: TOML by lines, JSON by values, Parquet by columns, anything by bytes."""

from __future__ import annotations

import io
import json
import math
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["damaged_bytes", "damaged_json", "damaged_parquet", "damaged_text"]

#: Values that no setting expects, as TOML writes them.
_LITERALS = (
    *("-1", "0", "1", "2.5", "1e308", "inf", "nan", "-inf", "9223372036854775807", "-9223372036854775809", "7" * 5_000),
    *("true", "false", "[]", "[[]]", "{}", "{ a = 1 }", "[1, 'a']", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z"),
    *('""', '" "', '"a\\u001b[31mb"', '"\\u202eb"', '"a\\nb"', f'"{"x" * 10_000}"', '"../.."', '"/dev/zero"', '"/"'),
    *('"best"', '"stock"', '"persistent://a/b/c"', '"broker-1:8080"', '"[::1]:8080"', '"(?P<a>.*"', '"{n}"', '"%"'),
)
#: Values that no field expects, as JSON has them; NaN and Infinity are written as Python writes them.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 2.5, 1e308, math.nan, math.inf, 2**63, -(2**70), 10**4_000),
    *("", "\x1b[31m", "\u202e", "a\nb", "x" * 10_000, "\ud800", "nan", "2026-01-05", [], [[]], [None], {}, {"a": 1}),
)


def damaged_bytes(dice: Random, content: bytes) -> bytes:
    """Cut a file, or write over, insert or repeat some bytes of it."""
    start = dice.randrange(len(content) + 1)
    end = min(len(content), start + dice.choice((1, 2, 16, 200)))
    noise = dice.choice(
        (b"", dice.randbytes(end - start), b"\x00", b"\xff\xfe", b"\xe9", b"\r\n", content[start:end] * 2)
    )
    return dice.choice((content[:start], content[:start] + noise + content[end:]))


def damaged_text(dice: Random, text: str) -> bytes:
    """Damage some lines of a file of settings: values, keys and whole lines; now and then bytes."""
    lines = text.splitlines()
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        number = dice.randrange(len(lines))
        key, equals, value = lines[number].partition(" = ")
        other = dice.choice(lines)
        lines[number] = dice.choice(
            (
                *[f"{key} = {dice.choice(_LITERALS)}"] * 6,
                f"{key}{dice.choice(('x', '.a', ' ', '=', '[', chr(27)))}{equals}{value}",
                f"{key} = {other.partition(' = ')[2]}",
                "",
                f"{lines[number]}\n{other}",
                other,
            )
        )
    content = "\n".join(lines).encode() + b"\n"
    return damaged_bytes(dice, content) if dice.random() < 0.1 else content


def damaged_json(dice: Random, content: bytes) -> bytes:
    """Damage some values of a JSON text, at any depth; now and then bytes."""
    value = json.loads(content)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        value = _with_another(dice, value)
    text = json.dumps(value).encode()
    return damaged_bytes(dice, text) if dice.random() < 0.1 else text


def _with_another(dice: Random, value: Any) -> Any:
    """Return a JSON value in which one value, key or item is another one, or is gone, or stands twice."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.1:
        return dice.choice(_VALUES)
    places = list(value) if isinstance(value, dict) else range(len(value))
    place = dice.choice(places)
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    what = dice.random()
    if what < 0.8:
        changed[place] = _with_another(dice, value[place])
    elif what < 0.9 or isinstance(value, list):
        del changed[place]
    else:
        changed[dice.choice(("", "x", "\x1b", "a" * 300))] = changed.pop(place)
    return changed


def damaged_parquet(dice: Random, content: bytes) -> bytes:
    """Damage a column of a Parquet file: its type, its values, its name, that it is there, or there once."""
    if dice.random() < 0.15:
        return damaged_bytes(dice, content)
    table = pq.read_table(io.BytesIO(content), partitioning=None)
    name = dice.choice(table.column_names)
    position = table.column_names.index(name)
    rows = table.num_rows
    others: list[Any] = [
        pa.nulls(rows),
        pa.nulls(rows, table.schema.field(name).type),
        pa.array([dice.choice((math.nan, math.inf, -1.0, 1e300))] * rows),
        pa.array([dice.choice((-1, 0, 2**62, -(2**62)))] * rows),
        pa.array([dice.choice(("", "\x1b[31m", "a\nb", "x" * 10_000, "persistent://a", "{", "/"))] * rows),
        pa.array([b"\xff\xfe"] * rows),
        pa.array([[1]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([True] * rows),
        pa.array([dice.choice((-(2**62), 0, 2**62))] * rows, pa.timestamp("us", "UTC")),
        pa.array([0] * rows, pa.timestamp("ns")),
        pa.array([0] * rows, pa.date32()),
        table.column(dice.choice(table.column_names)),
    ]
    table = dice.choice(
        (
            *[table.set_column(position, name, dice.choice(others))] * 5,
            table.remove_column(position),
            table.append_column(name, dice.choice((table.column(name), *others))),
            table.rename_columns(
                [dice.choice(("", "x", name.upper())) if other == name else other for other in table.column_names]
            ),
            table.slice(0, 0),
        )
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()
