"""Runs the jobs of a replay in this process, one task after the other, as a session's context does with its workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Tasks:
    items: list[Any]
    work: Callable[[Any], Any] = lambda item: item

    def map(self, work: Callable[[Any], Any]) -> _Tasks:
        return _Tasks(self.items, work)

    def collect(self) -> list[Any]:
        # Items and answers travel between processes in a real session.
        return [pickle.loads(pickle.dumps(self.work(pickle.loads(pickle.dumps(item))))) for item in self.items]


@dataclass(frozen=True)
class _Broadcast:
    value: Any

    def destroy(self) -> None:
        """Forget nothing: there is no worker."""


class _Context:
    defaultParallelism = 2  # noqa: N815  the name Spark gives it

    def broadcast(self, value: Any) -> _Broadcast:
        return _Broadcast(pickle.loads(pickle.dumps(value)))

    def parallelize(self, items: Iterable[Any], partitions: int) -> _Tasks:
        return _Tasks(list(items))


class SerialSession:
    """Stands where a Spark session stands."""

    sparkContext = _Context()  # noqa: N815  the name Spark gives it
