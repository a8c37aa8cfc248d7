"""Model the table `[topics]` and its file.

Source: `docs/pulsar/configuration.md`, and PIP-451 for `allowedCustomLabelKeys`, which was not merged.
"""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from lookup.settings.base import Positive, ShareS, Strict, Text, WholeFile, refuse
from lookup.settings.policy import PartSpec

__all__ = ["ListingSection", "TopicsFile"]


class ListingSection(Strict):
    """Rules by which topics are listed, labelled and watched."""

    catalog: Text = "topics.db"
    """Path of the SQLite file that holds the topics."""
    lock_timeout_s: ShareS = 5.0
    """How long a command waits for another process that writes to the catalog, s."""
    lister: PartSpec = PartSpec(use="default")
    """Lister that answers (Pulsar: `pulsarResourcesExtendedClassName`)."""
    allowed_label_keys: tuple[Text, ...] | None = None
    """Keys that labels may have, by default any (Pulsar: `allowedCustomLabelKeys`, in PIP-451)."""
    max_properties: Positive = 64
    """Properties a client may send with one request."""
    max_property_length: Positive = 256
    """Characters of a key or value that a client sends."""
    queue_max: Positive = 10_000
    """Changes that a watcher may have missed before it is sent the whole list in their place."""
    watchers_max: Positive = 10_000
    """Watchers that a server may have."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "weight" in self.lister.model_fields_set:
            refuse(["lister.weight: only a policy's scorers have a weight"])
        return self


class TopicsFile(WholeFile):
    """A file about topics."""

    topics: ListingSection = ListingSection()
    """Rules by which topics are listed, labelled and watched."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register listers through the hooks."""
