"""Comparing what readers found in logs with the truth of a session that was kept beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["differences", "done_to_bundles", "unseen_lookups"]

_Values = Mapping[str, Any]

#: What logs and topics say of the same change is this far apart at most, µs.
_CHANGE_US = 3_000_000
#: Clients and brokers read the same clock, but not at the same moment, µs.
_CLOCK_US = 10_000


def differences(found: Iterable[_Values], true: Iterable[_Values]) -> tuple[list[_Values], list[_Values]]:
    """Return the true changes of ownership that were not found, and those found that are not true.

    A change is the same if bundle, kind, owner and boundaries are, at nearly the same time; each counts once.
    """
    invented, missing = list(found), []
    for change in true:
        same = [
            other
            for other in invented
            if all(other.get(key) == change.get(key) for key in ("bundle", "event", "broker", "boundaries"))
            and abs(other["ts"] - change["ts"]) <= _CHANGE_US
        ]
        if same:
            invented.remove(min(same, key=lambda other: abs(other["ts"] - change["ts"])))
        else:
            missing.append(change)
    return missing, invented


def done_to_bundles(truth: Iterable[_Values]) -> list[_Values]:
    """Return the changes of ownership that administrators made: of an unload one, of a transfer two, of a split one."""
    changes = []
    for row in truth:
        if row["kind"] != "admin" or row["action"] not in ("unload", "split") or "refused" in row:
            continue
        known = {"ts": row["ts"], "bundle": f"{row['namespace']}/{row['bundle']}", "broker": row["owner_before"]}
        if row["action"] == "split":
            low, high = row["bundle"].split("_")
            inside = {end for bounds in row["bundles_after"] for end in bounds.split("_") if low <= end <= high}
            changes.append({**known, "event": "split", "boundaries": sorted(inside)})
        elif row["owner_before"]:
            changes.append({**known, "event": "unloaded"})
            if row["destination"]:
                changes.append({**known, "event": "owned", "broker": row["destination"]})
    return changes


def unseen_lookups(asked: Sequence[_Values], rows: Iterable[_Values], *columns: str) -> list[_Values]:
    """Return the answered lookups of a session for which there is no row; each row counts once.

    Args:
        asked: rows of the truth that have an answer.
        columns: what must agree besides the topic: `client`, `asked_broker`, `broker`.
    """
    by_topic: defaultdict[str, list[_Values]] = defaultdict(list)
    for row in rows:
        by_topic[row["topic"]].append(row)
    unseen = []
    for lookup in asked:
        local = lookup.get("local")
        true = {
            "client": local.rpartition(":")[0] if local else None,
            "asked_broker": lookup["asked"],
            "broker": lookup["broker"],
        }
        first, last = lookup["ts"] - _CLOCK_US, lookup["ts"] + lookup["took_us"] + _CLOCK_US
        same = [
            row
            for row in by_topic[lookup["topic"]]
            if first <= row["ts"] <= last and all(row.get(column) == true[column] for column in columns)
        ]
        if same:
            by_topic[lookup["topic"]].remove(same[0])
        else:
            unseen.append(lookup)
    return unseen
