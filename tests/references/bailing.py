#!/usr/bin/env python3
"""bailing.py make|verify FOLDER [NAME...]: tiny random models of Ling 2.0's architecture (BailingMoeV2ForCausalLM)
with its MTP layer, and what they compute.

transformers does not have this model. It is written here after its published modeling file
(github.com/inclusionAI/Ling-V2, models/modeling_bailing_moe_v2.py), in float32, with all positions at once.
mixtures.py describes the files and the drafts; its `compute` and its training are used here.
"""
import json
import os
import random
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

import mixtures
from dense import LEAST_IDS, LEAST_MARGIN, LEAST_MOVE

LENGTHS, FIRST, ENDS = (1, 7, 19, 101), 30, [5, 7]
LING = dict(architectures=["BailingMoeV2ForCausalLM"], model_type="bailing_moe_v2", hidden_act="silu",
            max_position_embeddings=1024, tie_word_embeddings=False, use_qkv_bias=False, use_bias=False,
            use_qk_norm=True, score_function="sigmoid", moe_router_enable_expert_bias=True, rope_scaling=None,
            norm_topk_prob=True, bos_token_id=3, eos_token_id=ENDS, torch_dtype="bfloat16")
MODELS = {
    # Routing by groups, a layer without a mixture, rotary positions in 6 of a head's 14 values, an MTP layer.
    "ling-odd": dict(seed=5101, config=LING | dict(
        vocab_size=351, hidden_size=60, intermediate_size=52, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=14, partial_rotary_factor=0.45, rope_theta=7000.0, rms_norm_eps=3e-6,
        num_experts=12, num_shared_experts=1, num_experts_per_tok=3, n_group=4, topk_group=2, moe_intermediate_size=22,
        first_k_dense_replace=1, routed_scaling_factor=2.5, num_nextn_predict_layers=1)),
    # Biases, no norms of heads, two shared experts, one expert per row with a weight that is not normalized, no MTP
    # layer.
    "ling-biased": dict(seed=5204, config=LING | dict(
        vocab_size=353, hidden_size=56, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, head_dim=14, partial_rotary_factor=1.0, rope_theta=900.0, rms_norm_eps=1e-5,
        use_qkv_bias=True, use_bias=True, use_qk_norm=False, num_experts=6, num_shared_experts=2,
        num_experts_per_tok=1, n_group=1, topk_group=1, moe_intermediate_size=18, first_k_dense_replace=0,
        routed_scaling_factor=1.3, num_nextn_predict_layers=0)),
}


# ------------------------------------------------------------------------------------------------------------- model

class Norm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return self.weight * F.rms_norm(x, (x.shape[-1],), eps=self.eps)


