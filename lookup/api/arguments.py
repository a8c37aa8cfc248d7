"""Check arguments of calls from Python, where any value may be given for any of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from lookup.errors import Argument, Sentence, SettingsError
from lookup.model.quoting import shown, suggestion

__all__ = ["Say", "names_of", "policies_of", "require_apart", "require_mapping", "require_path"]

#: Takes one short sentence for a person about the current step, or a warning.
Say: TypeAlias = Callable[[str], None]


def names_of(name: str, given: object) -> tuple[str, ...]:
    """Convert an argument to names. A text is one name, not its letters."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(entry, str) for entry in names):
        raise _build_error(name, given, "a name or a list of names")
    return tuple(names)


def policies_of(given: object) -> list[object] | None:
    """Convert policies to the form of settings. Texts that are not paths are names of shipped policies."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise _build_error("policies", given, "a list of names, paths and mappings")
    # Loaded if policies are given, since a command's help does not need settings.
    from lookup.settings.shipped import shipped_files

    paths = {file.name: str(file.path) for file in shipped_files().values() if file.kind == "policy"}
    policies = [os.fspath(policy) if isinstance(policy, os.PathLike) else policy for policy in given]
    for name in (policy for policy in policies if isinstance(policy, str) and re.fullmatch(r"[\w-]*", policy)):
        if name not in paths:
            problem = f": no policy ships under the name {shown(name)}; {suggestion(name, paths)}"
            raise SettingsError(Argument("policies"), problem)
    return [paths.get(policy, policy) if isinstance(policy, str) else policy for policy in policies]


def require_apart(outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]) -> None:
    """Refuse outputs among the inputs, since the next run would read results as a table, or lose its settings.

    Args:
        outputs: paths by the names of their arguments, None if one is not given.
        inputs: the same for inputs. An input that is not an argument has a common name.
    """
    from lookup.logs.outputs import relation

    file, folder = (f"; name a {kind} apart from the inputs" for kind in ("file", "folder"))
    problems = [
        Sentence(Argument(output), f": {place} {overlap} {path}, which is ", Argument(name), right)
        for output, place in outputs.items()
        for right in (folder if output == "output" else file,)
        for name, path in inputs.items()
        if place and path and (overlap := relation(place, path)) is not None
    ]
    if problems:
        raise SettingsError(problems)


def require_mapping(name: str, given: object) -> None:
    """Refuse an argument that is neither a mapping nor None."""
    if given is not None and not isinstance(given, Mapping):
        raise _build_error(name, given, "a mapping")


def require_path(name: str, given: Any, *, or_mapping: bool = False) -> str:
    """Convert a path to text, and a mapping to an empty text. Refuse any other argument."""
    if not isinstance(given, str | os.PathLike) and not (or_mapping and isinstance(given, Mapping)):
        raise _build_error(name, given, "a path or a mapping" if or_mapping else "a path")
    return "" if isinstance(given, Mapping) else os.fspath(given)


def _build_error(name: str, value: object, right: str) -> SettingsError:
    return SettingsError(Argument(name), f" is {shown(value)}, which is not {right}")
