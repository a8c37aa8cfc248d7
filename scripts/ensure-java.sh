#!/bin/sh
# Print the home of a Java 17 or newer: of JAVA_HOME, else of the path's `java`, else of one installed now if the machine allows.
set -eu

found=""

# Print the home and end, if a command is a Java that Spark runs on; else remember what it is.
try() {
    command -v "$1" >/dev/null 2>&1 || return 0
    properties=$("$1" -XshowSettings:properties -version 2>&1) || return 0
    version=$(printf '%s\n' "$properties" | sed -n 's/^ *java\.specification\.version = //p')
    home=$(printf '%s\n' "$properties" | sed -n 's/^ *java\.home = //p')
    case $version in
        '' | *[!0-9]*) ;; # 1.8 is Java 8
        *) if [ "$version" -ge 17 ]; then
            printf '%s\n' "$home"
            exit 0
        fi ;;
    esac
    found="$found $1 is Java ${version:-unknown}."
}

[ -z "${JAVA_HOME:-}" ] || try "$JAVA_HOME/bin/java"
try java

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "There is no Java 17 or newer: installing one with apt-get." >&2
    apt-get update -qq >&2 || true
    # Debian 13 has no 17 any more.
    for package in openjdk-17-jre-headless openjdk-21-jre-headless; do
        if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2; then
            try "$(command -v java)"
        fi
    done
fi

echo "Spark needs Java 17 or newer, and there is none.$found Install one (Debian, Ubuntu: apt-get install" \
    "openjdk-17-jre-headless) or set JAVA_HOME to one." >&2
exit 2