class GatedUnit(nn.Module):
    def __init__(self, hidden, width):
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(hidden, width, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    """Chooses the best groups by the corrected scores of their two best experts, then the best experts in these
    groups. The weights are the scores without correction."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.weight = nn.Parameter(torch.empty(c["num_experts"], c["hidden_size"]))
        self.expert_bias = nn.Buffer(torch.zeros(c["num_experts"]))

    def forward(self, x):
        scores = F.linear(x, self.weight).sigmoid()
        grouped = (scores + self.expert_bias).unflatten(-1, (self.c["n_group"], -1))
        best = grouped.topk(2).values.sum(-1).topk(self.c["topk_group"]).indices
        allowed = torch.zeros(grouped.shape[:-1], dtype=torch.bool).scatter(-1, best, True)
        chosen = grouped.masked_fill(~allowed[..., None], -torch.inf).flatten(-2).topk(
            self.c["num_experts_per_tok"]).indices
        weights = scores.gather(-1, chosen)
        if self.c["num_experts_per_tok"] > 1: weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        return chosen, weights * self.c["routed_scaling_factor"]


class Mixture(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate = Router(c)
        self.experts = nn.ModuleList(GatedUnit(c["hidden_size"], c["moe_intermediate_size"])
                                     for _ in range(c["num_experts"]))
        self.shared_experts = GatedUnit(c["hidden_size"], c["moe_intermediate_size"] * c["num_shared_experts"])

    def forward(self, x):
        chosen, weights = self.gate(x)
        every = torch.stack([expert(x) for expert in self.experts], -2)
        picked = every.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
        return (picked * weights[..., None]).sum(-2) + self.shared_experts(x)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.dim = c, c["head_dim"]
        self.counts = [c["num_attention_heads"], c["num_key_value_heads"], c["num_key_value_heads"]]
        self.query_key_value = nn.Linear(c["hidden_size"], sum(self.counts) * self.dim, bias=c["use_qkv_bias"])
        self.dense = nn.Linear(self.counts[0] * self.dim, c["hidden_size"], bias=c["use_bias"])
        if not c["use_qk_norm"]: return
        self.query_layernorm, self.key_layernorm = (Norm(self.dim, c["rms_norm_eps"]) for _ in range(2))

    def turn(self, x, first):
        """Rotates the first values of heads [heads, positions, dim]; pairs are half of these values apart."""
        dims = int(self.dim * self.c["partial_rotary_factor"])
        angles = torch.arange(first, first + x.shape[-2])[:, None] * self.c["rope_theta"] ** (
            -torch.arange(0, dims, 2, dtype=torch.float) / dims)
        left, right, rest = x.split([dims // 2, dims // 2, self.dim - dims], -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return torch.cat([left * cos - right * sin, right * cos + left * sin, rest], -1)

    def forward(self, x, first):
        q, k, v = self.query_key_value(x).unflatten(-1, (-1, self.dim)).transpose(0, 1).split(self.counts)
        if self.c["use_qk_norm"]: q, k = self.query_layernorm(q), self.key_layernorm(k)
        q, k = self.turn(q, first), self.turn(k, first)
        k, v = (one.repeat_interleave(self.counts[0] // self.counts[1], 0) for one in (k, v))
        scores = q @ k.transpose(-1, -2) / self.dim ** 0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        seen = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        return self.dense(seen.transpose(0, 1).flatten(-2))


class Layer(nn.Module):
    def __init__(self, c, sparse):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = (Norm(c["hidden_size"], c["rms_norm_eps"])
                                                               for _ in range(2))
        self.attention = Attention(c)
        self.mlp = Mixture(c) if sparse else GatedUnit(c["hidden_size"], c["intermediate_size"])

    def forward(self, x, first=0):
        x = x + self.attention(self.input_layernorm(x), first)
        return x + self.mlp(self.post_attention_layernorm(x))


class MtpLayer(Layer):
    def __init__(self, c):
        super().__init__(c, True)
        self.enorm, self.hnorm, self.final_layernorm = (Norm(c["hidden_size"], c["rms_norm_eps"]) for _ in range(3))
        self.eh_proj = nn.Linear(2 * c["hidden_size"], c["hidden_size"], bias=False)

    def forward(self, embedded, hidden):
        x = self.eh_proj(torch.cat([self.enorm(embedded), self.hnorm(hidden)], -1))
        return self.final_layernorm(super().forward(x, first=1))


class Model(nn.Module):
    """Has the interface that mixtures.py asks of a target. Its tensors have the published names."""

    greedy, draft = mixtures.Target.greedy, mixtures.Target.draft

    def __init__(self, c):
        super().__init__()
        layers = [Layer(c, i >= c["first_k_dense_replace"]) for i in range(c["num_hidden_layers"])]
        layers += [MtpLayer(c) for _ in range(c["num_nextn_predict_layers"])]
        self.model = nn.Module()
        self.model.word_embeddings = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList(layers)
        self.model.norm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        self.count = c["num_hidden_layers"]

    @property
    def mtp(self):
        return self.model.layers[-1] if len(self.model.layers) > self.count else None

    def embed(self, ids):
        return self.model.word_embeddings(ids)

    def head(self, hidden):
        return self.lm_head(hidden)

    def run(self, ids):
        x = self.embed(torch.tensor(ids))
        for layer in self.model.layers[:self.count]: x = layer(x)
        x = self.model.norm(x)
        return self.lm_head(x), x[None]

    def pairs(self, tokens, hidden):
        return self.mtp(self.embed(tokens[0]), hidden[0])[None]


# ---------------------------------------------------------------------------------------- features that are left out

def overlooked(name, folder, prompt, right):
    """Returns for each feature how far the prompt's logits are off if it is left out, relative to the largest
    logit."""
    c, moved = MODELS[name]["config"], {}
    changes = {"rope_theta": {"rope_theta": 1e4}, "routed_scaling_factor": {"routed_scaling_factor": 1.0}}
    if c["n_group"] > 1: changes["groups"] = {"n_group": 1, "topk_group": 1}
    if c["partial_rotary_factor"] < 1: changes["partial_rotary_factor"] = {"partial_rotary_factor": 1.0}
    if c["use_qk_norm"]: changes["norms of heads"] = {"use_qk_norm": False}
    for feature, change in changes.items():
        moved[feature] = load(folder, c | change).run(prompt)[0]
    for feature, part in {"correction": "expert_bias", "shared experts": "shared_experts.down_proj.weight",
                          "biases of queries, keys and values": "query_key_value.bias",
                          "bias of the output": "dense.bias"}.items():
        model = load(folder, c)
        parts = [tensor for key, tensor in model.state_dict().items() if key.endswith(part)]
        if not parts: continue
        for tensor in parts: tensor.zero_()
        moved[feature] = model.run(prompt)[0]
    return {feature: round(float((rows - right).abs().max() / right.abs().max()), 4) for feature, rows in moved.items()}


# -------------------------------------------------------------------------------------------------------------- files

@torch.no_grad()
def fill(state, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(state.items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith("expert_bias"): tensor.copy_(0.15 * noise)
        elif name.endswith("bias"): tensor.copy_(0.5 * noise)
        elif "norm" in name: tensor.copy_(1 + 0.3 * noise)
        else: tensor.copy_(noise * 1.7 * tensor.shape[-1] ** -0.5)
        if not name.endswith("expert_bias"): tensor.copy_(tensor.bfloat16().float())


def load(folder, c):
    model = Model(c).eval()
    model.load_state_dict({k: v.float() for k, v in load_file(folder / "model.safetensors").items()},
                          strict=c["use_qk_norm"] or False)
    return model


def prompts_of(name):
    rnd = random.Random(MODELS[name]["seed"])
    vocab = MODELS[name]["config"]["vocab_size"]
    return [[FIRST] + [rnd.randrange(FIRST, vocab) for _ in range(length - 1)] for length in LENGTHS]


def make(root, name):
    spec, folder = MODELS[name], root / name
    folder.mkdir(parents=True, exist_ok=True)
    model, prompts = Model(spec["config"]).eval(), prompts_of(name)
    fill(model.state_dict(), spec["seed"])
    info = {"family": name, "seed": spec["seed"], "torch": torch.__version__, "n_greedy": mixtures.GREEDY,
            "draft_depth": mixtures.DEPTH, "special_ids": {"bos": 3, "eos": ENDS}}
    if model.mtp:
        with torch.no_grad():
            texts = [(p + model.greedy(p, mixtures.GREEDY)[0], len(p)) for p in [prompts[2], prompts[-1], prompts[1]]]
        info["training"] = mixtures.train(model, texts)
        with torch.no_grad():
            for p in model.mtp.parameters(): p.copy_(p.bfloat16().float())
    state = {k: v.contiguous() if k.endswith("expert_bias") else v.bfloat16().contiguous()
             for k, v in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(spec["config"], indent=1))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS, "top_p": 0.95}))
    tensors, computed = mixtures.compute(load(folder, spec["config"]), prompts)
    info["overlooked"] = overlooked(name, folder, prompts[-1], tensors["prompt.3.logits"])
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(info | computed, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


def verify(root, name):
    c, folder = MODELS[name]["config"], root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    model = load(folder, c)
    tensors, again = mixtures.compute(model, info["prompts"])
    assert stored.keys() == tensors.keys() and all(again[k] == info[k] for k in again)
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    right, moved = stored["prompt.3.logits"], info["overlooked"]
    noise = float((model.double().run(info["prompts"][-1])[0].float() - right).abs().max() / right.abs().max())
    least = min(g["min_margin"] for g in info["greedy"])
    loops = [(loop["accepted_total"], loop["drafted_total"]) for loop in info.get("draft", {}).get("loop", [])]
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, an overlooked "
          f"feature moves {min(moved.values())} to {max(moved.values())}, drafts {loops}", flush=True)
    assert apart < 1e-5 and noise < 1e-5 and min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, moved
    assert all(len(set(g["tokens"])) >= LEAST_IDS for g in info["greedy"])


@torch.no_grad()
def checked(root, name):
    verify(root, name)


def main(verb, root, *names):
    torch.set_num_threads(1)
    for name in names or MODELS:
        if verb == "make": make(Path(root), name)
        checked(Path(root), name)


if __name__ == "__main__": main(*sys.argv[1:])
