#!/usr/bin/env bash
# Models run together by the ranks of an MPI job: their answers are those of one process, bit for bit; and one line
# tells how a job has failed, which then has ended.
#
# In: BUILD, with tests/ranks/answers and forerun-mpi (make ranks-programs), and mpirun, without which there is nothing
# to look at; RANKS_FULL: more numbers of ranks. Out: exit 0, or 1 after saying what is wrong.
set -uo pipefail

. tests/ranks/jobs.sh
answers=$build/tests/ranks/answers
trap 'rm -rf "$folder"' EXIT

# ---------------------------------------------------------------------------------------------------------- the answers

demo=tools/demo/target
models=(tests/data/models/* tests/data/llama/q4_0.gguf tests/data/gguf/e-q4_0.gguf tests/data/gpt-oss/mx
    tests/data/deepseek-v3/model-{apart,whole}-q8_0.gguf tests/data/qwen35/tied.gguf)
few=(tests/data/models/{llama,gemma4-e-odd,deepseek-v3-fp8,qwen3-next-odd,glm4-moe-odd,lfm2-old})
for type in q4_0 q4_k q8_0 bf16; do
    "$build/forerun" quantize -m $demo --type $type -o "$folder/$type.gguf" 2>/dev/null || fail "no $type of the demo"
    models+=("$folder/$type.gguf")
done
few+=(tests/data/models/{qwen35-odd,glm4-moe-odd}, tests/data/gguf/moe-odd.gguf,tests/data/gguf/moe-odd-assistant.gguf
    "$folder/q4_k.gguf" $demo,tools/demo/assistant "$folder/q4_0.gguf,tools/demo/assistant")
models+=("${few[@]: -2}")
# Two KV heads, which ranks keep one each of, and a drafter that reads both of two layers.
for shape in gemma4-1b gemma4-1b-assistant; do
    layers=(--layers 2)
    [ $shape = gemma4-1b ] || layers=()
    "$build/forerun" synth --shape $shape "${layers[@]}" --vocab 384 --type q4_0 --quiet "$folder/$shape.gguf" ||
        fail "no $shape"
done
few+=("$folder/gemma4-1b.gguf,$folder/gemma4-1b-assistant.gguf")
eighths=("$folder/q4_0.gguf,tools/demo/assistant" "${few[-1]}")

same() { # WHAT EXPECTED COUNT ANSWERS-ARGUMENT...
    local what=$1 expected=$2
    shift 2
    ranks "$1" "$answers" "${@:2}" > "$folder/got" 2> "$folder/errors" ||
        fail "$what: $(cat "$folder/errors")"
    diff "$expected" "$folder/got" > "$folder/different" || fail "$what: $(cat "$folder/different")"
}

"$answers" --alone "${models[@]}" > "$folder/all" || fail "one process has no answers"
"$answers" --alone "${few[@]}" > "$folder/few" || fail "one process has no answers to a few"
[ "$(wc -l < "$folder/all")" = ${#models[@]} ] || fail "answers of $(wc -l < "$folder/all") models of ${#models[@]}"
for count in 2 4 ${RANKS_FULL:+3 8}; do same "$count ranks" "$folder/all" "$count" "${models[@]}"; done
for count in 1 3 8; do same "$count ranks, a few" "$folder/few" "$count" "${few[@]}"; done
small=("${few[@]:0:${#few[@]}-1}") # the last takes scalar kernels minutes
head -n "${#small[@]}" "$folder/few" > "$folder/small"
same "ranks of two instruction sets that differ in size" "$folder/small" 2 --mixed --uneven "${small[@]}"
[ -z "${RANKS_FULL:-}" ] || same "ranks that differ in size" "$folder/few" 3 --uneven "${few[@]}"
"$answers" --alone --cache q8_0 "${eighths[@]}" > "$folder/eighths" || fail "one process has no answers of 8-bit caches"
! grep -qxFf "$folder/few" "$folder/eighths" || fail "8-bit caches answer like others: $(cat "$folder/eighths")"
for count in 2 3; do same "$count ranks with 8-bit caches" "$folder/eighths" "$count" --cache q8_0 "${eighths[@]}"; done

# By layers, of which models have 2 to 7.
for count in 3 ${RANKS_FULL:+2 4 8}; do
    same "$count ranks by layers" "$folder/all" "$count" --layers "${models[@]}"
done
for count in ${RANKS_FULL:+2 4} 8; do
    same "$count ranks by layers, a few" "$folder/few" "$count" --layers "${few[@]}"
done
same "ranks of two instruction sets, by layers" "$folder/small" 3 --layers --mixed --uneven "${small[@]}"
same "ranks of a network that is said to be slow" <(head -n 1 "$folder/few") 2 --auto "${few[0]}"

ranks 2 "$forerun" generate -m $demo -p a -n 2 -t 1 --rank-split layers --stats --quiet 2>&1 >/dev/null |
    grep -q '^ranks  *2 .* by layers rank 0 sent' || fail "statistics of ranks by layers"

# A prompt of more rows than a piece of them has; of which the last row's logits alone are wanted, or all.
long=$(seq -s , 1 230)
for model in $demo tests/data/models/{gemma4-e-odd,llama}; do
    for verb in "generate -n 9 --ignore-eos --output ids" "logits -o /dev/stdout"; do
        # shellcheck disable=SC2086  # words
        set -- $verb -m $model --ids "$long" --quiet
        "$forerun" "$@" > "$folder/one" 2> "$folder/errors" || fail "$model: $(cat "$folder/errors")"
        ranks 3 "$forerun" "$@" -t 2 --rank-split layers > "$folder/two" 2> "$folder/errors" &&
            cmp -s "$folder/one" "$folder/two" || fail "a long prompt by layers, $*: $(cat "$folder/errors")"
    done
done

# ---------------------------------------------------------------------------------------------------------- the command

"$forerun" generate -m $demo -md tools/demo/assistant -p "Once upon" -n 40 > "$folder/one" 2>/dev/null
ranks 2 "$forerun" generate -m $demo -md tools/demo/assistant -p "Once upon" -n 40 -t 1 --stats \
    > "$folder/two" 2> "$folder/stats" || fail "generate: $(cat "$folder/stats")"
cmp -s "$folder/one" "$folder/two" || fail "generate says another text: $(cat "$folder/two")"
[ "$(grep -c '^ranks  *2 ' "$folder/stats")" = 1 ] || fail "generate's statistics: $(cat "$folder/stats")"

# Each rank has a grammar of its own.
grammar=(--grammar 'root ::= "Once" [a-m ]+ "." [n-z ]+ "."' --temp 0.9 --seed 3)
"$forerun" generate -m $demo -md tools/demo/assistant -p "Upon" -n 40 "${grammar[@]}" > "$folder/one" 2>/dev/null
ranks 2 "$forerun" generate -m $demo -md tools/demo/assistant -p "Upon" -n 40 -t 1 "${grammar[@]}" > "$folder/two" \
    2> "$folder/errors" || fail "generate by a grammar: $(cat "$folder/errors")"
grep -q '^Once' "$folder/one" && cmp "$folder/one" "$folder/two" || fail "generate by a grammar: $(cat "$folder/two")"

# ----------------------------------------------------------------------------------------------------------- the memory

# Two ranks have each row of the weights once, and each KV head's keys and values.
big=$folder/big.gguf
"$forerun" synth --shape qwen2.5-1.5b --layers 6 --vocab 32000 --type q4_0 -o "$big" --quiet || fail "no large model"
for file in "$folder/q4_0.gguf" "$folder/bf16.gguf"; do # which are read, not mapped, by two threads of each
    "$forerun" logits -m "$file" --ids 1,5,9 -t 2 -o "$folder/one" 2>/dev/null
    ranks 2 "$forerun" logits -m "$file" --ids 1,5,9 -t 2 --no-mmap -o "$folder/two" 2>/dev/null
    cmp "$folder/one" "$folder/two" || fail "read files have other logits: $file"
done
resident() { # MODEL METHOD RUNNER...: what rank 0 has of the weights, MB
    "${@:3}" "$forerun" generate -m "$1" --spec-type "$2" --ids 1,2,3 -n 4 -t 1 -c 64 --stats 2>&1 >/dev/null |
        sed -n 's/^weights, MB resident \([0-9.]*\).*/\1/p'
}
by_layers() { # COUNT COMMAND...
    ranks "$@" --rank-split layers
}
one=$(resident "$big" none) two=$(resident "$big" none ranks 2) half=$(resident "$big" none by_layers 2)
awk "BEGIN { exit !($one > 150 && $two > 0 && $two <= 0.505 * $one && $half > 0 && $half <= 0.51 * $one) }" ||
    fail "memory: one process $one MB of weights, rank 0 of two $two MB, by layers $half MB"

