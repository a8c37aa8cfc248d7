"""Search for settings by trying candidates in batches on one part of a log, and judging the best on the other.

The other part is sealed. `lookup.tuning` generates candidates, selects them and decides on a recommendation, and
`log_trials` replays a log. After every batch `search.json` has the known results, so an interrupted search can resume.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lookup.api.arguments import Say, require_mapping, require_path
from lookup.api.evaluating import size_of
from lookup.api.given import Table, given_tables
from lookup.api.log_trials import SEALED, LogTrials
from lookup.api.outputs import data_frame, result_folder
from lookup.api.results import Evaluation, open_run
from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.jobs import Workers
from lookup.logs.outputs import require_free, write_beside
from lookup.logs.sources import locate
from lookup.model.documents import json_value
from lookup.model.quoting import quantity
from lookup.score.figures import FIGURES
from lookup.settings.loader import load_tuning
from lookup.settings.tuning import TuneFile, split_overrides
from lookup.tuning import document as documents
from lookup.tuning.search import Candidate, Search, TrialBatch
from lookup.tuning.trials import Shown
from lookup.tuning.wording import describe_reopened

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TuneRun", "Tuning", "open_tuning", "require_no_tuning", "tune"]

#: Version of `tune.json` and `search.json`.
_SCHEMA = 3
_SEARCH, _RESULT = "search.json", "tune.json"


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """A finished search."""

    #: the folder it wrote
    folder: str
    _document: Mapping[str, Any]

    @property
    def recommended(self) -> list[dict[str, Any]]:
        """The confirmed candidates, best first in the search's order. If it is empty, keep your settings."""
        return list(self._document["recommended"])

    @property
    def exit_code(self) -> int:
        """0 with a recommendation, 4 with none, or if the log has too few senders to show it."""
        document, figures = self._document, documents.read_figures(self._document)
        confirmed = [entry for entry in document["finalists"] if entry["objection"] is None and document["recommended"]]
        return 4 if all(documents.is_open(figures[entry["candidate"], SEALED].values()) for entry in confirmed) else 0

    @property
    def conclusion(self) -> str:
        """The answer in one sentence."""
        return str(self._document["conclusion"])

    @property
    def candidates(self) -> pd.DataFrame:
        """The table of candidates, with number, space, origin, and a column for each setting that it changes."""
        about = ("candidate", "space", "origin")
        return data_frame({key: row[key] for key in about} | row["changes"] for row in self._document["candidates"])

    @property
    def figures(self) -> pd.DataFrame:
        """FIGURES with `candidate`, 0 for today's settings, and `days`, "search" or "sealed". Totals are daily."""
        columns = ["candidate", "days", *FIGURES.names]
        return data_frame(self._document["figures"], columns)

    @property
    def sealed(self) -> Evaluation:
        """The evaluation of the finalists over the sealed days.

        Raises:
            InputError: if there is none, as after a search without finalists.
        """
        return open_run(f"{self.folder}/{SEALED}")

    def document(self) -> dict[str, Any]:
        """Return the content of `tune.json`."""
        return dict(self._document)

    def __repr__(self) -> str:
        """Show the answer, and the number of candidates."""
        return f"<Tuning of {quantity(len(self._document['candidates']), 'candidate')}: {self.conclusion}>"


def tune(  # noqa: PLR0913  those of `evaluate`, and whether anything is sealed
    settings: str | os.PathLike[str] | Mapping[str, object],
    lookups: Table | None = None,
    *,
    brokers: Table | None = None,
    loads: Table | None = None,
    bundles: Table | None = None,
    ownership: Table | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    no_holdout: bool = False,
    overrides: Mapping[str, object] | None = None,
    workers: Workers | None = None,
    progress: Say = lambda message: None,
    warn: Say = lambda sentence: None,
) -> Tuning:
    """Search for better settings than the incumbent's on one part of a log, and confirm them on the other.

    Args:
        settings: path of a search (`[tune]` and `[[spaces]]`), or its content.
        lookups: the log, as for `evaluate`, like the other tables, by default those of its evaluation.
        output: folder for the results. An interrupted search in it is resumed. The default is a temporary folder.
        force: begin again, and replace earlier results.
        no_holdout: do not seal a part of the log, for a log that is too short. No result is confirmed then.
        overrides: settings by key path, of the search (`tune.candidates`) and of its evaluation.
        workers: as for `evaluate`, and so are the next two.
    """
    from lookup.api.workers import check_workers, workers_for
    from lookup.spark.cluster import ship_code

    require_path("settings", settings, or_mapping=True)
    require_mapping("overrides", overrides)
    check_workers(workers)
    own, rest = split_overrides(overrides or {})
    file = load_tuning(settings, own)
    tables = {"lookups": lookups, "brokers": brokers, "loads": loads, "bundles": bundles, "ownership": ownership}
    with result_folder(output) as (folder, ties), given_tables(tables) as inputs:
        selection = inputs.select(file.tune.evaluation, rest, warn)
        trials = LogTrials.of(file, selection, holdout=not no_holdout)
        run = TuneRun.of(file, trials, folder, force=force)
        trials.workers = workers_for(workers, lambda: size_of(selection.settings), progress)
        ship_code(trials.workers)
        tuning = run.finish(progress=progress, warn=warn)
        ties(tuning)
    return tuning


