"""Try candidates of a search on one part of a log. The other part is sealed for the finalists."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from lookup.api.arguments import Say
from lookup.api.evaluating import Clock, check_inputs, evaluate_into, scored_of
from lookup.api.outputs import OUTPUTS
from lookup.api.selection import Selection, given_inputs, require_shedding
from lookup.engine.build import build_policies
from lookup.errors import InputError, SettingsError
from lookup.logs.jobs import InProcess, Workers
from lookup.logs.outputs import draft, remove_folder
from lookup.logs.sources import list_log, locate, table_span
from lookup.model.quoting import quantity
from lookup.model.time import moment_at, time_text, to_us
from lookup.replay.presence import require_some_registered
from lookup.replay.reports import report_paths
from lookup.replay.run import replay, run_plan
from lookup.report.manifest import fingerprint
from lookup.score.luck import LEVEL, replicates_for
from lookup.settings import EvaluationFile, load_manager_keys, load_manager_sources
from lookup.settings.tuning import TuneFile
from lookup.spark.cluster import check_reach
from lookup.tuning.racing import figure_name
from lookup.tuning.sealing import DAY_US, Seal, seal
from lookup.tuning.search import Candidate, Search, TrialBatch
from lookup.tuning.sought import aims_on, check_bundles, check_figures, require_acting, spaces_of
from lookup.tuning.space import Space
from lookup.tuning.trials import Shown, policy_name, shown_of

__all__ = ["SEALED", "LogTrials", "log_span"]

#: Batches of a search and the confirmation all have different seeds. The confirmation has the last of so many draws.
_DRAWS = 16
#: Folders of the evaluation of the sealed days, and of a batch while it is replayed.
SEALED, _SCRATCH = "sealed", "batch"


@dataclass
class LogTrials:
    """A log that is divided, and the evaluation over it."""

    file: TuneFile
    selection: Selection
    spaces: Sequence[Space]
    seal: Seal
    has_holdout: bool
    workers: Workers = InProcess()
    folder: str = ""

    @classmethod
    def of(cls, file: TuneFile, selection: Selection, *, holdout: bool) -> LogTrials:
        """Check everything that can be wrong before the first replay."""
        settings = selection.settings
        section, rules = settings.evaluation, settings.verdict
        check_inputs(settings)
        require_shedding(file, settings)
        spaces = spaces_of(file, settings, selection.registry)
        check_bundles(spaces, settings, file.tune.candidates)
        check_figures(file.tune, settings, selection.registry)
        incumbent = next(policy for policy in selection.policies if policy.name == section.incumbent)
        require_acting(incumbent, settings)
        # Of a finalist several figures are judged together.
        count = len(section.drawn)
        enough = replicates_for(LEVEL / 2)
        if count < enough:
            raise SettingsError(
                f"evaluation.seeds: {quantity(count, 'replicate')} can confirm no gain, however large; give {enough} "
                "or more"
            )
        span = log_span(settings)
        scored_us = run_plan(settings).first_scored(span[0])
        sealed = Seal(span[0], scored_us, scored_us, span[1])
        if holdout:
            block_s = max(rules.block_s, section.balance_s)
            sealed = seal(*span, scored_us, holdout=file.tune.holdout, block_s=block_s, blocks=rules.min_units)
        last = sealed.from_us - 1 if holdout else sealed.last_us
        require_some_registered(settings, scored_us, last, "the part of the log that is searched")
        if holdout:
            # Else a search of hours would end with a refusal.
            require_some_registered(settings, sealed.from_us, sealed.last_us, "the part of the log that is sealed")
        return cls(file, selection, spaces, sealed, holdout)

    @property
    def incumbent(self) -> str:
        """The name of today's policy."""
        return self.selection.settings.evaluation.incumbent

    @property
    def replicates(self) -> int:
        """In how many replicates finalists are judged."""
        return len(self.selection.settings.evaluation.drawn)

    @property
    def span(self) -> dict[str, str | None]:
        """The searched and the sealed part, in the form of a document."""
        sealed_from = time_text(self.seal.from_us) if self.has_holdout else None
        return {
            "first": time_text(self.seal.first_us), "sealed_from": sealed_from, "last": time_text(self.seal.last_us)
        }  # fmt: skip

    def days(self, *, is_sealed: bool) -> float:
        """Compute the number of scored days, of the search or of its confirmation."""
        seal = self.seal
        is_last = is_sealed or not self.has_holdout
        scored_us = seal.last_us + 1 - seal.from_us if is_last else seal.from_us - seal.scored_us
        return scored_us / DAY_US

    @property
    def settings(self) -> object:
        """The evaluation, whose tables are described by `sealed`."""
        return self.selection.settings.model_dump(mode="json", exclude={"inputs"})

    @property
    def sealed(self) -> object:
        """The tables by their content, and the time at which they are divided."""
        paths = given_inputs(self.selection.settings)
        return [{name: fingerprint(path)["blake2b"] for name, path in paths.items()}, asdict(self.seal)]

    def begin(self, folder: str) -> None:
        """Refuse workers of a cluster that cannot read the tables, or cannot write into the folder."""
        self.folder = folder
        settings = self.selection.settings
        paths = [str(settings.inputs.lookups), *report_paths(settings).values()]
        check_reach(self.workers, paths, folder)

    def replay_batch(self, batch: TrialBatch, number: int, search: Search, progress: Say) -> Shown:
        """Replay a batch over the days of the search."""
        # Bounds depend only on the log, so they are computed once, with the fewest candidates.
        selection = self._build_selection(batch.candidates, number, search, replicates=batch.replicates)
        try:
            # Without warnings, since identical ones are usual among so many candidates, and those of finalists follow.
            outcome = replay(self.workers, selection.settings, f"{self.folder}/{_SCRATCH}", progress=progress)
        finally:
            with suppress(FileNotFoundError):
                remove_folder(*locate(f"{self.folder}/{_SCRATCH}"))
        scored = scored_of(selection, outcome)
        aims = search.aims or aims_on(self.file.tune, scored)
        numbers = (candidate.number for candidate in batch.candidates)
        return shown_of(scored, numbers, aims, days=self.days(is_sealed=False), batch=batch)

    def evaluate_finalists(self, finalists: Sequence[Candidate], search: Search, progress: Say, warn: Say) -> Shown:
        """Evaluate the finalists on the sealed days, into a folder of its own."""
        selection = self._build_selection(finalists, _DRAWS - 1, search, replicates=self.replicates, is_sealed=True)
        with draft(f"{self.folder}/{SEALED}", OUTPUTS, force=True) as target:
            scored, _ = evaluate_into(
                target, selection, self.workers, by=(), progress=progress, warn=warn, command=["tune"], clock=Clock()
            )  # fmt: skip
        aims = search.aims or aims_on(self.file.tune, scored)
        return shown_of(scored, (candidate.number for candidate in finalists), aims, days=self.days(is_sealed=True))

    def _build_selection(
        self, candidates: Sequence[Candidate], number: int, search: Search, *, replicates: int, is_sealed: bool = False
    ) -> Selection:
        settings = self.selection.settings
        section = settings.evaluation
        changes: dict[str, Any] = {"seeds": replicates, "draw": section.draw * _DRAWS + number}
        if self.has_holdout and is_sealed:
            changes |= {"scored_from": moment_at(self.seal.from_us)}
        elif self.has_holdout:
            changes |= {"until": moment_at(self.seal.from_us)}
        specs = [policy for policy in settings.policies if policy.name == section.incumbent]
        specs += [
            search.spaces[entry.point.space].policy(entry.point, policy_name(entry.number, section.incumbent))
            for entry in candidates
        ]
        primary = settings.verdict.primary if search.aims is None else tuple(map(figure_name, search.aims.judged))
        settings = settings.model_copy(
            update={
                "evaluation": section.model_copy(update=changes),
                "verdict": settings.verdict.model_copy(update={"primary": primary}),
                "policies": tuple(specs),
            }
        )
        conf, sources = load_manager_keys(settings), load_manager_sources(settings)
        policies = build_policies(self.selection.registry, specs, conf, sources)
        return replace(self.selection, settings=settings, policies=policies)


def log_span(settings: EvaluationFile) -> tuple[int, int]:
    """Find the first and the last instant of the log that the evaluation reads, µs since the epoch.

    Raises:
        InputError: if the log does not record its beginning and end.
    """
    span = table_span(list_log(str(settings.inputs.lookups)))
    if span is None:
        raise InputError(
            f"{settings.inputs.lookups}: has no statistics of its times; `lookup ingest` writes tables with them"
        )
    since, until = settings.evaluation.since, settings.evaluation.until
    first = span[0] if since is None else max(span[0], to_us(since))
    last = span[1] if until is None else min(span[1], to_us(until) - 1)
    if first > last:
        raise InputError(
            f"{settings.inputs.lookups}: has no row from evaluation.since to evaluation.until; it goes from "
            f"{time_text(span[0])} to {time_text(span[1])}"
        )
    return first, last
