#!/bin/sh
# Print the path of a Python of the release in $1, such as 3.14: of this machine, or built by JavaCPP, from Maven Central.
# The latter is kept in ~/.cache/pulsar-lookup; it is for Linux on x86-64. Maven is installed if it is missing and the machine allows.
set -eu
. "$(dirname "$0")/java-tools.sh"

release=${1:-}
case $release in 3.[0-9]*) ;; *) stop "'$release' is no release of Python; it should be one like 3.14." ;; esac
# A command of pyenv's fails if its release is not the one that the folder asks for; the installations themselves do not.
for python in "python$release" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"python$release"; do
    if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        command -v "$python"
        exit 0
    fi
done
[ "$(uname -sm)" = "Linux x86_64" ] || stop "There is no Python $release on this machine, and none that could be had for it."
kept=$cache/python-$release
if [ ! -e "$kept/bin/python$release" ]; then
    command -v unzip >/dev/null 2>&1 || install "Python $release" unzip unzip
    need_compiler_and_maven "Python $release"
    mkdir -p "$kept.new"
    cat >"$kept.new/pom.xml" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>lookup</groupId><artifactId>python</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.bytedeco</groupId><artifactId>cpython</artifactId><version>[$release,$release.99)</version>
<classifier>linux-x86_64</classifier><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
</dependencies></project>
POM
    maven "$kept.new/maven.log" -f "$kept.new/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$kept.new/jars"
    unzip -q "$kept.new"/jars/*.jar -d "$kept.new"
    home=$kept.new/org/bytedeco/cpython/linux-x86_64
    mv "$home/python$release" "$home/bin/python$release"
    chmod +x "$home/bin/python$release"
    # Moved, so that an interrupted run leaves nothing that looks whole.
    rm -rf "$kept"
    mv "$home" "$kept"
    rm -rf "$kept.new"
fi
echo "$kept/bin/python$release"
