"""Carry out `lookup init`, which writes initial settings, a mapping for a log or a plug-in, and prints next steps."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from lookup.commands import plugin_package
from lookup.commands.check import check_broker_conf
from lookup.commands.options import Command, Parser, add_plugin_files, cluster, require_extra
from lookup.commands.streams import note, stdout
from lookup.commands.upgrade import Upgrade, upgrade_of
from lookup.engine.plugins import load_plugins
from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import printable, quantity, toml_text
from lookup.model.time import time_text
from lookup.settings.broker_conf import read_broker_conf
from lookup.settings.releases import MODULAR_MANAGER, RELEASES, Release, release_of_all

if TYPE_CHECKING:
    from lookup.logs.neighbours import Neighbours
    from lookup.logs.recognising import Recognised

__all__ = ["COMMAND"]

#: Brokers and labels of a log that are written. More belong in a table BROKERS.
_MOST = 50
#: Brokers that are proposed at least, and for each label.
_LEAST, _OF_A_LABEL = 6, 2

#: Files whose gaps `str.format` fills.
_TEMPLATES = Path(__file__).with_name("settings_template")
_SHIPPED = """
    "shipped:random",           # the least that every policy has to beat
    "shipped:rendezvous",       # a hash of bundle and broker, with few moves if a broker leaves"""
_BROKERS = """
# The brokers. `capacity` is the weight per second, or with BUNDLES the bytes per second, at which a broker is full. A
# missing capacity is assumed, which the report notes. `lookup inspect` prints the mean load of a broker. Give a broker
# that leaves `until`, and a broker that joins `from`.{labels}
{entries}
"""
_DEALT = """
# The log does not have the labels of brokers. The labels below are assigned in turn, so replace them by your own. With
# one broker for a label, a policy by labels has no choice, and a verdict on it may hold for one placement only."""
_USES_PROFILE = 'profile = "brokers.toml"'
_CLIENTS = """
# Labels of clients by address, if the log does not have them.
# [[clients]]
# match = { cidr = "10.1.0.0/16" }
# properties = { rack = "a" }
"""


def _add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", help="folder to write (default: the current one, or the plug-in's name)"
    )
    purpose = parser.add_mutually_exclusive_group()
    purpose.add_argument(
        "--plugin",
        type=plugin_package.plugin_name,
        metavar="NAME",
        help="write a package for a scorer, like rack-aware",
    )
    purpose.add_argument(
        "--log", metavar="SOURCE", help="file, folder, glob or URI of your log. Its first lines choose the mapping"
    )
    parser.add_argument(
        "--cluster", type=cluster, default="main", metavar="NAME", help="cluster of rows without one (default: main)"
    )
    parser.add_argument("--broker-conf", metavar="FILE", help="broker.conf of your cluster, for the incumbent")
    parser.add_argument(
        "--to",
        choices=list(RELEASES),
        metavar="RELEASE",
        help="release to upgrade to, like 5.0. The candidates are --broker-conf under it, and with each old default",
    )
    add_plugin_files(parser, "log readers")


def _check_conf(arguments: argparse.Namespace) -> None:
    if arguments.broker_conf is not None:
        check_broker_conf(arguments.broker_conf)
    elif arguments.to is not None:
        raise SettingsError("--to: an upgrade changes the defaults of a broker.conf; give --broker-conf as well")


