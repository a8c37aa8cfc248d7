"""Which areas there are: the tables of all groups in one. What an area means is in the module of its group."""

from __future__ import annotations

from collections.abc import Mapping

from tests.vectors import assigning, legacy, loads, modular, names, placement, splitting, states, topics, transfer
from tests.vectors.reading import Handler

__all__ = ["AREAS"]

_GROUPS: tuple[Mapping[str, Handler], ...] = (
    names.AREAS,
    legacy.AREAS,
    modular.AREAS,
    splitting.AREAS,
    loads.AREAS,
    transfer.AREAS,
    placement.AREAS,
    assigning.AREAS,
    states.AREAS,
    topics.AREAS,
)

#: Area -> what puts its inputs to the API.
AREAS: Mapping[str, Handler] = {area: handler for group in _GROUPS for area, handler in group.items()}
