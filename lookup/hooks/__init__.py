"""Names for authors of plug-ins, with the `hookimpl` marker, the parts' protocols and parameter markers."""

from lookup.hooks import protocols as _protocols
from lookup.hooks.protocols import *

__all__ = [*_protocols.__all__]  # noqa: PLE0604  it is a list of names
