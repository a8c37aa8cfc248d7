#!/bin/sh
# Print the path of Chromium, in which report.html is tested, installed if it is missing and the machine allows; get axe-core,
# which looks for what keeps readers out, into the cache. Neither is needed to make or to read a report.
set -eu
. "$(dirname "$0")/java-tools.sh"

axe=4.14.1
digest=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ]; then
    install "The test of report.html in a browser" Chromium chromium
    browser=$(command -v chromium)
fi
if [ ! -e "$cache/axe-core-$axe/axe.min.js" ]; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    curl -fsSL "https://registry.npmjs.org/axe-core/-/axe-core-$axe.tgz" -o "$fetched/axe.tgz" ||
        stop "axe-core could not be had from the npm registry; run this again with a network."
    echo "$digest  $fetched/axe.tgz" | sha512sum --check --quiet >&2
    tar -xzf "$fetched/axe.tgz" -C "$fetched"
    mkdir -p "$cache"
    mv "$fetched/package" "$cache/axe-core-$axe"
fi
echo "$browser"
