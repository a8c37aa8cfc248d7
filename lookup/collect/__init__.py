"""Record a live cluster into BROKERS, LOADS, BUNDLES and OWNERSHIP, tables that an evaluation reads as they are.

`observing.py` converts a cluster's messages to rows and does no I/O. `sources.py` reads them from ZooKeeper, the admin
REST and the load manager's topics. `folder.py` keeps the files, and `collector.py` joins the three.
"""

__all__: list[str] = []
