#!/bin/sh
# Print the path of the broker's side of the decision server, the jar of plugins/pulsar_bridge, built if its sources have changed.
# `ensure-bridge.sh 5.0.1` compiles it against the jars of that release instead, by a compiler for its Java, and keeps nothing.
# Maven and a Java compiler are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../plugins/pulsar_bridge"

if [ -n "${1:-}" ]; then
    java=$(../../scripts/ensure-parts.sh --java "$1")
    [ -x "${java%/java}/javac" ] || stop "${java%/bin/java} has no compiler; install a JDK there."
    jars=$(../../scripts/ensure-parts.sh "$1")
    case $1 in 4.*) oldest=17 ;; *) oldest=21 ;; esac
    classes=$(mktemp -d)
    trap 'rm -rf "$classes"' EXIT
    find src/main/java -name '*.java' -exec "${java%/java}/javac" --release "$oldest" -proc:none \
        -Xlint:all,-processing,-classfile -Werror -cp "$jars" -d "$classes" {} + >&2 ||
        stop "The Java sources in $PWD do not compile against Pulsar $1; see above."
    echo "plugins/pulsar_bridge compiles against Pulsar $1, Java $oldest."
    exit 0
fi

jar=$PWD/target/pulsar-bridge.jar
if [ ! -e "$jar" ] || [ -n "$(find pom.xml src -newer "$jar")" ]; then
    need_compiler_and_maven "The jar for brokers"
    mkdir -p "$cache"
    echo "Building the jar for brokers; the first time, Pulsar's jars come from Maven Central into $cache (some 300 MB)." >&2
    maven "$cache/bridge-build.log" clean package
fi
echo "$jar"
