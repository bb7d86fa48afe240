"""Writes a small model of architecture nomic-bert-moe with random weights, and its rows by llama.cpp's server.

usage: encoders_nomic_moe.py LLAMA_CPP SERVER BERT BERT.gguf FILE.gguf FOLDER

In: llama.cpp's sources and its server; a folder of BERT and its GGUF file (encoders_gguf.py), whose tokens are used.
Out: a file in F32; the same model as a folder with the names and keys of nomic-embed-text-v2-moe, and in it cases.json
with texts, their ids and the rows of the file. The server's GELU is an approximation, so its rows are right within
2e-3.
"""
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

if len(sys.argv) != 7:
    sys.exit(__doc__)
llama, server, bert, bert_gguf, file, folder = sys.argv[1:]
sys.path.insert(0, llama + "/gguf-py")
import gguf
import numpy as np
from safetensors.numpy import save_file

WIDTH, HEADS, FFN, LAYERS, EXPERTS, USED, EVERY = 24, 6, 20, 4, 5, 2, 2
source = gguf.GGUFReader(bert_gguf)
vocab = len(source.fields["tokenizer.ggml.tokens"].data)
random = np.random.default_rng(12)
published = {}
writer = gguf.GGUFWriter(file, "nomic-bert-moe")
writer.add_context_length(64)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FFN)
writer.add_head_count(HEADS)
writer.add_layer_norm_eps(1e-5)
writer.add_rope_freq_base(700.0)
writer.add_causal_attention(False)
writer.add_pooling_type(gguf.PoolingType.MEAN)
writer.add_expert_count(EXPERTS)
writer.add_expert_used_count(USED)
writer.add_moe_every_n_layers(EVERY)
for field in source.fields.values():
    if field.name.startswith("tokenizer."):
        array = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1] if array else None)


def put(name, own, *shape, around=0.0, spread=0.3):
    values = (around + spread * random.standard_normal(shape)).astype(np.float32)
    writer.add_tensor(name, values)
    if own.endswith(".w1"):
        values = values.reshape(-1, shape[-1])
    if own.endswith(".w2"):
        values = values.transpose(0, 2, 1).reshape(-1, shape[1])
    published[own] = np.ascontiguousarray(values)


def norm(name, own):
    put(name + ".weight", own + ".weight", WIDTH, around=1, spread=0.1)
    put(name + ".bias", own + ".bias", WIDTH, spread=0.1)


put("token_embd.weight", "embeddings.word_embeddings.weight", vocab, WIDTH, spread=1)
put("token_types.weight", "embeddings.token_type_embeddings.weight", 2, WIDTH)
norm("token_embd_norm", "emb_ln")
for i in range(LAYERS):
    to, own = f"blk.{i}.", f"encoder.layers.{i}."
    put(to + "attn_qkv.weight", own + "attn.Wqkv.weight", 3 * WIDTH, WIDTH)
    put(to + "attn_qkv.bias", own + "attn.Wqkv.bias", 3 * WIDTH, spread=0.1)
    put(to + "attn_output.weight", own + "attn.out_proj.weight", WIDTH, WIDTH)
    put(to + "attn_output.bias", own + "attn.out_proj.bias", WIDTH, spread=0.1)
    norm(to + "attn_output_norm", own + "norm1")
    norm(to + "layer_output_norm", own + "norm2")
    if i % EVERY == 1:
        put(to + "ffn_gate_inp.weight", own + "mlp.router.layer.weight", EXPERTS, WIDTH)
        put(to + "ffn_up_exps.weight", own + "mlp.experts.mlp.w1", EXPERTS, FFN, WIDTH)
        put(to + "ffn_down_exps.weight", own + "mlp.experts.mlp.w2", EXPERTS, WIDTH, FFN)
        published[own + "mlp.experts.bias"] = np.zeros(WIDTH, np.float32)
    else:
        put(to + "ffn_up.weight", own + "mlp.fc1.weight", FFN, WIDTH)
        put(to + "ffn_up.bias", own + "mlp.fc1.bias", FFN, spread=0.1)
        put(to + "ffn_down.weight", own + "mlp.fc2.weight", WIDTH, FFN)
        put(to + "ffn_down.bias", own + "mlp.fc2.bias", WIDTH, spread=0.1)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

os.makedirs(folder, exist_ok=True)
save_file(published, os.path.join(folder, "model.safetensors"))
for name in ("tokenizer.json", "tokenizer_config.json"):
    shutil.copy(os.path.join(bert, name), folder)
with open(os.path.join(folder, "config.json"), "w") as out:
    json.dump({"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "gelu",
               "vocab_size": vocab, "n_embd": WIDTH, "n_head": HEADS, "n_inner": FFN, "n_layer": LAYERS,
               "n_positions": 64, "max_trained_positions": 64, "type_vocab_size": 2, "layer_norm_epsilon": 1e-5,
               "rotary_emb_base": 700.0, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
               "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "qkv_proj_bias": True,
               "mlp_fc1_bias": True, "mlp_fc2_bias": True, "prenorm": False, "causal": False, "parallel_block": False,
               "moe_every_n_layers": EVERY, "moe_top_k": USED, "num_experts": EXPERTS, "num_shared_experts": 0,
               "moe_normalize_expert_weights": False, "expert_choice_router": False}, out, indent=1)

texts = ["a house by the sea", "Who wrote it?", "the sea " * 12 + "house"]
run = subprocess.Popen([server, "-m", file, "--embeddings", "-t", "1", "--port", "18138"], stderr=subprocess.DEVNULL)
base = "http://127.0.0.1:18138"


def ask(path, body):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


for _ in range(1000):
    try:
        urllib.request.urlopen(base + "/health")
        break
    except OSError:
        time.sleep(0.3)
ids = [ask("/tokenize", {"content": text, "add_special": True})["tokens"] for text in texts]
rows = [entry["embedding"] for entry in ask("/v1/embeddings", {"input": texts})["data"]]
run.terminate()
with open(os.path.join(folder, "cases.json"), "w") as out:
    json.dump({"texts": texts, "ids": ids, "rows": [[float(f"{v:.7g}") for v in row] for row in rows]}, out)
    out.write("\n")
