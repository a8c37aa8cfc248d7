"""Keep the journal of an apply, with facts, requests and observations. Each is on disk before the next action.

It is a file of JSON lines beside the plan. The first line holds the whole plan, so the journal alone is enough for the
way back. A last line that was cut off by a crash does not count. One process writes at a time.

    begun       the plan, before anything has been done
    freezing    the value of `loadBalancerSheddingEnabled` that was found, before it is set to false
    thawed      it is as it was found
    requested   a step, before the request is sent, with its bundle, `from`, `to`, and since when `from` owns it
    moved       the destination owns the bundle
    elsewhere   the bundle has left its owner, and another broker than the destination owns it, with `owner`
    skipped     the step was not made, with the reason
    failed      the outcome is not known, or the cluster refused. It is looked up when the journal is continued
    stopped     no further step was begun, with the reason

Steps of the way back have `back`. Each entry has a `checksum` of itself and the one before it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from lookup.errors import Argument, InputError, StateError
from lookup.model.documents import json_value
from lookup.model.quoting import shown
from lookup.moving.plan import MovePlan, digest, plan_bytes, plan_of

__all__ = ["FINAL", "Journal", "read_journal"]

#: Version of the format.
_VERSION: Final = 1
#: Events after which a step is over.
FINAL = frozenset({"moved", "elsewhere", "skipped"})
_STEPS = FINAL | {"requested", "failed"}


class Journal:
    """The journal of one plan, and a context that prevents others from writing it, unless it is only read.

    Raises:
        InputError: if the file is no journal, is damaged, or another process writes it.
        OSError: if it cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan: MovePlan | None = None
        #: the latest entry of each step, on the way there and on the way back
        self.there: dict[int, dict[str, Any]] = {}
        self.back: dict[int, dict[str, Any]] = {}
        #: the latest entry of shedding, None if it was never changed
        self._shedding: dict[str, Any] | None = None
        self._file: IO[bytes] | None = None
        self._checksum = ""

    def __enter__(self) -> Journal:
        file = self.path.open("a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._read(whole)
            # A cut-off line would spoil the next one.
            file.truncate(len(whole))
        except BlockingIOError:
            file.close()
            raise InputError(
                f"{self.path} is being written by another `lookup apply`; wait until that has ended"
            ) from None
        except BaseException:
            file.close()
            raise
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            # A run that ended before it began leaves nothing behind.
            if self.is_new:
                self.path.unlink()
            self._file.close()

    @property
    def is_new(self) -> bool:
        """Whether nothing is in it yet."""
        return self.plan is None

    @property
    def frozen(self) -> Mapping[str, Any] | None:
        """The entry with the previous `loadBalancerSheddingEnabled`, if it was not put back, else None."""
        return self._shedding if self._shedding is not None and self._shedding["event"] == "freezing" else None

    def begin(self, plan: MovePlan) -> None:
        """Write the first entry."""
        self.write("begun", journal=_VERSION, plan=json.loads(plan_bytes(plan)))

    def write(self, event: str, **values: Any) -> None:
        """Add an entry, which is on the disk when this returns. Raise StateError if it cannot be written."""
        assert self._file is not None
        entry = {"at": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "event": event, **values}
        entry["checksum"] = digest([self._checksum, entry])
        end, rest = os.fstat(self._file.fileno()).st_size, (json.dumps(entry, ensure_ascii=False) + "\n").encode()
        try:
            # A part may fit on a disk that is nearly full, and then the rest raises.
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._file.truncate(end)
            raise StateError(Argument("journal"), f": {self.path} cannot be written: {error.strerror}") from error
        self._apply_entry(entry)

    def _read(self, content: bytes) -> None:
        for number, line in enumerate(content.splitlines(), 1):
            try:
                entry = json_value(line.decode())
                if entry["event"] == "begun" and entry["journal"] != _VERSION:
                    raise InputError(
                        f"{self.path} is a journal of version {shown(entry['journal'])}, and {_VERSION} can be read; "
                        "go on with the release that wrote it"
                    )
                self._check_entry(entry, number)
                self._apply_entry(entry)
            except (ValueError, KeyError, TypeError):
                text = shown(line[:60].decode(errors="replace"))
                raise InputError(
                    f"{self.path}, line {number} is not an entry of a journal: {text}; name one of `lookup apply`"
                ) from None
        if content and self.plan is None:
            raise InputError(f"{self.path} is not a journal of `lookup apply`: it begins without a plan")

    def _check_entry(self, entry: dict[str, Any], number: int) -> None:
        """Refuse an entry that is not as it was written, or does not follow the one before."""
        written = {key: value for key, value in entry.items() if key != "checksum"}
        if entry.get("checksum") != digest([self._checksum, written]):
            raise InputError(
                f"{self.path}, line {number} was changed since it was written, or a line before it is gone: its "
                "checksum does not fit; go on with the journal as `lookup apply` wrote it, or make another plan"
            )

    def _apply_entry(self, entry: dict[str, Any]) -> None:
        event = entry["event"]
        self._checksum = entry["checksum"]
        if event == "begun":
            self.plan = plan_of(entry["plan"], f"the plan in {self.path}")
        elif event in _STEPS:
            (self.back if entry.get("back") else self.there)[entry["step"]] = entry
        elif event in ("freezing", "thawed"):
            self._shedding = entry


def read_journal(path: str | Path) -> Journal:
    """Read a journal that another process may be writing.

    Raises:
        InputError: if the file is no journal, or is damaged.
        OSError: if it cannot be read.
    """
    journal = Journal(path)
    content = journal.path.read_bytes()
    journal._read(content[: content.rfind(b"\n") + 1])
    if journal.plan is None:
        raise InputError(f"{path} is not a journal of `lookup apply`: it is empty")
    return journal
