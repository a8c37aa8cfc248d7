"""Keep topics with their labels and properties by namespace, with revisions and events, in memory or in a file."""

from lookup.topics.catalog.catalog import Catalog, CatalogSnapshot
from lookup.topics.catalog.following import Follower
from lookup.topics.catalog.sqlite import SqliteStorage
from lookup.topics.catalog.storage import MemoryStorage, Storage

__all__ = ["Catalog", "CatalogSnapshot", "Follower", "MemoryStorage", "SqliteStorage", "Storage"]
