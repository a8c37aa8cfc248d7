#!/bin/sh
# Print the folder of `prometheus` and `promtool` to test alerts with: those of the path, else Debian's, unpacked into
# ~/.cache/pulsar-lookup. Its package is not installed, which would start a server.
set -eu
. "$(dirname "$0")/java-tools.sh"

if command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1; then
    dirname "$(command -v prometheus)"
    exit
fi
kept=$cache/prometheus
if [ ! -e "$kept" ]; then
    command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 \
        || stop "The test of alerts needs Prometheus, and there is none; install it (https://prometheus.io/download)."
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    echo "There is no Prometheus: getting Debian's package of it with apt-get." >&2
    # Without the lists of packages, there is nothing to get; only root can get them.
    (cd "$fetched" && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; }) >&2 \
        || stop "Prometheus could not be had with apt-get; run this again with a network, and once as root: apt-get update."
    dpkg-deb -x "$fetched"/prometheus_*.deb "$fetched/unpacked"
    mkdir -p "$cache"
    # Moved, so that an interrupted run leaves nothing that looks whole.
    mv "$fetched/unpacked" "$kept"
fi
echo "$kept/usr/bin"
