"""The view, and what of it has to be declared."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter

import pytest

from lookup.hooks import ALL_READS
from lookup.hooks.protocols import LOAD_DETAILS
from lookup.model import ClusterView, LookupRequest
from lookup.model.view import REQUEST_READS, VIEW_READS
from lookup.testing import cluster


def test_every_field_of_a_request_can_be_declared() -> None:
    """No field is forgotten, and none is invented."""
    assert {entry.name for entry in fields(LookupRequest)} == set(REQUEST_READS)


def test_what_changes_in_a_view_is_part_of_it() -> None:
    """Everything that has to be declared exists."""
    assert VIEW_READS.keys() < {entry.name for entry in fields(ClusterView)}


@pytest.mark.parametrize("token", sorted({*VIEW_READS.values(), *LOAD_DETAILS}))
def test_what_is_declared_is_a_path_in_the_view(token: str) -> None:
    """`view.load.rates` is an attribute; `view.now` alone is short for one, whose name has its unit."""
    path = "view.now_us" if token == "view.now" else token

    attrgetter(path.removeprefix("view."))(cluster("b1:8080"))


def test_all_reads_are_all_there_is() -> None:
    """A part that declares nothing reads every field and every part."""
    assert {*REQUEST_READS, *VIEW_READS.values()} == ALL_READS
