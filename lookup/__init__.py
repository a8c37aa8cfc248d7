"""pulsar-lookup: Apache Pulsar's placement decisions as policies one can write, replay, judge and run.

The public names of the model and of the hooks are here, and `evaluate`, `explain`, `explain_run` and `ingest`, which
are loaded when first named: they need packages that the core does without. Everything else is imported from its room.
"""

from importlib import import_module
from typing import Any

from lookup import hooks as _hooks
from lookup import model as _model
from lookup.hooks import *
from lookup.model import *

__all__ = [*_hooks.__all__, *_model.__all__]  # noqa: PLE0604  both are lists of names

#: Functions that bring packages of an extra with them, by name.
_LATER = {
    "evaluate": "lookup.api.evaluating",
    "explain": "lookup.api.explaining",
    "explain_run": "lookup.api.explaining_runs",
    "ingest": "lookup.api.ingesting",
}


def __getattr__(name: str) -> Any:
    """Load a function for programs when it is first named."""
    if name not in _LATER:
        raise AttributeError(f"module 'lookup' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    """List the functions for programs as well, loaded or not."""
    return sorted({*globals(), *_LATER})
