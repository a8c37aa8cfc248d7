"""Bundles by their names alone: which one holds a hash among the boundaries of the moment, and what splits leave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from tests.replay.oracle.reading import Row

__all__ = ["bundle_at", "children_of", "ends_of", "holds", "split_bundle"]

_HASH_END = 0xFFFFFFFF


def ends_of(bundle: str) -> tuple[int, int]:
    """Return the hashes a bundle lies between."""
    low, _, high = bundle.rpartition("/")[2].partition("_")
    return int(low, 16), int(high, 16)


def bundle_at(namespace: str, hashed: int, boundaries: Sequence[int]) -> str:
    """Return the bundle that holds a hash."""
    place = min(bisect_right(boundaries, hashed), len(boundaries) - 1) - 1
    return f"{namespace}/0x{boundaries[place]:08x}_0x{boundaries[place + 1]:08x}"


def children_of(event: Row) -> list[str]:
    """Return what a split leaves."""
    namespace, (low, high) = event["bundle"].rpartition("/")[0], ends_of(event["bundle"])
    inside = sorted({int(text, 16) for text in event["boundaries"] if low < int(text, 16) < high})
    points = [low, *inside, high]
    return [f"{namespace}/0x{a:08x}_0x{b:08x}" for a, b in pairwise(points)]


def split_bundle(boundaries: dict[str, list[int]], bundle: str, children: Sequence[str]) -> bool:
    """Split a bundle if there is such a bundle now and the split leaves at least two; tell whether it did."""
    namespace, (low, high) = bundle.rpartition("/")[0], ends_of(bundle)
    known = boundaries.get(namespace, [])
    if len(children) < 2 or (low, high) not in pairwise(known):
        return False
    boundaries[namespace] = sorted({*known, *(end for child in children for end in ends_of(child))})
    return True


def holds(low: int, high: int, hashed: int) -> bool:
    """Tell whether a hash lies between two others; the last bundle holds its upper end."""
    return low <= hashed < high or hashed == high == _HASH_END
