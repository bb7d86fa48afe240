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

options() { # the option names in a text, one a line
    grep -oE '(^|[ ,[(])--?[a-z][a-z-]*' | tr -d ' ,[(' | LC_ALL=C sort -u
}
for verb in generate chat logits perplexity tokenize inspect verify quantize pack synth report bench; do
    "$root/usr/bin/forerun" $verb --help | sed -n '/^options:/,/^not built yet\|^examples:/p'
done | grep -E '^  -' | sed -E 's/ {2,}[^ -].*//' | options >"$root/in-help"
sed 's/\\-/-/g; s/\\f.//g; s/"//g' "$root/usr/share/man/man1/forerun.1" | grep -E '^\.BR? -' | options >"$root/in-man"
diff "$root/in-help" "$root/in-man" >&2 || fail "options of --help (<) and of the manual page (>) differ"

"$root/usr/bin/forerun" --help | sed -nE '/not built yet/d; /^examples:/q; s/^  ([a-z]+) .*/\1/p' |
    LC_ALL=C sort >"$root/in-help"
awk '/^\.SH/ { verbs = $2 == "VERBS" } verbs && tag && $1 == ".B" { print $2 } { tag = /^\.TP/ }' \
    "$root/usr/share/man/man1/forerun.1" | LC_ALL=C sort >"$root/in-man"
diff "$root/in-help" "$root/in-man" >&2 || fail "verbs of --help (<) and of the manual page (>) differ"

make -s uninstall BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr
[ -z "$(find "$root/usr" -type f)" ] || fail "make uninstall left files"
