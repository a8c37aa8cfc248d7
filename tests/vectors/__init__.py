"""Runs examples of Pulsar's load management, kept as data, through the public API and compares what comes out.

An example, a vector, has an area, an input and what is expected. Each group of areas has a module here that knows how
an area's input is put to parts, model and engine; reading, comparing and telling are the same for all. From a shell:
`python -m tests.vectors FILE... [--area A] [--format table|json]`.
"""

from __future__ import annotations

from tests.vectors.areas import AREAS
from tests.vectors.comparing import Difference, differences
from tests.vectors.reading import Handler, NotUnderstood, Vector, read_vectors
from tests.vectors.run import Outcome, main, run_vector

__all__ = [
    "AREAS",
    "Difference",
    "Handler",
    "NotUnderstood",
    "Outcome",
    "Vector",
    "differences",
    "main",
    "read_vectors",
    "run_vector",
]
