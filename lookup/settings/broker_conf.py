"""Reads a real `broker.conf`, Java properties with Java's rules, as a broker's profile.

Source: `docs/pulsar/configuration.md`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import javaproperties
from pydantic import ValidationError

from lookup.errors import SettingsError
from lookup.model.broker import published_properties
from lookup.model.documents import is_device
from lookup.settings.broker import BrokerProfile
from lookup.settings.broker_keys import MODULAR_MANAGER, is_load_manager_key
from lookup.settings.problems import place, problems_of

__all__ = ["conf_values", "read_broker_conf"]

#: Pulsar's keys by field of the profile; the others of the file are not this project's business.
_KEYS = {
    "lookup_property_prefix": "lookupPropertyPrefix",
    "load_manager_class_name": "loadManagerClassName",
    "advertised_address": "advertisedAddress",
    "advertised_listeners": "advertisedListeners",
    "internal_listener_name": "internalListenerName",
    "web_service_port": "webServicePort",
    "web_service_port_tls": "webServicePortTls",
    "broker_service_port": "brokerServicePort",
    "broker_service_port_tls": "brokerServicePortTls",
    "enable_persistent_topics": "enablePersistentTopics",
    "enable_non_persistent_topics": "enableNonPersistentTopics",
}
_TEXTS = (
    "lookup_property_prefix",
    "load_manager_class_name",
    "advertised_address",
    "advertised_listeners",
    "internal_listener_name",
)


def read_broker_conf(path: str | os.PathLike[str], *, encoding: str = "latin-1") -> BrokerProfile:
    """Read a `broker.conf`.

    An empty value means Pulsar's default, except for a lookup property, which may be empty. Of a key given several
    times the last one counts, as in Java; the profile's `duplicates` names such keys. A key that Pulsar does not know
    is no mistake; the profile's `slips` names those that resemble one it knows.

    Args:
        encoding: Java reads Latin-1, whatever an editor wrote.

    Raises:
        SettingsError: where the file is absent or a value is of the wrong kind; all mistakes together.
    """
    pairs = _pairs(Path(path), encoding)
    values = dict(pairs)
    try:
        profile = BrokerProfile.model_validate({"file": str(path), **_fields(values)})
    except ValidationError as error:
        raise SettingsError(
            [f"{path}: {_pulsar_place(*found)}" for found in problems_of(error, BrokerProfile)]
        ) from None
    return profile.note_duplicates(tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1))


def conf_values(path: str | os.PathLike[str], *, encoding: str = "latin-1") -> dict[str, str]:
    """Return every key of a `broker.conf` with its text; of a key given several times the last one.

    Raises:
        SettingsError: where the file is absent or no file of Java properties.
    """
    return dict(_pairs(Path(path), encoding))


def _pairs(path: Path, encoding: str) -> list[tuple[str, str]]:
    if is_device(path):
        raise SettingsError(f"{path}: is a device; expected a file of Java properties")
    try:
        text = path.read_text(encoding=encoding)
        elements = list(javaproperties.parse(text))
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # of the encoding, or of a malformed \u escape
        raise SettingsError(f"{path}: cannot be read as Java properties: {error}") from None
    if "\0" in text:  # Latin-1 has a character for every byte, and a line of anything is a key
        raise SettingsError(f"{path}: is no text; a broker.conf has lines like webServicePort=8080")
    return [(pair.key, pair.value) for pair in elements if isinstance(pair, javaproperties.KeyValue)]


def _fields(values: Mapping[str, str]) -> dict[str, Any]:
    given = {key: value for key, value in values.items() if value.strip()}
    prefix = given.get(_KEYS["lookup_property_prefix"], "lookup.").strip()
    fields: dict[str, Any] = {
        field: given[key].strip() if field in _TEXTS else _scalar(given[key])
        for field, key in _KEYS.items()
        if key in given
    }
    fields.setdefault("load_manager_class_name", MODULAR_MANAGER)
    fields["properties"] = published_properties(values, prefix)
    fields["load_balancer"] = {key: _scalar(value) for key, value in given.items() if is_load_manager_key(key)}
    return fields


def _scalar(text: str) -> bool | int | float | str:
    bare = text.strip()
    if bare.lower() in ("true", "false"):  # in any case, as Java has it
        return bare.lower() == "true"
    for number in (int, float):
        try:
            return number(bare)
        except ValueError:
            continue
    return bare


def _pulsar_place(loc: tuple[str | int, ...], sentence: str) -> str:
    return place((_KEYS.get(str(loc[0]), loc[0]), *loc[1:]) if loc else (), sentence)
