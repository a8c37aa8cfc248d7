"""Settings of topics as `lookup config show` prints them: every value, and what set it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lookup.commands.options import settings_flags
from lookup.commands.streams import print_json, stdout
from lookup.commands.toml import to_toml
from lookup.errors import SettingsError
from lookup.settings import TopicsFile, describe, load_topics
from lookup.settings.layers import read_toml

__all__ = ["is_about_topics", "show_topics"]

_INTRODUCTION = "# Settings of topics as resolved; behind each value stands what set it.\n\n"


def is_about_topics(path: str) -> bool:
    """Tell whether a file holds settings of topics: a `broker.conf`, or TOML with a table `[topics]`."""
    if Path(path).suffix == ".conf":
        return True
    try:
        return "topics" in read_toml(Path(path))
    except SettingsError:
        return False  # who reads it as an evaluation says what is wrong with it


def show_topics(arguments: argparse.Namespace) -> None:
    """Print what `load_topics` makes of a file, the variables and the flags.

    Raises:
        SettingsError: all mistakes together.
    """
    settings = load_topics(arguments.config, settings_flags(arguments))
    values = settings.model_dump(mode="json", exclude_unset=not arguments.resolved)
    if arguments.format == "json":
        print_json({"settings": values, **({"sources": _sources(settings)} if arguments.resolved else {})})
    elif arguments.resolved:
        known = _sources(settings)
        stdout().write(_INTRODUCTION + to_toml(values, lambda loc: _set_by(known, loc)))
    else:
        stdout().write(to_toml(values))


def _sources(settings: TopicsFile) -> dict[str, str]:
    return {path: source for path, _, source in describe(settings)}


def _set_by(known: dict[str, str], loc: tuple[Any, ...]) -> str:
    path = ".".join(map(str, loc))
    return ", ".join(dict.fromkeys(by for key, by in known.items() if key == path or key.startswith(f"{path}.")))
