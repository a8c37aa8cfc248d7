"""Build policies from settings, with their parts and a check of every parameter, and write parts back as settings.

All mistakes of all policies are collected and reported together, each with its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields
from functools import lru_cache
from keyword import iskeyword
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from lookup.engine.answers import checked_reads
from lookup.engine.ballots import SecondChoice
from lookup.engine.plugins import Registry, title_of
from lookup.engine.policy import Policy, WeightedScorer
from lookup.engine.reporting import Cadence
from lookup.engine.weighing import ResourceWeights
from lookup.errors import InvalidNameError, PluginError, SettingsError
from lookup.hooks.protocols import Conf, Filter, Lister, Scorer, Selector, Shedder, SplitAlgorithm, Splitter
from lookup.hooks.raised import describe_error, in_one_line
from lookup.model.names import NamespaceName
from lookup.model.quoting import shown, suggestion
from lookup.settings.policy import PartSpec, PolicySpec

__all__ = [
    "ChildSlot", "PartBuilder", "build_lister", "build_policies", "child_kinds", "hints_of", "parameters_of",
    "part_table", "policy_table",
]  # fmt: skip

_CHILD_KINDS: Mapping[Any, str] = {
    Filter: "filters",
    Scorer: "scorers",
    Selector: "selectors",
    Shedder: "shedders",
    Splitter: "splitters",
    SplitAlgorithm: "split_algorithms",
    Lister: "listers",
}
#: Grace period of an unloaded bundle, in minutes. It applies to all shedders, so it is not a parameter of one.
_R = TypeVar("_R")
_GRACE = "loadBalancerSheddingGracePeriodMinutes"
_INTERVAL = "loadBalancerSheddingIntervalMinutes"
_EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
#: Greatest number of minutes, which is an int in Java.
_MOST_MINUTES = (1 << 31) - 1
_STRICT = ConfigDict(extra="forbid", protected_namespaces=(), allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class ChildSlot:
    """A wrapper's field for its children, which are one part or a list of parts of one kind."""

    kind: str
    is_many: bool = False


@dataclass(frozen=True, slots=True)
class _Given:
    values: Mapping[str, Any]
    #: by parameter, the key of Pulsar's that its value comes from, if it comes from one
    keys: Mapping[str, str]


def build_policies(
    registry: Registry,
    specs: Sequence[PolicySpec],
    conf: Mapping[str, Any] | None = None,
    sources: Mapping[str, str] | None = None,
) -> tuple[Policy, ...]:
    """Build every policy.

    Args:
        conf: keys of the brokers' `broker.conf`. A parameter that is not written gets the value of its key.
        sources: the file that sets each of these keys, for messages.

    Raises:
        SettingsError: with all mistakes in all policies.
    """
    builders = [
        PartBuilder(registry, {**(conf or {}), **spec.broker_conf}, {**(sources or {}), **spec.conf_sources})
        for spec in specs
    ]
    policies = [builder.policy(spec) for builder, spec in zip(builders, specs, strict=True)]
    problems = [problem for builder in builders for problem in builder.problems]
    if problems:
        raise SettingsError(problems)
    return tuple(policies)


def build_lister(registry: Registry, spec: PartSpec, where: str) -> Lister:
    """Build the lister that settings choose.

    Raises:
        SettingsError: for a lister that is not registered, and for wrong parameters.
    """
    builder = PartBuilder(registry)
    lister: Lister | None = builder.part("listers", spec, where)
    if lister is None or builder.problems:
        raise SettingsError(builder.problems)
    return lister


