#!/usr/bin/env bash
# Tests the memory that loading a model takes. It must stay below 1.10 times the tensors' bytes plus 64 MB, because the
# pages of the file are given back to the system as they are packed. Processes that open the same packed file must
# share its memory.
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

# Starts a program that writes more logits than a pipe holds, and returns when the first of them are there. The program
# has loaded the model then, and waits until the script ends. Its process id is the last of `running`.
load() { # MODEL OPTION...
    local output
    # shellcheck disable=SC2094  # nothing is written to the model
    exec {output}< <(exec "$forerun" logits -m "$1" --ids "$ids" -c 256 -o - --quiet "${@:2}")
    running+=($!)
    [ "$(head -c 4 <&"$output" | wc -c)" = 4 ] || fail "logits -m $* wrote nothing"
}

kilobytes() { # FILE FIELD...: prints the sum of these fields
    awk -v fields="${*:2}" 'BEGIN { split(fields, names); for (i in names) wanted[names[i] ":"] }
        $1 in wanted { sum += $2 } END { print sum + 0 }' "$1"
}

check_peak() { # MODEL-AND-OPTIONS KILOBYTES-OF-WEIGHTS
    local limit=$(($2 * 110 / 100 + 64 * 1024)) peak
    # shellcheck disable=SC2086  # a case is words
    load "$folder/"$1
    peak=$(kilobytes "/proc/${running[-1]}/status" VmHWM)
    [ "$peak" -ge $(($2 * 9 / 10)) ] || fail "$1: $peak kB at most, less than the weights: nothing was measured"
    kill "${running[-1]}"
    [ "$peak" -le $limit ] || fail "$1: $peak kB at most, more than $limit for weights of $2"
}

"$forerun" synth --shape gemma4-1b --type q4_0 --vocab 512 "$folder/model.gguf"
"$forerun" pack -m "$folder/model.gguf" -o "$folder/packed.gguf"
size=$(($(stat -c %s "$folder/model.gguf") / 1024)) # more than 99.9% of the file is tensors
for case in model.gguf "model.gguf --no-mmap" packed.gguf; do
    check_peak "$case" $size
done

# The same must hold for a quantized folder. All codes of this AWQ model are 0, so that its file takes no room on the
# disk.
mkdir "$folder/awq"
header='{"__metadata__":{"format":"pt"}' at=0
tensor() { # NAME TYPE BYTES-OF-A-VALUE SIZE...
    local bytes=$3 shape
    shape=$(IFS=,; echo "${*:4}")
    for size in "${@:4}"; do bytes=$((bytes * size)); done
    header+=",\"$1\":{\"dtype\":\"$2\",\"shape\":[$shape],\"data_offsets\":[$at,$((at + bytes))]}"
    at=$((at + bytes))
}
matrix() { # NAME INPUTS OUTPUTS
    tensor "$1.qweight" I32 4 "$2" $(($3 / 8))
    tensor "$1.qzeros" I32 4 $(($2 / 128)) $(($3 / 8))
    tensor "$1.scales" F16 2 $(($2 / 128)) "$3"
}
tensor model.embed_tokens.weight F16 2 512 4096
tensor model.norm.weight F16 2 4096
for layer in 0 1 2; do
    name=model.layers.$layer
    for norm in input_layernorm post_attention_layernorm; do tensor $name.$norm.weight F16 2 4096; done
    for part in q k v o; do matrix $name.self_attn.${part}_proj 4096 4096; done
    for part in gate up; do matrix $name.mlp.${part}_proj 4096 14336; done
    matrix $name.mlp.down_proj 14336 4096
done
while [ $((${#header} % 8)) != 7 ]; do header+=' '; done
header+='}'
# shellcheck disable=SC2059  # the length's eight bytes, the lowest first
printf "$(printf '\\x%x' $((${#header} & 255)) $((${#header} >> 8 & 255)) $((${#header} >> 16)))\0\0\0\0\0%s" \
    "$header" > "$folder/awq/model.safetensors"
truncate -s $((8 + ${#header} + at)) "$folder/awq/model.safetensors"
cat > "$folder/awq/config.json" << 'END'
{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 3, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 512, "hidden_act": "silu",
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true,
 "torch_dtype": "float16",
 "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true, "version": "gemm"}}
END
check_peak awq $((at / 1024))

# Two more processes map the packed file. The memory that each has for itself must not contain the weights.
load "$folder/packed.gguf"
load "$folder/packed.gguf"
own=$(kilobytes "/proc/${running[-1]}/smaps_rollup" Private_Clean Private_Dirty)
[ "$own" -le $((64 * 1024)) ] || fail "a packed file of $size kB is mapped, and $own kB of it are not shared"
