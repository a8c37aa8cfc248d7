"""Markers for the fields of a part: permitted ranges, the `broker.conf` key that may fill a field, and its unit.

A part is a frozen dataclass; its fields are its parameters in TOML:

    max_topics: Annotated[int, Ge(1), Conf("loadBalancerBrokerMaxTopics")] = 50_000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from annotated_types import Ge, Gt, Le, Lt

__all__ = ["Conf", "Ge", "Gt", "Le", "Lt", "Unit"]


@dataclass(frozen=True, slots=True)
class Conf:
    """Name the key of Pulsar's `broker.conf` that fills a parameter; `scale` turns its unit into the parameter's."""

    key: str
    #: the parameter is the key's number times this; 0.01 for a percentage that becomes a ratio
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Say that a parameter is a limit in bytes or messages per second, which a log of lookups need not know.

    A shedder with a limit in bytes above 0 is shown loads in bytes per second if the run can make them out, and is
    reported as unable to act if neither these nor the messages it may go by instead are known.
    """

    name: Literal["bytes/s", "MiB/s", "messages/s"]
    #: the parameter that switches this limit off by being 0
    switch: str | None = None
