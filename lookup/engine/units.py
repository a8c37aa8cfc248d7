"""Limits of shedders in bytes and messages per second, and the rates that a run must know to apply them.

Parts declare such limits by `Unit`. Load that is the weight of lookups becomes bytes only here, in the view
of the shedders that need it. Everything else stays in weight (`docs/decisions/bytes-and-weights.md`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

from lookup.engine.policy import Policy
from lookup.hooks.protocols import Conf, Shedder, Unit
from lookup.model import BundleLoad, ClusterView
from lookup.model.quoting import join_names
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.settings.pulsar_keys import NO_EFFECT_SINCE, Scalar
from lookup.settings.releases import RELEASES
from lookup.settings.resolve import load_manager_keys

__all__ = [
    "Limit", "Rates", "act_warnings", "cannot_act", "goes_by_bytes", "idle_weights", "idle_weights_of", "in_bytes",
    "limits_of", "policies_named", "rates_without",
]  # fmt: skip

_FACTORS: Mapping[str, float] = {"bytes/s": 1.0, "MiB/s": 1024.0 * 1024.0, "messages/s": 1.0}
#: Pulsar's ThresholdShedder takes at least this share of an overloaded broker's load away.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Limit:
    """A parameter that is a limit in bytes or messages per second, and is not switched off."""

    parameter: str
    quantity: Literal["bytes", "messages"]
    #: in bytes or messages per second
    value: float
    #: Pulsar's key that fills it, and the value that key has or would have, None if there is none
    key: str | None

    def __str__(self) -> str:
        written = f" ({self.key})" if self.key else ""
        return f"{self.parameter} = {self.value:,.10g} {self.quantity}/s{written}"


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates that a run knows of bundles and brokers."""

    has_bytes: bool
    has_messages: bool
    #: why bytes are not known, and how to provide them
    why: str = ""
    remedy: str = ""
    #: whether the remedy is `evaluation.bytes_per_weight`, of which a value can be suggested
    is_stated: bool = False


def limits_of(part: Any) -> tuple[Limit, ...]:
    """List the limits of a part in bytes and messages per second, without disabled ones."""
    limits = []
    for name, hint in get_type_hints(type(part), include_extras=True).items():
        marks = {type(mark): mark for mark in getattr(hint, "__metadata__", ())}
        unit: Unit | None = marks.get(Unit)
        if unit is None or (unit.switch is not None and not getattr(part, unit.switch)):
            continue
        # Written back in Pulsar's own unit, so that users find the number in their `broker.conf`.
        value, conf = getattr(part, name), marks.get(Conf)
        key = None if conf is None else f"{conf.key} = {value / conf.scale:.10g}"
        quantity: Literal["bytes", "messages"] = "messages" if unit.name == "messages/s" else "bytes"
        limits.append(Limit(name, quantity, value * _FACTORS[unit.name], key))
    return tuple(limits)


def goes_by_bytes(part: Any) -> bool:
    """Check whether a part has a limit in bytes per second above 0, or may have an undeclared one."""
    return getattr(part, "is_foreign", False) or any(
        limit.quantity == "bytes" and limit.value > 0 for limit in limits_of(part)
    )


def in_bytes(view: ClusterView, brokers: float, bundles: float) -> ClusterView:
    """Convert the loads of a view to bytes per second. Usage, capacity and all else stay the same.

    Args:
        brokers: bytes per 1.0 of a broker's load.
        bundles: bytes per 1.0 of a bundle's load.
    """
    # Usage and capacity are ratios of each other and stay. Only loads compared with a limit in bytes are scaled.
    load = view.load
    smoothed = None if load.smoothed_throughput is None else load.smoothed_throughput * brokers
    scaled = replace(
        load,
        throughput=load.throughput * brokers,
        smoothed_throughput=smoothed,
        top_bundles=_ScaledBundles(load.top_bundles, bundles),
        bundle_unit="bytes/s",
    )
    return replace(view, load=scaled)


def rates_without(settings: EvaluationFile) -> Rates | None:
    """Find the rates of a run without BUNDLES, None if it has that table, which defines its own rates."""
    if settings.inputs.bundles is not None:
        return None
    bytes_too = " although LOADS gives bytes of brokers" if settings.evaluation.load == "reported" else ""
    return Rates(
        has_bytes=settings.evaluation.bytes_per_weight is not None,
        has_messages=False,
        why=f"the load of a bundle is known only as the weight of its lookups{bytes_too}",
        remedy="give inputs.bundles, or state evaluation.bytes_per_weight",
        is_stated=True,
    )


