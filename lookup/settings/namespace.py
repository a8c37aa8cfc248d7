"""What an evaluation says of namespaces: bundles, isolation, anti-affinity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from lookup.errors import InvalidNameError
from lookup.model.bundles import HASH_END
from lookup.model.names import NamespaceName
from lookup.model.quoting import shown
from lookup.settings.base import Count, Positive, Strict, refuse

__all__ = ["IsolationEntry", "NamespaceEntry", "parse_boundaries"]


class IsolationEntry(Strict):
    """Hosts a namespace may use; regular expressions that match a whole host name."""

    primary: tuple[str, ...] = Field(min_length=1)
    """Hosts to use."""
    secondary: tuple[str, ...] = ()
    """Hosts to use as well where too few primaries are left."""
    min_limit: Count = 1
    """Below this many primaries the secondaries join."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse([*_bad_patterns("primary", self.primary), *_bad_patterns("secondary", self.secondary)])
        return self


class NamespaceEntry(Strict):
    """One namespace; one that is not named has `evaluation.default_bundles` bundles and no policies."""

    name: str
    """`tenant/namespace`."""
    bundles: Positive | None = Field(default=None, le=1 << 16)
    """Number of bundles, equal shares of the hash circle."""
    boundaries: tuple[str, ...] | None = None
    """Instead of `bundles`: boundaries as hexadecimal texts, from 0x00000000 to 0xffffffff."""
    anti_affinity_group: str | None = None
    """Group of namespaces that should not share a broker or failure domain."""
    isolation: tuple[IsolationEntry, ...] = ()
    """Isolation policies."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = []
        try:
            NamespaceName.parse(self.name)
        except InvalidNameError as error:
            problems.append(f"name: {error}")
        if self.bundles is not None and self.boundaries is not None:
            problems.append("bundles: give bundles or boundaries, not both")
        if self.boundaries is not None:
            problems += _bad_boundaries(self.boundaries)
        refuse(problems)
        return self


def parse_boundaries(texts: Sequence[str]) -> tuple[int, ...]:
    """Read boundaries written as hexadecimal numbers.

    Raises:
        ValueError: where a text is no hexadecimal number.
    """
    return tuple(int(text, 16) for text in texts)


def _bad_boundaries(texts: Sequence[str]) -> list[str]:
    wanted = "should ascend from 0x00000000 to 0xffffffff"
    try:
        numbers = parse_boundaries(texts)
    except ValueError:
        return [f"boundaries: {wanted}, hexadecimal, not {list(texts)}"]
    ascending = all(low < high for low, high in pairwise(numbers))
    right = len(numbers) > 1 and ascending and numbers[0] == 0 and numbers[-1] == HASH_END
    return [] if right else [f"boundaries: {wanted}, not {list(texts)}"]


def _bad_patterns(key: str, patterns: Sequence[str]) -> list[str]:
    problems = []
    for place, pattern in enumerate(patterns):
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(f"{key}[{place}]: {shown(pattern)} is no regular expression: {error}")
    return problems
