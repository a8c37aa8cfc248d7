"""The kit itself: every check finds the fault it is there for, and passes a part without it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Generator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import lookup.testing
from lookup.errors import PulsarLookupError
from lookup.model import (
    Broker,
    Candidates,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LookupRequest,
    Probe,
    Reason,
    Ruling,
    Split,
    Unload,
)
from lookup.testing import CHECKS, WORLDS, conformance, parametrize_with_policies, policy_of

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Base:
    """A sound selector; the faulty ones below change one thing each."""

    name: ClassVar[str] = "sound"
    reads: ClassVar[frozenset[str]] = _NOTHING

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Answer alike for everybody."""
        return [1.0] * len(brokers)


@dataclass
class Thawed:
    """Is not frozen."""

    name: ClassVar[str] = "thawed"

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Answer alike for everybody."""
        return [1.0] * len(brokers)


@dataclass(frozen=True)
class ReadsNonsense(Base):
    """Declares a field that does not exist."""

    reads: ClassVar[frozenset[str]] = frozenset({"load"})


@dataclass(frozen=True)
class TooMany(Base):
    """Gives one answer too many."""

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Count one too far."""
        return [1.0] * (len(brokers) + 1)


@dataclass(frozen=True)
class First(Base):
    """Goes by places."""

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Choose the first."""
        return [float(place == 0) for place in range(len(brokers))]


@dataclass(frozen=True)
class Moody(Base):
    """Keeps a state of its own."""

    asked: ClassVar[list[int]] = []

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Change its mind every time."""
        self.asked.append(1)
        return [1.0 + len(self.asked) * place for place, _ in enumerate(brokers)]


@dataclass(frozen=True)
class Vandal(Base):
    """Writes into what it is handed."""

    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Replace what is unknown, in place."""
        view.load.usage[np.isnan(view.load.usage)] = 0.0
        return 1.0 - np.minimum(view.load.usage[brokers.index], 0.9)


@dataclass(frozen=True)
class Peeping(Base):
    """Touches what it did not declare."""

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Look at the tenant."""
        return [float(len(request.tenant))] * len(brokers)


@dataclass(frozen=True)
class Unpicklable(Base):
    """Holds a function."""

    call: Callable[[], int] = field(default=lambda: 1, repr=False, compare=False)


@dataclass(frozen=True)
class Silent(Base):
    """Hides a parameter from what it prints."""

    size: int = field(default=1, repr=False)


@dataclass(frozen=True)
class Nameless(Base):
    """Means something by None, which TOML cannot say."""

    label: str | None = "a"


@dataclass(frozen=True)
class Hoarder(Base):
    """Remembers what JSON cannot hold."""

    reads: ClassVar[frozenset[str]] = frozenset({"view.memory"})

    def remember(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker) -> None:
        """Keep a set."""
        memory["seen"] = {broker.id}


@dataclass(frozen=True)
class Mute:
    """A filter that cannot say why."""

    name: ClassVar[str] = "mute"
    reads: ClassVar[frozenset[str]] = _NOTHING
    reason: ClassVar[Reason] = Reason.FILTERED

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Reject everybody."""
        return [False] * len(brokers)

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Say nothing."""
        return ""


@dataclass(frozen=True)
class Indiscreet(Mute):
    """A filter whose reasons look at more than it declared."""

    name: ClassVar[str] = "indiscreet"

    def detail(self, request: LookupRequest, broker: Broker, view: ClusterView) -> str:
        """Name the tenant."""
        return f"{request.tenant} may not"


@dataclass(frozen=True)
class Partial:
    """A scorer that takes a missing property for one that brokers without a label share."""

    name: ClassVar[str] = "partial"
    reads: ClassVar[frozenset[str]] = frozenset({"properties.dc"})

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[float]:
        """Compare what is with what is not."""
        return [float(broker.property_of("dc") == request.property_of("dc")) for broker in brokers]


