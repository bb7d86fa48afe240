#!/usr/bin/env bash
# Runs models on two and on four ranks of an MPI job, split by rows and split by layers. The answers must be those of
# one process, bit for bit.
#
# In: the variables that tests/behaviour/ranks/jobs.sh lists; FULL: four ranks by layers for each model. Out: exit 0,
# or 1 after saying what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
trap 'rm -rf "$folder"' EXIT
. tests/behaviour/ranks/models.sh

alone all "${models[@]}"
[ "$(wc -l < "$folder/all")" = ${#models[@]} ] || fail "answers of $(wc -l < "$folder/all") models of ${#models[@]}"
same "2 ranks" "$folder/all" 2 "${models[@]}"

# Without FULL, every second model runs on four ranks by rows, and the others on two ranks by layers. The models have 2
# to 7 layers.
some=() others=()
for i in "${!models[@]}"; do
    [ -z "${FULL:-}" ] && [ $((i % 2)) = 1 ] || some+=("${models[i]}")
    [ -z "${FULL:-}" ] && [ $((i % 2)) = 0 ] || others+=("${models[i]}")
done
lines_of all "${some[@]}" > "$folder/some"
lines_of all "${others[@]}" > "$folder/others"
same "4 ranks" "$folder/some" 4 "${some[@]}"
same "2 ranks by layers" "$folder/others" 2 --layers "${others[@]}"
if [ -n "${FULL:-}" ]; then
    same "4 ranks by layers" "$folder/all" 4 --layers "${models[@]}"
else
    alone few "${few[@]}"
    same "4 ranks by layers, a few" "$folder/few" 4 --layers "${few[@]}"
fi
