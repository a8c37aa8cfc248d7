"""Listeners of a catalog, and the order in which they are told: every event once, by revision, whatever they do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from lookup.model.catalog import TopicEvent

__all__ = ["Announcer", "Listener"]

#: What is called with every event.
Listener = Callable[[TopicEvent], None]


class Announcer:
    """Tells listeners; events that a listener causes wait until those before them are told to all."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[int, Listener]] = {}
        self._untold: deque[TopicEvent] = deque()
        self._is_telling = False

    def subscribe(self, listener: Listener, *, after: int) -> Callable[[], None]:
        """Add a listener that hears what comes after a revision; return what takes it out again."""
        token = object()
        self._listeners[token] = (after, listener)

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def expect(self, events: Iterable[TopicEvent]) -> None:
        """Put events, which are safe, in the queue."""
        self._untold.extend(events)

    def tell(self) -> None:
        """Tell everything in the queue, unless that is under way.

        Raises:
            Exception: the first that a listener raised, after all listeners were told everything.
        """
        if self._is_telling:
            return
        self._is_telling = True
        try:
            errors = [error for error in self._tell_all() if error is not None]
        finally:
            self._is_telling = False
        if errors:
            raise errors[0]

    def _tell_all(self) -> Iterable[Exception | None]:
        while self._untold:
            event = self._untold.popleft()
            for token in tuple(self._listeners):
                yield self._tell(token, event)

    def _tell(self, token: object, event: TopicEvent) -> Exception | None:
        # One listener may have taken another out a moment ago.
        after, listener = self._listeners.get(token, (event.revision, None))
        if listener is None or event.revision <= after:
            return None
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001  a listener may raise anything; the others must hear the event all the same
            return error
        return None
