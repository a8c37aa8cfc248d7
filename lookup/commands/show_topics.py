"""Settings of topics as `lookup config show` prints them: every value, and what set it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from lookup.commands.options import settings_flags
from lookup.commands.streams import print_json, stdout
from lookup.commands.toml import to_toml
from lookup.errors import SettingsError
from lookup.settings import TopicsFile, describe, load_topics
from lookup.settings.layers import read_toml
from lookup.settings.problems import key_path

__all__ = ["is_about_topics", "set_by", "show_topics"]

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
        stdout().write(_INTRODUCTION + to_toml(values, lambda loc: set_by(known, loc)))
    else:
        stdout().write(to_toml(values))


def _sources(settings: TopicsFile) -> dict[str, str]:
    return {path: source for path, _, source in describe(settings)}


def set_by(sources: Mapping[str, str], loc: tuple[str | int, ...]) -> str:
    """Say what set the value at a place; of a value made of several, all that did.

    Args:
        sources: what set each value, by key path.
    """
    path = key_path(loc)
    below = (source for known, source in sources.items() if known == path or _is_below(known, path))
    return ", ".join(dict.fromkeys(below))


def _is_below(path: str, above: str) -> bool:
    return path.startswith(above) and path[len(above)] in ".["
