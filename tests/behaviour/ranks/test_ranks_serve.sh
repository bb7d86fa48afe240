#!/usr/bin/env bash
# Tests a server of several ranks: rank 0 speaks HTTP and leads the others. The answers must be those of one process.
# If a rank fails, clients must get an error. The server must end as one process does.
#
# In: the variables that tests/behaviour/ranks/jobs.sh lists; FULL: more numbers of ranks. Out: exit 0, or 1 after
# saying what is wrong.
# suite: alone
set -uo pipefail

. tests/behaviour/ranks/jobs.sh
server=""
trap '[ -z "$server" ] || kill -KILL "$server"; rm -rf "$folder"' EXIT
demo=tools/demo/target
both=(-m $demo -md tools/demo/assistant)

# --------------------------------------------------------------------------------------------------- rank 0's messages

led=$build/tests/behaviour/ranks/led
led_models=($demo $demo,tools/demo/assistant $demo,$demo tests/data/models/qwen35-odd)
"$led" --alone "${led_models[@]}" > "$folder/led" || fail "one process that leads nobody has no answers"
[ "$(wc -l < "$folder/led")" = ${#led_models[@]} ] && ! grep -qv ' 3 aborted$' "$folder/led" ||
    fail "one process answers otherwise: $(cat "$folder/led")"
for count in 2 3 ${FULL:+4 8}; do
    ranks "$count" "$led" "${led_models[@]}" > "$folder/led-$count" 2> "$folder/errors" ||
        fail "$count ranks that are led: $(cat "$folder/errors")"
    diff "$folder/led" "$folder/led-$count" || fail "$count ranks that are led answer otherwise"
done

# ---------------------------------------------------------------------------------------------------------- the server

serve() { # NAME RUNNER... -- ARGUMENT...: starts a server; sets $pid, and $port when it answers
    local runner=() name=$1
    while shift && [ "$1" != -- ]; do runner+=("$1"); done
    "${runner[@]}" "$forerun" serve "${@:2}" --port 0 --quiet -t 1 2> "$folder/$name" &
    pid=$! server=$! port='' tries=0
    while [ -z "$port" ] || ! ask /health | grep -q '"ok"'; do
        [ $((tries++)) -lt 300 ] || fail "$name: no server: $(cat "$folder/$name")"
        sleep 0.1
        port=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$folder/$name")
    done
}
ask() { # PATH [BODY]: prints the answer with its headers
    local method=GET body=${2:-}
    [ $# = 1 ] || method=POST
    exec 3<> "/dev/tcp/127.0.0.1/$port" || return
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
        $method "$1" ${#body} "$body" >&3
    cat <&3
    exec 3<&-
}
gone() { # WHAT STATUSES: checks that the server has ended with one of these exit statuses
    local code=0
    timeout 20 tail --pid=$pid -f /dev/null || fail "$1: the job goes on"
    server=''
    wait $pid || code=$?
    [[ $code =~ ^($2)$ ]] || fail "$1: exit $code: $(cat "$folder/$3")"
}

# ----------------------------------------------------------------------------------------------- the server's answers

# Prints an answer without the members that depend on the process or on its speed.
told() {
    tr -d '\r' | sed -nE '1p; $p' | sed -E 's/"(id|created|id_slot|id_task|tokens_cached)": ?("[^"]*"|[0-9-]+)//g;
        s/"(timings|usage)": ?\{[^}]*\}//g'
    echo
}
answers() { # NAME: sends each "PATH BODY" of $asks, first one after the other, then all at once
    local i one under_way=()
    : > "$folder/$1-answers"
    for i in "${!asks[@]}"; do ask "${asks[i]%% *}" "${asks[i]#* }" | told >> "$folder/$1-answers"; done
    for i in "${!asks[@]}"; do
        ask "${asks[i]%% *}" "${asks[i]#* }" > "$folder/$1-at-once-$i" &
        under_way+=($!)
    done
    wait "${under_way[@]}"
    for i in "${!asks[@]}"; do told < "$folder/$1-at-once-$i" >> "$folder/$1-answers"; done
}
same() { # WHAT RANKS ARGUMENT...: checks that this many ranks give the answers of one process
    local what=$1 count=$2
    shift 2
    serve one env -- "$@"
    answers one
    kill $pid
    gone "$what: a server of one" 0 one
    serve all "${job[@]}" -n "$count" -- "$@"
    answers all
    kill "$(rank_of $pid 0)"
    gone "$what: a server of $count ranks, told to end" 0 all
    [ "$(grep -c 'forerun: ' "$folder/all")" = 1 ] || fail "$what: a server that is ended: $(cat "$folder/all")"
    ! grep -A 3 -v '^HTTP/1.1 200 OK$\|^{\|^\[\|^$' "$folder/one-answers" || fail "$what: no answers of one process"
    diff "$folder/one-answers" "$folder/all-answers" ||
        fail "$what: $count ranks answer otherwise than one process"
}

schema='{"type": "object", "required": ["a", "b"],
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yes"]}}}'
endless='{"prompt": "a", "max_tokens": 4000, "ignore_eos": true, "stream": true}'
say='"messages": [{"role": "user", "content": "Tell me of the sea"}]'
tool='"tools": [{"type": "function", "function": {"name": "look", "parameters": '$schema'}}], "tool_choice": "required"'
asks=(
    '/v1/completions {"prompt": "Once upon 0", "max_tokens": 40, "seed": 1, "ignore_eos": true}'
    '/v1/completions {"prompt": "Once upon 0", "max_tokens": 40, "seed": 2, "ignore_eos": true, "n": 2}'
    '/v1/completions {"prompt": "Once upon 1", "max_tokens": 40, "seed": 3, "stop": ["the"], "logprobs": 2}'
    '/v1/completions {"prompt": "Once upon 2", "max_tokens": 9, "seed": 3, "echo": true, "logprobs": 2}'
    '/v1/completions {"prompt": "Once upon 3 and 4", "max_tokens": 0, "echo": true, "logprobs": 1}'
    '/completion {"prompt": "a", "n_predict": 40, "grammar": "root ::= \"a\" [b-f ]+ \"ggg\"", "seed": 4}'
    '/completion {"prompt": "An object:", "n_predict": 60, "seed": 5, "json_schema": '"$schema}"
    '/completion {"prompt": "b", "n_predict": 30, "regex": "[a-c]{5,20}x?", "mirostat": 2, "seed": 6}'
    '/v1/chat/completions {'"$say"', "max_tokens": 60, "seed": 7, "response_format": {"type":
        "json_schema", "json_schema": {"schema": '"$schema}}}"
    '/v1/chat/completions {'"$say"', "max_tokens": 12, "seed": 8, "response_format": {"type": "json_object"}}'
    '/completion {"prompt": "c", "n_predict": 12, "grammar": "root ::= [a-z]+ | [0-9]+", "seed": 9, "logit_bias":
        [[5, 2.5]]}'
)
same "grammars" 2 "${both[@]}" -np 3
same "grammars without drafts" 3 -m $demo -np 2 --spec-type none
same "grammars, whole layers a rank" 2 "${both[@]}" -np 3 --rank-split layers
asks=(
    '/v1/chat/completions {'"$say"', "max_tokens": 24, "reasoning_budget": 6, "ignore_eos": true, "seed": 1,
        "chat_template_kwargs": {"enable_thinking": true}}'
    '/v1/chat/completions {'"$say"', "max_tokens": 24, "reasoning_budget": 4, "seed": 2, "json_schema": {"enum":
        ["abc"]}, "chat_template_kwargs": {"enable_thinking": true}}'
    '/v1/chat/completions {'"$say, $tool"', "max_tokens": 60, "seed": 3}'
    '/v1/messages {'"$say"', "max_tokens": 30, "model": "x", "seed": 4,
        "thinking": {"type": "enabled", "budget_tokens": 5}}'
)
same "budgets" 2 -m tests/data/models/qwen35-odd -c 1024 -np 2

