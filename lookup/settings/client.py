"""Client profiles: which clients get which lookup properties where the log has none."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Self

from pydantic import Field, model_validator

from lookup.settings.base import Strict, refuse

__all__ = ["ClientEntry", "ClientMatch"]


class ClientMatch(Strict):
    """Which clients are meant: by network, or by a glob over the client's name."""

    cidr: str | None = None
    """A network like 10.1.0.0/16; meets clients that are addresses, with or without port."""
    client: str | None = None
    """A glob like `*.example.com`, over the whole client or its host; case counts."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.cidr is None) == (self.client is None):
            raise ValueError('should say either cidr = "10.1.0.0/16" or client = "glob"')
        if self.cidr is not None:
            refuse(_bad_network(self.cidr))
        return self


class ClientEntry(Strict):
    """Labels for some clients; the first entry that matches counts, and properties of the log win over its own."""

    match: ClientMatch
    """Which clients."""
    properties: Mapping[str, str] = Field(min_length=1)
    """Lookup properties, without prefix."""


def _bad_network(text: str) -> list[str]:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        return [f"cidr: should be a network like 10.1.0.0/16: {error}"]
    return []