class PartBuilder:
    """A builder of parts that collects their mistakes in `problems`."""

    def __init__(
        self, registry: Registry, conf: Mapping[str, Any] | None = None, sources: Mapping[str, str] | None = None
    ) -> None:
        self.problems: list[str] = []
        self._registry = registry
        self._conf = conf or {}
        self._sources = sources or {}

    def policy(self, spec: PolicySpec) -> Policy:
        """Build a policy. Parts that cannot be built are None, with problems noted."""
        where = f"policy {shown(spec.name)}"
        filters = [self.part("filters", part, f"{where} filters[{n}]") for n, part in enumerate(spec.filters)]
        scorers = [self.part("scorers", part, f"{where} scorers[{n}]") for n, part in enumerate(spec.scorers)]
        weights = [part.weight for part in spec.scorers]
        selector = self.part("selectors", spec.selector, f"{where} selector")
        shedder = None if spec.shedder is None else self.part("shedders", spec.shedder, f"{where} shedder")
        splitter = None if spec.splitter is None else self.part("splitters", spec.splitter, f"{where} splitter")
        grace_s = self._find_seconds(spec, "grace_s", _GRACE, least=0)
        interval_s = self._find_seconds(spec, "shedding_interval_s", _INTERVAL, least=1)
        self.problems += [f"{where}: {refusal}" for refusal in spec.refusals]
        cadence = self.rule(Cadence, spec.cadence, f"{where} cadence")
        weights_of_resources = self.rule(ResourceWeights, spec.weights, f"{where} weights")
        second_choice = None
        if spec.second_choice is not None:
            second_choice = self.second_choice(spec.second_choice, f"{where} second_choice", filters=len(filters))
        return Policy(
            name=spec.name,
            selector=selector,
            filters=tuple(filters),
            scorers=tuple(WeightedScorer(scorer, weight) for scorer, weight in zip(scorers, weights, strict=True)),
            shedder=shedder,
            splitter=splitter,
            on_error=spec.on_error,
            grace_us=Policy.grace_us if grace_s is None else grace_s * 1_000_000,
            shedding_interval_us=Policy.shedding_interval_us if interval_s is None else interval_s * 1_000_000,
            cadence=cadence or Cadence(),
            weights=weights_of_resources or ResourceWeights(),
            second_choice=second_choice,
            destination_first=spec.destination_first,
            excluded_namespaces=self.excluded_namespaces(spec),
            unload_children=spec.unload_children,
            bundles=spec.bundles,
        )

    def part(self, kind: str, spec: PartSpec, where: str) -> Any:
        """Build one part and its children. Return None, with problems noted, if it cannot be built."""
        try:
            part_class = self._registry.find(kind, spec.use)
            children = child_kinds(part_class)
        except PluginError as error:
            self.problems.append(f"{where}: {error}")
            return None
        built = {
            name: self._build_children(children[name], spec.parameters[name], f"{where}.{name}")
            for name in children
            if name in spec.parameters
        }
        # A parameter whose name is a word of Python's has an underscore after it in the class, as in `class_`.
        written = {f"{name}_" if iskeyword(name) else name: value for name, value in spec.parameters.items()}
        parameters = self._complete_parameters(part_class, {**written, **built})
        values = self._validate_values(part_class, parameters, where)
        if values is None or None in built.values():
            return None
        try:
            part = part_class(**values, **built)
            checked_reads(part)
        except KeyboardInterrupt:
            raise
        except Exception as error:  # noqa: BLE001  a third party's class may raise anything
            # A value out of `broker.conf` is not in the table the sentence points at, so its origin is named.
            origins = [f"{name} comes from {self._describe_key(key)}" for name, key in parameters.keys.items()]
            self.problems.append("; ".join([f"{where}: {error}", *origins]))
            return None
        except BaseException as error:  # noqa: BLE001  one that exits says nothing by itself
            self.problems.append(f"{where}: {part_class.name!r} could not be made: {describe_error(error)}")
            return None
        return part

    def _find_seconds(self, spec: PolicySpec, field: str, key: str, *, least: int) -> int | None:
        """Find a span that a policy sets, else the value of a key in minutes, None if no setting has it."""
        written: int | None = getattr(spec, field)
        minutes = self._conf.get(key)
        if written is not None or minutes is None:
            return written
        if isinstance(minutes, bool) or not isinstance(minutes, int) or not least <= minutes <= _MOST_MINUTES:
            self.problems.append(
                f"{self._describe_key(key)}: should be a whole number from {least} to {_MOST_MINUTES} "
                f"({field} of policy {shown(spec.name)})"
            )
            return None
        return minutes * 60

    def excluded_namespaces(self, spec: PolicySpec) -> frozenset[str]:
        """Find the namespaces that a policy does not shed. Invalid names are noted as problems."""
        names = spec.excluded_namespaces
        where = f"policy {shown(spec.name)} excluded_namespaces"
        if names is None:
            # Pulsar separates the members of a set by commas.
            names = tuple(filter(None, map(str.strip, str(self._conf.get(_EXCLUDED, "")).split(","))))
            where = self._describe_key(_EXCLUDED) if names else where
        for name in names:
            try:
                NamespaceName.parse(name)
            except InvalidNameError as error:
                self.problems.append(f"{where}: {error}")
        return frozenset(names)

    def rule(self, rule: type[_R], given: Mapping[str, Any], where: str) -> _R | None:
        """Build a rule of a policy that is not a part. Return None, with problems noted, if it is wrong."""
        values = self._validate_values(rule, self._complete_parameters(rule, given), where)
        return None if values is None else rule(**values)

    def second_choice(self, given: Mapping[str, Any], where: str, *, filters: int) -> SecondChoice | None:
        """Build the rule for a policy's second choice. Return None, with problems noted, if it is wrong."""
        built = self.rule(SecondChoice, given, where)
        if built is not None and built.filters > filters:
            self.problems.append(f"{where}: filters = {built.filters}: the policy has only {filters}")
        return built

    def _complete_parameters(self, part_class: type[Any], written: Mapping[str, Any]) -> _Given:
        """Complete the written parameters by the `broker.conf` keys that the others name."""
        configured: dict[str, Any] = {}
        keys: dict[str, str] = {}
        for name, hint in hints_of(part_class).items():
            marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Conf)]
            if marks and marks[0].key == "*" and name not in written:
                configured[name] = dict(self._conf)
            if name in written or not marks or marks[0].key not in self._conf:
                continue
            keys[name], value = marks[0].key, self._conf[marks[0].key]
            # Divided as in Pulsar, so that 70 % is 0.7 to the last bit. A text stays one, and is refused further down.
            if marks[0].scale != 1.0 and isinstance(value, int | float) and not isinstance(value, bool):
                scale = marks[0].scale
                value = value / (1.0 / scale) if scale < 1.0 else value * scale
            configured[name] = value
        return _Given({**configured, **written}, keys)

    def _describe_key(self, key: str) -> str:
        source = self._sources.get(key)
        return f"{source}: {key} = {shown(self._conf[key])}" if source else f"{key} = {shown(self._conf[key])}"

    def _build_children(self, slot: ChildSlot, entries: Any, where: str) -> Any:
        if slot.is_many and isinstance(entries, list | tuple):
            built = [self._build_child(slot.kind, entry, f"{where}[{n}]") for n, entry in enumerate(entries)]
            return None if None in built else tuple(built)
        if slot.is_many or isinstance(entries, list | tuple):
            self.problems.append(
                f"{where}: takes {'a list of parts' if slot.is_many else 'one part'}, not {shown(entries)}"
            )
            return None
        return self._build_child(slot.kind, entries, where)

    def _build_child(self, kind: str, content: Any, where: str) -> Any:
        try:
            spec = PartSpec.model_validate(content)
        except ValidationError as error:
            self.problems.extend(_write_sentence(where, entry) for entry in error.errors())
            return None
        if "weight" in spec.model_fields_set:
            self.problems.append(f"{where}.weight: only a policy's own scorers have a weight")
        return self.part(kind, spec, where)

    def _validate_values(self, part_class: type[Any], content: _Given, where: str) -> dict[str, Any] | None:
        parameters, children = parameters_of(part_class), child_kinds(part_class)
        names = [entry.name for entry in parameters]
        unknown = [name for name in content.values if name not in names]
        for name in unknown:
            hint = suggestion(name, [each.rstrip("_") for each in names])
            self.problems.append(f"{where}: {part_class.name!r} has no parameter {shown(name)}; {hint}")
        needed = [e.name for e in parameters if e.default is MISSING and e.default_factory is MISSING]
        missing = [name for name in needed if name not in content.values]
        for name in missing:
            self.problems.append(f"{where}: {part_class.name!r} needs the parameter {name!r}")
        # JSON's strict mode fits TOML, where an array may be a tuple and an integer a float, but "5" is not a number.
        plain = {name: value for name, value in content.values.items() if name not in unknown and name not in children}
        try:
            model = _model_of(part_class)  # type: ignore[arg-type]  # mypy takes no class for hashable
            filled = model.model_validate_json(json.dumps(plain, default=str), strict=True)
        except ValidationError as error:
            self.problems.extend(self._write_sentence(where, entry, content.keys) for entry in error.errors())
            return None
        except PydanticUserError as error:
            self.problems.append(f"{where}: settings cannot fill {title_of(part_class)}: {error.message}")
            return None
        return None if unknown or missing else {name: getattr(filled, name) for name in filled.model_fields_set}

    def _write_sentence(self, where: str, entry: Any, keys: Mapping[str, str]) -> str:
        """Describe a mistake in a parameter, with the key if a `broker.conf` sets it."""
        name = str(entry["loc"][0]) if entry["loc"] else ""
        if name not in keys:
            return _write_sentence(where, entry)
        message = str(entry["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        # A percentage is another number as a parameter, and the sentence is about that one.
        is_same = entry["input"] == self._conf[keys[name]]
        filled = name if is_same else f"{name} = {shown(entry['input'])}"
        return f"{self._describe_key(keys[name])}: {message} ({filled} of {where})"


def policy_table(policy: Policy) -> dict[str, Any]:
    """Write a policy as the table of settings that builds it again, every parameter named."""
    parts = {"filters": [*map(part_table, policy.filters)]}
    parts["scorers"] = [{**part_table(term.scorer), "weight": term.weight} for term in policy.scorers]
    single = {"selector": policy.selector, "shedder": policy.shedder, "splitter": policy.splitter}
    tables = {kind: part_table(part) for kind, part in single.items() if part is not None}
    rules: dict[str, Any] = {
        "cadence": policy.cadence,
        "weights": policy.weights,
        "second_choice": policy.second_choice,
    }
    written: dict[str, Any] = {key: asdict(rule) for key, rule in rules.items() if rule is not None}
    if policy.shedder is not None:
        written |= {
            "grace_s": policy.grace_us // 1_000_000,
            "destination_first": policy.destination_first,
            "excluded_namespaces": sorted(policy.excluded_namespaces),
        }
    if policy.shedding_interval_us != Policy.shedding_interval_us:
        written["shedding_interval_s"] = policy.shedding_interval_us // 1_000_000
    if policy.splitter is not None:
        written["unload_children"] = policy.unload_children
    if policy.bundles is not None:
        written["bundles"] = policy.bundles
    return {"name": policy.name, **parts, **tables, "on_error": policy.on_error, **written}


def parameters_of(part_class: type[Any]) -> tuple[Field[Any], ...]:
    """List the fields of a part that settings may fill."""
    return tuple(entry for entry in fields(part_class) if entry.init)


def child_kinds(part_class: type[Any]) -> Mapping[str, ChildSlot]:
    """Find the kind of part that each child field of a wrapper takes, by the field's name."""
    hints = hints_of(part_class)
    slots = {entry.name: _slot_in(hints[entry.name]) for entry in parameters_of(part_class)}
    return {name: slot for name, slot in slots.items() if slot is not None}


def part_table(part: Any) -> dict[str, Any]:
    """Write a part as the table that builds it again, with `use` and every parameter."""
    values = {entry.name: getattr(part, entry.name) for entry in parameters_of(type(part))}
    return {"use": part.name} | {
        name.rstrip("_"): _to_plain(value) for name, value in values.items() if value is not None
    }


def _to_plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return part_table(value)
    if isinstance(value, frozenset | set):
        return sorted(map(_to_plain, value))
    if isinstance(value, tuple | list):
        return [_to_plain(entry) for entry in value]
    return {key: _to_plain(entry) for key, entry in value.items()} if isinstance(value, Mapping) else value


def _slot_in(annotation: Any) -> ChildSlot | None:
    if annotation in _CHILD_KINDS:
        return ChildSlot(_CHILD_KINDS[annotation])
    slot = next((slot for slot in map(_slot_in, get_args(annotation)) if slot), None)
    is_many = get_origin(annotation) in (tuple, list, Sequence)
    return slot if slot is None or not is_many else ChildSlot(slot.kind, is_many=True)


@lru_cache(maxsize=256)
def _model_of(part_class: type[Any]) -> type[BaseModel]:
    """Create the model that checks a class's parameters without its children, cached since policies are built often."""
    hints, children = hints_of(part_class), child_kinds(part_class)
    names = [entry.name for entry in parameters_of(part_class) if entry.name not in children]
    # The default of None only makes a parameter optional. The part itself defines its defaults.
    definitions: dict[str, Any] = {name: (hints[name], None) for name in names}
    return create_model(part_class.__name__, __config__=_STRICT, **definitions)


def hints_of(part_class: type[Any]) -> dict[str, Any]:
    """Find the annotations of a class by field, with the metadata of `Annotated`."""
    try:
        return get_type_hints(part_class, include_extras=True)
    except Exception as error:
        raise PluginError(f"the annotations of {title_of(part_class)} cannot be read: {in_one_line(error)}") from error


def _write_sentence(where: str, entry: Any) -> str:
    path = "".join(f"{step}." for step in entry["loc"]).removesuffix(".")
    value = f"{path} = {shown(entry['input'])}: " if path else ""
    if entry["type"] == "missing":
        return f"{where}: the key {shown(path)} is missing"
    message = str(entry["msg"]).removeprefix("Value error, ")
    return f"{where}: {value}{message[0].lower()}{message[1:]}"
