"""Carry out `lookup simulate`: run scenarios in closed loop and compare their trends with what the files expect."""

from __future__ import annotations

import argparse

from lookup.api.simulating import ScenarioRun, policies_of, read_scenarios, run_scenario
from lookup.commands.options import Command, Parser, add_plugin_files, settings_path
from lookup.commands.streams import say, stdout, warn, write_whole
from lookup.engine.plugins import load_plugins

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.need("scenarios", nargs="*", type=settings_path, metavar="SCENARIO", help="scenario files, or shipped:NAME")
    parser.add_argument("--rewrite", action="store_true", help="write the output into the files as the expected one")
    add_plugin_files(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Run scenarios and print their trends.

    Returns:
        0, or 1 if an assertion does not hold or the output differs from what a file expects.
    """
    registry, files = load_plugins(arguments.plugin_file), read_scenarios(arguments.scenarios)
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


COMMAND = Command(
    name="simulate",
    examples=(
        ("lookup simulate configs/scenarios/*.scenario", "exit code 1 if an assertion or expectation fails"),
        ("lookup simulate mine.scenario --rewrite", "accept the output as the expected one"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
