"""Judges the shedders that ship, over the logs and scenarios of the documentation, and writes `docs/shedders.md`.

`python scripts/shedders.py [TRACE]` writes the tables; that of NASA's web server stays as it is without the trace.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lookup
from lookup.api.simulating import read_scenarios
from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.logs.jobs import InProcess
from lookup.simulation import run_policy

__all__ = ["PAGE", "nasa", "page_with", "sample", "scenarios"]

_ROOT = Path(__file__).parents[1]
_CONFIGS = _ROOT / "configs"
PAGE = _ROOT / "docs" / "shedders.md"
#: Each shedder with its defaults.
_ALONE = ("threshold", "none", "uniform", "transfer", "avg", "rebalance")
_FIGURES: Mapping[str, str | None] = {
    "imbalance_max_mean": None,
    "match_ratio": "rack",
    "moves": None,
    "moved_weight": None,
}
_TABLES = ("lookups", "brokers", "loads", "ownership")
#: Beside a shedder.
_PLACED: Mapping[str, Any] = {
    "filters": ["load-manager-class", "max-topics", "version", "anti-affinity", "isolation"],
    "selector": "least-resource-usage",
}


def sample() -> str:
    """Return the table of the log that `make demo` judges."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "sample"
        lookup.generate(log)
        return _table("evaluation.toml", {name: log / name for name in (*_TABLES, "bundles")})


def nasa(trace: Path) -> str:
    """Return the table of a trace of NASA's web server, as it is downloaded."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "nasa"
        lookup.ingest(trace, mapping=_CONFIGS / "nasa.toml", output=log)
        return _table("nasa-evaluation.toml", {"lookups": log / "lookups"})


def scenarios() -> str:
    """Return moves and final balance of every shedder in the scenarios of PIP-364, placed by the least used broker."""
    registry, lines = load_plugins(), []
    for file in read_scenarios(sorted((_CONFIGS / "scenarios").glob("pip-364-*.scenario"))):
        # What its manager does with what is proposed stays that of the first policy.
        base = build_policies(registry, file.scenario.policies[:1])[0]
        cells = []
        for name in _ALONE:
            # New parts for every run, so that none carries state from another.
            selector = registry.find("selectors", str(_PLACED["selector"]))()
            shedder = None if name == "none" else registry.find("shedders", name)()
            policy = replace(base, name=name, selector=selector, shedder=shedder)
            figures = run_policy(file.scenario, policy).figures
            cells.append(f"{figures.moves}, {figures.balance:.2f}")
        lines.append([f"`{file.path.stem}`", *cells])
    return _markdown(["scenario", *(f"`{shedder}`" for shedder in _ALONE)], lines)


def page_with(page: str, name: str, table: str) -> str:
    """Return the page with another table in the place of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    head, rest = page.split(begin)
    return f"{head}{begin}\n{table}\n\n{end}{rest.split(end, 1)[1]}"


def _table(settings: str, tables: Mapping[str, Path]) -> str:
    """Return the figures of every shedder over a log, with Pulsar's filters and placement."""
    content = tomllib.loads((_CONFIGS / settings).read_text(encoding="utf-8"))
    content.pop("topology", None)
    for broker in content.get("brokers", []):
        if "profile" in broker:
            broker["profile"] = str(_CONFIGS / broker["profile"])
    alone = [{**_PLACED, "name": name, "shedder": name} for name in _ALONE]
    for policy in alone:
        if policy["name"] == "none":
            del policy["shedder"]
    shipped = tomllib.loads((_CONFIGS / "policies" / "rebalance.toml").read_text(encoding="utf-8"))
    content["policies"] = [*alone, {**shipped, "name": "shipped:rebalance"}]
    content["evaluation"]["incumbent"] = "threshold"
    content.pop("verdict", None)
    content["inputs"] = {name: str(path) for name, path in tables.items()}
    document = lookup.evaluate(settings=content, workers=InProcess()).document()
    whole = {
        (row["policy"], row["metric"], row["key"]): row for row in document["figures"] if row["scope"] == "all clusters"
    }
    heads = ["shedder", *(f"`{metric}`" if key is None else f"`{metric}[{key}]`" for metric, key in _FIGURES.items())]
    lines = []
    for policy in content["policies"]:
        figures = (whole.get((policy["name"], *figure)) for figure in _FIGURES.items())
        lines.append([f"`{policy['name']}`", *map(_with_interval, figures)])
    return _markdown(heads, lines)


def _with_interval(row: Mapping[str, Any] | None) -> str:
    """Return a figure with its 95 % interval, a dash for none."""
    if row is None or row["value"] is None:
        return "–"
    span = "" if row["low"] is None else f" ({row['low']:.3g}–{row['high']:.3g})"
    return f"{row['value']:.3g}{span}"


def _markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *lines))


def main(arguments: Sequence[str]) -> None:
    """Write the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    tables = {"sample": sample, "scenarios": scenarios}
    for name, table in tables.items():
        page = page_with(page, name, table())
    for trace in arguments[:1]:
        page = page_with(page, "nasa", nasa(Path(trace)))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
