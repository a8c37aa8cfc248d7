"""The parts `java`, a shedder and a selector that call a class in Java, with one instance of it for each run."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from lookup.errors import ContractError
from lookup.hooks import Conf, Gt, Offer
from lookup.model import (
    Broker,
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupRequest,
    Ruling,
    Unload,
)
from lookup_java.jvm import JavaError, ask, running
from lookup_java.states import extensible_state, modular_state

__all__ = ["JavaSelector", "JavaShedder"]

#: Keys of a `broker.conf`.
Keys = Mapping[str, str | int | float | bool]

#: Pulsar's loadBalancerSheddingGracePeriodMinutes, by default.
_GRACE_MINUTES: Final = 30
_MINUTE_US: Final = 60 * 1_000_000


class _Instance(str):
    """The number of an instance, as the memory of its run has it."""

    def __deepcopy__(self, copies: object) -> str:
        """Copy the number as a plain text, which marks the copied memory of a second choice."""
        return str(self)


_numbers = count(1)
#: Instances by their numbers. The next call tells the JVM which runs have ended.
_sessions: dict[str, _Session] = {}
_ended: list[tuple[int, str, int]] = []


def _begin() -> _Instance:
    name = _Instance(next(_numbers))
    weakref.finalize(name, _end, str(name)).atexit = False
    return name


def _end(name: str) -> None:
    session = _sessions.pop(name, None)
    if session is not None:
        _ended.append((session.jvm, session.path, session.number))


@dataclass
class _Session:
    """One instance of a class, and the data that it has received."""

    number: int
    #: the number of the JVM that has it, 0 if none has yet
    jvm: int = 0
    path: str = ""
    is_extensible: bool = False
    #: the view whose reports it has, and whether they are those for a shedder
    shown: tuple[ClusterView, bool] | None = None
    #: the bundles of these reports, in their order
    names: Sequence[str] = ()
    #: the name of an instance before a run begins
    alive: str | None = None
    #: bundles placed since, with their brokers
    given: list[tuple[str, str]] = field(default_factory=list)
    #: the candidates of each choice of the last decision
    made: list[Sequence[str]] = field(default_factory=list)

    def knows(self, view: ClusterView, *, sheds: bool) -> bool:
        """Check whether it has received the reports of a view."""
        known, for_shedder = self.shown or (view, not sheds)
        return (
            for_shedder == sheds
            and known.load is view.load
            and (known.epoch_us, known.now_us) == (view.epoch_us, view.now_us)
        )


@lru_cache
def _path(lib: str) -> str:
    return os.pathsep.join(str(Path(entry).expanduser().absolute()) for entry in lib.split(os.pathsep) if entry)


@dataclass(frozen=True)
class _Java:
    """The parameters of both parts, which are the class, its path, and its settings."""

    name: ClassVar[str] = "java"
    is_foreign: ClassVar[bool] = True
    sheds: ClassVar[bool] = False

    #: full name of the class
    class_: str = ""
    #: jars, and folders of jars or classes, separated as in a class path, of which the first with a class counts
    lib: str = ""
    #: seconds within which it has to answer
    limit_s: Annotated[float, Gt(0)] = 60.0
    #: further keys of its `broker.conf`, such as its own
    conf: Keys = field(default_factory=dict)
    #: the keys of the policy's `broker.conf`
    broker_conf: Annotated[Keys, Conf("*")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a class path with an entry that does not exist. An empty one is refused by `check`."""
        for entry in filter(None, _path(self.lib).split(os.pathsep)):
            if not Path(entry).exists():
                raise ValueError(f"lib: {entry}: there is no such file or folder")

    @property
    def memory_key(self) -> str:
        """The name of the class, so that a shedder and a selector of one class are one instance, as in Pulsar."""
        return f"{self.name} {self.class_}"

    @property
    def _keys(self) -> dict[str, Any]:
        return {**self.broker_conf, **self.conf}

    def begin(self, memory: MutableMapping[str, Any]) -> None:
        """Name the instance of a run that begins, unless another part of the run has."""
        memory.setdefault(self.memory_key, _begin())

    def check(self) -> str | None:
        """Make an instance, and describe its runs in a sentence if they are not repeatable.

        Raises:
            ContractError: if the class cannot be used.
        """
        if not self.class_ or not self.lib:
            raise ContractError(
                f"part {self.name!r} needs class, a full name, and lib, a class path with Pulsar's jars"
            )
        session = _Session(next(_numbers))
        about = self._open(session)
        _ended.append((session.jvm, session.path, session.number))
        return f"{self.class_} draws at random itself" if about["dice"] else None

    def _call(self, action: str, **arguments: Any) -> dict[str, Any]:
        try:
            while _ended and action != "open":
                jvm, path, number = _ended.pop()
                if jvm == running():
                    ask(path, "close", self.limit_s, id=number)
            return ask(_path(self.lib), f"strategy.{action}", self.limit_s, **arguments)
        except ContractError as error:
            raise ContractError(f"part {self.name!r}, {self.class_}: {error}") from None

    def _open(self, session: _Session) -> dict[str, Any]:
        conf = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self._keys.items()}
        try:
            about = self._call("open", id=session.number, sheds=self.sheds, conf=conf, **{"class": self.class_})
        except JavaError as error:
            why = str(error).removeprefix("IllegalArgumentException: ")
            raise ContractError(f"part {self.name!r}, {self.class_}: {why}") from None
        session.jvm, session.path, session.is_extensible = running(), _path(self.lib), about["extensible"]
        return about

    def _catch_up(self, memory: Mapping[str, Any], view: ClusterView) -> tuple[_Session, dict[str, Any]]:
        """Find the instance of a run, or make one before a run begins, and collect the reports that it lacks."""
        name = memory.get(self.memory_key)
        if name is None:
            # Kept alive by its session, which lasts as long as the process.
            name = _begin()
            _sessions[str(name)] = _Session(int(name), alive=name)
        session = _sessions.setdefault(str(name), _Session(int(name)))
        if not session.jvm or session.jvm != running():
            self._open(session)
        if session.knows(view, sheds=self.sheds):
            return session, {}
        session.shown = view, self.sheds
        session.given.clear()
        if session.is_extensible:
            return session, extensible_state(view, self._keys)
        state = modular_state(view, view.ownership.bundles().tolist() if self.sheds else None)
        if state["names"] == session.names:
            del state["names"]
        else:
            session.names = state["names"]
        return session, state


