"""Carry out `lookup simulate`: run scenarios in closed loop and compare their trends with what the files expect.

With `--matrix` a scenario is run with every shedder and every placement, and the trends' figures are printed as tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from typing import get_args

from lookup.commands.options import Command, Parser, add_plugin_files, settings_path
from lookup.commands.streams import data_console, plain_table, say, stdout, warn, write_whole
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.engine.units import idle_weights
from lookup.errors import InputError, SettingsError
from lookup.model.quoting import suggestion
from lookup.simulation import Scenario, ScenarioFile, TrendFigures, findings, read_scenario, run_policy, trends_text
from lookup.simulation.scenario import FigureName
from lookup.simulation.trend import number_text

__all__ = ["COMMAND", "add_arguments", "run"]

#: An assertion does not hold, or the output differs from what is expected.
_FAILED = 1
#: Forms of the matrix.
_FORMS = ("table", "markdown")
#: No shedder, as it is printed.
_NONE = "none"
#: Figures of the matrix for a scenario without assertions: the balance it ends at, and its price.
_FIGURES = ("balance", "usage_peak", "moves")


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup simulate`."""
    parser.need("scenarios", nargs="*", type=settings_path, metavar="SCENARIO", help="scenario files, or shipped:NAME")
    parser.add_argument("--rewrite", action="store_true", help="write what is printed into the files as expected")
    parser.add_argument(
        "--matrix",
        action="store_true",
        help="run every shedder with every selector, with filters and splitter of each file's first policy",
    )
    parser.add_argument("--selectors", metavar="NAMES", help="with --matrix: only these selectors, separated by commas")
    parser.add_argument(
        "--figures", metavar="NAMES", help="with --matrix: these figures; else those the scenario asserts something of"
    )
    parser.add_argument("--format", choices=_FORMS, metavar="FORM", help="with --matrix: table (default) or markdown")
    add_plugin_files(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run scenarios and print their trends or matrices.

    Returns:
        0, or 1 if an assertion does not hold or the output differs from what a file expects.
    """
    registry = load_plugins(arguments.plugin_file)
    # All files are read before the first is run, so that a mistake in the last one does not come after minutes.
    files = []
    for path in map(Path, arguments.scenarios):
        if path.is_dir():
            raise SettingsError(f"{path} is a folder; name the scenario files in it, like {path}/*.scenario")
        files.append(read_scenario(path))
    if arguments.matrix and arguments.rewrite:
        arguments.parser.error("--matrix and --rewrite cannot be given together")
    for flag in ("selectors", "figures", "format"):
        if getattr(arguments, flag) is not None and not arguments.matrix:
            arguments.parser.error(f"--{flag} needs --matrix")
    if arguments.matrix:
        _print_matrices(files, registry, arguments)
        return 0
    policies = [_built(file, registry) for file in files]
    codes = [
        _simulated(file, built, is_rewritten=arguments.rewrite) for file, built in zip(files, policies, strict=True)
    ]
    return max(codes, default=0)


def _built(file: ScenarioFile, registry: Registry) -> Sequence[Policy]:
    for spec in file.scenario.policies:
        for warning in spec.warnings:
            warn(f"{file.path}: policy {spec.name!r}: {warning}")
    try:
        policies = build_policies(registry, file.scenario.policies)
    except SettingsError as error:
        raise SettingsError([f"{file.path}: {problem}" for problem in error.problems]) from None
    for sentence in idle_weights(file.scenario.policies, "a scenario knows"):
        warn(f"{file.path}: {sentence}")
    return policies


def _simulated(file: ScenarioFile, policies: Sequence[Policy], *, is_rewritten: bool) -> int:
    trends = [run_policy(file.scenario, policy) for policy in policies]
    printed = trends_text(file.scenario, trends)
    stdout().write(f"scenario {file.path}\n{printed}\n")
    problems = [f"{file.path}: {finding.failure}" for finding in findings(file.scenario, trends) if not finding.holds]
    if is_rewritten:
        # Expectations are rewritten, assertions are not: those say what should be, and still fail.
        write_whole(file.path, file.rewritten(printed).encode())
    elif file.expected:
        before, after = file.expected.splitlines(), printed.splitlines()
        differences = list(unified_diff(before, after, "expected", "printed", lineterm="", n=0))
        if differences:
            problems.append(f"{file.path}: printed something else than expected; --rewrite would accept it")
            problems += differences
    for line in problems:
        say(line)
    return _FAILED if problems else 0


def _print_matrices(files: Sequence[ScenarioFile], registry: Registry, arguments: argparse.Namespace) -> None:
    """Print, for each file and figure, a table with a row per selector and a column per shedder."""
    selectors = list(registry.classes["selectors"])
    if arguments.selectors is not None:
        selectors = [registry.find("selectors", name.strip()).name for name in arguments.selectors.split(",")]
    figures = [] if arguments.figures is None else [name.strip() for name in arguments.figures.split(",")]
    known = list(get_args(FigureName))
    for figure in figures:
        if figure not in known:
            raise SettingsError(f"--figures: there is no figure {figure!r}; {suggestion(figure, known)}")
    for file in files:
        matrix = _matrix(file.scenario, registry, selectors)
        asserted = list(dict.fromkeys(assertion.figure for assertion in file.scenario.assertions))
        for figure in figures or asserted or _FIGURES:
            shedders = [_NONE, *registry.classes["shedders"]]
            rows = [
                [selector, *(number_text(getattr(row[shedder], figure)) for shedder in shedders)]
                for selector, row in matrix.items()
            ]
            if arguments.format == "markdown":
                head = [["placement", *shedders], ["---"] * (len(shedders) + 1)]
                cells = [*head, *([f"`{selector}`", *numbers] for selector, *numbers in rows)]
                lines = [f"`{file.path.stem}`, `{figure}`:", "", *(f"| {' | '.join(row)} |" for row in cells), ""]
                stdout().write("\n".join(lines) + "\n")
            else:
                stdout().write(f"scenario {file.path}\n")
                plain_table(data_console(), (figure, *shedders), rows)


def _matrix(
    scenario: Scenario, registry: Registry, selectors: Sequence[str]
) -> Mapping[str, Mapping[str, TrendFigures]]:
    """Run a scenario with every pair of a selector and a shedder; return figures by selector, then shedder.

    Filters, scorers and splitter are those of the scenario's first policy.
    """
    base = build_policies(registry, scenario.policies[:1])[0]
    matrix: dict[str, dict[str, TrendFigures]] = {}
    for selector in selectors:
        matrix[selector] = {}
        for shedder in (None, *registry.classes["shedders"]):
            try:
                policy = replace(
                    base,
                    name=f"{shedder or _NONE} x {selector}",
                    # New parts for every run, so that none carries state from another.
                    selector=registry.find("selectors", selector)(),
                    shedder=None if shedder is None else registry.find("shedders", shedder)(),
                )
            except TypeError as error:
                raise InputError(f"selector {selector!r} or shedder {shedder!r} has no defaults: {error}") from None
            matrix[selector][shedder or _NONE] = run_policy(scenario, policy).figures
    return matrix


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
            "lookup simulate drain.scenario --matrix --selectors least-resource-usage,round-robin --figures moves",
            "one figure, for every shedder with two placements",
        ),
        (
            "lookup simulate configs/scenarios/pip-364-*.scenario --matrix --format markdown",
            "every shedder with every placement, as the docs print it",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
