"""Writes a small model of architecture jina-bert-v2 with random weights, and its rows by llama.cpp's server.

usage: encoders_jina.py LLAMA_CPP SERVER BERT.gguf FILE.gguf GATE.gguf FILE.json

In: llama.cpp's sources and its server; a GGUF file of BERT (encoders_gguf.py), whose tokens are used. Out: a file in
F32, whose gate is the first half of ffn_up, and the same model with the gate by itself; texts, their ids and the rows
of the first file. The server's GELU is an approximation, so its rows are right within 2e-3.
"""
import json
import subprocess
import sys
import time
import urllib.request

if len(sys.argv) != 7:
    sys.exit(__doc__)
llama, server, bert, file, gate, cases = sys.argv[1:]
sys.path.insert(0, llama + "/gguf-py")
import gguf
import numpy as np

WIDTH, HEADS, FFN, LAYERS = 24, 6, 20, 2
source = gguf.GGUFReader(bert)
vocab = len(source.fields["tokenizer.ggml.tokens"].data)


def write(path, split):
    writer = gguf.GGUFWriter(path, "jina-bert-v2")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    for field in source.fields.values():
        if field.name.startswith("tokenizer."):
            array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1] if array else None)
    random = np.random.default_rng(11)

    def values(*shape, around=0.0, spread=0.3):
        return (around + spread * random.standard_normal(shape)).astype(np.float32)

    def put(name, *shape, **how):
        writer.add_tensor(name, values(*shape, **how))

    put("token_embd.weight", vocab, WIDTH, spread=1)
    put("token_types.weight", 2, WIDTH)
    put("token_embd_norm.weight", WIDTH, around=1, spread=0.1)
    put("token_embd_norm.bias", WIDTH, spread=0.1)
    for i in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            put(f"blk.{i}.{name}.weight", WIDTH, WIDTH)
            put(f"blk.{i}.{name}.bias", WIDTH, spread=0.1)
        both = values(2 * FFN, WIDTH)
        if split:
            writer.add_tensor(f"blk.{i}.ffn_gate.weight", both[:FFN])
        writer.add_tensor(f"blk.{i}.ffn_up.weight", both[FFN:] if split else both)
        put(f"blk.{i}.ffn_down.weight", WIDTH, FFN)
        put(f"blk.{i}.ffn_down.bias", WIDTH, spread=0.1)
        for name in ("attn_output_norm", "layer_output_norm"):
            put(f"blk.{i}.{name}.weight", WIDTH, around=1, spread=0.1)
            put(f"blk.{i}.{name}.bias", WIDTH, spread=0.1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


write(file, False)
write(gate, True)

texts = ["a house by the sea", "Who wrote it?", "the sea " * 12 + "house"]
run = subprocess.Popen([server, "-m", file, "--embeddings", "-t", "1", "--port", "18137"], stderr=subprocess.DEVNULL)
base = "http://127.0.0.1:18137"
for _ in range(100):
    try:
        urllib.request.urlopen(base + "/health")
        break
    except OSError:
        time.sleep(0.2)


def post(path, body):
    return json.load(urllib.request.urlopen(urllib.request.Request(base + path, json.dumps(body).encode())))


ids = [post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in texts]
rows = [item["embedding"] for item in post("/v1/embeddings", {"input": texts})["data"]]
run.terminate()
with open(cases, "w") as out:
    json.dump({"texts": texts, "ids": ids, "rows": [[round(x, 6) for x in row] for row in rows]}, out)
