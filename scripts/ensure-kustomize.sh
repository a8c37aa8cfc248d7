#!/bin/sh
# Print the path of kustomize, which renders the manifests in configs/deploy/kubernetes, built; it is kept in ~/.cache/pulsar-lookup.
# Go is not installed for this: without it, the tests with kustomize skip.
set -eu
. "$(dirname "$0")/java-tools.sh"

version=v5.7.1
kept=$cache/kustomize-$version
if [ ! -e "$kept" ]; then
    command -v go >/dev/null 2>&1 || stop "The test of the manifests needs Go 1.24 or newer, and there is none; install it (https://go.dev/dl)."
    mkdir -p "$cache/go-bin"
    echo "Building kustomize; the first time, its modules come from the Go module proxy." >&2
    # Another Go than the one that is here would be downloaded. Moved, so that an interrupted run leaves nothing that looks whole.
    GOTOOLCHAIN=local GOBIN=$cache/go-bin go install "sigs.k8s.io/kustomize/kustomize/v5@$version" >"$cache/kustomize.log" 2>&1 \
        || stop "Kustomize could not be built: $(tail -n 1 "$cache/kustomize.log")"
    mv "$cache/go-bin/kustomize" "$kept"
fi
echo "$kept"
