#!/bin/sh
# Make the virtual environment $1 with Python 3.11 or newer: $PYTHON if set, else the first that fits on the path.
set -eu

fits() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

stop() {
    echo "$1" >&2
    exit 2
}

if [ -n "${PYTHON:-}" ]; then
    fits "$PYTHON" || stop "PYTHON is $PYTHON, which is no Python 3.11 or newer; unset it or name one that is."
else
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if fits "$candidate"; then
            PYTHON=$candidate
            break
        fi
    done
    [ -n "${PYTHON:-}" ] || stop "There is no Python 3.11 or newer on the path; install one or set PYTHON to it."
fi

# Debian and Ubuntu ship the standard library's ensurepip as a package of its own.
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    package="python$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "Installing $package, which $PYTHON lacks." >&2
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"; } >&2 \
            || stop "$PYTHON cannot make virtual environments and $package could not be installed; install it by hand."
    else
        stop "$PYTHON cannot make virtual environments; install its venv module (Debian, Ubuntu: apt-get install $package)."
    fi
fi

# A half-made environment of an interrupted run is made anew.
"$PYTHON" -m venv --clear "$1"
