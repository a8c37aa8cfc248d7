"""Make a log that the benchmarks read.

Unless flags say otherwise 3 clusters and 22 hours; 20,000 topics, 12 property sets, and in each cluster 60 brokers and
60 namespaces of 64 bundles.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from lookup.errors import PulsarLookupError
from lookup.logs.generator.generate import GenerateSettings, generate

__all__ = ["bench_settings", "main"]


def bench_settings(rows: int, *, clusters: int = 3, hours: int = 22) -> GenerateSettings:
    """Return the settings of the benchmark log, or of one with other clusters and hours."""
    return GenerateSettings(
        lookups=rows,
        clusters=clusters,
        hours=hours,
        topics=20_000,
        tenants=20,
        namespaces=60,
        bundles_per_namespace=64,
        brokers=60,
        racks=3,
        clients=5_000,
        property_sets=12,
        losses=4,
        joins=2,
        leaves=2,
        unloads=6,
        splits=6,
        # Pulsar's own longest silence between two reports (loadBalancerReportUpdateMaxIntervalMinutes).
        load_report_s=900,
    )


def main(arguments: list[str] | None = None) -> int:
    """Write the log and print how fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of LOOKUPS over all clusters")
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--hours", type=int, default=22)
    parser.add_argument("--output", type=Path, required=True, help="directory for the tables")
    parser.add_argument("--force", action="store_true", help="replace tables that are there")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    try:
        settings = bench_settings(options.rows, clusters=options.clusters, hours=options.hours)
        report = generate(settings, options.output, force=options.force)
    except PulsarLookupError as error:
        print(error, file=sys.stderr)
        return 2
    elapsed_s = time.perf_counter() - begin
    print(f"{report.output}: {dict(report.rows)} in {elapsed_s:.1f} s, {options.rows / elapsed_s / 1e6:.2f} M rows/s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
