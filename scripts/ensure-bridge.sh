#!/bin/sh
# Print the path of the broker's side of the decision server, the jar of plugins/pulsar_bridge, built if its sources have changed.
# Maven and a Java compiler are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../plugins/pulsar_bridge"

jar=$PWD/target/pulsar-bridge.jar
if [ ! -e "$jar" ] || [ -n "$(find pom.xml src -newer "$jar")" ]; then
    need_compiler_and_maven "The jar for brokers"
    mkdir -p "$cache"
    echo "Building the jar for brokers; the first time, Pulsar's jars come from Maven Central into $cache (some 300 MB)." >&2
    maven "$cache/bridge-build.log" clean package
fi
echo "$jar"
