"""Run shedders and placement strategies written in Java as parts `java`, with one JVM for each process.

`parts.py` has the parts, `states.py` the inputs of such a class from a Pulsar load manager, and `jvm.py` the JVM, whose
program is `plugins/pulsar_parts`. Unlike all other parts, these keep their memory outside (`docs/java-policies.md`).
"""

from __future__ import annotations

from lookup.hooks import Selector, Shedder, hookimpl
from lookup_java.parts import JavaSelector, JavaShedder

__all__ = ["JavaSelector", "JavaShedder"]


@hookimpl
def lookup_register_selectors() -> tuple[type[Selector], ...]:
    """Register the selector."""
    return (JavaSelector,)


@hookimpl
def lookup_register_shedders() -> tuple[type[Shedder], ...]:
    """Register the shedder."""
    return (JavaShedder,)
