#!/usr/bin/env bash
# Tests make install into an empty folder. The programs of tests/embed must find either library by pkg-config and give
# the command's ids. The shared library must export what the header declares. Debuggers must find the separate debug
# information. The manual page must have the options of every verb. make uninstall must leave nothing behind.
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
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig
version=$(pkg-config --modversion forerun)
shared=libforerun.so.$version
series=${version%.*}
[[ $series == 0.* ]] || series=${series%.*}
expected="bin/.debug/forerun.debug bin/forerun include/forerun.h lib/.debug/$shared.debug lib/libforerun.a"
expected+=" lib/libforerun.so lib/libforerun.so.$series lib/$shared lib/pkgconfig/forerun.pc"
expected+=" lib/systemd/system/forerun@.service lib/systemd/system/forerun@.socket"
expected+=" share/bash-completion/completions/forerun"
expected+=" share/cmake/forerun/forerun-config-version.cmake share/cmake/forerun/forerun-config.cmake"
expected+=" share/doc/forerun/LICENSE"
examples=share/doc/forerun/examples
for example in engine.c first.c generate.c generate.cc minimal.c own_method.c; do expected+=" $examples/$example"; done
expected+=" share/fish/vendor_completions.d/forerun.fish"
expected+=" share/man/man1/forerun.1 share/zsh/site-functions/_forerun"
found=$(find "$root/usr" ! -type d -printf '%P\n' | LC_ALL=C sort | xargs)
[ "$found" = "$expected" ] || fail "not these files: $expected, but $found"

# ---------------------------------------------------------------------------------------- programs that use the library

# Prints the libraries that a program needs at run time, without the C library.
needs() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' |
        grep -vE '^(lib(c|m|stdc\+\+|gcc_s|pthread)|ld-.*)\.so' | xargs
}

warnings=(-Wall -Wextra -Werror -pedantic)
read -ra include < <(pkg-config --cflags forerun)
"${CC:-gcc}" -std=c11 "${warnings[@]}" "${include[@]}" -c tests/embed/generate.c -o "$root/c.o"
"${CXX:-g++}" -std=c++17 "${warnings[@]}" "${include[@]}" -c tests/embed/generate.cc -o "$root/c++.o"
for program in own_method first minimal engine; do
    name=${program%_method}
    "${CC:-gcc}" -std=c99 "${warnings[@]}" "${include[@]}" -c tests/embed/$program.c -o "$root/$name-c.o"
    "${CXX:-g++}" -std=c++17 "${warnings[@]}" "${include[@]}" -x c++ -c tests/embed/$program.c -o "$root/$name-c++.o"
