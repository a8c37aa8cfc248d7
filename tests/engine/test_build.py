"""From settings to policies and back."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from lookup.engine.build import PartBuilder, build_policies, part_table, policy_table
from lookup.engine.plugins import load_plugins, registry_of
from lookup.engine.policy import Policy, WeightedScorer
from lookup.errors import SettingsError
from lookup.hooks import Conf, Ge, Le, Selector
from lookup.model import Candidates, ClusterView, LookupRequest
from lookup.settings.policy import PartSpec, PolicySpec
from lookup_policies.broker_filters import MaxTopics
from lookup_policies.score_selectors import Best, Softmax
from lookup_policies.scorers import Headroom, PropertyMatch
from lookup_policies.threshold import Threshold
from lookup_policies.wrappers import Explore, Fallback

REGISTRY = load_plugins()
_GRACE = "loadBalancerSheddingGracePeriodMinutes"
_PERCENTAGE = "loadBalancerBrokerThresholdShedderPercentage"


@dataclass(frozen=True)
class Wide:
    """A selector with every kind of parameter settings can fill."""

    name: ClassVar[str] = "wide"
    reads: ClassVar[frozenset[str]] = frozenset()

    size: int
    ratio: Annotated[float, Ge(0), Le(1)] = 0.5
    label: str | None = None
    mode: Literal["fast", "slow"] = "fast"
    flags: tuple[bool, ...] = ()
    keys: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=dict)
    inner: Selector | None = None

    def __post_init__(self) -> None:
        if self.size == 13:
            raise KeyError("unlucky")

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Follow the scores."""
        return np.asarray(scores)


@dataclass(frozen=True)
class Configured:
    """A selector with a parameter that a `broker.conf` fills, and a check of its own."""

    name: ClassVar[str] = "configured"
    reads: ClassVar[frozenset[str]] = frozenset()

    size: Annotated[int, Conf("loadBalancerBrokerMaxTopics")] = 1

    def __post_init__(self) -> None:
        if self.size == 13:
            raise ValueError("13 is unlucky")

    def odds(self, request: LookupRequest, brokers: Candidates, scores: Any, view: ClusterView) -> Any:
        """Follow the scores."""
        return np.asarray(scores)


def _built(text: str) -> Policy:
    [built] = build_policies(REGISTRY, [PolicySpec.model_validate({"name": "p"} | tomllib.loads(text))])
    return built


