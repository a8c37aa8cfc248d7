"""What programs give to run tasks."""

from __future__ import annotations

import pytest

import lookup
from lookup.api.workers import check_workers
from lookup.errors import SettingsError
from lookup.logs.jobs import InProcess


@pytest.mark.parametrize("given", ["none", 2, InProcess], ids=["text", "number", "class"])
def test_what_runs_no_tasks_is_refused_in_a_sentence(given: object) -> None:
    """The argument, the value, and what it takes, from every function that has it."""
    sentence = r"^workers: is .+; .* InProcess\(\) of lookup\.logs\.jobs"

    with pytest.raises(SettingsError, match=sentence):
        lookup.evaluate({}, workers=given)
    with pytest.raises(SettingsError, match=sentence):
        lookup.ingest("here", "there", workers=given)
    with pytest.raises(SettingsError, match=sentence):
        lookup.explain_cycle("here", 0, workers=given)


def test_workers_and_their_default_pass() -> None:
    """Nothing is asked of them yet."""
    check_workers(None)
    check_workers(InProcess(2))
