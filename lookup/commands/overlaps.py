"""Whether two paths or URIs touch each other: what a command replaces must not be what it reads."""

from __future__ import annotations

import os
from typing import Literal

from pyarrow import fs as arrow_fs

from lookup.logs.sources import locate

__all__ = ["Relation", "relation"]

Relation = Literal["is", "lies in", "holds"]


def relation(one: str, other: str) -> Relation | None:
    """Say how one path or URI lies to another, None where they have nothing in common; links are followed.

    Raises:
        InputError: where a URI's scheme is none that Arrow knows.
    """
    (system, here), (other_system, there) = _place(one), _place(other)
    if not system.equals(other_system):
        return None
    if here == there:
        return "is"
    if here.startswith(_inside(there)):
        return "lies in"
    return "holds" if there.startswith(_inside(here)) else None


def _place(path: str) -> tuple[arrow_fs.FileSystem, str]:
    system, inner = locate(path)
    if isinstance(system, arrow_fs.LocalFileSystem):
        return system, os.path.realpath(inner)
    return system, inner.rstrip("/")


def _inside(folder: str) -> str:
    return folder.rstrip("/") + "/"
