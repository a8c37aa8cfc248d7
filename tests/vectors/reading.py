"""Vector files and the conventions by which all areas write their inputs; what an area means is in its group's module.

A file holds a JSON list of vectors, or one vector per line. The conventions are those of section 2 of the vectors'
README: usage pairs, texts of hashes, configuration keys with defaults, keys that only explain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lookup.errors import InputError
from lookup.model.load_data import ResourceUsage
from lookup.settings.releases import RELEASES

__all__ = [
    "CONFIG_DEFAULTS",
    "EXPLANATIONS",
    "Handler",
    "NotUnderstood",
    "Vector",
    "configuration",
    "hash_of",
    "hash_text",
    "hashes_of",
    "only",
    "pulsars_word",
    "read_vectors",
    "usage",
]

#: Puts a vector's `input` to the API and returns what comes out under the keys of `expected`, which it gets second to
#: see what is asked for; may return or raise errors of `lookup.errors`. The runner compares.
Handler: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]

#: Keys that explain a vector to people: never an input, never checked.
EXPLANATIONS = frozenset({"note", "why", "meaning"})

_CHANNEL = "org.apache.pulsar.broker.loadbalance.extensions.channel"

#: Configuration keys with Pulsar's defaults (`docs/pulsar/configuration.md`), in Pulsar's units.
CONFIG_DEFAULTS: Mapping[str, Any] = {
    **RELEASES["4.2"].defaults,
    "atLeastOneBundleSelected": True,
    "loadBalancerBandwithInResourceWeight": 1.0,
    "loadBalancerBandwithOutResourceWeight": 1.0,
    "loadBalancerHostUsageCheckIntervalMinutes": 1,
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": 30000,
    "loadBalancerMultiPhaseBundleUnload": True,
    "loadBalancerOverrideBrokerNicSpeedGbps": None,
    "loadBalancerReportUpdateMaxIntervalMinutes": 15,
    "loadBalancerReportUpdateMinIntervalMillis": 5000,
    "loadBalancerReportUpdateThresholdPercentage": 10,
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": 64,
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds": 60,
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": 3600,
    "loadBalancerServiceUnitTableViewSyncer": "None",
    "loadBalancerSheddingGracePeriodMinutes": 30,
    "loadBalancerSheddingIntervalMinutes": 1,
    "loadBalancerSplitIntervalMinutes": 1,
    "loadManagerServiceUnitStateTableViewClassName": f"{_CHANNEL}.ServiceUnitStateTableViewImpl",
    "lookupPropertyPrefix": "lookup.",
    "namespaceBundleUnloadingTimeoutMs": 60000,
    "supportedNamespaceBundleSplitAlgorithms": (
        "range_equally_divide,topic_count_equally_divide,specified_positions_divide,flow_or_qps_equally_divide"
    ),
    "topicBundleAssignmentStrategy": "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner",
}

#: What `config` holds where it says in words that nothing is set.
_NO_CONFIG = "defaults"


class NotUnderstood(Exception):  # noqa: N818  no failure of the program: the vector asks for what nobody answers
    """An area, or a key of a vector's input or expectation, that nobody here knows how to read.

    Args:
        key: the area or key, as it is written.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} is not understood")
        self.key = key


@dataclass(frozen=True, slots=True)
class Vector:
    """One example: what goes in and what has to come out."""

    #: `<area>/<number>`, stable
    id: str
    #: which rule it exercises
    area: str
    input: Mapping[str, Any]
    #: only the keys that are present are checked
    expected: Mapping[str, Any]


def read_vectors(path: Path) -> list[Vector]:
    """Read a file of vectors, in its order.

    Raises:
        InputError: where the file cannot be read or an entry is no vector; the sentence names file and place.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        return [_vector(entry, f"{path}, entry {index}") for index, entry in enumerate(_entries(text), start=1)]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} holds no list of vectors, nor one per line: {error}") from None


def _entries(text: str) -> list[object]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _vector(entry: object, place: str) -> Vector:
    kinds: Mapping[str, type] = {"id": str, "area": str, "input": dict, "expected": dict}
    for key, kind in kinds.items():
        if not isinstance(entry, dict) or not isinstance(entry.get(key), kind):
            raise InputError(f"{place}: {key} is missing, or is no {kind.__name__}")
    return Vector(**{key: entry[key] for key in kinds})


# Conventions


def only(given: Mapping[str, Any], *known: str) -> None:
    """Refuse keys that are not among those known; keys that explain are always fine.

    Raises:
        NotUnderstood: naming the first unknown key.
    """
    for key in given:
        if key not in known and key not in EXPLANATIONS:
            raise NotUnderstood(key)


def configuration(given: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the values of configuration keys: directly in the input, else in its `config`, else Pulsar's default.

    The old spelling of the bandwidth weights counts where the new one is exactly 1.0, as in Pulsar.

    Raises:
        NotUnderstood: for a key in `config` that Pulsar's load manager does not have.
    """
    config = given.get("config")
    set_there: Mapping[str, Any] = {} if config is None or config == _NO_CONFIG else config
    if not isinstance(set_there, Mapping):
        raise NotUnderstood(f"config: {config}")
    only(set_there, *CONFIG_DEFAULTS)
    direct = {key: value for key, value in given.items() if key in CONFIG_DEFAULTS}
    merged = _respelt({**CONFIG_DEFAULTS, **set_there, **direct})
    return {key: merged[key] for key in keys or merged}


def _respelt(values: Mapping[str, Any]) -> dict[str, Any]:
    spelt = dict(values)
    for direction in ("In", "Out"):
        new, old = (f"loadBalancer{word}{direction}ResourceWeight" for word in ("Bandwidth", "Bandwith"))
        if spelt[new] == 1.0:
            spelt[new] = spelt[old]
    return spelt


def usage(pair: object) -> ResourceUsage:
    """Read `[usage, limit]`."""
    if not isinstance(pair, list) or len(pair) != 2:
        raise NotUnderstood(f"usage pair {pair}")
    return ResourceUsage(float(pair[0]), float(pair[1]))


def pulsars_word(name: str) -> str:
    """Write a label or reason as Pulsar does: `hit-count` is `HitCount`."""
    return "".join(word.capitalize() for word in name.split("-"))


def hash_of(text: str) -> int:
    """Read a hash, `0x` and hexadecimal digits in either case, possibly with `+ <decimal>` behind."""
    hexadecimal, _, offset = text.partition("+")
    try:
        return int(hexadecimal, 16) + int(offset or 0)
    except ValueError:
        raise NotUnderstood(f"hash {text}") from None


def hash_text(value: int) -> str:
    """Write a hash: `0x` and eight digits in lower case."""
    return f"0x{value:08x}"


def hashes_of(texts: Iterable[str]) -> tuple[int, ...]:
    """Read a list of hashes."""
    return tuple(map(hash_of, texts))