@dataclass(frozen=True)
class JavaShedder(_Java):
    """Unload bundles as a class in Java does, which implements LoadSheddingStrategy or NamespaceUnloadStrategy.

    It gets the arguments that the load manager of its kind would pass. Ages of load data and unloads are those of the
    run.

    Match -> Result -> Reason:
        * no registered broker has a report -> nothing, the class is not called -> `no-load-data`
        * the class names bundles -> unloads -> its own reason, else `overloaded`
        * it names none -> nothing -> the reason that it counts, else `hit-count`

    Source: ModularLoadManagerImpl.doLoadShedding, UnloadScheduler.execute. See "Java policies" in the documentation.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.ownership", "view.now"})
    sheds: ClassVar[bool] = True

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose the bundles that the class names. Its cycle is over before the first ruling."""
        usage = view.load.usage[view.registered & ~np.isnan(view.load.usage)]
        if not len(usage):
            return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_LOAD_DATA)
        session, state = self._catch_up(memory, view)
        grace_us = float(self._keys.get("loadBalancerSheddingGracePeriodMinutes", _GRACE_MINUTES)) * _MINUTE_US
        cooling: dict[str, int] = memory.get("cooling", {})
        unloaded = {name: at for name, at in view.unloaded.items() if view.now_us - at <= grace_us}
        answer = self._call(
            "shed",
            id=session.number,
            made=session.made,
            unloaded={name: (view.now_us - at) // 1000 for name, at in unloaded.items()},
            cooling={broker: (view.now_us - at) // 1000 for broker, at in cooling.items()},
            **state,
        )
        session.made.clear()
        pauses = {broker: cooling[broker] for broker in answer.get("cooling", ())}
        number = view.brokers.number
        named = sorted(answer["unloads"], key=lambda unload: number(unload[1]) or 0)
        reasons = []
        for bundle, source, destination, reason in named:
            why = _reason(reason) or CycleReason.OVERLOADED
            # The class itself spares bundles after an unload, since it gets their ages.
            if (yield Unload(bundle, source, destination or None, why, in_exchange=True)).accepted:
                reasons.append(why)
                pauses[source] = view.now_us
        memory["cooling"] = pauses if session.is_extensible else {}
        figures = float(usage.mean()), float(usage.std())
        if reasons:
            return CycleOutcome(CycleLabel.SUCCESS, reasons[0], *figures)
        counted = filter(None, (_reason(each.partition(" ")[2]) for each in answer.get("counts", ())))
        idle = CycleReason.NO_BUNDLES if named else next(counted, CycleReason.HIT_COUNT)
        return CycleOutcome(CycleLabel.SKIP, idle, *figures)


def _reason(name: str) -> CycleReason | None:
    """Find the reason with the name of Pulsar's `UnloadDecision.Reason`, None if there is no equal one."""
    written = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
    return CycleReason(written) if written in {*CycleReason} else None


@dataclass(frozen=True)
class JavaSelector(_Java):
    """Choose as a class in Java does, which implements ModularLoadManagerStrategy or BrokerSelectionStrategy.

    Match -> Result -> Reason:
        * the class keeps the brokers that it draws from in its field `bestBrokers` -> an equal share for each
        * otherwise -> all to the broker that it chose
        * it does not choose a broker -> declines -> `no-odds`

    Source: ModularLoadManagerImpl.selectBroker, ExtensibleLoadManagerImpl.selectAsync. See "Java policies" in the
    documentation.
    """

    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.load", "view.now", "view.memory"})

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Give equal odds to the brokers from which the class draws."""
        session, state = self._catch_up(view.memory, view)
        arguments: dict[str, Any] = {"bundle": request.bundle, "candidates": list(brokers.ids)}
        arguments |= {"made": session.made, "supposed": view.memory.get("supposed", ()), "given": session.given}
        answer = self._call("place", id=session.number, **arguments, **state)
        session.made.clear()
        session.given.clear()
        return np.isin(brokers.ids, answer["ties"]).astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Keep a choice for the next call. The instance forgets choices that were not made."""
        instance, candidates = memory.get(self.memory_key), list(offer.brokers.ids)
        session = _sessions.get(str(instance))
        if session is None:
            return
        if not isinstance(instance, _Instance):
            memory["supposed"] = [*memory.get("supposed", ()), candidates]
            return
        session.made.append(candidates)
        if offer.is_assigned and (request.bundle, broker.id) not in session.given:
            session.given.append((request.bundle, broker.id))
