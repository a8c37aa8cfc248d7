"""From settings to policies: turns part specs into parts, checks every parameter, and writes parts back as settings.

All mistakes of all policies are collected and reported together, each with its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from lookup.engine.plugins import Registry, suggestion
from lookup.engine.policy import Policy, WeightedScorer
from lookup.errors import PluginError, SettingsError
from lookup.hooks.protocols import Filter, Scorer, Selector, Shedder
from lookup.settings.policy import PartSpec, PolicySpec

__all__ = ["PartBuilder", "build_policies", "child_kinds", "parameters_of", "part_table"]

_CHILD_KINDS: Mapping[Any, str] = {Filter: "filters", Scorer: "scorers", Selector: "selectors", Shedder: "shedders"}


def build_policies(registry: Registry, specs: Sequence[PolicySpec]) -> tuple[Policy, ...]:
    """Build every policy.

    Raises:
        SettingsError: with all mistakes in all policies.
    """
    builder = PartBuilder(registry)
    policies = [_policy(builder, spec) for spec in specs]
    if builder.problems:
        raise SettingsError(builder.problems)
    return tuple(policies)


class PartBuilder:
    """Builds parts and collects what is wrong with them in `problems`."""

    def __init__(self, registry: Registry) -> None:
        self.problems: list[str] = []
        self._registry = registry

    def part(self, kind: str, spec: PartSpec, where: str) -> Any:
        """Build one part and its children; None, with problems noted, where it cannot be built."""
        try:
            found = self._registry.find(kind, spec.use)
        except PluginError as error:
            self.problems.append(f"{where}: {error}")
            return None
        children = child_kinds(found)
        given = dict(spec.parameters)
        built = {name: self._children(children[name], given.pop(name), f"{where}.{name}") for name in children if name in given}
        values = self._values(found, given, where)
        return None if values is None or None in built.values() else self._instance(found, values | built, where)

    def _instance(self, found: type[Any], values: Mapping[str, Any], where: str) -> Any:
        try:
            return found(**values)
        except (TypeError, ValueError) as error:
            self.problems.append(f"{where}: {error}")
            return None

    def _children(self, kind: str, given: Any, where: str) -> Any:
        if isinstance(given, list):
            built = [self.part(kind, PartSpec.model_validate(entry), f"{where}[{place}]") for place, entry in enumerate(given)]
            return None if None in built else tuple(built)
        if isinstance(given, str | Mapping):
            return self.part(kind, PartSpec.model_validate(given), where)
        self.problems.append(f"{where}: {given!r} is neither a name nor a table with `use`")
        return None

    def _values(self, found: type[Any], given: Mapping[str, Any], where: str) -> dict[str, Any] | None:
        known = [entry.name for entry in parameters_of(found)]
        unknown = [name for name in given if name not in known]
        for name in unknown:
            self.problems.append(f"{where}: {found.name!r} has no parameter {name!r}; {suggestion(name, known)}")
        missing = [entry.name for entry in parameters_of(found) if _is_required(entry) and entry.name not in given]
        for name in sorted(set(missing) - set(child_kinds(found))):
            self.problems.append(f"{where}: {found.name!r} needs the parameter {name!r}")
        try:
            # JSON's strict mode is TOML's: an array may be a tuple, an integer a float, but "5" is no number.
            model = _model_of(found).model_validate_json(
                json.dumps({name: value for name, value in given.items() if name not in unknown}, default=str), strict=True
            )
        except ValidationError as error:
            self.problems.extend(_sentence(where, entry) for entry in error.errors())
            return None
        return None if unknown else {name: getattr(model, name) for name in model.model_fields_set}


def _policy(builder: PartBuilder, spec: PolicySpec) -> Policy:
    where = f"policy {spec.name!r}"
    filters = [builder.part("filters", part, f"{where} filters[{place}]") for place, part in enumerate(spec.filters)]
    scorers = [builder.part("scorers", part, f"{where} scorers[{place}]") for place, part in enumerate(spec.scorers)]
    weights = [part.weight for part in spec.scorers]
    return Policy(
        name=spec.name,
        selector=builder.part("selectors", spec.selector, f"{where} selector"),
        filters=tuple(filters),
        scorers=tuple(WeightedScorer(scorer, weight) for scorer, weight in zip(scorers, weights, strict=True)),
        shedder=None if spec.shedder is None else builder.part("shedders", spec.shedder, f"{where} shedder"),
        on_error=spec.on_error,
    )


def parameters_of(found: type[Any]) -> tuple[Field[Any], ...]:
    """Return the fields of a part that settings may fill."""
    return tuple(entry for entry in fields(found) if entry.init)


def child_kinds(found: type[Any]) -> Mapping[str, str]:
    """Return the kind of part each child field of a wrapper takes, by the field's name."""
    hints = get_type_hints(found)
    kinds = {entry.name: _kind_in(hints[entry.name]) for entry in parameters_of(found)}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def part_table(part: Any) -> dict[str, Any]:
    """Write a part as the table that builds it again: `use` and every parameter."""
    values = {entry.name: getattr(part, entry.name) for entry in parameters_of(type(part))}
    return {"use": part.name} | {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return part_table(value)
    if isinstance(value, tuple | list | frozenset):
        return [_plain(entry) for entry in value]
    return dict(value) if isinstance(value, Mapping) else value


def _kind_in(annotation: Any) -> str | None:
    if annotation in _CHILD_KINDS:
        return _CHILD_KINDS[annotation]
    if get_origin(annotation) is None:
        return None
    return next((kind for kind in map(_kind_in, get_args(annotation)) if kind), None)


def _is_required(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _model_of(found: type[Any]) -> type[BaseModel]:
    hints = get_type_hints(found, include_extras=True)
    names = [entry.name for entry in parameters_of(found) if entry.name not in child_kinds(found)]
    definitions: dict[str, Any] = {name: (hints[name] | None, None) for name in names}
    return create_model(found.__name__, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **definitions)


def _sentence(where: str, entry: Any) -> str:
    path = ".".join(str(step) for step in entry["loc"])
    return f"{where}: {path} = {entry['input']!r}: {str(entry['msg'])[0].lower()}{str(entry['msg'])[1:]}"

