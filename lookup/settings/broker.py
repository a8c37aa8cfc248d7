"""Model brokers as written, as single ones or templates, and the profile of a broker's configuration.

A profile comes from TOML or a `broker.conf` (`broker_conf.py`). `resolve.py` derives a broker's registered data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.names import cluster_problem
from lookup.model.quoting import shown
from lookup.settings.base import (
    Above0,
    Count,
    Cycling,
    Moment,
    PortNumber,
    Positive,
    Strict,
    Truth,
    fill_number,
    held_to,
    is_numbered,
    refuse,
)
from lookup.settings.pulsar_keys import Scalar, is_load_manager_key, near_miss

__all__ = ["BrokerEntry", "BrokerProfile", "LocationEntry"]

#: Most brokers of a template, more than any cluster has and few enough for the memory.
_MAX_COUNT = 100_000
#: An IPv6 address without brackets or with one alone, with a zone and a port behind it or not.
_BARE_IPV6 = re.compile(r"\[[^\]]*|[0-9A-Fa-f.]*(?::[0-9A-Fa-f.]*){2,}(?:%.*|\])?(?::\d+)?")


class BrokerProfile(Strict):
    """The part of a broker's configuration that matters for lookups."""

    file: str | None = None
    """Path the profile was read from."""
    lookup_property_prefix: str = Field(default="lookup.", min_length=1)
    """Prefix of published properties, `lookupPropertyPrefix`."""
    properties: Mapping[str, str] = {}
    """Lookup properties, with the prefix in the key."""
    load_manager_class_name: str = EXTENSIBLE_MANAGER
    """Class of the load manager, `loadManagerClassName`. Without it in a broker.conf, it is Pulsar's default, the
    modular manager."""
    advertised_address: str | None = None
    """Host of the broker's id, if an entry does not have one, `advertisedAddress`."""
    web_service_port: PortNumber | None = 8080
    """Port of the broker's id, if an entry does not have one, `webServicePort`."""
    web_service_port_tls: PortNumber | None = None
    """`webServicePortTls`."""
    broker_service_port: PortNumber | None = 6650
    """`brokerServicePort`."""
    broker_service_port_tls: PortNumber | None = None
    """`brokerServicePortTls`."""
    enable_persistent_topics: Truth = True
    """`enablePersistentTopics`."""
    enable_non_persistent_topics: Truth = True
    """`enableNonPersistentTopics`."""
    broker_version: str | None = None
    """Version that the broker reports, like 4.0.3. Only in TOML."""
    capacity: Above0 | None = None
    """Weight per second at usage 1.0, if an entry does not have one. Only in TOML."""
    load_balancer: Mapping[str, Scalar] = {}
    """Keys of the load manager under Pulsar's own names, like loadBalancerBrokerMaxTopics."""

    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """The contents of a `broker.conf` that are read differently from the likely intention, a sentence each."""
        return self._warnings

    def note_warnings(self, sentences: tuple[str, ...]) -> Self:
        """Record the warnings, for the reader of the file."""
        self._warnings = sentences
        return self

    @property
    def slips(self) -> Mapping[str, str]:
        """The unknown keys in `load_balancer` that were probably misspelt, and the intended keys."""
        guesses = {key: near_miss(key) for key in self.load_balancer}
        return {key: guess for key, guess in guesses.items() if guess is not None}

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        # Pulsar ignores unknown keys, and versions know different ones, so a broker.conf is read unchanged.
        if self.file is None or self.file.endswith(".toml"):
            slips = self.slips
            strange = [key for key in self.load_balancer if key not in slips and not is_load_manager_key(key)]
            problems += [
                f"load_balancer.{key}: there is no such key; did you mean {guess!r}?" for key, guess in slips.items()
            ]
            problems += [f"load_balancer.{key}: is not a key of Pulsar's load manager" for key in strange]
        problems += _strip_prefix(self.properties, self.lookup_property_prefix)
        refuse(problems)
        return self


class LocationEntry(Strict):
    """A place. In a template each level may be a list that the brokers use in turn."""

    region: Cycling | None = None
    """Outermost level."""
    zone: Cycling | None = None
    """Middle level."""
    rack: Cycling | None = None
    """Innermost level."""


