"""Run scenarios in closed loop for programs and for the command, without Spark or Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lookup.api.arguments import names_of, require_path
from lookup.api.outputs import json_row
from lookup.engine.build import build_policies
from lookup.engine.foreign import check_foreign
from lookup.engine.plugins import Registry, load_plugins
from lookup.engine.policy import Policy
from lookup.engine.units import idle_weights
from lookup.errors import Argument, SettingsError
from lookup.model.quoting import quantity, shown
from lookup.settings import policy_warnings
from lookup.settings.files import anchor_paths
from lookup.settings.shipped import shipped_path
from lookup.simulation import (
    AssertionResult,
    ScenarioFile,
    Trend,
    checked_scenario,
    findings,
    read_scenario,
    run_policy,
    trends_text,
)  # fmt: skip

__all__ = [
    "ScenarioRun", "Simulation", "policies_of", "read_scenarios", "run_scenario", "simulate",
]  # fmt: skip

#: A scenario, which is the path of its file, `shipped:NAME`, or the content of the file.
Written: TypeAlias = str | os.PathLike[str] | Mapping[str, object]


@dataclass(frozen=True)
class ScenarioRun:
    """A scenario, and how each of its policies did."""

    file: ScenarioFile
    #: in the order of the policies
    trends: tuple[Trend, ...]

    @property
    def text(self) -> str:
        """The text that the command prints about it."""
        return trends_text(self.file.scenario, self.trends)

    @property
    def assertions(self) -> list[AssertionResult]:
        """The result of each assertion for each policy that it is about."""
        return list(findings(self.file.scenario, self.trends))

    @property
    def failures(self) -> list[str]:
        """A sentence for each assertion that does not hold."""
        return [f"{self.file.path}: {result.failure}" for result in self.assertions if not result.holds]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Executed scenarios, and the results of their policies."""

    runs: tuple[ScenarioRun, ...]

    @property
    def exit_code(self) -> int:
        """The exit code, 0, or 1 if an assertion does not hold."""
        return int(any(run.failures for run in self.runs))

    @property
    def failures(self) -> list[str]:
        """A sentence for each assertion that does not hold."""
        return [sentence for run in self.runs for sentence in run.failures]

    def document(self) -> dict[str, Any]:
        """Convert figures and assertions to a JSON object, with None for values that cannot be computed."""
        return {
            "exit_code": self.exit_code,
            "figures": [
                {"scenario": run.file.path.stem, "policy": trend.policy} | json_row(asdict(trend.figures))
                for run in self.runs
                for trend in run.trends
            ],
            "assertions": [_assertion_row(run, result) for run in self.runs for result in run.assertions],
        }


def simulate(
    scenarios: Written | Sequence[Written],
    *,
    plugin_files: str | Sequence[str] = (),
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Simulation:
    """Run scenarios in closed loop, each against its policies, and check their assertions.

    Args:
        scenarios: one or several paths of scenarios, `shipped:NAME`, or contents with paths from the working folder.
        plugin_files: one or several Python files that register parts.
        progress: called with one short sentence before each scenario.
        warn: called with a sentence that a user should read.

    Raises:
        SettingsError: with all mistakes of a scenario, or with a policy that cannot be built, before any run.
        PolicyError: if a part of a policy fails and `on_error` is stop.
    """
    files, registry = read_scenarios(scenarios), load_plugins(names_of("plugin_files", plugin_files))
    policies = [policies_of(file, registry, warn) for file in files]
    runs = []
    for file, built in zip(files, policies, strict=True):
        progress(f"running {file.path} with {quantity(len(built), 'policy', 'policies')}")
        runs.append(run_scenario(file, built))
    return Simulation(tuple(runs))


def read_scenarios(scenarios: Written | Sequence[Written]) -> list[ScenarioFile]:
    """Read all scenarios before the first is run. So a mistake in the last one is not found only after minutes."""
    named: dict[str, Any] = {"scenarios": scenarios}
    if isinstance(scenarios, Sequence) and not isinstance(scenarios, str):
        named = {f"scenarios[{number}]": scenario for number, scenario in enumerate(scenarios)}
    if not named:
        raise SettingsError(Argument("scenarios"), ": is empty; name one scenario at least")
    files = []
    for name, scenario in named.items():
        text = require_path(name, scenario, or_mapping=True)
        if isinstance(scenario, Mapping):
            content = checked_scenario(anchor_paths(scenario, Path.cwd()), name)
            files.append(ScenarioFile(Path(name), content))
            continue
        path = Path(shipped_path(text))
        if path.is_dir():
            raise SettingsError(f"{path} is a folder; name the scenario files in it, like {path}/*.scenario")
        files.append(read_scenario(path))
    return files


def policies_of(file: ScenarioFile, registry: Registry, warn: Callable[[str], None]) -> Sequence[Policy]:
    """Build the policies of a scenario, and warn about settings that were probably not intended."""
    specs = file.scenario.policies
    for warning in policy_warnings(specs):
        warn(f"{file.path}: {warning}")
    try:
        policies = build_policies(registry, specs)
    except SettingsError as error:
        raise SettingsError([f"{file.path}: {problem}" for problem in error.problems]) from None
    for sentence in idle_weights(specs, "a scenario knows"):
        warn(f"{file.path}: {sentence}")
    for name, why in check_foreign(policies).items():
        warn(f"{file.path}: policy {shown(name)}: {why}, so its run is not repeatable")
    return policies


def run_scenario(file: ScenarioFile, policies: Sequence[Policy]) -> ScenarioRun:
    """Run a scenario against its policies."""
    return ScenarioRun(file, tuple(run_policy(file.scenario, policy) for policy in policies))


def _assertion_row(run: ScenarioRun, result: AssertionResult) -> dict[str, Any]:
    row = {
        "scenario": run.file.path.stem,
        "policy": result.policy,
        "figure": result.assertion.figure,
        "wanted": result.wanted,
        "value": result.value,
        "holds": result.holds,
        "because": result.assertion.because,
    }
    return json_row(row)
