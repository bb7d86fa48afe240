#!/usr/bin/env python3
"""eagle.py make|verify TESTS_DATA: EAGLE drafters with odd dimensions for the tiny Llama, and what their definition
gives.

make    writes TESTS_DATA/llama/eagle3-odd, eagle3-qwen and eagle-odd: config.json, model.safetensors, reference.json
verify  reads them back and computes everything again

eagle3-odd has speculators' form, and everything that llama/eagle3 does not have: it is narrower than its target, and
has its own embeddings, a norm before fc, a normed residual, a chain that passes the normed row on, biases, heads that
together are not as wide as the stream, and taps at the first layer's input and after the last layer, in no order.
eagle3-qwen has the form in which speculators 0.9 writes drafters: a layer of Qwen3's with a window, whose heads of
queries and keys have norms, and a norm for each tap (fc_norm). A row sees only keys that are fewer than `window`
positions before it. eagle-odd, EAGLE-1, has everything that llama/eagle does not have: no bias of fc, biases of
attention, the target's embeddings, one key head for three query heads, plain rotary positions.

Everything is computed in double precision from transformers' rows of the target (models/llama/reference.safetensors:
debug.layers, and the hidden rows after the final norm), after speculators' Eagle3DraftModel, vLLM's llama_eagle3.py
and EAGLE's cnets.py. No package is needed. reference.json has `ids`, and for each of 4 chained steps the `logits` over
the draft vocabulary and the `tokens`.
"""
import json
import math
import random
import struct
import sys
from pathlib import Path

H, HEADS, KV, D, FFN, DRAFT, VOCAB, TARGET, TAPS, STEPS = 44, 3, 1, 14, 38, 101, 512, 256, [5, 0, 7], 4
EPS, THETA, SEED = 3e-6, 7000.0, 61
CONFIG = {
    "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "draft_vocab_size": DRAFT,
    "target_hidden_size": TARGET, "eagle_aux_hidden_state_layer_ids": TAPS, "norm_before_residual": True,
    "norm_before_fc": True, "norm_output": True, "fc_norm": False, "tie_word_embeddings": False,
    "speculators_config": {"verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": None}},
    "transformer_layer_config": {
        "model_type": "llama", "hidden_size": H, "intermediate_size": FFN, "num_hidden_layers": 1,
        "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": D, "hidden_act": "silu",
        "attention_bias": True, "vocab_size": VOCAB, "max_position_embeddings": 256, "rms_norm_eps": EPS,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA}}}
WINDOW = 5
CONFIG_QWEN = {
    **CONFIG, "norm_before_residual": False, "norm_before_fc": False, "norm_output": False, "fc_norm": True,
    "transformer_layer_config": {
        **CONFIG["transformer_layer_config"], "model_type": "qwen3", "attention_bias": False, "sliding_window": WINDOW,
        "use_sliding_window": True, "layer_types": ["sliding_attention"], "max_window_layers": 28}}
CONFIG_1 = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": TARGET, "intermediate_size": FFN,
    "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": D,
    "hidden_act": "silu", "attention_bias": True, "vocab_size": VOCAB, "max_position_embeddings": 256,
    "rms_norm_eps": EPS, "rope_theta": THETA, "bias": False}


def layer_shapes(width, seen):
    """Returns the shapes of a layer that keeps rows of `width` and whose attention reads `seen` values of each."""
    return {
        "layers.0.self_attn.q_proj.weight": (HEADS * D, seen), "layers.0.self_attn.k_proj.weight": (KV * D, seen),
        "layers.0.self_attn.v_proj.weight": (KV * D, seen), "layers.0.self_attn.q_proj.bias": (HEADS * D,),
        "layers.0.self_attn.k_proj.bias": (KV * D,), "layers.0.self_attn.v_proj.bias": (KV * D,),
        "layers.0.self_attn.o_proj.weight": (width, HEADS * D), "layers.0.mlp.gate_proj.weight": (FFN, width),
        "layers.0.mlp.up_proj.weight": (FFN, width), "layers.0.mlp.down_proj.weight": (width, FFN)}


SHAPES = {
    "fc.weight": (H, len(TAPS) * TARGET), "input_norm.weight": (len(TAPS) * TARGET,), "embed_tokens.weight": (VOCAB, H),
    "layers.0.input_layernorm.weight": (H,), "layers.0.hidden_norm.weight": (H,),
    "layers.0.post_attention_layernorm.weight": (H,), **layer_shapes(H, 2 * H), "norm.weight": (H,),
    "lm_head.weight": (DRAFT, H)}
