#!/bin/sh
# Print the Python of an environment that runs the suite: $1 is `lowest`, the oldest Python and the oldest releases that
# setup.cfg permits, in .venv-lowest, or `newest`, the newest Python that can be had and the newest releases, in .venv-newest.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-$1

if [ "$1" = lowest ]; then candidates=3.11; else candidates="3.14 3.13 3.12 3.11"; fi
for candidate in $candidates; do
    python=$(scripts/ensure-python.sh "$candidate") && break
done
[ -n "$python" ] || { echo "There is no Python of $candidates here that can make virtual environments." >&2 && exit 2; }
echo "Testing the $1 releases with $("$python" --version)." >&2

if [ ! setup.cfg -ot "$venv/.installed" ] || [ "$("$python" --version)" != "$("$venv/bin/python" --version)" ]; then
    echo "Installing them into $venv." >&2
    PYTHON=$python scripts/make-venv.sh "$venv"
    if [ "$1" = lowest ]; then "$python" scripts/lowest.py; fi >"$venv/constraints.txt"
    # What runs the tests is as in `make test`; the other tools check the text of the code.
    tools=$(sed -nE 's/^ +((altair|check-jsonschema|duckdb|hypothesis|jsonschema|kubernetes-validate|polars|promql-parser|psutil|pytest|pytest-timeout|pytest-xdist|sybil)[~>]=.*)/\1/p' setup.cfg)
    # shellcheck disable=SC2086  # one word for each tool
    "$venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$venv/constraints.txt" \
        --editable '.[collect,completion,connect,delta,report,serve,spark,topics]' $tools >&2
    touch "$venv/.installed"
fi
echo "$venv/bin/python"
