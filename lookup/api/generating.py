"""Write a synthetic log from a seed, and hold its tables, for trials, demonstrations and tests."""

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
    """A synthetic log with its folder, and its tables as DataFrames, which may be large."""

    report: GenerateReport

    @property
    def folder(self) -> str:
        """The folder of the tables, each in one of its name."""
        return self.report.output

    @property
    def lookups(self) -> pd.DataFrame:
        """The table LOOKUPS with the lookups of clients."""
        return self._read_table("lookups")

    @property
    def brokers(self) -> pd.DataFrame:
        """The table BROKERS with the times of registrations."""
        return self._read_table("brokers")

    @property
    def loads(self) -> pd.DataFrame:
        """The table LOADS with the reports of brokers."""
        return self._read_table("loads")

    @property
    def bundles(self) -> pd.DataFrame:
        """The table BUNDLES with the traffic of bundles."""
        return self._read_table("bundles")

    @property
    def ownership(self) -> pd.DataFrame:
        """The table OWNERSHIP with first owners, unloads and splits."""
        return self._read_table("ownership")

    def document(self) -> dict[str, Any]:
        """Describe the written log as a JSON object with the folder, the clusters, and the numbers of rows."""
        report = self.report
        written = {"output": report.output, "clusters": list(report.clusters), "rows": dict(report.rows)}
        return written | {"reconnects": report.reconnects}

    def __repr__(self) -> str:
        """Show the folder, and the number of rows in each table."""
        rows = ", ".join(f"{count:,} {name}" for name, count in self.report.rows.items())
        return f"<Log of {quantity(len(self.report.clusters), 'cluster')} in {self.folder}: {rows}>"

    def _repr_html_(self) -> str:
        rows = [{"table": name, "rows": count} for name, count in self.report.rows.items()]
        return data_frame(rows).to_html(index=False)

    def _read_table(self, name: str) -> pd.DataFrame:
        return read_frame(self.folder, name, CANONICAL[name])


def generate(
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    progress: Callable[[str], None] = lambda message: None,
    **figures: float | str | datetime,
) -> GeneratedLog:
    """Write a synthetic but realistic log. The same figures give the same rows.

    Args:
        output: new or empty folder for the tables, by default a temporary one, removed with the returned object.
        force: replace earlier tables in `output`.
        progress: called with one short sentence before the log is written.
        figures: the options of `lookup generate`, like `lookups=20_000`, `topics`, `brokers`, `hours`, `seed`,
            `policy`. `start` is a time or a text like "2026-01-05T00:00:00Z".

    Raises:
        SettingsError: with every figure that is unknown, wrong or out of range, or with the mistake in the policy.
        InputError: if the output cannot be written, which is then unchanged.
    """
    settings = figures_of(figures)
    with result_folder(output) as (folder, ties):
        progress(f"writing {settings.lookups:,} lookups to {folder}")
        log = generate_into(folder, settings, force=force, command=["generate"])
        ties(log)
    return log


def generate_into(output: str, settings: GenerateSettings, *, force: bool, command: Sequence[str]) -> GeneratedLog:
    """Write a synthetic log, and the manifest with which it can be made again.

    Args:
        command: the words of the command line, without `lookup`.
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
    names = [field.name for field in fields(GenerateSettings)]
    unknown = [name for name in figures if name not in names]
    if unknown:
        raise SettingsError([f"a log has no figure {name!r}; {suggestion(name, names)}" for name in unknown])
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
