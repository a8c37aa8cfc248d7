"""Confirm a finished run: its winner against its incumbent once more, on luck that the run has not seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from lookup.api.arguments import require_path
from lookup.api.evaluating import Lookups, evaluate
from lookup.api.results import Evaluation
from lookup.logs.jobs import Workers
from lookup.report.confirmation import confirming, what_is_left
from lookup.report.folder import read_run

__all__ = ["confirm"]


def confirm(  # noqa: PLR0913  those of `evaluate`, and which candidate
    run: str | os.PathLike[str],
    lookups: Lookups | None = None,
    *,
    candidate: str | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    overrides: Mapping[str, object] | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> tuple[Evaluation, list[str]]:
    """Replay the winner of a run and its incumbent with new seeds, and say what is left of the difference.

    Args:
        run: folder of an earlier evaluation.
        lookups: another log, as for `evaluate`; default: that of the run.
        candidate: in place of the winner.

    Returns:
        The evaluation, and a sentence for each figure in which the two were told apart.

    Raises:
        PulsarLookupError: in one sentence, for whatever the caller has to change; `output` is then as it was.
    """
    require_path("run", run)
    earlier = read_run(os.fspath(run))
    evaluation = evaluate(
        confirming(earlier, candidate), lookups, output=output, force=force, overrides=overrides, workers=workers,
        progress=progress, warn=warn,
    )  # fmt: skip
    return evaluation, what_is_left(earlier, evaluation.scored)