picture() { # FILE: prints the picture as a data URI
    printf 'data:image/png;base64,%s' "$(base64 -w 0 "$1")"
}
shown() { # FILE: prints a request with the picture
    printf '%s' '/v1/chat/completions {"max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "'"$(picture "$1")"'"}}, {"type": "text", "text":
        "Text Recognition:"}]}]}'
}
asks=("$(shown tests/data/images/png-2-8.png)" "$(shown tests/data/images/png-0-8.png)")
same "pictures" 2 -m tests/data/glm-ocr -np 2
same "pictures by a tower of its own" 2 -m tests/data/glm-ocr/model-bf16.gguf \
    --mmproj tests/data/glm-ocr/mmproj-bf16.gguf -np 2

asks=('/v1/embeddings {"input": ["a text", "another one"]}' '/v1/embeddings {"input": "more"}'
    '/v1/completions {"prompt": "Once upon 0", "max_tokens": 20, "seed": 1}')
for split in rows layers; do
    same "embeddings, $split" 2 -m $demo --embeddings --pooling mean -np 1 --rank-split $split
done

# There is memory for only one text of a whole context. So the other texts and their states must be swapped out while
# it runs.
asks=()
for i in 1 2 3 4; do
    asks+=("/completion {\"prompt\": \"The river $i\", \"n_predict\": 150, \"ignore_eos\": true, \"seed\": $i}")
