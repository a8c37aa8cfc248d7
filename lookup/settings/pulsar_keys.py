"""List Pulsar's keys by name, with their defaults and readers. `releases.py` has the differences of releases.

Source: `docs/pulsar/configuration.md` (ServiceConfiguration), class files of 4.0.8, 4.2.4, 5.0.1 for calls of getters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Annotated

from pydantic import PlainValidator

from lookup.model.quoting import closest, shown

__all__ = [
    "BOOLEANS", "BUNDLES_KEY", "DEFAULTS", "FILLED", "KEYS", "LOAD_MANAGER_KEYS", "MOST_BUNDLES", "NOT_DYNAMIC",
    "NOT_MODELLED", "NO_EFFECT_SINCE", "NUMBERS", "Scalar", "is_load_manager_key", "near_miss", "parse_value",
]  # fmt: skip


def _check_scalar(written: object) -> object:
    if isinstance(written, (bool, int, float, str)):
        return written
    raise ValueError(f"should be a text, a number, true or false, not {shown(written)}")


#: A value of a broker.conf.
Scalar = Annotated[
    bool | int | float | str, PlainValidator(_check_scalar, json_schema_input_type=bool | int | float | str)
]

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse_value(text: str) -> bool | int | float | str:
    """Read the value of a text as Java does, with true and false in any case, and numbers in decimal digits."""
    bare = text.strip()
    if bare.lower() in ("true", "false"):
        return bare.lower() == "true"
    if len(bare) < 300:
        for form, number in ((_WHOLE, int), (_NUMBER, float)):
            if form.fullmatch(bare):
                return number(bare)
    return bare


# Workers of a cluster read it out of an archive.
_LINES = files("lookup.settings").joinpath("broker_keys.txt").read_text(encoding="ascii").splitlines()
#: Data about every key of Pulsar's brokers, in the words of `broker_keys.txt`.
KEYS: Mapping[str, tuple[str, ...]] = {
    key: tuple(words) for key, *words in (line.split() for line in _LINES if not line.startswith("#"))
}


def _collect_defaults(marks: str) -> dict[str, bool | int | float | str]:
    return {key: parse_value(word[1:]) for key, words in KEYS.items() for word in words if word[0] in marks}


#: Defaults of 4.0 and 4.2 by key of the load manager, for policies without a file, and all.
FILLED, DEFAULTS = _collect_defaults("="), _collect_defaults("=:~")
#: Keys that change nothing here.
NOT_MODELLED = frozenset(_collect_defaults("~"))

#: Bundles of a new namespace, and the most that the evaluation of a log may have.
BUNDLES_KEY, MOST_BUNDLES = "defaultNumberOfNamespaceBundles", 1 << 16

#: Keys that count only after a restart. All others of the load managers can be changed in a running cluster. Brokers
#: also accept two classes while they run. The shedder's class is read at the start, and another load manager takes over
#: in all brokers at once, which requires a restart, one broker after the other.
NOT_DYNAMIC = frozenset(
    {
        BUNDLES_KEY,
        "loadBalancerEnabled",
        "loadBalancerLoadPlacementStrategy",
        "loadBalancerLoadSheddingStrategy",
        "loadBalancerSplitIntervalMinutes",
        "loadManagerClassName",
        "lowerBoundarySheddingEnabled",
    }
)

#: Keys that releases still know without any effect, since heap is not a resource.
NO_EFFECT_SINCE = {"loadBalancerMemoryResourceWeight": "3.0"}

#: Keys whose values are true or false. Java reads every other text as false.
BOOLEANS = frozenset(key for key, value in DEFAULTS.items() if isinstance(value, bool))
#: Keys whose values are numbers.
NUMBERS = frozenset(key for key, value in DEFAULTS.items() if not isinstance(value, str | bool))

#: Keys known by name. Others that begin with `loadBalancer` are kept as well, for later versions of Pulsar.
LOAD_MANAGER_KEYS = frozenset({*DEFAULTS, "atLeastOneBundleSelected"} - {"loadManagerClassName"})


def is_load_manager_key(key: str) -> bool:
    """Check whether a key of a `broker.conf` belongs to the load manager."""
    return key.startswith("loadBalancer") or key in LOAD_MANAGER_KEYS


@lru_cache(maxsize=4096)
def near_miss(key: str) -> str | None:
    """Find the known key that an unknown one probably misspells, never for Pulsar's keys outside the load manager."""
    keys = (*LOAD_MANAGER_KEYS, "loadManagerClassName")
    # The cutoff is stricter than for other names, since the keys share long beginnings, so different ones look alike.
    return None if key in keys else closest(key, keys, cutoff=0.8)
