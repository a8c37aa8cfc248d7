"""Which bundles a broker names in its report: the most loaded ones, in ascending order of load.

The records are in `load.py`. Whether the list is published is the engine's business.

Source: `docs/pulsar/load-managers.md` (`TopKBundles.update`).
"""

from __future__ import annotations

from collections.abc import Mapping

from lookup.model.bundles import bundle_name_parts
from lookup.model.load import NamespaceBundleStats, TopBundlesLoadData
from lookup.model.names import is_system_namespace
from lookup.model.namespaces import NamespacePolicies

__all__ = ["may_be_shed", "top_bundles"]

#: No namespace has a policy.
_NO_POLICIES = NamespacePolicies()


def top_bundles(
    stats: Mapping[str, NamespaceBundleStats],
    k: int,
    *,
    policies: NamespacePolicies = _NO_POLICIES,
    with_policies: bool = False,
) -> TopBundlesLoadData:
    """Return the `k` most loaded bundles, the least loaded of them first.

    Left out are bundles without any throughput, those of system namespaces and those whose namespace has an isolation
    policy or an anti-affinity group. Among bundles alike in load Pulsar leaves the order open; here it is that of their
    names.

    Args:
        stats: by bundle name.
        k: Pulsar's loadBalancerMaxNumberOfBundlesInBundleLoadReport, by default 10 there.
        with_policies: keep bundles of namespaces with policies; Pulsar's
            loadBalancerSheddingBundlesWithPoliciesEnabled.
    """
    kept = [
        (figures.rank, bundle)
        for bundle, figures in stats.items()
        if figures.msg_throughput_in + figures.msg_throughput_out != 0
        and not is_system_namespace(namespace := bundle_name_parts(bundle)[0])
        and (with_policies or may_be_shed(namespace, policies))
    ]
    chosen = sorted(kept)[max(0, len(kept) - max(0, k)) :]
    return TopBundlesLoadData({bundle: stats[bundle] for _, bundle in chosen})


def may_be_shed(namespace: str, policies: NamespacePolicies) -> bool:
    """Tell namespaces whose bundles Pulsar sheds by default: with neither isolation policy nor anti-affinity group.

    A group whose name is blank is none.
    """
    return not policies.isolation.get(namespace) and not policies.anti_affinity_group.get(namespace, "").strip()
