"""Find plug-ins, by entry point or as plain files by path, and collect and check their classes.

Each class is a frozen dataclass with a name, and can be called according to its protocol. Built-ins are loaded in the
same way. Hooks are called once. Decisions do not call this module. `answers` checks the answers of parts.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, get_args

import pluggy

from lookup import hooks
from lookup.errors import PluginError
from lookup.hooks import specs
from lookup.hooks.protocols import ENTRY_POINT_GROUP, PROJECT
from lookup.hooks.raised import guard_call, read_bounded
from lookup.model.decision import Reason
from lookup.model.quoting import shown, suggestion

__all__ = [
    "KINDS", "PROTOCOLS", "PluginContents", "PluginSource", "Registry", "checked_name", "contents_of", "load_contents",
    "load_plugins", "registry_of", "title_of",
]  # fmt: skip

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
#: Attributes that a class of a kind has in addition to its name and its protocol's methods.
_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "filters": ("reason",),
    "listers": ("interests",),
    "metrics": ("unit", "better", "grain", "resample"),
}
#: Kinds that settings write as tables, and the keys of these tables that are not parameters.
_PARTS = ("filters", "scorers", "selectors", "shedders", "splitters", "split_algorithms", "listers")
_RESERVED = ("use", "weight")
#: Declarations of a metric that have a closed list of values.
_CHOICES = {"better": get_args(hooks.Better), "grain": get_args(hooks.Grain), "resample": get_args(hooks.Resample)}


def _methods_of(protocol: type[Any]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(inspect.signature(method).parameters)[1:]
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


_METHODS = {kind: _methods_of(protocol) for kind, protocol in PROTOCOLS.items()}
_MEMORY = _methods_of(hooks.Remembering) | _methods_of(hooks.Observing)
#: Methods that a class may leave out.
_OPTIONAL: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "filters": {
        "detail": ("request", "broker", "view"),
        "is_idle": ("namespaces",),
        "should_unload": ("request", "owner", "brokers", "view"),
    },
    "scorers": _MEMORY,
    "selectors": _MEMORY,
}


def checked_name(kind: str, registered: Any) -> str:
    """Find the name of a registered class, and check the class.

    Raises:
        PluginError: with the class and the missing elements of its protocol.
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
    """Join a class's module and name."""
    return f"{registered.__module__}.{registered.__qualname__}"


def _refuse_signatures(kind: str, registered: type[Any], where: str) -> None:
    """Refuse methods that cannot be called. Otherwise a run would notice them only at its first decision."""
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
        # The parameters of other callables, such as C functions, may be unknown, so these are accepted.
        if not inspect.isfunction(function):
            continue
        # A decorator's own parameters count, not those of the wrapped function.
        signature = inspect.signature(function, follow_wrapped=False)
        try:
            signature.bind(*[None] * (implicit + len(arguments)))
        except TypeError:
            form = f"`{name}({', '.join(list(signature.parameters)[implicit:])})`"
            right = f"`{name}({', '.join(arguments)})`, as its protocol has it"
            raise PluginError(f"{where} has {form}, which cannot be called as {right}") from None


def _refuse_declarations(registered: type[Any], where: str) -> None:
    # Declarations may be properties, so they are read from an instance, in the same guard.
    with guard_call(f"{where} cannot be made without parameters: "):
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
    match bounds:
        case (int() | float() as least, int() | float() as most):
            return least < most
    return False


#: Name and content of each plug-in file.
PluginContents = tuple[tuple[str, bytes], ...]

#: Kinds of classes that a plug-in can register. Each has its hook `lookup_register_<kind>`.
KINDS = tuple(PROTOCOLS)
_HOOKS = tuple(f"lookup_register_{kind}" for kind in KINDS)


@dataclass(frozen=True, slots=True)
class PluginSource:
    """The origin of a plug-in, either an installed distribution or a file."""

    name: str
    #: "distribution 1.0", or the file's path
    origin: str


@dataclass(frozen=True)
class Registry:
    """Every registered class, by kind and name."""

    classes: Mapping[str, Mapping[str, type[Any]]]
    sources: tuple[PluginSource, ...] = ()

    def find(self, kind: str, name: str) -> type[Any]:
        """Find a class by kind and name.

        Raises:
            PluginError: with the closest names, or all known ones.
        """
        classes = self.classes[kind]
        if name not in classes:
            noun = kind.removesuffix("s").replace("_", " ")
            raise PluginError(f"no {noun} named {name!r}; {suggestion(name, classes, nothing='known: none')}")
        return classes[name]


