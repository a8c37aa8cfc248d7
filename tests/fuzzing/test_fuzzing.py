"""Damaged inputs of every kind; half a minute of them here, more with `FUZZ_S=300` and others with `FUZZ_SEED=2`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from lookup.cli import main
from tests.fuzzing.damage import damaged_json
from tests.fuzzing.trials import KINDS, Sound, Trial
from tests.serve.servers import decide, lookup_entry, settings_file, started_apart, view

_SECONDS = float(os.environ.get("FUZZ_S", "30"))
_SEED = os.environ.get("FUZZ_SEED", "1")
#: Longer than any command needs for inputs of this size, on a busy machine as well.
_HANG_S = 10
_CODES = {0, 1, 2, 3, 4, 5}


class _HangError(BaseException):
    """A command went on for too long; no handler of exceptions takes it."""


@contextmanager
def _hanging_after(seconds: int) -> Iterator[None]:
    """Interrupt what goes on for longer."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _HangError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with sound inputs and the results of an evaluation of them."""
    folder = tmp_path_factory.mktemp("sound")
    made = Sound.made_in(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        made.evaluated()
    finally:
        os.chdir(before)
    return folder


def _fault(trial: Trial, folder: Path) -> str | None:
    """Run a command and return what it did that no command may do."""
    try:
        with _hanging_after(_HANG_S):
            code = main(trial.words)
    except _HangError:
        return f"hangs\n{traceback.format_exc(limit=-6)}"
    except BaseException:  # noqa: BLE001  # whatever it is, it is the finding
        return f"ends in a traceback\n{traceback.format_exc(limit=-6)}"
    if code not in _CODES:
        return f"ends with exit code {code}"
    output = folder / trial.output if trial.output else None
    if output and output.exists() and any(output.iterdir()) and not (output / "manifest.json").is_file():
        return f"leaves an output without manifest: {sorted(path.name for path in output.iterdir())}"
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_sentences(
    sound: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No damage to the files of a command makes it raise, hang or leave an output without manifest."""
    monkeypatch.setenv("NO_COLOR", "1")
    ends, number, faults = time.monotonic() + _SECONDS / (len(KINDS) + 1), 0, []
    while time.monotonic() < ends:
        number += 1
        name = f"{kind}-{_SEED}-{number}".replace(" ", "-")
        folder = tmp_path / name
        shutil.copytree(sound, folder)
        monkeypatch.chdir(folder)
        trial = KINDS[kind](folder, Random(name))

        fault = _fault(trial, folder)

        printed = capsys.readouterr()
        if fault:
            faults.append(f"{folder}: lookup {' '.join(trial.words)}: {fault}\n{printed.err[-500:]}")
        else:
            shutil.rmtree(folder)

    assert number > 0
    assert not faults, f"{len(faults)} of {number}\n" + "\n".join(faults[:20])


def test_damaged_requests_leave_a_server_sound(tmp_path: Path) -> None:
    """A body that is damaged is answered with 200 or a refusal, and the next sound one is decided."""
    seen = view("a", "b", "a", usage=0.5)
    bodies = {
        "/decide": decide(seen),
        "/record": {
            "broker": "b3:8080",
            "start": "one",
            "upTo": 4,
            "dropped": 1,
            "lookups": [lookup_entry(number=1), lookup_entry(number=3, listener="internal")],
        },
        "/list": {
            "namespace": "public/default",
            "mode": "PERSISTENT",
            "properties": {},
            "topics": ["persistent://public/default/a"],
        },
    }
    dice, ends, number, answers = Random(_SEED), time.monotonic() + _SECONDS / (len(KINDS) + 1), 0, []
    with started_apart(settings_file(tmp_path)) as server:
        while time.monotonic() < ends:
            number += 1
            path = dice.choice(sorted(bodies))
            body = damaged_json(dice, json.dumps(bodies[path]).encode())
            status, content = server.ask("POST", path, body)
            if status not in {200, 400, 404, 409, 413, 415, 422, 429, 503}:
                answers.append((path, body[:300], status, content))
        sound = server.ask("POST", "/decide", decide(seen))

        assert not answers, f"{len(answers)} of {number}: {answers[:10]}"
        assert sound[0] == 200
        assert server.stop() == 0
