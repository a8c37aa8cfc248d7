#!/bin/sh
# Build the source distribution and from it the wheel into dist/, install the wheel into an environment of its own, and do
# the demo of the Dockerfile with it, in an empty folder. Packages come from the index that pip knows.
set -eu
cd "$(dirname "$0")/.."
JAVA_HOME=$(scripts/ensure-java.sh)
export JAVA_HOME
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf dist
.venv/bin/python -m build --outdir dist .
scripts/make-venv.sh "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$(ls "$PWD"/dist/*.whl)[report,spark]"
mkdir "$scratch/data"
demo=$(sed -n 's/^CMD \(.*\)$/\1/p' Dockerfile | .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)[-1])')
(cd "$scratch/data" && PATH="$scratch/venv/bin:$PATH" sh -ec "$demo")
test -s "$scratch/data/report/report.html"
echo "dist/ has been built, and its wheel does the demo: $(ls dist | tr '\n' ' ')"
