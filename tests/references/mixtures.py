#!/usr/bin/env python3
"""mixtures.py make|verify FOLDER [NAME...]: tiny random mixtures of experts, and what transformers computes with them.

make    writes FOLDER/NAME: the model in its published form, reference.json, reference.safetensors
verify  reads it back, only from the files, and computes everything again; then with transformers' cached generation,
        and the first draft with its own MTP model (it has none for GLM-4.7-Flash)

The models are Qwen3-MoE, and GLM-4.5, DeepSeek-V3, DeepSeek-V3.2 and GLM-4.7-Flash with their MTP layers. Their
dimensions are such that code written only for the published ones would get them wrong. As in make_reference.py:
float32, eager attention, no cache, one thread. Each tokenizer is that of glm-ocr-odd, with other rules for Qwen.
README.md describes the files of a reference. Drafts are defined so:

  There is a pair p for each position that the target has run: z = eh_proj([enorm(embedding of token p + 1) ;
  hnorm(h)]), where h is the target's row p after its final norm. z goes through one decoder layer, at the rotary
  position of token p + 1, and sees the pairs before it. m = norm(z); logits = head(m). The last pair gives the draft.
  For the next draft, m takes the place of h, and the draft that of token p + 1.
"""
import copy
import json
import os
import random
import re
import shutil
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_layers import MtpModel
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek_v3
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as deepseek_v32
from transformers.models.glm4_moe import modeling_glm4_moe as glm4_moe
from transformers.models.glm4_moe_lite import modeling_glm4_moe_lite as glm4_moe_lite

import fp8_codes

GREEDY, DEPTH, ROUND_DRAFT, CASES = 48, 4, 3, (1, 2, 7, 41)
FIRST, LENGTHS, TEXT = 270, (6, 13, 40, 101), "The quick brown fox jumps over the lazy dog"
VOCAB = 523
EAGER = dict(attn_implementation="eager", experts_implementation="eager")

QWEN = dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", vocab_size=VOCAB, hidden_size=96,
            intermediate_size=44, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=22,
            hidden_act="silu", max_position_embeddings=1280, rms_norm_eps=3e-6, rope_theta=7000.0, rope_scaling=None,
            attention_bias=False, tie_word_embeddings=False, num_experts=7, num_experts_per_tok=3,
            moe_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[],
            eos_token_id=[504, 511])
GLM = dict(architectures=["Glm4MoeForCausalLM"], model_type="glm4_moe", vocab_size=VOCAB, hidden_size=96,
           intermediate_size=64, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3, head_dim=20,
           partial_rotary_factor=0.5, hidden_act="silu", max_position_embeddings=1280, rms_norm_eps=1e-5,
           rope_theta=9000.0, rope_scaling=None, attention_bias=True, use_qk_norm=True, tie_word_embeddings=False,
           n_routed_experts=9, num_experts_per_tok=3, n_shared_experts=2, moe_intermediate_size=32, n_group=3,
           topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5, first_k_dense_replace=2,
           num_nextn_predict_layers=1, eos_token_id=[504, 511])

DEEPSEEK = dict(architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", vocab_size=VOCAB, hidden_size=90,
                intermediate_size=76, num_hidden_layers=3, num_attention_heads=5, num_key_value_heads=5,
                q_lora_rank=44, kv_lora_rank=36, qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18,
                hidden_act="silu", max_position_embeddings=1280, rms_norm_eps=3e-6, rope_theta=9000.0,
                rope_scaling=dict(type="yarn", factor=12.8, original_max_position_embeddings=100, beta_fast=9,
                                  beta_slow=2, mscale=1.0, mscale_all_dim=0.6),
                attention_bias=False, tie_word_embeddings=False, n_routed_experts=9, num_experts_per_tok=3,
                n_shared_experts=2, moe_intermediate_size=26, n_group=3, topk_group=2, norm_topk_prob=True,
                routed_scaling_factor=2.5, first_k_dense_replace=1, scoring_func="sigmoid", topk_method="noaux_tc",
                moe_layer_freq=1, num_nextn_predict_layers=1, eos_token_id=[504, 511])
