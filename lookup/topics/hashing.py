"""The hash of a list of topics, by which client and server notice that they hold the same set.

Source: `docs/pulsar/protocol.md` (Pulsar's `TopicList.calculateHash`).
"""

from __future__ import annotations

from collections.abc import Iterable

from lookup.topics.extras import extra_module

__all__ = ["topics_hash"]


def topics_hash(topics: Iterable[str]) -> str:
    """Return the hash of complete names, partition suffixes included, in any order: eight hexadecimal digits.

    CRC32C over the UTF-8 text of the sorted names joined by commas, its bytes written from the lowest up.

    Raises:
        SettingsError: where google-crc32c is not installed.

    Example:
        >>> topics_hash([])
        '00000000'
        >>> topics_hash(["persistent://public/default/b", "persistent://public/default/a"])
        'c7559e98'
    """
    checksum = extra_module("google_crc32c", "the hash of a topic list")
    # Java writes half a surrogate pair as a question mark.
    value: int = checksum.value(_joined(list(topics)).encode("utf-8", "replace"))
    return value.to_bytes(4, "little").hex()


def _joined(topics: list[str]) -> str:
    """Join names in Java's order, which is that of UTF-16 code units."""
    topics.sort()
    joined = ",".join(topics)
    # The two orders differ only where a name has a character beyond U+FFFF.
    return joined if joined.isascii() or max(joined) <= "\uffff" else ",".join(sorted(topics, key=_code_units))


def _code_units(topic: str) -> bytes:
    return topic.encode("utf-16-be", "surrogatepass")
