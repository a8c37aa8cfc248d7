"""Restrict request and view to the fields that a part has declared in `reads`.

A facet looks like the original. Undeclared fields raise `ReadsError` with field and part, since an undeclared read
would silently make a cached decision wrong. A name that the original lacks too raises `AttributeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NoReturn, cast

from lookup.errors import ReadsError
from lookup.hooks.protocols import ALL_READS
from lookup.model import ClusterView, Load, LookupRequest
from lookup.model.view import REQUEST_READS, VIEW_READS

__all__ = ["field_of", "fields_in", "request_facet", "view_facet"]

_VIEW_FIELDS = tuple(entry.name for entry in fields(ClusterView))
_LOAD_FIELDS = frozenset(entry.name for entry in fields(Load))
#: The declaration a part needs to read an attribute, for every attribute of a request and of a view.
_DECLARED: Mapping[str, Mapping[str, str]] = {
    "request": {name: name for name in REQUEST_READS} | {"property_of": "properties"},
    "view": {name: VIEW_READS.get(name, name) for name in _VIEW_FIELDS},
}


class _Facet:
    """An object with some attributes of another. Access to the others raises `ReadsError`."""

    def __init__(self, part: str, what: str, allowed: Mapping[str, Any]) -> None:
        self.__dict__.update(allowed, _part=part, _what=what)

    def __getattr__(self, name: str) -> NoReturn:
        # While a facet is copied or unpickled, private names are looked up before it has any.
        declared = None if name.startswith("_") else _DECLARED[self._what].get(name)
        if declared is None:
            # Before the load was an object of its own, its figures were attributes of the view.
            is_load = self.__dict__.get("_what") == "view" and name in _LOAD_FIELDS
            hint = f"; did you mean view.load.{name}?" if is_load else ""
            raise AttributeError(f"there is no {name!r} in what part {self.__dict__.get('_part')!r} is handed{hint}")
        raise ReadsError(f"part {self._part!r} read {self._what}.{name} without {declared!r} in its reads")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"part {self._part!r} may not set {self._what}.{name}")


class _Properties(Mapping[str, str | None]):
    """The declared properties of a request. Absent ones are None, and undeclared ones raise `ReadsError`."""

    __slots__ = ("_declared", "_part", "_values")

    def __init__(self, part: str, declared: frozenset[str], values: Mapping[str, str]) -> None:
        self._part, self._declared, self._values = part, declared, values

    def __getitem__(self, key: str) -> str | None:
        return self._values.get(self._check_key(key))

    def __contains__(self, key: object) -> bool:
        return self._check_key(key) in self._values

    def get(self, key: str, default: Any = None) -> Any:
        """Find a declared property, or the default if the client did not send it."""
        return self._values.get(self._check_key(key), default)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._declared & self._values.keys()))

    def __len__(self) -> int:
        return len(self._declared & self._values.keys())

    def _check_key(self, key: Any) -> str:
        if key not in self._declared:
            raise ReadsError(f"part {self._part!r} read property {key!r} without 'properties.{key}' in its reads")
        return str(key)


def request_facet(part: str, reads: frozenset[str]) -> Callable[[LookupRequest], LookupRequest]:
    """Build the function that restricts a request to the declared fields of a part."""
    names = [name for name in REQUEST_READS if name in reads]
    if len(names) == len(REQUEST_READS):
        return lambda request: request
    declared = frozenset(name.removeprefix("properties.") for name in reads if name.startswith("properties."))
    whole = "properties" in reads
    if not names and not declared:
        nothing = cast("LookupRequest", _Facet(part, "request", {}))
        return lambda request: nothing

    def cut(request: LookupRequest) -> LookupRequest:
        allowed: dict[str, Any] = {name: getattr(request, name) for name in names}
        if whole:
            allowed["property_of"] = request.properties.get
        elif declared:
            properties = allowed["properties"] = _Properties(part, declared, request.properties)
            allowed["property_of"] = properties.__getitem__
        return cast("LookupRequest", _Facet(part, "request", allowed))

    return cut


def view_facet(part: str, reads: frozenset[str], view: ClusterView, memory: Mapping[str, Any]) -> ClusterView:
    """Restrict the view to the declared fields of a part, with its own memory in place of all parts'."""
    if reads >= ALL_READS:
        return replace(view, memory=memory)
    attributes = vars(view)
    allowed = {name: attributes[name] for name in _list_view_names(reads)}
    if "memory" in allowed:
        allowed["memory"] = memory
    return cast("ClusterView", _Facet(part, "view", allowed))


@lru_cache
def _list_view_names(reads: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in _VIEW_FIELDS if name not in VIEW_READS or VIEW_READS[name] in reads)


def fields_in(reads: frozenset[str]) -> tuple[str, ...]:
    """List the fields of a request among the reads, sorted. `properties` includes single ones."""
    names = sorted(name for name in reads if not name.startswith("view."))
    return tuple(name for name in names if not ("properties" in names and name.startswith("properties.")))


def field_of(request: LookupRequest, name: str) -> Hashable:
    """Find a request's value of a field, for decision keys."""
    if name == "properties":
        return tuple(sorted(request.properties.items()))
    if name.startswith("properties."):
        return request.properties.get(name[len("properties.") :])
    value: Hashable = getattr(request, name)
    return value