def _run(arguments: argparse.Namespace) -> int:
    _check_conf(arguments)
    if arguments.plugin is not None:
        return _run_plugin(arguments)
    if arguments.to is not None and arguments.log is None:
        return _run_scenario(arguments)
    folder, log = Path(arguments.folder or "."), arguments.log
    form: Recognised | None = None
    beside: Neighbours | None = None
    if log is not None:
        require_extra("init --log", "pyarrow")
        from lookup.logs.neighbours import neighbours_of
        from lookup.logs.outputs import relation
        from lookup.logs.recognising import recognise

        if (overlap := relation(str(folder), log)) in ("is", "lies in"):
            right = "and what is written there would be read as well; name a folder DIR apart from it"
            raise SettingsError(f"{folder} {overlap} {log}, which is --log, {right}")
        registry = load_plugins(arguments.plugin_file)
        form, beside = recognise(log, registry), neighbours_of(log)
    today = _find_running(folder, log, arguments.broker_conf, beside)
    lines: dict[str, object] = {**today, "off": "# " if form else ""}
    upgrade = None if arguments.to is None else upgrade_of(arguments.broker_conf, today["release"], arguments.to)
    if upgrade is not None:
        lines["candidates"] = upgrade.policies(os.path.relpath(arguments.broker_conf, folder))
    texts = {"evaluation.toml": _write_evaluation(folder, log, form, beside, lines, arguments.plugin_file)}
    if _USES_PROFILE in texts["evaluation.toml"]:
        texts["brokers.toml"] = _fill("brokers.toml", **today)
    if form is not None and form.mapping:
        about = f"# {log}: {form.what}.\n# Read with: {_write_ingest_command(folder, log, arguments)}\n\n"
        texts["mapping.toml"] = about + form.mapping
    _write(folder, texts)
    if form is not None:
        _print_found(form, arguments)
    _print_next(folder, texts, upgrade, _list_next_commands(folder, form, arguments), arguments)
    return 0


def _run_scenario(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder or ".")
    today = _find_running(folder, None, arguments.broker_conf, None)
    upgrade = upgrade_of(arguments.broker_conf, today["release"], arguments.to)
    candidates = upgrade.policies(os.path.relpath(arguments.broker_conf, folder))
    text = _fill("upgrade.scenario", to=upgrade.to, policies=f"    {today['today']}\n{candidates}")
    _write(folder, {"upgrade.scenario": text})
    simulate = f"lookup simulate {shlex.quote(str(folder / 'upgrade.scenario'))}"
    _print_next(folder, ["upgrade.scenario"], upgrade, [simulate], arguments)
    return 0


def _print_next(
    folder: Path, files: Iterable[str], upgrade: Upgrade | None, commands: Sequence[str], arguments: argparse.Namespace
) -> None:
    for text in () if upgrade is None else upgrade.notes():
        note(f"note: {text}")
    note(f"wrote {', '.join(str(folder / name) for name in files)}; next:")
    _print_commands(commands, arguments)


def _print_found(form: Recognised, arguments: argparse.Namespace) -> None:
    note(f"{arguments.log} is {form.what}")
    if form.doubt:
        note(f"note: {form.doubt}; its first lines have no day above 12, so check it in the mapping")
    if form.first:
        note(f"its first lookup, as it is read: {_show_lookup(form.first, arguments.cluster)}")
    for text in form.notes:
        note(f"note: {text}")
    if not form.labels:
        where = "[properties] of the mapping or " if "[properties]" in form.mapping else ""
        where += "[[clients]] of the evaluation"
        note(f"note: it has no lookup properties, so no policy can prefer a rack; see {where}")
    note("note: what session_s, balance_s, block_s and capacities should be, `lookup inspect` says once it is read")