FLASH = dict(architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite", vocab_size=VOCAB, hidden_size=96,
             intermediate_size=64, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=6, q_lora_rank=64,
             kv_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=24, v_head_dim=40, hidden_act="silu",
             max_position_embeddings=1280, rms_norm_eps=1e-5,
             rope_parameters=dict(rope_type="default", rope_theta=7000.0, partial_rotary_factor=1.0),
             attention_bias=False, tie_word_embeddings=False, n_routed_experts=7, num_experts_per_tok=3,
             n_shared_experts=1, moe_intermediate_size=32, n_group=1, topk_group=1, norm_topk_prob=True,
             routed_scaling_factor=1.8, mlp_layer_types=["dense"] * 2 + ["sparse"] * 2, num_nextn_predict_layers=1,
             eos_token_id=[504, 511])

# fused: experts are one tensor, as transformers saves them now. own: the MTP layer has its own embedding table and
# head. fp8: the layers' matrices, except routers, are codes with a scale for each block of 128 x 128.
MODELS = {
    "qwen3-moe-odd": dict(seed=631, config=QWEN, stored="bfloat16", shards=2),
    "qwen3-moe-raw": dict(seed=632, stored="float16", fused=True, config=QWEN | dict(
        hidden_size=70, num_hidden_layers=2, head_dim=14, num_attention_heads=4, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=26, norm_topk_prob=False, tie_word_embeddings=True)),
    "qwen3-moe-dense": dict(seed=633, stored="bfloat16", config=QWEN | dict(
        hidden_size=58, num_hidden_layers=4, head_dim=18, num_attention_heads=2, num_key_value_heads=1,
        moe_intermediate_size=18, attention_bias=True, decoder_sparse_step=2, mlp_only_layers=[1])),
    "glm4-moe-odd": dict(seed=621, config=GLM, stored="bfloat16", shards=2),
    "glm4-moe-own": dict(seed=622, stored="bfloat16", fused=True, own=True, config=GLM | dict(
        hidden_size=70, num_hidden_layers=3, head_dim=28, num_attention_heads=4, num_key_value_heads=1, n_group=1,
        topk_group=1, n_shared_experts=1, moe_intermediate_size=26, norm_topk_prob=False, routed_scaling_factor=1.0,
        first_k_dense_replace=1, attention_bias=False, use_qk_norm=False)),
    "glm4-moe-fp8": dict(seed=623, stored="bfloat16", fp8=True, config=GLM | dict(
        hidden_size=150, num_hidden_layers=2, head_dim=28, num_attention_heads=5, num_key_value_heads=1, n_group=1,
        topk_group=1, n_routed_experts=5, n_shared_experts=1, moe_intermediate_size=38, first_k_dense_replace=1,
        **fp8_codes.CONFIG)),
    "glm4-moe-dense": dict(seed=624, stored="bfloat16", config={k: v for k, v in GLM.items() if k not in (
        "num_nextn_predict_layers",)} | dict(
            hidden_size=58, intermediate_size=46, num_hidden_layers=2, head_dim=28, num_attention_heads=2,
            num_key_value_heads=1, n_routed_experts=4, n_group=2, topk_group=2, num_experts_per_tok=4,
            moe_intermediate_size=24, first_k_dense_replace=2, attention_bias=False,
            rope_scaling=dict(rope_type="yarn", factor=5.0, original_max_position_embeddings=40, beta_fast=8))),
    "deepseek-v3-odd": dict(seed=641, config=DEEPSEEK, stored="bfloat16", shards=2),
    "deepseek-v3-own": dict(seed=642, stored="float16", fused=True, own=True, config=DEEPSEEK | dict(
        hidden_size=70, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, q_lora_rank=None,
        rope_interleave=False, rope_scaling=None, kv_lora_rank=17, qk_rope_head_dim=6, qk_nope_head_dim=9, v_head_dim=7,
        n_group=1, topk_group=1, norm_topk_prob=False, n_shared_experts=1)),
    # The MTP layer has an indexer too. Both indexers select all positions, because these texts are short.
    "deepseek-v3.2-mtp": dict(seed=651, stored="bfloat16", config=DEEPSEEK | dict(
        architectures=["DeepseekV32ForCausalLM"], model_type="deepseek_v32", hidden_size=78, num_attention_heads=4,
        num_key_value_heads=4, n_routed_experts=8, n_shared_experts=1, n_group=4, index_topk=1200, index_n_heads=3,
        index_head_dim=18)),
    "glm-4.7-flash-odd": dict(seed=647, config=FLASH, stored="bfloat16"),
    "deepseek-v3-fp8": dict(seed=644, stored="bfloat16", fp8=True, config=DEEPSEEK | dict(
        hidden_size=150, num_hidden_layers=2, q_lora_rank=140, kv_lora_rank=134, qk_nope_head_dim=50, v_head_dim=36,
        n_routed_experts=6, n_shared_experts=1, moe_intermediate_size=38, **fp8_codes.CONFIG)),
}