ClusterName = Annotated[str, held_to(cluster_problem)]


class BrokerEntry(Strict):
    """One broker, or with `count` a template of several, and when it is registered."""

    id: str | None = Field(default=None, min_length=1)
    """`host:port` of the web service, where `{n}` or `{n:02}` counts in a template. The default is from the
    profile's address."""
    count: Positive | None = Field(default=None, le=_MAX_COUNT)
    """Makes this a template of so many brokers."""
    first: Count = 0
    """First number of a template."""
    properties: Mapping[str, Cycling] = {}
    """Lookup properties with their prefix, which replace those of the profile. Lists are used in turn, and `{n}`
    counts."""
    clusters: tuple[ClusterName, ...] | None = Field(default=None, min_length=1)
    """Clusters of the broker, by default every cluster of the log."""
    from_: Moment | None = Field(default=None, alias="from")
    """Start of the registration, by default the beginning of the log."""
    until: Moment | None = None
    """End of the registration, exclusive, by default the end of the log."""
    capacity: Above0 | None = None
    """Weight per second at usage 1.0, by default the profile's, or assumed if no broker of the cluster has one."""
    location: LocationEntry | None = None
    """Location of the broker, by default from its lookup properties region, zone and rack."""
    profile: Annotated[
        BrokerProfile | None, BeforeValidator(lambda value: value, json_schema_input_type=str | BrokerProfile | None)
    ] = None
    """Path of a broker.conf or of a TOML profile, or the profile itself."""

    @property
    def prefix(self) -> str:
        """The prefix of the broker's lookup properties."""
        return self.profile.lookup_property_prefix if self.profile else "lookup."

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the template's brokers, (0,) for a single broker."""
        return (0,) if self.count is None else tuple(range(self.first, self.first + self.count))

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the entry's brokers, in order of their numbers."""
        pattern = self.id or _id_of(self.profile)
        return (pattern,) if self.count is None else tuple(fill_number(pattern, n) for n in self.numbers)

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = _strip_prefix(self.properties, self.prefix)
        if self.from_ is not None and self.until is not None and self.from_ >= self.until:
            problems.append(f"until: {self.until.isoformat()} should be later than from, {self.from_.isoformat()}")
        if self.id is None and not _id_of(self.profile):
            problems.append("id: is missing, and no profile gives an advertised address and a web service port")
        if _BARE_IPV6.fullmatch(fill_number(self.id or "", 0)):
            problems.append(f"id: write an IPv6 address in brackets, like [fd00::1]:8080, not {shown(self.id)}")
        if self.count is None:
            problems += self._check_count()
        elif not is_numbered(self.id or ""):
            problems.append("id: a template's id should have {n} in it, like broker-{n}:8080")
        refuse(problems)
        return self

    def _check_count(self) -> list[str]:
        problems = ["id: {n} needs a count"] if is_numbered(self.id or "") else []
        if self.profile is not None and is_numbered(self.profile.advertised_address or ""):
            problems.append("profile: advertisedAddress has {n}, which needs a count")
        problems += ["first: needs a count"] if "first" in self.model_fields_set else []
        levels = self.location.model_dump(exclude_none=True) if self.location else {}
        are_lists = {f'properties."{key}"': len(values) > 1 for key, values in self.properties.items()}
        # A level of one value is written as a text again (`Cycling`).
        are_lists |= {f"location.{level}": isinstance(value, list) for level, value in levels.items()}
        return problems + [f"{key}: a list of values needs a count" for key, is_list in are_lists.items() if is_list]


def _strip_prefix(properties: Mapping[str, object], prefix: str) -> list[str]:
    return [
        f'properties.{key}: a broker publishes only properties under "{prefix}"; did you mean "{prefix}{key}"?'
        for key in properties
        if not key.startswith(prefix)
    ]


def _id_of(profile: BrokerProfile | None) -> str:
    if profile is None or profile.advertised_address is None:
        return ""
    port = profile.web_service_port or profile.web_service_port_tls
    host = profile.advertised_address
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return "" if port is None else f"{host}:{port}"
