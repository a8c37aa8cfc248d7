"""A policy whose parts fail: it stops, goes on without them, or declines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest

from lookup.engine.policy import Policy
from lookup.errors import ContractError, PolicyError
from lookup.model import Broker, Candidates, Reason
from tests.engine.asked import ASKED, VIEW, ballot_of
from tests.engine.parts import Counting, Keep, Odds, Score, instant, policy, raising


def _half_way(brokers: Candidates) -> Iterator[bool]:
    yield False
    raise KeyError("gone")


def _half_scores(brokers: Candidates) -> Iterator[float]:
    yield 0.5
    raise KeyError("gone")


@pytest.mark.parametrize(
    "part",
    [
        Keep(answer=_half_way),
        Score(answer=_half_scores),
        Odds(answer=_half_scores),
        Odds(answer=raising(ZeroDivisionError("0"))),
    ],
)
def test_stop_names_policy_part_and_request(part: Any) -> None:
    """The sentence says whose part failed, how, and what it was asked about."""
    sentence = (
        rf"policy 'tested': part '{part.name}' raised (KeyError: 'gone'|ZeroDivisionError: 0) \(\w+\.py, line \d+\); "
        r".* persistent://public/default/t \{'rack': 'a'\}"
    )
    with pytest.raises(PolicyError, match=sentence):
        ballot_of(part)


@pytest.mark.parametrize("error", [SystemExit(7), GeneratorExit(), BaseException("odd")])
@pytest.mark.parametrize("kind", [Keep, Score, Odds])
def test_a_part_cannot_end_the_run_by_itself(kind: Any, error: BaseException) -> None:
    """`sys.exit` in a plug-in fails like anything else it may raise, and `on_error` decides."""
    with pytest.raises(PolicyError, match=rf"part '{kind.name}' raised {type(error).__name__}(: | \(\w)"):
        ballot_of(kind(answer=raising(error)))
    assert ballot_of(kind(answer=raising(error)), on_error="fail-closed").declined is Reason.POLICY_ERROR


@pytest.mark.parametrize("kind", [Score, Odds])
def test_an_answer_without_end_is_a_failure(kind: Any) -> None:
    """As anything else that a part may do, and `on_error` decides; of a filter one answer too many is seen at once."""
    with pytest.raises(PolicyError, match=rf"part '{kind.name}' raised OverflowError: has more than 1,000,000 answers"):
        ballot_of(kind(answer=lambda *_: repeat(1.0)))
    with pytest.raises(ContractError, match="gave 4 answers for 3 brokers"):
        ballot_of(Keep(answer=lambda *_: repeat(True)))


@pytest.mark.parametrize("kind", [Keep, Score, Odds])
def test_an_interruption_passes_through(kind: Any) -> None:
    """Whoever presses Ctrl-C while a part is at work means the run."""
    with pytest.raises(KeyboardInterrupt):
        ballot_of(kind(answer=raising(KeyboardInterrupt())), on_error="skip")


def test_skip_keeps_the_rejections_so_far_of_a_filter() -> None:
    """A generator that raises half way has rejected the first broker and admits the rest."""
    tested = policy(Keep(answer=_half_way), on_error="skip")
    now = instant(tested, VIEW)
    ballot = tested.ballot(ASKED, now)

    assert set(ballot.odds) == {"b2", "b3"}
    assert (now.failures.count, "KeyError: 'gone'" in str(now.failures.first)) == (1, True)


def test_skip_lets_a_failed_scorer_add_nothing() -> None:
    """The other scorers decide."""
    ballot = ballot_of(Score(answer=_half_scores), Score({"b2": 1.0}), on_error="skip")

    assert dict(ballot.odds) == {"b2": 1.0}


def test_skip_lets_a_failed_selector_decline() -> None:
    """Nobody is chosen, for want of odds."""
    assert ballot_of(Odds(answer=_half_scores), on_error="skip").declined is Reason.NO_ODDS


def test_the_first_failure_is_kept_and_all_are_counted() -> None:
    """Of many failures the first message is printed."""
    tested = policy(Score(answer=_half_scores), Odds(answer=raising(ZeroDivisionError("0"))), on_error="skip")
    now = instant(tested, VIEW)
    tested.ballot(ASKED, now)

    assert now.failures.count == 2
    assert "part 'score'" in str(now.failures.first)


@pytest.mark.parametrize("error", [KeyError("gone"), SystemExit("gone")])
@pytest.mark.parametrize(("on_error", "raises"), [("stop", True), ("skip", False), ("fail-closed", False)])
def test_a_part_that_fails_to_remember_fails_like_any_other(on_error: str, raises: bool, error: BaseException) -> None:
    """With stop the run ends with a sentence, else the failure is counted and the assignment stands."""

    class Forgetful(Counting):
        def remember(self, memory: Any, request: Any, broker: Any) -> None:
            raise error

    tested: Policy = policy(Forgetful(), on_error=on_error)
    failures = instant(tested, VIEW).failures
    if raises:
        with pytest.raises(PolicyError, match=r"part 'counting' raised (KeyError|SystemExit): '?gone'?"):
            tested.remember({}, ASKED, Broker("b1"), failures)
    else:
        assert tested.remember({}, ASKED, Broker("b1"), failures)
        assert failures.count == 1


def test_every_request_that_meets_a_failure_counts_it() -> None:
    """What a part left before it failed is kept for no other request."""
    tested: Policy = policy(Keep(answer=raising(KeyError("x"))), on_error="fail-closed")
    prepared = instant(tested, VIEW)

    assert tested.ballot(ASKED, prepared) == tested.ballot(ASKED, prepared)
    assert prepared.failures.count == 2
