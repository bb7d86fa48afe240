# Makes the models that the tests run on ranks, and defines functions that compare answers. The tests source this file
# after jobs.sh.
#
# Out: ${models[@]}, models of each family and of several types; ${few[@]}, models with drafters or with shapes that
# can't be divided evenly; ${eighths[@]}, two models for runs with 8-bit caches; the functions alone and same. The
# models made here are in $folder.
# shellcheck shell=bash disable=SC2034,SC2154  # the tests use the variables, jobs.sh sets others
answers=$build/tests/behaviour/ranks/answers
demo=tools/demo/target
models=(tests/data/models/* tests/data/llama/q4_0.gguf tests/data/gguf/e-q4_0.gguf tests/data/gpt-oss/mx
    tests/data/deepseek-v3/model-{apart,whole}-q8_0.gguf tests/data/qwen35/tied.gguf)
few=(tests/data/models/{llama,gemma4-e-odd,deepseek-v3-fp8,qwen3-next-odd,glm4-moe-odd,lfm2-old})
for type in q4_0 q4_k q8_0 bf16; do
    "$build/forerun" quantize -m $demo --type $type -o "$folder/$type.gguf" 2>/dev/null || fail "no $type of the demo"
    models+=("$folder/$type.gguf")
done
few+=(tests/data/models/llama,tests/data/llama/{eagle,eagle3-odd,eagle3-layers})
few+=(tests/data/llama/q4_0.gguf,tests/data/models/llama)
few+=("$folder/q4_k.gguf",$demo)
for block in qwen3 spec-llama v2-qwen3.5 dspark-qwen3; do
    few+=("tests/data/dflash/$block,tests/data/dflash/$block/drafter")
done
# This target has packed weights. DSpark scores its drafts with the target's head.
"$build/forerun" quantize -m tests/data/dflash/dspark-dense-qwen3 --type q8_0 -o "$folder/dspark.gguf" \
    2> "$folder/errors" || fail "$(cat "$folder/errors")"
few+=("$folder/dspark.gguf,tests/data/dflash/dspark-dense-qwen3/drafter")
few+=(tests/data/models/{qwen35-odd,glm4-moe-odd}, tests/data/gguf/moe-odd.gguf,tests/data/gguf/moe-odd-assistant.gguf
    "$folder/q4_k.gguf" $demo,tools/demo/assistant "$folder/q4_0.gguf,tools/demo/assistant")
models+=("${few[@]: -2}")
# The model has two KV heads, so each of two ranks keeps one, but the drafter reads both heads of two layers.
for shape in gemma4-1b gemma4-1b-assistant; do
    layers=(--layers 2)
    [ $shape = gemma4-1b ] || layers=()
    "$build/forerun" synth --shape $shape "${layers[@]}" --vocab 384 --type q4_0 --quiet "$folder/$shape.gguf" ||
        fail "no $shape"
done
few+=("$folder/gemma4-1b.gguf,$folder/gemma4-1b-assistant.gguf")
eighths=("$folder/q4_0.gguf,tools/demo/assistant" "${few[-1]}")

alone() { # NAME ANSWERS-ARGUMENT...: writes one process's answers to $folder/NAME, a line for each model
    "$answers" --alone "${@:2}" > "$folder/$1" || fail "one process has no answers: $1"
}

lines_of() { # NAME MODEL...: prints these models' lines of $folder/NAME
    local model
    for model in "${@:2}"; do awk -v model="$model" '$1 == model' "$folder/$1"; done
}

same() { # WHAT EXPECTED COUNT ANSWERS-ARGUMENT...: COUNT ranks must give the answers in the file EXPECTED
    local what=$1 expected=$2
    shift 2
    ranks "$1" "$answers" "${@:2}" > "$folder/got" 2> "$folder/errors" ||
        fail "$what: $(cat "$folder/errors")"
    diff "$expected" "$folder/got" > "$folder/different" || fail "$what: $(cat "$folder/different")"
}