# The classes of the decoder layer and of the norm in an MTP layer, for each model_type.
LAYERS = {"glm4_moe": (glm4_moe.Glm4MoeDecoderLayer, glm4_moe.Glm4MoeRMSNorm),
          "deepseek_v3": (deepseek_v3.DeepseekV3DecoderLayer, deepseek_v3.DeepseekV3RMSNorm),
          "deepseek_v32": (deepseek_v32.DeepseekV32DecoderLayer, deepseek_v32.DeepseekV32RMSNorm),
          "glm4_moe_lite": (glm4_moe_lite.Glm4MoeLiteDecoderLayer, glm4_moe_lite.Glm4MoeLiteRMSNorm)}


WIDE = {"embed": 2.0, "lm_head": 3.0, "mlp.gate.weight": 1.5}  # matrices wider than 1 / sqrt(columns)


def sparse(config):
    """Returns a configuration for an MTP layer, which is always a mixture (transformers' get_mtp_config), even if all
    other layers are dense."""
    config = copy.copy(config)
    if hasattr(config, "first_k_dense_replace"): config.first_k_dense_replace = 0
    return config


class Mtp(nn.Module):
    def __init__(self, config, own):
        super().__init__()
        layer, norm_of = LAYERS[config.model_type]
        norm = lambda: norm_of(config.hidden_size, eps=config.rms_norm_eps)
        self.enorm, self.hnorm, self.norm = norm(), norm(), norm()
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = layer(sparse(config), config.num_hidden_layers - 1)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size) if own else None
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False) if own else None


class Target:
    def __init__(self, model, mtp=None):
        self.model, self.mtp = model.eval(), mtp
        self.embed = mtp.embed if mtp and mtp.embed else model.model.embed_tokens
        self.head = mtp.head if mtp and mtp.head else model.lm_head

    def run(self, ids):
        hidden = self.model.model(torch.tensor([ids]), use_cache=False).last_hidden_state
        return self.model.lm_head(hidden)[0], hidden

    def greedy(self, ids, count):
        ids, rows = list(ids), []
        for _ in range(count):
            rows.append(self.run(ids)[0][-1])
            ids.append(int(rows[-1].argmax()))
        return ids[-count:], torch.stack(rows)

    def pairs(self, tokens, hidden):
        """Runs all pairs at once. Returns m, [1, T, hidden]. tokens: those that follow the rows of hidden."""
        m, e = self.mtp, self.embed(tokens)
        count = e.shape[1]
        positions = torch.arange(1, count + 1)[None]
        seen = torch.where(torch.arange(count)[None] <= torch.arange(count)[:, None], 0.0, torch.finfo(e.dtype).min)
        z = m.eh_proj(torch.cat([m.enorm(e), m.hnorm(hidden)], -1))
        out = m.layer(z, attention_mask=seen[None, None], position_ids=positions,
                      position_embeddings=self.model.model.rotary_emb(e, positions))
        return m.norm(out[0] if isinstance(out, tuple) else out)

    def draft(self, ids, depth):
        hidden, tokens, rows = self.run(ids[:-1])[1], torch.tensor([ids[1:]]), []
        for _ in range(depth):
            m = self.pairs(tokens, hidden)
            rows.append(self.head(m[0, -1]))
            tokens = torch.cat([tokens, rows[-1].argmax()[None, None]], 1)
            hidden = torch.cat([hidden, m[:, -1:]], 1)
        return torch.stack(rows), tokens[0, -depth:].tolist()


