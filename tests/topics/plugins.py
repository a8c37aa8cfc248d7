"""Plug-in files with listers, as users write them."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import dedent, indent

__all__ = ["SHOWN", "lister_plugin"]

_HEAD = '''
"""Listers of a test."""
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lookup.errors import StateError
from lookup.hooks import Lister, hookimpl
from lookup.model import Listing
'''
_CLASS = '''
@dataclass(frozen=True)
class {title}(Lister):
    """A lister."""

    name: ClassVar[str] = "{name}"
    interests: ClassVar[frozenset[str]] = frozenset({interests})

    def list_topics(self, namespace, mode, properties, catalog):
        """List topics."""
{body}
'''
_HOOK = '''
@hookimpl
def lookup_register_listers():
    """Register them."""
    return ({titles},)
'''


def lister_plugin(interests: Iterable[str] = (), **bodies: str) -> str:
    """Return the text of a plug-in.

    Args:
        interests: kinds of events beside `created` and `deleted`, of all of its listers.
        bodies: by the lister's name what stands in `list_topics`.
    """
    kinds = {"created", "deleted", *interests}
    classes = [
        _CLASS.format(title=name.title(), name=name, interests=sorted(kinds), body=indent(dedent(body), " " * 8))
        for name, body in bodies.items()
    ]
    return "\n".join([_HEAD, *classes, _HOOK.format(titles=", ".join(map(str.title, bodies)))])


#: A lister that shows the topics with a property `shown`, and fails if the local name of one is `broken`.
SHOWN = lister_plugin(
    ["created", "deleted", "properties"],
    shown="""
        names = catalog.topics(namespace, mode)
        if any(name.endswith("/broken") for name in names):
            raise StateError("there is a broken topic")
        return Listing([name for name in names if "shown" in catalog.entry(name).properties])
    """,
)
