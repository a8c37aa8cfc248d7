"""The matrix of `lookup simulate --matrix`: one scenario with every shedder and every placement, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from lookup.commands.streams import data_console, plain_table, stdout
from lookup.engine.build import build_policies
from lookup.engine.plugins import Registry
from lookup.engine.policy import Policy
from lookup.errors import InputError, SettingsError
from lookup.model.quoting import suggestion
from lookup.simulate import Figures, Scenario, ScenarioFile, run_policy
from lookup.simulate.judge import number_text
from lookup.simulate.scenario import FigureName

__all__ = ["chosen_figures", "chosen_selectors", "print_matrix"]

#: No shedder, as it is printed.
_NONE = "none"
#: Figures of a scenario that asserts nothing: what it ends at, what it costs.
_FIGURES = ("balance", "usage_peak", "moves")

#: Figures by selector, then shedder.
_Matrix = Mapping[str, Mapping[str, Figures]]


def chosen_selectors(registry: Registry, names: str | None) -> Sequence[str]:
    """Return the selectors that are named, or all that are registered.

    Raises:
        SettingsError: where there is no such selector.
    """
    if names is None:
        return list(registry.classes["selectors"])
    return [registry.find("selectors", name.strip()).name for name in names.split(",")]


def chosen_figures(names: str | None) -> Sequence[str]:
    """Return the figures that are named; none: those a scenario asserts something of.

    Raises:
        SettingsError: where there is no such figure.
    """
    figures = [] if names is None else [name.strip() for name in names.split(",")]
    known = list(get_args(FigureName))
    for figure in figures:
        if figure not in known:
            raise SettingsError(f"--figures: there is no figure {figure!r}; {suggestion(figure, known)}")
    return figures


def print_matrix(
    file: ScenarioFile, registry: Registry, *, selectors: Sequence[str], figures: Sequence[str], form: str
) -> None:
    """Run a scenario with every pair and print a table for each figure: a row per selector, a column per shedder."""
    matrix = _matrix(file.scenario, registry, selectors)
    for figure in figures or _asserted(file.scenario):
        head = (figure, _NONE, *registry.classes["shedders"])
        rows = [(selector, *_cells(row, figure)) for selector, row in matrix.items()]
        if form == "markdown":
            stdout().write("\n".join(_markdown(file.path.stem, head, rows)) + "\n")
        else:
            stdout().write(f"scenario {file.path}\n")
            plain_table(data_console(), head, rows)


def _asserted(scenario: Scenario) -> Sequence[str]:
    return list(dict.fromkeys(assertion.figure for assertion in scenario.assertions)) or _FIGURES


def _cells(row: Mapping[str, Figures], figure: str) -> Iterator[str]:
    return (number_text(getattr(figures, figure)) for figures in row.values())


def _markdown(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield from (f"`{name}`, `{head[0]}`:", "")
    yield _line(["placement", *head[1:]])
    yield _line(["---"] * len(head))
    yield from (_line([f"`{row[0]}`", *row[1:]]) for row in rows)
    yield ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _matrix(scenario: Scenario, registry: Registry, selectors: Sequence[str]) -> _Matrix:
    base = build_policies(registry, scenario.policies[:1])[0]
    shedders = (None, *registry.classes["shedders"])
    return {
        selector: {
            shedder or _NONE: run_policy(scenario, _composed(base, registry, shedder, selector)).figures
            for shedder in shedders
        }
        for selector in selectors
    }


def _composed(base: Policy, registry: Registry, shedder: str | None, selector: str) -> Policy:
    try:
        return replace(
            base,
            name=f"{shedder or _NONE} x {selector}",
            selector=registry.find("selectors", selector)(),
            shedder=None if shedder is None else registry.find("shedders", shedder)(),
        )
    except TypeError as error:
        raise InputError(f"selector {selector!r} or shedder {shedder!r} has no defaults: {error}") from None