pages() { # RUNNER...: room that rank 0 has for keys and values of 4096 positions, MB
    "$@" "$forerun" generate -m "$big" --ids 1,2,3 -n 1 -t 1 -c 4096 --stats 2>&1 >/dev/null |
        sed -n 's/^memory, MB .*, KV \([0-9.]*\) +.*/\1/p'
}
one=$(pages env) two=$(pages ranks 2)
awk "BEGIN { exit !($one > 20 && $two > 0 && $two <= 0.51 * $one) }" ||
    fail "memory: one process has $one MB of keys and values, rank 0 of two $two MB"

# A drafter that scores with its target's head has that whole on each rank: half of 4.6 MB more than its layer.
mtp=$folder/mtp.gguf
"$forerun" synth --shape qwen3.5-0.8b --layers 4 --vocab 8000 --type q4_0 -o "$mtp" --quiet || fail "no model with MTP"
one=$(awk "BEGIN { print $(resident "$mtp" mtp) - $(resident "$mtp" none) }")
two=$(awk "BEGIN { print $(resident "$mtp" mtp ranks 2) - $(resident "$mtp" none ranks 2) }")
awk "BEGIN { more = $two - $one; exit !($one > 10 && more > 2.1 && more < 2.5) }" ||
    fail "memory: an MTP layer takes $one MB, on rank 0 of two $two MB"
