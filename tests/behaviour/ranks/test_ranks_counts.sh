#!/usr/bin/env bash
# Runs models on numbers of ranks other than two and four, on ranks that differ in instruction set and size, with 8-bit
# caches, and with long prompts split by layers. The answers must be those of one process, bit for bit.
#
# In: the variables that tests/behaviour/ranks/jobs.sh lists; FULL: more numbers of ranks, and more models. Out: exit
# 0, or 1 after saying what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
trap 'rm -rf "$folder"' EXIT
. tests/behaviour/ranks/models.sh

alone few "${few[@]}"
turn=0
in_turn() { # WHAT COUNT FLAG...: runs every third model, in the next calls the others; with FULL all of them
    local i some=()
    for i in "${!few[@]}"; do
        [ -z "${FULL:-}" ] && [ $(((i + turn) % 3)) != 0 ] || some+=("${few[i]}")
    done
    turn=$((turn + 1))
    lines_of few "${some[@]}" > "$folder/some"
    same "$1" "$folder/some" "${@:2}" "${some[@]}"
}
in_turn "3 ranks" 3
in_turn "8 ranks" 8
in_turn "8 ranks by layers" 8 --layers
in_turn "3 ranks by layers" 3 --layers
in_turn "1 rank" 1
if [ -n "${FULL:-}" ]; then
    alone all "${models[@]}"
    for count in 3 8; do
        same "$count ranks, all models" "$folder/all" "$count" "${models[@]}"
        same "$count ranks by layers, all models" "$folder/all" "$count" --layers "${models[@]}"
    done
fi

# Scalar kernels would take minutes for the last model, and most of the test's time for all of the demo's models.
if [ -n "${FULL:-}" ]; then
    small=("${few[@]:0:${#few[@]}-1}")
else
    small=("${few[@]:1:2}" tests/data/models/llama,tests/data/llama/eagle3-odd
        tests/data/gguf/moe-odd.gguf,tests/data/gguf/moe-odd-assistant.gguf)
fi
lines_of few "${small[@]}" > "$folder/small"
same "ranks of two instruction sets that differ in size" "$folder/small" 2 --mixed --uneven "${small[@]}"
same "ranks of two instruction sets, by layers" "$folder/small" 3 --layers --mixed --uneven "${small[@]}"
[ -z "${FULL:-}" ] || same "ranks that differ in size" "$folder/few" 3 --uneven "${few[@]}"

alone eighths --cache q8_0 "${eighths[@]}"
! grep -qxFf "$folder/few" "$folder/eighths" || fail "8-bit caches answer like others: $(cat "$folder/eighths")"
for count in ${FULL:+2} 3; do
    same "$count ranks with 8-bit caches" "$folder/eighths" "$count" --cache q8_0 "${eighths[@]}"
done

same "ranks of a network that is said to be slow" <(head -n 1 "$folder/few") 2 --auto "${few[0]}"

# The prompt has more rows than one chunk can have. The logits of its last row are asked for, or those of all rows.
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
