"""Steps are checked, asked for, seen and paced; whatever goes wrong is named, and nothing is forced."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event, Timer

import pytest

from lookup.api.applying import apply, recover, rollback
from lookup.collect.collector import Endpoints
from lookup.errors import InputError
from lookup.moving.applying import Applied, Pace
from lookup.moving.guards import Tolerances
from lookup.moving.journal import Journal
from lookup.moving.plan import MovePlan
from lookup.moving.shedding import KEY
from tests.moving.plans import written
from tests.moving.standin import BROKERS, StandIn, quick_how, running


@pytest.fixture
def standin() -> Iterator[StandIn]:
    """Run a cluster of six bundles."""
    with running() as started:
        yield started


def _endpoints(standin: StandIn) -> Endpoints:
    return Endpoints(None, standin.url, "pulsar://not-asked:6650")


def _applied(standin: StandIn, folder: Path, plan: MovePlan | None = None, **fields: object) -> Applied:
    """Apply a plan; the same one again if there is one in the folder."""
    path = folder / "plan.json"
    if not path.exists():
        written(plan or standin.plan(), folder)
    return apply(path, _endpoints(standin), yes=True, how=quick_how(standin, **fields))


def test_every_step_ends_at_its_destination(standin: StandIn, tmp_path: Path) -> None:
    """One unload for each, in the order of the plan, and nothing is left."""
    plan = standin.plan()

    done = _applied(standin, tmp_path, plan)

    assert standin.unloads == [(step.bundle, step.destination) for step in plan.steps]
    assert {step.bundle: step.destination for step in plan.steps} == standin.owners
    assert (done.is_whole, done.steps("moved"), done.left) == (True, [1, 2, 3, 4, 5, 6], 0)


def test_a_dry_run_changes_nothing(standin: StandIn, tmp_path: Path) -> None:
    """Neither the cluster nor the disk; it says which steps would be made, and which not."""
    path = written(standin.plan(), tmp_path)
    standin.give(standin.bundles[1], "c:8080")
    standin.unloads.clear()

    done = apply(path, _endpoints(standin), how=quick_how(standin, freeze_shedding=True))

    assert (done.is_dry, done.steps("moved"), done.steps("skipped")) == (True, [1, 3, 4, 5, 6], [2])
    assert (standin.unloads, standin.configuration, [*tmp_path.iterdir()]) == ([], {}, [path])


def test_a_bundle_that_others_moved_is_named_and_left(standin: StandIn, tmp_path: Path) -> None:
    """Elsewhere, at its destination, moved and back, without owner, split: each is skipped with what is so."""
    plan = standin.plan()
    one, two, three, four, five, six = standin.bundles
    standin.give(one, "c:8080")
    standin.give(two, "c:8080")
    standin.give(three, "a:8080")
    standin.give(three, "b:8080")
    standin.give(three, "c:8080")
    standin.give(four, None)
    standin.split(five)

    done = _applied(standin, tmp_path, plan)

    assert standin.unloads == [(six, "a:8080")]
    named = ("not a:8080", "owns the bundle already", "c:8080 owns the bundle", "has no owner", "was split", "")
    assert all(name in outcome.reason for name, outcome in zip(named, done.outcomes, strict=True))
    assert (done.is_whole, done.left) == (False, 0)


def test_a_plan_with_skipped_steps_ends_the_same_way_again(standin: StandIn, tmp_path: Path) -> None:
    """The second run has nothing left to make, and still not everything is as planned; nor does a dry run say so."""
    plan = standin.plan()
    standin.give(standin.bundles[1], "c:8080")

    first, again = (_applied(standin, tmp_path, plan) for _ in range(2))
    dry = apply(tmp_path / "plan.json", _endpoints(standin), how=quick_how(standin))

    assert [done.is_whole for done in (first, again, dry)] == [False] * 3
    assert [(done.earlier, len(done.outcomes)) for done in (first, again, dry)] == [(0, 6), (1, 0), (1, 0)]
    back = rollback(tmp_path / "plan.json.journal", _endpoints(standin), yes=True, how=quick_how(standin))
    assert (back.is_whole, back.earlier) == (True, 0)


def test_another_owner_than_asked_for_is_named(standin: StandIn, tmp_path: Path) -> None:
    """The bundle has left its owner all the same, so that the way back takes it from where it is."""
    standin.odd[standin.bundles[0]] = "c:8080"

    done = _applied(standin, tmp_path)

    assert (done.outcomes[0].event, done.outcomes[0].reason) == ("elsewhere", "c:8080 owns the bundle now")
    standin.odd.clear()
    back = rollback(tmp_path / "plan.json.journal", _endpoints(standin), yes=True, how=quick_how(standin))
    assert back.is_whole
    assert [standin.owners[bundle] for bundle in standin.bundles] == [*BROKERS] * 2


def test_an_unload_that_somebody_else_makes_meanwhile_is_named(standin: StandIn, tmp_path: Path) -> None:
    """The step is made, and it is said that it was not the only one."""

    def interfere(when: str, what: str) -> None:
        if when == "before" and "unload" in what and len(standin.unloads) == 0:
            standin.give(standin.bundles[0], "c:8080")

    standin.on_change = interfere

    done = _applied(standin, tmp_path, standin.plan(1))

    assert (done.outcomes[0].event, "somebody else" in done.outcomes[0].reason) == ("moved", True)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((409, '{"reason": "inactive destination"}'), "HTTP status 409: inactive destination"),
        ((500, '{"reason": "\\n --- An unexpected error\\nStacktrace"}'), "HTTP status 500: --- An unexpected error"),
        ((200, "<html>a page"), "is still owned by b:8080"),
        ("ignore", "is still owned by b:8080"),
    ],
)
def test_a_step_that_is_refused_ends_it(
    standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object, sentence: str
) -> None:
    """Nothing further is asked for; the next run looks it up, and makes it if it can."""
    monkeypatch.setattr("lookup.moving.applying._STEP_S", 2.0)
    monkeypatch.setattr("lookup.moving.applying._TRACELESS_S", 0.5)
    standin.odd[standin.bundles[1]] = answer

    done = _applied(standin, tmp_path, freeze_shedding=True)

    assert sentence in str(done.stopped)
    assert (done.steps("moved"), done.steps("failed"), done.left) == ([1], [2], 5)
    assert (len(standin.unloads), standin.configuration) == (2, {})
    standin.odd.clear()
    assert _applied(standin, tmp_path).steps("moved") == [2, 3, 4, 5, 6]


def test_a_request_without_answer_is_looked_up(standin: StandIn, tmp_path: Path) -> None:
    """The connection broke after the broker had begun: the state topic says that it is done."""
    standin.odd[standin.bundles[0]] = "vanish"

    assert _applied(standin, tmp_path).is_whole
    assert standin.arrivals(standin.bundles[0]) == ["a:8080", "b:8080"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_may_not_unload_is_said_at_once(standin: StandIn, tmp_path: Path, status: int) -> None:
    """One sentence with the right that is missing; nothing was moved, nothing is frozen."""
    standin.odd = dict.fromkeys(standin.bundles, (status, '{"reason": "reader is not a superuser"}'))

    with pytest.raises(InputError, match=rf"says {status}, .* token must be"):
        _applied(standin, tmp_path, freeze_shedding=True)

    assert (len(standin.unloads), standin.configuration) == (1, {})


def test_a_token_that_may_not_set_configuration_moves_nothing(standin: StandIn, tmp_path: Path) -> None:
    """Shedding cannot be kept still, so no step is begun."""
    standin.answers[f"brokers/configuration/{KEY}/false"] = (403, '{"reason": "no superuser"}')

    with pytest.raises(InputError, match=f"{KEY} .* 403, no superuser"):
        _applied(standin, tmp_path, freeze_shedding=True)

    assert (standin.unloads, standin.configuration) == ([], {})


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("brokers/east", "cluster east: HTTP status 401"),
        ("brokers/configuration/values", f"{KEY} is set: .* status 401"),
    ],
)
def test_a_token_that_may_not_read_is_said_before_anything_moves(
    standin: StandIn, tmp_path: Path, path: str, sentence: str
) -> None:
    """Brokers and configuration are for superusers as well."""
    standin.answers[path] = (401, "")

    with pytest.raises(InputError, match=sentence):
        _applied(standin, tmp_path, freeze_shedding=True)

    assert (standin.unloads, standin.configuration) == ([], {})


@pytest.mark.parametrize("found", [None, "true", "false"])
def test_shedding_is_off_meanwhile_and_then_as_it_was(standin: StandIn, tmp_path: Path, found: str | None) -> None:
    """With a value, or without one; what was off already is not touched at all."""
    if found is not None:
        standin.configuration[KEY] = found
    seen = []
    standin.on_change = lambda when, what: seen.append((what.partition(" ")[0], standin.configuration.get(KEY)))

    _applied(standin, tmp_path, freeze_shedding=True)

    assert {value for method, value in seen if method == "PUT"} == {"false"}
    assert standin.configuration.get(KEY) == found
    assert found != "false" or {method for method, _ in seen} == {"PUT"}


@pytest.mark.parametrize("found", ["1/../x", True, "TRUE"])
def test_only_a_boolean_is_put_back(standin: StandIn, tmp_path: Path, found: object) -> None:
    """A journal with anything else is refused, and nothing is sent."""
    path, standin.configuration[KEY] = tmp_path / "journal", "false"
    with Journal(path) as journal:
        journal.begin(standin.plan())
        journal.write("freezing", found=found)

    with pytest.raises(InputError, match=r"journal: found is .* null, true or false"):
        recover(path, _endpoints(standin))

    assert standin.configuration == {KEY: "false"}


def test_a_switch_that_is_no_boolean_is_not_touched(standin: StandIn, tmp_path: Path) -> None:
    """Nobody could put it back."""
    standin.configuration[KEY] = "maybe"

    with pytest.raises(InputError, match="is 'maybe' by dynamic configuration, and should be true or false"):
        _applied(standin, tmp_path, freeze_shedding=True)

    assert (standin.configuration, standin.unloads) == ({KEY: "maybe"}, [])


def test_shedding_that_somebody_else_set_stays(standin: StandIn, tmp_path: Path) -> None:
    """What was set while steps were made is not overwritten by what was found before."""
    said: list[str] = []
    standin.on_change = lambda when, what: standin.configuration.update({KEY: "true"} if "unload" in what else {})

    _applied(standin, tmp_path, freeze_shedding=True, say=said.append)

    assert (standin.configuration, f"{KEY} was set to 'true'" in said[-1]) == ({KEY: "true"}, True)


def test_a_broker_that_is_lost_stops_it_within_a_step(standin: StandIn, tmp_path: Path) -> None:
    """The step under way is waited for, no other is begun; the way back restores those that are alive."""
    standin.on_change = lambda when, what: standin.lose("a:8080") if len(standin.unloads) == 3 else None

    done = _applied(standin, tmp_path, freeze_shedding=True)

    assert str(done.stopped).startswith("lost: a:8080 ")
    assert (done.steps("moved"), done.left, standin.configuration) == ([1, 2, 3], 3, {})
    standin.on_change = lambda when, what: None
    back = rollback(tmp_path / "plan.json.journal", _endpoints(standin), yes=True, how=quick_how(standin))
    assert [(one.step, one.event) for one in back.outcomes] == [(3, "moved"), (2, "moved"), (1, "skipped")]
    assert [standin.owners[bundle] for bundle in standin.bundles[:3]] == ["b:8080", "b:8080", "c:8080"]


def test_the_way_back_restores_every_owner(standin: StandIn, tmp_path: Path) -> None:
    """Also in two goes, each bundle once; what others have moved since is named and left."""
    _applied(standin, tmp_path)
    journal = tmp_path / "plan.json.journal"
    standin.give(standin.bundles[3], "c:8080")
    standin.unloads.clear()

    first = rollback(journal, _endpoints(standin), yes=True, how=quick_how(standin, pace=Pace(0.0, max_moves=2)))
    second = rollback(journal, _endpoints(standin), yes=True, how=quick_how(standin))

    assert (first.steps("moved"), first.left) == ([6, 5], 4)
    assert (second.steps("moved"), second.steps("skipped")) == ([3, 2, 1], [4])
    assert [standin.owners[bundle] for bundle in standin.bundles] == [*BROKERS, "c:8080", *BROKERS[1:]]
    assert len(standin.unloads) == 5
    with pytest.raises(InputError, match="was rolled back"):
        _applied(standin, tmp_path)


@pytest.mark.parametrize("in_flight", [1, 3])
def test_steps_begin_and_end_at_the_rate(standin: StandIn, tmp_path: Path, in_flight: int) -> None:
    """However many may be under way: neither more are begun than allowed, nor does one follow the end of another."""
    times: dict[str, list[float]] = {"before": [], "after": []}

    def wait(when: str, what: str) -> None:
        if when == "before":
            times[when].append(time.monotonic())
            time.sleep(0.4)
        else:
            times[when].append(time.monotonic())

    standin.on_change = wait

    _applied(standin, tmp_path, standin.plan(4), pace=Pace(0.3, in_flight))

    begun, ended = times["before"], times["after"]
    assert min(later - sooner for sooner, later in pairwise(begun)) >= 0.3
    assert in_flight > 1 or min(later - end for end, later in zip(ended, begun[1:], strict=False)) >= 0.3


def test_several_steps_are_under_way_if_wanted(standin: StandIn, tmp_path: Path) -> None:
    """Slow unloads overlap, as many as may."""
    under_way, most = set[str](), [0]

    def wait(when: str, what: str) -> None:
        if when == "before":
            under_way.add(what)
            most[0] = max(most[0], len(under_way))
            time.sleep(0.5)
        under_way.discard(what if when == "after" else "")

    standin.on_change = wait

    assert _applied(standin, tmp_path, pace=Pace(0.0, 2)).is_whole
    assert most == [2]


def test_it_ends_after_the_step_under_way(standin: StandIn, tmp_path: Path) -> None:
    """The step is waited for and known, shedding put back, the rest is left for the same command."""
    stop = Event()
    standin.on_change = lambda when, what: stop.set() if len(standin.unloads) == 2 else None

    done = _applied(standin, tmp_path, stop=stop, freeze_shedding=True)

    assert (done.is_interrupted, done.steps("moved"), done.left, standin.configuration) == (True, [1, 2], 4, {})
    assert _applied(standin, tmp_path).steps("moved") == [3, 4, 5, 6]


def test_a_rest_that_fails_stops_it(standin: StandIn, tmp_path: Path) -> None:
    """An error of the admin REST is a reason to stop, not one to try the next step."""
    standin.on_change = lambda when, what: standin.answers.update({"brokers/east": (500, "")})

    done = _applied(standin, tmp_path)

    assert (done.steps("moved"), done.left) == ([1], 5)
    assert str(done.stopped).endswith("HTTP status 500")


def test_a_pause_is_ended_by_a_guard(standin: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards are looked at between steps as well, however long the pause."""
    monkeypatch.setattr("lookup.moving.applying._GUARD_S", 0.1)
    Timer(1.0, lambda: standin.lose("c:8080")).start()
    began = time.monotonic()

    done = _applied(standin, tmp_path, pace=Pace(600.0))

    assert (done.steps("moved"), str(done.stopped)[:12]) == ([1], "lost: c:8080")
    assert time.monotonic() - began < 30.0


def test_loads_that_are_old_stop_it(standin: StandIn, tmp_path: Path) -> None:
    """A broker that reports no more is not known to be well."""
    done = _applied(standin, tmp_path, tolerances=Tolerances(max_load_age_s=1e-6))

    assert (standin.unloads, done.left) == ([], 6)
    assert "1e-06 s are allowed" in str(done.stopped)


def test_a_plan_of_another_cluster_is_refused(standin: StandIn, tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(InputError, match=r"'west', .* 'east'"):
        _applied(standin, tmp_path, standin.plan(cluster="west"))

    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_an_address_that_answers_with_a_page_is_refused(standin: StandIn, tmp_path: Path) -> None:
    """One sentence, before anything is written."""
    standin.answers["clusters"] = (200, "<html>welcome")

    with pytest.raises(InputError, match=r"cluster must be given, .*answered clusters with no JSON"):
        _applied(standin, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
