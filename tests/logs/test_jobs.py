"""Jobs: answers in order, and mistakes of the user's as values."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lookup.errors import InputError, PulsarLookupError
from lookup.logs.jobs import Failed, InProcess, Workers, attempt, parallelism, run_tasks, successes, watched_by
from tests.processes import awaited, is_gone


def _refused(text: str) -> int:
    raise InputError(text)


def test_a_users_mistake_is_a_value() -> None:
    """The driver raises it as the sentence it was."""
    failed = attempt(lambda: _refused("x: is no log"))

    assert failed == Failed(InputError, "x: is no log")
    assert isinstance(failed, Failed)
    assert str(failed.error()) == "x: is no log"


def test_other_exceptions_pass() -> None:
    """A defect of the program keeps its traceback."""
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0)


@pytest.mark.parametrize("pauses", [True, False])
def test_the_collector_rests_during_an_attempt_only(pauses: bool) -> None:
    """It is on again afterwards, whatever happened."""
    assert attempt(gc.isenabled, pauses_collector=pauses) is not pauses
    attempt(lambda: _refused("x"), pauses_collector=pauses)

    assert gc.isenabled()


def test_the_first_mistake_is_raised() -> None:
    """In the order of the items."""
    assert successes([1, 2]) == [1, 2]
    with pytest.raises(InputError, match="first"):
        successes([1, Failed(InputError, "first"), Failed(InputError, "second")])


@pytest.fixture(params=[pytest.param("spark", marks=pytest.mark.spark), "process", "forks"])
def workers(request: pytest.FixtureRequest) -> Workers:
    """Return what runs tasks: Spark's workers, this process, or forks of it."""
    if request.param == "spark":
        workers: Workers = request.getfixturevalue("spark")
        return workers
    return InProcess(2 if request.param == "forks" else 1)


def test_tasks_answer_in_the_order_of_their_items(workers: Workers) -> None:
    """Each gets its item and what all share."""
    assert run_tasks(workers, [3, 1, 2], 10, lambda item, shared: item * shared) == [30, 10, 20]
    assert run_tasks(workers, [], None, lambda item, shared: item) == []
    assert parallelism(workers) >= 1


def test_a_job_says_how_far_it_is(workers: Workers, tmp_path: Path) -> None:
    """From no task to all of them, with the rows of all, and to nothing outside `watched_by`."""
    seen: list[tuple[int, int, int]] = []
    halfway = tmp_path / "halfway"

    def watch(done: int, of: int, rows: int) -> None:
        seen.append((done, of, rows))
        if 0 < done < of:
            halfway.touch()

    def wait(is_last: bool, halfway: Path) -> None:
        deadline = time.monotonic() + 60
        while is_last and not halfway.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    with watched_by(watch):
        run_tasks(workers, [False, False, True], halfway, wait, rows=30)
    run_tasks(workers, [False], halfway, wait)

    assert (seen[0], seen[-1]) == ((0, 3, 30), (3, 3, 30))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert {of for _, of, _ in seen} == {3}
    assert any(0 < done < 3 for done, _, _ in seen)


def test_forks_run_tasks_at_the_same_time(tmp_path: Path) -> None:
    """A task that waits for the one behind it ends."""

    def meet(item: int, folder: Path) -> int:
        (folder / str(item)).touch()
        while not (folder / str(1 - item)).exists():
            time.sleep(0.01)
        return os.getpid()

    assert os.getpid() not in run_tasks(InProcess(2), [0, 1], tmp_path, meet)


def test_beside_a_thread_of_the_program_tasks_run_in_this_process() -> None:
    """A fork would not have the thread, and what waits for it there would wait for ever."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        beside = run_tasks(InProcess(2), [1, 2], None, lambda item, _: os.getpid())

    apart = run_tasks(InProcess(2), [1, 2], None, lambda item, _: os.getpid())

    assert set(beside) == {os.getpid()}
    assert os.getpid() not in apart


def test_a_defect_in_a_fork_is_raised_as_it_was() -> None:
    """With the traceback of the fork as a note."""
    with pytest.raises(ZeroDivisionError) as raised:
        run_tasks(InProcess(2), [1, 0], 1, lambda item, shared: shared // item)

    assert "test_jobs.py" in raised.value.__notes__[0]


def test_the_end_of_a_fork_is_a_sentence() -> None:
    """As that of Spark's Java is."""

    def end(item: int, shared: None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(PulsarLookupError, match="with signal 9"):
        run_tasks(InProcess(2), [1, 2], None, end)


def test_forks_end_with_the_process_that_made_them(tmp_path: Path) -> None:
    """Those that wait at once, one that works when it has answered, even if that process was killed."""
    program = (
        "import os, pathlib, time\n"
        "from lookup.logs.jobs import InProcess, run_tasks\n"
        "def work(seconds, folder):\n"
        "    (pathlib.Path(folder) / str(os.getpid())).touch()\n"
        "    time.sleep(seconds)\n"
        f"run_tasks(InProcess(3), [0, 3, 0.2, 3], {str(tmp_path)!r}, work)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        forks = awaited(lambda: [*tmp_path.iterdir()], enough=lambda found: len(found) == 3)
        time.sleep(0.5)
        process.kill()

    awaited(lambda: all(is_gone(int(fork.name)) for fork in forks))


def test_a_mistake_in_a_task_is_raised_on_the_driver(workers: Workers) -> None:
    """As the sentence it was, not as a Java stack trace."""

    def require_above(item: int, least: int) -> int:
        # Nested, because workers cannot import this module.
        if item <= least:
            raise InputError(f"{item} is wrong")
        return item

    with pytest.raises(InputError, match="1 is wrong"):
        run_tasks(workers, [3, 1, 0], 1, require_above)
