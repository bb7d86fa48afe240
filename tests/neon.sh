#!/usr/bin/env bash
# Tests that two architectures give the same answer: the AArch64 build, under an emulator, must give this machine's
# hashes, ids and text.
#
# In: BUILD, a native build, and BUILD/arm64. Out: exit 0, or 1 with the differences.
set -euo pipefail

BUILD=${BUILD:-build}
different=0

compare() { # VERB ARGUMENT...: runs the same command line on both builds and compares the outputs
    local here there
    here=$("$BUILD/forerun" "$@" --quiet)
    there=$(qemu-aarch64-static "$BUILD/arm64/forerun" "$@" --quiet -t 1 --isa "$isa") || there="exit status $?"
    [ "$here" = "$there" ] && return
    printf 'forerun %s\nhere:\n%s\nwith --isa %s:\n%s\n' "$*" "$here" "$isa" "$there" >&2
    different=1
}

isa=neon
for model in tests/data/models/* tests/data/glm-ocr; do
    drafter=()
    [ -d "$model/assistant" ] && drafter=(-md "$model/assistant")
    compare verify -m "$model" "${drafter[@]}"
done
ocr=(generate -m tests/data/glm-ocr --image tests/data/glm-ocr/image/digits.png -p "Text Recognition:")
compare "${ocr[@]}" -n 48 --ignore-eos --output ids
prompts=(tools/demo/prompts/*.txt)
demo=(generate -m tools/demo/target -md tools/demo/assistant -f "${prompts[0]}")
compare "${demo[@]}" -n 400
isa=scalar
compare "${demo[@]}" -n 50 --output ids
exit $different
