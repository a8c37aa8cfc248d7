"""Keep topics with their labels and properties by namespace, with revisions and events, in a file."""

from lookup.topics.catalog.catalog import Catalog
from lookup.topics.catalog.sqlite import SqliteStorage

__all__ = ["Catalog", "SqliteStorage"]
