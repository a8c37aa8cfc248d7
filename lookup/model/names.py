"""Names of topics, namespaces and clusters, and the namespaces that Pulsar reserves.

This module only parses and recognises names. Bundles are in `bundles.py`.

Source: `docs/pulsar/load-managers.md`, and NamespaceService of 4.2.4 for heartbeat and SLA namespaces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

from lookup.errors import InvalidNameError
from lookup.model.quoting import shown, unseen

__all__ = [
    "INTERNAL_TOPICS", "NamespaceName", "TopicName", "cluster_problem", "endpoint_problem", "is_internal_topic",
    "is_pinned_bundle", "is_system_bundle", "is_system_namespace", "looks_like_pattern", "pinned_broker",
    "split_servers", "url_problem",
]  # fmt: skip

#: Topics of the extensible load manager. The channel owner serves them, and they are never assigned and not demand.
INTERNAL_TOPICS = (
    "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data",
    "persistent://pulsar/system/loadbalancer-service-unit-state",
)

#: Bytes of a cluster's name in a Hive folder, `cluster=NAME`. A folder's name has 255 at most.
_MOST_CLUSTER_BYTES = 255 - len("cluster=")
_SCHEME = re.compile(r"[a-z+]+://")
_DOMAINS = ("persistent", "non-persistent")
_PART = re.compile(r"[-=:.\w]+\Z", re.ASCII)
# The lookup of a watcher has a regular expression in place of the topic (`docs/pulsar/protocol.md`). These characters
# never occur in topic names that people choose, while ".", "$" and "-" do. A backslash counts only where it escapes or
# quotes, since Pulsar accepts it in a name, as in `orders\\meta`.
_PATTERN_CHARACTERS = re.compile(r"[*+?\[\]{}()|^]|\\(?:[^A-Za-z0-9]|[QE]|\Z)")
_HEARTBEAT = re.compile(r"pulsar/(?:[^/]+/)?([^/]+:\d+)\Z")
_SLA_MONITOR = re.compile(r"sla-monitor/(?:[^/]+/)?([^/]+:\d+)\Z")


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """A namespace, `tenant/local`. The cluster in heartbeat namespaces of version 1 stays part of `local`."""

    tenant: str
    local: str

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """Read `tenant/namespace`.

        Raises:
            InvalidNameError: if there is no slash, or a part has characters that Pulsar forbids.
        """
        tenant, slash, local = text.partition("/")
        if not slash or not all(_PART.match(part) for part in (tenant, *local.split("/"))):
            raise InvalidNameError(f"namespace {shown(text)} is not of the form tenant/namespace")
        return cls(tenant, local)

    def __str__(self) -> str:
        return f"{self.tenant}/{self.local}"


@dataclass(frozen=True, slots=True)
class TopicName:
    """A complete topic name with domain, namespace, and local name, which includes a partition suffix."""

    domain: str
    namespace: NamespaceName
    local: str

    @classmethod
    def parse(cls, text: str) -> TopicName:
        """Read `persistent://tenant/namespace/topic`, or the same with `non-persistent`.

        Raises:
            InvalidNameError: with the missing part. A name without domain is not completed here, see `expand`.
        """
        domain, scheme, rest = text.partition("://")
        if not scheme or domain not in _DOMAINS:
            raise InvalidNameError(f"topic {shown(text)} does not begin with persistent:// or non-persistent://")
        parts = rest.split("/", 2)
        if len(parts) != 3 or not parts[2]:
            raise InvalidNameError(f"topic {shown(text)} is not of the form {domain}://tenant/namespace/topic")
        return cls(domain, NamespaceName.parse(f"{parts[0]}/{parts[1]}"), parts[2])

    @classmethod
    def expand(cls, text: str) -> TopicName:
        """Complete a short name as Pulsar's clients do. `t` is `persistent://public/default/t`."""
        if "://" in text:
            return cls.parse(text)
        prefix = "persistent://" if text.count("/") else "persistent://public/default/"
        return cls.parse(prefix + text)

    def __str__(self) -> str:
        return f"{self.domain}://{self.namespace}/{self.local}"


def looks_like_pattern(topic: str) -> bool:
    """Check whether a looked-up topic is a regular expression, as sent by topic list watchers, and not a name."""
    return _PATTERN_CHARACTERS.search(topic) is not None


