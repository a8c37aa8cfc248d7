"""The work of `lookup generate`: the tables and the manifest beside them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from lookup.logs.generator.generate import GenerateReport, GenerateSettings, generate
from lookup.logs.outputs import write_beside
from lookup.report.manifest import RunFacts, manifest_json

__all__ = ["write_log"]


def write_log(settings: GenerateSettings, output: str, *, is_forced: bool, command: Sequence[str]) -> GenerateReport:
    """Write a synthetic log and the manifest that says how to make it again.

    Raises:
        InputError: where the output is a file, or not empty without force.
    """
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    report = generate(settings, output, force=is_forced)
    facts = RunFacts(
        command=command,
        exit_code=0,
        settings=asdict(settings) | {"start": settings.start.isoformat()},
        seeds=(settings.seed,),
        wall_clock={"started": started, "total_s": round(time.monotonic() - began, 3)},
    )
    write_beside(output, "manifest.json", manifest_json(facts))
    return report