SHAPES_QWEN = {
    **{f"fc_norm.{i}.weight": (TARGET,) for i in range(len(TAPS))}, "layers.0.self_attn.q_norm.weight": (D,),
    "layers.0.self_attn.k_norm.weight": (D,),
    **{name: shape for name, shape in SHAPES.items() if name != "input_norm.weight" and not name.endswith("bias")}}
SHAPES_1 = {
    "fc.weight": (TARGET, 2 * TARGET), "layers.0.post_attention_layernorm.weight": (TARGET,),
    **layer_shapes(TARGET, TARGET)}


def read(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def floats(tensor):
    kind, shape, data = tensor
    if kind == "F32":
        values = struct.unpack(f"<{len(data) // 4}f", data)
    else:
        values = [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    if len(shape) == 1:
        return list(values)
    return [list(values[i:i + shape[-1]]) for i in range(0, len(values), shape[-1])]


def write(path, tensors):
    header, body = {}, b""
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def random_weights(rnd, shapes):
    tensors = {}
    for name, shape in shapes.items():
        norm, bias = len(shape) == 1 and "norm" in name, name.endswith("bias")
        scale = 0.2 if norm else 0.3 if bias else 1.7 * shape[-1] ** -0.5
        values = [(1.0 if norm else 0.0) + scale * rnd.gauss(0, 1) for _ in range(math.prod(shape))]
        tensors[name] = ("BF16", shape, b"".join(struct.pack("<f", v)[2:] for v in values))
    return tensors


def random_ids(rnd):
    kept = sorted(rnd.sample(range(VOCAB), DRAFT))
    rnd.shuffle(kept)  # so that the ids are not in order
    return {"d2t": ("I64", (DRAFT,), struct.pack(f"<{DRAFT}q", *[t - i for i, t in enumerate(kept)])),
            "t2d": ("BOOL", (VOCAB,), bytes(i in kept for i in range(VOCAB)))}


def norm(x, w):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + EPS)
    return [v * scale * g for v, g in zip(x, w)]


def linear(w, x, bias=None):
    out = [sum(a * b for a, b in zip(row, x)) for row in w]
    return [a + b for a, b in zip(out, bias)] if bias else out


def rotate(head, position):
    half, out = D // 2, list(head)
    for i in range(half):
        angle = position * THETA ** (-2 * i / D)
        c, s = math.cos(angle), math.sin(angle)
        out[i], out[i + half] = head[i] * c - head[i + half] * s, head[i + half] * c + head[i] * s
    return out


def silu(v):
    return v / (1 + math.exp(-v))


class Drafter:
    """One layer, with the keys and values of its attention."""

    def __init__(self, tensors):
        self.w = {name: floats(t) for name, t in tensors.items() if t[0] == "BF16"}
        self.keys, self.values = [], []
        self.window = None

    def layer(self, name):
        return self.w.get("layers.0." + name)

    def read(self, left):
        """Returns the rows that the head reads, from the output of a pair."""
        return left

    def normed(self, head, which):
        weight = self.layer(f"self_attn.{which}_norm.weight")
        return norm(head, weight) if weight else head

    def run(self, position, x, residual):
        """Runs the layer for one row. x: the input of attention; residual: the row to which attention is added."""
        def project(which):
            name = f"self_attn.{which}_proj."
            return linear(self.layer(name + "weight"), x, self.layer(name + "bias"))

        q = project("q")
        self.keys.append(rotate(self.normed(project("k"), "k"), position))
        self.values.append(project("v"))
        attended = []
        for h in range(HEADS):
            query = rotate(self.normed(q[h * D:(h + 1) * D], "q"), position)
            keys, values = (seen[-self.window:] if self.window else seen for seen in (self.keys, self.values))
            scores = [sum(a * b for a, b in zip(query, k)) / math.sqrt(D) for k in keys]
            weights = [math.exp(s - max(scores)) for s in scores]
            attended += [sum(w * v[i] for w, v in zip(weights, values)) / sum(weights) for i in range(D)]
        x = [a + b for a, b in zip(residual, linear(self.layer("self_attn.o_proj.weight"), attended))]
        inner = norm(x, self.layer("post_attention_layernorm.weight"))
        gate = [silu(a) * b for a, b in zip(linear(self.layer("mlp.gate_proj.weight"), inner),
                                            linear(self.layer("mlp.up_proj.weight"), inner))]
        return [a + b for a, b in zip(x, linear(self.layer("mlp.down_proj.weight"), gate))]


class Eagle3(Drafter):
    def __init__(self, tensors, data):
        super().__init__(tensors)
        self.ids = [i + d for i, d in enumerate(struct.unpack(f"<{DRAFT}q", tensors["d2t"][2]))]
        self.head = self.w["lm_head.weight"]
        self.layers = floats(read(data / "models/llama/reference.safetensors")["debug.layers"])

    def seen(self, prompt, rows, row):
        taps = sum((self.layers[t * rows + row] for t in TAPS), [])
        return linear(self.w["fc.weight"], norm(taps, self.w["input_norm.weight"]))

    def pair(self, position, token, g):
        """Returns the normed output of the pair, which is both the next pair's g and the head's input."""
        residual = norm(g, self.layer("hidden_norm.weight"))
        x = norm(self.w["embed_tokens.weight"][token], self.layer("input_layernorm.weight")) + residual
        return norm(self.run(position, x, residual), self.w["norm.weight"])


class Eagle3Qwen(Eagle3):
    def __init__(self, tensors, data):
        super().__init__(tensors, data)
        self.window = WINDOW

    def seen(self, prompt, rows, row):
        taps = [norm(self.layers[t * rows + row], self.w[f"fc_norm.{i}.weight"]) for i, t in enumerate(TAPS)]
        return linear(self.w["fc.weight"], sum(taps, []))

    def pair(self, position, token, g):
        """Returns the output of the pair, which is the next pair's g. The head reads its norm."""
        x = norm(self.w["embed_tokens.weight"][token], self.layer("input_layernorm.weight"))
        return self.run(position, x + norm(g, self.layer("hidden_norm.weight")), g)

    def read(self, left):
        return norm(left, self.w["norm.weight"])


class Eagle1(Drafter):
    def __init__(self, tensors, data):
        super().__init__(tensors)
        self.ids = list(range(VOCAB))
        target = read(data / "models/llama/model.safetensors")
        self.embed, self.head = floats(target["model.embed_tokens.weight"]), floats(target["lm_head.weight"])
        self.hidden = read(data / "models/llama/reference.safetensors")

    def seen(self, prompt, rows, row):
        return floats(self.hidden[f"prompt.{prompt}.hidden"])[row]

    def pair(self, position, token, g):
        """Returns the output of the pair, which is the next pair's g and the input of the target's head."""
        x = linear(self.w["fc.weight"], self.embed[token] + g)
        return self.run(position, x, x)


def compute(drafter, data):
    info = json.loads((data / "models/llama/reference.json").read_text())
    which = info["debug_prompt"]
    prompt = info["prompts"][which]
    first = next(g["tokens"][0] for g in info["greedy"] if g["prompt"] == which)
    ids, rows = prompt + [first], len(prompt)
    out, token = {"ids": ids, "tokens": [], "logits": []}, None
    for p in range(rows):
        left = drafter.pair(p, ids[p + 1], drafter.seen(which, rows, p))
    for step in range(STEPS):
        if step:
            left = drafter.pair(rows - 1 + step, token, left)
        logits = linear(drafter.head, drafter.read(left))
        token = drafter.ids[max(range(len(logits)), key=lambda i: logits[i])]
        out["tokens"].append(token)
        out["logits"].append([round(v, 7) for v in logits])
    return out


def make(folder, config, tensors, kind, data):
    folder.mkdir(exist_ok=True)
    write(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "reference.json").write_text(json.dumps(compute(kind(tensors, data), data)) + "\n")


def stays(folder, kind, data):
    stored = json.loads((folder / "reference.json").read_text())
    return stored == compute(kind(read(folder / "model.safetensors"), data), data)


def main():
    what, data = sys.argv[1], Path(sys.argv[2])
    three, one, qwen = data / "llama/eagle3-odd", data / "llama/eagle-odd", data / "llama/eagle3-qwen"
    if what == "make":
        rnd = random.Random(SEED)
        make(three, CONFIG, {**random_weights(rnd, SHAPES), **random_ids(rnd)}, Eagle3, data)
        make(one, CONFIG_1, random_weights(random.Random(SEED + 1), SHAPES_1), Eagle1, data)
        rnd = random.Random(SEED + 2)
        make(qwen, CONFIG_QWEN, {**random_weights(rnd, SHAPES_QWEN), **random_ids(rnd)}, Eagle3Qwen, data)
        return 0
    return not (stays(three, Eagle3, data) and stays(one, Eagle1, data) and stays(qwen, Eagle3Qwen, data))


if __name__ == "__main__":
    sys.exit(main())
