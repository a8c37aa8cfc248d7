# Sourced by the scripts that build Java and Go. What they need is what their sentences begin with.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pulsar-lookup

stop() {
    echo "$1" >&2
    exit 2
}

# Install the first of the packages $3 ... that can be, if root and apt-get are there; else say that $1 needs $2.
install() {
    needing=$1 missing=$2
    shift 2
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "There is no $missing: installing it with apt-get." >&2
        apt-get update -qq >&2 || true
        for package in "$@"; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >&2 && return
        done
    fi
    stop "$needing needs $missing, and there is none; install it (Debian, Ubuntu: apt-get install $1)."
}

# Set `javac` and get Maven ready, for $1.
need_compiler_and_maven() {
    if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/javac" ]; then
        javac=$JAVA_HOME/bin/javac
    else
        command -v javac >/dev/null 2>&1 || install "$1" "a Java compiler" openjdk-17-jdk-headless openjdk-21-jdk-headless
        javac=javac
        # Without it, Maven takes the home of javac.
        unset JAVA_HOME
    fi
    command -v mvn >/dev/null 2>&1 || install "$1" Maven maven
}

# Run Maven over the jars in the cache, its output in the file $1; end with what it says if it fails.
maven() {
    log=$1
    shift
    mvn -B -ntp "-Dmaven.repo.local=$cache/m2" "$@" >"$log" 2>&1 && return
    # The last of its errors has the cause at its end.
    reason=$(sed -n 's/^\[ERROR\].*\(Could not .*\)/\1/p' "$log" | tail -n 1 | sed 's/ -> \[Help.*//')
    [ -n "$reason" ] || stop "Maven could not build $PWD; its errors are in $log."
    stop "Jars could not be had from Maven Central: $reason. Run this again with a network, or with a mirror in\
 ~/.m2/settings.xml."
}
