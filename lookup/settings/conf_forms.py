"""Read the text forms of a broker's configuration into keys of a `broker.conf` and their texts.

The forms are Java properties, `PULSAR_PREFIX_` variables in a shell script, a Dockerfile or an env file,
YAML of Compose, of a Helm chart or of an operator, and the JSON of `brokers get-runtime-config` and of
dynamic configuration. Of several components in one file the broker counts.

Source: apply-config-from-env.py of Pulsar's image, 4.2, and BrokerService.getRuntimeConfiguration of 4.2.4.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lookup.errors import SettingsError
from lookup.model.documents import is_device, json_value, yaml_documents
from lookup.model.quoting import join_names
from lookup.settings.pulsar_keys import KEYS, is_load_manager_key, near_miss

__all__ = ["ConfText", "read_conf"]

_PREFIX = "PULSAR_PREFIX_"
#: The first line of a YAML text that holds a table or a list.
_YAML = re.compile(r"""---|-\s|["']?[\w./-]+["']?\s*:(?:\s|$)""")
#: A line of a shell, a Dockerfile, a unit of systemd or an env file.
_SHELL = re.compile(rf"(?:export|ENV|docker|podman)\s|-?-e(?:nv)?\b|Environment=|{_PREFIX}")
_ASSIGNMENT = re.compile(r"(?:Environment=|-?-env=|-e)?([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
#: Names of a broker, and of neighbouring components, in the path to a table.
_BROKER = re.compile(r"(?i)broker|standalone")
_OTHER = re.compile(
    r"(?i)^x-|proxy|zookeeper|^zk|bookie|bookkeeper|recovery|toolset|function|websocket|presto|trino|prometheus|grafana|"
    r"manager|oxia|init|admin|client"
)
#: Tables whose keys become variables of a container.
_VARIABLES = {"configData", "data", "env", "environment", "extraEnvs"}


@dataclass(frozen=True)
class ConfText:
    """The keys of a text."""

    pairs: Sequence[tuple[str, str]]
    #: keys of which the brokers of the text have different values, so that none is in `pairs`
    differing: Sequence[str] = ()
    #: variables that are not applied, a sentence each
    warnings: Sequence[str] = ()


def read_conf(path: Path) -> ConfText:
    """Read a configuration in any form."""
    if is_device(path):
        raise SettingsError(f"{path}: is a device; expected a broker.conf")
    try:
        return _parse(path.read_bytes())
    except FileNotFoundError:
        raise SettingsError(f"{path}: there is no such file") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None


# A search reads a file again for every candidate.
@lru_cache(maxsize=8)
def _parse(raw: bytes) -> ConfText:
    text = _read_text(raw)
    keys = [key for key, _ in text.pairs]
    if not any(key in KEYS or key.startswith(("loadBalancer", "lookup")) or near_miss(key) for key in keys):
        raise ValueError("has no key of Pulsar's brokers; a broker.conf has lines like webServicePort=8080")
    if len(keys) > 1 and b"=" not in raw and not any(value for _, value in text.pairs):
        raise ValueError("has keys without values; `pulsar-admin brokers get-runtime-config` prints both")
    return text


def _read_text(raw: bytes) -> ConfText:
    # Java reads Latin-1, whatever an editor wrote, and Latin-1 has a character for every byte.
    latin, text = raw.decode("latin-1"), raw.decode("utf-8-sig", errors="replace")
    if "\0" in latin:
        raise ValueError("is not text; a broker.conf has lines like webServicePort=8080")
    lines = [line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#!"]
    first = lines[0] if lines else ""
    # Java separates a key from its value by a colon as well, and [name] begins a section elsewhere.
    is_lines = first[:1] != "{" and any(re.match(r"[\w.]+\s*=", line) for line in lines)
    for form, read, begins in (
        ("JSON", lambda text: [json_value(text)], first[:1] in ("{", "[")),
        ("YAML", yaml_documents, _YAML.match(first)),
    ):
        try:
            documents = read(text) if begins else None
        except ValueError as error:
            if "{{" in text:
                raise ValueError("is a template; give its output, as `helm template` prints it") from None
            if not is_lines:
                raise ValueError(f"is not valid {form}: {error}") from None
        else:
            if documents is not None:
                return _read_documents(documents)
    if any(map(_SHELL.match, lines)):
        return _read_variables(_iter_assignments(text))
    import javaproperties  # noqa: PLC0415  loads HTTP and TLS

    try:
        elements = list(javaproperties.parse(latin))
    except ValueError as error:  # of a malformed \u escape
        raise ValueError(f"cannot be read as Java properties: {error}") from None
    read_value = _to_text if "Optional" in latin else str  # output of pulsar-admin, a key and its value in a line
    return ConfText(
        [(pair.key, read_value(pair.value)) for pair in elements if isinstance(pair, javaproperties.KeyValue)]
    )


def _iter_assignments(text: str) -> Iterator[tuple[str, str]]:
    # A line that ends in a backslash continues. `ENV key value` is Docker's old form.
    text = re.sub(r"(?m)^(\s*ENV\s+[\w.]+)[ \t]+(?=[^\s=])", r"\1=", text.replace("\\\n", " "))
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # of a quotation mark alone, as in prose behind `echo`
        words = text.split()
    yield from ((match[1], match[2].rstrip(";")) for match in map(_ASSIGNMENT.fullmatch, words) if match)


def _read_variables(variables: Iterable[tuple[str, str]]) -> ConfText:
    """Convert variables as the image's start script does. Variables with the prefix take precedence."""
    values = {name: value.strip() for name, value in variables}
    prefixed = {name.removeprefix(_PREFIX): value for name, value in values.items() if name.startswith(_PREFIX)}
    # Misspelt keys too, which are warned of.
    names = [name for name in values if not name.startswith(_PREFIX)]
    names = [name for name in names if name in KEYS or is_load_manager_key(name) or near_miss(name)]
    plain = {key: values[key] for key in names if key not in prefixed}
    in_vain = [key for key in plain if "unlisted" in KEYS.get(key, ())]
    return ConfText(
        [*((key, plain[key]) for key in plain if key not in in_vain), *prefixed.items()],
        warnings=[
            f"{key} has no effect: the image's broker.conf has no line that a variable without prefix would change; "
            f"write {_PREFIX}{key}"
            for key in in_vain
        ],
    )


def _read_documents(documents: Sequence[Any]) -> ConfText:
    ids = set[int]()
    sections = [section for document in documents for section in _iter_sections(document, (), ids)]
    own = [(path, text) for path, text in sections if not any(map(_OTHER.search, path))]
    own = [(path, text) for path, text in own if any(map(_BROKER.search, path))] or own
    if sections and not own:
        raise ValueError(
            f"has settings of {join_names(sorted({'.'.join(path) for path, _ in sections}))}, of no broker"
        )
    every: dict[str, dict[str, None]] = {}
    for key, value in (pair for _, text in own for pair in text.pairs):
        every.setdefault(key, {})[value] = None
    differing = [key for key, values in every.items() if len(values) > 1]
    for key in filter(is_load_manager_key, differing):
        where = sorted({".".join(path) for path, text in own if key in dict(text.pairs)})
        raise ValueError(f"has several values of {key}, in {join_names(where)}; give a file of one broker")
    return ConfText(
        [(key, value) for key, values in every.items() if len(values) == 1 for value in values],
        differing,
        [*dict.fromkeys(warning for _, text in own for warning in text.warnings)],
    )


def _iter_sections(value: Any, path: tuple[str, ...], ids: set[int]) -> Iterator[tuple[tuple[str, ...], ConfText]]:
    """Yield every table of a document with Pulsar's keys, and the path to it. The tables of an anchor come once."""
    if id(value) in ids or not isinstance(value, dict | list):
        return
    ids.add(id(value))
    if isinstance(value, list):
        named = [entry for entry in value if isinstance(entry, str)]
        texts = [(match[1], match[2]) for match in map(_ASSIGNMENT.fullmatch, named) if match]
        texts += [(name, "") for name in named if name in KEYS]
        tables = [entry for entry in value if isinstance(entry, dict)]
        texts += [
            (str(entry["name"]), _to_text(entry["value"])) for entry in tables if {"name", "value"} <= entry.keys()
        ]
        inner = [(str(entry.get("name", "")), entry) for entry in tables]
    else:
        about = value.get("metadata")
        path = (*path, str(about["name"])) if isinstance(about, dict) and about.get("name") else path
        texts = [(str(key), _to_text(inside)) for key, inside in value.items() if not isinstance(inside, dict | list)]
        inner = [(str(key), inside) for key, inside in value.items()]
    for name, text in texts:
        if name.endswith(".conf") and "\n" in text:
            yield (*path, name), _read_text(text.encode())
    if any(name.removeprefix(_PREFIX) in KEYS for name, _ in texts):
        is_environment = isinstance(value, list) or not _VARIABLES.isdisjoint(path[-1:])
        is_environment |= any(name.startswith("PULSAR_") for name, _ in texts)
        yield path, _read_variables(texts) if is_environment else ConfText(texts)
    for name, inside in inner:
        yield from _iter_sections(inside, (*path, name), ids)


def _to_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    # Brokers print the values of Java's classes.
    text = re.sub(r"Optional(?:\.empty|\[(.*)\])", r"\1", "" if value is None else str(value))
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text
