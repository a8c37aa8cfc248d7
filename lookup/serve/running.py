"""Run the decision server. It reads its settings, listens until a signal ends it, and reloads settings at SIGHUP."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial

from aiohttp import web

from lookup.errors import InputError
from lookup.serve.following import Connect, Follower
from lookup.serve.server import DecisionServer
from lookup.serve.topics import Reach, ServedTopics
from lookup.settings import ServingFile
from lookup.settings.serving import ServingSection

__all__ = ["heed_signal", "serve"]


def heed_signal(number: signal.Signals, act: Callable[[], object]) -> None:
    """Let the running loop act on a signal of this process."""
    asyncio.get_running_loop().add_signal_handler(number, act)


async def serve(
    load: Callable[[], ServingFile],
    report: Callable[[str], None],
    connect: Connect,
    reach: Reach,
    heed: Callable[[signal.Signals, Callable[[], object]], None] = heed_signal,
) -> None:
    """Run the decision server until SIGTERM or SIGINT. SIGHUP loads the settings again.

    Args:
        load: reads the settings, at the start and for each SIGHUP.
        report: takes a sentence for the operator.
        connect: creates the source of the state topic, if the settings have its address.
        reach: creates the source of topics, likewise.
        heed: registers an action for a signal. A server next to others in one process does not have signals of its own.

    Raises:
        SettingsError: for mistakes in settings.
        InputError: if record, port, or the state topic of an active policy that reads owners cannot be used.
    """
    settings = load()
    async with AsyncExitStack() as stack:
        follower: Follower | None = None
        if settings.collect is not None and settings.collect.service_url is not None:
            follower = Follower(settings.serving.cluster, settings.collect, connect)
        # Settings are checked before anything is connected to.
        topics: ServedTopics | None = None
        if settings.topics is not None:
            collect = settings.collect
            source = None if collect is None or collect.admin is None else reach(collect)
            topics = ServedTopics(settings, source, report)
        server = DecisionServer(settings, report, follower, topics)
        stack.callback(server.recorder.close)
        # Before it listens too, since the system's own reaction to the signal is to end the process.
        heed(signal.SIGHUP, partial(server.reload, load))
        if follower is not None:
            stack.enter_context(follower)
        if topics is not None:
            await stack.enter_async_context(topics)
        await server.wait_for_owners()
        await _listen(server, topics, settings.serving, report, heed)


async def _listen(
    server: DecisionServer,
    topics: ServedTopics | None,
    section: ServingSection,
    report: Callable[[str], None],
    heed: Callable[[signal.Signals, Callable[[], object]], None],
) -> None:
    ended = asyncio.Event()
    # The present objects (libraries, settings) stay. Else full collections take a third of the time, and brokers wait.
    gc.collect()
    gc.freeze()
    runner = web.AppRunner(
        server.application(),
        access_log=None,
        logger=server.connections.logger,
        shutdown_timeout=2.0,
        # Brokers send requests again within this time, or reconnect.
        keepalive_timeout=60.0,
        # A client that has left waits for nothing.
        handler_cancellation=True,
    )
    await runner.setup()
    jobs = [server.work_on_record(), server.work_on_owners()]
    if topics is not None:
        jobs += topics.jobs()
    work = [asyncio.ensure_future(job) for job in jobs]
    try:
        try:
            listener = await server.connections.listen(runner, section.bind, section.port)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{section.bind}:{section.port} cannot be listened on: {reason}") from None
        for number in (signal.SIGTERM, signal.SIGINT):
            heed(number, ended.set)
        host, port = listener.sockets[0].getsockname()[:2]
        active = section.active or "no policy, lookups are recorded"
        address = f"[{host}]" if ":" in host else host
        report(f"serving {active} on http://{address}:{port}, recording in {section.record}")
        await ended.wait()
        server.stop()
        # Brokers that connect from now on are refused by the system.
        listener.close()
    finally:
        await runner.cleanup()
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await asyncio.to_thread(server.recorder.flush)
    waiting = server.recorder.pending
    if waiting:
        report(f"{waiting} rows are lost, since they cannot be written: {server.recorder.failure}")
