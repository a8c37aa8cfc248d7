"""The settings of `[topics]` as a `broker.conf` has them, under Pulsar's keys.

Source: `docs/pulsar/configuration.md`; `allowedCustomLabelKeys`: PIP-451, which was not merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lookup.errors import SettingsError
from lookup.model.quoting import shown
from lookup.settings.broker_conf import conf_values

__all__ = ["PULSAR_KEYS", "read_topics_conf"]

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
_TRUTHS = {"true": True, "false": False}


def read_topics_conf(path: str, *, written: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the settings that a `broker.conf` has a value for.

    Args:
        written: settings that are set elsewhere; what the file says of them is not looked at.

    Raises:
        SettingsError: all mistakes together, each under Pulsar's key.
    """
    values = conf_values(path)
    given = {name: values.get(key, "").strip() for name, key in PULSAR_KEYS.items() if name not in written}
    problems: list[str] = []
    found = {name: _read(name, text, problems) for name, text in given.items() if text}
    if problems:
        raise SettingsError([f"{path}: {problem}" for problem in problems])
    return found


def _read(name: str, text: str, problems: list[str]) -> Any:
    try:
        return _READERS[name](text)
    except ValueError as error:
        problems.append(f"{PULSAR_KEYS[name]}: {error}")
        return None


def _lister(text: str) -> str:
    if text in _CLASSES:
        return _CLASSES[text]
    if "." in text:
        raise ValueError(f"{text} is a Java class, which only a broker loads; write the lister that stands for it")
    return text


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:  # in any case, as Java has it
        raise ValueError(f"should be true or false, not {shown(text)}")
    return _TRUTHS[text.lower()]


def _length(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"should be a whole number of at least 1, not {shown(text)}")
    return int(text)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_READERS = {
    "lister": _lister,
    "pattern_filtering": _truth,
    "pattern_max_length": _length,
    "topic_list_watcher": _truth,
    "allowed_label_keys": _list,
}
