#!/bin/sh
# Print the class path of a Pulsar cluster to test with: its jars from Maven Central and our Java in tests/pulsar/java, compiled.
# Both are kept in ~/.cache/pulsar-lookup; Maven and javac are installed if they are missing and the machine allows.
set -eu
cd "$(dirname "$0")/../tests/pulsar"

stop() {
    echo "$1" >&2
    exit 2
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pulsar-lookup
# Another pom or another source is another cluster: clones of several states may share the cache.
kept=$cache/cluster-$(cat pom.xml java/*.java | cksum | tr ' ' -)
if [ -e "$kept/classpath" ]; then
    cat "$kept/classpath"
    exit 0
fi

# Install the first of the packages $2 ... that can be, if root and apt-get are there; else say that $1 is missing.
install() {
    missing=$1
    shift
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "There is no $missing: installing it with apt-get." >&2
        apt-get update -qq >&2 || true
        for package in "$@"; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2 && return
        done
    fi
    stop "A Pulsar cluster needs $missing, and there is none; install it (Debian, Ubuntu: apt-get install $1)."
}

if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/javac" ]; then
    javac=$JAVA_HOME/bin/javac
else
    command -v javac >/dev/null 2>&1 || install "a Java compiler" openjdk-17-jdk-headless openjdk-21-jdk-headless
    javac=javac
fi
command -v mvn >/dev/null 2>&1 || install Maven maven

mkdir -p "$kept"
echo "Getting the jars of Pulsar from Maven Central into $cache (some 300 MB the first time)." >&2
log=$kept/maven.log
mvn -B -ntp -f pom.xml "-Dmaven.repo.local=$cache/m2" "-Dmdep.outputFile=$kept/jars" dependency:build-classpath >"$log" 2>&1 || {
    # The last of its errors has the cause at its end.
    reason=$(sed -n 's/^\[ERROR\].*\(Could not .*\)/\1/p' "$log" | tail -n 1 | sed 's/ -> \[Help.*//')
    stop "The jars of Pulsar could not be had from Maven Central: ${reason:-see $log}. Run this again with a network, or with a\
 mirror in ~/.m2/settings.xml."
}
"$javac" --release 17 -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" java/*.java >&2 \
    || stop "The Java sources in $PWD/java do not compile against the jars of pom.xml; see above."
# Moved, so that an interrupted run leaves nothing that looks whole.
printf '%s:%s\n' "$kept/classes" "$(cat "$kept/jars")" >"$kept/classpath.new"
mv "$kept/classpath.new" "$kept/classpath"
cat "$kept/classpath"
