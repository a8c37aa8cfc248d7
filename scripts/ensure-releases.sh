#!/bin/sh
# Print the Python of an environment that runs the suite: $1 is `lowest`, the oldest Python and the oldest releases that
# setup.cfg permits, in .venv-lowest, or `newest`, the newest Python of this machine and the newest releases, in .venv-newest.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-$1

if [ "$1" = lowest ]; then
    candidates="python3.11"
else
    candidates="python3.15 python3.14 python3.13 python3.12 python3.11"
fi
# A command of pyenv's fails if its release is not the one that the folder asks for; the installations themselves do not.
for candidate in $candidates; do
    for python in "$candidate" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"$candidate"; do
        "$python" -c 'import ensurepip, venv' 2>/dev/null && break 2
    done
    python=""
done
[ -n "$python" ] || { echo "There is no Python of $candidates here that can make virtual environments." >&2 && exit 2; }

if [ ! setup.cfg -ot "$venv/.installed" ]; then
    echo "Installing the $1 releases into $venv, with $("$python" --version)." >&2
    PYTHON=$python scripts/make-venv.sh "$venv"
    if [ "$1" = lowest ]; then "$python" scripts/lowest.py; fi >"$venv/constraints.txt"
    # What runs the tests is as in `make test`; the other tools check the text of the code.
    tools=$(sed -nE 's/^ +((check-jsonschema|duckdb|hypothesis|jsonschema|kubernetes-validate|polars|promql-parser|psutil|pytest|pytest-timeout|pytest-xdist|sybil)[~>]=.*)/\1/p' setup.cfg)
    # shellcheck disable=SC2086  # one word for each tool
    "$venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$venv/constraints.txt" \
        --editable '.[collect,completion,report,serve,spark,topics]' $tools >&2
    touch "$venv/.installed"
fi
echo "$venv/bin/python"
