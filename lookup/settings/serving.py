"""Model the file of the decision server: where it listens, what it records, its bounds, collector and policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from lookup.errors import SettingsError
from lookup.model.address import is_loopback
from lookup.model.documents import secret_in
from lookup.model.names import cluster_problem, url_problem
from lookup.model.pacing import Window, parse_rate, parse_window
from lookup.model.quoting import shown, suggestion
from lookup.settings.base import Above0, Positive, Strict, Text, Truth, WholeFile, held_to
from lookup.settings.cluster import NamespaceEntry, TopologySection
from lookup.settings.evaluation import EvaluationFile, Seed
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import Loc
from lookup.settings.topics import ListingSection

__all__ = ["BalanceSection", "CollectSection", "ServingFile", "ServingSection"]

#: Stands for a value that is wrong, where None would mean that it is absent.
_UNKNOWN: Any = object()
#: What has to be reached of a cluster whose bundles are moved.
_REACHED = ("admin", "service_url")
_HttpUrl = Annotated[Text, held_to(lambda url: url_problem(url, "http", "https"))]
_PulsarUrl = Annotated[Text, held_to(lambda url: url_problem(url, "pulsar", "pulsar+ssl"))]


class ServingSection(Strict):
    """Rules of the decision server."""

    cluster: Annotated[Text, held_to(cluster_problem)]
    """Name of the cluster whose brokers ask, as it stands in the recorded tables."""
    record: Text
    """Path of the folder in which lookups and decisions are recorded; it may hold earlier records."""
    active: str | None = None
    """Name of the policy that decides; the others are asked in its shadow. Absent: lookups are recorded, nothing is
    decided."""
    bind: Text = "127.0.0.1"
    """Address to listen on; by default only programs of the same machine can connect."""
    port: Annotated[int, Field(strict=True, ge=0, le=65535)] = 8900
    """Port to listen on; 0: a free one, which the first line of the log names."""
    token_file: str | None = None
    """Path of a file with the token that brokers have to send; absent: none."""
    flush_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 5.0
    """Seconds after which a row is in a file: what a crash of the server may lose."""
    seed: Seed = 1
    """Seed of the dice."""
    prefix: str = "lookup."
    """Prefix of the properties that brokers publish; Pulsar: `lookupPropertyPrefix`."""
    masked: tuple[str, ...] = ()
    """Fields of requests of which only their presence is recorded: `client`, `properties` or `properties.KEY`."""
    max_decide_bytes: Positive = 1 << 20
    """Greatest size of a request to decide."""
    max_record_bytes: Positive = 4 << 20
    """Greatest size of a batch of lookups."""
    max_in_flight: Positive = 256
    """Requests that may be under way, and as many about topics; further ones are refused at once."""
    max_properties: Positive = 64
    """Lookup properties that a request may have."""
    max_property_length: Positive = 4096
    """Characters of a key or value of a lookup property."""
    max_pending_rows: Positive = 500_000
    """Rows that may wait for a disk that is full; further ones are lost, and counted."""
    shadow_queue: Positive = 10_000
    """Requests that may wait for the policies in shadow; further ones are lost to them, and counted."""
    explained: Positive = 10_000
    """Decisions that can be explained afterwards, the latest; fewer if their views have more than 50,000 brokers
    together."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return a sentence for what is permitted and probably not meant."""
        if self.token_file is not None or self.bind == "localhost" or is_loopback(self.bind):
            return ()
        who = "whoever reaches this machine can read and fill the record, and ask the policies"
        return (f"serving.bind: {shown(self.bind)} and no serving.token_file: {who}; give a file with a token",)

    def token(self) -> str | None:
        """Read the token that brokers have to send; None if they need none.

        Raises:
            SettingsError: if its file cannot be read, or holds no token.
        """
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


