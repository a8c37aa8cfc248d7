"""What an installation without extras lacks, said in one sentence before anything is imported."""

from __future__ import annotations

from importlib.util import find_spec

from lookup.errors import SettingsError

__all__ = ["require_extra"]


def require_extra(command: str, *packages: str) -> None:
    """Refuse to run a command whose packages are not installed.

    Raises:
        SettingsError: naming the package and what to install.
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"`lookup {command}` needs {missing[0]}: install it with pip install 'pulsar-lookup[spark]'"
        )
