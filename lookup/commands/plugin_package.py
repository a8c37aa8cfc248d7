"""The files of `lookup init --plugin`, a distribution with one scorer, its tests, and settings that use it."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

from lookup.engine.plugins import Registry
from lookup.errors import SettingsError
from lookup.model.quoting import shown

__all__ = ["COMMANDS", "package_files", "plugin_name"]

#: Commands to type in the folder of the package, in this order.
COMMANDS = (
    "pip install -e '.[test]'",
    "pytest",
    "lookup generate --output sample --clusters 1 --hours 6 --lookups 50000 --set brokers=6",
    "lookup evaluate evaluation.toml --output report",
    "lookup serve serving.toml",
)
#: Templates of the files. A part of a path that begins with `dot-` begins with a dot. `my-plugin`, `my_plugin` and
#: `MyPlugin` are placeholders for the names of distribution and scorer, of module and of class, RELEASE and NEXT for
#: the installed release of pulsar-lookup and the next that may break it.
_TEMPLATES = Path(__file__).with_name("plugin_template")


def plugin_name(text: str) -> str:
    """Read the name of a new distribution, in lower case with hyphens, as package indexes do.

    Raises:
        argparse.ArgumentTypeError: if it is not such a name, or hides a module or replaces an existing distribution.
    """
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", text):
        right = "letters, digits and, between them, '-', '_' and '.' would be right, as in rack-aware"
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a name of a distribution; {right}")
    name = re.sub(r"[-_.]+", "-", text).lower()
    module = _build_module_name(name)
    imported = f"{text} would be imported as {module}"
    if not module.isidentifier() or keyword.iskeyword(module):
        raise argparse.ArgumentTypeError(
            f"{imported}, which is not a name of a Python module; rack-aware would be right"
        )
    if module in sys.stdlib_module_names:
        raise argparse.ArgumentTypeError(f"{imported}, which is a module of Python itself; choose another name")
    spec = find_spec(module)
    # A spec without a file is any folder next to which Python was started.
    if spec is not None and spec.origin is not None:
        raise argparse.ArgumentTypeError(f"{imported}, which is installed already; choose another name")
    try:
        there = distribution(name)
    except PackageNotFoundError:
        return name
    raise argparse.ArgumentTypeError(f"{text} would replace {there.name} {there.version}; choose another name")


def package_files(name: str, registry: Registry) -> dict[str, str]:
    """Build the text of every file, by its path in the folder of the package.

    Args:
        name: name of the distribution, as `plugin_name` returns it.
        registry: the installed classes, since names of plug-ins and of scorers are unique.

    Raises:
        SettingsError: if a plug-in or a scorer has the name.
    """
    module = _build_module_name(name)
    if module in {source.name for source in registry.sources} or name in registry.classes["scorers"]:
        raise SettingsError(f"--plugin: a plug-in or scorer named {name} is installed already; choose another name")
    release = version("pulsar-lookup")
    major, minor = map(int, release.split(".")[:2])
    names = {
        "my-plugin": name,
        "my_plugin": module,
        "MyPlugin": "".join(word.capitalize() for word in name.split("-")),
        "COMMANDS": "\n".join(f"$ {command}" for command in COMMANDS),
        "RELEASE": release,
        "NEXT": f"{major + 1}" if major else f"0.{minor + 1}",
    }

    def fill_names(text: str) -> str:
        return re.sub("|".join(names), lambda stand_in: names[stand_in[0]], text)

    files = {}
    for template in sorted(_TEMPLATES.rglob("*.tmpl")):
        path = re.sub(r"(^|/)dot-", r"\1.", template.relative_to(_TEMPLATES).with_suffix("").as_posix())
        files[fill_names(path)] = fill_names(template.read_text(encoding="utf-8"))
    return files


def _build_module_name(name: str) -> str:
    return name.replace("-", "_")
