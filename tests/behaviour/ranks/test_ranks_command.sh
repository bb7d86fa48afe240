#!/usr/bin/env bash
# Tests the command run by the ranks of a job: its text and drafts, the memory of each rank, and the statistics of
# messages.
#
# In: the variables that tests/behaviour/ranks/jobs.sh lists. Out: exit 0, or 1 after saying what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
trap 'rm -rf "$folder"' EXIT
demo=tools/demo/target
for type in q4_0 bf16; do
    "$build/forerun" quantize -m $demo --type $type -o "$folder/$type.gguf" 2>/dev/null || fail "no $type of the demo"
done

# ---------------------------------------------------------------------------------------------------------- the command

"$forerun" generate -m $demo -md tools/demo/assistant -p "Once upon" -n 40 > "$folder/one" 2>/dev/null
ranks 2 "$forerun" generate -m $demo -md tools/demo/assistant -p "Once upon" -n 40 -t 1 --stats \
    > "$folder/two" 2> "$folder/stats" || fail "generate: $(cat "$folder/stats")"
cmp -s "$folder/one" "$folder/two" || fail "generate says another text: $(cat "$folder/two")"
[ "$(grep -c '^ranks  *2 ' "$folder/stats")" = 1 ] || fail "generate's statistics: $(cat "$folder/stats")"

# Each rank follows the grammar by itself.
grammar=(--grammar 'root ::= "Once" [a-m ]+ "." [n-z ]+ "."' --temp 0.9 --seed 3)
"$forerun" generate -m $demo -md tools/demo/assistant -p "Upon" -n 40 "${grammar[@]}" > "$folder/one" 2>/dev/null
ranks 2 "$forerun" generate -m $demo -md tools/demo/assistant -p "Upon" -n 40 -t 1 "${grammar[@]}" > "$folder/two" \
    2> "$folder/errors" || fail "generate by a grammar: $(cat "$folder/errors")"
grep -q '^Once' "$folder/one" && cmp "$folder/one" "$folder/two" || fail "generate by a grammar: $(cat "$folder/two")"

# ----------------------------------------------------------------------------------------------------------- the memory

# Together, two ranks must hold each row of the weights only once, and the keys and values of each KV head only once.
big=$folder/big.gguf
"$forerun" synth --shape qwen2.5-1.5b --layers 6 --vocab 32000 --type q4_0 -o "$big" --quiet || fail "no large model"
for file in "$folder/q4_0.gguf" "$folder/bf16.gguf"; do # with --no-mmap two threads of each rank read the file
    "$forerun" logits -m "$file" --ids 1,5,9 -t 2 -o "$folder/one" 2>/dev/null
    ranks 2 "$forerun" logits -m "$file" --ids 1,5,9 -t 2 --no-mmap -o "$folder/two" 2>/dev/null
    cmp "$folder/one" "$folder/two" || fail "read files have other logits: $file"
done
resident() { # MODEL METHOD RUNNER...: prints how many MB of weights rank 0 holds
    "${@:3}" "$forerun" generate -m "$1" --spec-type "$2" --ids 1,2,3 -n 4 -t 1 -c 64 --stats 2>&1 >/dev/null |
        sed -n 's/^weights, MB resident \([0-9.]*\).*/\1/p'
}
by_layers() { # COUNT COMMAND...
    ranks "$@" --rank-split layers
}
one=$(resident "$big" none) two=$(resident "$big" none ranks 2) half=$(resident "$big" none by_layers 2)
awk "BEGIN { exit !($one > 150 && $two > 0 && $two <= 0.505 * $one && $half > 0 && $half <= 0.51 * $one) }" ||
    fail "memory: one process $one MB of weights, rank 0 of two $two MB, by layers $half MB"

pages() { # RUNNER...: prints the MB that rank 0 reserves for keys and values of 4096 positions
    "$@" "$forerun" generate -m "$big" --ids 1,2,3 -n 1 -t 1 -c 4096 --stats 2>&1 >/dev/null |
        sed -n 's/^memory, MB .*, KV \([0-9.]*\) +.*/\1/p'
}
one=$(pages env) two=$(pages ranks 2)
awk "BEGIN { exit !($one > 20 && $two > 0 && $two <= 0.51 * $one) }" ||
    fail "memory: one process has $one MB of keys and values, rank 0 of two $two MB"

