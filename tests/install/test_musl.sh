#!/usr/bin/env bash
# Tests that every source of the library and of the command compiles with musl's headers, which lack glibc's
# extensions. The headers of other libraries are this system's.
#
# In: FULL, because the test takes 12 core-seconds. Out: exit 0, or 1 after the compiler's lines, or 77 without FULL or
# musl-gcc.
set -euo pipefail

[ -n "${FULL:-}" ] || { echo "skipped: only with FULL=1"; exit 77; }

command -v musl-gcc > /dev/null || { echo "skipped: no musl-gcc (musl-tools)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The compiler sees only the headers of these libraries and of Linux, and none of this system's C library.
machine=$(gcc -dumpmachine)
for header in jansson.h jansson_config.h pcre2.h utf8proc.h jpeglib.h jmorecfg.h jerror.h jconfig.h gif_lib.h \
    histedit.h microhttpd.h zlib.h zconf.h webp gnutls linux asm-generic asm; do
    for place in "/usr/include/$header" "/usr/include/$machine/$header"; do
        [ ! -e "$place" ] || ln -sfn "$place" "$folder/$header"
    done
done
cp /usr/include/libpng16/*.h "$folder"

make -s CC=musl-gcc TOPOLOGY=plain RANKS=none CPPFLAGS="-isystem $folder" syntax
