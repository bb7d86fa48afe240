#!/usr/bin/env bash
# Tests make on a machine that lacks a library or the compiler. One line must name it and the way to install it, before
# anything is compiled.
#
# Out: exit 0, or 1 after saying what is wrong.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/headers"
echo '#error none' | tee "$folder/headers/jansson.h" > "$folder/headers/png.h"

check() { # WHAT VARIABLE=VALUE
    local said
    said=$(env -u MAKEFLAGS -u MAKELEVEL make -s BUILD="$folder/build" "$2" 2>&1 | grep -v '^make: \*\*\*')
    [ "$said" = "missing: $1; tools/setup build installs what the build needs (README.md)" ] ||
        { echo "$2: make said: $said" >&2; exit 1; }
    [ -z "$(find "$folder/build" -name '*.o')" ] || { echo "$2: something was compiled" >&2; exit 1; }
}

check "jansson.h png.h" CPPFLAGS="-I$folder/headers"
check no-such-compiler CC=no-such-compiler
