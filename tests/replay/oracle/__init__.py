"""A replay the slow way: rows as dictionaries, one call of the load manager per lookup, books in plain Python.

Nothing of `lookup.replay` is used, so that whatever the fast replay gets wrong shows as a difference. The oracle knows
no atoms, no codes, no partitions: a bundle is found by the topic's CRC-32 among the boundaries of the moment, a load is
a sum over the lookups of the last cells. Figures are those of `tests.score.oracle`.

* `reading` reads the log, `bundles` knows bundles by their names.
* `world` is a cluster as all policies meet it.
* `walking` is a policy at work with its load and figures, `exclusive` has its owners.
* `tale` puts them together: `tell` replays an evaluation.
"""

from __future__ import annotations

from tests.replay.oracle.tale import Tale, tell

__all__ = ["Tale", "tell"]