def _problems(text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        _built(text)
    return list(caught.value.problems)


def _wide(**parameters: Any) -> tuple[Any, list[str]]:
    builder = PartBuilder(registry_of({"selectors": [Wide, Best]}))
    return builder.part("selectors", PartSpec.model_validate({"use": "wide", **parameters}), "here"), builder.problems


def test_a_policy_is_built_as_written() -> None:
    """Names, tables, weights, wrappers and lists of children become parts."""
    built = _built("""
        filters = ["max-topics"]
        scorers = [{ use = "property-match", key = "rack", weight = 0.7 }, { use = "headroom", weight = 0.3 }]
        selector = { use = "explore", epsilon = 1, child = { use = "fallback", children = ["best", "softmax"] } }
        shedder = { use = "threshold", threshold = 0.2 }
        on_error = "skip"
    """)

    assert built == Policy(
        "p",
        Explore(1.0, Fallback((Best(), Softmax()))),
        (MaxTopics(),),
        (WeightedScorer(PropertyMatch(), 0.7), WeightedScorer(Headroom(), 0.3)),
        Threshold(0.2),
        "skip",
    )


#: The mistakes that users make most in the parts of a policy, and what is said of them.
SENTENCES = [
    ('selector = "bset"', " selector: no selector named 'bset'; did you mean 'best'?"),
    (
        'selector = { use = "best", min_scor = 1 }',
        " selector: 'best' has no parameter 'min_scor'; did you mean 'min_score'?",
    ),
    ('selector = { use = "best", min_score = "1" }', " selector: min_score = '1': input should be a valid number"),
    ('selector = { use = "best", min_score = true }', " selector: min_score = True: input should be a valid number"),
    ('selector = { use = "best", min_score = nan }', " selector: min_score = nan: input should be a finite number"),
    ('selector = { use = "power-of-two", by = "age" }', " selector: by = 'age': input should be 'scores'"),
    ('selector = { use = "power-of-two", choices = 1.5 }', " selector: choices = 1.5: input should be a valid integer"),
    ('selector = { use = "explore", child = { epsilon = 1 } }', " selector.child: the key 'use' is missing"),
    ('selector = { use = "explore", child = 5 }', " selector.child: should be a part's name or a table like"),
    ('selector = { use = "explore", child = ["best"] }', " selector.child: takes one part, not ['best']"),
    ('selector = { use = "fallback", children = "best" }', " selector.children: takes a list of parts, not 'best'"),
    (
        'selector = { use = "fallback", children = ["best", "wrst"] }',
        " selector.children[1]: no selector named 'wrst'; known: ",
    ),
    (
        'selector = { use = "fallback", children = [] }',
        " selector: fallback has no children; name at least one selector",
    ),
    (
        'selector = { use = "explore", child = { use = "best", weight = 1 } }',
        " selector.child.weight: only a policy's own scorers have a weight",
    ),
    ('selector = "best"\nfilters = ["headroom"]', " filters[0]: no filter named 'headroom'; known: "),
    (
        'selector = "best"\nscorers = [{ use = "property-match", key = "a", keys = { b = 1 } }]',
        " scorers[0]: property-match has both key = 'a' and keys",
    ),
    (
        'selector = "best"\nscorers = [{ use = "property-match", keys = { b = 0 } }]',
        " scorers[0]: keys.b = 0: input should be greater than 0",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_a_mistake_is_one_sentence_with_its_place(text: str, sentence: str) -> None:
    """The sentence says where, what is written there, and what would be right."""
    [said] = _problems(text)

    assert said.startswith(f"policy 'p'{sentence}")


def test_all_mistakes_are_reported_together() -> None:
    """Of every part of every policy, in the order in which they are written."""
    specs = [
        PolicySpec.model_validate({"name": name} | tomllib.loads(text))
        for name, text in (
            ("one", 'filters = ["nope"]\nselector = { use = "explore", epsilon = 7, child = "nope" }'),
            ("two", 'selector = { use = "best", a = 1, b = 2 }'),
        )
    ]
    with pytest.raises(SettingsError) as caught:
        build_policies(REGISTRY, specs)

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "policy 'one' filters[0]",
        "policy 'one' selector.child",
        "policy 'one' selector",
        "policy 'two' selector",
        "policy 'two' selector",
    ]


def test_parameters_of_every_kind_are_filled() -> None:
    """Optional ones, choices, tuples, sets and tables."""
    built, problems = _wide(
        size=3, label="x", mode="slow", flags=[True, False], keys=["b", "a"], shares={"x": 1}, inner="best"
    )

    assert problems == []
    assert built == Wide(3, 0.5, "x", "slow", (True, False), frozenset("ab"), {"x": 1.0}, Best())


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({}, "here: 'wide' needs the parameter 'size'"),
        ({"size": None}, "here: size = None: input should be a valid integer"),
        ({"size": 1, "flags": [1]}, "here: flags.0 = 1: input should be a valid boolean"),
        ({"size": 13}, "here: 'unlucky'"),
        ({"size": 1, "inner": {"use": "wide"}}, "here.inner: 'wide' needs the parameter 'size'"),
    ],
)
def test_a_third_partys_class_fails_by_a_sentence_too(parameters: dict[str, Any], problem: str) -> None:
    """Required parameters, explicit nothings, elements of lists, and whatever its constructor raises."""
    built, problems = _wide(**parameters)

    assert (built, problems) == (None, [problem])


def test_unreadable_annotations_are_a_problem_and_no_traceback() -> None:
    """A class whose annotations name something that cannot be found."""

    @dataclass(frozen=True)
    class Lost(Best):
        name: ClassVar[str] = "lost"
        where: "Nowhere" = None  # type: ignore[name-defined]  # noqa: F821, UP037  the fault

    builder = PartBuilder(registry_of({"selectors": [Lost]}))

    assert builder.part("selectors", PartSpec(use="lost"), "here") is None
    assert "NameError: name 'Nowhere' is" in builder.problems[0]


def test_parameters_settings_cannot_fill_are_a_problem_and_no_traceback() -> None:
    """A class with a parameter of a type that has no form in settings."""

    @dataclass(frozen=True)
    class Heavy(Best):
        name: ClassVar[str] = "heavy"
        column: np.ndarray | None = None  # type: ignore[type-arg]  # the fault

    builder = PartBuilder(registry_of({"selectors": [Heavy]}))

    assert builder.part("selectors", PartSpec(use="heavy"), "here") is None
    assert builder.problems[0].startswith("here: settings cannot fill ")


