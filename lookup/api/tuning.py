"""Search for settings: replay candidates over one part of a log in batches, and judge the best on the part sealed.

Which candidates there are, which go on and what is recommended is decided in `lookup.tuning`; here they are replayed.
After every batch `search.json` has what is known, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import require_mapping, require_path
from lookup.api.evaluating import Clock, check_inputs, evaluate_into, scored_of, size_of
from lookup.api.files import OUTPUTS, PAGE_PACKAGES
from lookup.api.given import BrokerTable, Table, given_tables
from lookup.api.outputs import data_frame, result_folder
from lookup.api.results import Evaluation, open_run, require_page_packages
from lookup.api.selection import Selection, given_inputs
from lookup.engine.build import build_policies
from lookup.errors import Argument, InputError
from lookup.logs.jobs import InProcess, Workers
from lookup.logs.outputs import draft, remove_folder, require_free, write_beside
from lookup.logs.sources import list_log, locate, table_span
from lookup.model.quoting import quantity
from lookup.model.time import US_PER_S, moment_at, time_text, to_us
from lookup.replay.reports import report_paths
from lookup.replay.run import replay
from lookup.replay.tasks import ship
from lookup.report.manifest import fingerprint
from lookup.score.scoring import Scored
from lookup.settings import EvaluationFile, load_manager_keys, load_manager_sources
from lookup.settings.loader import load_tuning
from lookup.settings.tuning import TuneFile, apart
from lookup.tuning.document import (
    aims_document,
    aims_of,
    conclusion,
    entry,
    figures,
    json_bytes,
    judged_entry,
    possible_document,
    standing,
)
from lookup.tuning.effects import settings_document, taken_back
from lookup.tuning.racing import Standing, beaten, figure_name, standing_of
from lookup.tuning.sealing import Seal, seal
from lookup.tuning.search import Batch, Candidate, Search
from lookup.tuning.sought import aims_on, check_figures, require_acting, spaces_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TUNE_PAGE", "TuneRun", "Tuning", "has_tuning", "open_tuning", "tune"]

#: Version of `tune.json` and `search.json`.
_SCHEMA = 1
#: Batches of a search have other luck than each other, and than the confirmation, which has the last of so many draws.
_DRAWS = 16
_SEARCH, _RESULT, _SEALED, _SCRATCH = "search.json", "tune.json", "sealed", "batch"
#: The page beside `tune.json`.
TUNE_PAGE = "tune.html"


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """A finished search."""

    #: the folder it wrote
    folder: str
    _document: Mapping[str, Any]

    @property
    def recommended(self) -> list[dict[str, Any]]:
        """Return what is confirmed, best first as the search believed; empty: keep what you have."""
        return list(self._document["recommended"])

    @property
    def exit_code(self) -> int:
        """Return 0 with a recommendation, 4 with none."""
        return 0 if self.recommended else 4

    @property
    def conclusion(self) -> str:
        """Return the answer in one sentence."""
        return str(self._document["conclusion"])

    @property
    def candidates(self) -> pd.DataFrame:
        """Return every candidate: its number, space, changes, and its figures in the search."""
        rows = []
        for candidate in self._document["candidates"]:
            row = {key: candidate[key] for key in ("candidate", "space", "origin", "changes")}
            rows.append(row | {name: figure["value"] for name, figure in candidate["search"].items()})
        return data_frame(rows)

    @property
    def sealed(self) -> Evaluation:
        """Return the evaluation of the finalists over the sealed days."""
        return open_run(f"{self.folder}/{_SEALED}")

    def candidate(self, number: int) -> dict[str, Any]:
        """Return what is known of a candidate, of a finalist also what the sealed days say.

        Raises:
            InputError: if there is none of this number.
        """
        known = {one["candidate"]: one for part in ("candidates", "finalists") for one in self._document[part]}
        if number not in known:
            raise InputError(f"{self.folder}: there is no candidate {number}; they go from 0 to {max(known)}")
        return dict(known[number])

    def document(self) -> dict[str, Any]:
        """Return what `tune.json` holds."""
        return dict(self._document)

    def page(self) -> str:
        """Return the search as one HTML page with all charts.

        Raises:
            SettingsError: if what draws it is not installed.
        """
        require_page_packages("the page needs")
        from lookup.tuning.page import tuning_page

        return tuning_page(self._document)

    def __repr__(self) -> str:
        """Return the answer, and how many candidates there were."""
        return f"<Tuning of {quantity(len(self._document['candidates']), 'candidate')}: {self.conclusion}>"


def tune(  # noqa: PLR0913  those of `evaluate`, and whether anything is sealed
    settings: str | os.PathLike[str] | Mapping[str, object],
    lookups: Table | None = None,
    *,
    brokers: BrokerTable | None = None,
    loads: Table | None = None,
    bundles: Table | None = None,
    ownership: Table | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    no_holdout: bool = False,
    overrides: Mapping[str, object] | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Tuning:
    """Search for settings that do better than the incumbent's, on one part of a log, and confirm them on the other.

    Args:
        settings: path of a search (`[tune]` and `[[spaces]]`), or what would stand in it.
        lookups: the log, as for `evaluate`, like the other tables; default: those of the evaluation that it names.
        output: folder for the results; one with a search that was stopped is gone on with; default: a temporary one.
        force: begin anew, in the place of earlier results.
        no_holdout: seal no part of the log, for one that is too short; nothing that is found is confirmed then.
        overrides: settings by key path, of the search (`tune.candidates`) and of its evaluation.
        workers: as for `evaluate`, like the next two.
        progress: called with one short sentence at each step.
        warn: called with a sentence a user should read.

    Raises:
        PulsarLookupError: in one sentence, for whatever the caller has to change.
    """
    from lookup.api.workers import check_workers, workers_for
    from lookup.spark.cluster import join_workers

    require_path("settings", settings, or_mapping=True)
    require_mapping("overrides", overrides)
    check_workers(workers)
    own, rest = apart(overrides or {})
    file = load_tuning(settings, own)
    tables = {"lookups": lookups, "brokers": brokers, "loads": loads, "bundles": bundles, "ownership": ownership}
    with result_folder(output) as (folder, ties), given_tables(tables) as given:
        selection = given.select(file.tune.evaluation, rest, warn)
        run = TuneRun.of(file, selection, folder, holdout=not no_holdout, force=force)
        runs_on = workers_for(workers, lambda: size_of(selection.settings), progress)
        join_workers(runs_on, say=warn)
        tuning = run.finish(runs_on, progress=progress, warn=warn)
        ties(tuning)
    return tuning


def open_tuning(folder: str | os.PathLike[str]) -> Tuning:
    """Return a search that is finished.

    Raises:
        InputError: if there is none.
    """
    require_path("folder", folder)
    content = _read(os.fspath(folder), _RESULT)
    if content is None:
        raise InputError(f"{os.fspath(folder)}: holds no tune.json; `lookup tune` writes one")
    return Tuning(os.fspath(folder), content)


def has_tuning(folder: str) -> bool:
    """Return whether a folder holds a finished search."""
    return _read(folder, _RESULT) is not None


@dataclass
class TuneRun:
    """A search over one log, in its folder."""

    file: TuneFile
    selection: Selection
    search: Search
    seal: Seal
    folder: str
    has_holdout: bool
    #: what tells this search, and its sealed days, from others
    identity: str
    days: str
    #: how many times these days have been opened, by this search or another, and whether this one has
    opened: int
    has_opened: bool
    #: what batches have shown, by number; of a search that was stopped those that need not be replayed
    records: dict[int, Mapping[str, Any]]

    @classmethod
    def of(cls, file: TuneFile, selection: Selection, folder: str, *, holdout: bool, force: bool) -> TuneRun:
        """Check everything that can be wrong before the first replay.

        Raises:
            PulsarLookupError: in one sentence, for whatever the user has to change.
        """
        settings = selection.settings
        section, rules = settings.evaluation, settings.verdict
        check_inputs(settings)
        spaces = spaces_of(file, settings, selection.registry)
        check_figures(file.tune, settings, selection.registry)
        incumbent = next(policy for policy in selection.policies if policy.name == section.incumbent)
        require_acting(incumbent, settings)
        span = _span(settings)
        sealed = Seal(span[0], span[0], span[1])
        if holdout:
            block_s = max(rules.block_s, section.balance_s)
            sealed = seal(
                *span, holdout=file.tune.holdout, block_s=block_s, blocks=rules.min_units, warmup_s=section.warmup_s
            )
        inputs = {name: fingerprint(path)["blake2b"] for name, path in given_inputs(settings).items()}
        days = _digest([inputs, asdict(sealed)])
        # Minutes decide how far a search goes, not what it is.
        sought = file.model_dump(mode="json", exclude={"tune": {"minutes"}})
        identity = _digest([sought, settings.model_dump(mode="json", exclude={"inputs"}), days])
        before = _read(folder, _SEARCH)
        _require_place(folder, before, identity, force=force)
        known = {} if before is None else before
        goes_on = bool(known) and not force
        return cls(
            file=file,
            selection=selection,
            search=Search(spaces, file.tune, replicates=len(section.drawn)),
            seal=sealed,
            folder=folder,
            has_holdout=holdout,
            identity=identity,
            days=days,
            opened=known["opened"] if known.get("days") == days else 0,
            has_opened=goes_on and known["has_opened"],
            records={record["batch"]: record for record in known["batches"]} if goes_on else {},
        )

    def finish(self, workers: Workers, *, progress: Callable[[str], None], warn: Callable[[str], None]) -> Tuning:
        """Search, confirm, and write what was found."""
        self._clear()
        self._keep()
        self._check_reach(workers)
        began = time.monotonic()
        minutes = self.file.tune.minutes
        last = max(self.records, default=0)
        for number, batch in enumerate(self.search.batches()):
            if number in self.records:
                self._learn(self.records[number])
                continue
            is_late = minutes is not None and (time.monotonic() - began) / 60 > minutes
            # What was left out for want of time stays so: candidates of later batches would have other numbers.
            if number < last or (is_late and number and batch.kind != "race"):
                continue
            tried, planned = len(self.search.candidates), self.file.tune.candidates
            progress(
                f"{batch.kind}: {quantity(len(batch.candidates), 'candidate')} in "
                f"{quantity(batch.replicates, 'replicate')}, {tried} of about {planned} tried"
            )
            self.records[number] = self._played(batch, number, workers, progress)
            self._keep()
            self._learn(self.records[number])
        finalists = self.search.finalists()
        sealed = self._confirmed(finalists, workers, progress, warn) if finalists else None
        document = self._document(finalists, sealed)
        found = Tuning(self.folder, document)
        if all(find_spec(package) for package in PAGE_PACKAGES):
            progress("drawing the page")
            write_beside(self.folder, TUNE_PAGE, found.page().encode())
        # The last file of all: a folder without it holds a search that was stopped.
        write_beside(self.folder, _RESULT, json_bytes(document))
        return found

    def _played(
        self, batch: Batch, number: int, workers: Workers, progress: Callable[[str], None]
    ) -> Mapping[str, Any]:
        """Replay a batch over the days of the search, and return what it has shown."""
        is_last = batch.kind == "race"
        selection = self._selection(batch.candidates, number, replicates=batch.replicates, has_bounds=is_last)
        try:
            # No warnings: that two of so many candidates decide alike is no news, and of the finalists they come later.
            outcome = replay(workers, selection.settings, f"{self.folder}/{_SCRATCH}", progress=progress)
        finally:
            with suppress(FileNotFoundError):
                remove_folder(*locate(f"{self.folder}/{_SCRATCH}"))
        evaluation = selection.settings.evaluation.model_copy(update={"seeds": outcome.seeds, "draw": 0})
        settings = selection.settings.model_copy(update={"evaluation": evaluation})
        scored = scored_of(replace(selection, settings=settings), outcome)
        aims = self.search.aims or aims_on(self.file.tune, scored)
        names = {self._name(candidate): candidate.number for candidate in (self.search.incumbent, *batch.candidates)}
        beaten_by = {} if is_last else beaten(scored, list(names), aims)
        standings = {number: standing_of(scored, name, aims) for name, number in names.items()}
        policies = {number: name for name, number in names.items()}
        gains = taken_back(scored, batch.candidates, policies, aims)
        return {
            "batch": number,
            "kind": batch.kind,
            "replicates": batch.replicates,
            "aims": aims_document(aims),
            "possible": possible_document(scored, aims),
            "rows": [
                {
                    "candidate": number,
                    "figures": figures(standings[number]),
                    "idle": standings[number].idle,
                    "beaten_by": names.get(beaten_by.get(name, "")) if number else None,
                    "taken_back": gains.get(number),
                }
                for name, number in names.items()
            ],
        }

    def _learn(self, record: Mapping[str, Any]) -> None:
        """Take what a batch has shown, in this run or in one that was stopped."""
        rows = record["rows"]
        self.search.learn(
            aims_of(record["aims"]),
            {row["candidate"]: standing(row["figures"], row["idle"]) for row in rows},
            {row["candidate"]: row["beaten_by"] for row in rows if row["beaten_by"] is not None},
        )

    def _check_reach(self, workers: Workers) -> None:
        """Refuse workers of a cluster that cannot read the tables, or cannot write into the folder.

        Raises:
            SettingsError: naming what they do not reach.
        """
        if isinstance(workers, InProcess):
            return
        # A search without Spark does not load it.
        from lookup.spark.cluster import check_reach

        settings = self.selection.settings
        paths = [str(settings.inputs.lookups), *report_paths(settings).values()]
        check_reach(workers, paths, self.folder, ship(settings))

    def _clear(self) -> None:
        """Remove what an earlier search found: until this one has an answer, the folder has none."""
        for name in (_RESULT, TUNE_PAGE):
            system, path = locate(f"{self.folder}/{name}")
            with suppress(FileNotFoundError):
                system.delete_file(path)

    def _keep(self) -> None:
        content = {
            "schema": _SCHEMA,
            "identity": self.identity,
            "days": self.days,
            "opened": self.opened,
            "has_opened": self.has_opened,
            "batches": [self.records[number] for number in sorted(self.records)],
        }
        write_beside(self.folder, _SEARCH, json_bytes(content))

    def _confirmed(
        self,
        finalists: Sequence[Candidate],
        workers: Workers,
        progress: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> Scored:
        """Judge the finalists on the sealed days, once."""
        if self.has_holdout and not self.has_opened:
            self.opened, self.has_opened = self.opened + 1, True
            self._keep()
        if self.opened > 1:
            times = quantity(self.opened, "time")
            warn(f"these days were opened {times}: what is chosen by them is no longer confirmed by them")
        progress(f"opening the sealed days for {quantity(len(finalists), 'finalist')} and the incumbent")
        replicates = len(self.selection.settings.evaluation.drawn)
        selection = self._selection(finalists, _DRAWS - 1, replicates=replicates, is_sealed=True, has_bounds=True)
        with draft(f"{self.folder}/{_SEALED}", OUTPUTS, force=True) as target:
            return evaluate_into(
                target,
                selection,
                workers,
                by=(),
                progress=progress,
                warn=warn,
                command=["tune"],
                java=lambda: "none" if isinstance(workers, InProcess) else None,
                clock=Clock(),
            )

    def _selection(
        self,
        candidates: Sequence[Candidate],
        number: int,
        *,
        replicates: int,
        has_bounds: bool,
        is_sealed: bool = False,
    ) -> Selection:
        """Return the evaluation of the incumbent and some candidates, over the days of the search or those sealed."""
        settings = self.selection.settings
        section = settings.evaluation
        changes: dict[str, Any] = {"seeds": replicates, "draw": section.draw * _DRAWS + number, "bounds": has_bounds}
        if self.has_holdout and is_sealed:
            changes |= {"warmup_s": self.seal.before_s}
        elif self.has_holdout:
            changes |= {"until": moment_at(self.seal.from_us)}
        incumbent = next(policy for policy in settings.policies if policy.name == section.incumbent)
        search = self.search
        specs = [
            incumbent,
            *(search.spaces[one.point.space].policy(one.point, self._name(one)) for one in candidates),
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

    def _name(self, candidate: Candidate) -> str:
        return f"candidate-{candidate.number}" if candidate.number else self.selection.settings.evaluation.incumbent

    def _document(self, finalists: Sequence[Candidate], sealed: Scored | None) -> dict[str, Any]:
        """Return what `tune.json` holds."""
        search, aims = self.search, self.search.aims
        if aims is None:
            raise AssertionError("the first batch says what is sought")
        days = (self.seal.last_us - self.seal.from_us) / US_PER_S / 86_400
        on_sealed: dict[int, Standing] = {}
        if sealed is not None:
            judged_ones = [search.incumbent, *finalists]
            on_sealed = {one.number: standing_of(sealed, self._name(one), aims) for one in judged_ones}
        judged = [
            judged_entry(one, search, on_sealed[one.number], on_sealed[0], aims, days=days)
            | {"cycles": None if sealed is None else _cycles(sealed, self._name(one))}
            for one in finalists
        ]
        recommended = [one for one in judged if one["objection"] is None and self.has_holdout]
        incumbent = {"policy": self._name(search.incumbent), "search": figures(search.incumbent.standing)}
        batches = [self.records[number] for number in sorted(self.records)]
        first = {row["candidate"]: standing(row["figures"], row["idle"]) for row in batches[0]["rows"]}
        gains = [
            {row["candidate"]: row["taken_back"] for row in batch["rows"] if row["taken_back"]} for batch in batches
        ]
        return {
            "schema": _SCHEMA,
            "conclusion": conclusion(recommended, judged, aims, has_holdout=self.has_holdout),
            "recommended": recommended,
            "finalists": judged,
            "incumbent": incumbent
            | {
                "sealed": figures(on_sealed.get(0)),
                "cycles": None if sealed is None else _cycles(sealed, self._name(search.incumbent)),
            },
            "candidates": [entry(one, search) for one in search.candidates],
            "settings": settings_document(
                search, first, gains, {(one["space"], key) for one in recommended[:1] for key in one["changes"]}
            ),
            **aims_document(aims),
            "possible": {
                "search": batches[-1]["possible"],
                "sealed": None if sealed is None else possible_document(sealed, aims),
            },
            "first": time_text(self.seal.first_us),
            "sealed_from": time_text(self.seal.from_us) if self.has_holdout else None,
            "last": time_text(self.seal.last_us),
            "opened": self.opened,
            "batches": [
                {"kind": record["kind"], "candidates": len(record["rows"]) - 1, "replicates": record["replicates"]}
                for record in batches
            ],
        }


def _span(settings: EvaluationFile) -> tuple[int, int]:
    """Return the first and the last instant of the log that the evaluation reads, µs since the epoch.

    Raises:
        InputError: if the log does not say when it begins and ends.
    """
    span = table_span(list_log(str(settings.inputs.lookups)))
    if span is None:
        raise InputError(
            f"{settings.inputs.lookups}: has no statistics of its times; `lookup ingest` writes tables with them"
        )
    since, until = settings.evaluation.since, settings.evaluation.until
    first = span[0] if since is None else max(span[0], to_us(since))
    return first, span[1] if until is None else min(span[1], to_us(until) - 1)


def _cycles(sealed: Scored, policy: str) -> str | None:
    cycles = sealed.inputs.cycles.get(policy)
    return None if cycles is None else cycles.account


def _require_place(folder: str, before: Mapping[str, Any] | None, identity: str, *, force: bool) -> None:
    """Refuse a folder with anything else than this search as far as it came."""
    if before is None:
        require_free(folder, force=force)
        return
    if force:
        return
    if before["identity"] != identity:
        raise InputError(
            f"{folder}: holds a search of other settings or another log; name another folder, or ",
            Argument("force", True),
            " begins anew",
        )
    if _read(folder, _RESULT) is not None:
        finished = f"{folder}: holds this search, finished; "
        raise InputError(finished, Argument("force", True), " searches again and opens the seal once more")


def _read(folder: str, name: str) -> dict[str, Any] | None:
    system, inner = locate(f"{folder.rstrip('/')}/{name}")
    with suppress(FileNotFoundError, NotADirectoryError), system.open_input_stream(inner) as stream:
        try:
            content: dict[str, Any] = json.loads(stream.read())
        except ValueError:
            raise InputError(f"{folder}/{name}: is no JSON, and no file of a search; remove it") from None
        return content
    return None


def _digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
