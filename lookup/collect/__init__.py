"""Record a live cluster into BROKERS, LOADS, BUNDLES and OWNERSHIP, tables that an evaluation reads as they are.

`observing.py` turns what a cluster publishes into rows and does no I/O; `sources.py` reads it from ZooKeeper, the admin
REST and the load manager's topics; `folder.py` keeps the files; `collector.py` joins the three.
"""

__all__: list[str] = []