def cannot_act(
    policies: Iterable[Policy], rates: Rates, mean_load: Callable[[], float | None] = lambda: None
) -> dict[str, str]:
    """Write a sentence for each policy whose shedder uses rates that the run does not know.

    A shedder that may use several rates acts if one of them is known. A limit of 0 bytes does not count.

    Args:
        mean_load: returns a broker's mean load, weight per second, None if unknown. Only called if there is a sentence.
    """
    by_quantity = {"bytes": rates.has_bytes, "messages": rates.has_messages}
    return {
        policy.name: _write_sentence(policy.shedder, limits, rates, mean_load())
        for policy in policies
        if policy.shedder is not None and (limits := limits_of(policy.shedder))
        # A limit of 0 bytes is met by any load, so nothing has to be known of it.
        if not any(by_quantity[limit.quantity] or (limit.quantity == "bytes" and not limit.value) for limit in limits)
    }


def act_warnings(sentences: Mapping[str, str], incumbent: str) -> list[str]:
    """Convert the sentences of `cannot_act` to warnings, each text once, with the consequence for the incumbent."""
    by_text: dict[str, list[str]] = {}
    for name, text in sentences.items():
        by_text.setdefault(text, []).append(name)
    refused = f"; {incumbent} is the incumbent, so no verdict against it will be given"
    return [
        f"{policies_named(names)}: {text}{refused if incumbent in names else ''}" for text, names in by_text.items()
    ]


def idle_weights(
    specs: Iterable[PolicySpec], knows: str, keys: Mapping[str, Scalar] = MappingProxyType({})
) -> list[str]:
    """Warn about policies with weights of resources other than Pulsar's own, or return nothing.

    Args:
        knows: the source that knows only one usage of a broker, with its verb.
        keys: keys of the brokers' `broker.conf`. Keys of a policy take precedence.
    """
    names = [spec.name for spec in specs if _weighs_resources(spec, {**keys, **spec.broker_conf})]
    why = f"{knows} one usage of a broker, not CPU, memory and bandwidth apart"
    all_0 = "if all are 0, a shedder that weighs them sheds nothing"
    return [f"{policies_named(names)}: weights of resources cannot act: {why}; {all_0}"] if names else []


def idle_weights_of(settings: EvaluationFile) -> list[str]:
    """Compute `idle_weights` of an evaluation, none with load reports, whose tables define their figures."""
    if settings.evaluation.load == "reported":
        return []
    return idle_weights(settings.policies, "simulated load has", load_manager_keys(settings))


def _weighs_resources(spec: PolicySpec, keys: Mapping[str, Scalar]) -> bool:
    defaults = RELEASES[spec.release].defaults
    weights = {key: keys[key] for key in keys if key.endswith("ResourceWeight") and key not in NO_EFFECT_SINCE}
    return bool(spec.weights) or any(value != defaults.get(key, value) for key, value in weights.items())


def policies_named(names: Sequence[str]) -> str:
    """Begin a sentence about one policy or several."""
    return f"policy {names[0]!r}" if len(names) == 1 else f"each of the policies {join_names(names)}"


class _ScaledBundles(Sequence[Sequence[BundleLoad]]):
    """Top bundles by broker number, whose loads are multiplied at access, since most shedders read few of them."""

    def __init__(self, bundles: Sequence[Sequence[BundleLoad]], factor: float) -> None:
        self._bundles, self._factor = bundles, factor

    def __len__(self) -> int:
        return len(self._bundles)

    def __getitem__(self, broker: Any) -> Any:
        return tuple(entry._replace(load=entry.load * self._factor) for entry in self._bundles[broker])


def _write_sentence(shedder: Shedder, limits: Sequence[Limit], rates: Rates, mean_load: float | None) -> str:
    remedy = rates.remedy
    least = min((limit.value for limit in limits if limit.quantity == "bytes"), default=None)
    if rates.is_stated and least is not None and mean_load:
        # Rounded up to two digits for a user to write down, since a smaller value would not reach the limit.
        exact = least / (_LEAST_SHARE * mean_load)
        step = 10.0 ** (math.floor(math.log10(exact)) - 1)
        suggested = math.ceil(exact / step) * step
        number = f"{suggested:.0f}" if suggested >= 100 else f"{suggested:.2g}"  # it has two digits
        share = f"{_LEAST_SHARE:.0%} of the mean load of a broker in this log"
        remedy += f"; {number} is suggested, the smallest with which {share} reaches the limit"
    rule = " or ".join(map(str, limits))
    return f"its shedder {shedder.name!r} cannot act: it uses {rule}, but {rates.why}; {remedy}"
