"""Let one of several servers move the bundles of a cluster, by a lock in ZooKeeper, and put back what the last left.

Below `/pulsar-lookup/balance/CLUSTER`:

    lock      the servers that want to move bundles; the first does
    frozen    while shedding is kept still: the journal's entry that says how it was found, for who holds the lock next
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from kazoo.client import KazooState
from kazoo.exceptions import KazooException, LockTimeout, NodeExistsError, NoNodeError
from kazoo.recipe.lock import Lock

from lookup.collect.sources import AdminRest, Credentials, reason_of, zookeeper_client
from lookup.moving.journal import Journal
from lookup.moving.shedding import put_back, restored

__all__ = ["Leader"]

_FOLDER = "/pulsar-lookup/balance"
#: Seconds for which the lock is waited for before it is asked again who holds it, and until a failure is tried again.
_WAIT_S, _RETRY_S = 5.0, 1.0
#: Seconds between two looks at whether the lock was lost, and that an answer of ZooKeeper may take.
_LOOK_S, _ANSWER_S = 1.0, 5.0
_GONE = "the lock in ZooKeeper was lost"


class Leader(Thread):
    """Asks for the lock, and for it again once it was lost; a guard of what only its holder may do.

    Args:
        servers: as of `zookeeper_client`.
        rest: of the cluster, to put shedding back.
        say: takes a sentence for the operator.
    """

    def __init__(
        self, servers: str, cluster: str, rest: AdminRest, credentials: Credentials, say: Callable[[str], None]
    ) -> None:
        super().__init__(name="balance-leader", daemon=True)
        self._servers, self._rest, self._say = servers, rest, say
        self._client: Any = zookeeper_client(servers, credentials, read_only=False)
        self._client.add_listener(self._changed)
        self._folder = f"{_FOLDER}/{cluster}"
        self._frozen = f"{self._folder}/frozen"
        self._host = socket.gethostname()
        self._who = f"{self._host}, process {os.getpid()}"
        self._stopped, self._lost = Event(), Event()
        #: it is known who holds the lock, or not worth waiting for any more
        self.is_settled = Event()
        #: the lock that is waited for, or held
        self._asked: Lock | None = None
        #: it is held, and what the last holder has left was put back
        self.is_leading = False
        #: why it is not
        self._reason = "it has not been asked for yet"

    def __str__(self) -> str:
        return f"this server holds the lock {self._folder}/lock in ZooKeeper"

    def run(self) -> None:
        """Ask for the lock until closed."""
        self._client.start_async()
        while not self._stopped.is_set():
            try:
                self._lead()
            # Whatever it is: a thread that ends in silence would never lead again.
            except Exception as error:  # noqa: BLE001
                self._reason = reason_of(error)
            self._stopped.wait(_RETRY_S)
        self._client.stop()
        self._client.close()

    def close(self) -> None:
        """Give the lock up, if it is held, and end."""
        self._stopped.set()
        self.is_settled.set()
        if self._asked is not None and not self.is_leading:
            self._asked.cancel()
        self.join(_ANSWER_S + _RETRY_S)

    def _changed(self, state: str) -> bool:
        if state == KazooState.LOST:
            self._lost.set()
        # None but a listener that returns True is forgotten.
        return False

    def _lead(self) -> None:
        """Wait for the lock for a while, and hold it until it is lost or this server ends."""
        if not self._client.connected:
            self._reason = f"ZooKeeper at {self._servers} cannot be reached"
            return
        self._lost.clear()
        # A lock of its own for each session: kazoo's does not notice that it was lost.
        lock = self._asked = self._client.Lock(f"{self._folder}/lock", self._who)
        try:
            is_ours = lock.acquire(timeout=_WAIT_S)
        except LockTimeout:
            is_ours = False
        if not is_ours:
            self.is_settled.set()
            holders = lock.contenders()
            self._reason = f"{holders[0]} holds it" if holders else "it was just given up"
            return
        try:
            self.recover()
            self.is_leading = True
            self.is_settled.set()
            self._say("this server holds the lock from now on, and moves bundles")
            while not (self._stopped.wait(_LOOK_S) or self._lost.is_set() or self.look() == _GONE):
                pass
        finally:
            if self.is_leading and not self._stopped.is_set():
                self._say(f"{_GONE}: nothing is moved")
            self.is_leading = False
            self._reason = "it was lost"
            if not self._lost.is_set():
                lock.release()

    def look(self) -> str | None:
        """Return why nothing may be moved, None if this server holds the lock at this moment, by ZooKeeper's word."""
        lock = self._asked
        if not self.is_leading or lock is None:
            return f"this server does not hold the lock: {self._reason}"
        if not self._client.connected:
            return f"it is not known whether {self}: ZooKeeper at {self._servers} cannot be reached"
        try:
            # A process that was stopped for longer than its session lasts does not know yet that this is over.
            node = self._client.exists_async(f"{lock.path}/{lock.node}").get(timeout=_ANSWER_S)
        except (KazooException, self._client.handler.timeout_exception) as error:
            return f"it is not known whether {self}: {reason_of(error)}"
        if node is None or node.ephemeralOwner != self._client.client_id[0]:
            return _GONE
        return None

    def share(self, entry: Mapping[str, Any]) -> None:
        """Keep an entry of a journal about shedding where the next holder of the lock finds it, on whatever machine.

        Raises:
            OSError: if ZooKeeper cannot keep it, so that shedding must not be switched off.
        """
        if entry["event"] != "freezing":
            # By then the next holder may have written its own.
            if self.look() is None:
                self._clear()
            return
        content = json.dumps({**entry, "host": self._host, "who": self._who}).encode()
        try:
            try:
                self._client.create_async(self._frozen, content, makepath=True).get(timeout=_ANSWER_S)
            except NodeExistsError:
                self._client.set_async(self._frozen, content).get(timeout=_ANSWER_S)
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise OSError(f"ZooKeeper cannot keep how shedding was found: {reason_of(error)}") from None

    def _clear(self) -> None:
        # If that fails, the next holder finds shedding as it was, and changes nothing.
        with suppress(KazooException, self._client.handler.timeout_exception):
            self._client.delete_async(self._frozen).get(timeout=_ANSWER_S)

    def recover(self) -> None:
        """Put shedding back if a server that held the lock has left it off, as `recover` of a journal does.

        Raises:
            StateError: if it cannot be put back.
            InputError: if the server that left it still writes its journal.
            OSError: if ZooKeeper fails.
        """
        try:
            content, _ = self._client.get_async(self._frozen).get(timeout=_ANSWER_S)
        except NoNodeError:
            return
        except (KazooException, self._client.handler.timeout_exception) as error:
            raise OSError(f"ZooKeeper cannot say how shedding was found: {reason_of(error)}") from None
        entry = json.loads(content)
        self._say(f"{entry['who']} has left Pulsar's shedder switched off at {entry['at']}; it is put back")
        journal = Path(entry["journal"])
        if entry["host"] == self._host and journal.is_file():
            with Journal(journal) as opened:
                put_back(self._rest, opened, self._say)
        # The journal of a server on another machine cannot be read here.
        elif (sentence := restored(self._rest, entry, journal)) is not None:
            self._say(sentence)
        self._clear()
