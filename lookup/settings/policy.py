"""Model policies as written, each a name and a composition of parts. The engine's registry knows the parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from lookup.errors import SettingsError
from lookup.model.quoting import shown
from lookup.settings.base import CountS, Share, Strict, refuse
from lookup.settings.broker_conf import CHOOSING_KEYS, PAIR, read_today
from lookup.settings.problems import place, problems_of
from lookup.settings.pulsar_keys import BUNDLES_KEY, MOST_BUNDLES, Scalar
from lookup.settings.releases import DEFAULT_RELEASE, NO_VERSION, RELEASES, Release

__all__ = ["OnError", "PartSpec", "PolicyFile", "PolicySpec", "is_path", "policy_warnings"]

OnError = Literal["stop", "fail-closed", "skip"]
#: Context of a validation that takes mistakes of a `broker.conf` as if they were not written.
_FORGIVING = "forgiving"


class PartSpec(Strict):
    """One part of a policy, `"x"` or `{ use = "x", ... }` with parameters. Children of wrappers stay raw tables."""

    use: str
    """Name of the part, as `lookup plugins list` prints it."""
    parameters: Mapping[str, Any] = {}
    """All keys other than `use` and `weight`. The part's class defines them."""
    weight: Share = 1.0
    """Factor of a scorer's numbers in the sum. Only for scorers."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, written: object) -> object:
        if isinstance(written, str):
            return {"use": written}
        if not isinstance(written, Mapping):
            raise ValueError(f'should be a part\'s name or a table like {{ use = "best" }}, not {shown(written)}')
        # Only a table made in Python has its parameters apart. In TOML they are next to `use`.
        if "parameters" in written:
            return written
        own = {key: value for key, value in written.items() if key in ("use", "weight")}
        return {**own, "parameters": {key: value for key, value in written.items() if key not in own}}

    @model_serializer
    def _write(self) -> dict[str, Any]:
        # As written, since most parts must not have a weight, and would be rejected when read again.
        weight = {"weight": self.weight} if "weight" in self.model_fields_set else {}
        return {"use": self.use, **self.parameters, **weight}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe the permitted forms, which are a name or a table with further keys."""
        return {
            "description": cls.__doc__,
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"use": {"type": "string"}, "weight": {"type": "number", "minimum": 0}},
                    "required": ["use"],
                    "additionalProperties": True,
                },
            ],
        }


def _require_either(schema: dict[str, Any]) -> None:
    # A policy that is read from a broker.conf has its selector from there.
    schema["required"] = [key for key in schema["required"] if key != "selector"]
    schema["anyOf"] = [{"required": ["selector"]}, {"required": ["from_broker_conf"]}]


