"""Small things every reader needs: building `Unreadable`, reading typed values of text, naming brokers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lookup.model.documents import Unreadable
from lookup.model.quoting import shown

__all__ = ["BrokerNames", "number_of", "unreadable"]

#: A longer beginning of a record is cut here, as `Unreadable` promises.
_TEXT_LENGTH = 200
_SERVICE_URL = re.compile(
    r"(?:pulsar(?:\+ssl)?|https?)://(?P<host>\[[^\]]*\]|[^/:,\s]+)(?::(?P<port>\d+))?", re.IGNORECASE
)


def unreadable(line: int, reason: str, text: str) -> Unreadable:
    """Report a record of the reader's own that it cannot use."""
    return Unreadable(line, reason, text[:_TEXT_LENGTH])


def number_of(text: str, what: str) -> float:
    """Read a number; ValueError names what it should have been."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what} {shown(text)} is not a number") from None


@dataclass(frozen=True)
class BrokerNames:
    """How the brokers of a log are called in the registry: ids are `host:webPort`, logs often have service URLs."""

    #: port that the brokers' ids carry; 0 keeps the port of the URL
    web_port: int = 8080
    #: ids of URLs or names that the rule does not get right
    names: Mapping[str, str] = field(default_factory=dict)

    def id_of(self, text: str) -> str | None:
        """Return the id behind a service URL or an id; None for nothing."""
        text = text.strip()
        if not text or text == "null":
            return None
        if text in self.names:
            return self.names[text]
        found = _SERVICE_URL.match(text)
        if found is None:
            return text
        is_web = text.lower().startswith("http")
        port = found["port"] if is_web or not self.web_port else str(self.web_port)
        return f"{found['host']}:{port}" if port else found["host"]
