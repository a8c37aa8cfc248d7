"""Check registered classes: each is a frozen dataclass with a name, and can be called as its protocol says.

`plugins` finds the classes; `answers` checks the answers of parts.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, get_args

from lookup import hooks
from lookup.errors import PluginError
from lookup.hooks.raised import guarded
from lookup.model.decision import Reason
from lookup.model.quoting import shown

__all__ = ["PROTOCOLS", "checked_name", "title_of"]

#: The protocol of each kind of classes that a plug-in can register.
PROTOCOLS: Mapping[str, type[Any]] = {
    "filters": hooks.Filter,
    "scorers": hooks.Scorer,
    "selectors": hooks.Selector,
    "shedders": hooks.Shedder,
    "splitters": hooks.Splitter,
    "split_algorithms": hooks.SplitAlgorithm,
    "listers": hooks.Lister,
    "log_readers": hooks.LogReader,
    "metrics": hooks.Metric,
}
#: Attributes that a class of a kind has besides its name and its protocol's methods.
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "filters": ("reason",),
    "listers": ("interests",),
    "metrics": ("unit", "better", "grain", "resample"),
}
#: Kinds that settings write as tables, and the keys of those tables that are no parameters.
_PARTS = ("filters", "scorers", "selectors", "shedders", "splitters", "split_algorithms", "listers")
_RESERVED = ("use", "weight")
#: Declarations of a metric that have a closed list of values.
_CHOICES = {"better": get_args(hooks.Better), "grain": get_args(hooks.Grain), "resample": get_args(hooks.Resample)}


def _methods_of(protocol: type[Any]) -> dict[str, tuple[str, ...]]:
    """Return the methods of a protocol's own, each with the names of its arguments."""
    return {
        name: tuple(inspect.signature(method).parameters)[1:]
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


_METHODS = {kind: _methods_of(protocol) for kind, protocol in PROTOCOLS.items()}
_MEMORY = _methods_of(hooks.Remembering) | _methods_of(hooks.Observing)
#: Methods that a class may leave out.
_OPTIONAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "filters": {"detail": ("request", "broker", "view"), "should_unload": ("request", "owner", "brokers", "view")},
    "scorers": _MEMORY,
    "selectors": _MEMORY,
}


def checked_name(kind: str, registered: Any) -> str:
    """Return the name of a class that was registered.

    Raises:
        PluginError: naming the class, and what its protocol asks for that it lacks.
    """
    if not isinstance(registered, type):
        raise PluginError(f"lookup_register_{kind} answered {shown(registered)}, which is not a class")
    where = f"{title_of(registered)}, registered under {kind},"
    name = getattr(registered, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginError(f"{where} has no `name`")
    if not dataclasses.is_dataclass(registered) or not registered.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # set by @dataclass
        raise PluginError(f"{where} is not a frozen dataclass")
    missing = [name for name in (*_ATTRIBUTES.get(kind, ()), *_METHODS[kind]) if not hasattr(registered, name)]
    if missing:
        raise PluginError(f"{where} has no `{missing[0]}`, which its protocol asks for")
    _refuse_signatures(kind, registered, where)
    reason = getattr(registered, "reason", None)
    if kind == "filters" and not isinstance(reason, Reason):
        raise PluginError(f"{where} rejects by reason {reason!r}; Reason.FILTERED is there for all plug-ins")
    reserved = [entry.name for entry in dataclasses.fields(registered) if entry.name in _RESERVED]
    if reserved and kind in _PARTS:
        raise PluginError(f"{where} has a parameter {reserved[0]!r}, which settings keep for themselves")
    if kind == "metrics":
        _refuse_declarations(registered, where)
    return name


def title_of(registered: type[Any]) -> str:
    """Return a class's name with its module."""
    return f"{registered.__module__}.{registered.__qualname__}"


def _refuse_signatures(kind: str, registered: type[Any], where: str) -> None:
    """Refuse methods that cannot be called: without this, a run would notice them at its first decision."""
    fields = {entry.name for entry in dataclasses.fields(registered)}
    # Every call site passes arguments by position, so a binding of that many decides.
    for name, arguments in {**_METHODS[kind], **_OPTIONAL.get(kind, {})}.items():
        member = inspect.getattr_static(registered, name, None)
        if member is None or name in fields:  # an instance has its own
            continue
        if not callable(member) and not hasattr(type(member), "__get__"):
            raise PluginError(f"{where} has {shown(member)} for its `{name}`, which must be a method")
        implicit = 0 if isinstance(member, staticmethod) else 1
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        # Of other callables, C functions among them, the parameters may be unknown: they get the benefit of the doubt.
        if not inspect.isfunction(function):
            continue
        # A decorator's own parameters count, not those of what it wraps.
        signature = inspect.signature(function, follow_wrapped=False)
        try:
            signature.bind(*[None] * (implicit + len(arguments)))
        except TypeError:
            taken = f"`{name}({', '.join(list(signature.parameters)[implicit:])})`"
            right = f"`{name}({', '.join(arguments)})`, as its protocol has it"
            raise PluginError(f"{where} has {taken}, which cannot be called as {right}") from None


def _refuse_declarations(registered: type[Any], where: str) -> None:
    """Refuse a metric that cannot be made, or whose declarations have no meaning."""
    # Declarations may be properties, so they are read from an instance, in the same guard.
    with guarded(f"{where} cannot be made without parameters: "):
        metric = registered()
        names = ("name", "unit", *_CHOICES, "every_key", "luck", "bounds", "question")
        declared: dict[str, Any] = {name: getattr(metric, name, None) for name in names}
    if ":" in declared["name"] or not declared["name"].isprintable():
        right = "a text without control characters and ':', which parts a metric from its key, would be right"
        raise PluginError(f"{where} has {shown(declared['name'])} for its `name`; {right}")
    if not isinstance(declared["unit"], str) or not declared["unit"].isprintable() or not declared["unit"]:
        raise PluginError(f'{where} has {shown(declared["unit"])} for its `unit`; a text like "ratio" would be right')
    for name, choices in _CHOICES.items():
        if not isinstance(declared[name], str) or declared[name] not in choices:
            right = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r} would be right"
            raise PluginError(f"{where} has {shown(declared[name])} for its `{name}`; {right}")
    keys = declared["every_key"]
    if keys is not None and not (isinstance(keys, tuple) and all(isinstance(key, str) for key in keys)):
        right = "a tuple of texts, or None where keys depend on the log, would be right"
        raise PluginError(f"{where} has {shown(keys)} for its `every_key`; {right}")
    luck, sources = declared["luck"], get_args(hooks.Luck)
    if luck is not None and not (isinstance(luck, tuple) and set(map(str, luck)) <= {*sources}):
        right = f"a tuple of {', '.join(map(repr, sources[:-1]))} and {sources[-1]!r}, or some of them, would be right"
        raise PluginError(f"{where} has {shown(luck)} for its `luck`; {right}")
    bounds, question = declared["bounds"], declared["question"]
    if bounds is not None and not _is_range(bounds):
        right = "a pair of numbers, the least and the largest value, would be right"
        raise PluginError(f"{where} has {shown(bounds)} for its `bounds`; {right}")
    if question is not None and question not in get_args(hooks.Question):
        right = f"{' or '.join(map(repr, get_args(hooks.Question)))} would be right"
        raise PluginError(f"{where} has {shown(question)} for its `question`; {right}")


def _is_range(bounds: object) -> bool:
    """Return whether an object is a pair of ascending numbers, infinite ones among them."""
    match bounds:
        case (int() | float() as least, int() | float() as most):
            return least < most
    return False
