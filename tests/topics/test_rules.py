"""Every rule of listings and watches has a setting, and every setting reaches its rule."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from lookup.settings import TopicsSection
from lookup.topics.rules import TopicRules, rules_of

#: Each setting with a value that is not its default, and where the value arrives.
_SET = {
    "pattern_filtering": (False, [("listing", "pattern_filtering", False), ("watching", "pattern_filtering", False)]),
    "pattern_max_length": (9, [("listing", "pattern_max_length", 9), ("watching", "pattern_max_length", 9)]),
    "max_properties": (9, [("listing", "max_properties", 9), ("watching", "max_properties", 9)]),
    "max_property_length": (
        9,
        [("listing", "max_property_length", 9), ("watching", "max_property_length", 9)],
    ),
    "topic_list_watcher": (False, [("watching", "topic_list_watcher", False)]),
    "queue_max": (9, [("watching", "queue_max", 9)]),
    "watchers_max": (9, [("watching", "watchers_max", 9)]),
}


def test_the_defaults_of_settings_and_rules_are_the_same() -> None:
    """Whoever builds a rule without settings gets what settings without a file say."""
    assert rules_of(TopicsSection()) == TopicRules()


@pytest.mark.parametrize("name", _SET)
def test_a_setting_changes_its_rule_and_no_other(name: str) -> None:
    """Everything else stays at its default."""
    value, places = _SET[name]
    wanted = asdict(TopicRules())
    for rule, field, expected in places:
        wanted[rule][field] = expected

    assert asdict(rules_of(TopicsSection(**{name: value}))) == wanted  # type: ignore[arg-type]  # names are the table's


def test_every_rule_has_a_setting() -> None:
    """No bound of a command is left that only code can set."""
    reached = {(rule, field) for _, places in _SET.values() for rule, field, _ in places}

    assert reached == {(rule, field) for rule, fields in asdict(TopicRules()).items() for field in fields}
