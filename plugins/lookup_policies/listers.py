"""List topics for a client, either all of a namespace, those with the client's properties, or its tenant's.

Source: PIP-452.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lookup.errors import ArgumentError
from lookup.hooks import Lister
from lookup.model import CatalogView, EventKind, Listing, Mode

__all__ = ["Default", "Indexed", "TenantScope"]


@dataclass(frozen=True)
class Default(Lister):
    """List every topic of the namespace. The client's properties have no effect.

    Match -> Result -> Reason:
        * any topic of the namespace and mode -> listed

    Source: PIP-452, `DefaultPulsarResourcesExtended`.
    """

    name: ClassVar[str] = "default"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """List all topics of the catalog."""
        return Listing(catalog.topics(namespace, mode))


@dataclass(frozen=True)
class Indexed(Lister):
    """List the topics that have every property the client sent, with exactly that value, without looking at the others.

    The filter is handed down to the catalog, whose index knows the topics of each value.

    Match -> Result -> Reason:
        * no properties were sent -> every topic of the namespace and mode is listed
        * the index has the topic under every property and value that was sent -> listed
        * it does not -> not listed

    Source: PIP-452: a null or empty map asks for no filtering, and a data source with an index is its reason.
    """

    name: ClassVar[str] = "indexed"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted", "properties"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Ask the catalog's index."""
        return Listing(catalog.with_properties(namespace, mode, properties))


@dataclass(frozen=True)
class TenantScope(Lister):
    """List only topics of the tenant that the client names.

    A topic belongs to the tenant in its own property `key`, or to the tenant of its namespace if it does not
    have the property. So each tenant sees its own topics in a shared namespace. A client's properties are not
    authenticated, so this restricts the topics that consumers see but does not keep them secret.

    Match -> Result -> Reason:
        * the client names no tenant, and need not -> the child's topics
        * the client names no tenant, and `required` is set -> refused, and its consumers keep their topics
        * the topic belongs to the named tenant, and the child lists it -> listed
        * it belongs to another tenant -> not listed

    Source: PIP-452's motivation that a broker does not know its client. The rule is this project's own.
    """

    name: ClassVar[str] = "tenant-scope"

    #: property, of client and topic, that holds the tenant
    key: str = "tenant"
    #: whether a client that names no tenant is refused
    required: bool = False
    #: lists the topics to choose from, by the client's other properties
    child: Lister = Default()

    def __post_init__(self) -> None:
        if not self.key:
            raise ValueError("tenant-scope has an empty key; name the property that holds the tenant")

    @property
    def interests(self) -> frozenset[EventKind]:
        """The child's, and changes of properties."""
        return frozenset(self.child.interests) | {"properties"}

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Choose the tenant's topics from the child's list."""
        tenant = properties.get(self.key, "")
        if self.required and not tenant:
            raise ArgumentError(f"namespace {namespace} is listed by tenant; send the property {self.key!r}")
        # The child would look for topics with the tenant's property, and drop all without a property of their own.
        others = {key: value for key, value in properties.items() if key != self.key}
        listing = self.child.list_topics(namespace, mode, others, catalog)
        if not tenant:
            return listing
        home = namespace.partition("/")[0]
        entries = [(topic, catalog.entry(topic)) for topic in listing.topics]
        tenants = [(topic, home if entry is None else entry.properties.get(self.key, home)) for topic, entry in entries]
        # A partial list stays partial, since leaving topics out of it does not make the rest complete.
        return Listing([topic for topic, owner in tenants if owner == tenant], listing.partial)

    def initialize(self, catalog: CatalogView) -> None:
        """Prepare the child."""
        self.child.initialize(catalog)

    def close(self) -> None:
        """Close the child."""
        self.child.close()
