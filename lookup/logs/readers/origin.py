"""What the text of a log does not say and its reader must be told: whose log it is, of which day, in which zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from lookup.logs.readers.records import BrokerNames
from lookup.model.time import zone_of

__all__ = ["LogOrigin"]


@dataclass(frozen=True)
class LogOrigin:
    """The parameters that all readers of servers' and clients' text logs share."""

    #: id of the broker whose log it is, `host:webPort`
    broker: str = ""
    #: regular expression that finds that broker in the source's path; its first group, or all of it
    broker_pattern: str = ""
    #: regular expression that finds the cluster in the source's path, likewise
    cluster_pattern: str = ""
    #: port in the brokers' ids; service URLs in a log carry another one; 0 keeps the URL's
    web_port: int = 8080
    #: ids of brokers whose URLs or names the port alone does not get right
    broker_ids: Mapping[str, str] = field(default_factory=dict)
    #: zone of timestamps without offset
    timezone: str = "UTC"
    #: day of the first line, `2026-01-31`, of layouts without a date; else the path's
    date: str = ""

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work; ValueError says which."""
        zone_of(self.timezone)
        if self.date:
            date.fromisoformat(self.date)
        for name in ("broker_pattern", "cluster_pattern"):
            try:
                re.compile(getattr(self, name))
            except re.error as error:
                raise ValueError(f"{name} is no regular expression: {error}") from None

    @property
    def names(self) -> BrokerNames:
        """Return how brokers are called in the log."""
        return BrokerNames(self.web_port, self.broker_ids)

    def broker_of(self, source: str) -> str | None:
        """Return the id of the broker whose log a source is, None where nobody said."""
        name = self.broker or _found(self.broker_pattern, source)
        if not name or name in self.broker_ids:
            return self.broker_ids.get(name or "")
        return name if ":" in name or not self.web_port else f"{name}:{self.web_port}"

    def cluster_of(self, source: str) -> dict[str, str]:
        """Return the column `cluster` of all rows of a source, nothing where the path does not say."""
        cluster = _found(self.cluster_pattern, source)
        return {"cluster": cluster} if cluster else {}


def _found(pattern: str, source: str) -> str | None:
    found = re.search(pattern, source) if pattern else None
    if found is None:
        return None
    groups: tuple[str | None, ...] = found.groups()
    return groups[0] if groups else found[0]
