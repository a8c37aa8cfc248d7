"""Areas of names, hashes and bundles: section 3 of the vectors' README, without the algorithms that split bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from lookup.errors import InputError, PulsarLookupError
from lookup.model.bundles import HASH_END, BundleRange, bundle_name_parts, bundle_of, equal_boundaries, topic_hash
from lookup.model.names import NamespaceName, TopicName
from tests.vectors.namespace_bundles import NamespaceBundles
from tests.vectors.reading import Handler, hash_of, hash_text, hashes_of, only

__all__ = ["AREAS"]

#: Where the namespace does not matter.
_ANY = NamespaceName("public", "default")


def _boundaries(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "namespace", "boundaries")
    bundles = NamespaceBundles(NamespaceName.parse(given["namespace"]), hashes_of(given["boundaries"]))
    return {"bundles": [_ends(one) for one in bundles.ranges]}


def _ends(one: BundleRange) -> dict[str, object]:
    return {"lower": hash_text(one.lower), "upper": hash_text(one.upper), "upper_closed": one.upper == HASH_END}


def _can_split(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "lower", "upper")
    return {"can_split": hash_of(given["upper"]) - hash_of(given["lower"]) > 1}


def _find(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "boundaries", "namespace", "topic", "hash")
    topic = given["topic"]
    hashed = topic_hash(topic)
    if "hash" in given and hash_of(given["hash"]) != hashed:
        raise InputError(f"the hash of {topic} is {hash_text(hashed)}, not {given['hash']}")
    namespace = NamespaceName.parse(given["namespace"]) if "namespace" in given else TopicName.parse(topic).namespace
    bundles = NamespaceBundles(namespace, _around(given["boundaries"], hashed))
    # The topic has a hash whether a bundle is found or not.
    if "error" in expected:
        refusal = _refusal(partial(bundles.find, topic))
        return {"hash": hash_text(hashed), **({} if refusal is None else {"error": refusal})}
    return {"hash": hash_text(hashed), "bundle": str(bundles.find(topic).range)}


def _around(boundaries: object, hashed: int) -> tuple[int, ...]:
    """Read boundaries; a text asks for some above the hash."""
    if isinstance(boundaries, list):
        return hashes_of(boundaries)
    # Where the hash is the end of the circle nothing lies above it within the circle; one beyond it is the same case.
    return (hashed + 1, max(hashed + 2, HASH_END))


def _find_by_hash(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "boundaries", "hash")
    found = NamespaceBundles(_ANY, hashes_of(given["boundaries"])).find_hash(hash_of(given["hash"]))
    return {"bundle": str(found.range)}


def _name_parts(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "bundle")
    namespace, bounds = bundle_name_parts(given["bundle"])
    return {"namespace": namespace, "range": bounds}


def _parse_range(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "range")
    return _ends(BundleRange.parse(given["range"]))


def _split(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "boundaries", "split_index", "num_bundles")
    index, count = given["split_index"], given["num_bundles"]
    after = NamespaceBundles(_ANY, hashes_of(given["boundaries"])).split(index, count)
    return {
        "boundaries": [hash_text(boundary) for boundary in after.boundaries],
        "bundle_count": len(after.ranges),
        "new_bundles": [str(one) for one in after.ranges[index : index + count]],
    }


def _split_at(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "boundaries", "split_index", "split_boundaries")
    bundles, index = NamespaceBundles(_ANY, hashes_of(given["boundaries"])), given["split_index"]
    positions, whole = hashes_of(given.get("split_boundaries", ())), bundles.ranges[index]
    after = bundles.split_at(index, positions) if positions else bundles
    children = len(after.ranges) - len(bundles.ranges) + 1
    return {
        "new_bundles": [str(one) for one in after.ranges[index : index + children]],
        "boundary_equal_to_either_endpoint": _common_refusal(
            partial(bundles.split_at, index, [*positions, end]) for end in (whole.lower, whole.upper)
        ),
    }


def _common_refusal(calls: Iterable[Callable[[], object]]) -> PulsarLookupError | None:
    """Return what all calls are refused with, None where one is not or they are refused for different reasons."""
    refusals = [_refusal(call) for call in calls]
    return refusals[0] if len({type(refusal) for refusal in refusals}) == 1 else None


def _refusal(call: Callable[[], object]) -> PulsarLookupError | None:
    try:
        call()
    except PulsarLookupError as error:
        return error
    return None


def _topic_hash(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "topic")
    topic = given["topic"]
    return {"hash": hash_text(topic_hash(topic)), "bundle_in_4_quarters": str(bundle_of(topic, equal_boundaries(4)))}


AREAS: Mapping[str, Handler] = {
    "bundles.boundaries": _boundaries,
    "bundles.can_split": _can_split,
    "bundles.find": _find,
    "bundles.find_by_hash": _find_by_hash,
    "bundles.name_parts": _name_parts,
    "bundles.parse_range": _parse_range,
    "bundles.split": _split,
    "bundles.split_at": _split_at,
    "bundles.topic_hash": _topic_hash,
}
