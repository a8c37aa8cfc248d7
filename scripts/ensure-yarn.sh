#!/bin/sh
# Print the class path of a YARN to test with: Hadoop's jars from Maven Central and our Java in tests/spark/yarn, compiled.
# Both are kept in ~/.cache/pulsar-lookup; Maven and javac are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../tests/spark/yarn"

# Another pom or another source is another cluster: clones of several states may share the cache.
kept=$cache/yarn-$(cat pom.xml ./*.java | cksum | tr ' ' -)
if [ ! -e "$kept/classpath" ]; then
    need_compiler_and_maven "A YARN to test with"
    mkdir -p "$kept"
    echo "Getting the jars of Hadoop from Maven Central into $cache (some 100 MB the first time)." >&2
    maven "$kept/maven.log" -f pom.xml "-Dmdep.outputFile=$kept/jars" dependency:build-classpath
    "$javac" --release 17 -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" ./*.java >&2 \
        || stop "The Java sources in $PWD do not compile against the jars of pom.xml; see above."
    # Moved, so that an interrupted run leaves nothing that looks whole.
    printf '%s:%s\n' "$kept/classes" "$(cat "$kept/jars")" >"$kept/classpath.new"
    mv "$kept/classpath.new" "$kept/classpath"
fi
cat "$kept/classpath"