def open_tuning(folder: str | os.PathLike[str]) -> Tuning:
    """Open a finished search.

    Raises:
        InputError: if there is none.
    """
    path = require_path("folder", folder)
    content = _read(path, _RESULT)
    if content is None:
        raise InputError(f"{path}: holds no tune.json; `lookup tune` writes one")
    return Tuning(path, content)


def require_no_tuning(folder: str) -> None:
    """Refuse a folder that holds a finished search, where an evaluation is needed."""
    if _read(folder, _RESULT) is not None:
        raise SettingsError(
            f"{folder}: holds a search, which tune.json describes; its sealed days are an evaluation, {folder}/{SEALED}"
        )


@dataclass
class TuneRun:
    """A search on a log, in its folder."""

    file: TuneFile
    trials: LogTrials
    search: Search
    folder: str
    #: distinguishes this search, and its sealed part, from others
    identity: str
    days: str
    #: how often the sealed part has been opened, by this search or another, and whether this one has opened it
    opened: int
    has_opened: bool
    #: results of batches by number. An interrupted search need not repeat these
    records: dict[int, Mapping[str, Any]]

    @classmethod
    def of(cls, file: TuneFile, trials: LogTrials, folder: str, *, force: bool) -> TuneRun:
        """Check the folder, which must be free, or contain a part of this search."""
        days = _compute_digest(trials.sealed)
        # Minutes determine the length of a search, not its identity.
        sought = file.model_dump(mode="json", exclude={"tune": {"minutes"}})
        identity = _compute_digest([sought, trials.settings, days])
        before = _read(folder, _SEARCH, force=force)
        _require_place(folder, before, identity, force=force)
        document = {} if before is None else before
        goes_on = bool(document) and not force
        return cls(
            file=file,
            trials=trials,
            search=Search(trials.spaces, file.tune, replicates=trials.replicates),
            folder=folder,
            identity=identity,
            days=days,
            opened=document["opened"] if document.get("days") == days else 0,
            has_opened=goes_on and document["has_opened"],
            records={record["batch"]: record for record in document["batches"]} if goes_on else {},
        )

    def finish(self, *, progress: Say, warn: Say) -> Tuning:
        """Search, confirm, and write the results."""
        self._clear()
        self._keep()
        self.trials.begin(self.folder)
        began, replays = time.monotonic(), 0
        minutes = self.file.tune.minutes
        last = max(self.records, default=0)
        for number, batch in enumerate(self.search.batches()):
            if number in self.records:
                self._learn(self.records[number])
                continue
            is_late = minutes is not None and (time.monotonic() - began) / 60 > minutes
            # Candidates left out for lack of time stay out, since otherwise later candidates would have other numbers.
            if number < last or (is_late and number and batch.kind != "race"):
                continue
            tried, planned = len(self.search.candidates), self.file.tune.candidates
            remaining = ""
            if replays:
                left_s = (time.monotonic() - began) / replays * (batch.replays + self.search.left_after(batch))
                remaining = f", about {f'{left_s:.0f} s' if left_s < 100 else f'{left_s / 60:.0f} min'} left"
            progress(
                f"{batch.kind}: {quantity(len(batch.candidates), 'candidate')} in "
                f"{quantity(batch.replicates, 'replicate')}, {tried} of about {planned} tried{remaining}"
            )
            replays += batch.replays
            self.records[number] = _record_batch(
                batch, number, self.trials.replay_batch(batch, number, self.search, progress)
            )
            self._keep()
            self._learn(self.records[number])
        finalists = self.search.finalists()
        sealed = self._evaluate_finalists(finalists, progress, warn) if finalists else None
        # Written last, since a folder without `tune.json` holds an interrupted search.
        result = Tuning(self.folder, self._document(finalists, sealed))
        _write(self.folder, _RESULT, result.document())
        return result

    def _learn(self, record: Mapping[str, Any]) -> None:
        rows = record["rows"]
        self.search.learn(
            documents.aims_of(record["aims"]),
            {row["candidate"]: documents.read_standing(row["figures"], row["idle"]) for row in rows},
            {row["candidate"]: row["beaten_by"] for row in rows if row["beaten_by"] is not None},
        )

    def _clear(self) -> None:
        """Remove results of an earlier search, so that the folder has no answer until this search has one."""
        system, path = locate(f"{self.folder}/{_RESULT}")
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
        _write(self.folder, _SEARCH, content)

    def _evaluate_finalists(self, finalists: Sequence[Candidate], progress: Say, warn: Say) -> Shown:
        if self.trials.has_holdout and not self.has_opened:
            self.opened, self.has_opened = self.opened + 1, True
            self._keep()
        if self.opened > 1:
            warn(describe_reopened(self.opened))
        where = "the sealed days" if self.trials.has_holdout else "the same days with new seeds"
        progress(f"replaying {quantity(len(finalists), 'finalist')} and the incumbent on {where}")
        return self.trials.evaluate_finalists(finalists, self.search, progress, warn)

    def _document(self, finalists: Sequence[Candidate], sealed: Shown | None) -> dict[str, Any]:
        search, aims, has_holdout = self.search, self.search.aims, self.trials.has_holdout
        if aims is None:
            raise AssertionError("the first batch says what is sought")
        batches = [self.records[number] for number in sorted(self.records)]
        candidates = [documents.entry(candidate, search) for candidate in search.candidates]
        judged = [documents.judged_entry(finalist, search, sealed) for finalist in finalists if sealed is not None]
        recommended = documents.list_confirmed(judged) if has_holdout else []
        clause = f"were opened {quantity(self.opened, 'time')}" if self.opened > 1 else "the search has not seen"
        days = f"on days that {clause}" if has_holdout else None
        return {
            "schema": _SCHEMA,
            "conclusion": documents.conclusion(recommended, sealed, days),
            "recommended": recommended,
            "finalists": judged,
            "incumbent": {"policy": self.trials.incumbent, "cycles": None if sealed is None else sealed.cycles.get(0)},
            "candidates": candidates,
            "figures": documents.figures_of_search(search, sealed),
            "settings": documents.settings_entries(search),
            **documents.aims_document(aims),
            **self.trials.span,
            "opened": self.opened,
            "batches": [
                {"kind": record["kind"], "candidates": len(record["rows"]) - 1, "replicates": record["replicates"]}
                for record in batches
            ],
        }


