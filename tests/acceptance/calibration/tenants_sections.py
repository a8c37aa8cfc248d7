"""Sections of the page about tenants: policies that are equal over demands, and one that goes by labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tests.acceptance.calibration.equals import upper_bound
from tests.acceptance.calibration.markdown import state, table
from tests.acceptance.calibration.tenants import Found, Tenants

__all__ = ["by_label_section", "mirror_section", "same_places_section"]

#: The most that may be told apart and missed, pooled, and their upper bounds: shares.
_TOLD, _TOLD_UPPER, _MISSED, _MISSED_UPPER = 0.06, 0.08, 0.07, 0.09
#: The most that intervals of figures over time may miss the mean difference: a share.
_MISSED_OVER_TIME = 0.08
_LOCALITY = "match_ratio[rack]"
_OVER_TIME = ("imbalance_max_mean", "imbalance_cv", "load_variation")

Logs = Mapping[Tenants, Sequence[Found]]


def mirror_section(logs: Logs) -> tuple[list[str], bool]:
    """Say how often a policy that keeps to rack a and one that keeps to rack b were told apart."""
    rows, told, missed = [], [0, 0], [0, 0]
    for world, found in logs.items():
        apart = sum(one.verdicts[_LOCALITY][0] in ("better", "worse") for one in found)
        judged = [one.verdicts[_LOCALITY] for one in found if not math.isnan(one.verdicts[_LOCALITY][2])]
        wrong = sum(low > 0 or high < 0 for _, _, low, high in judged)
        told = [told[0] + apart, told[1] + len(found)]
        missed = [missed[0] + wrong, missed[1] + len(judged)]
        worth = sorted(one.worth for one in found)[len(found) // 2]
        failed = sum(one.exit_code == 3 for one in found)
        shares = (f"{apart / len(found):.1%}", f"{wrong / max(1, len(judged)):.1%} of {len(judged)}")
        rows.append((world.name, f"{worth:.1f}", str(len(found)), *shares, str(failed)))
    bounds = upper_bound(*told), upper_bound(*missed)
    shares = told[0] / max(1, told[1]), missed[0] / max(1, missed[1])
    kept = shares[0] <= _TOLD and bounds[0] <= _TOLD_UPPER and shares[1] <= _MISSED and bounds[1] <= _MISSED_UPPER
    text = [
        "All clients of a namespace, or of a tenant with several, are in one rack, which is random for each log. 15",
        "% of the lookups come from any rack. One policy uses rack a and the other rack b, so over all logs they are",
        f"equal in `{_LOCALITY}`. Worth is the median effective number of units.",
        "",
        *table(("log", "worth", "logs", "called different", "intervals that miss the true 0", "exit code 3"), rows),
        "",
        f"Together {shares[0]:.1%} are called different (at most 6 %, upper bound {bounds[0]:.1%}, at most 8 %), and",
        f"{shares[1]:.1%} of the intervals miss (at most 7 %, upper bound {bounds[1]:.1%}, at most 9 %). Kept:",
        f"{state(kept)}.",
    ]
    return text, kept


def by_label_section(logs: Logs) -> tuple[list[str], bool]:
    """Say how often intervals of figures over time miss the mean difference over all logs of a kind."""
    missed, judged = dict.fromkeys(_OVER_TIME, 0), dict.fromkeys(_OVER_TIME, 0)
    for found in logs.values():
        for name in _OVER_TIME:
            verdicts = [one.verdicts[name] for one in found]
            mean = sum(delta for _, delta, _, _ in verdicts) / len(verdicts)
            missed[name] += sum(not low <= mean <= high for _, _, low, high in verdicts if not math.isnan(low))
            judged[name] += sum(not math.isnan(low) for _, _, low, _ in verdicts)
    shares = {name: missed[name] / max(1, judged[name]) for name in _OVER_TIME}
    kept = all(share <= _MISSED_OVER_TIME for share in shares.values())
    text = [
        "A policy that places a bundle by the label of its first client, against a random one. The first client is",
        f"part of the demand. Of {max(judged.values())} intervals, this share misses the mean difference over the logs",
        f"of a kind (at most 8 %, kept: {state(kept)}):",
        f"{', '.join(f'{share:.1%} in `{name}`' for name, share in shares.items())}.",
    ]
    return text, kept


def same_places_section(logs: Logs) -> tuple[list[str], bool]:
    """Say how often dice and a hash were told apart."""
    found = [one for several in logs.values() for one in several]
    told, are_kept = [], []
    for name in (_LOCALITY, *_OVER_TIME):
        apart = sum(one.verdicts[name][0] in ("better", "worse") for one in found)
        upper = upper_bound(apart, len(found))
        are_kept.append(apart <= _TOLD * len(found) and upper <= _TOLD_UPPER)
        told.append(f"{apart / max(1, len(found)):.1%} in `{name}` (upper bound {upper:.1%})")
    failed = sum(one.exit_code == 3 for one in found)
    text = [
        f"A random policy against a salted hash, over logs of the same kinds. {failed} of {len(found)} ended with",
        f"exit code 3. Called different (at most 6 and 8 %, kept: {state(all(are_kept))}):",
        f"{', '.join(told)}.",
    ]
    return text, all(are_kept)