def _run_plugin(arguments: argparse.Namespace) -> int:
    if arguments.plugin_file:
        arguments.parser.error("--plugin-file: is for a log, and no part of a package")
    folder = Path(arguments.folder or arguments.plugin)
    texts = plugin_package.package_files(arguments.plugin, load_plugins())
    _write(folder, texts)
    entering = [] if folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]
    note(f"wrote {len(texts)} files into {folder}; next:")
    _print_commands([*entering, *plugin_package.COMMANDS], arguments)
    return 0


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files, by their paths in a folder, none of which may be there."""
    there = [str(folder / name) for name in texts if (folder / name).exists()]
    if there:
        more = f" and {quantity(len(there) - 2, 'more file')}" if len(there) > 2 else ""
        raise SettingsError(
            f"{' and '.join(there[:2])}{more} exists already, and init replaces nothing; name another folder"
        )
    for parent in {(folder / name).parent for name in texts}:
        parent.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        # "x": a file that has appeared meanwhile is not replaced either.
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)


def _print_commands(commands: Sequence[str], arguments: argparse.Namespace) -> None:
    called = arguments.parser.prog.partition(" ")[0]
    stdout().write("".join(f"{re.sub('^lookup ', f'{called} ', command)}\n" for command in commands))


def _show_lookup(row: Mapping[str, Any], cluster: str) -> str:
    """Show how a lookup is read, so that a wrong guess is visible, with a dash for missing values."""
    values = {**row, "cluster": row.get("cluster") or cluster, "time": time_text(row["ts"]) if "ts" in row else None}
    shown_values = ((name, values.get(name)) for name in ("time", "cluster", "topic", "client", "broker"))
    return ", ".join(f"{name} {'–' if value is None else printable(str(value))}" for name, value in shown_values)


def _list_next_commands(folder: Path, form: Recognised | None, arguments: argparse.Namespace) -> list[str]:
    config, report = shlex.quote(str(folder / "evaluation.toml")), shlex.quote(str(folder / "report"))
    evaluate = f"lookup evaluate {config} --output {report}"
    if form is None:
        return [f"lookup generate --output {shlex.quote(str(folder / 'sample'))}", evaluate]
    lookups = shlex.quote(str(folder / "tables" / "lookups") if form.mapping else arguments.log)
    inspect = f"lookup inspect {lookups} {config}"
    return [*([_write_ingest_command(folder, arguments.log, arguments)] if form.mapping else []), inspect, evaluate]


def _write_ingest_command(folder: Path, log: str, arguments: argparse.Namespace) -> str:
    words = ["lookup", "ingest", log, "--mapping", str(folder / "mapping.toml"), "--cluster", arguments.cluster]
    words += [word for file in arguments.plugin_file for word in ("--plugin-file", file)]
    # Where there is no Java, `evaluate` does without by itself.
    has_java = os.environ.get("JAVA_HOME") or shutil.which("java")
    words += ["--output", str(folder / "tables"), *([] if has_java else ["--master", "none"])]
    return shlex.join(words)


class _Running(TypedDict):
    """The software of a cluster, with the lines about its policy, the class of its load manager and its release."""

    today: str
    incumbent: str
    manager: str
    version: str
    release: Release


def _find_running(folder: Path, log: str | None, conf: str | None, beside: Neighbours | None) -> _Running:
    why = "Pulsar as it comes; the log names no load manager, and this one reads lookup properties"
    manager, version = EXTENSIBLE_MANAGER, "4.2.4"
    if log is None:
        why, manager = "what the sample's cluster runs: Pulsar as it comes", MODULAR_MANAGER
    elif beside is not None and beside.software is not None:
        manager, version = beside.software
        why = f"Pulsar {version} as it comes, with the load manager that the table BROKERS names"
    release, _ = release_of_all([version])
    name = f"stock-{'modular' if manager == MODULAR_MANAGER else 'extensible'}-{max(release, '4.2')}"
    policy = f'"shipped:{name}",'
    if conf is not None:
        why, name, manager = "your broker.conf", "today", read_broker_conf(conf).load_manager_class_name
        path = json.dumps(os.path.relpath(conf, folder))
        policy = f'{{ name = "today", from_broker_conf = {path}, pulsar = "{release}" }},'
    return {
        "today": f"# {why}\n    {policy}", "incumbent": f'"{name}"', "manager": manager, "version": version,
        "release": release,
    }  # fmt: skip


def _write_evaluation(
    folder: Path,
    log: str | None,
    form: Recognised | None,
    beside: Neighbours | None,
    lines: Mapping[str, object],
    plugin_files: Sequence[str],
) -> str:
    if form is None or beside is None or log is None:
        names = ("lookups", "brokers", "loads", "bundles", "ownership")
        inputs = "\n".join(f'{name} = "sample/{name}"' for name in names)
        brokers = "".join(
            _write_entry(f"{name}-broker-{{n:02}}:8080", 200e6, count=12, first=1, clusters=[name])
            for name in ("east", "west")
        )
        key, clients, bundles = "rack", "", 16
    else:
        path = "tables/lookups" if form.mapping else log if "://" in log else os.path.relpath(log, folder)
        inputs = f"lookups = {json.dumps(path)}"
        if form.mapping:
            inputs += f'\n{"" if form.has_ownership else "# "}ownership = "tables/ownership"  # who owned which bundle'
            inputs += "" if form.has_ownership else ", if the log says it"
        inputs += "".join(f"\n{name} = {json.dumps(os.path.relpath(t, folder))}" for name, t in beside.tables.items())
        key = next(iter(form.labels), "rack")
        labels = list(form.labels.get(key, ()))[:_MOST] or ["a", "b", "c"]
        property_name = f"lookup.{key}"
        if beside.brokers:
            # Twice the average load of a broker, so that half of the capacity is used.
            capacity = 2 * beside.carried if "bundles" in beside.tables else 0.0
            brokers = "".join(
                _write_entry(broker, capacity, clusters=[name] if name else None)
                for name, ids in beside.brokers.items()
                for broker in ids
            )
        elif form.brokers and len(form.brokers) <= _MOST:
            brokers = "".join(
                _write_entry(broker, properties={property_name: labels[place % len(labels)]})
                for place, broker in enumerate(form.brokers)
            )
        else:
            brokers = _write_entry(
                "broker-{n}:8080",
                count=max(_LEAST, _OF_A_LABEL * len(labels)),
                first=1,
                properties={property_name: labels},
            )
        clients = "" if form.labels else _CLIENTS
        # Pulsar's own default. A log from another system becomes one namespace with the only bundles.
        bundles = beside.bundles or (
            64 if "persistent://log/" in form.mapping or "shipped:access-log" in form.mapping else 4
        )
    if form is not None and not form.labels:
        preferring = """\
    "shipped:power-of-two",     # the less used of two brokers drawn at random
    # "shipped:rack-then-load", # the client's rack first, but not at any price; once clients have labels, see below"""
    elif key == "rack":
        preferring = '    "shipped:rack-then-load",   # the client\'s rack first, but not at any price'
    else:
        scorer = f'{{ use = "property-match", key = {json.dumps(key)}, weight = 0.7 }}'
        scorers = f'[{scorer}, {{ use = "headroom", weight = 0.3 }}]'
        name = json.dumps(f"{key}-then-load")
        preferring = f"    # the client's {key} first, but not at any price\n"
        preferring += f'    {{ name = {name}, scorers = {scorers}, selector = "best", shedder = "threshold" }},'
    files = [os.path.relpath(file, folder) for file in plugin_files]
    return (
        _fill(
            "evaluation.toml",
            file=folder / "evaluation.toml",
            plugins=f"plugin_files = {json.dumps(files)}\n\n" if files else "",
            bundles=bundles,
            inputs=inputs,
            **{"candidates": f"{preferring}{_SHIPPED}", **lines},
        )
        + _BROKERS.format(entries=brokers.rstrip(), labels=_DEALT if _USES_PROFILE in brokers else "")
        + clients
    )