def _record_batch(batch: TrialBatch, number: int, outcome: Shown) -> dict[str, Any]:
    return {
        "batch": number,
        "kind": batch.kind,
        "replicates": batch.replicates,
        "aims": documents.aims_document(outcome.aims),
        "rows": [
            {
                "candidate": candidate,
                "figures": documents.json_rows(standing),
                "idle": standing.idle,
                "beaten_by": outcome.beaten_by.get(candidate),
            }
            for candidate, standing in outcome.standings.items()
        ],
    }


def _require_place(folder: str, before: Mapping[str, Any] | None, identity: str, *, force: bool) -> None:
    """Refuse a folder with anything else than this search as far as it came."""
    if before is None:
        require_free(folder, force=force)
    if before is None or force:
        return
    # A search that was refused or stopped before its first batch has shown nothing that could be lost.
    if before["identity"] != identity and (before["batches"] or before["opened"]):
        raise InputError(
            f"{folder}: holds a search of other settings or another log; name another folder, or ",
            Argument("force", True),
            " begins anew",
        )
    if _read(folder, _RESULT) is not None:
        finished = f"{folder}: holds this search, finished; "
        raise InputError(finished, Argument("force", True), " searches again and opens the seal once more")


def _write(folder: str, name: str, content: Mapping[str, Any]) -> None:
    """Write a file of a search with a checksum, since its content is otherwise read back unchecked."""
    checksum = _compute_digest([name, json.loads(documents.json_bytes(content))])
    write_beside(folder, name, documents.json_bytes({**content, "checksum": checksum}))


def _read(folder: str, name: str, *, force: bool = False) -> dict[str, Any] | None:
    """Read a file of a search. Return None without the file, or with `force` if it belongs to another search."""
    system, inner = locate(f"{folder.rstrip('/')}/{name}")
    with suppress(FileNotFoundError, NotADirectoryError), system.open_input_stream(inner) as stream:
        with suppress(ValueError):
            content = json_value(stream.read().decode())
            is_ours = isinstance(content, dict) and content.get("schema") == _SCHEMA
            if is_ours and content.pop("checksum", None) == _compute_digest([name, content]):
                return dict(content)
        if not force:
            flaw = f"{folder}: holds a {name} that is of no search by this release, or was changed since it was written"
            raise InputError(f"{flaw}; name another folder, or search with ", Argument("force", True), " to begin anew")
    return None


def _compute_digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
