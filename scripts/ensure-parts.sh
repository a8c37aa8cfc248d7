#!/bin/sh
# Print the class path with which `java -cp ... lookup.parts.Main` answers for Pulsar's own classes of load management: plugins/pulsar_parts,
# compiled, behind the jars of the release in $1, such as 4.2.4. `ensure-parts.sh --java 4.2.4` prints a java that runs it;
# `ensure-parts.sh --jar` puts the program alone where policies in Java find it, and prints that place.
# All is kept in ~/.cache/pulsar-lookup; Maven and javac are installed if they are missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"
cd "$(dirname "$0")/../plugins/pulsar_parts"

java=
if [ "${1:-}" = --java ]; then
    java=1
    shift
fi
jar=
if [ "${1:-}" = --jar ]; then
    jar=$cache/pulsar-parts.jar
    set -- 4.2.4
fi
release=${1:-}
case $release in
    *[!A-Za-z0-9.-]*) known= ;;
    [45].[0-9]*.[0-9]*) known=1 ;;
    *) known= ;;
esac
[ -n "$known" ] || stop "'$release' is no release of Pulsar to ask; it should be one of Maven Central from 4.0.0 on, such as 4.0.8, 4.2.4 or\
 5.0.1."

# Print the version of the Java in a home, such as 17, or nothing if there is none.
version_of() {
    [ -x "$1/bin/java" ] || return 0
    if [ -e "$1/release" ]; then
        said=$(cat "$1/release")
    else
        said=$("$1/bin/java" -XshowSettings:properties -version 2>&1 | sed -n 's/ *java\.version = \(.*\)/JAVA_VERSION="\1"/p')
    fi
    said=${said#*JAVA_VERSION=\"}
    said=${said%%[!0-9]*}
    # 1.8 is Java 8, and too old too.
    echo "$said"
}

if [ -n "$java" ]; then
    case $release in 4.*) oldest=17 ;; *) oldest=21 ;; esac
    best= best_version=
    onpath=$(readlink -f "$(command -v java || true)" || true)
    for home in "${JAVA_HOME:-}" "${onpath%/bin/java}" /usr/lib/jvm/*; do
        [ -n "$home" ] || continue
        version=$(version_of "$home")
        [ -n "$version" ] && [ "$version" -ge "$oldest" ] || continue
        # The oldest that will do is the one that most brokers of that release have.
        if [ -z "$best" ] || [ "$version" -lt "$best_version" ]; then
            best=$home best_version=$version
        fi
    done
    [ -n "$best" ] || stop "Pulsar $release needs Java $oldest or newer, and there is none in JAVA_HOME, on the path or in /usr/lib/jvm; install\
 one, such as a Temurin JDK, or set JAVA_HOME."
    echo "$best/bin/java"
    exit 0
fi

# Another source is another program: clones of several states may share the cache.
kept=$cache/parts-$release-$(cat pom.xml own-jars.txt src/main/java/lookup/parts/*.java src/main/resources/* | cksum | tr ' ' -)

# Print the class path, or pack the program and print where it is.
finish() {
    if [ -n "$jar" ]; then
        (
            cd "$kept/classes" && mkdir -p META-INF && base=java.base/java
            printf '%s\n' 'Manifest-Version: 1.0' 'Main-Class: lookup.parts.Host' \
                "Add-Opens: $base.lang $base.util $base.io $base.nio" >META-INF/MANIFEST.MF
            python3 -m zipfile -c "$jar.new" META-INF lookup log4j2.properties
        )
        mv "$jar.new" "$jar"
        echo "$jar"
    else
        cat "$kept/classpath"
    fi
    exit 0
}

[ ! -e "$kept/classpath" ] || finish

# Print a pom of the jars in own-jars.txt, and of nothing that they need in turn.
own_pom() {
    echo "<project><modelVersion>4.0.0</modelVersion><groupId>lookup</groupId><artifactId>own-jars</artifactId><version>1</version>"
    echo "<packaging>pom</packaging><build><plugins><plugin><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version>"
    echo "</plugin></plugins></build><dependencies>"
    grep -v '^#' own-jars.txt | while read -r group artifact version releases; do
        # shellcheck disable=SC2254 # a pattern
        case $release in $releases) ;; *) continue ;; esac
        [ "$version" != RELEASE ] || version=$release
        echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>"
        echo "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
    done
    echo "</dependencies></project>"
}

need_compiler_and_maven "A program with Pulsar's classes"
mkdir -p "$kept"
echo "Getting the jars of Pulsar $release from Maven Central into $cache (some 300 MB the first time)." >&2
maven "$kept/maven.log" -f pom.xml "-Dmdep.outputFile=$kept/jars" dependency:build-classpath
own_pom >"$kept/own.xml"
maven "$kept/own.log" -f "$kept/own.xml" "-Dmdep.outputFile=$kept/own" dependency:build-classpath
"$javac" --release 17 -proc:none -Xlint:all,-processing,-classfile -Werror -cp "$(cat "$kept/jars")" -d "$kept/classes" \
    src/main/java/lookup/parts/*.java >&2 || stop "The Java sources in $PWD do not compile; see above."
cp src/main/resources/* "$kept/classes"
# Moved, so that an interrupted run leaves nothing that looks whole.
printf '%s:%s:%s\n' "$kept/classes" "$(cat "$kept/own")" "$(cat "$kept/jars")" >"$kept/classpath.new"
mv "$kept/classpath.new" "$kept/classpath"
finish
