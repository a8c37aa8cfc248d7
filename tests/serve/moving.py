"""Decision servers that make the moves of their plans, in the cluster that `tests.moving.standin` stands in for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.moving.standin import StandIn, running
from tests.moving.worlds import World
from tests.serve.servers import Server, settings_file, started

__all__ = ["crowded", "looks", "moving_settings", "serving", "window"]

#: ZooKeeper that there is not.
NOWHERE = "127.0.0.1:1"


@contextmanager
def crowded(folder: Path, *, minutes: int = 10) -> Iterator[StandIn]:
    """Run a cluster whose first broker owns most, recorded in `collected` for some minutes until now."""
    world = World.crowded()
    world.minutes = minutes
    world.start_us = time.time_ns() // 1000 - (minutes - 1) * 60_000_000
    world.write(folder / "collected")
    with running(1) as standin:
        standin.brokers = world.ids
        standin.bundles = [*world.owners]
        standin.owners.clear()
        standin.records.clear()
        for bundle, owner in world.owners.items():
            standin.give(bundle, owner)
        # Since then, as the record has it.
        standin.records = [(bundle, data, world.start_us) for bundle, data, _ in standin.records]
        yield standin


def window(begin_h: int, end_h: int) -> str:
    """Return a window from so many hours after now to so many."""
    now = datetime.now(UTC)
    begin, end = (now + timedelta(hours=hours) for hours in (begin_h, end_h))
    return f"{begin:%H:%M}-{end:%H:%M}"


def moving_settings(folder: Path, standin: StandIn, zookeeper: str = NOWHERE, **more: object) -> Path:
    """Write settings, in a folder, of a server that makes moves as fast as they go, and plans every ten minutes."""
    folder.mkdir(exist_ok=True)
    known = {"mode": "apply", "zookeeper": zookeeper, "rate": "1000/s", "max_moves": 6}
    lines = [f"{key} = {json.dumps(value)}" for key, value in (known | more).items()]
    collect = f'[collect]\nadmin = "{standin.url}"\nservice_url = "pulsar://127.0.0.1:1"\nwait_s = 0.1'
    table = "\n".join([collect, "[balance]", 'record = "../collected"', 'plans = "plans"', *lines])
    path = settings_file(folder, table, policies="")
    path.write_text(path.read_text(encoding="utf-8").replace('cluster = "c1"', 'cluster = "east"'), encoding="utf-8")
    return path


def serving(settings: Path, standin: StandIn, prelude: str = "") -> AbstractContextManager[Server]:
    """Start a server that reads the state topic of the stand-in."""
    code = (
        "import lookup.api.applying as applying\nfrom tests.moving.standin import reading\n"
        f"applying.reading = lambda *_: reading({standin.url!r})\n{prelude}"
    )
    return started(settings, prelude=code)


def looks(server: Server, outcome: str) -> list[dict[str, Any]]:
    """Return the looks so far that led to an outcome, the latest first."""
    _, answer = server.ask("GET", "/balance")
    return [look for look in answer["looks"] if look["outcome"] == outcome]
