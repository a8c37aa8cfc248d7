"""Write, replay, judge and run policies for Apache Pulsar's placement decisions.

The public names of the model and of the hooks are here, and the functions for programs, which raise
`errors.PulsarLookupError`, in a sentence, for anything that the caller has to change. Everything else is imported from
its room. A name is loaded at its first use, since commands and the workers of Spark need few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookup import errors as errors
    from lookup.api.applying import apply as apply
    from lookup.api.applying import recover as recover
    from lookup.api.applying import rollback as rollback
    from lookup.api.evaluating import confirm as confirm
    from lookup.api.evaluating import evaluate as evaluate
    from lookup.api.explaining import explain as explain
    from lookup.api.explaining_runs import explain_cycle as explain_cycle
    from lookup.api.explaining_runs import explain_decision as explain_decision
    from lookup.api.explaining_runs import explain_owners as explain_owners
    from lookup.api.generating import generate as generate
    from lookup.api.ingesting import ingest as ingest
    from lookup.api.inspecting import inspect as inspect
    from lookup.api.moving import open_plan as open_plan
    from lookup.api.moving import plan as plan
    from lookup.api.results import diff as diff
    from lookup.api.results import open_run as open_run
    from lookup.api.simulating import simulate as simulate
    from lookup.api.tuning import open_tuning as open_tuning
    from lookup.api.tuning import tune as tune
    from lookup.hooks import *
    from lookup.model import *

#: From the rooms below, and listed by `__getattr__`.
__all__: list[str]

#: Rooms whose public names are all here.
_WHOLE = ("lookup.hooks", "lookup.model")
#: Modules of functions for programs, by name.
_FUNCTIONS = {
    "apply": "lookup.api.applying",
    "recover": "lookup.api.applying",
    "rollback": "lookup.api.applying",
    "confirm": "lookup.api.evaluating",
    "evaluate": "lookup.api.evaluating",
    "explain": "lookup.api.explaining",
    "explain_cycle": "lookup.api.explaining_runs",
    "explain_decision": "lookup.api.explaining_runs",
    "explain_owners": "lookup.api.explaining_runs",
    "generate": "lookup.api.generating",
    "ingest": "lookup.api.ingesting",
    "inspect": "lookup.api.inspecting",
    "open_plan": "lookup.api.moving",
    "plan": "lookup.api.moving",
    "diff": "lookup.api.results",
    "open_run": "lookup.api.results",
    "simulate": "lookup.api.simulating",
    "open_tuning": "lookup.api.tuning",
    "tune": "lookup.api.tuning",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name == "__all__":
        return [public for room in _WHOLE for public in import_module(room).__all__]
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    if name == "errors":
        return import_module("lookup.errors")
    # The script of the other project `lookup` of PyPI, whose module this package hides, imports and calls this.
    if name == "command_line":
        return import_module("lookup.__main__").command_line
    # Names of submodules are asked for here as well, while those are imported.
    if not name.startswith("_"):
        for room in map(import_module, _WHOLE):
            if name in room.__all__:
                return getattr(room, name)
    raise AttributeError(f"module 'lookup' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({"__all__", "errors", *__getattr__("__all__"), *_FUNCTIONS})
