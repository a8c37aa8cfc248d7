"""The door: finds plug-ins, installed ones by their entry point and plain files by their path, and collects their classes.

Built-ins enter here like everybody else. Hooks are called once; nothing on the path of a decision comes through here.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from lookup.errors import PluginError
from lookup.hooks import specs
from lookup.hooks.markers import ENTRY_POINT_GROUP, PROJECT

__all__ = ["KINDS", "PluginSource", "Registry", "load_plugins", "suggestion"]

#: Kinds of classes a plug-in can register; each has its hook `lookup_register_<kind>`.
KINDS = ("filters", "scorers", "selectors", "shedders", "log_readers", "metrics")


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where a plug-in came from: an installed distribution, or a file."""

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
            raise PluginError(f"no {kind.removesuffix('s').replace('_', ' ')} named {name!r}; {suggestion(name, known)}")
        return known[name]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the clause of an error that says which name was probably meant."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}"


def load_plugins(files: Sequence[Path | str] = ()) -> Registry:
    """Load every plug-in and collect what they register.

    Args:
        files: plain Python files that hold hook implementations, beside the installed distributions.

    Raises:
        PluginError: naming the plug-in, where one cannot be imported, misspells a hook, or registers a class that is no
            frozen dataclass with a name or whose name is taken.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(specs)
    _load_distributions(manager)
    for file in files:
        path = Path(file)
        manager.register(_module_of(path), name=path.stem)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"plug-in {manager.get_name(error.plugin)!r}: {error}") from None
    classes = {kind: _collected(kind, getattr(manager.hook, f"lookup_register_{kind}")()) for kind in KINDS}
    return Registry(classes, (*_distributions(manager), *(PluginSource(Path(file).stem, str(file)) for file in files)))


def _load_distributions(manager: pluggy.PluginManager) -> None:
    try:
        manager.load_setuptools_entrypoints(ENTRY_POINT_GROUP)
    except Exception as error:  # noqa: BLE001  importing a third party's module may raise anything
        raise PluginError(f"an installed plug-in cannot be loaded: {type(error).__name__}: {error}") from error


def _distributions(manager: pluggy.PluginManager) -> list[PluginSource]:
    found = {
        PluginSource(str(manager.get_name(plugin)), f"{dist.project_name} {dist.version}")
        for plugin, dist in manager.list_plugin_distinfo()
    }
    return sorted(found, key=lambda source: source.name)


def _module_of(path: Path) -> ModuleType:
    # Spark workers unpickle classes by module name, so the name must be the same on both sides: it comes from the file.
    name = f"lookup_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise PluginError(f"plug-in file {path} is not a Python file that can be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  a third party's module may raise anything
        raise PluginError(f"plug-in file {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _collected(kind: str, answers: Iterable[Iterable[type[Any]]]) -> Mapping[str, type[Any]]:
    classes: dict[str, type[Any]] = {}
    for found in (entry for answer in answers for entry in answer):
        name = _name_of(kind, found)
        if name in classes:
            raise PluginError(f"{_title(found)} defines its name as {name!r}, which {_title(classes[name])} already uses")
        classes[name] = found
    return dict(sorted(classes.items()))


def _name_of(kind: str, found: Any) -> str:
    if not isinstance(found, type):
        raise PluginError(f"lookup_register_{kind} answered {found!r}, which is not a class")
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginError(f"{_title(found)}, registered under {kind}, has no `name`")
    if not dataclasses.is_dataclass(found) or not found.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # set by @dataclass
        raise PluginError(f"{_title(found)}, registered under {kind}, is not a frozen dataclass")
    return name


def _title(found: type[Any]) -> str:
    return f"{found.__module__}.{found.__qualname__}"
