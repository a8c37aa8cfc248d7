"""Judge a run for a pipeline, for `evaluate` and `report`, with their flags, printed lines and written files."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lookup.api.arguments import require_apart
from lookup.api.outputs import OUTPUTS
from lookup.commands.options import Parser
from lookup.commands.streams import data_console, plain, plain_table, say
from lookup.errors import SettingsError

if TYPE_CHECKING:
    from lookup.hooks import Better
    from lookup.report.compare import Difference
    from lookup.report.figures import Run

__all__ = ["Demands", "add_gate", "diff_command", "print_difference"]

#: Characters of a setting in a table.
_WIDEST = 60


def add_gate(parser: Parser) -> None:
    """Add the flags of a pipeline."""
    group = parser.add_argument_group("for a pipeline")
    group.add_argument(
        "--budget", metavar="FILE", help="TOML file of the largest tolerated regressions, for exit code 5"
    )
    group.add_argument(
        "--against",
        metavar="RUN_DIR",
        help="earlier run over the same log and brokers, to print the changes since then and apply the budget to them",
    )
    group.add_argument("--junit", metavar="FILE", help="write the checks behind the exit code as JUnit XML")


class Demands:
    """The requirements of a pipeline for a run, from the flags.

    Raises:
        PulsarLookupError: in one sentence, for anything that the user has to change.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._junit: str | None = arguments.junit
        if self._junit is not None and (not self._junit or Path(self._junit).is_dir()):
            raise SettingsError(f"--junit: {self._junit or 'an empty path'} is not a file; name one to be written")
        # The results of a run are read again, at the latest by a report of it.
        run = (getattr(arguments, "folder", None) or arguments.output).rstrip("/")
        results = {f"the {name} of a run": f"{run}/{name}" for name in OUTPUTS}
        files = {"against": arguments.against, "budget": arguments.budget}
        require_apart({"junit": self._junit}, files | results)
        self._earlier = None
        # Loaded on demand, since a parser of these flags does not need it.
        if arguments.against is not None:
            from lookup.report.figures import read_run

            self._earlier = read_run(arguments.against)
        self.budget = None
        if arguments.budget is not None:
            from lookup.settings import load_budget

            self.budget = load_budget(arguments.budget)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked."""
        return not (self.budget or self._earlier or self._junit)

    def check(
        self, directions: Mapping[str, Better], settings: Mapping[str, Any], inputs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Refuse requirements that cannot be judged, before any replay."""
        from lookup.report.compare import check_comparable, check_same_world
        from lookup.report.gate import check_budget

        if self.budget is not None:
            check_budget(self.budget, directions)
        if self._earlier is not None:
            check_same_world(self._earlier, settings, inputs)
            check_comparable(self._earlier, settings, self.budget or ())

    def deliver(self, run: Run, *, is_printed: bool) -> int:
        """Judge a finished run, write and print the requested results, and return the exit code.

        Args:
            is_printed: whether stdout is for people. Otherwise one line goes to stderr.

        Raises:
            SettingsError: if the budget names a figure that the run does not have.
        """
        from lookup.report.compare import compare_runs, sentences
        from lookup.report.gate import CHECK_HEADS, gate_of, junit_xml

        difference = None if self._earlier is None else compare_runs(self._earlier, run)
        gate = gate_of(run.results, self.budget, difference)
        if is_printed:
            console = data_console()
            if gate.has_budget:
                decides = "The budget alone decides the exit code, in place of the primary metrics (*):"
                console.print(plain(decides), soft_wrap=True)
                plain_table(console, CHECK_HEADS, [check.row for check in gate.checks])
                for check in (check for check in gate.checks if check.reason):
                    console.print(
                        plain(f"{check.outcome}: {check.name} of {check.policy}: {check.reason}"), soft_wrap=True
                    )
            if difference is not None:
                console.print(plain(f"From {difference.first} to {difference.second}:"), soft_wrap=True)
                print_difference(console, difference, diff_command(difference), has_figures=not gate.has_budget)
            if gate.has_budget:
                console.print(plain(gate.headline), soft_wrap=True)
        else:
            for text in (*(() if difference is None else sentences(difference)), *([gate.headline] * gate.has_budget)):
                say(text)
        if self._junit is not None:
            path = Path(self._junit)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                path.write_bytes(junit_xml(gate))
            except OSError as error:
                raise OSError(error.errno, error.strerror, self._junit) from error
        return gate.exit_code


def diff_command(difference: Difference) -> str:
    """Build the command that prints all of a difference, between backticks."""
    return f"`{shlex.join(['lookup', 'diff', difference.first, difference.second, '--all'])}`"


def print_difference(console: Console, difference: Difference, how: str = "", *, has_figures: bool = True) -> None:
    """Print the difference of two runs, the figures first.

    Args:
        how: the flag or command for the rows that tables of ten rows leave out. If empty, no rows are left out.
        has_figures: whether the table of figures is printed.
    """
    from lookup.report.compare import (
        FIGURE_HEADS,
        MOST_ROWS,
        SETTING_HEADS,
        cautions,
        headline,
        legend,
        rest_in_words,
        settings_in_words,
    )

    def print_sentence(text: str) -> None:
        console.print(plain(text), soft_wrap=not console.is_terminal)

    print_sentence(headline(difference))
    changed = difference.changed[:MOST_ROWS] if how else difference.changed
    if changed and has_figures:
        plain_table(console, FIGURE_HEADS, [change.row for change in changed], folded=0)
        if len(changed) < len(difference.changed):
            print_sentence(rest_in_words(len(difference.changed) - len(changed), "figure", how))
        for text in legend(difference):
            print_sentence(text)
    for text in cautions(difference):
        print_sentence(text)
    if difference.settings:
        print_sentence(f"{settings_in_words(difference)}.")
        settings = difference.settings[:MOST_ROWS] if how else difference.settings
        # A long list without its end. Markdown and JSON have the whole.
        clipped = [[text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..." for text in row] for row in settings]
        plain_table(console, SETTING_HEADS, clipped)
        if len(settings) < len(difference.settings):
            print_sentence(rest_in_words(len(difference.settings) - len(settings), "setting", how))
