#!/bin/sh
# Print the class path of a Pulsar cluster to test with: its jars from Maven Central and our Java in tests/acceptance/pulsar/java, compiled.
# `ensure-pulsar.sh 4.0.7` is one of that release; without a version it is that of tests/acceptance/pulsar/pom.xml.
# All is kept in ~/.cache/pulsar-lookup; Maven and javac are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../tests/acceptance/pulsar"

version=${1:-$(sed -n 's/.*<pulsar.version>\(.*\)<.*/\1/p' pom.xml)}
case $version in
    *[!A-Za-z0-9.-]*) known= ;;
    [4-9].[0-9]*.[0-9]*) known=1 ;;
    *) known= ;;
esac
[ -n "$known" ] || stop "'$version' is no release of Pulsar to test with; it should be one of Maven Central from 4.0.0 on, such as\
 4.0.7 or 5.0.0-M1."

# Another pom or another source is another cluster: clones of several states may share the cache.
kept=$cache/cluster-$version-$(cat pom.xml java/*.java | cksum | tr ' ' -)
if [ -e "$kept/classpath" ]; then
    cat "$kept/classpath"
    exit 0
fi

need_compiler_and_maven "A Pulsar cluster"
mkdir -p "$kept"
echo "Getting the jars of Pulsar $version from Maven Central into $cache (some 300 MB the first time)." >&2
case $version in 4.*) platform=pulsar ;; *) platform=pulsar-dependencies ;; esac
maven "$kept/maven.log" -f pom.xml "-Dpulsar.version=$version" "-Dpulsar.platform=$platform" "-Dmdep.outputFile=$kept/jars" \
    dependency:build-classpath
"$javac" --release 17 -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" java/*.java >&2 \
    || stop "The Java sources in $PWD/java do not compile against the jars of Pulsar $version; see above."
# Moved, so that an interrupted run leaves nothing that looks whole.
printf '%s:%s\n' "$kept/classes" "$(cat "$kept/jars")" >"$kept/classpath.new"
mv "$kept/classpath.new" "$kept/classpath"
cat "$kept/classpath"
