"""Admit connections of brokers, in a bounded number, with a request in time, and without log of other protocols.

Requests are admitted by the token if there is one, else all but requests that a browser's page sends on its own.

Without a bound, clients that only connect use up all files that the process may open, including those for the record.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import resource
import socket
from collections.abc import Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from lookup.errors import LimitError
from lookup.model.address import host_of, is_ip
from lookup.model.quoting import shown

__all__ = ["MALFORMED", "PATIENCE_S", "Connections", "most_connections", "problem", "read_body", "refusal"]

#: Errors of aiohttp that a client is the cause of.
MALFORMED = (HttpProcessingError, web.RequestPayloadError, ConnectionError)
#: Seconds that a client may take for the head of its first request, and for each body.
PATIENCE_S = 10.0
#: Milliseconds for which a client may leave an answer unread.
_UNREAD_MS = 60_000
#: Simultaneous connections. Brokers keep few and watchers one each, and keep them open.
_MOST_CONNECTIONS = 10_000
#: Files left for other uses, like the record, a collector, and some hundred connections not yet counted or refused.
_RESERVED = 512
#: Share of the connections that one address may have, since a proxy for all brokers has half of them.
_SHARE_OF_ONE = 0.5
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

#: Types of the bodies that a page may send to any server without asking it first.
_OF_PAGES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


async def read_body(request: web.Request, most: int) -> bytes:
    """Read the body of a request. Raise LimitError if it is larger than that, TimeoutError if it is late."""
    too_large = LimitError(f"the body is larger than {most} bytes")
    if (request.content_length or 0) > most:
        raise too_large
    if request.content.is_eof():
        raw = await request.read()
    else:
        async with asyncio.timeout(PATIENCE_S):
            raw = await request.read()
    if len(raw) > most:
        raise too_large
    return raw


def most_connections() -> int:
    """Compute the greatest number of simultaneous connections, each of which is a file of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, max(soft - _RESERVED, soft // 2))


class Connections:
    """A factory of the protocol of each connection, which counts refused ones by the status of the answer."""

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        #: closes a connection that has not sent a request yet
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        self._most = most_connections()
        #: for aiohttp, which would log whatever a client has sent, with the tokens that are in it
        self.logger = logging.getLogger(f"{__name__}.http")
        self.logger.filters = [self._is_ours]

    async def listen(self, runner: web.AppRunner, host: str, port: int) -> asyncio.Server:
        """Listen on an address for a web application, or raise OSError."""
        server, loop = runner.server, asyncio.get_running_loop()
        assert server is not None  # the runner has been set up

        def admit(peer: str) -> web.RequestHandler | None:
            peers = [_peer_of(each.transport) for each in server.connections]
            if len(peers) >= self._most or peers.count(peer) >= self._most * _SHARE_OF_ONE:
                self._count(503)
                return None
            handler = server()
            self._silent[handler] = loop.call_later(PATIENCE_S, self._close, handler)
            return handler

        return await loop.create_server(lambda: _Door(admit), host, port)

    def heard(self, protocol: web.RequestHandler) -> None:
        """Note that a connection has sent a request."""
        timer = self._silent.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    def _close(self, protocol: web.RequestHandler) -> None:
        del self._silent[protocol]
        protocol.force_close()

    def _is_ours(self, record: logging.LogRecord) -> bool:
        """Check whether a record of aiohttp is about a fault of the server, and count mistakes of clients."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            self._count(error.code)
        return not isinstance(error, MALFORMED)


class _Door(asyncio.Protocol):
    """A door that passes a connection to aiohttp, or refuses it, since its address is only known now."""

    def __init__(self, admitted: Callable[[str], web.RequestHandler | None]) -> None:
        self._admitted = admitted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        handler = self._admitted(_peer_of(transport))
        if handler is None:
            transport.write(_BUSY)
            transport.close()
            return
        connection: socket.socket = transport.get_extra_info("socket")
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux
            # The system ends the connection of a client that does not read, but aiohttp would wait for it for ever.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        transport.set_protocol(handler)
        handler.connection_made(transport)


def _peer_of(transport: asyncio.BaseTransport | None) -> str:
    peer = None if transport is None else transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def refusal(request: web.Request, token: str | None, bind: str) -> web.Response | None:
    """Build the answer to a request not admitted, else None, with status 401, or 403 if no token is needed."""
    if token is not None:
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer" and hmac.compare_digest(credentials.encode(errors="replace"), token.encode()):
            return None
        return problem(401, "the token is missing or wrong")
    if "Origin" in request.headers or request.content_type in _OF_PAGES:
        # Any page that a browser on this machine has open may send such a request.
        return problem(
            403, "without a token, send Content-Type: application/json and no Origin, unlike pages of a browser"
        )
    # A page may have its own name lead to this address. Of other programs the names of machines are known.
    host = host_of(request.headers.get("Host", bind)).rstrip(".").lower()
    is_own = host in (bind.lower(), "localhost") or host.endswith(".localhost") or is_ip(host.partition("%")[0])
    if not is_own:
        named = f"an IP address, localhost or serving.bind, not {shown(host)}"
        return problem(403, f"without a token, name this server by {named}; or set serving.token_file")
    return None


def problem(status: int, sentence: str) -> web.Response:
    """Build an answer with an error. A 503 requests another try."""
    again = {"Retry-After": "1"} if status == 503 else {}
    return web.json_response({"error": sentence}, status=status, headers=again)
