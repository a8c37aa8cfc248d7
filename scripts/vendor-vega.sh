#!/bin/sh
# Get the JavaScript that draws the charts of report.html from the npm registry, with its licences, into
# lookup/report/assets/vega. Each package is held to the digest that the registry gave when its release was chosen.
# To take another release change its line here, run the script, and run tests/report.
set -eu
cd "$(dirname "$0")/../lookup/report/assets/vega"

fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT

# vega-embed holds vega-interpreter, which evaluates expressions without `eval`: the page's policy forbids that.
while read -r name version digest; do
    curl -fsSL "https://registry.npmjs.org/$name/-/$name-$version.tgz" -o "$fetched/$name.tgz"
    echo "$digest  $fetched/$name.tgz" | sha512sum --check --quiet
    tar -xzf "$fetched/$name.tgz" -C "$fetched" "package/build/$name.min.js" package/LICENSE
    mv "$fetched/package/build/$name.min.js" "$name.min.js"
    mv "$fetched/package/LICENSE" "LICENSE-$name.txt"
    echo "$name $version"
done <<PACKAGES
vega 6.4.0 ac75c2ab62e911608b3235c1123ee1a1c63d1b4fe2e5319845ac861928f4e954c5e3e976206d99ee87992828d66d487fee14c4fe65616da38f07bdb0084961ea
vega-lite 6.4.3 77fee13e37f3e7ad14111690b9398680855f5c07b783684959e0be8a00de686a2151d12836b1cb5e047fc933814fcbd5fe522eb8a9f0fb4ff15966e5903c2431
vega-embed 7.3.0 c10f2ce46692ceaa0a82645f6d1a25801ae313608fed92875ea1fb3628f132a3e3a5d5b14ace039fcb6fa7d83482242f87670afb7a79eacc63596334c0d9e01b
PACKAGES
sha256sum -- * | grep -v SHA256SUMS >"$fetched/sums"
mv "$fetched/sums" SHA256SUMS