class PolicySpec(Strict):
    """A policy, which has a name in reports."""

    model_config = ConfigDict(json_schema_extra=_require_either)

    name: str
    """Name in reports, unique within an evaluation."""
    filters: tuple[PartSpec, ...] = ()
    """Parts that select the brokers that may serve a request, applied in this order."""
    scorers: tuple[PartSpec, ...] = ()
    """Parts whose weighted sum is the score of each broker. Without scorers, all brokers score 1.0."""
    selector: PartSpec
    """Part that states the odds by which a broker is chosen."""
    shedder: PartSpec | None = None
    """Part that names bundles an owner should give up, once per tick, by default none."""
    splitter: PartSpec | None = None
    """Part that divides bundles, in scenarios and live, by default none. A replay applies logged splits."""
    grace_s: CountS | None = None
    """Seconds before the shedder may unload the same bundle again. The default is
    loadBalancerSheddingGracePeriodMinutes of a `broker.conf`, else 1800."""
    on_error: OnError = "stop"
    """Reaction if a part raises, which is to end the run, decline the request, or continue without the part."""
    from_broker_conf: str | None = None
    """Path of a `broker.conf` from which the policy is read. Keys of the policy itself take precedence."""
    pulsar: Release | None = None
    """Release whose rules and defaults count, by default that of the brokers if all run one, else 4.2."""
    shedding_interval_s: Annotated[CountS, Field(ge=1)] | None = None
    """Seconds before the first cycle of the shedder and between two cycles. Default:
    loadBalancerSheddingIntervalMinutes of a `broker.conf`, else 60."""
    second_choice: Mapping[str, Any] | None = None
    """Filters for another choice if they leave no broker or the choice is overloaded, as in the modular manager."""
    destination_first: bool = False
    """Whether a bundle's destination is chosen before it is unloaded, as the modular manager does. A bundle whose
    owner is chosen again stays, and the others move to their destination. By default the next lookup chooses."""
    excluded_namespaces: tuple[str, ...] | None = None
    """Namespaces whose bundles the shedder keeps (PIP-380). The default is loadBalancerSheddingExcludedNamespaces
    of a `broker.conf`, else none."""
    unload_children: bool = False
    """Whether the children of a split are taken from their owner at once, as the modular manager does, so that the
    next lookup places them. Children that no other broker may have stay. By default all stay with their owner."""
    bundles: Annotated[int, Field(strict=True, ge=1, le=MOST_BUNDLES)] | None = None
    """Initial number of equal bundles of a namespace in a replay, unless `[[namespaces]]` gives it bundles of its
    own. The default is defaultNumberOfNamespaceBundles of a `broker.conf`, else `evaluation.default_bundles`."""
    weights: Mapping[str, Any] = {}
    """Weights of cpu, direct_memory, bandwidth_in and bandwidth_out in the usage that the modular manager's parts
    read, where brokers report these. Absent keys have Pulsar's values."""
    cadence: Mapping[str, Any] = {}
    """Pace at which brokers publish load if `evaluation.load_reports = "published"`. Absent keys have Pulsar's
    values."""
    broker_conf: Mapping[str, Scalar] = {}
    """Keys of a `broker.conf` for the parameters of this policy's parts, before those of the brokers' profiles."""

    _warnings: tuple[str, ...] = PrivateAttr(default=())
    _conf_file: str | None = PrivateAttr(default=None)
    _conf_sources: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _conf_keys: Mapping[str, Scalar] = PrivateAttr(default_factory=dict)
    _written: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _release: tuple[str, str] | None = PrivateAttr(default=None)
    _refusals: tuple[str, ...] = PrivateAttr(default=())
    _conf_bundles: int | None = PrivateAttr(default=None)

    @property
    def release(self) -> str:
        """The release whose defaults count."""
        return self.pulsar or (DEFAULT_RELEASE if self._release is None else self._release[0])

    @property
    def release_note(self) -> str | None:
        """The release and why it counts, if the settings do not name it, None without a `broker.conf`."""
        if self._release is None or not self._release[1]:
            return None
        release, why = self._release
        return f"read by the rules and defaults of Pulsar {release}, {why}"

    @property
    def refusals(self) -> tuple[str, ...]:
        """Reasons why no broker of the release would run with the `broker.conf`. The policy cannot be built."""
        return self._refusals

    @property
    def warnings(self) -> tuple[str, ...]:
        """Conditions of the policy's `broker.conf` that Pulsar would only log."""
        return self._warnings

    @property
    def conf_file(self) -> str | None:
        """The path of the `broker.conf` the policy was read from."""
        return self._conf_file

    @property
    def conf_sources(self) -> Mapping[str, str]:
        """For every key of `broker_conf` that came from a file its path, else the place it was written in."""
        own = f"policy {shown(self.name)} broker_conf"
        return {key: self._conf_sources.get(key, own) for key in self.broker_conf}

    @classmethod
    def right_in_part(cls, written: Mapping[str, Any]) -> tuple[Self, ...]:
        """Read a wrong policy without the mistakes of its `broker.conf`, or return none if it has other mistakes.

        For checks, which report these mistakes together with those of the rest.
        """
        try:
            return (cls.model_validate(written, context=_FORGIVING),)
        except ValidationError:
            return ()

    def with_changes(self, name: str, changes: Mapping[str, Any]) -> Self:
        """Copy the policy under another name and with other values.

        Args:
            changes: by key of a `broker.conf`, or by key path, like `shedder.threshold` or `scorers[0].weight`.
        """
        keys = {key: value for key, value in changes.items() if not is_path(key)}
        # For any source of the policy, since no part reads the key.
        bundles = {"bundles": keys.pop(BUNDLES_KEY)} if BUNDLES_KEY in keys else {}
        # Keys that choose parts do not affect the chosen parts, so the file is read again.
        again = self._conf_file is not None and not keys.keys().isdisjoint(CHOOSING_KEYS)
        table: dict[str, Any] = dict(self._written) if again else self.model_dump(exclude_unset=True)
        if again:
            table |= {"pulsar": self.release, **({} if self.bundles is None else {"bundles": self.bundles})}
        table |= {"name": name, "broker_conf": {**table.get("broker_conf", {}), **keys}, **bundles}
        problems = [
            f"policy {shown(self.name)} has no {path}"
            for path, value in changes.items()
            if is_path(path) and not _put(table, path, deepcopy(value))
        ]
        if problems:
            raise SettingsError(problems)
        try:
            return type(self).model_validate(table)
        except ValidationError as error:
            of = f"policy {shown(self.name)} with other values"
            raise SettingsError([f"{of}: {place(*each)}" for each in problems_of(error, type(self))]) from None

    def under(self, release: Release, why: str) -> Self:
        """Apply the rules of the cluster's release to the policy, unless the settings name a release.

        Args:
            why: end of a sentence.
        """
        if self._conf_file is None or "pulsar" in self._written:
            return self
        # The version in the file is better than no version of a broker.
        if why == NO_VERSION and self.release != DEFAULT_RELEASE:
            return self
        try:
            policy = type(self).model_validate({**self._written, "pulsar": release})
        except ValidationError as error:
            of = f"policy {shown(self.name)}"
            raise SettingsError([f"{of}: {place(*each)}" for each in problems_of(error, type(self))]) from None
        policy._written, policy._release = self._written, (release, why)
        return policy

    def with_bundles_of_file(self, default: int) -> Self:
        """Apply the number of bundles in the policy's `broker.conf`, unless the settings name another.

        Args:
            default: initial number of bundles otherwise.
        """
        if self.bundles is not None or self._conf_bundles in (None, default):
            return self
        return self.model_copy(update={"bundles": self._conf_bundles})

    @property
    def bundles_of_new_namespaces(self) -> int | None:
        """The number of bundles with which its brokers create a namespace, None without a `broker.conf`."""
        if self._conf_file is None:
            return None
        return self.bundles or self._conf_bundles or cast("int", RELEASES[self.release].defaults[BUNDLES_KEY])

    def value_at(self, key: str) -> Any:
        """Find the value of a key of a `broker.conf`, or of a key path, None if it is not written."""
        if key == BUNDLES_KEY:
            return self.bundles
        if not is_path(key):
            return {**self._conf_keys, **self.broker_conf}.get(key)
        *steps, last = _split_steps(key)
        inner = _find_inner(self.model_dump(exclude_unset=True), steps)
        return inner.get(last) if isinstance(inner, dict) else None

    @model_validator(mode="wrap")
    @classmethod
    def _from_broker_conf(cls, written: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Replace the path of a `broker.conf` by its content, since a policy is sent without the file."""
        path = written.get("from_broker_conf") if isinstance(written, Mapping) else None
        if not isinstance(path, str):
            refuse(_refuse_part_keys(written))
            return handler(written)
        own = {key: value for key, value in written.items() if key not in ("from_broker_conf", "pulsar")}
        keys = own.get("broker_conf", {})
        if not isinstance(keys, Mapping) or not all(
            isinstance(value, bool | int | float | str) for value in keys.values()
        ):
            # Mistakes are reported for the keys themselves.
            return handler({"selector": "best", **own})
        try:
            release = None if written.get("pulsar") is None else str(written["pulsar"])
            named = [key for key, part in zip(PAIR, ("shedder", "selector"), strict=True) if part in own]
            today = read_today(path, release, keys, named)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        if info.context != _FORGIVING:
            refuse(today.problems)
        # The file's own number is for replays only, where `with_bundles_of_file` takes it.
        bundles = {"bundles": keys[BUNDLES_KEY]} if BUNDLES_KEY in keys else {}
        spec = handler({**today.table, **bundles, **own, "broker_conf": today.table["broker_conf"]})
        spec._warnings, spec._conf_file = today.warnings, path
        spec._refusals, spec._conf_bundles = today.refusals, today.bundles
        spec._written, spec._conf_keys, spec._release = dict(written), today.keys, today.release
        spec._conf_sources = {key: path for key in today.table["broker_conf"] if key not in keys}
        return spec

    @model_validator(mode="after")
    def _check(self) -> Self:
        named = {f"filters[{index}]": part for index, part in enumerate(self.filters)}
        single = {"selector": self.selector, "shedder": self.shedder, "splitter": self.splitter}
        named |= {key: part for key, part in single.items() if part is not None}
        weighted = [key for key, part in named.items() if "weight" in part.model_fields_set]
        problems = [f"{key}.weight: only scorers have a weight" for key in weighted]
        if self.pulsar is not None:
            problems.append("pulsar: says which defaults a `from_broker_conf` has, and there is none")
        if self.destination_first and self.shedder is None:
            problems.append("destination_first: says where the bundles of a shedder go, and there is none")
        if self.shedding_interval_s is not None and self.shedder is None:
            problems.append("shedding_interval_s: is the pace of a shedder, and there is none")
        if self.excluded_namespaces and self.shedder is None:
            problems.append("excluded_namespaces: says what a shedder leaves alone, and there is none")
        if self.unload_children and self.splitter is None:
            problems.append("unload_children: says what becomes of the children of a split, and there is no splitter")
        if not self.name.strip():
            problems.append("name: should not be empty")
        if self.scorers and not any(part.weight for part in self.scorers):
            problems.append("scorers: at least one should have a weight above 0")
        refuse(problems)
        return self


def policy_warnings(policies: Iterable[PolicySpec]) -> list[str]:
    """Write a sentence for each assumed release, each condition that Pulsar would only log, and each unused key."""
    policies = [*policies]
    named: dict[str, list[str]] = {}
    for policy in policies:
        if policy.release_note is not None:
            named.setdefault(policy.release_note, []).append(shown(policy.name))
    of_release = [
        f"{'policy' if len(names) == 1 else 'policies'} {' and '.join(names)}: {note}; `pulsar` chooses"
        for note, names in named.items()
    ]
    of_conf = [f"policy {shown(policy.name)}: {warning}" for policy in policies for warning in policy.warnings]
    in_vain = [
        f"policy {shown(policy.name)}: {BUNDLES_KEY} in broker_conf needs from_broker_conf; write bundles instead"
        for policy in policies
        if policy.conf_file is None and policy.bundles is None and BUNDLES_KEY in policy.broker_conf
    ]
    return [*of_release, *of_conf, *in_vain]


def is_path(key: str) -> bool:
    """Check whether a key leads to a value of a policy and is not one of Pulsar's."""
    return re.split(r"[.[]", key, maxsplit=1)[0] in PolicySpec.model_fields


def _put(table: dict[str, Any], path: str, value: Any) -> bool:
    *steps, last = _split_steps(path)
    inner = _find_inner(table, steps)
    if isinstance(inner, dict):
        inner[last] = value
    return isinstance(inner, dict)


def _find_inner(table: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(table, list | tuple):
            table = table[int(step)] if step.isdecimal() and int(step) < len(table) else None
        else:
            table = table.get(step) if isinstance(table, dict) else None
    return table


def _split_steps(path: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", path)


def _refuse_part_keys(written: object) -> list[str]:
    keys = written.get("broker_conf") if isinstance(written, Mapping) else None
    return [
        f"broker_conf.{key}: chooses parts of a policy, and has no effect without `from_broker_conf`; write the part"
        for key in (keys if isinstance(keys, Mapping) else ())
        if key in CHOOSING_KEYS
    ]


class PolicyFile(Strict):
    """A file of policies. It may also be a single policy with its keys at the top."""

    policies: tuple[PolicySpec, ...]
    """The policies, `[[policies]]`."""
