#!/usr/bin/env bash
# Tests the memory of loading: it stays below 1.10 x the tensors' bytes + 64 MB, because a file's pages are given back
# as they are packed; and processes that use a file that is packed already share it.
#
# In: BUILD, a build without sanitizers; 800 MB of room for temporary files. Out: exit 0, or 1 after saying what is
# wrong. The script reads the kernel's counts from /proc while a program waits for its logits to be read.
set -euo pipefail

forerun=${BUILD:-build}/forerun
folder=$(mktemp -d)
running=()
trap 'kill "${running[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

ids=2$(printf ',%d' {300..346})

# Starts a program with more logits than a pipe holds and returns when the first of them are there: it is loaded, its
# process id is the last of running, and it ends with the script.
load() { # MODEL OPTION...
    local output
    # shellcheck disable=SC2094  # nothing is written to the model
    exec {output}< <(exec "$forerun" logits -m "$1" --ids "$ids" -c 256 -o - --quiet "${@:2}")
    running+=($!)
    [ "$(head -c 4 <&"$output" | wc -c)" = 4 ] || fail "logits -m $* wrote nothing"
}

kilobytes() { # FILE FIELD...: their sum
    awk -v fields="${*:2}" 'BEGIN { split(fields, names); for (i in names) wanted[names[i] ":"] }
        $1 in wanted { sum += $2 } END { print sum + 0 }' "$1"
}

"$forerun" synth --shape gemma4-1b --type q4_0 --vocab 512 "$folder/model.gguf"
"$forerun" pack -m "$folder/model.gguf" -o "$folder/packed.gguf"
size=$(($(stat -c %s "$folder/model.gguf") / 1024)) # all but 0.1% of it are tensors
limit=$((size * 110 / 100 + 64 * 1024))
for case in model.gguf "model.gguf --no-mmap" packed.gguf; do
    # shellcheck disable=SC2086  # a case is words
    load "$folder/"$case
    peak=$(kilobytes "/proc/${running[-1]}/status" VmHWM)
    [ "$peak" -ge $((size * 9 / 10)) ] || fail "$case: $peak kB at most, less than the weights: nothing was measured"
    kill "${running[-1]}"
    [ "$peak" -le $limit ] || fail "$case: $peak kB at most, more than $limit for a file of $size"
done

# Two more on the packed file, mapped: what each has for itself is no weights.
load "$folder/packed.gguf"
load "$folder/packed.gguf"
own=$(kilobytes "/proc/${running[-1]}/smaps_rollup" Private_Clean Private_Dirty)
[ "$own" -le $((64 * 1024)) ] || fail "a packed file of $size kB is mapped, and $own kB of it are not shared"
