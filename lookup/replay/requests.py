"""Makes the requests a policy sees from the codes of a row."""

from __future__ import annotations

from lookup.model.request import LookupRequest
from lookup.replay.bundle_map import BundleMap
from lookup.replay.ordering import DayRows
from lookup.replay.plan import ClusterPlan

__all__ = ["RequestMaker"]


class RequestMaker:
    """Builds requests with the fields that the policies of the run read; the others are None."""

    def __init__(self, cluster: ClusterPlan, bundles: BundleMap) -> None:
        self._words = cluster.words
        self._bundles = bundles

    def request(self, rows: DayRows, row: int) -> LookupRequest:
        """Return the request of one row of a day."""
        bundle: str = self._bundles.names[rows.value("atom", row)]
        namespace = bundle.rpartition("/")[0]
        extras = {name: words[rows.value(name, row)] for name, words in self._words.extras.items()}
        return LookupRequest(
            tenant=namespace.partition("/")[0],
            namespace=namespace,
            bundle=bundle,
            properties=self._words.properties[rows.value("properties", row)],
            **extras,
        )
