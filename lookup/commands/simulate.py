"""Carry out `lookup simulate`: run scenarios in closed loop and compare their trends with what the files expect.

With `--matrix` a scenario is run with every shedder and every placement, and the trends' figures are printed as tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from lookup.api.simulating import (
    NO_SHEDDER,
    ScenarioRun,
    matrix_of,
    policies_of,
    read_scenarios,
    run_scenario,
    selectors_of,
)
from lookup.commands.options import Command, Parser, add_plugin_files, settings_path
from lookup.commands.streams import data_console, plain_table, say, stdout, warn, write_whole
from lookup.engine.plugins import Registry, load_plugins
from lookup.errors import SettingsError
from lookup.model.quoting import suggestion
from lookup.simulation import ScenarioFile
from lookup.simulation.scenario import FigureName
from lookup.simulation.trend import number_text

__all__ = ["COMMAND"]

#: Figures of the matrix for a scenario without assertions: the balance it ends at, and its price.
_FIGURES = ("balance", "usage_peak", "moves")


def _add_arguments(parser: Parser) -> None:
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
    parser.add_argument(
        "--format", choices=("table", "markdown"), metavar="FORM", help="with --matrix: table (default) or markdown"
    )
    add_plugin_files(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Run scenarios and print their trends or matrices.

    Returns:
        0, or 1 if an assertion does not hold or the output differs from what a file expects.
    """
    registry, files = load_plugins(arguments.plugin_file), read_scenarios(arguments.scenarios)
    if arguments.matrix and arguments.rewrite:
        arguments.parser.error("--matrix and --rewrite cannot be given together")
    for flag in ("selectors", "figures", "format"):
        if getattr(arguments, flag) is not None and not arguments.matrix:
            arguments.parser.error(f"--{flag} needs --matrix")
    if arguments.matrix:
        _print_matrices(files, registry, arguments)
        return 0
    policies = [policies_of(file, registry, warn) for file in files]
    codes = [
        _simulated(run_scenario(file, built), is_rewritten=arguments.rewrite)
        for file, built in zip(files, policies, strict=True)
    ]
    return max(codes, default=0)


def _simulated(run: ScenarioRun, *, is_rewritten: bool) -> int:
    path, printed = run.file.path, run.text
    stdout().write(f"scenario {path}\n{printed}\n")
    problems = list(run.failures)
    if is_rewritten:
        # Expectations are rewritten, assertions are not: those say what should be, and still fail.
        write_whole(path, run.file.rewritten(printed).encode())
    elif run.differences:
        problems += [f"{path}: printed something else than expected; --rewrite would accept it", *run.differences]
    for line in problems:
        say(line)
    return 1 if problems else 0


def _print_matrices(files: Sequence[ScenarioFile], registry: Registry, arguments: argparse.Namespace) -> None:
    named, figures = (
        [] if names is None else [name.strip() for name in names.split(",")]
        for names in (arguments.selectors, arguments.figures)
    )
    selectors = selectors_of(registry, named)
    known = list(get_args(FigureName))
    for figure in figures:
        if figure not in known:
            raise SettingsError(f"--figures: there is no figure {figure!r}; {suggestion(figure, known)}")
    for file in files:
        matrix = matrix_of(file, registry, selectors).figures
        asserted = list(dict.fromkeys(assertion.figure for assertion in file.scenario.assertions))
        for figure in figures or asserted or _FIGURES:
            shedders = [NO_SHEDDER, *registry.classes["shedders"]]
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


COMMAND = Command(
    name="simulate",
    summary="run scenarios in closed loop and print a trend per policy",
    examples=(
        ("lookup simulate configs/scenarios/*.scenario", "run them; 1 where an assertion or expectation fails"),
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
    add_arguments=_add_arguments,
    run=_run,
    retired=dict.fromkeys(
        ("--tune", "--output", "--force"),
        "write the settings to compare as policies of a scenario, or search over a log with `lookup tune`",
    ),
)
