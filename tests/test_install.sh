#!/usr/bin/env bash
# make install into an empty folder: the programs of tests/embed find the library by pkg-config and give the command's
# ids, the manual page knows the options of every verb, and make uninstall leaves nothing behind.
#
# In: BUILD, a build without sanitizers. Out: exit 0, or 1 after saying what is wrong.
set -euo pipefail

BUILD=${BUILD:-build}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
model=tests/data/models/gemma4-e

fail() {
    echo "$1" >&2
    exit 1
}

make -s install BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr
expected="./usr/bin/forerun ./usr/include/forerun.h ./usr/lib/libforerun.a ./usr/lib/pkgconfig/forerun.pc"
expected+=" ./usr/share/man/man1/forerun.1"
[ "$(cd "$root" && find . -type f | LC_ALL=C sort | xargs)" = "$expected" ] || fail "other files than these: $expected"

# ----------------------------------------------------------------------------------------------- a program that uses it

export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig
read -ra flags < <(pkg-config --static --cflags --libs forerun)
"${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -pedantic tests/embed/generate.c "${flags[@]}" -o "$root/in-c"
"${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -pedantic tests/embed/generate.cc "${flags[@]}" -o "$root/in-c++"

version=$(pkg-config --modversion forerun)
ids=$("$root/usr/bin/forerun" generate -m $model --ids 2,9,17,5 -n 12 --ignore-eos --output ids)
for user in "$root/in-c" "$root/in-c++"; do
    [ "$("$user")" = "$version" ] || fail "$user: fr_version() is not forerun.pc's $version"
    [ "$("$user" $model $model/assistant)" = "$ids" ] || fail "$user: other ids than the command's $ids"
done

# ------------------------------------------------------------------------------------------------------ the manual page

page=$root/usr/share/man/man1/forerun.1
if command -v groff >/dev/null; then
    complaints=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    [ -z "$complaints" ] || fail "groff on the manual page: $complaints"
fi

# Both are printed from the same tables: a line of --help that the page lacks, with its names, its value and its words,
# is one that the printing left out. Every \fB, \fI and \- is taken back.
sed 's/\\-/-/g; s/\\f.//g; s/\\&//g' "$page" >"$root/page"
"$root/usr/bin/forerun" --help | sed -nE '/not built yet/d; /^examples:/q; s/^  ([a-z]+) .*/\1/p' >"$root/verbs"
[ "$(wc -l <"$root/verbs")" -ge 12 ] || fail "verbs of --help: $(xargs <"$root/verbs")"
while read -r verb; do
    grep -qx "\.B $verb" "$root/page" || fail "the manual page has no verb $verb"
    "$root/usr/bin/forerun" $verb --help | sed -n '/^options:/,/^examples:/{/^  /p}' | sed -E 's/^ +//; s/ {2,}/\n/' |
        while IFS= read -r part; do
            grep -qxF -e "$part" -e "$part." "$root/page" || fail "the manual page lacks what $verb --help says: $part"
        done
done <"$root/verbs"
for words in GLM-OCR "Gemma 4" "(default 0,4096,16384)"; do
    grep -qF "$words" "$root/page" || fail "the manual page lacks: $words"
done
"$root/usr/bin/forerun" --help | grep -q GLM-OCR || fail "--help does not say that GLM-OCR is read"

make -s uninstall BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr
[ -z "$(find "$root/usr" -type f)" ] || fail "make uninstall left files"
