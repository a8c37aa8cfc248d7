"""What a class must be to be registered: signatures that can be called, and what metrics say of themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from lookup.engine.plugins import KINDS, PROTOCOLS, checked_name, load_plugins
from lookup.errors import PluginError
from lookup.hooks import Scorer
from lookup.model.decision import Reason


def _scorer(score: Any) -> type[Any]:
    """Make a scorer with a method, or what stands in its place."""
    return dataclass(frozen=True)(type("Mine", (), {"name": "mine", "score": score, "__annotations__": {}}))


def _metric(**attributes: Any) -> type[Any]:
    """Make a metric without a mistake, but for what is given."""
    right = {
        "name": "mine",
        "unit": "ratio",
        "better": "up",
        "grain": "lookup",
        "resample": "bundle",
        "keys": lambda self, batch: (None,),
        "accumulate": lambda self, batch, key: None,
        "value": lambda self, sums: sums[..., 0],
    }
    return dataclass(frozen=True)(type("Mine", (), {**right, "__annotations__": {}, **attributes}))


def _injecting(score: Callable[..., object]) -> Callable[..., object]:
    """Decorate as one does who hands over more than the engine gave."""

    @functools.wraps(score)
    def wrapper(*given: object) -> object:
        return score(*given, "more")

    return wrapper


def test_everything_that_is_registered_meets_its_protocol() -> None:
    """The built-in classes are held to the same rules, and every kind has a protocol."""
    registry = load_plugins()

    assert tuple(PROTOCOLS) == KINDS
    for kind in KINDS:
        assert [checked_name(kind, found) for found in registry.classes[kind].values()] == [*registry.classes[kind]]


@pytest.mark.parametrize(
    "score",
    [
        lambda self, request, brokers, view: (),
        lambda self, asked, whom, seen, more=1, *, most=2: (),
        lambda self, *given, **named: (),
        lambda *given: (),
        staticmethod(lambda request, brokers, view: ()),
        classmethod(lambda cls, request, brokers, view: ()),
        _injecting(lambda self, request, brokers, view, more: ()),
        property(lambda self: len),
        functools.partialmethod(lambda self, more, request, brokers, view: (), 1),
        print,
    ],
)
def test_whatever_can_be_called_is_a_method(score: Any) -> None:
    """Names are the author's own, more parameters have defaults, and what cannot be told is not refused."""
    assert checked_name("scorers", _scorer(score)) == "mine"


def test_a_field_may_stand_for_a_method() -> None:
    """An instance then has its own, which takes no `self`."""

    @dataclass(frozen=True)
    class Mine:
        name: ClassVar[str] = "mine"
        score: Callable[..., object] = lambda request, brokers, view: ()

    assert checked_name("scorers", Mine) == "mine"


@pytest.mark.parametrize(
    ("score", "sentence"),
    [
        (lambda self, request, brokers: (), r"`score\(request, brokers\)`, which cannot"),
        (lambda self, a, b, c, d: (), r"`score\(a, b, c, d\)`, which cannot"),
        (lambda self, *a, b: (), r"`score\(a, b\)`, which cannot"),
        (lambda: (), r"`score\(\)`, which cannot"),
        (staticmethod(lambda self, a, b, c: ()), r"`score\(self, a, b, c\)`, which cannot"),
        (5, "5 for its `score`, "),
    ],
)
def test_a_method_that_cannot_be_called_is_refused(score: Any, sentence: str) -> None:
    """At the door, and not at the first decision."""
    with pytest.raises(PluginError, match=rf"\.Mine, registered under scorers, has {sentence}"):
        checked_name("scorers", _scorer(score))


