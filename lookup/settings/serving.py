"""Model the file of the decision server, and the file with the connection to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lookup.errors import SettingsError
from lookup.model.address import is_loopback
from lookup.model.documents import secret_in
from lookup.model.names import cluster_problem, endpoint_problem
from lookup.model.quoting import shown, suggestion
from lookup.settings.base import Positive, Strict, Text, WholeFile, held_to
from lookup.settings.cluster import NamespaceEntry, TopologySection
from lookup.settings.evaluation import EvaluationFile, Seed
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import Loc
from lookup.settings.topics import ListingSection

__all__ = ["ClusterFile", "ClusterSection", "CollectSection", "ConnectionSection", "ServingFile", "ServingSection"]

#: Placeholder for a wrong value, where None would mean that it is absent.
_UNKNOWN: Any = object()
_HttpUrl = Annotated[Text, held_to(lambda url: endpoint_problem("admin", url))]
_PulsarUrl = Annotated[Text, held_to(lambda url: endpoint_problem("service_url", url))]


class ServingSection(Strict):
    """Rules of the decision server."""

    cluster: Annotated[Text, held_to(cluster_problem)]
    """Name of the cluster of the requesting brokers, as in the recorded tables."""
    record: Text
    """Path of the folder in which lookups and decisions are recorded, which may hold earlier records."""
    active: str | None = None
    """Name of the policy that decides. Other policies are not evaluated. Without it, lookups are recorded without
    decisions."""
    bind: Text = "127.0.0.1"
    """Address to listen on. By default only programs of the same machine can connect."""
    port: Annotated[int, Field(strict=True, ge=0, le=65535)] = 8900
    """Port to listen on, or 0 for a free one, which the first line of the log names."""
    token_file: str | None = None
    """Path of a file with the token that brokers have to send, by default none."""
    flush_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 5.0
    """Seconds until a row is in a file. A crash of the server may lose the rows of that time."""
    seed: Seed = 1
    """Seed of the random draws."""
    prefix: str = "lookup."
    """Prefix of the properties that brokers publish (Pulsar: `lookupPropertyPrefix`)."""
    masked: tuple[str, ...] = ()
    """Fields of requests whose presence, but not value, is recorded, which are `client`, `properties` or
    `properties.KEY`."""
    max_decide_bytes: Positive = 1 << 20
    """Greatest size of a request to decide."""
    max_record_bytes: Positive = 4 << 20
    """Greatest size of a batch of lookups."""
    max_in_flight: Positive = 256
    """Greatest number of simultaneous requests, and the same for topics. Further ones are refused at once."""
    max_properties: Positive = 64
    """Lookup properties that a request may have."""
    max_property_length: Positive = 4096
    """Characters of a key or value of a lookup property."""
    max_pending_rows: Positive = 500_000
    """Greatest number of rows that wait for a full disk. Further ones are lost, and counted. Lookups wait in the
    brokers."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences about permitted settings that were probably not intended."""
        if self.token_file is not None or self.bind == "localhost" or is_loopback(self.bind):
            return ()
        who = "anyone who reaches this machine can read and fill the record, and ask the policies"
        return (f"serving.bind: {shown(self.bind)} and no serving.token_file: {who}; give a file with a token",)

    def token(self) -> str | None:
        """Read the token that brokers have to send, None if they do not need one."""
        if self.token_file is None:
            return None
        try:
            token = secret_in(self.token_file)
        except OSError as error:
            raise SettingsError(f"serving.token_file: {self.token_file} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise SettingsError(f"serving.token_file: {self.token_file} {error}") from None
        if not token:
            raise SettingsError(f"serving.token_file: {self.token_file} is empty; it should hold the token")
        return token

    @field_validator("masked")
    @classmethod
    def _maskable(cls, masked: tuple[str, ...]) -> tuple[str, ...]:
        for name in masked:
            key = name.removeprefix("properties.")
            if name not in ("client", "properties") and (key == name or not key):
                raise ValueError(f"should be `client`, `properties` or `properties.KEY`, not {shown(name)}")
        return masked


class ConnectionSection(Strict):
    """Addresses of a cluster's brokers, and credentials."""

    service_url: _PulsarUrl | None = None
    """Brokers, like `pulsar://broker-0:6650,broker-1:6650`. Without them, owners are not read."""
    admin: _HttpUrl | None = None
    """Admin REST of brokers, like `http://broker-0:8080,broker-1:8080`. Without it, topics and bundles are not read."""
    token_file: str | None = None
    """Path of a file with a token for the brokers, by default the value of the variable `PULSAR_TOKEN`, if it is
    set."""
    tls_ca: str | None = None
    """Path of the certificates to trust, PEM."""
    tls_cert: str | None = None
    """Path of the certificate of this client, PEM."""
    tls_key: str | None = None
    """Path of the key of that certificate, PEM."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key: one needs the other")
        return self


class ClusterSection(ConnectionSection):
    """Connection to a live cluster."""

    name: Annotated[Text, held_to(cluster_problem)] | None = None
    """Name of the cluster, by default from the admin REST."""
    zookeeper: Annotated[Text, held_to(lambda text: endpoint_problem("zookeeper", text))] | None = None
    """ZooKeeper, like `zk-0:2181,zk-1:2181/chroot`, after `tls://` for TLS. Without it, there are no lookup
    properties."""


class ClusterFile(WholeFile):
    """File with the connection to a live cluster."""

    cluster: ClusterSection = ClusterSection()
    """Connection to the cluster."""


class CollectSection(ConnectionSection):
    """A collector inside the decision server for the owners of all bundles, from the state topic, and the topics."""

    wait_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 30.0
    """Seconds that the start waits until the state topic has been read to its end."""
    stale_s: Annotated[float, Field(strict=True, ge=0, le=86400)] = 60.0
    """Seconds for which known owners are used while the state topic cannot be read. Afterwards requests are refused."""
    topics_every_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 2.0
    """Seconds between two looks at the topics of all namespaces."""
    topics_stale_s: Annotated[float, Field(strict=True, ge=1, le=86400)] = 20.0
    """Seconds for which topics are listed from the last reading. Afterwards they are read first, or the request
    fails."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.service_url is None and self.admin is None:
            raise ValueError("nothing to collect: give service_url, admin, or both")
        return self


# As written an entry may also be the path of a file, which the loader replaces by the file's content.
_Policies = Annotated[
    tuple[PolicySpec, ...], BeforeValidator(lambda value: value, json_schema_input_type=list[PolicySpec | str])
]


class ServingFile(WholeFile):
    """Everything the decision server needs, with all files it names read into it."""

    serving: ServingSection
    """Rules of the decision server."""
    collect: CollectSection | None = None
    """Collector of owners and topics. Without `service_url`, policies that read `view.ownership` are refused."""
    topics: ListingSection | None = None
    """Catalog and lister that answer brokers and clients that list topics. Without it, topics are not listed."""
    topology: TopologySection = TopologySection()
    """Distances between locations."""
    namespaces: tuple[NamespaceEntry, ...] = ()
    """Isolation and anti-affinity by namespace, for policies that have filters of their own for these."""
    failure_domains: Mapping[str, tuple[str, ...]] = {}
    """Brokers by failure domain."""
    policies: _Policies = ()
    """The policies, as tables, or paths of files with policies."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register parts through the hooks."""

    @classmethod
    def problems_between(cls, tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
        """List the mistakes between tables, including the active policy and collected topics."""
        problems = EvaluationFile.problems_between(tables)
        serving, policies, collect = tables.get("serving"), tables.get("policies"), tables.get("collect")
        problems += [
            (("policies", index, "bundles"), f"{policy.bundles} have no effect; requests name bundles of the cluster")
            for index, policy in enumerate(policies or ())
            if policy.bundles is not None
        ]
        active = getattr(serving, "active", _UNKNOWN)
        if policies is not None and active is not _UNKNOWN:
            names = [policy.name for policy in policies]
            if active is None and names:
                sentence = "should name the policy that decides, since there are policies"
                problems.append((("serving", "active"), sentence))
            elif active is not None and active not in names:
                hint = suggestion(active, names, nothing="there are no policies")
                sentence = f"there is no policy named {shown(active)}; {hint}"
                problems.append((("serving", "active"), sentence))
        if getattr(collect, "admin", None) is not None and tables.get("topics", _UNKNOWN) is None:
            problems.append((("collect", "admin"), "topics are collected into a catalog; give [topics]"))
        return problems
