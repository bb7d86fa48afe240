#!/usr/bin/env bash
# transformers 5.17.0 does not read "add_bos_token" of tokenizer_config.json where a tokenizer.json lies beside it, and
# 4.57.1 does: the same folder gives other ids, without a word.
#
# A Llama-like folder says in tokenizer_config.json that no first token is added, while the post-processor of its
# tokenizer.json adds one. In 4.57.1 the flag decides (ids without the first token); in 5.17.0 the post-processor does.
# Whoever cleared the flag to keep a template's own first token from being doubled has it doubled after an update.
#
# usage: findings/transformers-add-bos-token.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder. Exit 0: as it was seen
# with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/make.py" <<'END'
import json, sys
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors
vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, "\u2581": 3, "h": 4, "i": 5, "\u2581h": 6, "\u2581hi": 7}
t = Tokenizer(models.BPE(vocab, [("\u2581", "h"), ("\u2581h", "i")], unk_token="<unk>", fuse_unk=True,
                         byte_fallback=False))
t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
t.decoder = decoders.Replace("\u2581", " ")
t.add_special_tokens([AddedToken(s, special=True) for s in ("<unk>", "<s>", "</s>")])
t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
t.save(sys.argv[1] + "/tokenizer.json")
json.dump({"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
           "add_bos_token": False, "add_eos_token": False}, open(sys.argv[1] + "/tokenizer_config.json", "w"))
END
cat >"$folder/ask.py" <<'END'
import sys, transformers
from transformers import AutoTokenizer
print(transformers.__version__, AutoTokenizer.from_pretrained(sys.argv[1])("hi")["input_ids"])
END

said=
for version in 4.57.1 5.17.0; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q "transformers==$version" jinja2 sentencepiece protobuf
    mkdir "$folder/model-$version"
    "$folder/$version/bin/python" "$folder/make.py" "$folder/model-$version"
    said+=$("$folder/$version/bin/python" "$folder/ask.py" "$folder/model-$version" 2>/dev/null)$'\n'
done
printf '%s' "$said"
expected='4.57.1 [7]
5.17.0 [1, 7]
'
[ "$said" = "$expected" ] || { printf 'expected\n%s' "$expected"; exit 1; }