drafts() { # RUNNER...: what is drafted
    "$@" "$forerun" generate -m "$mtp" --ids 1,2,3 -n 12 -t 2 --spec-type mtp --draft-max 3 --trace "$folder/trace" \
        > /dev/null && sed -n 's/.*"event":"draft".*\("position":.*\)/\1/p' "$folder/trace"
}
drafts > "$folder/one"
drafts ranks 2 > "$folder/two" || fail "an MTP layer on two ranks"
[ "$(wc -l < "$folder/one")" -gt 8 ] && diff "$folder/one" "$folder/two" ||
    fail "an MTP layer drafts otherwise on two ranks"

# Rank 1 has room for fewer pages of four texts than rank 0: all have as many as it.
for i in 1 2 3 4; do echo "{\"prompt\": \"Once $i\"}"; done > "$folder/lines"
texts=(batch -m $demo -f "$folder/lines" -n 8 -np 4 -c 4096 -o)
"$forerun" "${texts[@]}" "$folder/one" || fail "a batch"
ranks 1 "$forerun" "${texts[@]}" "$folder/two" : -n 1 "$forerun" "${texts[@]}" "$folder/two" --memory 19000000 ||
    fail "ranks with room for different numbers of pages: $(cat "$folder/two")"
for one in one two; do grep -o '"ids":[^a-z]*' "$folder/$one" > "$folder/ids-$one"; done
[ "$(wc -l < "$folder/ids-one")" = 4 ] && cmp "$folder/ids-one" "$folder/ids-two" ||
    fail "ranks with room for different numbers of pages answer otherwise"