def test_unknown_reads_are_found_when_a_part_is_built() -> None:
    """Long before it is asked."""

    @dataclass(frozen=True)
    class Curious(Best):
        name: ClassVar[str] = "curious"
        reads: ClassVar[frozenset[str]] = frozenset({"load"})

    builder = PartBuilder(registry_of({"selectors": [Curious]}))

    assert builder.part("selectors", PartSpec(use="curious"), "here") is None
    assert [sentence.endswith("'load'; did you mean 'view.load'?") for sentence in builder.problems] == [True]


def test_a_table_is_plain() -> None:
    """Sets are sorted lists, absent values are left out, children are tables."""
    assert part_table(Wide(1, keys=frozenset("cab"), inner=Best())) == {
        "use": "wide",
        "size": 1,
        "ratio": 0.5,
        "mode": "fast",
        "flags": [],
        "keys": ["a", "b", "c"],
        "shares": {},
        "inner": {"use": "best", "min_score": 0.0},
    }


@pytest.mark.parametrize(
    ("written", "conf", "grace_s"),
    [({}, {}, 1800), ({}, {_GRACE: 5}, 300), ({"grace_s": 7}, {_GRACE: 5}, 7), ({"grace_s": 0}, {}, 0)],
)
def test_the_grace_period_is_the_policys_the_files_or_pulsars(
    written: dict[str, Any], conf: dict[str, Any], grace_s: int
) -> None:
    """In this order, and it survives being written down where there is a shedder that it binds."""
    spec = PolicySpec.model_validate({"name": "p", "selector": "random", "shedder": "overload", **written})
    [policy] = build_policies(REGISTRY, [spec], conf)

    assert policy.grace_us == grace_s * 1_000_000
    assert build_policies(REGISTRY, [PolicySpec.model_validate(policy_table(policy))]) == (policy,)


@pytest.mark.parametrize("minutes", [-1, "long", True, 1.5])
def test_a_grace_period_that_is_none_is_a_sentence(minutes: object) -> None:
    """The key of the file is named."""
    with pytest.raises(SettingsError, match=f"^{_GRACE} = {minutes!r}: "):
        build_policies(REGISTRY, [PolicySpec(name="p", selector=PartSpec(use="random"))], {_GRACE: minutes})


@pytest.mark.parametrize(
    ("kind", "part", "key", "value", "problem"),
    [
        ("filters", "max-topics", "loadBalancerBrokerMaxTopics", 0, "= 0: .*(max_topics of here)"),
        ("shedders", "threshold", _PERCENTAGE, "ten", "= 'ten': .*(threshold of here)"),
        ("shedders", "threshold", _PERCENTAGE, True, "= True: .*(threshold of here)"),
        ("shedders", "threshold", _PERCENTAGE, -50, "= -50: .*(threshold = -0.5 of here)"),
    ],
)
@pytest.mark.parametrize("file", ["broker.conf: ", ""])
def test_a_wrong_value_of_broker_conf_is_told_under_its_key(
    kind: str, part: str, key: str, value: object, problem: str, file: str
) -> None:
    """The parameter's kind and range hold for it too, whatever its unit; the sentence has what the user wrote."""
    sources = {key: file.removesuffix(": ")} if file else None
    builder = PartBuilder(REGISTRY, {key: value}, sources)

    assert builder.part(kind, PartSpec(use=part), "here") is None
    begin, _, end = problem.partition(".*")
    assert [sentence.startswith(f"{file}{key} {begin}") for sentence in builder.problems] == [True]
    assert builder.problems[0].endswith(end)


def test_what_a_part_refuses_as_a_whole_names_the_keys_behind_it() -> None:
    """A part's own check knows no keys; those that filled it are told behind what it says."""
    key = "loadBalancerBrokerMaxTopics"
    builder = PartBuilder(registry_of({"selectors": [Configured]}), {key: 13}, {key: "b.conf"})

    assert builder.part("selectors", PartSpec(use="configured"), "here") is None
    assert [sentence.startswith("here: 13 is unlucky; ") for sentence in builder.problems] == [True]
    assert builder.problems[0].endswith(f"b.conf: {key} = 13")


@pytest.mark.parametrize(
    ("cadence", "sentence"),
    [
        ({"min_interval_ms": 0}, "min_interval_ms = 0: "),
        ({"history": 1.5}, "history = 1.5: "),
        ({"interval": 5}, "'cadence' has no parameter 'interval'"),
    ],
)
def test_a_wrong_cadence_is_a_sentence(cadence: dict[str, Any], sentence: str) -> None:
    """With the policy's name, as for a parameter of a part."""
    spec = PolicySpec.model_validate({"name": "p", "selector": "best", "cadence": cadence})

    with pytest.raises(SettingsError, match=f"policy 'p' cadence: {sentence}"):
        build_policies(REGISTRY, [spec])
