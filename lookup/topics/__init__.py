"""Topic discovery: the catalog, listing, labels and watches; pure but for the storage of the catalog."""

from __future__ import annotations

__all__: list[str] = []
