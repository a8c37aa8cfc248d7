"""Write the commands that a report asks its reader to type next: the one place of the library that names flags."""

from __future__ import annotations

import shlex

__all__ = ["confirmation", "explanation"]


def confirmation(folder: str, candidate: str | None, *, seeds: int | None = None, on_other_log: bool = False) -> str:
    """Return the command that replays a candidate of a run and its incumbent once more.

    Args:
        candidate: None for the winner of the run.
        seeds: how many; None: as many as the run had.
        on_other_log: leave a place for another log.
    """
    words = ["lookup", "evaluate", "--confirm", folder]
    words += [] if candidate is None else ["--candidate", candidate]
    words += [] if seeds is None else ["--set", f"evaluation.seeds={seeds}"]
    words += ["--lookups", "LOG"] if on_other_log else []
    return shlex.join([*words, "--output", "confirmed" if seeds is None and not on_other_log else "more"])


def explanation(folder: str, policy: str, incumbent: str) -> str:
    """Return the command that lists the owners of a topic, for which it leaves a place, under two policies of a run."""
    return shlex.join(["lookup", "explain", folder, "--policy", policy, "--policy", incumbent, "--topic", "TOPIC"])
