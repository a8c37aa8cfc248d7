"""Discover topics: keep a catalog, answer requests for lists, serve watchers, keep a client's subscriptions.

Nothing here has a clock, a thread or a socket; only the catalog's file touches the disk. Packages read those
above them, and `rules.py`, which has the limits of all and says how `[topics]` sets them:

    catalog     catalog     reads and writes of topics: begin here
                state       memory, storage and listeners, kept in step by transactions
                storage     the protocol of a storage, and one in memory
                sqlite      a storage in a file
                following   a catalog that takes in another one's events
                namespace   the topics of one namespace in memory
                index       key -> value -> numbers of topics
                naming      schemes, namespaces, partitions, system topics
                pairs       labels and properties: limits, and `k1=v1,k2=v2`
                operations  operations on labels, properties and namespaces as values, and what a catalog does for each
    listing     topic_query     a query of the topics of a namespace, and the one way to narrow names: begin here
                topic_lister    requests for topics, answered through a lister
                listers     a lister's read-only catalog, its interests, its failures
                topic_list  patterns (RE2), lists of names and their hashes (CRC32C)
                pattern_set one name against many patterns
                steps       long lists sorted and compared in steps, each of a bounded number of names
                selectors   `env=prod,tier in (a,b),team`
                scatter     one query to the owners of all bundles
                rest        the admin API's requests as values
    watching    service     all watchers of a server: begin here
                messages    requests of clients and answers of the server
                connections watchers by connection, and the messages that wait for each
                query_topics    the topics of one query, kept right by events
                routes      the queries that an event may change
                listings    the listings that a service wants, carried out at once or in steps
    client      subscriber  subscriptions of a consumer, kept equal to a set: begin here
                feed        one namespace of that set
                list_copy   a list as the server sent it, and what messages change in it
                actions     requests and subscriptions the client wants, and answers to its polls

Listers themselves are policies, in `lookup_policies`; commands are in `lookup.commands`, settings in `lookup.settings`.
"""

__all__: list[str] = []
