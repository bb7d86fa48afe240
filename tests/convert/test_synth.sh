#!/usr/bin/env bash
# Tests forerun synth. It must write models and drafters that inspect describes and generate runs, and refuse wrong
# arguments.
#
# In: BUILD, a build without sanitizers; 320 MB of room for temporary files, 1.2 GB with FULL=1. Out: exit 0, or 1
# after saying what is wrong.
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

# The same arguments must give the same bytes.
"$forerun" synth --shape gemma4-1b --type q4_0 --vocab 300 -o - | cmp - "$folder/model.gguf" || fail "another file"

# If the rows of a shape are not whole blocks of the type, a line must say so, unless --quiet is given.
for words in 'q4_0:' 'q4_k:multiple' 'q4_k --quiet:'; do
    # shellcheck disable=SC2086 # words are several
    said=$("$forerun" synth --shape qwen2.5-0.5b --layers 2 --type ${words%:*} --vocab 300 -o /dev/null 2>&1)
    [[ (-z ${words#*:} && -z $said) || (-n ${words#*:} && $said == *"${words#*:}"*" instead of Q4_K;"*) ]] ||
        fail "${words%:*} says: $said"
done

# An outline has a whole shape without its weights: the file has a hole in their place, which inspect does not read.
outline() { # SHAPE WORDS...: writes outline.gguf
    rm -f "$folder/outline.gguf"
    { "$forerun" synth --shape "$1" --type q4_0 --quiet "${@:2}" -o - 2>"$folder/errors" || true; } |
        head -c 8M >"$folder/outline.gguf"
    truncate -s 8G "$folder/outline.gguf"
}
described() { # LINE...: checks that inspect prints these lines about outline.gguf
    local said line
    said=$("$forerun" inspect -m "$folder/outline.gguf" 2>&1) || fail "$said"
    for line in "$@"; do [[ $said == *"$line"* ]] || fail "no '$line' in: $said"; done
}

# The files must have as many tensors as those that llama.cpp's converter made of the published models.
while read -r shape count; do
    outline "$shape"
    found=$(($(od -An -tu8 -j8 -N8 "$folder/outline.gguf")))
    [ "$found" -eq "$count" ] || fail "$shape has $found tensors, the published model $count"
done <<'END'
gemma4-26b-a4b 658
gemma4-31b 833
gemma4-e2b-assistant 51
gemma4-26b-a4b-assistant 49
gemma4-31b-assistant 49
glm-ocr 179
llama3.2-1b 147
llama3.1-8b 292
llama3.1-8b-eagle3 14
qwen3-30b-a3b 579
qwen3.6-27b 866
qwen3-8b 399
mistral-7b 291
phi4 243
gemma2-2b 288
gpt-oss-20b 459
gpt-oss-120b 687
mixtral-8x7b 323
olmo2-7b 355
smollm3-3b 326
seed-oss-36b 771
lfm2-1.2b 148
END

# The expected sizes are those in config.json of the published models.
outline gemma4-e2b --vocab 384
described 'layers         35: 28 sliding (window 512), 7 full; 15 own their KV cache, 20 borrow one' \
    'width          hidden 1536, feed-forward 6144 to 12288, 8 attention heads' 'per-layer      embeddings of width 256'
outline gemma4-e4b --vocab 384
described 'layers         42: 35 sliding (window 512), 7 full; 24 own their KV cache, 18 borrow one' \
    'width          hidden 2560, feed-forward 10240, 8 attention heads'
outline gemma4-26b-a4b --vocab 384 --layers 6
described 'layers         6: 5 sliding (window 1024), 1 full' 'experts        128 of width 704, 8 chosen a token' \
    'width          hidden 2816, feed-forward 2112, 16 attention heads'
outline gemma4-31b --vocab 384 --layers 6
described 'layers         6: 5 sliding (window 1024), 1 full' \
    'width          hidden 5376, feed-forward 21504, 32 attention heads'
outline glm-ocr --vocab 384
described 'layers         16, all of full attention' 'drafter        an MTP layer in the checkpoint' \
    'width          hidden 1536, feed-forward 4608, 16 attention heads, 8 of keys and values, of 128'
outline llama3.2-1b --vocab 384
described 'architecture   llama' 'layers         16, all of full attention' \
    'width          hidden 2048, feed-forward 8192, 32 attention heads, 8 of keys and values, of 64'
outline llama3.1-8b --vocab 384 --layers 6
described 'layers         6, all of full attention' \
    'width          hidden 4096, feed-forward 14336, 32 attention heads, 8 of keys and values, of 128'
outline qwen3-30b-a3b --vocab 384 --layers 4
described 'architecture   qwen3moe' 'experts        128 of width 768, 8 chosen a token' \
    'width          hidden 2048, 32 attention heads, 4 of keys and values, of 128'
outline glm-4.5-air --vocab 384 --layers 3 --experts 16
described 'experts        16 of width 1408, 8 chosen a token, beside shared ones of width 1408; 1 layer without' \
    'drafter        an MTP layer in the checkpoint' \
    'width          hidden 4096, feed-forward 10944, 96 attention heads, 8 of keys and values, of 128'
outline qwen3.5-0.8b --vocab 384
described 'layers         24: 18 gated DeltaNet, 6 of full attention' 'drafter        an MTP layer in the checkpoint' \
    'width          hidden 1024, feed-forward 3584, 8 attention heads, 2 of keys and values, of 256' \
    'DeltaNet       16 key heads of 128, 16 value heads of 128, a convolution over 4 positions' \
    'states         20.20 MB a timeline, 444.7 kB a draft'
outline qwen3.5-4b --vocab 384 --layers 4
described 'layers         4: 3 gated DeltaNet, 1 of full attention' 'DeltaNet       16 key heads of 128, 32 value' \
    'width          hidden 2560, feed-forward 9216, 16 attention heads, 4 of keys and values, of 256'
outline qwen3.5-9b --vocab 384 --layers 4
described 'width          hidden 4096, feed-forward 12288, 16 attention heads, 4 of keys and values, of 256'
outline qwen3.6-27b --vocab 384 --layers 4
described 'width          hidden 5120, feed-forward 17408, 24 attention heads, 4 of keys and values, of 256' \
    'DeltaNet       16 key heads of 128, 48 value heads of 128, a convolution over 4 positions'
outline qwen3.6-35b-a3b --vocab 384 --layers 4
described 'architecture   qwen35moe' 'drafter        an MTP layer in the checkpoint' \
    'experts        256 of width 512, 8 chosen a token, beside shared ones of width 512' \
    'width          hidden 2048, 16 attention heads, 2 of keys and values, of 256'
outline sarvam-30b --vocab 384 --layers 4
described 'architecture   bailingmoe2' 'layers         4, all of full attention' \
    'experts        128 of width 1024, 6 chosen a token, beside shared ones of width 1024; 1 layer without' \
    'width          hidden 4096, feed-forward 8192, 64 attention heads, 4 of keys and values, of 64'
outline deepseek-v3 --vocab 384 --layers 4 --experts 16
described 'architecture   deepseek2' \
    'experts        16 of width 2048, 8 chosen a token, beside shared ones of width 2048' \
    'drafter        an MTP layer in the checkpoint' '4.6 kB of latents each' \
    'width          hidden 7168, feed-forward 18432, 128 attention heads, latents of 512 beside 64 rotary values'
outline kimi-linear-48b-a3b --vocab 384 --layers 5 --experts 16
described 'architecture   kimi-linear' 'layers         5: 3 Kimi Delta Attention, 2 of full attention' \
    'KDA            32 heads of 128, a convolution over 4 positions' 'width          hidden 2304, feed-forward 9216'
outline ling-3.0-tiny --vocab 384 --layers 5 --experts 16
described 'architecture   bailingmoe3' 'layers         5: 3 Kimi Delta Attention, 2 of full attention' \
    'drafter        an MTP layer in the checkpoint' 'KDA            16 heads of 128' \
    'width          hidden 1536, feed-forward 4608, 16 attention heads, latents of 512 beside 64 rotary values'
outline glm-4.7-flash --vocab 384 --layers 3 --experts 8
described 'experts        8 of width 1536, 4 chosen a token, beside shared ones of width 1536; 1 layer without' \
    'drafter        an MTP layer in the checkpoint' 'width          hidden 2048, feed-forward 10240'
outline llama3.1-8b --vocab 384 --layers 6
mv "$folder/outline.gguf" "$folder/target.gguf"
drafts() { # LINE...: checks that inspect prints these lines about outline.gguf as a drafter for target.gguf
    local said line
    said=$("$forerun" inspect -m "$folder/target.gguf" -md "$folder/outline.gguf" 2>&1) || fail "$said"
    for line in "$@"; do [[ ${said#*kernels} == *"$line"* ]] || fail "no '$line' in: $said"; done
}
outline llama3.2-1b --vocab 384
drafts "drafts         as a model of the target's vocabulary" 'layers         16, all of full attention'
outline llama3.1-8b-eagle3 --vocab 384 --layers 6
drafts 'architecture   eagle3' "sees           inputs of the target's layers 2 3 3" "embeddings     the target's" \
    'width          hidden 4096, feed-forward 14336, 32 attention heads, 8 of keys and values, of 128' \
    'head           its own, 384 rows a draft, of 384 ids'
outline llama3.1-8b
mv "$folder/outline.gguf" "$folder/target.gguf"
outline llama3.1-8b-eagle3
drafts "sees           inputs of the target's layers 2 16 29" 'parameters     424.72 M' \
    'head           its own, 32000 rows a draft, of 128256 ids'
rm -f "$folder/target.gguf"
"$forerun" synth --shape gemma4-e2b-assistant --type q4_0 "$folder/outline.gguf"
described 'layers         4: 3 sliding (window 512), 1 full; 0 own their KV cache, 4 borrow one' \
    'head           2048 centroids of 128 ids, the best 32 scored: 4096 of 262144 rows a draft'

# A model drafts with its assistant, or with its own MTP layer. The text must be the same as without drafts.
pair() { # SHAPE ASSISTANT TYPE [LAYERS]: if ASSISTANT is "", the model's own layer drafts
    local drafter=(--spec-type mtp) plain drafting
    local generate=(generate -m "$folder/model.gguf" --quiet --ids 2,270,281 -n 5 --ignore-eos --output json)
    "$forerun" synth --shape "$1" --type "$3" --vocab 384 --layers "${4:-2}" --quiet "$folder/model.gguf"
    if [ "$2" ]; then
        "$forerun" synth --shape "$2" --type "$3" --vocab 384 ${4:+--layers "$4"} --quiet "$folder/drafter.gguf"
        drafter=(-md "$folder/drafter.gguf")
    fi
    plain=$("$forerun" "${generate[@]}" --spec-type none)
    drafting=$("$forerun" "${generate[@]}" "${drafter[@]}" --draft-max 3)
    [[ $plain == *'"stop": "length"'* ]] || fail "$1: $plain"
    [[ $drafting =~ \"drafted\":\ [1-9] ]] || fail "$1 with ${2:-its own layer} drafts nothing: $drafting"
    [[ ${plain%%]*} = "${drafting%%]*}" ]] || fail "$1 with ${2:-its own layer}: $drafting, and alone $plain"
}
pair gemma4-e2b gemma4-e2b-assistant q4_k
pair gemma4-e2b gemma4-e2b-assistant-plain q4_0
pair gemma4-e4b gemma4-e4b-assistant q4_0
pair gemma4-e4b gemma4-e4b-assistant-plain q8_0
pair gemma4-1b gemma4-1b-assistant q6_k
pair glm-ocr '' q4_k
pair qwen3.5-0.8b '' q4_k 4
pair qwen3.5-0.8b '' q4_0 2
"$forerun" synth --shape qwen3-30b-a3b --type q4_0 --vocab 384 --layers 2 --experts 9 --quiet "$folder/model.gguf"
said=$("$forerun" generate -m "$folder/model.gguf" --quiet --ids 2,270,281 -n 5 --ignore-eos --output json)
[[ $said == *'"stop": "length"'* ]] || fail "qwen3-30b-a3b: $said"
for words in 'gemma4-e2b --experts 4' 'qwen3-30b-a3b --experts 7' 'qwen3-30b-a3b --experts 129'; do
    # shellcheck disable=SC2086
    said=$("$forerun" synth --shape $words --type q4_0 "$folder/out" 2>&1) && fail "synth takes $words"
    [[ $said == *expert* ]] || fail "$words: $said"
done
if [ "${FULL:-}" ]; then # these files take 1 GB
    pair gemma4-26b-a4b gemma4-26b-a4b-assistant q4_k
    pair gemma4-31b gemma4-31b-assistant q4_0
    pair llama3.1-8b llama3.1-8b-eagle3 q4_k 4
    pair llama3.1-8b llama3.2-1b q4_0 2
    pair glm-4.5-air '' q4_0
    pair glm-4.7-flash '' q4_k
fi

# The error about an unknown shape must list all shapes, and so must the help and the manual page.
words() { # prints the words between blanks, without the full stops of sentences
    tr -cs 'a-z0-9.-' ' ' | sed 's/\. / /g'
}
known=$("$forerun" synth --shape gemma4-9b --type q4_0 "$folder/out" 2>&1) && fail "synth takes gemma4-9b"
[[ $known == *' gemma4-31b-assistant '*' glm-ocr'* ]] || fail "synth --shape gemma4-9b: $known"
help=$("$forerun" synth --help | words)
manual=$("$forerun" help --man | sed 's/\\-/-/g' | words)
for shape in ${known##*known: }; do
    [[ $help == *" $shape "* && $manual == *" $shape "* ]] || fail "no $shape in --help or in the manual page"
done

refused() { # WORDS... TEXT: the command must end with status 2, a line with TEXT, and no file
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
refused --shape gemma4-1b --type q4_0 --layers 19 "$folder/out" '2 to 18'
refused --shape gemma4-1b --type q4_0 --layers 1 "$folder/out" 'out of range'
refused --shape llama3.1-8b-eagle3 --type q4_0 --layers 2 "$folder/out" 'sees three of them'
refused --shape gemma4-e2b-assistant --type q4_0 --vocab 300 "$folder/out" 'multiples of 128'
refused --shape gemma4-1b --type q4_0 "$folder/out" more 'what is this word for?'
refused -m x --shape gemma4-1b --type q4_0 "$folder/out" 'takes no -m'