done
for model in "${both[*]}" "-m tests/data/models/qwen35-odd"; do
    # shellcheck disable=SC2206  # words
    model=($model -np 4 -c 256)
    least=$("$forerun" serve "${model[@]}" --port 0 --kv-memory 1 2>&1 | sed -n 's/.*at least \([0-9]*\).*/\1/p')
    same "too little memory" 2 "${model[@]}" --kv-memory "$least"
done

# ---------------------------------------------------------------------------------------------------- the server's end

# mpirun gets the signal and ends all ranks.
serve ended "${job[@]}" -n 2 -- "${both[@]}"
kill $pid
gone "a server of two" "1|143" ended
[ "$(grep -c 'forerun: ' "$folder/ended")" = 1 ] || fail "a server of two that is ended: $(cat "$folder/ended")"

# A second signal must end rank 0 at once, in the middle of a text. The other ranks must notice that it has gone.
serve twice "${job[@]}" -n 3 -- "${both[@]}"
ask /v1/completions "$endless" > "$folder/stream" &
stream=$!
while [ ! -s "$folder/stream" ]; do sleep 0.05; done
rank=$(rank_of $pid 0)
kill "$rank"
sleep 0.3
kill "$rank"
gone "a server that is told twice" "1|143" twice
wait $stream
grep -q "^forerun: rank 0 $host has gone$" "$folder/twice" || fail "a server told twice: $(cat "$folder/twice")"

# One rank is killed or hangs, once while a stream is open and once while none is.
for signal in KILL STOP; do
    for open in yes no; do
        what="a server's rank gets $signal"
        if [ $open = yes ]; then split=layers; else split=rows; fi
        serve lost "${job[@]}" -n 3 -- "${both[@]}" --rank-timeout 2 --rank-split $split
        rm -f "$folder/stream"
        [ $open = no ] || ask /v1/completions "$endless" > "$folder/stream" & stream=$!
        [ $open = no ] || while [ ! -s "$folder/stream" ]; do sleep 0.05; done
        kill -s $signal "$(rank_of "$pid" 1)"
        gone "$what" "1|137" lost
        wait $stream
        line=$(grep '^forerun: ' "$folder/lost" | grep -v listening)
        [[ $line =~ ^forerun:\ rank\ 1\ $host\ (has\ gone|is\ silent\ for\ 2\ s)$ ]] ||
            fail "$what: $(cat "$folder/lost")"
        [ $open = no ] || grep -q 'data: {"error":.*rank 1' "$folder/stream" || fail "$what: $(tail "$folder/stream")"
    done
done

# If one rank can't open the model, the server must say so before it answers anything.
served=("$forerun" serve -m $demo --port 0 --quiet -t 1)
code=0
ranks 1 "${served[@]}" : -n 1 "${served[@]}" --memory 14000000 2> "$folder/errors" || code=$?
grep -v 'listening on' "$folder/errors" > "$folder/lines"
[ $code = 1 ] && [ "$(wc -l < "$folder/lines")" = 1 ] &&
    grep -q '^forerun: rank 1 .* memory is limited' "$folder/lines" ||
    fail "a rank without room for the server: exit $code, $(cat "$folder/errors")"

# A forward pass of this model takes seconds on any machine. If a rank fails meanwhile, both the client that waits for
# it and one that asks later must get an error.
big=$folder/big.gguf
"$forerun" synth --shape qwen2.5-1.5b --layers 6 --vocab 32000 --type q4_0 -o "$big" --quiet || fail "no large model"
serve late "${job[@]}" -n 2 -- -m "$big" -c 4096 -np 2 -ub 16 --isa scalar
ids=$(seq -s, 100 2999)
ask /completion "{\"prompt\": [$ids], \"n_predict\": 4, \"stream\": true, \"return_progress\": true}" \
    > "$folder/stream" &
stream=$!
while [ ! -s "$folder/stream" ]; do sleep 0.05; done
sleep 0.3
kill -s KILL "$(rank_of "$pid" 1)"
sleep 0.1
ask /v1/completions '{"prompt": [1, 2], "max_tokens": 1}' > "$folder/refused"
ask /health > "$folder/health"
gone "a server in a long forward" "1|137" late
wait $stream
grep -q 'data: {"error":.*rank 1' "$folder/stream" || fail "a long forward: no error in $(tail "$folder/stream")"
for what in refused health; do
    grep -q '^HTTP/1.1 503' "$folder/$what" || fail "a long forward, $what: $(cat "$folder/$what")"
done
