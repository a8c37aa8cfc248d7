"""Print a policy's answer to a request, and events of a run such as a decision, a cycle, or owners."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lookup.commands.options import require_extra
from lookup.commands.streams import data_console, plain, plain_table, print_json, progress
from lookup.engine.explain import Explanation
from lookup.errors import Argument, InputError, SettingsError
from lookup.model.decision import CYCLE_WORDS
from lookup.model.names import TopicName
from lookup.model.quoting import closest, quantity, shown
from lookup.model.time import time_text

if TYPE_CHECKING:
    from lookup.api.explaining_runs import CycleExplained, DecisionExplained
    from lookup.engine.explain import SeenBroker
    from lookup.logs.jobs import Workers
    from lookup.report.figures import Run
    from lookup.report.past import BundleHistory, OwnerStep

__all__ = ["print_explanation", "run_explained"]

#: Brokers of a cycle that are printed, the fullest and the emptiest of them.
_SHOWN_BROKERS = 10
#: Brokers that a conclusion names. Of many with equal odds the table has the rest.
_NAMED_BROKERS = 5
#: Unloads of a cycle that are printed, and best moves.
_SHOWN_UNLOADS = 10
#: Greatest number of entries of one kind, such as one per bundle, that are printed of a shedder's memory.
_SHOWN_MEMORIES = 10
_BEGINNINGS = {"shedder": "named by the shedder", "split": "by the split", "log": "as in the log before the run"}
_ENDS = {"forced": "the broker left", "admin": "an administrator unloaded it", "split": "it was split"}


def run_explained(arguments: argparse.Namespace) -> int:
    """Explain the event that the flags select in the run's folder, and return 0."""
    require_extra("explain", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.api.tuning import require_no_tuning
    from lookup.commands.workers import NO_SPARK, workers_of
    from lookup.report.figures import read_run
    from lookup.spark.choosing import rows_of

    folder = arguments.config
    _require_one_question(arguments)
    require_no_tuning(folder)
    run = read_run(folder)
    rows = run.summary["inputs"]["rows"]
    with ExitStack() as stack:
        report = stack.enter_context(progress("reading the run"))
        if arguments.topic is not None:
            _require_topic(run, arguments.topic)
        # The tables of a run are read here. Unrecorded data is found by replaying the log.
        master = arguments.master if arguments.topic is None else NO_SPARK
        workers = stack.enter_context(workers_of(master, lambda: rows_of(rows), starting=report))
        document, show = _answer_question(arguments, workers, report)
    if arguments.format == "json":
        print_json(document)
    else:
        show(data_console())
    return 0


def _require_topic(run: Run, topic: str) -> None:
    """Refuse a topic that the log does not have. A missing log accepts any."""
    import pyarrow.compute as pc

    from lookup.logs.sources import list_log, open_parquet

    name, topics = TopicName.expand(topic), set[str]()
    log = run.manifest["settings"]["inputs"]["lookups"]
    with suppress(InputError):
        for file in list_log(log) if log else ():
            with open_parquet(file.path) as parquet:
                for batch in parquet.iter_batches(columns=["topic"]):
                    topics.update(filter(None, pc.unique(batch.column(0)).to_pylist()))
                    if topics & {topic, str(name)}:
                        return
    if topics:
        # The same name in another namespace, or a similar one in this namespace.
        elsewhere = (text for text in sorted(topics) if text.endswith(f"/{name.local}"))
        beside = (text for text in topics if text.startswith(f"{name.domain}://{name.namespace}/"))
        guess = next(elsewhere, None) or closest(str(name), beside)
        hint = "" if guess is None else f"; did you mean {shown(guess)}?"
        raise SettingsError(Argument("topic"), f": the log has no topic {shown(str(name))}{hint}")


def _answer_question(
    arguments: argparse.Namespace, workers: Workers, report: Callable[[str], None]
) -> tuple[Any, Callable[[Console], None]]:
    from lookup.api.explaining_runs import explain_cycle, explain_decision, explain_owners

    folder, at_us = arguments.config, arguments.at_us
    which = {"policy": arguments.policy, "cluster": arguments.cluster, "seed": arguments.seed}
    if arguments.decision is not None:
        decision = explain_decision(folder, arguments.decision, workers=workers, progress=report)
        return decision.document(), partial(_print_decision, explained=decision)
    if arguments.topic is not None:
        histories = explain_owners(folder, topic=arguments.topic, **which)
        return [history.document() for history in histories], partial(_print_histories, histories=histories)
    cycle = explain_cycle(folder, at_us, **which, workers=workers, progress=report)
    return cycle.document(), partial(_print_cycle, explained=cycle)


def _require_one_question(arguments: argparse.Namespace) -> None:
    flags = [flag for flag in ("decision", "topic", "at_us") if getattr(arguments, flag) is not None]
    if len(flags) != 1:
        raise SettingsError("give one of --decision, --topic and --at, the part of the run to explain")
    for flag in ("policy", "cluster", "seed"):
        if arguments.decision is not None and getattr(arguments, flag) not in (None, []):
            raise SettingsError(f"--{flag}: the id of a decision names its {flag}; leave --{flag} out")


def _print_pairs(console: Console, pairs: Mapping[str, str]) -> None:
    for name, value in pairs.items():
        console.print(plain(f"{name + ':':<12}{value}"), soft_wrap=not console.is_terminal)


def _print_decision(console: Console, explained: DecisionExplained) -> None:
    request, decision, name = explained.request, explained.decision, explained.name
    properties = ", ".join(f"{key}={value}" for key, value in sorted(request.properties.items())) or "none"
    pairs = {
        "decision": f"{explained.id}, at {time_text(explained.ts_us)}",
        "topic": request.topic or "none: the leader chose when the owner was lost",
        "bundle": request.bundle,
        "client": request.client or "not known",
        "properties": properties,
        "cluster": f"{name.cluster}, {quantity(len(explained.seen), 'registered broker')}",
    }
    _print_pairs(console, pairs)
    _print_seen(console, explained.seen)
    print_explanation(console, explained.explanation)
    if explained.dice is not None and explained.rolls is not None:
        console.print(
            plain(
                f"Dice: {explained.dice:.4f}, roll {explained.rolls + 1} of the bundle with seed {name.seed}: "
                f"{decision.broker}, whose odds were {decision.propensity:.4f}."
            )
        )
    elif decision.broker is not None:
        console.print(plain(f"Owner: {decision.broker}, without dice: no other broker had odds."))
    _print_agreement(console, explained.difference, "decision")


def _print_cycle(console: Console, explained: CycleExplained) -> None:
    report, name = explained.report, explained.name
    outcome = report.outcome
    reason = outcome.reason.value
    figures = {
        "average": outcome.average,
        "deviation": outcome.deviation,
        "deviation after": outcome.modelled_deviation,
    }
    texts = [f"{name} {value:.4f}" for name, value in figures.items() if value is not None]
    short = "" if outcome.short is None else f" ({outcome.short})"
    if outcome.over is not None and outcome.excess is not None:
        above = f"{quantity(outcome.over, 'broker')} above the tolerance, the farthest by {outcome.excess:.4f}"
        texts.append(above if outcome.over else "no broker above the tolerance")
    settings = (f"{key} {json.dumps(value)}" for key, value in explained.settings.items())
    pairs = {
        "cluster": name.cluster,
        "policy": f"{name.policy}, seed {name.seed}",
        "cycle": f"{time_text(explained.ts_us)}, shedder {explained.shedder}",
        "outcome": f"{outcome.label.value}, {reason}: {CYCLE_WORDS.get(reason, reason)}{short}",
        "figures": ", ".join(texts) or "none",
        "settings": ", ".join(settings),
    }
    brokers = {broker.broker for broker in explained.seen}
    tables = {
        key: entry for key, entry in explained.memory.items() if isinstance(entry, Mapping) and brokers & entry.keys()
    }
    by_broker = {
        _describe_memory(key, None)[0]: {broker: _describe_memory(key, value)[1] for broker, value in table.items()}
        for key, table in tables.items()
    }
    others = {key: entry for key, entry in explained.memory.items() if key not in tables and entry not in ({}, [])}
    pairs |= dict(_describe_memory(key, entry) for key, entry in others.items())
    _print_pairs(console, pairs)
    _print_seen(console, explained.seen, by_broker)
    for unload in report.accepted[:_SHOWN_UNLOADS]:
        why = "" if unload.reason is None else f", {unload.reason.value}"
        goal = unload.destination or "the broker that its next lookup is given"
        console.print(plain(f"Moved: {unload.bundle} from {unload.source} to {goal}{why}"))
    if len(report.accepted) > _SHOWN_UNLOADS:
        console.print(plain(f"Moved: {len(report.accepted) - _SHOWN_UNLOADS} more"))
    for refused, count in sorted(report.rejected.items()):
        console.print(plain(f"Refused: {quantity(count, 'proposal')}, {refused.value}"))
    _print_agreement(console, explained.difference, "cycle")


def _describe_memory(key: str, entry: object) -> tuple[str, str]:
    """Describe an entry of a shedder's memory by name and text, with µs as times, and long collections as counts."""
    name = key.removesuffix("_us")
    if isinstance(entry, Mapping | list) and len(entry) > _SHOWN_MEMORIES:
        return name, f"{len(entry):,} entries"
    return name, time_text(entry) if name != key and isinstance(entry, int) else _format_figure(entry)


def _print_histories(console: Console, histories: Sequence[BundleHistory]) -> None:
    for history in histories:
        console.print(plain(f"{history.topic} under {history.name.policy}, seed {history.name.seed}", style="bold"))
        has_many = len({step.bundle for step in history.steps}) > 1
        heads = ("from", "to", *(("bundle",) if has_many else ()), "owner", "since", "until")
        rows = [
            (
                time_text(step.from_us),
                time_text(step.to_us) or "end of the log",
                *((step.bundle.rpartition("/")[2],) if has_many else ()),
                step.broker,
                _BEGINNINGS[step.began_by]
                if step.decision is None
                else f"decision {step.decision}, odds {step.propensity:.4f}",
                _describe_ending(step),
            )
            for step in history.steps
        ]
        plain_table(console, heads, rows)
        if history.cycles:
            reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(history.cycles.items()))
            console.print(plain(f"Cycles of the shedder in the run: {reasons}; --at TIME explains one."))
        console.print()