def build(name):
    spec = MODELS[name]
    config = AutoConfig.for_model(**{k: v for k, v in spec["config"].items()
                                     if k not in ("architectures", "quantization_config")})
    model = AutoModelForCausalLM.from_config(config, **EAGER).float()
    return model, Mtp(model.config, spec.get("own")).float() if "n_routed_experts" in spec["config"] else None


@torch.no_grad()
def fill(module, seed, stored, tied=False):
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(module.state_dict().items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if name.endswith("e_score_correction_bias"):
            tensor.copy_(0.15 * noise)
            continue
        if "norm" in name: noise = 1 + 0.25 * noise
        elif name.endswith("bias"): noise = 0.3 * noise
        elif "embed" in name and not tied: pass
        else:
            wide = next((w for part, w in WIDE.items() if part in name), 1.0)
            noise = wide * noise / tensor.shape[-1] ** 0.5
        tensor.copy_(noise.to(getattr(torch, stored)).float())


# ------------------------------------------------------------------------------------------------------------- files

def split(state):
    """Splits stacks into a tensor for each matrix of each expert."""
    out = {}
    for name, tensor in state.items():
        if not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
            out[name] = tensor
            continue
        stem, kind = name.rsplit(".", 1)
        for e, matrix in enumerate(tensor):
            parts = {"gate": matrix[:len(matrix) // 2], "up": matrix[len(matrix) // 2:]}
            for part, rows in (parts if kind == "gate_up_proj" else {"down": matrix}).items():
                out[f"{stem}.{e}.{part}_proj.weight"] = rows
    return out


def join(state):
    out, experts = {}, {}
    for name, tensor in state.items():
        one = re.fullmatch(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.weight", name)
        if one: experts.setdefault(one[1], {})[int(one[2]), one[3]] = tensor
        else: out[name] = tensor
    for stem, of in experts.items():
        count = len(of) // 3
        out[stem + ".gate_up_proj"] = torch.stack([torch.cat([of[e, "gate"], of[e, "up"]]) for e in range(count)])
        out[stem + ".down_proj"] = torch.stack([of[e, "down"] for e in range(count)])
    return out


RENAMED = {"norm.weight": "shared_head.norm.weight", "embed.weight": "embed_tokens.weight",
           "head.weight": "shared_head.head.weight"}


def save(folder, name, model, mtp):
    spec = MODELS[name]
    state = dict(model.state_dict())
    if spec["config"]["tie_word_embeddings"]: del state["lm_head.weight"]
    if mtp:
        layer = f"model.layers.{spec['config']['num_hidden_layers']}."
        state |= {layer + RENAMED.get(k, k.removeprefix("layer.")): v for k, v in mtp.state_dict().items()}
        state.setdefault(layer + "embed_tokens.weight", state["model.embed_tokens.weight"])
        state.setdefault(layer + "shared_head.head.weight", state["lm_head.weight"])
    state = state if spec.get("fused") else split(state)
    kept = lambda k: torch.float32 if k.endswith("e_score_correction_bias") else getattr(torch, spec["stored"])
    state = {k: v.to(kept(k)).contiguous().clone() for k, v in sorted(state.items())}
    if spec.get("fp8"): state = fp8_codes.to_codes(state, re.compile(r"layers\..*_proj\.weight$").search)
    shards, names = spec.get("shards", 1), list(state)
    for i in range(shards):
        file = "model.safetensors" if shards == 1 else f"model-{i + 1:05}-of-{shards:05}.safetensors"
        save_file({k: state[k] for k in names[i::shards]}, folder / file, metadata={"format": "pt"})
    if shards > 1:
        where = {k: f"model-{i % shards + 1:05}-of-{shards:05}.safetensors" for i, k in enumerate(names)}
        index = {"metadata": {"total_size": sum(v.nbytes for v in state.values())}, "weight_map": where}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps(spec["config"] | {"torch_dtype": spec["stored"]}, indent=1))


def load(folder, name):
    model, mtp = build(name)
    state = {k: v for file in sorted(folder.glob("model*.safetensors")) for k, v in load_file(file).items()}
    state = join(fp8_codes.from_codes(state))
    if mtp:
        layer = f"model.layers.{MODELS[name]['config']['num_hidden_layers']}."
        back = {v: k for k, v in RENAMED.items()}
        part = {k.removeprefix(layer): state.pop(k) for k in list(state) if k.startswith(layer)}
        beside = ("enorm.weight", "hnorm.weight", "eh_proj.weight")
        part = {back.get(k, k if k in beside else "layer." + k): v for k, v in part.items()}
        if mtp.embed is None:
            assert torch.equal(part.pop("embed.weight"), state["model.embed_tokens.weight"])
            assert torch.equal(part.pop("head.weight"), state["lm_head.weight"])
        mtp.load_state_dict(part)
    if MODELS[name]["config"]["tie_word_embeddings"]: state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    return Target(model, mtp.eval() if mtp else None)


def copy_tokenizer(root, folder, qwen):
    spec = json.loads((root / "glm-ocr-odd/tokenizer.json").read_text())
    settings = json.loads((root / "glm-ocr-odd/tokenizer_config.json").read_text())
    if qwen:
        spec["normalizer"] = {"type": "NFC"}
        spec["model"]["ignore_merges"] = False
        cut = spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]
        cut["Regex"] = cut["Regex"].replace(r"\p{N}{1,3}", r"\p{N}")
        names = {505: "<|im_start|>", 511: "<|im_end|>"}
        for token in spec["added_tokens"]: token["content"] = names.get(token["id"], token["content"])
        settings["eos_token"] = "<|im_end|>"
    (folder / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [504, 511], "top_p": 0.95}, indent=1))


