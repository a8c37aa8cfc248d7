"""Which policies make no sense where every lookup is decided alone: those that own, remember or move something."""

from __future__ import annotations

from collections.abc import Iterable

from lookup.engine.policy import Policy

__all__ = ["shared_problems"]


def shared_problems(policies: Iterable[Policy]) -> list[str]:
    """Return why policies cannot be replayed under shared ownership, a sentence each; empty where they can."""
    return [
        f'policy {policy.name!r} cannot be replayed under ownership = "shared": it {reason}'
        for policy in policies
        for reason in _needs(policy)
    ]


def _needs(policy: Policy) -> list[str]:
    needs = []
    if policy.shedder is not None:
        needs.append(f"has a shedder, {policy.shedder.name!r}, and no bundle has an owner to be taken from")
    if policy.is_stateful:
        needs.append("keeps memory between decisions, whose order is not defined")
    readers = [
        part.name for part, reads in zip(policy.parts, policy.part_reads, strict=True) if "view.ownership" in reads
    ]
    if readers:
        needs.append(f"reads view.ownership ({', '.join(readers)}), and nobody owns anything")
    return needs
