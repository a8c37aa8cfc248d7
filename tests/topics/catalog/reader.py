"""A process without root's rights that reads a catalog, then looks again and writes, and says what came of each."""

from __future__ import annotations

import os
import sys

from lookup.errors import PulsarLookupError
from lookup.topics.catalog import Catalog, SqliteStorage

__all__ = ["main"]

_NOBODY = 65534


def main(path: str) -> None:
    """Print users' topics, wait for a line, then print what a refresh and a write come to."""
    if os.geteuid() == 0:
        os.setuid(_NOBODY)
    try:
        catalog = Catalog(SqliteStorage(path, must_exist=True))
        _say(" ".join(name.rpartition("/")[2] for name in catalog.topics("t/ns") if "__" not in name))
        sys.stdin.readline()
        catalog.refresh()
        _say("refreshed")
        catalog.delete("persistent://t/ns/q")
    except PulsarLookupError as error:
        _say(str(error))


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