# -------------------------------------------------------------------------------------------------------- references

def train(target, texts, steps=150, enough=0.7):
    """Trains by Adam on greedy texts, two steps deep, until the first draft is right often enough."""
    parameters = list(target.mtp.parameters())
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    with torch.no_grad():
        seen = [(torch.tensor([ids]), target.run(ids[:-1])[1], first) for ids, first in texts]
    for step in range(steps):
        loss, right, rows = 0.0, 0, 0
        for ids, hidden, first in seen:
            known = hidden
            for depth in range(2):
                m = target.pairs(ids[:, 1:], known)
                scores, answer = target.head(m[0, first:-1]), ids[0, first + 2:]
                loss = loss + F.cross_entropy(scores, answer)
                if depth == 0: right, rows = right + int((scores.argmax(-1) == answer).sum()), rows + len(answer)
                known = torch.cat([hidden[:, :1], m[:, :-1]], 1)
        if right >= enough * rows: break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"steps": step, "right": round(right / rows, 4)}


def margins(rows):
    best, second = rows.topk(2, -1).values.unbind(-1)
    return [round(float(m), 6) for m in best - second]


@torch.no_grad()
def compute(target, prompts):
    tensors, info = {}, {"prompts": prompts, "greedy": []}
    if target.mtp: info["draft"] = {"cases": [], "loop": []}
    for i, prompt in enumerate(prompts): tensors[f"prompt.{i}.logits"] = target.run(prompt)[0]
    for i in (2, len(prompts) - 1):
        ids, rows = target.greedy(prompts[i], GREEDY + 2 * DEPTH)
        tensors[f"greedy.{i}.logits"] = rows[:GREEDY]
        info["greedy"].append({"prompt": i, "tokens": ids[:GREEDY], "margins": margins(rows[:GREEDY]),
                               "min_margin": min(margins(rows[:GREEDY]))})
        if target.mtp: compute_drafts(target, prompts[i], i, ids, tensors, info["draft"])
    return tensors, info


def compute_drafts(target, prompt, i, ids, tensors, info):
    for done in CASES:
        logits, drafted = target.draft(prompt + ids[:done], DEPTH)
        tensors[f"draft.{i}.{done}.logits"] = logits
        info["cases"].append({"case": f"draft.{i}.{done}", "prompt": i, "n_generated": done, "L": len(prompt) + done,
                              "tokens": drafted, "margins": margins(logits), "target_next": ids[done:done + DEPTH]})
    done, rounds = 1, []
    while done < GREEDY:
        drafted = target.draft(prompt + ids[:done], ROUND_DRAFT)[1]
        accepted = next((k for k in range(ROUND_DRAFT) if drafted[k] != ids[done + k]), ROUND_DRAFT)
        rounds.append({"n_generated": done, "drafted": drafted, "accepted": accepted})
        done += accepted + 1
    info["loop"].append({"prompt": i, "draft_length": ROUND_DRAFT, "rounds": rounds, "n_rounds": len(rounds),
                         "drafted_total": ROUND_DRAFT * len(rounds),
                         "accepted_total": sum(r["accepted"] for r in rounds)})


