"""Answer requests about topics over HTTP, which are lists for brokers and commands, labels and properties.

POST    /list                  a list, with properties, pattern and selector: `docs/bridge-protocol.md`
GET     /watch?namespace=...   a list and its changes, as server-sent events: `docs/watches.md`
POST    /pairs                 labels or properties of a topic: read, added, removed
"""

from __future__ import annotations

from collections.abc import Awaitable

from aiohttp import web

from lookup.errors import (
    ArgumentError,
    InputError,
    InvalidNameError,
    LimitError,
    NotFoundError,
    NotSupportedError,
    PulsarLookupError,
    StateError,
)
from lookup.model.quoting import shown
from lookup.serve.connections import problem, read_body
from lookup.serve.messages import body_of, list_message, pairs_message
from lookup.serve.topics import ServedTopics

__all__ = ["TopicRequests"]

#: Greatest size of a body with the properties of a request, or the labels of a topic.
_MOST_BYTES = 1 << 20
_WATCH_FIELDS = ("namespace", "pattern", "selector", "mode", "property")
_ABSENT = "this server lists no topics: its settings have no [topics]"


class TopicRequests:
    """The handlers of all paths about topics. Without topics each answers 404."""

    def __init__(self, topics: ServedTopics | None) -> None:
        self._topics = topics

    def routes(self) -> list[web.RouteDef]:
        """List the paths with their handlers."""
        return [
            web.post("/list", self._list),
            # HEAD would be a watch as well, without HTTP's form for its messages.
            web.get("/watch", self._watch, allow_head=False),
            web.post("/pairs", self._change_pairs),
        ]

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if self._topics is None:
            return problem(404, _ABSENT)
        listing = list_message(body_of(await read_body(request, _MOST_BYTES)))
        return await _answer(self._topics.list_topics(listing))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        fields = request.query
        # A misspelt field would be a watch of everything.
        for name in fields:
            if name not in _WATCH_FIELDS:
                raise InputError(f"{shown(name)} is not a field of a watch; {', '.join(_WATCH_FIELDS)} are")
            if name != "property" and len(fields.getall(name)) > 1:
                raise InputError(f"{name} is given twice")
        properties = [text.partition("=") for text in fields.getall("property", ())]
        if not all(separator for _, separator, _ in properties):
            raise InputError("property: should be KEY=VALUE")
        if len({key for key, _, _ in properties}) < len(properties):
            raise InputError("property: a key is given twice")
        message = {
            **{name: fields.get(name) for name in ("namespace", "mode", "pattern", "selector")},
            "properties": {key: value for key, _, value in properties},
        }
        query = list_message(message)
        if query.pattern is not None and query.selector:
            raise InputError("a watch is of a pattern or of labels, and only one of them")
        try:
            if self._topics is None:
                raise NotSupportedError(_ABSENT)
            await self._topics.require_look(query.namespace)
            return await self._topics.watchers.serve(request, query)
        except PulsarLookupError as error:
            return problem(_choose_status(error), str(error))

    async def _change_pairs(self, request: web.Request) -> web.StreamResponse:
        if self._topics is None:
            return problem(404, _ABSENT)
        operation = pairs_message(body_of(await read_body(request, _MOST_BYTES)))
        return await _answer(self._topics.carry_out(operation))


async def _answer(work: Awaitable[str | None]) -> web.StreamResponse:
    """Build the response to a request for topics, JSON, empty, or a refusal that clients cannot take for a list."""
    try:
        text = await work
    except PulsarLookupError as error:
        return problem(_choose_status(error), str(error))
    if text is None:
        return web.Response(status=204)
    return web.Response(text=text, content_type="application/json")


def _choose_status(error: PulsarLookupError) -> int:
    match error:
        case LimitError():
            return 413
        case ArgumentError() | InvalidNameError():
            return 400
        case NotFoundError():
            return 404
        case NotSupportedError():
            return 501
        case StateError() | InputError():  # topics that are not known, and a catalog that cannot be written
            return 503
        case _:
            return 500
