"""Hold what a look at a log finds in settings: something without effect on it, or out of proportion to it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in valid settings that has no effect on a log, or one that was hardly meant."""

    #: name of the rule that found it, a `LintRule`; a run of an earlier version may have others
    rule: str
    what: str
    how_often: str
    evidence: str
    remedy: str

    @property
    def sentence(self) -> str:
        """Return all of it as one sentence."""
        return f"{self.what} ({self.how_often}): {self.evidence}; {self.remedy}"