# A draft model's weights are divided like its target's. But a rank that trims the drafter's head reads all of the
# head.
draft() { # HEAD RUNNER...: prints ids and counts of drafts; all output is in $folder/drafted
    "${@:2}" "$forerun" generate -m "$big" -md "$big" --spec-type draft --draft-max 3 --draft-head "$1" --ids 1,2,3 \
        -n 12 -t 1 -c 64 --stats --output json > "$folder/drafted" 2> "$folder/errors" ||
        fail "a draft model, head $1: $(cat "$folder/errors")"
    grep -oE '"(ids|accepted|drafted)": *[^a-z]*' "$folder/drafted"
    sed -n 's/^weights, MB resident \([0-9.]*\).*/\1/p' "$folder/errors" > "$folder/resident"
}
for head in "whole 0.51" "200 0.56"; do
    draft "${head% *}" env > "$folder/one"
    one=$(cat "$folder/resident")
    draft "${head% *}" ranks 2 > "$folder/two"
    two=$(cat "$folder/resident")
    [ "$(wc -l < "$folder/one")" -gt 6 ] && cmp "$folder/one" "$folder/two" || fail "a draft model drafts otherwise"
    awk "BEGIN { exit !($one > 300 && $two > 0 && $two <= ${head#* } * $one) }" ||
        fail "memory: one process with a draft model (head ${head% *}) has $one MB, rank 0 of two $two MB"
done

# This drafter scores with its target's head, so each rank needs all of the head. The missing half is 2.3 MB, more than
# the drafter's layer.
mtp=$folder/mtp.gguf
"$forerun" synth --shape qwen3.5-0.8b --layers 4 --vocab 8000 --type q4_0 -o "$mtp" --quiet || fail "no model with MTP"
one=$(awk "BEGIN { print $(resident "$mtp" mtp) - $(resident "$mtp" none) }")
two=$(awk "BEGIN { print $(resident "$mtp" mtp ranks 2) - $(resident "$mtp" none ranks 2) }")
awk "BEGIN { more = $two - $one; exit !($one > 10 && more > 2.1 && more < 2.5) }" ||
    fail "memory: an MTP layer takes $one MB, on rank 0 of two $two MB"
drafts() { # RUNNER...: prints the drafts
    "$@" "$forerun" generate -m "$mtp" --ids 1,2,3 -n 12 -t 2 --spec-type mtp --draft-max 3 --trace "$folder/trace" \
        > /dev/null && sed -n 's/.*"event":"draft".*\("position":.*\)/\1/p' "$folder/trace"
}
drafts > "$folder/one"
drafts ranks 2 > "$folder/two" || fail "an MTP layer on two ranks"
[ "$(wc -l < "$folder/one")" -gt 8 ] && diff "$folder/one" "$folder/two" ||
    fail "an MTP layer drafts otherwise on two ranks"

# Rank 1 has less room than rank 0 for the pages of four texts, so all ranks must use only as many pages as rank 1 has.
for i in 1 2 3 4; do echo "{\"prompt\": \"Once $i\"}"; done > "$folder/lines"
texts=(batch -m $demo -f "$folder/lines" -n 8 -np 4 -c 4096 -o)
"$forerun" "${texts[@]}" "$folder/one" || fail "a batch"
ranks 1 "$forerun" "${texts[@]}" "$folder/two" : -n 1 "$forerun" "${texts[@]}" "$folder/two" --memory 19000000 ||
    fail "ranks with room for different numbers of pages: $(cat "$folder/two")"
for one in one two; do grep -o '"ids":[^a-z]*' "$folder/$one" > "$folder/ids-$one"; done
[ "$(wc -l < "$folder/ids-one")" = 4 ] && cmp "$folder/ids-one" "$folder/ids-two" ||
    fail "ranks with room for different numbers of pages answer otherwise"

# A rank must lock only its own part of the weights in memory.
locked() { # PROCESS...: prints the least and the most locked memory in MB
    for process; do sed -n 's/^VmLck:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$process/status"; done | sort -n |
        awk 'NR == 1 { least = $1 } END { print least / 1000, $1 / 1000 }'
}
mpirun --oversubscribe --bind-to none -q -n 2 "$forerun" generate -m "$big" --ids 1,2,3 -n 4000 -c 4096 -t 1 --mlock \
    --ignore-eos > "$folder/out" 2> "$folder/errors" &
