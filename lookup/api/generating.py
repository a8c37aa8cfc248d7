"""Write a synthetic log from a seed, and hold its tables: for trials, demonstrations and tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from lookup.api.frames import read_frame
from lookup.api.outputs import data_frame, result_folder
from lookup.errors import Argument, Sentence, SettingsError
from lookup.logs.generator.generate import GenerateReport
from lookup.logs.generator.generate import generate as write_log
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.schema import CANONICAL
from lookup.model.quoting import quantity, shown, suggestion
from lookup.report.manifest import RunFacts, manifest_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GeneratedLog", "figures_of", "generate", "generate_into"]


@dataclass(frozen=True, eq=False, repr=False)
class GeneratedLog:
    """A synthetic log: its folder, and its tables as DataFrames, which may be large."""

    report: GenerateReport

    @property
    def folder(self) -> str:
        """The folder of the tables, each in one of its name."""
        return self.report.output

    @property
    def lookups(self) -> pd.DataFrame:
        """What clients asked: the table LOOKUPS."""
        return self._table("lookups")

    @property
    def brokers(self) -> pd.DataFrame:
        """Who was registered when: the table BROKERS."""
        return self._table("brokers")

    @property
    def loads(self) -> pd.DataFrame:
        """What brokers reported: the table LOADS."""
        return self._table("loads")

    @property
    def bundles(self) -> pd.DataFrame:
        """What bundles carried: the table BUNDLES."""
        return self._table("bundles")

    @property
    def ownership(self) -> pd.DataFrame:
        """First owners, unloads and splits: the table OWNERSHIP."""
        return self._table("ownership")

    def document(self) -> dict[str, Any]:
        """Return what was written as JSON has it: the folder, the clusters, and how many rows."""
        report = self.report
        written = {"output": report.output, "clusters": list(report.clusters), "rows": dict(report.rows)}
        return written | {"reconnects": report.reconnects}

    def __repr__(self) -> str:
        """Return the folder, and how many rows each table has."""
        rows = ", ".join(f"{count:,} {name}" for name, count in self.report.rows.items())
        return f"<Log of {quantity(len(self.report.clusters), 'cluster')} in {self.folder}: {rows}>"

    def _repr_html_(self) -> str:
        rows = [{"table": name, "rows": count} for name, count in self.report.rows.items()]
        return data_frame(rows).to_html(index=False)

    def _table(self, name: str) -> pd.DataFrame:
        return read_frame(self.folder, name, CANONICAL[name])


def generate(
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    progress: Callable[[str], None] = lambda message: None,
    **figures: float | str | datetime,
) -> GeneratedLog:
    """Write a synthetic but realistic log; the same figures give the same rows.

    Args:
        output: folder for the tables, which must not exist or be empty; default: a temporary one, which goes with what
            is returned.
        force: replace earlier tables in `output`.
        progress: called with one short sentence before the log is written.
        figures: those of `lookup generate`, like `lookups=20_000`, `topics`, `brokers`, `hours`, `seed`, `policy`;
            `start` is a time or a text like "2026-01-05T00:00:00Z".

    Raises:
        SettingsError: naming every figure that is unknown, wrong or out of range, or what is wrong with the policy.
        InputError: if the output cannot be written, which is then as it was.
    """
    settings = figures_of(figures)
    with result_folder(output) as (folder, ties):
        progress(f"writing {settings.lookups:,} lookups to {folder}")
        log = generate_into(folder, settings, force=force, command=["generate"])
        ties(log)
    return log


def generate_into(output: str, settings: GenerateSettings, *, force: bool, command: Sequence[str]) -> GeneratedLog:
    """Write a synthetic log, and the manifest that says how to make it again.

    Args:
        command: the words of the command line, `lookup` not among them.
    """
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")

    def manifest() -> bytes:
        facts = RunFacts(
            command=command,
            exit_code=0,
            settings=asdict(settings) | {"start": settings.start.isoformat()},
            seeds=(settings.seed,),
            wall_clock={"started": started, "total_s": round(time.monotonic() - began, 3)},
        )
        return manifest_json(facts)

    return GeneratedLog(write_log(settings, output, force=force, manifest=manifest))


def figures_of(figures: Mapping[str, Any]) -> GenerateSettings:
    """Check figures of a log by name, values or texts of them."""
    known = [field.name for field in fields(GenerateSettings)]
    unknown = [name for name in figures if name not in known]
    if unknown:
        raise SettingsError([f"a log has no figure {name!r}; {suggestion(name, known)}" for name in unknown])
    try:
        return TypeAdapter(GenerateSettings).validate_python(figures)
    except ValidationError as error:
        wrong = {str(problem["loc"][0]): problem for problem in error.errors()}
        raise SettingsError(
            [
                Sentence(Argument(name), f": is {shown(problem['input'])}: {problem['msg']}")
                for name, problem in wrong.items()
            ]
        ) from None