def load_plugins(files: Sequence[Path | str] = ()) -> Registry:
    """Load every plug-in and collect the classes that they register.

    Args:
        files: plain Python files with hook implementations, in addition to the installed distributions.

    Raises:
        PluginError: with the plug-in, if one cannot be imported, misspells a hook or implements none, or
            registers a class whose name is taken or that is not a frozen dataclass with a name.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)
    sources = []
    # Sorted, since the order in which a machine lists its distributions must not decide the first refusal.
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        with guard_call(f"plug-in {point.name!r} of {origin} cannot be loaded: "):
            module = point.load()
        _register(manager, module, point.name, origin)
        sources.append(PluginSource(point.name, origin))
    for path in map(Path, files):
        if manager.has_plugin(path.stem):
            problem = f"would be called {path.stem!r}, as another plug-in is; rename the file"
            raise PluginError(f"plug-in file {path} {problem}")
        _register(manager, _module_of(path), path.stem, str(path))
        sources.append(PluginSource(path.stem, str(path)))
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = (caller.name for caller in manager.get_hookcallers(error.plugin) or () if not caller.has_spec())
        plugin, hook = manager.get_name(error.plugin), next(hooks, "")
        raise PluginError(f"plug-in {plugin!r} has the unknown hook {hook!r}; {suggestion(hook, _HOOKS)}") from None
    return Registry({kind: _collect_classes(kind, _iter_registered(manager, kind)) for kind in KINDS}, tuple(sources))


def contents_of(files: Sequence[str]) -> PluginContents:
    """Read plug-in files, so that they can be sent to another machine."""
    return tuple((Path(file).name, Path(file).read_bytes()) for file in files)


def load_contents(contents: PluginContents) -> Registry:
    """Load plug-ins from the contents of their files, on a machine that does not have the files."""
    with TemporaryDirectory() as folder:
        for name, content in contents:
            (Path(folder) / name).write_bytes(content)
        return load_plugins([Path(folder) / name for name, _ in contents])


def registry_of(classes: Mapping[str, Iterable[Any]]) -> Registry:
    """Build a registry of the given classes by kind, checked by the same rules as classes from hooks."""
    return Registry({kind: _collect_classes(kind, classes.get(kind, ())) for kind in KINDS})


def _register(manager: pluggy.PluginManager, module: object, name: str, origin: str) -> None:
    if manager.has_plugin(name):
        raise PluginError(f"plug-in {name!r} of {origin} has the name of another plug-in; names are given once")
    try:
        manager.register(module, name=name)
    except (ValueError, pluggy.PluginValidationError) as error:
        # A module registered under two names, or a hook with options or arguments that its specification does not have.
        why = " ".join(str(error).split())
        raise PluginError(f"plug-in {name!r} of {origin} cannot be registered: {why}") from None
    implemented = {caller.name for caller in manager.get_hookcallers(module) or ()}
    # Pluggy silently ignores a hook without its decorator, and the classes it registers would go missing unnoticed.
    for hook in _HOOKS:
        if hook not in implemented and callable(getattr(module, hook, None)):
            title = f"{name!r} of {origin}"
            raise PluginError(f"plug-in {title} has {hook} without @hookimpl before it, so nobody would ever call it")
    if not implemented:
        hint = "put @hookimpl before a function like lookup_register_scorers"
        raise PluginError(f"plug-in {name!r} of {origin} implements no hook; {hint}")


def _module_of(path: Path) -> ModuleType:
    # Spark workers unpickle classes by module name, so the name comes from the file and is the same on both sides.
    name = f"lookup_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PluginError(f"plug-in file {path} is not a Python file that can be read")
    module = importlib.util.module_from_spec(spec)
    # Entered before it runs, since dataclasses look up the module of their annotations there.
    sys.modules[name] = module
    with guard_call(f"plug-in file {path} cannot be loaded: "):
        spec.loader.exec_module(module)
    return module


def _iter_registered(manager: pluggy.PluginManager, kind: str) -> Iterator[Any]:
    hook = f"lookup_register_{kind}"
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        plugin = f"plug-in {implementation.plugin_name!r}"
        with guard_call(f"{plugin} failed in {hook}: "):
            answer = implementation.function()
            # A generator runs here, so that its exceptions are failures of the plug-in.
            classes = read_bounded(answer) if isinstance(answer, Iterable) else None
        if classes is None:
            right = "an iterable of classes would be right, () where there is none"
            raise PluginError(f"{plugin} returned {shown(answer)} from {hook}; {right}")
        yield from classes


def _collect_classes(kind: str, registered: Iterable[Any]) -> Mapping[str, type[Any]]:
    classes: dict[str, type[Any]] = {}
    for entry in registered:
        name = checked_name(kind, entry)
        if name in classes:
            owner = title_of(classes[name])
            raise PluginError(f"{title_of(entry)} defines its name as {name!r}, which {owner} already uses")
        classes[name] = entry
    return dict(sorted(classes.items()))