class CollectSection(Strict):
    """A collector inside the decision server: the owners of all bundles, from the state topic, and the topics."""

    service_url: _PulsarUrl | None = None
    """Brokers to read the state topic from, like `pulsar://broker-0:6650,broker-1:6650`; absent: no owners."""
    admin: _HttpUrl | None = None
    """Brokers whose REST lists topics, like `http://broker-0:8080,broker-1:8080`; absent: no topics."""
    token_file: str | None = None
    """Path of a file with a token for the brokers; absent: the variable `PULSAR_TOKEN` is the token, if it is set."""
    tls_ca: str | None = None
    """Path of the certificates to trust, PEM."""
    tls_cert: str | None = None
    """Path of the certificate of this client, PEM."""
    tls_key: str | None = None
    """Path of the key of that certificate, PEM."""
    wait_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 30.0
    """Seconds that the start waits until the state topic has been read to its end."""
    stale_s: Annotated[float, Field(strict=True, ge=0, le=86400)] = 60.0
    """Seconds for which owners are decided on while the state topic cannot be read; beyond, requests are refused."""
    topics_every_s: Annotated[float, Field(strict=True, ge=0.1, le=3600)] = 2.0
    """Seconds between two looks at the topics of all namespaces."""
    topics_stale_s: Annotated[float, Field(strict=True, ge=1, le=86400)] = 20.0
    """Seconds for which topics are listed as they were read last; beyond, they are read first, or the request fails."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.service_url is None and self.admin is None:
            raise ValueError("nothing to collect: give service_url, admin, or both")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key: one needs the other")
        return self


class BalanceSection(Strict):
    """Plans of moves, made again and again from what a collector records, and carried out if that is asked for."""

    mode: Literal["propose", "apply"] = "propose"
    """`propose`: nothing is moved. `apply`: the moves of each plan are made, by one server at a time."""
    record: Text
    """Path of the folder in which `lookup collect` records the cluster."""
    plans: Text
    """Path of the folder of the latest plan, and of what each look at the cluster led to."""
    every_s: Annotated[float, Field(strict=True, ge=1, le=86400)] = 600.0
    """Seconds between two looks."""
    policy: Text = "shipped:rebalance"
    """Path of a file with the policy whose shedder plans, or what ships under a name."""
    max_moves: Positive | None = None
    """Most bundles that a plan moves; absent: as many as the shedder does in a cycle."""
    max_weight: Annotated[float, Field(strict=True, gt=0)] | None = None
    """Most load that a plan moves, bytes per second; absent: as much as the shedder does in a cycle."""
    stale_s: Annotated[float, Field(strict=True, ge=1, le=86400)] = 900.0
    """Seconds that the end of the record may be old; beyond, no plan of it is relied on."""
    zookeeper: Text | None = None
    """ZooKeeper with the lock by which one server moves bundles, like `zk-0:2181,zk-1:2181`; needed to apply."""
    windows: tuple[Text, ...] = ()
    """Times of the day, UTC, in which bundles are moved: `02:00-05:00`, `Sat 22:00-06:00`; empty: always."""
    rate: Text = "2/min"
    """Most moves per s, min or h that begin, and that end."""
    in_flight: Positive = 1
    """Moves under way at once."""
    freeze_shedding: Truth = False
    """If true, Pulsar's own shedder is kept still while moves are made, and put back as it was."""
    max_load_age_s: Above0 = 1200.0
    """Seconds for which a broker need not have reported its load; beyond, no further move begins."""
    max_publish_latency_ms: Above0 | None = None
    """Most publish latency of a broker, 99th percentile by its metrics, ms; absent: not looked at."""
    max_backlog: Above0 | None = None
    """Most messages of backlog of a broker by its metrics; absent: not looked at."""
    prometheus: _HttpUrl | None = None
    """Address of Prometheus, for `guards`."""
    guards: tuple[Text, ...] = ()
    """Queries of Prometheus that give nothing, or 0, while moves may be made."""

    @property
    def interval_s(self) -> float:
        """Return the seconds from one move to the next."""
        return parse_rate(self.rate)

    def open_windows(self) -> list[Window]:
        """Return the windows, none if bundles may be moved always."""
        return [parse_window(text) for text in self.windows]

    @field_validator("windows")
    @classmethod
    def _readable(cls, windows: tuple[str, ...]) -> tuple[str, ...]:
        for text in windows:
            parse_window(text)
        return windows

    @field_validator("rate")
    @classmethod
    def _countable(cls, rate: str) -> str:
        parse_rate(rate)
        return rate

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.prometheus is None) != (not self.guards):
            raise ValueError("prometheus and guards: one needs the other")
        if self.mode == "apply" and self.zookeeper is None:
            raise ValueError("mode: to apply, zookeeper must be given: its lock keeps two servers from moving at once")
        return self


# As written an entry may also be the path of a file, which the loader replaces by what the file holds.
_Policies = Annotated[
    tuple[PolicySpec, ...], BeforeValidator(lambda given: given, json_schema_input_type=list[PolicySpec | str])
]


class ServingFile(WholeFile):
    """Everything the decision server needs, with all files it names read into it."""

    serving: ServingSection
    """Rules of the decision server."""
    collect: CollectSection | None = None
    """Collector of owners and topics; without `service_url` policies that read `view.ownership` are refused."""
    topics: ListingSection | None = None
    """Catalog and lister that answer brokers and clients that list topics; absent: no topics are listed."""
    balance: BalanceSection | None = None
    """Plans of moves, made again and again, and carried out if its mode says so; absent: none are made."""
    topology: TopologySection = TopologySection()
    """Distances between locations."""
    namespaces: tuple[NamespaceEntry, ...] = ()
    """Isolation and anti-affinity by namespace, for policies that have filters of their own for these."""
    failure_domains: Mapping[str, tuple[str, ...]] = {}
    """Brokers by failure domain."""
    policies: _Policies = ()
    """The policies; tables, or paths of files with policies."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register parts through the hooks."""

    @classmethod
    def problems_between(cls, tables: Mapping[str, Any]) -> list[tuple[Loc, str]]:
        """Return the mistakes between tables, those about the active policy and collected topics included."""
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
        is_applied = getattr(tables.get("balance"), "mode", "propose") == "apply"
        if getattr(collect, "admin", None) is not None and tables.get("topics", _UNKNOWN) is None and not is_applied:
            problems.append((("collect", "admin"), "topics are collected into a catalog; give [topics]"))
        if is_applied and "collect" in tables:
            given = {name: getattr(collect, name, None if collect is None else _UNKNOWN) for name in _REACHED}
            absent = [f"collect.{name}" for name, value in given.items() if value is None]
            if absent:
                sentence = f"to apply, {' and '.join(absent)} must be given: the cluster whose bundles are moved"
                problems.append((("balance", "mode"), sentence))
        return problems
