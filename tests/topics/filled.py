"""Catalogs with given topics, for the tests of this room."""

from __future__ import annotations

from collections.abc import Mapping

from lookup.topics.catalog import Catalog

__all__ = ["HERE", "catalog_of", "name_of"]

#: The namespace of all names.
HERE = "public/default"


def name_of(local: str, domain: str = "persistent") -> str:
    """Return a complete name."""
    return f"{domain}://{HERE}/{local}"


def catalog_of(*names: str, **described: Mapping[str, str]) -> Catalog:
    """Return a catalog of a namespace with topics, and with further ones that have properties, by local name."""
    catalog = Catalog()
    catalog.create_namespace(HERE)
    for name in names:
        catalog.create(name)
    for local, properties in described.items():
        catalog.create(name_of(local), properties=properties)
    return catalog
