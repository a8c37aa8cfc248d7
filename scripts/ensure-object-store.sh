#!/bin/sh
# Print the path of the object store of the tests, the Versity S3 gateway, built; the program is kept in ~/.cache/pulsar-lookup.
# Go is not installed for this: without it, the tests with an object store skip.
set -eu
. "$(dirname "$0")/java-tools.sh"

version=v1.8.0
kept=$cache/versitygw-$version
if [ ! -e "$kept" ]; then
    command -v go >/dev/null 2>&1 || stop "The object store of the tests needs Go 1.24 or newer, and there is none; install it (https://go.dev/dl)."
    mkdir -p "$cache/go-bin"
    echo "Building the Versity gateway; the first time, its modules come from the Go module proxy." >&2
    # Another Go than the one that is here would be downloaded. Moved, so that an interrupted run leaves nothing that looks whole.
    GOTOOLCHAIN=local GOBIN=$cache/go-bin go install "github.com/versity/versitygw/cmd/versitygw@$version" >"$cache/versitygw.log" 2>&1 \
        || stop "The Versity gateway could not be built: $(tail -n 1 "$cache/versitygw.log")"
    mv "$cache/go-bin/versitygw" "$kept"
fi
echo "$kept"
