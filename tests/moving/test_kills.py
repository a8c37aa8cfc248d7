"""`kill -9` at any moment of an apply: shedding is put back, the same command goes on, and nothing is moved twice.

The moments are right before and right after what changes the cluster. A few here, more with `KILLS=20`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lookup.api.applying import apply, recover, rollback
from lookup.collect.collector import Endpoints
from lookup.moving.shedding import KEY
from tests.moving.plans import written
from tests.moving.standin import StandIn, quick_how, running
from tests.processes import PATIENCE_S

#: Kills of one apply, each of another process.
_KILLS = int(os.environ.get("KILLS", "6"))


class _Killer:
    """Kills the process that runs at the next moment of a list; the moments follow each other."""

    def __init__(self, standin: StandIn, path: Path) -> None:
        self.standin, self.path = standin, path
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = ""
        self.moments: list[str] = []
        standin.on_change = self.seen

    def seen(self, when: str, what: str) -> None:
        """Kill the process if this is the moment."""
        moment = f"{when} {what.split(maxsplit=1)[0]}"
        if self.process is not None and moment == self.wanted:
            self.process.kill()
            self.process.wait()
            self.moments.append(moment)
            self.process = None

    def run(self, wanted: str) -> int:
        """Apply in a process of its own, and return how it ended."""
        self.wanted = wanted
        words = [sys.executable, "-m", "tests.moving.standin", self.standin.url, str(self.path), "freeze"]
        process = self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode in (0, -signal.SIGKILL), said.decode()
        self.process = None
        return process.returncode


@pytest.mark.parametrize("found", [None, "true"])
def test_nothing_is_moved_twice_and_nothing_stays_frozen(tmp_path: Path, found: str | None) -> None:
    """Whatever has been killed in the middle of whatever."""
    with running(max(4, _KILLS)) as standin:
        if found is not None:
            standin.configuration[KEY] = found
        before = dict(standin.configuration)
        plan = standin.plan()
        path = written(plan, tmp_path)
        journal = tmp_path / "plan.json.journal"
        killer, endpoints = _Killer(standin, path), Endpoints(None, standin.url, "pulsar://not-asked:6650")
        moments = ["before POST", "after POST", "before PUT", "after PUT", "after PUT", "before PUT"]
        for turn in range(_KILLS):
            assert killer.run(moments[turn % len(moments)]) == -signal.SIGKILL

            # Half of the time somebody recovers, half of the time the next apply does.
            if turn % 2:
                recover(journal, endpoints, lambda _: None)
                assert standin.configuration == before
        # In the end nothing is left to move, and shedding is being put back.
        killer.run("before DELETE" if found is None else "before POST")
        recover(journal, endpoints, lambda _: None)
        killer.process = None
        apply(path, endpoints, yes=True, how=quick_how(standin))

        assert standin.configuration == before
        assert {step.bundle: step.destination for step in plan.steps} == standin.owners
        assert {len(standin.arrivals(step.bundle)) for step in plan.steps} == {2}
        assert len(killer.moments) >= _KILLS


def test_the_way_back_takes_up_what_was_killed(tmp_path: Path) -> None:
    """A step that was asked for and not seen to end is given back as well, whether it was carried out or not."""
    with running(4) as standin:
        before = dict(standin.owners)
        path = written(standin.plan(), tmp_path)
        killer = _Killer(standin, path)
        killer.run("after PUT")
        killer.run("before PUT")
        killer.process = None

        done = rollback(
            tmp_path / "plan.json.journal",
            Endpoints(None, standin.url, "pulsar://not-asked:6650"),
            yes=True,
            how=quick_how(standin),
        )

        assert (done.is_whole, standin.owners, standin.configuration) == (True, before, {})


def test_what_others_did_after_a_kill_is_left(tmp_path: Path) -> None:
    """A step that was asked for, and whose bundle somebody else has moved since, is skipped, there and back."""
    with running(2) as standin:
        first = standin.bundles[0]
        path = written(standin.plan(), tmp_path)
        killer = _Killer(standin, path)
        killer.run("after PUT")
        killer.process = None
        standin.give(first, "c:8080")
        endpoints = Endpoints(None, standin.url, "pulsar://not-asked:6650")

        done = apply(path, endpoints, yes=True, how=quick_how(standin))
        back = rollback(tmp_path / "plan.json.journal", endpoints, yes=True, how=quick_how(standin))

        assert (done.steps("skipped"), done.steps("moved")) == ([1], [2])
        assert done.outcomes[0].reason.startswith("c:8080 owns the bundle")
        assert (back.steps("moved"), standin.owners[first]) == ([2], "c:8080")


def test_a_journal_that_was_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    """Half an entry is no entry, at any byte of the last line."""
    with running(2) as standin:
        path = written(standin.plan(), tmp_path)
        endpoints = Endpoints(None, standin.url, "pulsar://not-asked:6650")
        journal = tmp_path / "plan.json.journal"
        apply(path, endpoints, yes=True, how=quick_how(standin))
        whole = journal.read_bytes()
        lines = whole.splitlines(keepends=True)
        for cut in range(1, len(lines[-1]), 20):
            journal.write_bytes(whole[:-cut])

            assert apply(path, endpoints, yes=True, how=quick_how(standin)).is_whole
            assert [json.loads(line)["event"] for line in journal.read_bytes().splitlines()][-1] == "moved"
        assert {len(standin.arrivals(bundle)) for bundle in standin.bundles} == {2}
