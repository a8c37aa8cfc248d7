"""A process that writes to a catalog until it is killed: says each name once it is safe, or stops inside a block."""

from __future__ import annotations

import sys
from itertools import count

from lookup.topics.catalog import Catalog, SqliteStorage

__all__ = ["main"]


def main(path: str, way: str) -> None:
    """Write topics one by one, or ("block") many in one transaction that never ends."""
    catalog = Catalog(SqliteStorage(path))
    catalog.create_namespace("t/ns")
    if way == "block":
        with catalog.together():
            for number in range(2_000):
                catalog.create(f"persistent://t/ns/{number}", labels={"number": str(number % 7)})
            _say("inside")
            sys.stdin.read()  # until it is killed, or whoever has started it is gone
    for number in count():
        name = f"persistent://t/ns/{number}"
        catalog.create(name, labels={"number": str(number % 7)})
        catalog.set_pairs("labels", name, {"more": "yes"})
        _say(name)


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
