"""Keep the cluster's own shedder still while bundles are moved, and put its switch back as it was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from lookup.collect.sources import AdminRefusedError, AdminRest, reason_of
from lookup.errors import Argument, InputError, Sentence, StateError
from lookup.model.quoting import shown
from lookup.moving.journal import Journal

__all__ = ["KEY", "frozen_shedding", "put_back", "refusal"]

#: Dynamic configuration. If it is absent, the brokers' broker.conf applies.
KEY = "loadBalancerSheddingEnabled"
_OFF, _FOUND = "false", (None, "true", "false")
#: Seconds for which putting the switch back is tried, and between two tries.
_PATIENCE_S, _AGAIN_S = 60.0, 2.0


@contextmanager
def frozen_shedding(rest: AdminRest, journal: Journal, say: Callable[[str], None]) -> Iterator[None]:
    """Switch shedding off while the body runs, and put it back however the body ends.

    Raises:
        InputError: if it cannot be switched.
        StateError: if it cannot be switched back. The journal has the previous value.
    """
    try:
        before = _values(rest).get(KEY)
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read whether {KEY} is set: {refusal(error)}") from None
    if before not in _FOUND:
        raise InputError(
            f"{KEY} is {shown(before)} by dynamic configuration, and should be true or false; set it first"
        )
    if before == _OFF:
        why = f"{KEY} is false already by dynamic configuration, and stays so; if an apply that was killed left it, "
        say(Sentence(why, Argument("recover"), " with its journal puts it back"))
        yield
        return
    try:
        # The value is on the disk before anything is switched, since after a kill it is not known elsewhere.
        journal.write("freezing", found=before)
        try:
            rest.send("POST", f"brokers/configuration/{KEY}/{_OFF}")
        except (OSError, ValueError) as error:
            raise InputError(f"{KEY} cannot be switched off: {refusal(error)}") from None
        yield
    finally:
        put_back(rest, journal, say)


def put_back(rest: AdminRest, journal: Journal, say: Callable[[str], None]) -> bool:
    """Restore shedding to the value in a journal, and return whether the journal has a change of it.

    A value that another process has set meanwhile stays.

    Raises:
        InputError: if the value in the journal is not a boolean.
        StateError: if that is not possible within a minute.
    """
    if journal.frozen is None:
        return False
    before, deadline = journal.frozen.get("found"), time.monotonic() + _PATIENCE_S
    if before not in _FOUND:
        raise InputError(f"{journal.path}: found is {shown(before)}; {KEY} was found to be null, true or false")
    now: object = None
    while True:
        try:
            now = _values(rest).get(KEY)
            if now == _OFF:
                if before is None:
                    rest.send("DELETE", f"brokers/configuration/{KEY}")
                else:
                    rest.send("POST", f"brokers/configuration/{KEY}/{quote(before, safe='')}")
            break
        except (OSError, ValueError, InputError) as error:
            is_final = isinstance(error, AdminRefusedError) and error.status in (401, 403)
            if is_final or time.monotonic() > deadline:
                raise StateError(
                    f"{KEY} is still false and was {_describe_value(before)}: {refusal(error)}; ",
                    Argument("recover", str(journal.path)),
                    " puts it back",
                ) from None
            time.sleep(_AGAIN_S)
    journal.write("thawed")
    if now == _OFF:
        say(f"{KEY} is {_describe_value(before)} again, as it was found")
    elif now != before:
        say(f"{KEY} was set to {shown(now)} by somebody else meanwhile, and stays so")
    return True


def refusal(error: Exception) -> str:
    """Explain why the admin REST did not carry out a request, with the missing right if that is the reason."""
    if isinstance(error, AdminRefusedError) and error.status in (401, 403):
        return (
            f"the admin REST says {error.status}, {error.reason}: to unload bundles and to set dynamic configuration, "
            "the token must be that of a superuser (superUserRoles in broker.conf)"
        )
    return f"the admin REST: {reason_of(error)}"


def _describe_value(value: str | None) -> str:
    return "not set" if value is None else value


def _values(rest: AdminRest) -> dict[str, Any]:
    return rest.get("brokers/configuration/values", _require_object)


def _require_object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise ValueError("no dynamic configuration")
    return answer
