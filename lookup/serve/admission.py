"""Admit requests: by the token if there is one, else all but those that a page of a browser sends on its own."""

from __future__ import annotations

import base64
import binascii
import hmac

from aiohttp import web

__all__ = ["problem", "refusal"]

#: Types of the bodies that a page may send to any server without asking it first.
_OF_PAGES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
#: What a person opens in a browser, which cannot send a token and asks for a password instead. None of it changes
#: anything: once a browser knows the password, any page that it has open can have it send such a request.
_FOR_BROWSERS = ("/", "/balance", "/explain")
_ASK_FOR_PASSWORD = {"WWW-Authenticate": 'Basic realm="pulsar-lookup: the password is the token", charset="UTF-8"'}


def refusal(request: web.Request, path: str, token: str | None) -> web.Response | None:
    """Return the answer to a request that is not admitted: 401, or without a token 403; None if it is.

    Args:
        path: the first step of the request's path.
        token: what brokers have to send; None: nothing.
    """
    if token is not None:
        if hmac.compare_digest(_token_in(request, path), token.encode()):
            return None
        return problem(401, "the token is missing or wrong", _ASK_FOR_PASSWORD if path in _FOR_BROWSERS else {})
    if "Origin" in request.headers or request.content_type in _OF_PAGES:
        # Any page that a browser on this machine has open may send such a request.
        return problem(
            403, "without a token, send Content-Type: application/json and no Origin, unlike pages of a browser"
        )
    return None


def problem(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return an answer that says what is wrong; a 503 asks to try again."""
    again = {"Retry-After": "1"} if status == 503 else {}
    return web.json_response({"error": sentence}, status=status, headers=again | (headers or {}))


def _token_in(request: web.Request, path: str) -> bytes:
    """Return the token that a request has, empty if it has none: a password, whatever the user is, counts as one."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    raw = given.encode(errors="replace")
    if scheme == "Bearer":
        return raw
    if scheme != "Basic" or path not in _FOR_BROWSERS:
        return b""
    try:
        return base64.b64decode(raw, validate=True).partition(b":")[2]
    except binascii.Error:
        return b""