pid=$! tries=0
while [ ! -s "$folder/out" ] && [ $((tries++)) -lt 400 ]; do sleep 0.05; done
# shellcheck disable=SC2046  # words
read -r least most < <(locked $(pgrep -P "$pid"))
kill $pid
wait $pid
awk "BEGIN { exit !($least > 85 && $most < 115) }" ||
    fail "locked: from $least to $most MB; $(cat "$folder/errors")"

# ----------------------------------------------------------------------------------------------------- measurements

ranks 2 "$forerun" generate -m $demo -p a -n 2 -t 1 --rank-split layers --stats --quiet 2>&1 >/dev/null |
    grep -q '^ranks  *2 .* by layers rank 0 sent' || fail "statistics of ranks by layers"

grep -q '^a layer  *[0-9].* messages, .* MB, of [0-9]* layers$' "$folder/stats" ||
    fail "generate's statistics tell no layer's: $(cat "$folder/stats")"

# With --rank-delay 500, each gather of each rank must take 500 us or more.
ranks 2 "$forerun" bench ranks -o json -r 3 --max-spread 1000000 --rank-delay 500 > "$folder/gathers" 2>&1 ||
    fail "bench ranks: $(cat "$folder/gathers")"
[ "$(grep -o '"bytes":' "$folder/gathers" | wc -l)" = 15 ] || fail "bench ranks: $(cat "$folder/gathers")"
grep -o '"gather_us": *[0-9.e+]*' "$folder/gathers" |
    awk -F: '$2 < 500 { exit 1 } END { exit NR != 15 }' || fail "messages that are not late: $(cat "$folder/gathers")"

# Ranks on several machines, which are told apart by the hosts' names, must split the model by layers if their messages
# are slow.
if unshare --uts true 2> "$folder/errors"; then
    # shellcheck disable=SC2016  # of the inner shell
    ranks 2 unshare --uts sh -c 'hostname "host-$OMPI_COMM_WORLD_RANK"; exec "$@"' sh "$forerun" bench model -m $demo \
        -o csv -p 0 -n 0 -d 0 -t 1 -r 2 --rows 1 --max-spread 1000000 --rank-delay 5000 > "$folder/model" 2>&1
    awk -F, '/"rows","layers"/ { told = 1; next } told && !/elsewhere/ { layers += $(NF - 3) * ($(NF - 2) > 0) }
        END { exit layers != 1 }' "$folder/model" || fail "ranks of a slow network: $(cat "$folder/model")"

    # By default mpirun binds each rank to one core. The command must undo this binding, but keep one that the user
    # asked for.
    for bound in "slot $(nproc)" "slot:PE=1 1"; do
        # shellcheck disable=SC2016  # of the inner shell
        timeout 300 mpirun --oversubscribe --map-by "${bound% *}" -q -n 2 unshare --uts sh -c \
            'hostname "host-$OMPI_COMM_WORLD_RANK"; exec "$@"' sh \
            "$forerun" bench model -m $demo -p 0 -n 0 -d 0 -r 2 --rows 1 > "$folder/model" 2>&1
        grep -q "sends in a forward, ${bound#* } threads\?," "$folder/model" ||
            fail "threads of a machine's only rank, by ${bound% *}: $(cat "$folder/model")"
    done
fi

# Ranks that may use the same cores must divide them among themselves.
threads=$(($(nproc) > 1 ? $(nproc) / 2 : 1))
ranks 2 "$forerun" bench model -m $demo -p 0 -n 0 -d 0 -r 2 --rows 1 > "$folder/model" 2>&1
grep -q "sends in a forward, $threads threads" "$folder/model" || fail "cores of ranks: $(cat "$folder/model")"

# Split by layers, a forward pass of 2 rows must send as many messages as one of 1 row, with twice as many bytes.
ranks 2 "$forerun" bench model -m $demo -o csv -p 0 -n 0 -d 0 -t 1 -r 2 --rows 1,2 --max-spread 1000000 \
    > "$folder/model" 2>&1 || fail "bench model: $(cat "$folder/model")"
awk -F, '/"rows","layers"/ { told = 1; next } !told || /elsewhere/ { next }
    { rows = $(NF - 5); lines[rows]++; messages[rows] += $(NF - 3) * $(NF - 2); bytes[rows] += $(NF - 3) * $(NF - 1) }
    END { exit !(lines[1] > 1 && lines[2] == lines[1] && messages[2] == messages[1] && bytes[2] == 2 * bytes[1]) }' \
    "$folder/model" || fail "what ranks send in a forward: $(cat "$folder/model")"
