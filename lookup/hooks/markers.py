"""The two decorators of the hook system: `hookimpl` for plug-ins, `hookspec` for the framework's own declarations."""

from __future__ import annotations

import pluggy

__all__ = ["ENTRY_POINT_GROUP", "PROJECT", "hookimpl", "hookspec"]

#: Name under which pluggy keeps the project's hooks apart from those of others.
PROJECT = "lookup"
#: Entry-point group through which installed distributions, built-ins included, are found.
ENTRY_POINT_GROUP = "lookup"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
