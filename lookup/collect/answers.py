"""Read HTTP answers: whole, and no more than a cluster or server of ours has to say."""

from __future__ import annotations

from http.client import HTTPResponse, IncompleteRead

__all__ = ["whole_body"]

#: Lists of a million topics are shorter, B.
_MOST_BYTES = 256 * 1024 * 1024


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
