"""`lookup topics properties ...`: the properties of topics, which listers filter by."""

from __future__ import annotations

from operator import attrgetter

from lookup.commands.topic_pairs import PairsKind, get_command, remove_command, set_command
from lookup.topics.catalog import Catalog

__all__ = ["GET", "REMOVE", "SET"]

_PROPERTIES = PairsKind(
    "properties",
    set_flags=("-p", "--property"),
    set_help={"metavar": "KEY=VALUE", "help": "the same; repeatable"},
    remove_flags=("-k", "--key"),
    remove_help={"metavar": "KEY", "help": "the same; repeatable"},
    read=attrgetter("properties"),
    write=Catalog.set_properties,
    remove=Catalog.remove_properties,
)

SET = set_command(
    _PROPERTIES,
    ("lookup topics properties set orders -p team=billing -p stage=raw", "two properties; others stay"),
)
GET = get_command(_PROPERTIES, ("lookup topics properties get orders --format json", "as a JSON object"))
REMOVE = remove_command(_PROPERTIES, ("lookup topics properties remove orders -k stage", "one property"))