@dataclass(frozen=True)
class Clockwatcher:
    """A shedder that goes by a clock it did not declare."""

    name: ClassVar[str] = "clockwatcher"
    reads: ClassVar[frozenset[str]] = _NOTHING

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Wait for the next day."""
        if getattr(view, "now_us", 0) > 80_000_000_000:
            yield Unload("public/default/0x0_0x1", view.brokers[0].id)
        return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BUNDLES)


@dataclass(frozen=True)
class Endless:
    """A shedder that never ends."""

    name: ClassVar[str] = "endless"
    reads: ClassVar[frozenset[str]] = _NOTHING

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Probe, Ruling, CycleOutcome]:
        """Ask again."""
        for _ in range(5000):
            yield Probe(Unload("public/default/0x0_0x1", "b"))
        return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BUNDLES)


@dataclass(frozen=True)
class Backwards:
    """A split algorithm whose cuts do not ascend."""

    name: ClassVar[str] = "backwards"
    reads: ClassVar[frozenset[str]] = _NOTHING

    def boundaries(self, bundle: Any, topics: Any, positions: Any) -> list[int]:
        """Name the upper cut first."""
        return [bundle.range.lower + 2, bundle.range.lower + 1]


@dataclass(frozen=True)
class Hasty:
    """A splitter that goes by a clock it did not declare."""

    name: ClassVar[str] = "hasty"
    reads: ClassVar[frozenset[str]] = _NOTHING

    algorithm: Backwards = Backwards()

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Wait for the next day."""
        if getattr(view, "now_us", 0) > 80_000_000_000:
            yield Split("public/default/0x0_0x1", view.brokers[0].id, (1,))
        return CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)


@dataclass(frozen=True)
class Narrow:
    """Rules out for good whom it admits if there is no other."""

    name: ClassVar[str] = "narrow"
    reason: ClassVar[Reason] = Reason.FILTERED
    reads: ClassVar[frozenset[str]] = _NOTHING

    def admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Keep the first."""
        return [place == 0 for place in range(len(brokers))]

    def may_admit(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> list[bool]:
        """Answer as if all brokers were candidates."""
        return self.admit(request, brokers, view)


@pytest.mark.parametrize(
    ("part", "check", "sentence"),
    [
        (Thawed(), "admitted_at_the_door", "is not a frozen dataclass"),
        (ReadsNonsense(), "admitted_at_the_door", "'load'; did you mean 'view.load'"),
        (TooMany(), "answers_are_sound", "answered odds of shape"),
        (First(), "order_does_not_matter", "First.*not"),
        (Moody(), "same_answer_twice", "answered otherwise the second time"),
        (Vandal(), "deciding_changes_nothing", "changed what it was handed"),
        (Peeping(), "reads_are_honest", "read request.tenant without 'tenant'"),
        (Silent(size=2), "repr_rebuilds", "not rebuilt"),
        (Nameless(label=None), "toml_round_trip", "builds Nameless"),
        (Partial(), "nobody_is_preferred_without_properties", "without any property"),
        (Mute(), "rejections_are_explained", "says ''"),
        (Indiscreet(), "rejections_are_explained", "its detail raised ReadsError"),
        (Narrow(), "limits_are_wide", "admits .*may_admit"),
        (Clockwatcher(), "shedding_repeats", "read view.now_us without 'view.now'"),
        (Endless(), "shedding_repeats", "is still proposing"),
        (Hasty(), "splitting_repeats", "read view.now_us without 'view.now'"),
        (Backwards(), "splits_are_sound", "proposed splits refused as .*bad-boundary"),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "name") else None,
)
def test_a_check_finds_its_fault(part: Any, check: str, sentence: str) -> None:
    """A part with one fault fails the check for it, with a sentence."""
    with pytest.raises((AssertionError, PulsarLookupError), match=sentence):
        getattr(conformance, f"check_{check}")(policy_of(part))


@pytest.mark.parametrize(("part", "check"), [(Unpicklable(), "survives_pickle"), (Hoarder(), "memory_is_json")])
def test_what_python_itself_refuses_fails_too(part: Any, check: str) -> None:
    """What cannot be pickled, and memory that JSON cannot hold, end the check with Python's own error."""
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError), match=r"pickle|JSON"):
        getattr(conformance, f"check_{check}")(policy_of(part))


@parametrize_with_policies([Base()])
def test_a_sound_part_passes(policy: Any, check: Any) -> None:
    """A part without fault passes every check."""
    check(policy)


def test_every_check_is_in_the_list() -> None:
    """Each `check_` function of the module is run by the decorator."""
    written = {name for name in vars(conformance) if name.startswith("check_")}

    assert {check.__name__ for check in CHECKS} == written


def test_only_parts_and_policies_are_taken() -> None:
    """Anything else is refused with a sentence."""
    with pytest.raises(TypeError, match="3 is no policy"):
        policy_of(3)


def test_clusters_need_no_pytest() -> None:
    """Only the kit does; its names are fetched when they are asked for."""
    code = "import sys; sys.modules['pytest'] = None; from lookup.testing import WORLDS, cluster; print(len(WORLDS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert int(done.stdout) == len(WORLDS)
    with pytest.raises(AttributeError, match="has no attribute 'check_nothing'"):
        lookup.testing.check_nothing  # noqa: B018  a read is meant
