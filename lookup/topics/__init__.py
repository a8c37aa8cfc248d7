"""Topic discovery: the catalog, listing, labels, watches and clients; pure but for the file of a catalog.

A map of the room, each group reading only those above it:

    words       refusals    what is refused everywhere
                naming      schemes, namespaces, partitions, and which topics are Pulsar's own
                pairs       labels and properties: limits, and `k1=v1,k2=v2`
                selectors   `env=prod,tier in (a,b),team`
                patterns    regular expressions over names, by RE2
                hashing     the hash of a list
                extras      fetches RE2 and CRC32C when they are needed
    catalog     catalog     what may be asked and written: begin here
                state       memory, storage and listeners, in step by transactions
                namespace   the topics of one namespace in memory
                index       key -> value -> topics
                changes     what an event makes of a topic, and the other way round
                storage     where changes are kept: the protocol, and a process's memory
                sqlite      ... a file
                announcing  who is told of events, in which order
                following   a catalog that follows another one's events
    listing     listers     what a lister is held to: a catalog it can only read, its interests, its failures
                listing     a request for the topics of a namespace, through a lister
                scatter     the same from the owners of its bundles
                rest        the requests of the admin API as values
    watches     watching    all watches of a server: begin here
                messages    what client and server say to each other
                watched     one set of topics, kept right by events
                queueing    what a slow client has not been told, what came while listing
                watcher     one watcher of one connection
                line        one connection
                routing     which sets an event concerns
                matching    what a query means
                serving     watches carried out on the spot
    clients     subscribing the subscriptions of a consumer, kept equal to a set: begin here
                feed        one namespace of it
                actions     what a client wants done, and is answered
    settings    rules       what `[topics]` sets, as the rules of all of these

Listers themselves are policies, in `lookup_policies`; commands are in `lookup.commands`, settings in `lookup.settings`.
"""

from __future__ import annotations

__all__: list[str] = []
