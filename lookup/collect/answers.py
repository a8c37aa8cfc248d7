"""Read HTTP answers: whole, and no more and no longer than a cluster or server of ours has to say."""

from __future__ import annotations

import io
import time
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, IncompleteRead
from ssl import SSLContext
from typing import Any
from urllib.request import BaseHandler, HTTPHandler, HTTPSHandler, Request

__all__ = ["patient_handlers", "whole_body"]

#: Lists of a million topics are shorter, B.
_MOST_BYTES = 256 * 1024 * 1024
#: Seconds that an answer may take, head and body; the time-out of a socket begins anew with each byte.
_MOST_S = 60.0


def patient_handlers(context: SSLContext | None = None) -> tuple[BaseHandler, BaseHandler]:
    """Return what opens HTTP and HTTPS, and gives up an answer that does not end, with a TimeoutError.

    Args:
        context: settings of TLS; None: the system's.
    """
    return _Http(), _Https(context=context)


def whole_body(answer: HTTPResponse) -> bytes:
    """Return the body of an answer.

    Raises:
        IncompleteRead: if it is cut off.
        ValueError: if it does not end; the text says how much there was.
    """
    content = answer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    # A bounded read takes what has come for the whole.
    missing = int(answer.getheader("Content-Length") or 0) - len(content)
    if missing > 0:
        raise IncompleteRead(content, missing)
    return content


class _Answer(HTTPResponse):
    """An answer whose head and body together have a bounded time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A socket's file, before anything was read from it.
        self.fp: io.BufferedReader = io.BufferedReader(_Timed(self.fp.detach()))


class _Timed(io.RawIOBase):
    """The bytes of a socket, until their time is over."""

    def __init__(self, inner: io.RawIOBase) -> None:
        self._inner, self._until = inner, time.monotonic() + _MOST_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._until:
            raise TimeoutError(f"the answer did not end within {_MOST_S:g} s")
        return self._inner.readinto(buffer)

    def close(self) -> None:
        self._inner.close()
        super().close()


class _HttpConnection(HTTPConnection):
    response_class = _Answer


class _HttpsConnection(HTTPSConnection):
    response_class = _Answer


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_HttpConnection, req)


class _Https(HTTPSHandler):
    def __init__(self, context: SSLContext | None) -> None:
        super().__init__(context=context)
        self._given = context

    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_HttpsConnection, req, context=self._given)
