"""A rack policy in one file: name the file in `plugin_files`, then use `same-rack` like a built-in scorer."""

from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl
from lookup.model import Candidates, ClusterView, LookupRequest


@dataclass(frozen=True)
class SameRack:
    """Prefer brokers in the client's rack; a client that names none prefers nobody."""

    name: ClassVar[str] = "same-rack"
    reads: ClassVar[frozenset[str]] = frozenset({"properties.rack"})

    elsewhere: float = 0.0

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Return 1 for the client's rack."""
        rack = request.property_of("rack")
        return [1.0 if rack in (None, broker.property_of("rack")) else self.elsewhere for broker in brokers]


@hookimpl
def lookup_register_scorers() -> list[type]:
    """Return the scorer."""
    return [SameRack]
