"""Read network addresses of brokers, clients and logs, which are names, IPv4, or IPv6 with or without brackets."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

__all__ = ["host_of", "ips_of", "is_ip", "is_loopback"]


@lru_cache(maxsize=1 << 16)
def host_of(address: str) -> str:
    """Find the host of an address, which is `host`, `host:port`, or Java's `/host:port` or `name/host:port`.

    An IPv6 address loses its brackets. Java up to 13 prints it without brackets before the port. A text that is
    not an address with its last group is then an address without it.

    Example:
        >>> host_of("/10.0.0.1:4000"), host_of("/[fd00::1]:4000"), host_of("/0:0:0:0:0:0:0:1:4000"), host_of("fd00::1")
        ('10.0.0.1', 'fd00::1', '0:0:0:0:0:0:0:1', 'fd00::1')
    """
    text = address.rpartition("/")[2]
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, port = text.rpartition(":")
    if not (colon and port.isdecimal() and host):
        return text
    # A port follows a zone, as in `::1%0:4000`.
    return text if ":" in host and "%" not in host and is_ip(text) else host


def ips_of(address: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    """List the addresses that the host of an address may have in a network. Raise ValueError if it is a name.

    An address that a server writes as IPv6, `::ffff:10.0.0.1`, also counts as its IPv4 address.
    """
    ip = ipaddress.ip_address(host_of(address))
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (ip,) if mapped is None else (ip, mapped)


def is_ip(text: str) -> bool:
    """Check whether a text is an IPv4 or IPv6 address without brackets."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(text: str) -> bool:
    """Check whether a text is an address that only programs of the same machine can reach."""
    return is_ip(text) and ipaddress.ip_address(text).is_loopback
