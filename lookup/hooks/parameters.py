"""Markers for the fields of a part: permitted ranges, and the `broker.conf` key that may fill a field.

A part is a frozen dataclass; its fields are its parameters in TOML:

    max_topics: Annotated[int, Ge(1), Conf("loadBalancerBrokerMaxTopics")] = 50_000
"""

from __future__ import annotations

from dataclasses import dataclass

from annotated_types import Ge, Gt, Le, Lt

__all__ = ["Conf", "Ge", "Gt", "Le", "Lt"]


@dataclass(frozen=True, slots=True)
class Conf:
    """Name the key of Pulsar's `broker.conf` that fills a parameter; `scale` turns its unit into the parameter's."""

    key: str
    #: the parameter is the key's number times this; 0.01 for a percentage that becomes a ratio
    scale: float = 1.0
