"""Requests of clients and their answers.

Source: `docs/pulsar/load-managers.md`, PIP-368.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["LookupOptions", "LookupRequest", "request_of"]


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """The options of one lookup. `properties` are the client's lookup properties, without prefix."""

    authoritative: bool = False
    read_only: bool = False
    load_topics_in_bundle: bool = False
    advertised_listener_name: str | None = None
    web_service_advertised_listener_name: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookupRequest:
    """A request, as policies see it. The engine's (shedding, a leader's re-selection) only have bundle, namespace."""

    tenant: str
    namespace: str
    bundle: str
    domain: str | None = None
    topic: str | None = None
    client: str | None = None
    listener: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def property_of(self, key: str) -> str | None:
        """Find the client's value of a property, None if it did not send one."""
        return self.properties.get(key)


def request_of(topic: str | None, bundle: str, options: LookupOptions, client: str | None = None) -> LookupRequest:
    """Build the request that a policy sees from the content of a lookup.

    Args:
        topic: complete name, or None for a request of the engine itself.
        bundle: complete name, `tenant/namespace/0x00000000_0x40000000`.
    """
    # The namespace is taken from the bundle's name, known even without a topic. Topics of version 1 are longer.
    namespace = bundle.rpartition("/")[0]
    return LookupRequest(
        tenant=namespace.partition("/")[0],
        namespace=namespace,
        bundle=bundle,
        domain=None if topic is None else topic.partition("://")[0],
        topic=topic,
        client=client,
        listener=options.advertised_listener_name,
        properties=options.properties,
    )
