#!/usr/bin/env bash
# Models run together by two and by four ranks of an MPI job, split by rows and by layers: their answers are those of
# one process, bit for bit.
#
# In: what tests/behaviour/ranks/jobs.sh says; FULL: four ranks by layers for each model. Out: exit 0, or 1 after saying
# what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
trap 'rm -rf "$folder"' EXIT
. tests/behaviour/ranks/models.sh

alone all "${models[@]}"
[ "$(wc -l < "$folder/all")" = ${#models[@]} ] || fail "answers of $(wc -l < "$folder/all") models of ${#models[@]}"
for count in 2 4; do same "$count ranks" "$folder/all" "$count" "${models[@]}"; done

# By layers, of which models have 2 to 7.
same "2 ranks by layers" "$folder/all" 2 --layers "${models[@]}"
if [ -n "${FULL:-}" ]; then
    same "4 ranks by layers" "$folder/all" 4 --layers "${models[@]}"
else
    alone few "${few[@]}"
    same "4 ranks by layers, a few" "$folder/few" 4 --layers "${few[@]}"
fi