def is_internal_topic(topic: str) -> bool:
    """Check whether a topic is the load manager's own. Its name is, or starts with, one of `INTERNAL_TOPICS`."""
    return topic.startswith(INTERNAL_TOPICS)


@lru_cache(maxsize=1 << 16)
def pinned_broker(namespace: str) -> str | None:
    """Find the broker in the name of a heartbeat or SLA-monitor namespace, None for every other namespace."""
    match = _HEARTBEAT.match(namespace) or _SLA_MONITOR.match(namespace)
    return match[1] if match else None


@lru_cache(maxsize=1 << 16)
def is_pinned_bundle(bundle: str) -> bool:
    """Check whether a bundle is of a heartbeat or SLA-monitor namespace. The modular manager sheds all others."""
    return pinned_broker(bundle.rpartition("/")[0]) is not None


def is_system_namespace(namespace: str) -> bool:
    """Check whether Pulsar reserves a namespace. The extensible manager never sheds its bundles."""
    return namespace == "pulsar/system" or pinned_broker(namespace) is not None


@lru_cache(maxsize=1 << 16)
def is_system_bundle(bundle: str) -> bool:
    """Check whether a bundle, by its complete name, belongs to a system namespace."""
    return is_system_namespace(bundle.rpartition("/")[0])


def split_servers(url: str) -> tuple[str, list[str]]:
    """Split a URL of several servers into scheme, `http://` or "", and servers. Each may repeat the scheme."""
    match = _SCHEME.match(url)
    scheme = match[0] if match else ""
    return scheme, [server.strip().removeprefix(scheme).strip().rstrip("/") for server in url.split(",")]


def url_problem(url: str, *schemes: str) -> str | None:
    """Explain why a text cannot be the URL of servers, else None. The text is left out, as it may hold a password."""
    scheme, servers = split_servers(url)
    if any("://" in server for server in servers):
        return f"names servers of several schemes; all should have {scheme or 'the same'}"
    if scheme.removesuffix("://") not in schemes or not all(map(_has_host, servers)):
        return f"should be of the form {' or '.join(f'{scheme}://HOST:PORT' for scheme in schemes)}"
    if not (url.isascii() and url.isprintable()):
        return "has characters beyond printable ASCII; write a host's name as the network does, xn--..."
    return "names a user, whom everybody sees; give a file with a token" if "@" in url else None


def endpoint_problem(name: str, text: str) -> str | None:
    """Explain why a text cannot be a cluster's `admin`, `service_url` or `zookeeper`, None if it can."""
    if name == "admin":
        return url_problem(text, "http", "https")
    if name == "service_url":
        ipv6 = "has an IPv6 address, which the client library does not take; give the name of a host"
        return url_problem(text, "pulsar", "pulsar+ssl") or (ipv6 if "[" in text else None)
    scheme, servers = split_servers(text)
    last, _, chroot = servers[-1].partition("/")
    is_path = not {".", ".."}.intersection(chroot.split("/"))
    hosts = [*servers[:-1], last]
    if scheme in ("", "tls://") and is_path and all("/" not in host and _has_host(host) for host in hosts):
        return None
    return "should be of the form HOST:PORT,HOST:PORT, with /CHROOT behind or tls:// before them"


def _has_host(text: str) -> bool:
    """Check whether the text after the scheme of a URL begins with a host, which need not exist."""
    try:
        url = urlsplit(f"//{text}")
        # A port that is no number, or beyond the last, raises when it is read.
        has_port = url.port != 0 and not url.netloc.endswith(":")
        return url.hostname is not None and has_port and " " not in text and "://" not in text
    except ValueError:
        return False


@lru_cache(maxsize=1 << 10)
def cluster_problem(name: str) -> str | None:
    """Explain why a text cannot name a cluster and the folder of its rows, None if it can."""
    if not name:
        return "the cluster is empty"
    hidden = unseen(name)
    if hidden is not None:
        return f"cluster {shown(name)} {hidden}"
    if name in (".", ".."):
        return f"cluster {shown(name)} can name no folder"
    # Measured in the folder's name, where a quoted character outside ASCII takes up to twelve bytes.
    length = len(quote(name, safe=""))
    if length > _MOST_CLUSTER_BYTES:
        return f"cluster {shown(name)} takes {length} bytes in the name of a folder; {_MOST_CLUSTER_BYTES} would do"
    return None
