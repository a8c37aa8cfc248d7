"""Read log files into the canonical tables, for programs. The command checks more, since it names flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from lookup.api.arguments import require_path
from lookup.api.workers import check_workers, workers_for
from lookup.engine.plugins import load_plugins
from lookup.errors import Argument
from lookup.logs import ingest as logs
from lookup.logs.jobs import Workers
from lookup.logs.sources import list_files
from lookup.spark.choosing import bytes_of
from lookup.spark.cluster import check_reach, ship_code

__all__ = ["ingest"]


def ingest(  # noqa: PLR0913  the options of an ingest, by keyword
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    reader: str | None = None,
    mapping: str | os.PathLike[str] | Mapping[str, object] | None = None,
    cluster: str | None = None,
    force: bool = False,
    max_quarantine_ratio: float = logs.MAX_QUARANTINE_RATIO,
    plugin_files: Sequence[str] = (),
    workers: Workers | None = None,
) -> logs.IngestReport:
    """Read log files into tables for `evaluate`.

    Args:
        sources: one or several files, folders, globs or URIs.
        output: folder for the tables, which must not exist or be empty.
        reader: name of a log reader, by default that of `mapping`.
        mapping: TOML file with the parameters of the reader, or its content.
        cluster: name for rows whose source does not name their cluster.
        force: replace earlier tables in `output`.
        max_quarantine_ratio: share of unreadable records, in [0, 1], above which nothing is written.
        plugin_files: Python files that register readers.
        workers: a Spark session, or `InProcess()`. The default is the active session, else this process and forks of it
            for files of fewer than 20 MB together, else a local session, which stays.

    Raises:
        PulsarLookupError: in one sentence, for anything that the caller has to change. `output` is then unchanged.
    """
    require_path("output", output)
    if mapping is not None:
        require_path("mapping", mapping, or_mapping=True)
    check_workers(workers)
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    registry = load_plugins(plugin_files)
    if isinstance(mapping, Mapping):
        built = logs.reader_of(registry, mapping, Argument("mapping"), reader=reader)
    else:
        built = logs.load_reader(registry, reader=reader, mapping=mapping)
    names = [os.fspath(source) for source in paths]
    runs_on = workers_for(workers, lambda: bytes_of(list_files(names)), lambda sentence: None)
    ship_code(runs_on)
    return logs.ingest(
        runs_on,
        names,
        built,
        os.fspath(output),
        cluster=cluster,
        force=force,
        max_quarantine_ratio=max_quarantine_ratio,
        plugin_files=plugin_files,
        ready=partial(check_reach, runs_on),
    )
