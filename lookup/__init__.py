"""pulsar-lookup: Apache Pulsar's placement decisions as policies one can write, replay, judge and run.

The public names of the model and of the hooks are here; engine, replay and score are imported from their rooms.
"""

from lookup import hooks as _hooks
from lookup import model as _model
from lookup.hooks import *
from lookup.model import *

__all__ = [*_hooks.__all__, *_model.__all__]  # noqa: PLE0604  both are lists of names
