"""Answer HTTP requests of brokers by policies, and record everything.

One event loop makes all decisions, and a thread only writes files. `docs/bridge-protocol.md` has the protocol.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from aiohttp import web

from lookup.engine.owners import Owners
from lookup.engine.policy import Policy
from lookup.errors import InputError, LimitError, PolicyError, SettingsError
from lookup.model.recent import Recent
from lookup.serve.connections import MALFORMED, PATIENCE_S, Connections, problem, read_body, refusal
from lookup.serve.deciding import Deciders, PolicyAnswer, Views, reads_owners
from lookup.serve.following import Follower
from lookup.serve.messages import PROTOCOL, body_of, decide_message, record_message
from lookup.serve.metrics import Metrics
from lookup.serve.policies import ServedPolicies, served_policies
from lookup.serve.recording import Recorder
from lookup.serve.topic_requests import TopicRequests
from lookup.serve.topics import ServedTopics
from lookup.settings import ServingFile
from lookup.settings.serving import ServingSection

__all__ = ["DecisionServer"]

#: Settings that cannot change while the server runs.
_FIXED = ("bind", "cluster", "port", "record")
_OWNERS = "view.ownership"
#: Latest decisions that can be explained. Views, which many of them share, take 2 kB for each broker.
_EXPLAINED = 1_000
#: Seconds between two checks of the follower's changes, while there are no requests.
_FOLLOW_S = 0.1
#: Paths that do not need a token.
_OPEN = ("/health", "/ready")
#: Watches last long, and are counted by their own handler.
_WATCH_PATH = "/watch"

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class _Configured:
    """Everything that settings decide and that loading them again replaces."""

    settings: ServingFile
    served: ServedPolicies
    token: str | None

    @property
    def section(self) -> ServingSection:
        return self.settings.serving


def _configure(settings: ServingFile) -> _Configured:
    return _Configured(settings, served_policies(settings), settings.serving.token())


class DecisionServer:
    """A server that answers brokers by the policies of its settings.

    Args:
        report: takes a sentence for the operator.
        follower: follows the owners of bundles, if policies may read them.
        topics: the topics of the cluster, if the settings have a table for them.

    Raises:
        SettingsError: if a policy cannot be built or served, or the token cannot be read.
        InputError: if the folder of the record cannot be written.
    """

    def __init__(
        self,
        settings: ServingFile,
        report: Callable[[str], None],
        follower: Follower | None,
        topics: ServedTopics | None,
    ) -> None:
        self._report, self._follower, self._topics = report, follower, topics
        #: last reading of the clock, and the time of the latest decision, which never goes back
        self._clock_us = self._last_us = time.time_ns() // 1000
        self._configured = _configure(settings)
        self._started_us = self._last_us
        section, served = self._configured.section, self._configured.served
        # Includes the process, since two servers may begin in one microsecond, also by a clock that was put back.
        run = f"{self._started_us:x}-{os.getpid()}"
        self.recorder = Recorder(section.record, section.cluster, run, section.max_pending_rows)
        self.recorder.prepare()
        self.recorder.describe(served.reference, served.document)
        self.metrics = Metrics()
        self.connections = Connections(lambda status: self.metrics.requests("other", status).inc())
        self._views = Views(served.surroundings)
        self._owners = Owners(run)
        #: time up to which the state topic is known, µs
        self._owners_as_of_us = self._started_us
        #: a change of owners found no room in the record, so that its series cannot be repeated
        self._is_torn = False
        self._deciders = Deciders(served, self._owners, self._started_us)
        self._explainable: Recent[str, PolicyAnswer] = Recent(_EXPLAINED)
        #: is it about topics -> requests under way
        self._in_flight = {False: 0, True: 0}
        self._is_stopping = False
        self._routes = [
            web.post("/decide", self._decide),
            web.post("/record", self._record),
            web.get("/health", self._check_health),
            web.get("/ready/records", self._check_ready),
            web.get("/metrics", self._show_metrics),
            web.get("/explain/{decision}", self._explain),
        ]
        self._topic_routes = TopicRequests(topics).routes()
        # Requests about topics may wait for the cluster, so they are counted apart from all others.
        self._topic_paths = {route_prefix(route.path) for route in self._topic_routes}
        self._paths = {route_prefix(route.path) for route in self._routes} | self._topic_paths
        self.metrics.begin(self._paths, served)
        for sentence in (*section.warnings, *served.warnings):
            report(f"warning: {sentence}")

    def application(self) -> web.Application:
        """Build the web application."""
        largest = max(self._configured.section.max_decide_bytes, self._configured.section.max_record_bytes)
        application = web.Application(middlewares=[self._guard], client_max_size=largest)
        application.add_routes([*self._routes, *self._topic_routes])
        return application

    # Requests

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        path = route_prefix(request.path)
        self.connections.heard(request.protocol)
        # So it stays if the client leaves, with which its request ends.
        status = 400
        try:
            response = await self._answer(request, handler, path)
            status = response.status
            return response
        except Exception:
            # A bug of ours, which aiohttp answers and logs.
            status = 500
            raise
        finally:
            self.metrics.requests(path if path in self._paths else "other", status).inc()

    async def _answer(self, request: web.Request, handler: _Handler, path: str) -> web.StreamResponse:
        configured = self._configured
        refused = refusal(request, configured.token, configured.section.bind)
        if refused is not None:
            answer = await handler(request) if path in _OPEN and refused.status == 401 else refused
            # Connections are few, and are reserved for admitted clients.
            answer.force_close()
            return answer
        protocol = request.headers.get("X-Lookup-Protocol", str(PROTOCOL))
        if protocol != str(PROTOCOL):
            return problem(400, f"protocol {protocol[:20]} is not spoken here; {PROTOCOL} would be right")
        # Monitoring must not mistake a busy server for a broken one.
        is_about_topics = path in self._topic_paths
        is_counted = path not in (*_OPEN, _WATCH_PATH)
        is_full = is_counted and self._in_flight[is_about_topics] >= configured.section.max_in_flight
        if self._is_stopping or is_full:
            return problem(503, "the server is stopping" if self._is_stopping else "too many requests are in flight")
        self._in_flight[is_about_topics] += is_counted
        try:
            return await handler(request)
        except (InputError, PolicyError) as error:
            status = 413 if isinstance(error, LimitError) else 400 if isinstance(error, InputError) else 500
            return problem(status, str(error))
        except TimeoutError:
            return problem(400, f"the body did not arrive within {PATIENCE_S:g} s")
        except MALFORMED:
            return problem(400, "the body is cut off, or not in the encoding that its head names")
        except web.HTTPException as error:
            return problem(error.status, str(error.reason))
        finally:
            self._in_flight[is_about_topics] -= is_counted

    async def _record(self, request: web.Request) -> web.StreamResponse:
        raw, recorder = await read_body(request, self._configured.section.max_record_bytes), self.recorder
        if recorder.refusal is not None:
            return problem(507, recorder.refusal)
        message = record_message(body_of(raw), self._configured.section)
        added, is_first = recorder.add_lookups(message)
        self.metrics.lookups.inc(added)
        self.metrics.refused.inc(len(message.refused))
        if is_first:
            # Answered after it is on the disk, since from then on a gap shows the losses of a crash.
            await asyncio.to_thread(recorder.flush)
            if recorder.failure is not None:
                return problem(507, recorder.failure)
        first = {"reason": message.refused[0]} if message.refused else {}
        return web.json_response({"accepted": len(message.rows), "refused": len(message.refused), **first})

    async def _decide(self, request: web.Request) -> web.StreamResponse:
        began = time.perf_counter()
        body = body_of(await read_body(request, self._configured.section.max_decide_bytes))
        # Only now, and without await from here on, since settings may be loaded again while a body arrives.
        configured = self._configured
        policy = configured.served.active
        if policy is None:
            return problem(404, "this server only records: serving.active names no policy")
        message = decide_message(body, configured.section)
        unknown = self._explain_unknown_owners(policy)
        if unknown is not None:
            self.metrics.owners_unknown.inc()
            return problem(503, unknown)
        self._follow_owners()
        now_us = self._read_clock()
        view = self._views.find(message, now_us)
        if view is None:
            return problem(409, f"there is no view {message.view_id!r} of broker {message.broker}; send it again")
        # The answer is kept for a while, and has the view as well.
        message = message._replace(view=None)
        try:
            answer = self._deciders.answer(policy, message, view, now_us)
        except PolicyError:
            self.metrics.decisions(policy.name, "error").inc()
            raise
        if not self.recorder.knows(view):
            self.recorder.add_view(view, self._views.current)
        is_carried = not message.is_shadow
        row = answer.row(configured.served, configured.section.masked, is_carried=is_carried)
        self.recorder.add_decision(answer, row, is_carried=is_carried)
        self.metrics.decisions(policy.name, "declined" if answer.broker is None else "chosen").inc()
        self.metrics.loads_age.set(now_us / 1e6 - view.oldest_load_ms / 1e3)
        self._explainable.put(answer.decision, answer)
        content = {
            "decision": answer.decision,
            "broker": answer.broker,
            "propensity": answer.propensity,
            "policy": policy.name,
        }
        if answer.ballot.declined is not None:
            content["declined"] = answer.ballot.declined.value
        self.metrics.seconds.observe(time.perf_counter() - began)
        return web.json_response(content)

    async def _check_ready(self, _: web.Request) -> web.StreamResponse:
        reason = self.recorder.refusal
        content = {"status": "ok"} if reason is None else {"status": "failing", "reason": reason}
        return web.json_response(content, status=200 if reason is None else 503)

    async def _check_health(self, request: web.Request) -> web.StreamResponse:
        if "X-Lookup-Protocol" in request.headers:
            # Brokers with the jar of an earlier release, which send no lookups unless the answer is 200.
            return await self._check_ready(request)
        served, follower = self._configured.served, self._follower
        problems = [] if self.recorder.refusal is None else [self.recorder.refusal]
        if follower is not None and (lost := follower.problem(0.0)) is not None:
            problems.append(lost)
        if self._topics is not None and self._topics.trouble is not None:
            problems.append(self._topics.trouble)
        content: dict[str, Any] = {
            "status": "failing" if problems else "ok",
            "protocol": PROTOCOL,
            "version": version("pulsar-lookup"),
            "policy": None if served.active is None else served.active.name,
        }
        if follower is not None:
            content["owners"] = {"bundles": len(self._owners), "refused": follower.refused}
            if follower.reason is not None:
                content["owners"]["refused_for"] = follower.reason
        if problems:
            content["reason"] = "; ".join(problems)
        return web.json_response(content, status=503 if problems else 200)

    async def _show_metrics(self, _: web.Request) -> web.StreamResponse:
        if self._follower is not None:
            self._follow_owners()
            lag_s = max(0.0, (time.time_ns() // 1000 - self._owners_as_of_us) / 1e6)
            self.metrics.show_owners(self._follower, self._owners, lag_s)
        self.metrics.topics_lost.set(self._topics is not None and self._topics.trouble is not None)
        return web.Response(body=self.metrics.text(self.recorder), content_type="text/plain", charset="utf-8")

    async def _explain(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["decision"]
        answer = self._explainable.get(name)
        if answer is None:
            return problem(404, f"decision {name[:50]!r} is not among the last {len(self._explainable)}")
        return web.json_response(answer.explain(self._owners))

    # Work behind the answers

    def _read_clock(self) -> int:
        """Compute the time of a decision, later than that of the previous one, even if the clock goes back."""
        now_us = time.time_ns() // 1000
        if now_us < self._clock_us:
            self.metrics.clock_jumps.inc()
        self._clock_us, self._last_us = now_us, max(now_us, self._last_us + 1)
        return self._last_us

    def _follow_owners(self) -> None:
        if self._follower is None:
            return
        changes, recorder, now_us = self._follower.changes, self.recorder, self._last_us
        # At most as many as there are, since a topic that is read from its beginning must not delay a request for ever.
        for _ in range(len(changes)):
            bundle, broker, self._owners_as_of_us = changes.popleft()
            if bundle is not None:
                self._is_torn |= not recorder.add_owner_change(self._owners.apply(bundle, broker), now_us)
        has_room = recorder.pending + len(self._owners) < recorder.max_pending
        if self._owners.is_long or (self._is_torn and has_room):
            self._is_torn = False
            for change in self._owners.begin_series():
                self._is_torn |= not recorder.add_owner_change(change, now_us)

    def _explain_unknown_owners(self, policy: Policy) -> str | None:
        """Explain why a policy cannot be evaluated, since it reads unknown owners, None if it can."""
        # Policies that read owners are refused without a collector, when settings are loaded.
        if self._follower is None or not reads_owners(policy):
            return None
        return self._follower.problem(self._follower.section.stale_s)

    async def work_on_record(self) -> None:
        """Write rows again and again."""
        failed = False
        while True:
            await asyncio.sleep(self._configured.section.flush_s)
            await asyncio.to_thread(self.recorder.flush)
            if (self.recorder.failure is not None) != failed:
                failed = not failed
                failure = f"rows cannot be written and wait: {self.recorder.failure}"
                self._report(failure if failed else "rows are written again")

    async def work_on_owners(self) -> None:
        """Apply changes of owners even without requests, so that few wait, and report errors that stop it."""
        reported: str | None = None
        while self._follower is not None:
            self._follow_owners()
            trouble = self._follower.trouble
            if trouble is not None and reported is None:
                self._report(f"the state topic cannot be read, the known owners are kept: {trouble[0]}")
            elif trouble is None and reported is not None:
                self._report("the state topic can be read again")
            reported = None if trouble is None else trouble[0]
            await asyncio.sleep(_FOLLOW_S)

    async def wait_for_owners(self) -> None:
        """Wait until all owners are known, or raise InputError if they are late and the active policy reads them."""
        follower, policy = self._follower, self._configured.served.active
        if follower is None:
            return
        until = time.monotonic() + follower.section.wait_s
        while not follower.is_complete.is_set() and time.monotonic() < until:
            await asyncio.sleep(_FOLLOW_S)
        self._follow_owners()
        lost = follower.problem(0.0)
        if lost is None or policy is None or not reads_owners(policy):
            return
        parts = [part.name for part, reads in zip(policy.parts, policy.part_reads, strict=True) if _OWNERS in reads]
        sentence = f"collect.service_url: {lost}; policy {policy.name!r} reads {_OWNERS} ({', '.join(parts)})"
        raise InputError(f"{sentence}; waited {follower.section.wait_s:g} s, collect.wait_s")

    def reload(self, load: Callable[[], ServingFile]) -> bool:
        """Apply new settings, or keep the old ones and report why. Return whether they were applied."""
        try:
            configured = _configure(load())
            _require_same(configured, self._configured)
            self.recorder.describe(configured.served.reference, configured.served.document)
        except (SettingsError, InputError) as error:
            for sentence in getattr(error, "problems", (str(error),)):
                self._report(f"the settings stay as they were: {sentence}")
            self.metrics.reloads.labels("refused").inc()
            return False
        # Views hold prefix and topology, which may have changed. Brokers send their views again on request.
        if configured.served.surroundings != self._configured.served.surroundings:
            self._views = Views(configured.served.surroundings)
        decided = self._deciders
        self._configured = configured
        self.metrics.begin(self._paths, configured.served)
        self.recorder.max_pending = configured.section.max_pending_rows
        self._deciders = Deciders(configured.served, self._owners, self._started_us, count=decided.count)
        for sentence in configured.served.warnings:
            self._report(f"warning: {sentence}")
        self._report("the settings were loaded again")
        self.metrics.reloads.labels("taken").inc()
        return True

    def stop(self) -> None:
        """Refuse further requests, and end watches."""
        self._is_stopping = True
        if self._topics is not None:
            self._topics.watchers.close()


def _require_same(configured: _Configured, before: _Configured) -> None:
    changed = [f"serving.{key}" for key in _FIXED if getattr(configured.section, key) != getattr(before.section, key)]
    new, old = configured.settings, before.settings
    changed += [table for table in ("collect", "topics") if getattr(new, table) != getattr(old, table)]
    if changed:
        raise SettingsError([f"{key}: cannot change while the server runs; start it again" for key in changed])


def route_prefix(path: str) -> str:
    # Some targets of HTTP do not have a slash, such as `OPTIONS *`, and requests to a proxy.
    return "/" + path.partition("/")[2].partition("/")[0]
