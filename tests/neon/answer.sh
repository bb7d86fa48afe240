#!/usr/bin/env bash
# One answer across architectures: the native command and the AArch64 one, run by qemu, must print the same.
#
# In: BUILD, with BUILD/forerun and BUILD/arm64/forerun. Out: exit 1 at the first difference, which is named.
set -euo pipefail

native=${BUILD:-build}/forerun
emulated="qemu-aarch64-static ${BUILD:-build}/arm64/forerun"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# compare NAME ARGUMENT...: the same verb and options on both; {} stands for an output file of each side's own.
compare() {
    local name=$1
    shift
    $native "${@/\{\}/$scratch/native.out}" >"$scratch/native" 2>"$scratch/native.log" || { cat "$scratch/native.log"; exit 1; }
    $emulated "${@/\{\}/$scratch/emulated.out}" >"$scratch/emulated" 2>"$scratch/emulated.log" ||
        { cat "$scratch/emulated.log"; exit 1; }
    cmp "$scratch/native" "$scratch/emulated" || { echo "$name: printed differently"; exit 1; }
    if [ -e "$scratch/native.out" ]; then
        cmp "$scratch/native.out" "$scratch/emulated.out" || { echo "$name: wrote other bytes"; exit 1; }
        rm "$scratch/native.out" "$scratch/emulated.out"
    fi
    echo "$name: equal"
}

demo=(-m tools/demo/target -md tools/demo/assistant -t 1)
prompt=$(find tools/demo/prompts -name '*.txt' | sort | head -n 1)
for isa in neon scalar; do
    words=()
    [ "$isa" = scalar ] && words=(--isa scalar)
    compare "demo, drafting, $isa" generate "${demo[@]}" "${words[@]}" -f "$prompt" -n 160 --draft-max 3 --output ids
done
for model in gemma4-e gemma4-dense gemma4-moe; do
    folder=tests/data/models/$model
    compare "$model, logits" logits -m $folder -t 1 --ids 2,9,40,7,100,61,5,8,77,30,31,12 -o {}
    compare "$model, draft logits" logits -m $folder -md $folder/assistant -t 1 --draft-steps 4 \
        --ids 2,9,40,7,100,61,5,8,77,30,31,12 -o {}
    compare "$model, 400 tokens" generate -m $folder -md $folder/assistant -t 1 --ids 2,9,40,7 -n 400 --ignore-eos --output ids
    compare "$model, hashes" verify -m $folder -md $folder/assistant -t 1
done
