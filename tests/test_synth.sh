#!/usr/bin/env bash
# forerun synth: the file is a model that inspect describes and generate runs, and wrong arguments are refused.
#
# In: BUILD, a build without sanitizers; 320 MB of room for a temporary file. Out: exit 0, or 1 after saying what is
# wrong.
set -euo pipefail

forerun=${BUILD:-build}/forerun
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$1" >&2
    exit 1
}

"$forerun" synth --shape gemma4-1b --type q4_0 --vocab 300 "$folder/model.gguf"
described=$("$forerun" inspect -m "$folder/model.gguf")
for line in 'architecture   gemma4' 'types          128 F32, 127 Q4_0' \
    'layers         18: 15 sliding (window 512), 3 full' \
    'width          hidden 1536, feed-forward 6144' 'vocabulary     300 ids'; do
    [[ $described == *"$line"* ]] || fail "no '$line' in: $described"
done
ids=$("$forerun" generate -m "$folder/model.gguf" --ids 2,270,281 -n 3 --ignore-eos --output ids)
[[ $ids =~ ^[0-9]+,[0-9]+,[0-9]+$ ]] || fail "generate printed: $ids"

# The same arguments give the same bytes.
"$forerun" synth --shape gemma4-1b --type q4_0 --vocab 300 -o - | cmp - "$folder/model.gguf" || fail "another file"

refused() { # WORDS... TEXT: exit status 2, a line with the text, and no file
    local text=${*: -1} said status=0
    said=$("$forerun" synth "${@:1:$#-1}" 2>&1 >/dev/null) || status=$?
    [ $status = 2 ] || fail "synth ${*:1:$#-1}: exit $status: $said"
    [[ $said == *"$text"* ]] || fail "synth ${*:1:$#-1}: no '$text' in: $said"
    [ ! -e "$folder/out" ] || fail "synth ${*:1:$#-1} left a file"
}
refused --type q4_0 "$folder/out" 'needs --shape'
refused --shape gemma4-1b "$folder/out" 'needs --type'
refused --shape gemma4-1b --type q4_0 'the name of a file'
refused --shape gemma4-9b --type q4_0 "$folder/out" 'gemma4-9b is unknown'
refused --shape gemma4-1b --type q4_9 "$folder/out" 'q4_9 is unknown'
refused --shape gemma4-1b --type q4_0 --vocab 100 "$folder/out" 'out of range'
refused --shape gemma4-1b --type q4_0 "$folder/out" more 'what is this word for?'
refused -m x --shape gemma4-1b --type q4_0 "$folder/out" 'takes no -m'
