"""Guards of an apply, checked before every step. Each gives a reason in one sentence if no step may begin."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from lookup.collect.collector import Endpoints
from lookup.collect.sources import AdminRest, Credentials, reason_of
from lookup.errors import InputError
from lookup.model.names import split_servers
from lookup.model.quoting import join_names, shown
from lookup.moving.plan import MovePlan
from lookup.moving.watching import OwnerWatch

__all__ = ["Guard", "Tolerances", "guards_of", "stopped_by"]


@dataclass(frozen=True)
class Guard:
    """One check, with the condition that should hold."""

    #: the condition that should hold, in words
    text: str
    #: returns the reason to stop, None to continue. It raises OSError if the check is not possible, which is a reason
    #: as well, and ValueError if the answer is malformed
    look: Callable[[], str | None]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Tolerances:
    """The limits of guards."""

    #: seconds
    max_load_age_s: float = 1200.0
    #: address of Prometheus, and queries that should give nothing, or 0
    prometheus: str | None = None
    queries: tuple[str, ...] = ()


def guards_of(
    tolerances: Tolerances,
    endpoints: Endpoints,
    rest: AdminRest,
    watch: OwnerWatch,
    brokers: Sequence[str],
    plan: MovePlan,
) -> list[Guard]:
    """Build the guards of an apply, which requires that these brokers are registered and healthy."""
    urls = {broker.id: broker.web_url or f"http://{broker.id}" for broker in plan.brokers if broker.id in brokers}
    doors = {broker: _broker_client(url, endpoints) for broker, url in urls.items()}
    guards: list[Guard] = [
        _guard_registrations(rest, plan.cluster, brokers, doors),
        _guard_owners(watch),
        _guard_reports(watch, brokers, tolerances.max_load_age_s),
    ]
    if tolerances.prometheus is not None:
        prometheus = AdminRest(tolerances.prometheus, Credentials(tls_ca=endpoints.credentials.tls_ca))
        guards += [_guard_query(prometheus, query) for query in tolerances.queries]
    return guards


def stopped_by(guards: Iterable[Guard]) -> str | None:
    """Find the sentence of the first guard that stops the apply."""
    for guard in guards:
        try:
            sentence = guard.look()
        # A check that is not possible counts as failed.
        except (OSError, ValueError, InputError) as error:
            sentence = f"it is not known whether {guard}: {reason_of(error)}"
        if sentence is not None:
            return sentence
    return None


def _broker_client(url: str, endpoints: Endpoints) -> AdminRest:
    """Build the REST client of one broker, with the token only if its address is a given one."""
    credentials, (scheme, servers) = endpoints.credentials, split_servers(endpoints.admin or "")
    is_given = url.rstrip("/") in {f"{scheme}{server}" for server in servers}
    bare = Credentials(tls_ca=credentials.tls_ca, tls_cert=credentials.tls_cert, tls_key=credentials.tls_key)
    return AdminRest(url, credentials if is_given else bare)


def _guard_registrations(rest: AdminRest, cluster: str, brokers: Sequence[str], doors: dict[str, AdminRest]) -> Guard:
    # Behind a proxy no broker can be reached by itself.
    reached = {broker: door for broker, door in doors.items() if _check_answer(door) is None}

    def look() -> str | None:
        registered = rest.brokers(cluster)
        lost = [broker for broker in brokers if broker not in registered]
        if lost:
            return f"lost: {join_names(lost)} is not registered any more"
        for broker, door in reached.items():
            reason = _check_answer(door)
            if reason is not None:
                return f"lost: {broker} does not answer any more: {reason}"
        return None

    return Guard("all brokers of the plan are registered and answer", look)


def _check_answer(door: AdminRest) -> str | None:
    """Explain why a broker cannot be reached. A refusal counts as an answer."""
    try:
        door.fetch("admin/v2/brokers/ready", bytes)
    except (OSError, ValueError) as error:
        return None if getattr(error, "code", None) in (401, 403) else reason_of(error)
    return None


def _guard_owners(watch: OwnerWatch) -> Guard:
    def look() -> str | None:
        trouble = watch.trouble
        return None if trouble is None else f"the state topic cannot be read: {trouble}"

    return Guard("the state topic can be read", look)


def _guard_reports(watch: OwnerWatch, brokers: Sequence[str], max_age_s: float) -> Guard:
    def look() -> str | None:
        now = time.monotonic()
        # A new reader sees no report before the next one.
        ages = {broker: now - watch.reported.get(broker, watch.began) for broker in brokers}
        oldest = max(ages, key=ages.__getitem__, default=None)
        if oldest is None or ages[oldest] <= max_age_s:
            return None
        return f"{oldest} has not reported its load for {ages[oldest]:.0f} s; {max_age_s:g} s are allowed"

    return Guard(f"no broker's latest load report is older than {max_age_s:g} s", look)


def _guard_query(prometheus: AdminRest, query: str) -> Guard:
    def look() -> str | None:
        for labels, value in prometheus.fetch(f"api/v1/query?{urlencode({'query': query})}", _parse_samples):
            # NaN counts as well, since it is not 0.
            if value != 0:
                where = f" for {labels}" if labels else ""
                return f"the query {query} gives {value:g}{where}; it should give nothing, or 0"
        return None

    return Guard(f"the query {query} gives nothing, or 0", look)


def _parse_samples(content: bytes) -> list[tuple[str, float]]:
    try:
        data = json.loads(content)["data"]
        result = [{"metric": {}, "value": data["result"]}] if data["resultType"] in ("scalar",) else data["result"]
        return [
            (
                ", ".join(f"{name}={value}" for name, value in sorted(sample["metric"].items())),
                float(sample["value"][1]),
            )
            for sample in result
        ]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise ValueError(
            f"no answer of Prometheus to an instant query: {shown(content[:80].decode(errors='replace'))}"
        ) from None
