#!/bin/sh
# Print the `airflow` of the tests, in an environment of its own in ~/.cache/pulsar-lookup: it wants other releases than this package.
# Python is the first that fits on the path; $PYTHON chooses another.
set -eu
. "$(dirname "$0")/java-tools.sh"

core=3.3.2 operators=1.21.0
kept=$cache/airflow-$core-$operators
if [ ! -e "$kept/.installed" ]; then
    "$(dirname "$0")/make-venv.sh" "$kept"
    echo "Installing Airflow $core into $kept (some 300 MB)." >&2
    "$kept/bin/pip" install --quiet --disable-pip-version-check \
        "apache-airflow-core==$core" "apache-airflow-providers-standard==$operators" >&2 \
        || stop "Airflow $core could not be installed from PyPI; see above."
    touch "$kept/.installed"
fi
echo "$kept/bin/airflow"