done
embed() { # NAME FLAG...: links the program with each library
    local object program
    for object in "$root"/*.o; do
        program=$root/$1-$(basename "$object" .o)
        if [[ $program == *-c ]]; then
            "${CC:-gcc}" "$object" "${@:2}" -o "$program"
        else
            "${CXX:-g++}" "$object" "${@:2}" -o "$program"
        fi
    done
}

read -ra dynamic < <(pkg-config --cflags --libs forerun)
[[ "${dynamic[*]}" != *-ljansson* ]] || fail "forerun.pc: a program links what the shared library does: ${dynamic[*]}"
[[ "$(pkg-config --static --libs forerun)" == *-lz* ]] || fail "forerun.pc: libpng's archive needs -lz"
read -ra static < <(pkg-config --static --cflags --libs forerun)
embed dynamic "${dynamic[@]}"
embed static "${static[@]/#-lforerun/-l:libforerun.a}"

export LD_LIBRARY_PATH=$root/usr/lib
say() { # IDS: prints the ids that the command generates after these
    "$root/usr/bin/forerun" generate -m $model --ids "$1" -n 12 --ignore-eos --output ids
}
ids=$(say 2,9,17,5)
texts=$(printf '%s\n' "$ids" "$(say 2,40,41,42)" "$(say 2,7,7,300)" "$ids")
for user in "$root"/{dynamic,static}-{c,c++}; do
    [ "$("$user")" = "$version" ] || fail "$user: fr_version() is not forerun.pc's $version"
    [ "$("$user" $model $model/assistant)" = "$ids" ] || fail "$user: other ids than the command's $ids"
done
for user in "$root"/{dynamic,static}-own-{c,c++}; do
    [ "$("$user" $model)" = "$ids 12 forwards, then 3" ] || fail "$user: $("$user" $model)"
done
for user in "$root"/{dynamic,static}-engine-{c,c++}; do
    [ "$("$user" $model $model/assistant)" = "$texts" ] || fail "$user: other texts than the command's $texts"
done
# Prints the first bytes of a program's text, which is noise and would go on until the context is full.
first() {
    "$@" 2>/dev/null | head -c 400 | od -An -tx1 || true
}
text=$(first "$root/usr/bin/forerun" generate -m $model -p 'the house' -n 400)
[ "$(wc -w <<<"$text")" = 400 ] || fail "the command goes on with too little: $text"
for user in "$root"/{dynamic,static}-{first,minimal}-{c,c++}; do
    drafter=()
    [[ $user == *-minimal-* ]] || drafter=($model/assistant)
    said=$(first "$user" $model 'the house' "${drafter[@]}")
    [ "$said" = "$text" ] || fail "$user: another text than the command's $text: $said"
    code=0
    line=$("$user" /nowhere x 2>&1) || code=$?
    [[ $code = 1 && $line == *"/nowhere"* ]] || fail "$user: exit status $code for a path that is none: $line"
done

# The smallest program must be the one in the header.
sed -n '/^ \*     #include <forerun.h>/,/^ \*     }$/s/^ \* \{0,5\}//p' "$root/usr/include/forerun.h" |
    diff - <(sed '1,/\*\/$/d' tests/embed/minimal.c) >&2 ||
    fail "the program at the top of forerun.h is not tests/embed/minimal.c"

for language in c c++; do
    [ "$(needs "$root/dynamic-$language")" = "libforerun.so.$series" ] || fail "dynamic-$language: other libraries"
    [[ "$(needs "$root/static-$language")" != *forerun* ]] || fail "static-$language: the shared library"
done

# --------------------------------------------------------------------------------------------------- CMake and systemd

# A program must find the shared and the static library by CMake, and can ask for this series of versions.
if command -v cmake > /dev/null; then
    mkdir "$root/cmake"
    cat > "$root/cmake/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(forerun $series REQUIRED)
foreach(kind forerun static)
  add_executable(\${kind} $PWD/tests/embed/generate.c)
  target_link_libraries(\${kind} forerun::\${kind})
endforeach()
END
    cmake -S "$root/cmake" -B "$root/cmake/build" -DCMAKE_PREFIX_PATH="$root/usr" > "$root/cmake/log" 2>&1 &&
        cmake --build "$root/cmake/build" >> "$root/cmake/log" 2>&1 || fail "CMake: $(tail -5 "$root/cmake/log")"
    for user in "$root"/cmake/build/{forerun,static}; do
        [ "$("$user" $model $model/assistant)" = "$ids" ] || fail "$user: other ids than the command's $ids"
    done
    sed -i "s/find_package(forerun $series/find_package(forerun 99/" "$root/cmake/CMakeLists.txt"
    ! cmake -S "$root/cmake" -B "$root/cmake/other" -DCMAKE_PREFIX_PATH="$root/usr" > /dev/null 2>&1 ||
        fail "CMake takes this version for version 99"
else
    echo "without CMake its files were not tested"
fi

# The unit must name the installed command, and restrict the server: systemd's exposure level must be 2.0 or lower.
unit=$root/usr/lib/systemd/system/forerun@.service
grep -qx 'ExecStart=/usr/bin/forerun serve --config /etc/forerun/%i.conf' "$unit" ||
    fail "the unit starts another command"
if command -v systemd-analyze > /dev/null; then
    cp "$unit" "$root/forerun@x.service"
    systemd-analyze security --offline=true --threshold=20 "$root/forerun@x.service" > "$root/exposure" 2>&1 ||
        fail "the unit: $(tail -1 "$root/exposure")"
else
    echo "without systemd-analyze the unit was not tested"
fi

# ----------------------------------------------------------------------------------------------- the libraries' symbols

declared=$("${CC:-gcc}" -E -P "$root/usr/include/forerun.h" | grep -v '^typedef' |
    sed -nE 's/.*\b(fr_[a-z_]+)\(.*/\1/p' | sort -u)
shown=$(nm -D --defined-only "$root/usr/lib/$shared" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u)
[ "$(wc -w <<<"$declared")" -ge 50 ] || fail "functions that forerun.h declares: $declared"
[ "$declared" = "$shown" ] ||
    fail "forerun.h and $shared: $(comm -3 <(echo "$declared") <(echo "$shown") | xargs)"

# Each symbol must have the series as its version, and a program must ask for this version.
other=$(nm -D --defined-only "$root/usr/lib/$shared" | awk '$2 == "T"' | grep -v "@@FORERUN_$series\$" || true)
[ -z "$other" ] || fail "$shared: symbols that are not of version FORERUN_$series: $other"
readelf -VW "$root/dynamic-c" | grep -F "FORERUN_$series" >/dev/null || fail "dynamic-c asks for no version of $shared"

# Debug information is in separate files, which must be found from the binaries: the address of a function must give
# its line.
for binary in bin/forerun lib/$shared; do
    installed=$root/usr/$binary
    debug=$root/usr/${binary%/*}/.debug/${binary##*/}.debug
    ! readelf -SW "$installed" | grep -E '\.(debug_|symtab)' || fail "$binary is not stripped"
    objdump -h "$debug" | grep -F .debug_info >/dev/null || fail "$debug has no debug information"
    address=$(nm "$debug" | awk '$3 == "fr_version" { print $1 }')
    addr2line -fe "$installed" "$address" | xargs | grep -qE '^fr_version .*\.c:[0-9]+' ||
        fail "$binary: its debug information is not found"
done

# ------------------------------------------------------------------------------------------------------ the manual page

page=$root/usr/share/man/man1/forerun.1
if command -v groff >/dev/null; then
    complaints=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    [ -z "$complaints" ] || fail "groff on the manual page: $complaints"
fi

# Prints each option as one line: a line that begins in the column of texts, or continues with names, belongs to the
# line before it. All input is read, because stopping at the examples would break the command's pipe.
whole_lines() {
    awk '/^examples:/ { on = 0 }
         /^options:/ { on = 1; next }
         !on { next }
         /^    -/ { sub(/^ +/, ""); line = line " " $0; said = $0 ~ /  /; next }
         substr($0, 1, 27) ~ /^ +$/ { sub(/^ +/, ""); line = line (said ? " " : "  ") $0; said = 1; next }
         { if (line != "") print line; line = $0; said = substr($0, 3) ~ /  / }
         END { if (line != "") print line }'
}

# The page and --help are printed from the same tables. So each line of --help, with its names, its value and its
# words, must be in the page. The escapes \fB, \fI, \- and \e are removed first.
sed 's/\\-/-/g; s/\\f.//g; s/\\&//g; s/\\e/\\/g' "$page" >"$root/page"
"$root/usr/bin/forerun" --help >"$root/help" # a reader of only a part would break the pipe
sed -nE '/not built yet/d; /^examples:/q; s/^  ([a-z]+) .*/\1/p' "$root/help" >"$root/verbs"
[ "$(wc -l <"$root/verbs")" -ge 12 ] || fail "verbs of --help: $(xargs <"$root/verbs")"
while read -r verb; do
    grep -qx "\.B $verb" "$root/page" || fail "the manual page has no verb $verb"
    "$root/usr/bin/forerun" $verb --help | whole_lines | sed -E 's/^ +//; s/ {2,}/\n/' |
        while IFS= read -r part; do
            grep -qxF -e "$part" -e "$part." "$root/page" || fail "the manual page lacks what $verb --help says: $part"
        done
done <"$root/verbs"
for words in GLM-OCR "Gemma 2 to 4" "(default 0,4096,16384)"; do
    grep -qF "$words" "$root/page" || fail "the manual page lacks: $words"
done
grep -q GLM-OCR "$root/help" || fail "--help does not say that GLM-OCR is read"

make -s uninstall BUILD="$BUILD" DESTDIR="$root" PREFIX=/usr
[ -z "$(find "$root/usr" ! -type d)" ] || fail "make uninstall left files"

# ------------------------------------------------------------------------------------ a folder with a blank in its name

unset PKG_CONFIG_SYSROOT_DIR
export PKG_CONFIG_LIBDIR="$root/two words/lib/pkgconfig"
make -s install BUILD="$BUILD" PREFIX="$root/two words"
found=$(find "$root/two words" ! -type d -printf '%P\n' | LC_ALL=C sort | xargs)
[ "$found" = "$expected" ] || fail "in a folder with a blank not these files: $expected, but $found"
eval "flags=($(pkg-config --cflags --libs forerun))"
"${CC:-gcc}" -std=c11 tests/embed/generate.c "${flags[@]}" -o "$root/words"
[ "$(LD_LIBRARY_PATH="$root/two words/lib" "$root/words" $model $model/assistant)" = "$ids" ] || fail "words: other ids"
make -s uninstall BUILD="$BUILD" PREFIX="$root/two words"
[ -z "$(find "$root/two words" ! -type d)" ] || fail "make uninstall left files of a folder with a blank"
