"""Read whole HTTP answers, up to the size that an answer of a cluster or of this project's server needs."""

from __future__ import annotations

from http.client import HTTPResponse, IncompleteRead

__all__ = ["whole_body"]

#: Lists of a million topics are shorter, B.
_MOST_BYTES = 256 * 1024 * 1024


def whole_body(answer: HTTPResponse) -> bytes:
    """Read the body of an answer.

    Raises:
        IncompleteRead: if it is cut off.
        ValueError: if it does not end, with its size so far.
    """
    content = answer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    # A bounded read accepts a cut-off body as the whole one.
    missing = int(answer.getheader("Content-Length") or 0) - len(content)
    if missing > 0:
        raise IncompleteRead(content, missing)
    return content
