#!/bin/sh
# Run tests of Pulsar's extensible load manager, from its own test jars, with the stock class and with ours.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/.."

package=org.apache.pulsar.broker.loadbalance
# The short ones first; the last takes some eight minutes with each class.
known="extensions.LoadManagerFailFastTest extensions.BrokerRegistryIntegrationTest extensions.ExtensibleLoadManagerCloseTest
    extensions.ExtensibleLoadManagerImplWithTransactionCoordinatorTest extensions.ExtensibleLoadManagerImplWithAdvertisedListenersTest
    extensions.AntiAffinityNamespaceGroupExtensionTest extensions.ExtensibleLoadManagerImplTest"

usage() {
    cat <<EOF
usage: scripts/upstream-tests.sh [--mode record|shadow|decide] [TEST ...]

Run Pulsar's own tests, unchanged, from the test jars on Maven Central: once with the stock load manager, once with
lookup.bridge.LookupPolicyLoadManager in its place, each test class in a JVM of its own. Print how many passed with either.

  --mode MODE  lookupPolicyMode of our class: record (the default) has no server, shadow and decide ask a
               \`lookup serve\` that is started for them, with the placement of configs/policies
  TEST         a test class; all of these without one:
$(for test in $known; do echo "                 ${test##*.}"; done)

Logs are in build/upstream-tests. Exit codes: 0, 1 if a test passes with the stock class and not with ours, 2 for wrong
arguments or what is missing.
EOF
}

mode=record tests=
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage; exit 0 ;;
        --mode) shift; mode=${1:-} ;;
        --mode=*) mode=${1#--mode=} ;;
        *)
            for test in $known; do [ "${test##*.}" != "$1" ] || tests="$tests $test"; done
            case " $tests" in *".$1") ;; *) stop "'$1' is none of the tests that are run here; see scripts/upstream-tests.sh --help." ;; esac
            ;;
    esac
    [ $# = 0 ] || shift
done
case $mode in record | shadow | decide) ;; *) stop "--mode is '$mode', and should be record, shadow or decide." ;; esac

sources=tests/acceptance/pulsar/upstream
kept=$cache/upstream-$(cat $sources/pom.xml $sources/*.java scripts/upstream-tests.sh | cksum | tr ' ' -)
if [ ! -e "$kept/agent.jar" ]; then
    need_compiler_and_maven "Upstream's tests"
    mkdir -p "$kept/classes"
    echo "Getting Pulsar's test jars from Maven Central into $cache." >&2
    maven "$kept/maven.log" -f $sources/pom.xml "-Dmdep.outputFile=$kept/jars" dependency:build-classpath
    "$javac" --release 17 -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" $sources/*.java >&2 \
        || stop "The Java sources in $PWD/$sources do not compile; see above."
    jar=$(dirname "$(readlink -f "$(command -v "$javac")")")/jar
    # Tests open their certificates as files.
    tests_jar=$(tr : '\n' <"$kept/jars" | grep 'pulsar-broker-[^/]*-tests\.jar')
    (cd "$kept/classes" && "$jar" --extract --file "$tests_jar" certificate-authority)
    printf 'Premain-Class: OurClass\n' >"$kept/manifest"
    # Moved, so that an interrupted run leaves nothing that looks whole.
    "$jar" --create --file "$kept/agent.new" --manifest "$kept/manifest" -C "$kept/classes" OurClass.class
    mv "$kept/agent.new" "$kept/agent.jar"
fi
bridge=$(scripts/ensure-bridge.sh)
java=$(scripts/ensure-java.sh)/bin/java
out=build/upstream-tests
rm -rf "$out"
mkdir -p "$out"

# What a broker needs opened, as upstream's own build opens it for its tests; and its listeners, without retries.
opened="java.base/java.io java.base/java.lang java.base/java.nio java.base/java.util java.base/java.util.zip java.base/sun.net
    java.base/jdk.internal.loader java.base/jdk.internal.misc java.base/jdk.internal.platform java.management/sun.management
    jdk.management/com.sun.management.internal"
run() { # TEST KIND OPTION ...
    test=$1 log=$out/${1##*.}.$2
    shift 2
    : >"$log.outcomes"
    # shellcheck disable=SC2046
    "$java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx1800m -XX:MaxDirectMemorySize=700m -Dio.netty.tryReflectionSetAccessible=true -DtestRetryCount=0 \
        $(for package_opened in $opened; do printf -- '--add-opens=%s=ALL-UNNAMED ' "$package_opened"; done) \
        "-Doutcomes=$log.outcomes" "$@" -cp "$bridge:$kept/classes:$(cat "$kept/jars")" org.testng.TestNG \
        -listener "org.apache.pulsar.tests.PulsarTestListener,org.apache.pulsar.tests.AnnotationListener,Outcomes" \
        -d "$log.testng" -testclass "$package.$test" >"$log.log" 2>&1 || true # what failed is in the outcomes
    grep '^passed ' "$log.outcomes" | sort >"$log.passed" || true
    [ -s "$log.outcomes" ] || stop "$test ended without the outcome of any test; its log is $log.log."
}
share() { echo "$(wc -l <"$1.passed")/$(wc -l <"$1.outcomes")"; }

server=http://127.0.0.1:1
if [ "$mode" != record ]; then
    cp configs/serving.toml "$out/serving.toml"
    .venv/bin/lookup serve "$out/serving.toml" --port 0 >"$out/server.log" 2>&1 &
    serving=$!
    trap 'kill $serving' EXIT
    trap 'exit 130' INT TERM
    until server=$(grep -o 'http://127.0.0.1:[0-9]*' "$out/server.log" | head -n 1) && [ -n "$server" ]; do
        kill -0 "$serving" 2>/dev/null || stop "lookup serve did not start; see $out/server.log."
        sleep 0.2
    done
fi

worse=0
row='%-58s %9s %9s   %s\n'
printf "$row" test stock ours "brokers with ours, in mode $mode"
for test in ${tests:-$known}; do
    name=$out/${test##*.}
    run "$test" stock
    run "$test" ours "-javaagent:$kept/agent.jar" "-DlookupPolicyMode=$mode" "-DlookupPolicyServer=$server"
    printf "$row" "${test##*.}" "$(share "$name.stock")" "$(share "$name.ours")" \
        "$(grep -c 'Lookup policies are in mode' "$name.ours.log" || true)"
    comm -23 "$name.stock.passed" "$name.ours.passed" | sed 's/^passed/    passes with the stock class, not with ours:/' >"$name.worse"
    cat "$name.worse"
    [ ! -s "$name.worse" ] || worse=1
done
exit "$worse"