def _describe_ending(step: OwnerStep) -> str:
    if step.ended_by != "shed":
        return "" if step.ended_by is None else _ENDS.get(step.ended_by, step.ended_by)
    cycle = step.cycle
    if cycle is None:
        return "the shedder took it"
    excess = "" if cycle["excess"] is None else f", the farthest broker {cycle['excess']:.4f} above what is tolerated"
    return f"the shedder took it: {step.reason or cycle['reason']}{excess}"


def _print_seen(
    console: Console, brokers: tuple[SeenBroker, ...], remembered: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Print the brokers by usage, the fullest first, and of many brokers the ones at both ends."""
    notes = remembered or {}
    ranked = sorted(brokers, key=lambda broker: (-broker.usage if broker.usage == broker.usage else 1.0, broker.broker))
    if len(ranked) > _SHOWN_BROKERS:
        half = _SHOWN_BROKERS // 2
        console.print(plain(f"{len(ranked)} brokers, of which the {half} fullest and the {half} emptiest:"))
        ranked = [*ranked[:half], *ranked[-half:]]
    rows = [
        (
            broker.broker,
            _format_figure(broker.usage),
            _format_figure(broker.throughput),
            f"{broker.bundles}",
            *(_format_figure(values[broker.broker]) if broker.broker in values else "" for values in notes.values()),
            ", ".join(f"{key}={value}" for key, value in sorted(broker.properties.items())),
        )
        for broker in ranked
    ]
    plain_table(
        console, ("broker", "usage", "load/s", "bundles", *(f"remembered {name}" for name in notes), "properties"), rows
    )


def _print_agreement(console: Console, difference: str | None, noun: str) -> None:
    if difference is None:
        console.print(plain(f"The {noun} was computed again and equals the record of the run."))
    else:
        console.print(plain(f"The {noun} was computed again and differs from the record of the run: {difference}."))


def _format_figure(value: Any) -> str:
    if isinstance(value, float):
        return "not reported" if value != value else f"{value:.4g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print one policy's answer."""
    console.print()
    console.print(plain(f"policy {explanation.policy}", style="bold"))
    # By odds, then by score, since policies that choose the best give all others odds of 0. Ties are sorted by name.
    candidates = sorted(
        (vote for vote in explanation.votes if vote.reason is None),
        key=lambda vote: (-vote.probability, -(vote.score or 0.0), vote.broker),
    )
    if candidates:
        scorers = [f"{name} × {weight:g}" for name, weight in explanation.weights.items()]
        rows = []
        for vote in candidates:
            scores = [f"{vote.scores[name]:.4f}" if name in vote.scores else "" for name in explanation.weights]
            total = "" if vote.score is None else f"{vote.score:.4f}"
            rows.append((vote.broker, f"{vote.probability:.4f}", total, *scores))
        plain_table(console, ("broker", "odds", "score", *scorers), rows)
    for line in _write_sentences(explanation):
        # Soft, so in a file or a pipe a plug-in's reason stays one line, for any length.
        console.print(plain(line), soft_wrap=not console.is_terminal)


def _write_sentences(explanation: Explanation) -> Iterator[str]:
    for vote in explanation.votes:
        if vote.reason is not None:
            why = f"{vote.reason.value}: {vote.detail}" if vote.detail else vote.reason.value
            yield f"Rejected: {vote.broker} by {why}"
    if explanation.failure:
        yield f"A part failed: {explanation.failure}"
    if explanation.declined is not None:
        yield f"Declined: {explanation.declined.value}."
        return
    chosen = explanation.chosen
    names = ", ".join(f"{vote.broker} ({vote.probability:.4f})" for vote in chosen[:_NAMED_BROKERS])
    rest = f" and {len(chosen) - _NAMED_BROKERS} more" if len(chosen) > _NAMED_BROKERS else ""
    yield f"Chosen: {'one of, by odds: ' if len(chosen) > 1 else ''}{names}{rest}."
    if explanation.margin is None:
        yield f"Margin: none, all {explanation.ties} candidates have the same score."
    else:
        tied = "" if explanation.ties == 1 else f"; {explanation.ties} brokers share the best score"
        yield f"Margin: {explanation.margin:.4f} to the next best score{tied}."
