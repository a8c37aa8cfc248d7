"""Compare the times at which brokers are registered with the time of a log.

While no broker is registered, no policy answers, and all look alike, so wrong times would look like a good result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lookup.errors import InputError
from lookup.model.quoting import shown
from lookup.model.time import FIRST_US, LAST_US, US_PER_S, time_text
from lookup.replay.outcome import Finding
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tables import registrations
from lookup.replay.timeline import Registration, Span, registrations_of, times_registered
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals

__all__ = ["about_times", "require_registered", "require_some_registered"]

#: Share of a log's time without any broker that is worth a finding.
_TELLING = 0.01
_RIGHT = (
    "`from` and `until` of [[brokers]], or the times of BROKERS, should overlap with it; is an offset from UTC wrong?"
)


def require_registered(clusters: Sequence[ClusterPlan], run: RunPlan) -> None:
    """Refuse a cluster of whose scored lookups none can be answered, since no broker is registered then."""
    for cluster in clusters:
        first, last = _find_scored_span(cluster, run)
        if first <= last and not _measure_overlap(cluster.registered, first, last):
            raise InputError(
                f"cluster {shown(cluster.name)} of the log has no broker that is registered at any time of it, so that "
                f"no policy can answer: {_describe_times(cluster.registered, first, last)}; {_RIGHT}"
            )


def require_some_registered(settings: EvaluationFile, first_us: int, last_us: int, what: str) -> None:
    """Refuse a part of a log in which no cluster has a broker, before the log is read.

    Args:
        first_us, last_us: first and last instant of the part.
        what: name of the part.

    Raises:
        InputError: with the time of the part and that of the brokers.
    """
    times = sorted(span for events in _list_registrations(settings) for span in times_registered(events))
    if first_us <= last_us and not _measure_overlap(times, first_us, last_us):
        raise InputError(
            f"no broker is registered at any time of {what}, so that no policy can answer: "
            f"{_describe_times(times, first_us, last_us)}; {_RIGHT}"
        )


def about_times(clusters: Sequence[ClusterPlan], run: RunPlan) -> Iterator[Finding]:
    """Find clusters in which no broker is registered for a part of the log, or for all of it."""
    for cluster in clusters:
        first, last = _find_scored_span(cluster, run)
        whole = last + 1 - first
        without = whole - _measure_overlap(cluster.registered, first, last)
        if without > _TELLING * whole > 0:
            refused = "" if without < whole else ", and `lookup evaluate` refuses it"
            times = _describe_times(cluster.registered, first, last)
            yield Finding(
                "broker-times",
                f"no broker of {cluster.name} is registered in {without / US_PER_S:,.0f} of {whole / US_PER_S:,.0f} s "
                f"of the log, in which no policy can answer{refused}: {times}; {_RIGHT}",
                without // US_PER_S,
            )


def _list_registrations(settings: EvaluationFile) -> Iterable[Sequence[Registration]]:
    if settings.inputs.brokers is not None:
        return registrations(settings.inputs.brokers).rows.values()
    named = {cluster for entry in settings.brokers for cluster in entry.clusters or ()}
    # The empty name, which no cluster has, holds the brokers of every cluster.
    return [registrations_of(broker_intervals(settings, cluster)) for cluster in {"", *named}]


def _find_scored_span(cluster: ClusterPlan, run: RunPlan) -> Span:
    """Find the first and the last scored instant of a cluster's log. The first is later if none is scored."""
    begins = run.first_scored(int(cluster.timeline.bounds[0]))
    return max(begins, cluster.words.first_us), cluster.words.last_us


def _measure_overlap(times: Iterable[Span], first_us: int, last_us: int) -> int:
    """Measure how long a broker is registered between two instants, µs."""
    return sum(max(0, min(end, last_us + 1) - max(start, first_us)) for start, end in times)


def _describe_times(times: Sequence[Span], first_us: int, last_us: int) -> str:
    log = f"its lookups come from {time_text(first_us)} to {time_text(last_us)}"
    if not times:
        return f"{log}, and brokers never register"
    start, end = times[0][0], max(end for _, end in times)
    ends = [f" from {time_text(start)}"] if start >= FIRST_US else []
    ends += [f" until {time_text(end)}"] if end <= LAST_US else []
    gap = ", but not all the time" if start <= first_us and last_us < end else ""
    return f"{log}, and brokers are registered{''.join(ends)}{gap}"
