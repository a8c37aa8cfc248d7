"""Any delimited file or access log, read with a mapping that says which column is what.

The mapping is the reader's parameters, a TOML file; `configs/nasa.toml` is one. Nothing here knows a particular log.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote

from lookup.logs.readers.delimited_fields import FieldMap, FieldMapping, build_fields
from lookup.logs.readers.records import unreadable
from lookup.model.documents import Row, Unreadable
from lookup.model.quoting import listed, shown

__all__ = ["DelimitedReader"]

#: Cuts a line into values; raises ValueError with a clause that says why it cannot.
_Cutter = Callable[[str], Sequence[str]]


@dataclass(frozen=True)
class DelimitedReader(FieldMapping):
    """Reads one LOOKUPS row per line, by a mapping from columns to what a lookup has."""

    name: ClassVar[str] = "delimited"
    expects: ClassVar[str] = "one request per line, cut by `delimiter` or matched by `pattern`"

    #: one character or more between values; leave it out where there is a `pattern`
    delimiter: str = ","
    #: regular expression with named groups that matches a whole line, in place of `delimiter`
    pattern: str = ""
    #: whether the first line that is no comment names the columns
    header: bool = True
    #: names of the columns where there is no header
    columns: tuple[str, ...] = ()
    #: the character around values that contain the delimiter; none by default
    quote: str = ""
    #: lines that begin with it are not read
    comment: str = ""
    #: columns that are percent-encoded in the log, such as parts of a path
    decode: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a mapping that cannot work; ValueError says which key."""
        build_fields(self)
        _cutter(self)
        if not self.pattern and not self.header and not self.columns:
            raise ValueError("`columns` must name the columns where `header` is false")

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line, by the mapping."""
        fields, cut = build_fields(self), _cutter(self)
        names = list(re.compile(self.pattern).groupindex) if self.pattern else list(self.columns)
        wants_header = self.header and not self.pattern
        for number, line in lines:
            if not line.strip() or (self.comment and line.startswith(self.comment)):
                continue
            if wants_header:
                wants_header, names = False, names or _header(cut, line)
                missing = [column for column in fields.columns if column not in names]
                if missing:
                    said = f"the header has no column {shown(missing[0])}; it has {listed(names)}"
                    yield unreadable(number, said, line)
                continue
            record = _record(cut, names, line)
            if self.decode and not isinstance(record, str):
                record = {**record, **{name: unquote(record[name]) for name in self.decode if name in record}}
            yield from _read(fields, record, number, line)


def _header(cut: _Cutter, line: str) -> list[str]:
    try:
        return [name.strip() for name in cut(line)]
    except ValueError:
        return []


def _record(cut: _Cutter, names: Sequence[str], line: str) -> Mapping[str, str] | str:
    """Cut a line into a record, or say why that cannot be."""
    try:
        values = cut(line)
    except ValueError as error:
        return str(error)
    if len(values) != len(names):
        return f"{len(values)} values where {len(names)} columns are named"
    return dict(zip(names, values, strict=True))


def _read(fields: FieldMap, record: Mapping[str, str] | str, number: int, line: str) -> Iterator[Row | Unreadable]:
    if isinstance(record, str):
        yield unreadable(number, record, line)
        return
    try:
        if fields.wants(record):
            yield Row("lookups", number, fields.values(record))
    except KeyError as error:
        yield unreadable(number, f"there is no column {shown(error.args[0])}; there are {listed(record)}", line)
    except ValueError as error:
        yield unreadable(number, str(error), line)


def _cutter(reader: DelimitedReader) -> _Cutter:
    """Return the function that cuts lines as the mapping says."""
    if reader.pattern:
        return _by_pattern(reader.pattern)
    if not reader.delimiter:
        raise ValueError("`delimiter` is empty; give one, or a `pattern`")
    if reader.quote:
        return _by_quotes(reader.delimiter, reader.quote)
    return lambda line: line.split(reader.delimiter)


def _by_pattern(text: str) -> _Cutter:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"`pattern` is no regular expression: {error}") from None
    if len(pattern.groupindex) != pattern.groups or not pattern.groups:
        raise ValueError("`pattern` must have named groups, (?P<name>...), and no others")

    def cut(line: str) -> Sequence[str]:
        """Return the values of the pattern's groups."""
        found = pattern.fullmatch(line)
        if found is None:
            raise ValueError("the line does not match `pattern`")
        return found.groups(default="")

    return cut


def _by_quotes(delimiter: str, quote: str) -> _Cutter:
    if len(delimiter) != 1 or len(quote) != 1:
        raise ValueError("`delimiter` and `quote` must be single characters where values are quoted")

    def cut(line: str) -> Sequence[str]:
        """Return the values between delimiters, unquoted."""
        try:
            return next(csv.reader([line], delimiter=delimiter, quotechar=quote, strict=True))
        except csv.Error as error:
            raise ValueError(f"the quotes do not fit: {error}") from None

    return cut
