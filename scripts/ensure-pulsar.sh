#!/bin/sh
# Print the class path of a Pulsar cluster to test with: its jars from Maven Central and our Java in tests/pulsar/java, compiled.
# Both are kept in ~/.cache/pulsar-lookup; Maven and javac are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../tests/pulsar"

# Another pom or another source is another cluster: clones of several states may share the cache.
kept=$cache/cluster-$(cat pom.xml java/*.java | cksum | tr ' ' -)
if [ -e "$kept/classpath" ]; then
    cat "$kept/classpath"
    exit 0
fi

need_compiler_and_maven "A Pulsar cluster"
mkdir -p "$kept"
echo "Getting the jars of Pulsar from Maven Central into $cache (some 300 MB the first time)." >&2
maven "$kept/maven.log" -f pom.xml "-Dmdep.outputFile=$kept/jars" dependency:build-classpath
"$javac" --release 17 -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" java/*.java >&2 \
    || stop "The Java sources in $PWD/java do not compile against the jars of pom.xml; see above."
# Moved, so that an interrupted run leaves nothing that looks whole.
printf '%s:%s\n' "$kept/classes" "$(cat "$kept/jars")" >"$kept/classpath.new"
mv "$kept/classpath.new" "$kept/classpath"
cat "$kept/classpath"
