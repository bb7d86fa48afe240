#!/usr/bin/env bash
# One answer on two architectures: the AArch64 build under an emulator gives this machine's hashes, ids and text.
#
# In: BUILD, a native build, and BUILD/arm64. Out: exit 0, or 1 with what differs.
set -euo pipefail

BUILD=${BUILD:-build}
different=0

compare() { # the same command line on both
    local here there
    here=$("$BUILD/forerun" "$@" 2>/dev/null)
    for isa in scalar neon; do
        there=$(qemu-aarch64-static "$BUILD/arm64/forerun" "$@" --isa $isa -t 1 2>/dev/null) || there="exit status $?"
        [ "$here" = "$there" ] && continue
        printf 'forerun %s\nhere:\n%s\nwith --isa %s:\n%s\n' "$*" "$here" $isa "$there" >&2
        different=1
    done
}

for model in tests/data/models/*; do
    compare verify -m "$model" -md "$model/assistant"
done
for prompt in tools/demo/prompts/*.txt; do
    compare generate -m tools/demo/target -md tools/demo/assistant -f "$prompt" -n 200
    compare generate -m tools/demo/target -md tools/demo/assistant -f "$prompt" -n 200 --draft-max 7 --output ids
done
exit $different
