"""Distributions with plug-ins that are installed for one test."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_metadata"]


def write_metadata(folder: Path, module: str, version: str) -> None:
    """Write what pip leaves of a distribution whose one module registers plug-ins; `folder` is made."""
    about = folder / f"{module}-{version}.dist-info"
    about.mkdir(parents=True)
    name = module.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[lookup]\nsample = {module}\n")
    (about / "top_level.txt").write_text(f"{module}\n")
