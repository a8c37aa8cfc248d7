"""`lookup simulate`: runs scenarios in closed loop, prints trends, and compares them with what the files expect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from lookup.commands.options import Command, Parser, add_plugin_files
from lookup.commands.streams import data_console, plain_table, say, stdout
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.simulate import Figures, Scenario, ScenarioFile, read_scenario, run_policy, told
from lookup.simulate.told import number_text
from lookup.simulate.trend import broken

__all__ = ["COMMAND"]

#: An assertion does not hold, or something else is printed than expected.
_FAILED = 1
#: Figures of the matrix: what it ends at, what it costs.
_MATRIX = ("balance", "usage_max", "thrash", "last_move", "moves")


def _add_arguments(parser: Parser) -> None:
    parser.need("scenarios", nargs="*", metavar="SCENARIO", help="scenario files")
    parser.add_argument("--rewrite", action="store_true", help="write what is printed into the files as expected")
    parser.add_argument(
        "--matrix",
        action="store_true",
        help="run every shedder with every selector, with filters and splitter of each file's first policy",
    )
    parser.add_argument("--selectors", metavar="NAMES", help="with --matrix: only these selectors, separated by commas")
    add_plugin_files(parser)


def _run(arguments: argparse.Namespace) -> int:
    registry = load_plugins(arguments.plugin_file)
    files = [read_scenario(Path(path)) for path in arguments.scenarios]
    if arguments.matrix and arguments.rewrite:
        arguments.parser.error("--matrix and --rewrite cannot be given together")
    if arguments.selectors is not None and not arguments.matrix:
        arguments.parser.error("--selectors needs --matrix")
    if arguments.matrix:
        for file in files:
            _print_matrix(file, registry, _chosen(registry, arguments.selectors))
        return 0
    return max([_simulated(file, registry, is_rewritten=arguments.rewrite) for file in files], default=0)


def _simulated(file: ScenarioFile, registry: Registry, *, is_rewritten: bool) -> int:
    scenario = file.scenario
    trends = [run_policy(scenario, policy) for policy in build_policies(registry, scenario.policies)]
    printed = told(scenario, trends)
    stdout().write(f"scenario {file.path}\n{printed}\n")
    if is_rewritten:
        file.path.write_text(file.rewritten(printed), encoding="utf-8")
    failed = [
        f"{file.path}: policy {trend.policy!r}: {assertion.figure} is {getattr(trend.figures, assertion.figure):g}"
        for trend in trends
        for assertion in scenario.assertions
        if assertion.policy in (None, trend.policy) and broken(assertion, trend.figures)
    ]
    differing = [] if is_rewritten or not file.expected else list(_differences(file, printed))
    for line in (*failed, *differing):
        say(line)
    return _FAILED if failed or differing else 0


def _differences(file: ScenarioFile, printed: str) -> Iterator[str]:
    lines = unified_diff(file.expected.splitlines(), printed.splitlines(), "expected", "printed", lineterm="", n=0)
    differing = list(lines)
    if differing:
        yield f"{file.path}: printed something else than expected; --rewrite would accept it"
        yield from differing


def _chosen(registry: Registry, names: str | None) -> Sequence[str]:
    if names is None:
        return list(registry.classes["selectors"])
    return [registry.find("selectors", name.strip()).name for name in names.split(",")]


def _print_matrix(file: ScenarioFile, registry: Registry, selectors: Sequence[str]) -> None:
    rows = [_figures_row(name, figures) for name, figures in _matrix(file.scenario, registry, selectors)]
    stdout().write(f"scenario {file.path}\n")
    plain_table(data_console(), ("shedder", "selector", *(name.replace("_", " ") for name in _MATRIX)), rows)


def _figures_row(pair: tuple[str, str], figures: Figures) -> tuple[str, ...]:
    return (*pair, *(number_text(getattr(figures, name)) for name in _MATRIX))


def _matrix(
    scenario: Scenario, registry: Registry, selectors: Sequence[str]
) -> Iterator[tuple[tuple[str, str], Figures]]:
    base = build_policies(registry, scenario.policies[:1])[0]
    for shedder in (None, *registry.classes["shedders"]):
        for selector in selectors:
            policy = _composed(base, registry, shedder, selector)
            yield (shedder or "none", selector), run_policy(scenario, policy).figures


def _composed(base: Policy, registry: Registry, shedder: str | None, selector: str) -> Policy:
    try:
        return replace(
            base,
            name=f"{shedder or 'none'} x {selector}",
            selector=registry.find("selectors", selector)(),
            shedder=None if shedder is None else registry.find("shedders", shedder)(),
        )
    except TypeError as error:
        raise InputError(f"selector {selector!r} or shedder {shedder!r} has no defaults: {error}") from None


COMMAND = Command(
    name="simulate",
    summary="run scenarios in closed loop and print a trend per policy",
    examples=(
        (
            "lookup simulate configs/scenarios/*.scenario",
            "run them; 1 where an assertion or expectation fails",
        ),
        ("lookup simulate mine.scenario --rewrite", "accept what is printed as what is expected"),
        (
            "lookup simulate pip-220.scenario --matrix --selectors least-resource-usage,round-robin",
            "every shedder with two placements",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
