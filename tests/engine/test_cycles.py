"""What cycles of shedders and of splitters have in common: the failing part, the missing outcome, the books."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import Any, ClassVar

import pytest

from lookup.engine.cycles import FAILED, Books, Turn
from lookup.engine.policy import Instant
from lookup.errors import ContractError, ReadsError
from lookup.model import Reason, Ruling, Unload
from lookup.testing import cluster
from tests.engine.parts import DONE, Proposing, policy


class _Tested(Books[Unload]):
    """Books that object to bundles of an odd length, and to those that were changed before."""

    def _judge(self, change: Unload) -> Unload | Reason:
        if change.bundle in self._changed:
            return Reason.MOVED_THIS_CYCLE
        return Reason.NOT_OWNER if len(change.bundle) % 2 else change


def _unload(length: int) -> Unload:
    return Unload("b" * length, "b1")


def _turn(*proposals: Unload, on_error: Any = "stop", **changes: Any) -> Turn[Any]:
    tested = policy(on_error=on_error)
    return Turn("splitter", Proposing(proposals, **changes), tested, Instant(tested, cluster("b1")), {})


def _yes(_: Unload) -> Ruling:
    return Ruling(accepted=True)


def test_every_proposal_is_answered_in_its_turn() -> None:
    """What the books say to one is sent to the part before it yields the next."""
    turn, books = _turn(_unload(2), _unload(1), _unload(2)), _Tested(lambda unload: None)

    assert turn.outcome(books.ruling) is DONE
    assert turn.memory["rulings"] == [None, "not-owner", "moved-this-cycle"]


def test_a_part_sees_what_it_declares() -> None:
    """Its view is cut down like that of every part, and `view.memory` is its own."""

    class Blind(Proposing):
        reads: ClassVar[frozenset[str]] = frozenset({"view.memory"})

        def propose(self, view: Any, memory: Any) -> Any:
            memory["seen"] = view.memory is memory
            yield view.load.traffic

    turn = replace(_turn(), part=Blind())
    with pytest.raises(ReadsError, match=r"part 'proposing' read view\.load "):
        turn.outcome(_yes)

    assert turn.memory["seen"]


def test_books_carry_out_what_they_accept_and_nothing_else() -> None:
    """A probe is ruled on and refusals are counted, but neither takes place."""
    done: list[Unload] = []
    books, even, odd = _Tested(done.append), _unload(4), _unload(3)
    rulings = [
        books.ruling(even, is_probe=True),
        books.ruling(odd, is_probe=True),
        books.ruling(even),
        books.ruling(odd),
    ]
    report = books.report(DONE)

    assert [ruling.accepted for ruling in rulings] == [True, False, True, False]
    assert (done, report.accepted, report.rejected) == ([even], (even,), {Reason.NOT_OWNER: 2})


@pytest.mark.parametrize("error", [SystemExit(7), GeneratorExit(), BaseException("odd")])
def test_a_part_cannot_end_the_run_by_itself(error: BaseException) -> None:
    """`sys.exit` in a plug-in fails the cycle like anything else."""
    assert _turn(error=error, on_error="skip").outcome(_yes) == FAILED


def test_a_part_that_proposes_for_ever_has_failed() -> None:
    """What it was answered before holds."""
    turn = _turn(*repeat(_unload(1), 2_000_000), on_error="skip")

    assert turn.outcome(_yes) == FAILED
    assert "has more than 1,000,000 proposals" in str(turn.instant.failures.first)


def test_whoever_runs_it_can_end_the_run() -> None:
    """Ctrl-C is nobody's failure."""
    with pytest.raises(KeyboardInterrupt):
        _turn(error=KeyboardInterrupt(), on_error="skip").outcome(_yes)


def test_a_part_that_ends_without_an_outcome_ends_the_run() -> None:
    """Whatever `on_error` says: that is no failure, but a breach of the protocol."""
    with pytest.raises(ContractError, match="splitter 'proposing' ended with None"):
        _turn(outcome=None, on_error="skip").outcome(_yes)


@pytest.mark.parametrize(
    "wrong", [{"label": "success"}, {"reason": "tired"}, {"excess": "much"}, {"average": [0.5]}, {"short": "much"}]
)
def test_an_outcome_that_cannot_be_written_is_refused(wrong: dict[str, Any]) -> None:
    """Labels and reasons are of the closed lists, figures are numbers: each becomes a column of a table."""
    outcome: Any = replace(DONE, **wrong)

    with pytest.raises(ContractError, match="a CycleLabel, a CycleReason, numbers"):
        _turn(outcome=outcome).outcome(_yes)
