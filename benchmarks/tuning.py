"""Measures a search of 64 candidates, its confirmation included, beside an evaluation of four policies over the log."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from figures import Figure
from processes import Measured, run_measured

from lookup import generate
from lookup.commands.show import to_toml

__all__ = ["measure_tuning"]

#: Two days of one cluster: rows, brokers, bundles.
_ROWS, _BROKERS, _NAMESPACES, _BUNDLES = 600_000, 12, 24, 16
_GIB = 1 << 30


def measure_tuning() -> Iterator[Figure]:
    """Yield how many times as long as the evaluation a search takes, and as much memory."""
    with tempfile.TemporaryDirectory(prefix="lookup-bench-") as folder:
        sizes = {"lookups": _ROWS, "hours": 48, "clusters": 1, "brokers": _BROKERS, "namespaces": _NAMESPACES}
        generate(f"{folder}/log", bundles_per_namespace=_BUNDLES, **sizes)
        _write(Path(folder))

        def run(command: str, *, memory: bool) -> Measured:
            output = f"{folder}/{command}-{memory}"
            words = ["-m", "lookup", command, f"{folder}/{command}.toml", "--output", output]
            return run_measured([*words, "--master", "none", "--quiet"], allowed=(0, 3, 4), memory=memory)

        four, tuned = (run(command, memory=False) for command in ("evaluate", "tune"))
        beside = [run(command, memory=True).python_bytes for command in ("evaluate", "tune")]
    what = f"{_ROWS:,} lookups, 48 hours: 64 candidates tried and confirmed / four policies evaluated"
    note = f"{tuned.seconds:.0f} s and {four.seconds:.0f} s"
    yield Figure(what, tuned.seconds / four.seconds, "", bound=4.0, note=note)
    yield Figure(f"{what}: peak memory", beside[1] / beside[0], "", note=f"{beside[1] / _GIB:.2f} GiB")


def _write(folder: Path) -> None:
    """Write an evaluation of four thresholds, and a search for the threshold and what goes with it."""

    def policy(name: str, threshold: float) -> dict[str, Any]:
        shedder = {"use": "threshold", "threshold": threshold}
        return {"name": name, "selector": "least-resource-usage", "shedder": shedder}

    evaluation = {
        "evaluation": {"incumbent": "today", "default_bundles": _BUNDLES},
        "inputs": {name: f"{folder}/log/{name}" for name in ("lookups", "brokers")},
        "policies": [policy("today", 0.1), policy("a", 0.05), policy("b", 0.2), policy("c", 0.4)],
    }
    ranges = {
        "shedder.threshold": {"low": 0.02, "high": 0.5, "scale": "log"},
        "shedder.history": {"low": 0.5, "high": 0.99},
        "shedder.lower_boundary": [False, True],
    }
    search = {
        "tune": {"evaluation": f"{folder}/evaluate.toml", "candidates": 64},
        "spaces": [{"name": "threshold", "vary": ranges}],
    }
    (folder / "evaluate.toml").write_text(to_toml(evaluation))
    (folder / "tune.toml").write_text(to_toml(search))