# What is locked in memory is a rank's own part of the weights.
locked() { # PROCESS...: the least and the most of them, MB
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

# ------------------------------------------------------------------------------------------------- what is measured

grep -q '^a layer  *[0-9].* messages, .* MB, of [0-9]* layers$' "$folder/stats" ||
    fail "generate's statistics tell no layer's: $(cat "$folder/stats")"

# Each gather of each rank is late by 500 us or more.
ranks 2 "$forerun" bench ranks -o json -r 3 --max-spread 1000000 --rank-delay 500 > "$folder/gathers" 2>&1 ||
    fail "bench ranks: $(cat "$folder/gathers")"
[ "$(grep -o '"bytes":' "$folder/gathers" | wc -l)" = 15 ] || fail "bench ranks: $(cat "$folder/gathers")"
grep -o '"gather_us": *[0-9.e+]*' "$folder/gathers" |
    awk -F: '$2 < 500 { exit 1 } END { exit NR != 15 }' || fail "messages that are not late: $(cat "$folder/gathers")"

# Of several machines, which they are by their names, those whose messages are late deal layers.
if unshare --uts true 2> "$folder/errors"; then
    # shellcheck disable=SC2016  # of the inner shell
    ranks 2 unshare --uts sh -c 'hostname "host-$OMPI_COMM_WORLD_RANK"; exec "$@"' sh "$forerun" bench model -m $demo \
        -o csv -p 0 -n 0 -d 0 -t 1 -r 2 --rows 1 --max-spread 1000000 --rank-delay 5000 > "$folder/model" 2>&1
    awk -F, '/"rows","layers"/ { told = 1; next } told && !/elsewhere/ { layers += $(NF - 3) * ($(NF - 2) > 0) }
        END { exit layers != 1 }' "$folder/model" || fail "ranks of a slow network: $(cat "$folder/model")"
fi

# Ranks that may use the same cores part them.
threads=$(($(nproc) > 1 ? $(nproc) / 2 : 1))
ranks 2 "$forerun" bench model -m $demo -p 0 -n 0 -d 0 -r 2 --rows 1 > "$folder/model" 2>&1
grep -q "sends in a forward, $threads threads" "$folder/model" || fail "cores of ranks: $(cat "$folder/model")"

# What layers send in a forward of 2 rows is twice that of one, in as many messages.
ranks 2 "$forerun" bench model -m $demo -o csv -p 0 -n 0 -d 0 -t 1 -r 2 --rows 1,2 --max-spread 1000000 \
    > "$folder/model" 2>&1 || fail "bench model: $(cat "$folder/model")"
awk -F, '/"rows","layers"/ { told = 1; next } !told || /elsewhere/ { next }
    { rows = $(NF - 5); lines[rows]++; messages[rows] += $(NF - 3) * $(NF - 2); bytes[rows] += $(NF - 3) * $(NF - 1) }
    END { exit !(lines[1] > 1 && lines[2] == lines[1] && messages[2] == messages[1] && bytes[2] == 2 * bytes[1]) }' \
    "$folder/model" || fail "what ranks send in a forward: $(cat "$folder/model")"

ended() { # as ends
    local what=$1 line=$2 status=$3 code=0 errors=$folder/errors-$BASHPID
    shift 3
    timeout 60 "$@" > /dev/null 2> "$errors" || code=$?
    [ $code = "$status" ] || fail "$what: exit $code: $(cat "$errors")"
    [ "$(grep -c '^forerun: ' "$errors")" = 1 ] || fail "$what: not one line: $(cat "$errors")"
    grep -q "^forerun: .*$line" "$errors" || fail "$what: $(cat "$errors")"
}
under_way=()
await_ends() {
    local one
    for one in "${under_way[@]}"; do wait "$one" || exit 1; done
    under_way=()
}
ends() { # WHAT LINE STATUS COMMAND...: what mpirun runs ends with that status, and that line alone; four wait at a time
    ended "$@" &
    under_way+=($!)
    [ ${#under_way[@]} -lt 4 ] || await_ends
}

ends "a wrong option" "--nothing" 2 "${job[@]}" -n 2 "$forerun" verify --nothing
ends "shares of three" "shares for 3 ranks: there are 2" 2 \
    "${job[@]}" -n 2 "$forerun" verify --rank-shares 1,2,3 -m $demo
ends "a share of none" "a rank's share of 0" 2 "${job[@]}" -n 2 "$forerun" verify --rank-shares 1,0 -m $demo
ends "shares of nobody" "rank-shares rubbish: whole numbers" 2 "$build/forerun" verify --rank-shares rubbish -m $demo
ends "shares of others" "shares for 2 ranks: there is 1" 2 "$build/forerun" verify --rank-shares 3,1 -m $demo
ends "a verb without ranks" "tokenize does not run as several ranks" 2 \
    "${job[@]}" -n 2 "$forerun" tokenize -m $demo -p x
ends "a server of several models" "--models is not for several ranks" 2 \
    "${job[@]}" -n 2 "$forerun" serve --models $demo,tools/demo/assistant
ends "no model" "no-such-model" 1 "${job[@]}" -n 2 "$forerun" verify -m no-such-model
ends "a model of rank 1 alone" "rank 1 (.*): its model is not rank 0's" 1 \
    "${job[@]}" -n 1 "$forerun" verify --quiet -m $demo : -n 1 "$forerun" verify -m "$folder/q8_0.gguf"
ends "rank 1 has no model" "rank 1 (.*): .*no-such-model" 1 \
    "${job[@]}" -n 1 "$forerun" verify --quiet -m $demo : -n 1 "$forerun" verify -m no-such-model
ends "other options at rank 1" "rank 1 (.*): what is run next is not rank 0's" 1 \
    "${job[@]}" -n 1 "$forerun" generate -m $demo -p one -n 9 : -n 1 "$forerun" generate -m $demo -p two -n 9
ends "a trace of rank 0 alone" "rank 1 (.*): what is run next is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" generate -m $demo -p one -n 9 --trace "$folder/trace" : \
    -n 1 "$forerun" generate -m $demo -p one -n 9
ends "other keys at rank 1" "rank 1 (.*): what it is told to do, or has room for, is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" generate -m $demo -p one -n 9 : -n 1 "$forerun" generate -m $demo -p one -n 9 -ctk f16
cp "$folder/q4_0.gguf" "$folder/other.gguf" # as large, of the same tensors; its last 64 bytes are of one of them
truncate -s -64 "$folder/other.gguf"
truncate -s +64 "$folder/other.gguf"
ends "another file of the same shape" "rank 1 (.*): its model is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" verify --quiet -m "$folder/q4_0.gguf" : -n 1 "$forerun" verify --quiet -m "$folder/other.gguf"
ends "a build for one process" "make RANKS=mpi" 2 env OMPI_COMM_WORLD_SIZE=2 "$build/forerun" verify -m $demo
await_ends

# A rank that stops, is killed or is told to end while a long text is written: what is said of it, if anything.
disturb() { # SIGNAL RANK EXIT-STATUS LINE ARGUMENT...
    rm -f "$folder/out" # what the run before has written
    "${job[@]}" -n 3 "$forerun" generate -m $demo -p "Once upon" -n 4000 -c 4096 --ignore-eos --rank-timeout 2 -t 1 \
        "${@:5}" > "$folder/out" 2> "$folder/errors" &
    local pid=$! rank='' tries=0 what="rank $2 gets $1"
    while [ ! -s "$folder/out" ] && [ $((tries++)) -lt 200 ]; do sleep 0.05; done
    local all
    all=$(pgrep -P "$pid")
    if [ "$2" = all ]; then rank=$pid; else rank=$(rank_of "$pid" "$2"); fi
    [ -n "$rank" ] || fail "$what: no such rank: $(cat "$folder/errors")"
    kill -s "$1" "$rank"
    timeout 20 tail --pid=$pid -f /dev/null || fail "$what: the job goes on"
    wait $pid
    local code=$?
    [[ $code =~ ^($3)$ ]] || fail "$what: exit $code: $(cat "$folder/errors")"
    for rank in $all; do
        tries=0
        while grep -qs '^State:.[^ZX]' "/proc/$rank/status"; do
            [ $((tries++)) -lt 100 ] || fail "$what: $rank is still there"
            sleep 0.1
        done
    done
    [[ $(grep '^forerun: ' "$folder/errors") =~ ^$4$ ]] || fail "$what: $(cat "$folder/errors")"
}

silent="is silent for 2 s"
disturb STOP 1 1 "forerun: rank 1 $host $silent"
disturb STOP 0 1 "forerun: rank 0 $host ($silent|has gone)" # it goes on when the job is ended
disturb KILL 2 "1|137" "forerun: rank 2 $host has gone"
disturb KILL 0 "1|137" "forerun: rank 0 $host has gone"
disturb KILL 1 "1|137" "forerun: rank 1 $host has gone" --rank-split layers
disturb STOP 2 1 "forerun: rank 2 $host $silent" --rank-split layers
disturb TERM 1 143 ""
disturb TERM all 1 "" # what mpirun makes of it
