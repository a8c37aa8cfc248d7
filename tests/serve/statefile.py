"""A state topic that is a file of JSON lines, which a decision server follows in place of Pulsar's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import Queue

from lookup.collect.observing import CaughtUp, Record, StateRecord
from lookup.collect.sources import Source, now_us
from lookup.settings import CollectSection

__all__ = ["PRELUDE", "StateFile", "connect"]

#: Python that makes a process of `lookup serve` follow the file that `collect.service_url` names.
PRELUDE = f"""
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import lookup.commands.serve
from tests.serve.statefile import connect
lookup.commands.serve.state_topic = connect
"""


class StateFile:
    """The file, as brokers write it.

    Args:
        folder: to make it in.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.jsonl"
        self.path.touch()

    @property
    def settings(self) -> str:
        """Return the section of a server's settings that names the file."""
        return f'[collect]\nservice_url = "pulsar://here{self.path}"'

    def own(self, bundle: str, broker: str, *, age_s: float = 0) -> None:
        """Make a broker the owner of a bundle, as an assignment ends; it did so some seconds ago."""
        self.write(bundle, json.dumps({"state": "Owned", "dstBroker": broker, "versionId": 1, "force": True}), age_s)

    def free(self, bundle: str) -> None:
        """Leave a bundle without owner."""
        self.write(bundle, "")

    def write(self, bundle: str, text: str, age_s: float = 0) -> None:
        """Write any record."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([bundle, text, now_us() - round(age_s * 1e6)]) + "\n")


class _FileSource(Source):
    """Reads the file from its beginning, and what is written into it."""

    def __init__(self, path: str, records: Queue[Record]) -> None:
        super().__init__("state", records)
        self._path, self._offset, self._numbers = Path(path), 0, count(1)

    def look(self) -> None:
        """Read the lines that are new, unless a file `held` beside it holds them back."""
        if self._path.with_name("held").exists():
            self.stopped.wait(0.02)
            return
        with self._path.open(encoding="utf-8") as file:
            file.seek(self._offset)
            # A line that is being written has no end yet.
            while (line := file.readline()).endswith("\n"):
                self._offset = file.tell()
                bundle, text, written_us = json.loads(line)
                self.put(StateRecord(bundle, text, written_us, (0, next(self._numbers), -1)))
        self.works()
        self.put(CaughtUp(now_us()))
        self.stopped.wait(0.02)

    def close(self) -> None:
        """Do nothing: the file is open while it is read."""


@contextmanager
def connect(section: CollectSection, records: Queue[Record]) -> Iterator[Source]:
    """Make the source of a server's settings."""
    yield _FileSource(section.service_url.removeprefix("pulsar://here"), records)