def _fill(template: str, **values: object) -> str:
    return (_TEMPLATES / f"{template}.tmpl").read_text(encoding="utf-8").format(**values)


def _write_entry(broker: str, capacity: float | None = None, *, count: int = 0, first: int = 0, **rest: object) -> str:
    # A capacity is in bytes per second, 0 if it is not known, None for a broker that no table has.
    lines = ["[[brokers]]", f"id = {toml_text(broker)}"]
    lines += [f"count = {count}", f"first = {first}"] if count else []
    lines += [f"{name} = {toml_text(value)}" for name, value in rest.items() if value is not None]
    lines += [_USES_PROFILE] if capacity is None else []
    return "\n".join(
        [*lines, f"capacity = {float(f'{capacity:.2g}'):_.0f}" if capacity else "# capacity = 100.0", "", ""]
    )


COMMAND = Command(
    name="init",
    examples=(
        ("lookup init trial", "an evaluation of a sample log, in trial/"),
        ("lookup init trial --log access.log", "an evaluation of your log, its mapping, and the next commands"),
        ("lookup init --log 'logs/*.gz' --cluster east", "the same for several files, in the current folder"),
        ("lookup init --log record/lookups --broker-conf broker.conf", "a record, with your settings as the incumbent"),
        (
            "lookup init upgrade --broker-conf broker.conf --to 5.0",
            "the effect of an upgrade, with each changed default",
        ),
        ("lookup init --plugin rack-aware", "a package with a scorer, its tests and settings, in rack-aware/"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
