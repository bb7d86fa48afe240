#!/usr/bin/env bash
# openvino-genai 2026.4.1 reads GGUF files of Qwen2 in several types, but no tensor of type Q5_0 or Q5_1: it ends with
# the error "gguf_tensor_to_f16 failed", which names neither the type nor the tensor.
#
# llama.cpp's Q4_K_M has Q5_0 where a row is no multiple of 256 long. So the published Q4_K_M file of Qwen2.5-Coder 0.5B
# (rows of 896, 133 tensors in Q5_0) can't be read, while that of the 1.5B (rows of 1536) can. The option GGUF_READER of
# the newer documents is not known to this version. For a comparison on one file, Q4_0 is a type that both read.
#
# The script makes five tiny Qwen2 files by the gguf package, which differ in the type of one matrix alone.
#
# usage: findings/openvino-genai-gguf-five-bits.sh
# Needs Python 3.10 or later with venv and a package index; installs into a temporary folder. Exit 0: as it was seen
# with these versions. Exit 1: it has changed, and the lines say how.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/make.py" <<'END'
import sys

import gguf
import numpy as np

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, DIM = 256, 512, 2, 4, 2, 64
path, odd = sys.argv[1], gguf.GGMLQuantizationType[sys.argv[2]]
random, w = np.random.default_rng(1), gguf.GGUFWriter(path, "qwen2")
printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = iter(range(256, 512))
tokens = [chr(b) if b in printed else chr(next(others)) for b in range(256)] + ["th", "<|endoftext|>", "<|im_end|>"]
w.add_block_count(LAYERS)
w.add_context_length(512)
w.add_embedding_length(HIDDEN)
w.add_feed_forward_length(INNER)
w.add_head_count(HEADS)
w.add_head_count_kv(KV_HEADS)
w.add_layer_norm_rms_eps(1e-6)
w.add_rope_freq_base(1e4)
w.add_file_type(15)
w.add_quantization_version(2)
w.add_tokenizer_model("gpt2")
w.add_tokenizer_pre("qwen2")
w.add_token_list(tokens)
w.add_token_types([1] * 257 + [3] * 2)
w.add_token_merges(["t h"])
w.add_bos_token_id(257)
w.add_eos_token_id(258)
w.add_pad_token_id(257)
w.add_add_bos_token(False)
w.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")


def put(name, *shape, type=gguf.GGMLQuantizationType.Q8_0):
    x = (random.standard_normal(shape) / np.sqrt(shape[-1]) + (len(shape) == 1)).astype(np.float32)
    if len(shape) == 1:
        w.add_tensor(name, x)
    else:
        w.add_tensor(name, gguf.quants.quantize(x, type), raw_dtype=type)


put("token_embd.weight", len(tokens), HIDDEN)
put("output.weight", len(tokens), HIDDEN)
put("output_norm.weight", HIDDEN)
for layer in range(LAYERS):
    at = f"blk.{layer}."
    put(at + "attn_norm.weight", HIDDEN)
    put(at + "ffn_norm.weight", HIDDEN)
    for part, heads in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        put(f"{at}attn_{part}.weight", heads * DIM, HIDDEN)
        put(f"{at}attn_{part}.bias", heads * DIM)
    put(at + "attn_output.weight", HIDDEN, HEADS * DIM)
    put(at + "ffn_gate.weight", INNER, HIDDEN)
    put(at + "ffn_up.weight", INNER, HIDDEN)
    put(at + "ffn_down.weight", HIDDEN, INNER, type=odd)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
END

cat >"$folder/load.py" <<'END'
import sys

import openvino_genai

try:
    config = openvino_genai.GenerationConfig(max_new_tokens=4, do_sample=False, ignore_eos=True)
    config.apply_chat_template = False
    openvino_genai.LLMPipeline(sys.argv[1], "CPU").generate("A river rises.", config)
    print("runs")
except RuntimeError as error:
    print(str(error).strip().splitlines()[-1])
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino-genai==2026.4.1.0 openvino==2026.4.1 openvino-tokenizers==2026.4.1.0 \
    gguf==0.19.0 numpy==2.4.6
said=
for type in Q4_0 Q4_1 Q5_0 Q5_1 Q8_0; do
    "$folder/venv/bin/python" "$folder/make.py" "$folder/$type.gguf" "$type"
    said+="$type $("$folder/venv/bin/python" "$folder/load.py" "$folder/$type.gguf" 2>/dev/null)"$'\n'
done
printf '%s' "$said"
expected='Q4_0 runs
Q4_1 runs
Q5_0 [load_gguf] gguf_tensor_to_f16 failed
Q5_1 [load_gguf] gguf_tensor_to_f16 failed
Q8_0 runs
'
[ "$said" = "$expected" ] || { printf 'expected\n%s' "$expected"; exit 1; }