@pytest.mark.parametrize(
    ("kind", "method", "right"),
    [
        ("filters", "admit", r"admit\(request, brokers, view\)"),
        ("filters", "detail", r"detail\(request, broker, view\)"),
        ("filters", "should_unload", r"should_unload\(request, owner, brokers, view\)"),
        ("scorers", "remember", r"remember\(memory, request, broker\)"),
        ("selectors", "odds", r"odds\(request, brokers, scores, view\)"),
        ("selectors", "observe", r"observe\(memory, request, broker, offer\)"),
        ("shedders", "propose", r"propose\(view, memory\)"),
        ("splitters", "propose", r"propose\(view, memory\)"),
        ("split_algorithms", "boundaries", r"boundaries\(bundle, topics, positions\)"),
        ("listers", "list_topics", r"list_topics\(namespace, mode, properties, catalog\)"),
        ("listers", "initialize", r"initialize\(catalog\)"),
        ("log_readers", "parse", r"parse\(lines, source\)"),
        ("metrics", "keys", r"keys\(batch\)"),
        ("metrics", "accumulate", r"accumulate\(batch, key\)"),
        ("metrics", "value", r"value\(sums\)"),
    ],
)
def test_every_method_of_every_kind_is_looked_at(kind: str, method: str, right: str) -> None:
    """Those that may be left out as well."""
    whatever = dict.fromkeys(("admit", "score", "odds", "propose", "boundaries", "list_topics", "parse"), print)
    rest = {"initialize": print, "close": print, "interests": frozenset(), "reason": Reason.FILTERED}
    found = _metric(**{**whatever, **rest, method: lambda self: None})

    with pytest.raises(PluginError, match=rf"under {kind}, has `{method}\(\)`, which cannot be called as `{right}`"):
        checked_name(kind, found)


def test_a_class_may_inherit_from_its_protocol() -> None:
    """As its author may like it for the type checker."""

    @dataclass(frozen=True)
    class Mine(Scorer):
        name: ClassVar[str] = "mine"

        def score(self, request: object, brokers: Any, view: object) -> list[float]:
            return [1.0] * len(brokers)

    assert checked_name("scorers", Mine) == "mine"


# Metrics


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"every_key": None},
        {"every_key": ()},
        {"every_key": ("a", "b")},
        {"better": "info", "grain": "cell", "resample": "time"},
        {"better": "down", "grain": "change", "resample": "none", "unit": "€ per month"},
        {"better": "down", "grain": "change", "resample": "event"},
        {"better": property(lambda self: "up")},
        {"better": field(default="up"), "__annotations__": {"better": str}},
    ],
)
def test_a_metric_says_what_it_is(attributes: dict[str, Any]) -> None:
    """In class attributes, properties or parameters."""
    assert checked_name("metrics", _metric(**attributes)) == "mine"


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"better": "sideways"}, "has 'sideways' for its `better`; 'up', "),
        ({"better": None}, "has None for its `better`; 'up'"),
        ({"better": ["up"]}, r"has \['up'\] for its `better`; 'up'"),
        ({"grain": "foo"}, "has 'foo' for its `grain`; 'lookup', "),
        ({"resample": "foo"}, "has 'foo' for its `resample`; 'bundle', "),
        ({"luck": "demand"}, "has 'demand' for its `luck`; a tuple"),
        ({"bounds": (1.0,)}, r"has \(1\.0,\) for its `bounds`; a pair"),
        ({"bounds": (1.0, 0.0)}, r"has \(1\.0, 0\.0\) for its `bounds`"),
        ({"question": "week"}, "has 'week' for its `question`; 'log' or"),
        ({"luck": ("weather",)}, r"has \('weather',\) for its `luck`; a tuple"),
        ({"unit": 5}, "has 5 for its `unit`; a text"),
        ({"unit": ""}, "has '' for its `unit`"),
        ({"unit": "m\ns"}, r"has 'm\\ns' for its `unit`"),
        ({"every_key": "rack"}, "has 'rack' for its `every_key`; a tuple"),
        ({"every_key": (None,)}, r"has \(None,\) for its `every_key`; a tuple"),
        ({"every_key": ["a"]}, r"has \['a'\] for its `every_key`; a tuple"),
        ({"name": "a:b"}, "has 'a:b' for its `name`; a text"),
        ({"name": "a\x1b[31m"}, r"has 'a\\x1b\[31m' for its `name`; a text"),
        ({"x": 0, "__post_init__": lambda self: 1 // self.x}, "cannot be .*: ZeroDivisionError: "),
        ({"x": field(), "__annotations__": {"x": int}}, r"cannot be .*: TypeError: .*\('x'|'x'"),
    ],
)
def test_a_metric_that_says_what_has_no_meaning_is_refused(attributes: dict[str, Any], sentence: str) -> None:
    """With the class, the attribute, the value, and what would be right."""
    with pytest.raises(PluginError, match=rf"\.Mine, registered under metrics, {sentence}"):
        checked_name("metrics", _metric(**attributes))
