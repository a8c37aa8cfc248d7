"""Parts that run in another program, keep their memory there, and can be examined only by calls.

Such a part has `is_foreign = True`, `begin(memory)`, called once before a run with the memory of its later calls, and
`check()`, which returns a sentence if its runs are not repeatable, and raises if the part cannot be called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

from lookup.engine.policy import Policy, memory_key
from lookup.errors import ContractError, SettingsError
from lookup.model.quoting import join_names, shown

__all__ = ["Foreign", "about_foreign", "begin_foreign", "check_foreign", "foreign_of", "refuse_foreign"]


class Foreign(Protocol):
    """A part in another program."""

    def begin(self, memory: MutableMapping[str, Any]) -> None:
        """Take note of a run that begins."""

    def check(self) -> str | None:
        """Return a sentence if its runs differ from each other, None if they do not."""


def foreign_of(policy: Policy) -> list[tuple[str, Foreign]]:
    """List the foreign parts of a policy, in wrappers too, each with the key of its memory."""
    parts = [*policy.parts, *([] if policy.shedder is None else [policy.shedder])]
    return [(memory_key(part), inner) for part in parts for inner in _iter_foreign(part)]


def _iter_foreign(part: Any) -> Iterator[Foreign]:
    if getattr(part, "is_foreign", False):
        yield part
    elif isinstance(part, tuple | list):
        for each in part:
            yield from _iter_foreign(each)
    elif is_dataclass(part):
        for entry in fields(part):
            yield from _iter_foreign(getattr(part, entry.name))


def begin_foreign(policy: Policy, memory: MutableMapping[str, dict[str, Any]]) -> None:
    """Let a run of a policy begin whose memory this is."""
    for key, part in foreign_of(policy):
        part.begin(memory.setdefault(key, {}))


def check_foreign(policies: Iterable[Policy]) -> dict[str, str]:
    """Check every foreign part once, and return by policy why its runs are not repeatable.

    Raises:
        ContractError: with the policy, if a part cannot be called.
    """
    reasons: dict[str, str] = {}
    for policy in policies:
        for _, part in foreign_of(policy):
            try:
                why = part.check()
            except ContractError as error:
                raise ContractError(f"policy {policy.name!r}: {error}") from None
            if why is not None:
                reasons[policy.name] = why
    return reasons


def about_foreign(policies: Iterable[Policy], unrepeatable: Mapping[str, str]) -> list[str]:
    """Write a sentence for each policy with foreign parts about its unknown properties and the limits of its runs.

    Args:
        unrepeatable: the result of `check_foreign`.
    """
    sentences = []
    for policy in policies:
        if foreign_of(policy):
            why = unrepeatable.get(policy.name)
            clause = "" if why is None else f"{why}, so its runs are not repeatable and its replicates not paired; "
            sentences.append(
                f"policy {shown(policy.name)}: {clause}it runs in Java, where parts are not probed for salt"
            )
    return sentences


def refuse_foreign(policies: Iterable[Policy], why: str) -> None:
    """Refuse policies with foreign parts.

    Args:
        why: the end of a sentence.

    Raises:
        SettingsError: with their names.
    """
    names = [policy.name for policy in policies if foreign_of(policy)]
    if names:
        raise SettingsError(f"{join_names(names)}: runs a class in Java, {why}")
