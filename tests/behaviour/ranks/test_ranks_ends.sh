#!/usr/bin/env bash
# Tests jobs of which a rank fails. Whatever ends or stops one rank, all ranks must end, and one line must say why.
#
# In: the variables that tests/behaviour/ranks/jobs.sh lists. Out: exit 0, or 1 after saying what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
trap 'rm -rf "$folder"' EXIT
demo=tools/demo/target
text=(generate -no-cnv -m $demo) # without the model's chat template
for type in q4_0 q8_0; do
    "$build/forerun" quantize -m $demo --type $type -o "$folder/$type.gguf" 2>/dev/null || fail "no $type of the demo"
done

ended() { # ended has the arguments of ends, and runs the command in the foreground
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
ends() { # WHAT LINE STATUS COMMAND...: the command must end with STATUS and only LINE; four run at a time
    ended "$@" &
    under_way+=($!)
    [ ${#under_way[@]} -lt 4 ] || await_ends
}

ends "a wrong option" "--nothing" 2 "${job[@]}" -n 2 "$forerun" verify --nothing
ends "shares of three" "there are shares for 3 ranks, but the job has 2 ranks" 2 \
    "${job[@]}" -n 2 "$forerun" verify --rank-shares 1,2,3 -m $demo
ends "a share of none" "a rank's share is 0" 2 "${job[@]}" -n 2 "$forerun" verify --rank-shares 1,0 -m $demo
ends "shares of nobody" "rank-shares rubbish: whole numbers" 2 "$build/forerun" verify --rank-shares rubbish -m $demo
ends "shares of others" "there are shares for 2 ranks, but the job has 1 rank" 2 \
    "$build/forerun" verify --rank-shares 3,1 -m $demo
ends "a verb without ranks" "tokenize does not run as several ranks" 2 \
    "${job[@]}" -n 2 "$forerun" tokenize -m $demo -p x
ends "a server of several models" "--models is not for several ranks" 2 \
    "${job[@]}" -n 2 "$forerun" serve --models $demo,tools/demo/assistant
ends "no model" "no-such-model" 1 "${job[@]}" -n 2 "$forerun" verify -m no-such-model
ends "a model of rank 1 alone" "rank 1 (.*): its model is not rank 0's" 1 \
    "${job[@]}" -n 1 "$forerun" verify --quiet -m $demo : -n 1 "$forerun" verify -m "$folder/q8_0.gguf"
ends "rank 1 has no model" "rank 1 (.*): .*no-such-model" 1 \
    "${job[@]}" -n 1 "$forerun" verify --quiet -m $demo : -n 1 "$forerun" verify -m no-such-model
ends "other options at rank 1" "rank 1 (.*): its next forward is not rank 0's" 1 \
    "${job[@]}" -n 1 "$forerun" "${text[@]}" -p one -n 9 : -n 1 "$forerun" "${text[@]}" -p two -n 9
ends "a trace of rank 0 alone" "rank 1 (.*): its next forward is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" "${text[@]}" -p one -n 9 --trace "$folder/trace" : \
    -n 1 "$forerun" "${text[@]}" -p one -n 9
ends "other keys at rank 1" \
    "rank 1 (.*): its set of options, or the memory that it may use, is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" "${text[@]}" -p one -n 9 : -n 1 "$forerun" "${text[@]}" -p one -n 9 -ctk f16
cp "$folder/q4_0.gguf" "$folder/other.gguf" # same size and tensors; a tensor's last 64 bytes differ
truncate -s -64 "$folder/other.gguf"
truncate -s +64 "$folder/other.gguf"
ends "another file of the same shape" "rank 1 (.*): its model is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" verify --quiet -m "$folder/q4_0.gguf" : -n 1 "$forerun" verify --quiet -m "$folder/other.gguf"
ends "another draft model at rank 1" "rank 1 (.*): its draft model is not rank 0's" 1 "${job[@]}" \
    -n 1 "$forerun" generate --quiet -m $demo -md "$folder/q4_0.gguf" -p one -n 9 : \
    -n 1 "$forerun" generate --quiet -m $demo -md "$folder/other.gguf" -p one -n 9
ends "no draft model at rank 1" "rank 1 (.*): .*no-such-model" 1 "${job[@]}" \
    -n 1 "$forerun" generate --quiet -m $demo -md "$folder/q4_0.gguf" -p one -n 9 : \
    -n 1 "$forerun" generate --quiet -m $demo -md no-such-model -p one -n 9
ends "a build for one process" "make RANKS=mpi" 2 env OMPI_COMM_WORLD_SIZE=2 "$build/forerun" verify -m $demo
await_ends

# While the ranks write a long text, one of them is stopped, killed or told to end. LINE is what must be printed then;
# an empty one stands for nothing.
disturb() { # SIGNAL RANK EXIT-STATUS LINE ARGUMENT...
    rm -f "$folder/out" # written by the run before
    "${job[@]}" -n 3 "$forerun" "${text[@]}" -p "Once upon" -n 4000 -c 4096 --ignore-eos --rank-timeout 2 -t 1 \
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
disturb STOP 0 1 "forerun: rank 0 $host ($silent|has gone)" # the stopped rank continues when the job is ended
disturb KILL 2 "1|137" "forerun: rank 2 $host has gone"
disturb KILL 0 "1|137" "forerun: rank 0 $host has gone"
disturb KILL 1 "1|137" "forerun: rank 1 $host has gone" --rank-split layers
disturb STOP 2 1 "forerun: rank 2 $host $silent" --rank-split layers
disturb KILL 1 "1|137" "forerun: rank 1 $host has gone" -md "$folder/q8_0.gguf" --draft-max 4
disturb STOP 2 1 "forerun: rank 2 $host $silent" -md "$folder/q8_0.gguf" --draft-max 4
disturb TERM 1 143 ""
disturb TERM all 1 "" # mpirun's own exit status for the signal
