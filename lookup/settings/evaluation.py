"""The evaluation file as a whole; its tables are in the modules beside this one, `loader.py` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from lookup.settings.base import WholeFile, refuse
from lookup.settings.broker import BrokerEntry
from lookup.settings.checks import cross_problems
from lookup.settings.client import ClientEntry
from lookup.settings.namespace import NamespaceEntry
from lookup.settings.policy import PolicySpec
from lookup.settings.problems import place
from lookup.settings.sections import EvaluationSection, InputsSection, VerdictSection
from lookup.settings.topology import TopologySection

__all__ = ["EvaluationFile"]

# As written an entry may also be the path of a file, which the loader replaces by what the file holds.
_Policies = Annotated[
    tuple[PolicySpec, ...],
    Field(min_length=1),
    BeforeValidator(lambda given: given, json_schema_input_type=list[PolicySpec | str]),
]


class EvaluationFile(WholeFile):
    """Everything an evaluation needs, with all files it names read into it."""

    evaluation: EvaluationSection
    """How the log is replayed."""
    verdict: VerdictSection = VerdictSection()
    """How the comparison is judged."""
    inputs: InputsSection = InputsSection()
    """Where the tables are; each may be given on the command line."""
    topology: TopologySection = TopologySection()
    """How far apart places are."""
    brokers: tuple[BrokerEntry, ...] = ()
    """Who is registered when, where there is no BROKERS table; one id may recur with disjoint intervals."""
    namespaces: tuple[NamespaceEntry, ...] = ()
    """Bundles, isolation and anti-affinity by namespace."""
    failure_domains: Mapping[str, tuple[str, ...]] = {}
    """Brokers by failure domain."""
    clients: tuple[ClientEntry, ...] = ()
    """Lookup properties of clients that sent none; the first match counts."""
    policies: _Policies
    """The policies to compare; tables, or paths of files with policies."""
    plugin_files: tuple[str, ...] = ()
    """Paths of Python files that register parts through the hooks."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        tables = {name: getattr(self, name) for name in type(self).model_fields}
        refuse([place(loc, sentence) for loc, sentence in cross_problems(tables)])
        return self
