"""Discover topics: keep a catalog, answer requests for lists, say what changes in them.

Nothing here has a clock, a thread or a socket; only the catalog's file touches the disk. Packages and modules read
those above them:

    catalog     catalog     reads and writes of topics: begin here
                state       memory that follows what the storage has committed, and listeners
                sqlite      a storage in a file
                namespace   the topics of one namespace in memory, indexed by label and by property
                naming      schemes, namespaces, partitions, system topics
                pairs       labels and properties: limits, and `k1=v1,k2=v2`
                operations  operations on labels and properties as values, and what a catalog does for each
    listing     topic_query     a query of the topics of a namespace, and the one way to narrow names: begin here
                topic_lister    requests for topics, answered through a lister
                listers     a lister's interests and its failures
                topic_list  patterns (RE2), lists of names and their hashes (CRC32C)
                selectors   `env=prod,tier in (a,b),team`

    `mirroring.py` gives a catalog the topics that a cluster has
    `watching.py` watches, their messages, the changes that events make, and a client's list

Limits are settings, `[topics]`. Watches over HTTP are served by `lookup.serve.watching` and read by
`lookup.serve.client`. Listers themselves are policies, in `lookup_policies`; commands are in `lookup.commands`.
"""

__all__: list[str] = []
