"""Find plug-ins, installed ones by entry point and plain files by path, and collect their classes.

Built-ins are loaded in the same way. Hooks are called once; nothing on the path of a decision calls this module.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pluggy

from lookup.engine.requirements import PROTOCOLS, checked_name, title_of
from lookup.errors import PluginError
from lookup.hooks import specs
from lookup.hooks.protocols import ENTRY_POINT_GROUP, PROJECT
from lookup.hooks.raised import guarded
from lookup.model.quoting import shown, suggestion

__all__ = [
    "KINDS", "PluginContents", "PluginSource", "Registry", "contents_of", "load_contents", "load_plugins",
    "registry_of",
]  # fmt: skip

#: Name and content of each plug-in file.
PluginContents = tuple[tuple[str, bytes], ...]

#: Kinds of classes a plug-in can register; each has its hook `lookup_register_<kind>`.
KINDS = tuple(PROTOCOLS)
_HOOKS = tuple(f"lookup_register_{kind}" for kind in KINDS)


@dataclass(frozen=True, slots=True)
class PluginSource:
    """The origin of a plug-in: an installed distribution, or a file."""

    name: str
    #: "distribution 1.0", or the file's path
    origin: str


@dataclass(frozen=True)
class Registry:
    """Every registered class, by kind and name."""

    classes: Mapping[str, Mapping[str, type[Any]]]
    sources: tuple[PluginSource, ...] = ()

    def find(self, kind: str, name: str) -> type[Any]:
        """Return a class.

        Raises:
            PluginError: naming the closest names, or all known ones.
        """
        known = self.classes[kind]
        if name not in known:
            what = kind.removesuffix("s").replace("_", " ")
            raise PluginError(f"no {what} named {name!r}; {suggestion(name, known, nothing='known: none')}")
        return known[name]


def load_plugins(files: Sequence[Path | str] = ()) -> Registry:
    """Load every plug-in and collect what they register.

    Args:
        files: plain Python files that hold hook implementations, beside the installed distributions.

    Raises:
        PluginError: naming the plug-in, if one cannot be imported, misspells a hook or implements none, or registers
            a class that is no frozen dataclass with a name or whose name is taken.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)
    sources = []
    # Sorted, since the order in which a machine lists its distributions must not decide what is refused first.
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        with guarded(f"plug-in {point.name!r} of {origin} cannot be loaded: "):
            module = point.load()
        _register(manager, module, point.name, origin)
        sources.append(PluginSource(point.name, origin))
    for path in map(Path, files):
        if manager.has_plugin(path.stem):
            taken = f"would be called {path.stem!r}, as another plug-in is; rename the file"
            raise PluginError(f"plug-in file {path} {taken}")
        _register(manager, _module_of(path), path.stem, str(path))
        sources.append(PluginSource(path.stem, str(path)))
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        hooks = (caller.name for caller in manager.get_hookcallers(error.plugin) or () if not caller.has_spec())
        plugin, hook = manager.get_name(error.plugin), next(hooks, "")
        raise PluginError(f"plug-in {plugin!r} has the unknown hook {hook!r}; {suggestion(hook, _HOOKS)}") from None
    return Registry({kind: _collected(kind, _registered(manager, kind)) for kind in KINDS}, tuple(sources))


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
    """Return a registry of the given classes, by kind, held to the same rules as those that hooks register.

    Raises:
        PluginError: as `load_plugins` does.
    """
    return Registry({kind: _collected(kind, classes.get(kind, ())) for kind in KINDS})


def _register(manager: pluggy.PluginManager, module: object, name: str, origin: str) -> None:
    if manager.has_plugin(name):
        raise PluginError(f"plug-in {name!r} of {origin} has the name of another plug-in; names are given once")
    _refuse_arguments(module, f"{name!r} of {origin}")
    try:
        manager.register(module, name=name)
    except (ValueError, pluggy.PluginValidationError) as error:
        # A module registered under two names, or a hook with options that its specification does not have.
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


def _refuse_arguments(module: object, title: str) -> None:
    """Refuse hooks that cannot be called as they are, without arguments."""
    # Pluggy would pass arguments by name, and complain only when the hook is called.
    for hook in _HOOKS:
        function = getattr(module, hook, None)
        if not inspect.isroutine(function) or not hasattr(function, f"{PROJECT}_impl"):
            continue
        signature = inspect.signature(function)
        try:
            signature.bind()
        except TypeError:
            written = f"{hook}({', '.join(signature.parameters)})"
            raise PluginError(
                f"plug-in {title} has {written}, but a hook is called without arguments; {hook}() would be right"
            ) from None


def _module_of(path: Path) -> ModuleType:
    # Spark workers unpickle classes by module name, so the name must be the same on both sides: it comes from the file.
    name = f"lookup_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PluginError(f"plug-in file {path} is not a Python file that can be read")
    module = importlib.util.module_from_spec(spec)
    # Entered before it runs: dataclasses look up the module of their annotations there.
    sys.modules[name] = module
    with guarded(f"plug-in file {path} cannot be loaded: "):
        spec.loader.exec_module(module)
    return module


def _registered(manager: pluggy.PluginManager, kind: str) -> Iterator[Any]:
    hook = f"lookup_register_{kind}"
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        plugin = f"plug-in {implementation.plugin_name!r}"
        with guarded(f"{plugin} failed in {hook}: "):
            answer = implementation.function()
            # A generator runs here, so that what it raises is the plug-in's failure.
            classes = list(answer) if isinstance(answer, Iterable) else None
        if classes is None:
            right = "an iterable of classes would be right, () where there is none"
            raise PluginError(f"{plugin} returned {shown(answer)} from {hook}; {right}")
        yield from classes


def _collected(kind: str, registered: Iterable[Any]) -> Mapping[str, type[Any]]:
    classes: dict[str, type[Any]] = {}
    for entry in registered:
        name = checked_name(kind, entry)
        if name in classes:
            taken = title_of(classes[name])
            raise PluginError(f"{title_of(entry)} defines its name as {name!r}, which {taken} already uses")
        classes[name] = entry
    return dict(sorted(classes.items()))
