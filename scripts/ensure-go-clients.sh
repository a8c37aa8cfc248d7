#!/bin/sh
# Print the path of the Go clients of the tests with a cluster, tests/acceptance/pulsar/go, built; the program is kept in ~/.cache/pulsar-lookup.
# Go is not installed for this: without it, the tests with Go clients skip.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../tests/acceptance/pulsar/go"

kept=$cache/go-clients-$(cat go.mod go.sum main.go | cksum | tr ' ' -)
if [ ! -e "$kept" ]; then
    command -v go >/dev/null 2>&1 || stop "The Go clients need Go 1.24 or newer, and there is none; install it (https://go.dev/dl)."
    mkdir -p "$cache"
    echo "Building the Go clients; the first time, their modules come from the Go module proxy." >&2
    # Another Go than the one that is here would be downloaded. Moved, so that an interrupted run leaves nothing that looks whole.
    GOTOOLCHAIN=local go build -o "$kept.new" . >"$cache/go-clients.log" 2>&1 \
        || stop "The Go clients could not be built: $(tail -n 1 "$cache/go-clients.log")"
    mv "$kept.new" "$kept"
fi
echo "$kept"
