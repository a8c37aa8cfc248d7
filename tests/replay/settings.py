"""Settings of small worlds, drawn by dice: the evaluation, its policies, brokers and cadences."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

__all__ = ["BROKERS", "section_of", "settings_of"]

_PLUGIN = Path(__file__).parent.parent / "assets" / "restless.py"
#: Ids of all brokers that are ever registered.
BROKERS = tuple(f"broker-{letter}:8080" for letter in "abcd")
_RULES = [
    {"match": {"cidr": "10.1.0.0/16"}, "properties": {"rack": "a", "zone": "z1"}},
    {"match": {"client": "*.example.com"}, "properties": {"rack": "b"}},
]


def _matching(**parameters: Any) -> dict[str, Any]:
    return {"use": "property-match", "key": "rack", **parameters}


_PARTS: tuple[dict[str, Any], ...] = (
    {"scorers": [_matching()], "selector": {"use": "best", "min_score": 1.0}},
    {"filters": ["load-manager-class", "version", "isolation"], "selector": "random"},
    {"filters": ["max-topics"], "selector": {"use": "least-resource-usage", "difference": 0.01}},
    {"filters": [{"use": "max-topics", "max_topics": 1}], "selector": "random"},
    {"scorers": [_matching(weight=0.7), {"use": "headroom", "weight": 0.3}], "selector": "best"},
    {"scorers": ["headroom"], "selector": {"use": "softmax", "temperature": 0.5}},
    {"selector": {"use": "power-of-two", "by": "usage", "choices": 2}},
    {"scorers": ["topology-distance"], "selector": {"use": "weighted-random", "power": 2.0}},
    {"selector": {"use": "rendezvous", "key": "topic"}},
    {"selector": {"use": "rendezvous", "key": "client"}},
    {"scorers": [_matching()], "selector": {"use": "explore", "epsilon": 0.3, "child": "best"}},
    {
        "scorers": [_matching()],
        "selector": {"use": "fallback", "children": [{"use": "best", "min_score": 1.0}, "least-resource-usage"]},
    },
    {"selector": {"use": "zone-spill", "key": "rack", "min_cluster_size": 1, "child": "random"}},
    {
        "filters": ["isolation", {"use": "max-topics", "max_topics": 1}],
        "selector": "random",
        "second_choice": {"filters": 1, "overloaded": 0.3},
    },
    {"scorers": ["fewest-bundles"], "selector": "best"},
    {"filters": ["anti-affinity"], "selector": "random"},
    {"filters": [{"use": "anti-affinity", "failure_domains_enabled": True}], "selector": "best"},
    {"selector": {"use": "bounded-consistent-hash", "points": 5}},
    {"selector": {"use": "power-of-two", "by": "bundles"}},
    {"selector": "round-robin"},
    {"selector": {"use": "by-namespace", "namespaces": ["t1/a"], "child": "avg-placement"}, "shedder": "avg"},
    {
        "filters": ["isolation", "anti-affinity", "even-distribution"],
        "selector": "least-long-term-message-rate",
        "second_choice": {"filters": 1, "overloaded": 0.3},
        "shedder": {"use": "threshold", "threshold": 0.01, "history": 0.0},
        "destination_first": True,
    },
    {"selector": {"use": "least-resource-usage-with-weight", "history": 0.5}},
    {
        "selector": "avg-placement",
        "shedder": {"use": "avg", "low_threshold": 0.1, "low_hits": 1, "min_rate": 0.1, "min_throughput": 0.001},
        "destination_first": True,
    },
    {
        "selector": "random",
        "shedder": {"use": "uniform", "min_rate": 0.1, "min_throughput": 0.001, "quirks": "intended"},
    },
    {"scorers": [_matching()], "selector": "best", "shedder": {"use": "threshold", "threshold": 0.01, "history": 0.0}},
    {
        "selector": "least-resource-usage",
        "shedder": {"use": "threshold", "threshold": 0.05, "lower_boundary": True, "history": 0.5},
    },
    {
        "selector": "random",
        "shedder": {
            "use": "transfer",
            "target_std": 0.001,
            "hit_count": 0,
            "cool_down_s": 0,
            "shed_with_policies": True,
        },
    },
    {"filters": ["max-topics"], "selector": "round-robin", "shedder": {"use": "restless", "every": 3}},
    {"selector": "round-robin", "shedder": {"use": "restless", "every": 2}, "destination_first": True},
    {"scorers": ["fewest-bundles"], "selector": "best", "shedder": {"use": "restless", "every": 1000}},
    {"selector": "random", "shedder": {"use": "overload", "threshold": 0.01}},
)

#: Pulsar's, and some that meet the instants of the grid, or miss them, often or seldom.
_CADENCES: tuple[dict[str, Any], ...] = (
    {},
    {"min_interval_ms": 60_000, "history": 0.0},
    {"min_interval_ms": 7_000, "max_interval_ms": 0, "change_percent": 0.0},
    {"min_interval_ms": 90_000, "max_interval_ms": 120_000, "change_percent": 60.0, "history": 0.5},
)


def section_of(dice: Random, tick_s: int, *, has_loads: bool) -> dict[str, Any]:
    """Draw `[evaluation]`."""
    return {
        "incumbent": "p0",
        "owner_loss": dice.choice(["next-lookup", "leader"]),
        "load": (load := dice.choice(["simulated", "reported"]) if has_loads else "simulated"),
        "load_reports": dice.choice(["instant", "published"]) if load == "simulated" else "instant",
        "tick_s": tick_s,
        "session_s": tick_s * dice.choice([1, 3]),
        "balance_s": tick_s * dice.choice([1, 2, 40]),
        "warmup_s": dice.choice([0, 0, 0, 60, tick_s * 2]),
        "seeds": dice.choice([[1], [1], [7, 3]]),
        "default_bundles": 2,
        "overload_threshold": dice.choice([0.85, 0.01]),
        "bytes_per_weight": dice.choice([None, 1e6]),
        "window_s": dice.choice([120, 3600]),
        "max_quarantine_ratio": 1.0,
    }


def settings_of(dice: Random, section: dict[str, Any], *, has_registry: bool) -> dict[str, Any]:
    """Draw policies and brokers that suit an `[evaluation]`; brokers may be absent where a registry names them."""
    chosen = dice.sample(_PARTS, dice.randint(1, 3))
    return {
        "evaluation": section,
        "policies": [
            {"name": f"p{number}", **policy, "cadence": dice.choice(_CADENCES)} for number, policy in enumerate(chosen)
        ],
        "brokers": [] if has_registry and dice.random() < 0.5 else _brokers(dice, has_registry=has_registry),
        "clients": dice.choice([[], _RULES]),
        "namespaces": [
            {"name": "t1/a", "bundles": dice.choice([1, 2, 4]), "anti_affinity_group": "g"},
            {"name": "t2/b", "anti_affinity_group": "G", "isolation": [{"primary": ["broker-[ab]"], "min_limit": 1}]},
        ],
        "failure_domains": {"d1": list(BROKERS[:2])},
        "plugin_files": [str(_PLUGIN)],
    }


def _brokers(dice: Random, *, has_registry: bool) -> list[dict[str, Any]]:
    capacities = dice.choice([(None,), (0.05,), (0.05, 0.2)])
    entries = [
        {"id": broker, "properties": {"lookup.rack": rack}, "capacity": capacities[place % len(capacities)]}
        for place, (broker, rack) in enumerate(zip(BROKERS, "abca", strict=True))
    ]
    kept = entries[: dice.randint(1, 4)]
    kept[0]["location"] = {"region": "eu", "zone": "z1", "rack": "a"}
    if not has_registry and len(kept) > 1:
        # One broker leaves and comes back with another label and capacity.
        leaves, returns = "2026-01-01T23:58:00Z", dice.choice(["2026-01-01T23:58:00Z", "2026-01-01T23:59:30Z"])
        again = {**kept[1], "from": returns, "properties": {"lookup.rack": "c"}}
        again["capacity"] = None if kept[1]["capacity"] is None else 0.1
        kept[1]["until"] = leaves
        kept.append(again)
    return kept