def make(root, name):
    spec, folder = MODELS[name], root / name
    folder.mkdir(parents=True, exist_ok=True)
    copy_tokenizer(root, folder, "num_experts" in spec["config"])
    rnd = random.Random(spec["seed"])
    some = lambda count: [rnd.randrange(FIRST, 504) for _ in range(count)]
    prompts = [[FIRST]] + [some(n) for n in LENGTHS]
    model, mtp = build(name)
    tied = spec["config"]["tie_word_embeddings"]
    fill(model, spec["seed"], spec["stored"], tied)
    if tied: model.lm_head.weight = model.model.embed_tokens.weight
    info = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": GREEDY, "draft_depth": DEPTH, "special_ids": {"bos": None, "eos": [504, 511]}}
    if mtp:
        fill(mtp, spec["seed"] + 100, spec["stored"])
        target = Target(model, mtp)
        with torch.no_grad():
            texts = [(p + target.greedy(p, GREEDY)[0], len(p)) for p in [prompts[2], prompts[-1], some(9), some(20)]]
        info["training"] = train(target, texts)
        with torch.no_grad():
            for p in mtp.parameters(): p.copy_(p.to(getattr(torch, spec["stored"])).float())
    save(folder, name, model, mtp)
    tensors, computed = compute(load(folder, name), prompts)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(info | computed, separators=(",", ":")))
    loops = [(loop["accepted_total"], loop["drafted_total"]) for loop in computed.get("draft", {}).get("loop", [])]
    least = min(g["min_margin"] for g in computed["greedy"])
    print(f"{name}: smallest margin {least}, {info.get('training')}, {loops}")


@torch.no_grad()
def mtp_models_draft(target, ids):
    """Returns the first draft of transformers' own MTP model with the same weights."""
    model = MtpModel(target.model, 1).float().eval()
    renamed = lambda k: "post_norm.weight" if k == "norm.weight" else re.sub("^layer", "mtp_block", k)
    own = ("embed.weight", "head.weight")
    model.layers[0].load_state_dict({renamed(k): v for k, v in target.mtp.state_dict().items() if k not in own})
    hidden, tokens = target.run(ids[:-1])[1], torch.tensor([ids[1:]])
    positions = torch.arange(1, len(ids))[None]
    seen = torch.where(positions <= positions.T, 0.0, torch.finfo(torch.float32).min)[None, None]
    embedded = target.embed(tokens)
    m = model.layers[0](embedded, hidden, position_embeddings=target.model.model.rotary_emb(embedded, positions),
                        attention_mask=seen, position_ids=positions, past_key_values=None)
    return target.head(m[0, -1])


def verify(root, name):
    folder = root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    target = load(folder, name)
    tensors, again = compute(target, info["prompts"])
    assert stored.keys() == tensors.keys() and all(again[k] == info[k] for k in again)
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    for greedy in info["greedy"]:
        prompt = torch.tensor([info["prompts"][greedy["prompt"]]])
        made = target.model.generate(prompt, max_new_tokens=GREEDY, do_sample=False, eos_token_id=None, pad_token_id=0)
        assert made[0, prompt.shape[1]:].tolist() == greedy["tokens"]
    for case in info.get("draft", {}).get("cases", []) if name != "glm-4.7-flash-odd" else []:
        text = next(g["tokens"] for g in info["greedy"] if g["prompt"] == case["prompt"])
        row = mtp_models_draft(target, info["prompts"][case["prompt"]] + text[:case["n_generated"]])
        apart = max(apart, float((row - stored[case["case"] + ".logits"][0]).abs().max()))
    assert apart < 1e-4, apart
    print(f"{name}: verified within {apart:.1e}")


def main():
    torch.set_num_threads(1)
    for name in sys.argv[3:] or MODELS: {"make": make, "verify": verify}[sys.argv[1]](Path(sys.argv[2]), name)


if __name__ == "__main__": main()
