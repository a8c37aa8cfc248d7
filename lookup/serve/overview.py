"""Say how a server stands in plain figures, for the page at `/`: what it serves, its health, its latest decisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lookup.serve.deciding import Answer
from lookup.serve.messages import recorded_properties

__all__ = ["Decision", "Overview", "decision_of"]


class Decision(NamedTuple):
    """One of the latest answers of the active policy; topic and properties are what a client has sent."""

    name: str
    ts_us: int
    #: the bundle, if a broker asked without a client
    topic: str
    properties: Mapping[str, str]
    #: broker that asked, and the one that was named; None: the policy declined
    asked: str
    broker: str | None
    #: odds of that broker; None: the policy declined
    propensity: float | None


@dataclass(frozen=True, slots=True)
class Overview:
    """How a server stands at an instant; nothing in it is kept for this alone."""

    cluster: str
    version: str
    started_us: int
    now_us: int
    #: name of the active policy; None: lookups are recorded, nothing is decided
    policy: str | None
    #: digest of the policies with every parameter and plug-in, the name of their document in the record
    settings: str
    #: versions of plug-ins by name
    plugins: Mapping[str, str]
    #: why `/health` is failing, a sentence each
    problems: Sequence[str]
    #: lookups taken into the record, rows that wait to be written, rows lost
    recorded: int
    pending: int
    lost: int
    #: by policy in shadow: answers that named the broker of the active policy, and others
    agreement: Mapping[str, tuple[int, int]]
    #: the latest first
    decisions: Sequence[Decision]
    #: bundles that have an owner, and seconds that the latest change took to get here; None without a collector
    owners: tuple[int, float] | None


def decision_of(answer: Answer, masked: Collection[str]) -> Decision:
    """Return what the page shows of an answer, without the values of masked fields."""
    request = answer.message.request
    properties = recorded_properties(request.properties, masked)
    asked = answer.message.broker
    topic = request.topic or request.bundle
    return Decision(answer.decision, answer.ts_us, topic, properties, asked, answer.broker, answer.propensity)
