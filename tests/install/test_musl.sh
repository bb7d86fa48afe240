#!/usr/bin/env bash
# Tests that every source of the library and of the command compiles against musl's headers, which lack what only glibc
# has. Headers of other libraries are those of this system.
#
# In: FULL, as it takes 12 core-seconds. Out: exit 0, 1 after the compiler's lines, or 77 without FULL or musl-gcc.
set -euo pipefail

[ -n "${FULL:-}" ] || { echo "skipped: only with FULL=1"; exit 77; }

command -v musl-gcc > /dev/null || { echo "skipped: no musl-gcc (musl-tools)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Of this system's headers only those of these libraries and of Linux are seen, and none of its C library.
machine=$(gcc -dumpmachine)
for header in jansson.h jansson_config.h pcre2.h utf8proc.h jpeglib.h jmorecfg.h jerror.h jconfig.h gif_lib.h \
    histedit.h microhttpd.h zlib.h zconf.h webp gnutls linux asm-generic asm; do
    for place in "/usr/include/$header" "/usr/include/$machine/$header"; do
        [ ! -e "$place" ] || ln -sfn "$place" "$folder/$header"
    done
done
cp /usr/include/libpng16/*.h "$folder"

make -s CC=musl-gcc TOPOLOGY=plain RANKS=none CPPFLAGS="-isystem $folder" syntax
