"""`lookup simulate`: runs scenarios in closed loop, prints trends, and compares them with what the files expect."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from lookup.commands.matrix import chosen_figures, chosen_selectors, print_matrix
from lookup.commands.options import Command, Parser, add_plugin_files
from lookup.commands.streams import say, stdout, warn
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.simulate import ScenarioFile, findings, read_scenario, run_policy, trends_text

__all__ = ["COMMAND"]

#: An assertion does not hold, or something else is printed than expected.
_FAILED = 1
#: Forms of the matrix.
_FORMS = ("table", "markdown")


def _add_arguments(parser: Parser) -> None:
    parser.need("scenarios", nargs="*", metavar="SCENARIO", help="scenario files")
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


def _run(arguments: argparse.Namespace) -> int:
    registry = load_plugins(arguments.plugin_file)
    files = [_read(Path(path)) for path in arguments.scenarios]
    if arguments.matrix and arguments.rewrite:
        arguments.parser.error("--matrix and --rewrite cannot be given together")
    for flag in ("selectors", "figures", "format"):
        if getattr(arguments, flag) is not None and not arguments.matrix:
            arguments.parser.error(f"--{flag} needs --matrix")
    if arguments.matrix:
        selectors, figures = chosen_selectors(registry, arguments.selectors), chosen_figures(arguments.figures)
        for file in files:
            form = arguments.format or _FORMS[0]
            print_matrix(file, registry, selectors=selectors, figures=figures, form=form)
        return 0
    policies = [_built(file, registry) for file in files]
    codes = [
        _simulated(file, built, is_rewritten=arguments.rewrite) for file, built in zip(files, policies, strict=True)
    ]
    return max(codes, default=0)


def _read(path: Path) -> ScenarioFile:
    if path.is_dir():
        raise SettingsError(f"{path} is a folder; name the scenario files in it, like {path}/*.scenario")
    return read_scenario(path)


def _built(file: ScenarioFile, registry: Registry) -> Sequence[Policy]:
    for spec in file.scenario.policies:
        for warning in spec.warnings:
            warn(f"{file.path}: policy {spec.name!r}: {warning}")
    try:
        return build_policies(registry, file.scenario.policies)
    except SettingsError as error:
        raise SettingsError([f"{file.path}: {problem}" for problem in error.problems]) from None


def _simulated(file: ScenarioFile, policies: Sequence[Policy], *, is_rewritten: bool) -> int:
    trends = [run_policy(file.scenario, policy) for policy in policies]
    printed = trends_text(file.scenario, trends)
    stdout().write(f"scenario {file.path}\n{printed}\n")
    if is_rewritten:
        file.path.write_text(file.rewritten(printed), encoding="utf-8")
    failed = [f"{file.path}: {one.failure}" for one in findings(file.scenario, trends) if not one.holds]
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
    add_arguments=_add_arguments,
    run=_run,
)
