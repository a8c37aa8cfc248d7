"""Discover topics. Keep a catalog, answer requests for lists, and report changes in them.

No module has a clock, thread or socket, and only the catalog's file touches the disk. Modules import only those above:

    catalog     catalog     reads and writes of topics, the place to begin
                state       memory that follows the committed changes of the storage, and listeners
                sqlite      a storage in a file
                namespace   the topics of one namespace in memory, indexed by label and by property
                naming      schemes, namespaces, partitions, system topics
                pairs       labels and properties, their limits, and `k1=v1,k2=v2`
                operations  operations on labels and properties as values, and the catalog's calls for each
    listing     topic_query     a query of the topics of a namespace, and the only filter of names, the place to begin
                topic_lister    requests for topics, answered through a lister
                listers     a lister's interests and its failures
                topic_list  patterns (RE2), lists of names and their hashes (CRC32C)
                selectors   `env=prod,tier in (a,b),team`

    `mirroring.py` gives a catalog the topics of a cluster
    `watching.py` has watches, their messages, the changes that events make, and a client's list

Limits are settings, `[topics]`. Watches over HTTP are served by `lookup.serve.watching` and read by
`lookup.serve.client`. Listers themselves are policies, in `lookup_policies`, and commands are in `lookup.commands`.
"""

__all__: list[str] = []
