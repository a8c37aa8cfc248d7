"""Run scenarios in closed loop. A cluster under load runs minute by minute under policies, with a trend each."""

from lookup.simulation.loop import run_policy
from lookup.simulation.scenario import Scenario, ScenarioFile, checked_scenario, read_scenario
from lookup.simulation.trend import AssertionResult, MinuteSample, Trend, TrendFigures, findings, trends_text

__all__ = [
    "AssertionResult", "MinuteSample", "Scenario", "ScenarioFile", "Trend", "TrendFigures", "checked_scenario",
    "findings", "read_scenario", "run_policy", "trends_text",
]  # fmt: skip
