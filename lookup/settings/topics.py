"""Model the table `[topics]` and the file it stands in, and read the same settings from a `broker.conf`.

The keys are Pulsar's under shorter names; `PULSAR_KEYS` maps them. Source: `docs/pulsar/configuration.md`;
`allowedCustomLabelKeys`: PIP-451, which was not merged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

from pydantic import model_validator

from lookup.errors import SettingsError
from lookup.model.quoting import shown
from lookup.settings.base import Positive, ShareS, Strict, Text, Truth, WholeFile, refuse
from lookup.settings.broker_conf import conf_values
from lookup.settings.policy import PartSpec

__all__ = ["PULSAR_KEYS", "ListingSection", "TopicsFile", "TopicsSection", "read_topics_conf"]

#: Pulsar's keys, by setting.
PULSAR_KEYS: Mapping[str, str] = {
    "lister": "pulsarResourcesExtendedClassName",
    "pattern_filtering": "enableBrokerSideSubscriptionPatternEvaluation",
    "pattern_max_length": "subscriptionPatternMaxLength",
    "topic_list_watcher": "enableBrokerTopicListWatcher",
    "allowed_label_keys": "allowedCustomLabelKeys",
}

#: Pulsar's own class, and the lister that does the same.
_CLASSES = {"org.apache.pulsar.broker.DefaultPulsarResourcesExtended": "default"}


class ListingSection(Strict):
    """Rules by which topics are listed, labelled and watched."""

    catalog: Text = "topics.db"
    """Path of the SQLite file that holds the topics."""
    lock_timeout_s: ShareS = 5.0
    """How long a command waits for another process that writes to the catalog, s."""
    lister: PartSpec = PartSpec(use="default")
    """Lister that answers; Pulsar: `pulsarResourcesExtendedClassName`."""
    pattern_filtering: Truth = True
    """If true, patterns are applied here as well; Pulsar: `enableBrokerSideSubscriptionPatternEvaluation`."""
    pattern_max_length: Positive = 50
    """Length above which a pattern is left to the client; Pulsar: `subscriptionPatternMaxLength`."""
    allowed_label_keys: tuple[Text, ...] | None = None
    """Keys that labels may have; absent: any. Pulsar: `allowedCustomLabelKeys`, as PIP-451 has it."""
    max_properties: Positive = 64
    """Properties a client may send with one request."""
    max_property_length: Positive = 256
    """Characters of a key or value that a client sends."""
    topic_list_watcher: Truth = True
    """If true, clients may watch the list of topics; Pulsar: `enableBrokerTopicListWatcher`."""
    queue_max: Positive = 10_000
    """Changes that a watcher may have missed before it is sent the whole list in their place."""
    watchers_max: Positive = 10_000
    """Watchers that a server may have."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if "weight" in self.lister.model_fields_set:
            refuse(["lister.weight: only a policy's scorers have a weight"])
        return self


class TopicsSection(ListingSection):
    """The same, and what a command needs beside."""

    namespace: Text = "public/default"
    """Namespace of a query that names none: one's own."""
    from_broker_conf: str | None = None
    """Path of a `broker.conf` whose keys fill what is not written here."""


class TopicsFile(WholeFile):
    """A file about topics."""

    topics: TopicsSection = TopicsSection()
    """Rules by which topics are listed, labelled and watched."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register listers through the hooks."""


def read_topics_conf(path: str, written: Collection[str]) -> Mapping[str, Any]:
    """Return the settings that a `broker.conf` has a value for.

    Args:
        written: settings that are set elsewhere; those of the file are ignored.

    Raises:
        SettingsError: all mistakes together, each under Pulsar's key.
    """
    values = conf_values(path)
    given = {name: values.get(key, "").strip() for name, key in PULSAR_KEYS.items() if name not in written}
    problems: list[str] = []
    settings = {}
    for name, text in given.items():
        if text:
            try:
                settings[name] = _value(name, text)
            except ValueError as error:
                problems.append(f"{PULSAR_KEYS[name]}: {error}")
    if problems:
        raise SettingsError([f"{path}: {problem}" for problem in problems])
    return settings


def _value(name: str, text: str) -> Any:
    if name == "lister":
        if "." in text and text not in _CLASSES:
            raise ValueError(f"{text} is a Java class, which only a broker loads; write the lister that stands for it")
        return _CLASSES.get(text, text)
    if name == "allowed_label_keys":
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if name == "pattern_max_length":
        # int() would also take "+5", "1_0" and digits of other scripts.
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"should be a whole number of at least 1, not {shown(text)}")
        return int(text)
    if text.lower() not in ("true", "false"):  # in any case, as Java has it
        raise ValueError(f"should be true or false, not {shown(text)}")
    return text.lower() == "true"
