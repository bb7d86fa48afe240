#!/usr/bin/env python3
"""qwen35.py make|verify FOLDER [NAME...]: tiny random Qwen3.5 and Qwen3-Next models with their MTP layers, and what
transformers computes with them.

make    writes FOLDER/NAME: the model in its published form, reference.json, reference.safetensors
verify  reads it back, only from the files, and computes everything again, also with a cache

The dimensions are such that code written only for the published ones would get them wrong: heads that together are not
as wide as the stream, no powers of two, a DeltaNet layer after the last layer with attention, 1, 2 and 3 times as many
value heads as key heads. As in make_reference.py: float32, eager attention, no cache, one thread; README.md describes
the files.

MTP: pair p has the target's row p after its final norm and the embedding e of token p + 1, at rotary position p + 1.
fc([pre_fc_norm_embedding(e) ; pre_fc_norm_hidden(row)]) goes through one decoder layer with attention, a norm, and the
target's head. In a chain, the normed row takes the place of the target's row in the next pair.
"""
import json
import os
import random
import re
import shutil
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig, Qwen3_5TextConfig,
                          Qwen3NextConfig, Qwen3NextForCausalLM)
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as mixture
from transformers.models.qwen3_next import modeling_qwen3_next as following

import fp8_codes
from make_reference import CASES, DEPTH, GREEDY, ROUND_DRAFT, margins, rounds

LENGTHS = (1, 6, 17, 75, 101)       # of prompts: past a block of 64 positions, and past two with greedy text
GREEDY_PROMPTS = (2, 4)
FIRST_PLAIN, LAST_PLAIN = 270, 499  # ids of the tokenizer that are neither bytes nor control tokens
END = 502                           # <|im_end|>
FULL, LINEAR = "full_attention", "linear_attention"

MODELS = {
    # Only a text model, with a head of its own, MTP tensors among the model's, and more rows than the tokenizer has
    # ids.
    "qwen35-odd": dict(seed=700, nested=False, mtp="model.mtp.", tokenizer=True, kinds="lflll" "fl", config=dict(
        vocab_size=517, hidden_size=44, intermediate_size=68, num_attention_heads=6, num_key_value_heads=3,
        head_dim=20, linear_num_key_heads=2, linear_num_value_heads=6, linear_key_head_dim=12,
        linear_value_head_dim=10, linear_conv_kernel_dim=3, rms_norm_eps=3e-6, tie_word_embeddings=False),
        rope=dict(rope_theta=5000.0, partial_rotary_factor=0.4, mrope_section=[2, 1, 1])),
    # Nested, with a vision encoder; tied; as many value heads as key heads, and key heads are the wider ones.
    "qwen35-tied": dict(seed=1007, nested=True, mtp="mtp.", tokenizer=False, kinds="llfl", tower=True, config=dict(
        vocab_size=401, hidden_size=36, intermediate_size=52, num_attention_heads=4, num_key_value_heads=1,
        head_dim=14, linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=18,
        linear_value_head_dim=20, linear_conv_kernel_dim=4, tie_word_embeddings=True),
        rope=dict(rope_theta=900.0, partial_rotary_factor=0.75, mrope_section=[2, 1, 2])),
    # Three of seven experts are chosen. Each has its own tensors, in the MTP layer too.
    "qwen35-moe-odd": dict(seed=800, nested=True, mtp="mtp.", tokenizer=False, kinds="lfl", apart=True, config=dict(
        vocab_size=403, hidden_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=10, linear_value_head_dim=14,
        linear_conv_kernel_dim=4, num_experts=7, num_experts_per_tok=3, moe_intermediate_size=18,
        shared_expert_intermediate_size=22, tie_word_embeddings=False),
        rope=dict(rope_theta=20000.0, partial_rotary_factor=0.5, mrope_section=[2, 1, 1])),
    # Experts are one tensor; tied; the shared expert is narrower than the others.
    "qwen35-moe-tied": dict(seed=911, nested=False, mtp="mtp.", tokenizer=False, kinds="llf", config=dict(
        vocab_size=405, hidden_size=48, num_attention_heads=2, num_key_value_heads=2, head_dim=18,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=14, linear_value_head_dim=8,
        linear_conv_kernel_dim=2, num_experts=5, num_experts_per_tok=2, moe_intermediate_size=26,
        shared_expert_intermediate_size=12, tie_word_embeddings=True),
        rope=dict(rope_theta=7000.0, partial_rotary_factor=0.34, mrope_section=[1, 1, 1])),
    # Projections are FP8, in the MTP layer too. None of their sizes is a multiple of a block, and value heads begin
    # within blocks.
    "qwen35-fp8": dict(seed=1143, nested=True, mtp="mtp.", tokenizer=False, kinds="lf", fp8=True, config=dict(
        vocab_size=331, hidden_size=150, intermediate_size=134, num_attention_heads=4, num_key_value_heads=2,
        head_dim=18, linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=22,
        linear_value_head_dim=26, linear_conv_kernel_dim=4, tie_word_embeddings=True),
        rope=dict(rope_theta=3000.0, partial_rotary_factor=0.45, mrope_section=[2, 1, 1])),
    # Qwen3-Next: projections are ordered by key heads; twice as many value heads as key heads; 3 of 7 experts are
    # chosen.
    "qwen3-next-odd": dict(seed=1200, nested=False, mtp="mtp.", tokenizer=False, kinds="lfl", apart=True, next=True,
        config=dict(
        vocab_size=359, hidden_size=44, intermediate_size=36, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, linear_num_key_heads=3, linear_num_value_heads=6, linear_key_head_dim=10,
        linear_value_head_dim=14, linear_conv_kernel_dim=4, num_experts=7, num_experts_per_tok=3,
        moe_intermediate_size=18, shared_expert_intermediate_size=22, rms_norm_eps=3e-6, tie_word_embeddings=False),
        rope=dict(rope_theta=9000.0, partial_rotary_factor=0.5)),
    # Weights that are not normalized, a layer without a mixture, as many value heads as key heads, tied, no MTP layer.
    "qwen3-next-dense": dict(seed=1323, nested=False, mtp=None, tokenizer=False, kinds="llfl", next=True, config=dict(
        vocab_size=349, hidden_size=40, intermediate_size=36, num_attention_heads=6, num_key_value_heads=3,
        head_dim=16, linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=12,
        linear_value_head_dim=8, linear_conv_kernel_dim=3, num_experts=5, num_experts_per_tok=2,
        moe_intermediate_size=22, shared_expert_intermediate_size=14, norm_topk_prob=False, mlp_only_layers=[1],
        tie_word_embeddings=True),
        rope=dict(rope_theta=500.0)),
}

# In published FP8 files these tensors are codes. in_proj_a, in_proj_b and the MTP layer's fc are not.
IN_CODES = re.compile(r"layers\..*(_proj|_proj_qkv|_proj_z)\.weight$")


# ----------------------------------------------------------------------------------------------------------- building

class Mtp(nn.Module):
    """The MTP layer. Its tensors have the published names without "mtp."."""

    def __init__(self, config, parts):
        super().__init__()
        layer, norm = parts
        only = type(config)(**(config.to_dict() | {"layer_types": [FULL], "num_hidden_layers": 1}))
        only._attn_implementation = only._experts_implementation = "eager"
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden, self.norm = (
            norm(config.hidden_size, eps=config.rms_norm_eps) for _ in range(3))
        self.layers = nn.ModuleList([layer(only, 0)])

    def forward(self, embeddings, hidden, rotary):
        count = hidden.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        x = self.fc(torch.cat([self.pre_fc_norm_embedding(embeddings), self.pre_fc_norm_hidden(hidden)], -1))
        x = self.layers[0](x, position_embeddings=rotary, attention_mask=mask)
        return self.norm(x[0] if isinstance(x, tuple) else x)


class Both(nn.Module):
    """A target and its MTP layer."""

    def __init__(self, spec):
        super().__init__()
        moe = "num_experts" in spec["config"]
        kinds = [LINEAR if kind == "l" else FULL for kind in spec["kinds"]]
        following_kind = (Qwen3NextConfig, Qwen3NextForCausalLM, following.Qwen3NextDecoderLayer,
                          following.Qwen3NextRMSNorm)
        kind = following_kind if spec.get("next") else (
            Qwen3_5MoeTextConfig, Qwen3_5MoeForCausalLM, mixture.Qwen3_5MoeDecoderLayer, mixture.Qwen3_5MoeRMSNorm
            ) if moe else (Qwen3_5TextConfig, Qwen3_5ForCausalLM, dense.Qwen3_5DecoderLayer, dense.Qwen3_5RMSNorm)
        more = {} if spec.get("next") else {"mrope_interleaved": True}
        config = kind[0](
            **spec["config"], layer_types=kinds, num_hidden_layers=len(kinds), max_position_embeddings=1200,
            eos_token_id=END if spec["tokenizer"] else 7,
            rope_parameters={"rope_type": "default"} | more | spec["rope"])
        config._attn_implementation = config._experts_implementation = "eager"
        self.config = config
        self.target = kind[1](config)
        self.axes = () if spec.get("next") else (3,)
        self.mtp = Mtp(config, kind[2:]) if spec["mtp"] else None
        self.float().eval()

    def run(self, ids):
        """Returns the logits, and the rows after the final norm."""
        out = self.target.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
        return self.target.lm_head(out), out

    def embed(self, ids):
        return self.target.model.embed_tokens(torch.tensor(ids))

    def pairs(self, embeddings, hidden):
        places = torch.arange(1, len(hidden) + 1)[None].expand(*self.axes, 1, -1)
        rotary = self.target.model.rotary_emb(hidden[None], places)
        return self.mtp(embeddings[None], hidden[None], rotary)[0]

    @torch.no_grad()
    def draft(self, ids, depth):
        embeddings, hidden = self.embed(ids[1:]), self.run(ids[:-1])[1]
        rows, drafted = [], []
        for _ in range(depth):
            left = self.pairs(embeddings, hidden)[-1:]
            rows.append(self.target.lm_head(left)[0])
            drafted.append(int(rows[-1].argmax()))
            embeddings, hidden = torch.cat([embeddings, self.embed(drafted[-1:])]), torch.cat([hidden, left])
        return torch.stack(rows), drafted

    @torch.no_grad()
    def greedy(self, prompt, count):
        ids, rows = [], []
        while len(ids) < count:
            rows.append(self.run(prompt + ids)[0][-1])
            ids.append(int(rows[-1].argmax()))
        return ids, torch.stack(rows)


@torch.no_grad()
def fill(model, spec):
    torch.manual_seed(spec["seed"])
    for name, tensor in model.named_parameters():
        noise = torch.randn_like(tensor)
        if name.endswith("linear_attn.norm.weight"): tensor.copy_(1 + 0.2 * noise)
        elif name.endswith("norm.weight"): tensor.copy_(0.2 * noise)
        elif name.endswith("A_log"): tensor.copy_(torch.log(0.05 + 4 * torch.rand_like(tensor)))
        elif name.endswith(("dt_bias", "conv1d.weight")): tensor.copy_(0.6 * noise)
        elif name.endswith("mlp.gate.weight"): tensor.copy_(noise * 3 * tensor.shape[-1] ** -0.5)
        else: tensor.copy_(noise * 1.7 * tensor.shape[-1] ** -0.5)
        if name.endswith("layernorm.weight"): tensor.copy_(0.2 * noise)
    round_weights(model, spec)


def round_weights(module, spec):
    module.load_state_dict(fp8_codes.from_codes(as_stored(module.state_dict(), spec)))


def as_stored(state, spec):
    if spec.get("fp8"): state = fp8_codes.to_codes(state, IN_CODES.search)
    wide = lambda k: k.endswith("_scale_inv") or k + "_scale_inv" in state
    return {k: (v if wide(k) else v.bfloat16()).clone().contiguous() for k, v in state.items()}


def train(model, spec, prompts):
    """Trains the MTP layer for a few steps on the target's own text, so that some drafts are right. Returns the number
    of steps and the share of right drafts."""
    with torch.no_grad():
        lessons = []
        for prompt in prompts:
            ids = prompt + model.greedy(prompt, GREEDY)[0]
            lessons.append((ids, model.embed(ids[1:]), model.run(ids[:-1])[1], len(prompt)))
    optimizer = torch.optim.Adam(model.mtp.parameters(), lr=3e-3)
    for step in range(200):
        loss, right, count = 0.0, 0, 0
        for ids, embeddings, hidden, first in lessons:
            rows = model.target.lm_head(model.pairs(embeddings, hidden))[first - 1:-1]
            wanted = torch.tensor(ids[first + 1:])
            loss = loss + nn.functional.cross_entropy(rows, wanted)
            right, count = right + int((rows.argmax(-1) == wanted).sum()), count + len(wanted)
        if right > 0.72 * count: break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.mtp.requires_grad_(False)
    round_weights(model.mtp, spec)
    return {"steps": step, "accuracy": round(right / count, 4)}


# -------------------------------------------------------------------------------------------------------------- files

def split_experts(state):
    """Splits experts into one tensor each, as published."""
    out = {}
    for name, tensor in state.items():
        base = name.rsplit(".", 1)[0]
        if name.endswith("experts.gate_up_proj"):
            for e, both in enumerate(tensor):
                out[f"{base}.{e}.gate_proj.weight"], out[f"{base}.{e}.up_proj.weight"] = both.chunk(2)
        elif name.endswith("experts.down_proj"):
            out |= {f"{base}.{e}.down_proj.weight": one for e, one in enumerate(tensor)}
        else:
            out[name] = tensor
    return out


def join_experts(state):
    out, parts = {}, {}
    for name, tensor in state.items():
        words = name.split(".")
        if "experts" in words and words[-1] == "weight":
            at = words.index("experts")
            parts.setdefault(".".join(words[:at + 1]), {})[int(words[at + 1]), words[at + 2]] = tensor
        else:
            out[name] = tensor
    for base, of in parts.items():
        count = max(e for e, _ in of) + 1
        out[base + ".gate_up_proj"] = torch.stack(
            [torch.cat([of[e, "gate_proj"], of[e, "up_proj"]]) for e in range(count)])
        out[base + ".down_proj"] = torch.stack([of[e, "down_proj"] for e in range(count)])
    return out


def save(folder, model, spec, donor):
    moe = "num_experts" in spec["config"]
    prefix = "model.language_model." if spec["nested"] else "model."
    state = {}
    for name, tensor in model.state_dict().items():
        if name == "target.lm_head.weight" and model.config.tie_word_embeddings: continue
        name = name.replace("mtp.", spec["mtp"], 1) if name.startswith("mtp.") else name.removeprefix("target.")
        if name.startswith("model.") and not name.startswith(spec["mtp"] or "mtp."):
            name = prefix + name.removeprefix("model.")
        state[name] = tensor
    state = as_stored(state, spec)
    if spec.get("apart"): state = split_experts(state)
    if spec.get("tower"): state["model.visual.patch_embed.proj.bias"] = torch.zeros(4, dtype=torch.bfloat16)
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "model.safetensors")
    text = {k: v for k, v in model.config.to_dict().items() if k not in ("transformers_version", "architectures")}
    if not spec.get("next"):
        text |= {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False, "attn_output_gate": True}
    kind = "Qwen3Next" if spec.get("next") else "Qwen3_5Moe" if moe else "Qwen3_5"
    if spec["nested"]:
        config = {"architectures": [kind + "ForConditionalGeneration"], "text_config": text,
                  "tie_word_embeddings": text["tie_word_embeddings"], "image_token_id": 3}
    else:
        config = {"architectures": [kind + "ForCausalLM"]} | text
    if spec.get("fp8"): config |= fp8_codes.CONFIG
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    ends = [text["eos_token_id"], text["eos_token_id"] - 2]  # with a tokenizer these are <|im_end|> and <|endoftext|>
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends, "top_k": 20, "top_p": 0.95}))
    if not spec["tokenizer"]: return
    cut_tokenizer(Path(donor, "tokenizer.json"), folder / "tokenizer.json")
    for file in ("tokenizer_config.json", "chat_template.jinja"): shutil.copyfile(Path(donor, file), folder / file)


def cut_tokenizer(donor, path):
    """Writes the donor's tokenizer with only its first ids, the merges between these, and the added tokens right after
    them."""
    spec, count = json.loads(donor.read_text(encoding="utf-8")), LAST_PLAIN + 1
    pieces = {piece: i for piece, i in spec["model"]["vocab"].items() if i < count}
    join = lambda merge: "".join(merge) if isinstance(merge, list) else merge.replace(" ", "", 1)
    spec["model"]["vocab"] = pieces
    spec["model"]["merges"] = [merge for merge in spec["model"]["merges"] if join(merge) in pieces]
    for i, token in enumerate(spec["added_tokens"]): token["id"] = count + i
    path.write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")


def load(folder, spec):
    model = Both(spec)
    state, own = fp8_codes.from_codes(load_file(folder / "model.safetensors")), {}
    for name, tensor in join_experts(state).items():
        if ".visual." in name: continue
        if spec["mtp"] and name.startswith(spec["mtp"]): name = "mtp." + name.removeprefix(spec["mtp"])
        else: name = "target." + name.replace("model.language_model.", "model.", 1)
        own[name] = tensor.float()
    if model.config.tie_word_embeddings: own["target.lm_head.weight"] = own["target.model.embed_tokens.weight"]
    model.load_state_dict(own)
    return model


# --------------------------------------------------------------------------------------------------------- references

def make_prompts(spec):
    rnd = random.Random(spec["seed"])
    last = min(LAST_PLAIN, spec["config"]["vocab_size"] - 1)
    return [[rnd.randrange(FIRST_PLAIN, last) for _ in range(length)] for length in LENGTHS]


def compute(model, spec, prompts):
    info, tensors = {"prompts": prompts, "greedy": []}, {}
    if model.mtp: info["draft"] = {"cases": [], "loop": []}
    for i, prompt in enumerate(prompts):
        with torch.no_grad(): tensors[f"prompt.{i}.logits"] = model.run(prompt)[0]
    for i in GREEDY_PROMPTS:
        ids, rows = model.greedy(prompts[i], GREEDY + 2 * DEPTH)
        tensors[f"greedy.{i}.logits"] = rows[:GREEDY]
        info["greedy"].append({"prompt": i, "tokens": ids[:GREEDY], "margins": margins(rows[:GREEDY]),
                               "min_margin": min(margins(rows[:GREEDY]))})
        if not model.mtp: continue
        for done in CASES:
            logits, drafted = model.draft(prompts[i] + ids[:done], DEPTH)
            case = f"draft.{i}.{done}"
            tensors[case + ".logits"] = logits
            info["draft"]["cases"].append(
                {"case": case, "prompt": i, "n_generated": done, "L": len(prompts[i]) + done, "tokens": drafted,
                 "margins": margins(logits), "target_next": ids[done:done + DEPTH]})
        info["draft"]["loop"].append({"prompt": i, "draft_length": ROUND_DRAFT} | rounds(model.draft, prompts[i], ids))
    return info, tensors


def make(root, name, donor):
    spec, folder = MODELS[name], Path(root, name)
    folder.mkdir(parents=True, exist_ok=True)
    model = Both(spec)
    fill(model, spec)
    prompts = make_prompts(spec)
    training = train(model, spec, [prompts[2], prompts[4], prompts[1]]) if model.mtp else None
    save(folder, model, spec, donor)
    info, tensors = compute(load(folder, spec), spec, prompts)
    ends = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    head = {"family": name, "seed": spec["seed"], "transformers": "5.17.0", "torch": torch.__version__,
            "n_greedy": GREEDY, "draft_depth": DEPTH, "special_ids": {"bos": None, "eos": ends},
            "mtp_training": training}
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(head | info, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)
    print(f"{name}: smallest margin {min(g['min_margin'] for g in info['greedy'])}, MTP {training}, "
          f"tokens a round {[loop['tokens_per_round'] for loop in info.get('draft', {}).get('loop', [])]}", flush=True)


def verify(root, name):
    spec, folder = MODELS[name], Path(root, name)
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    model = load(folder, spec)
    again, tensors = compute(model, spec, info["prompts"])
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    assert stored.keys() == tensors.keys() and apart < 1e-4 and all(info[k] == again[k] for k in again), apart
    for greedy in info["greedy"]:
        prompt = info["prompts"][greedy["prompt"]]
        cached = model.target.generate(torch.tensor([prompt]), max_new_tokens=GREEDY, do_sample=False,
                                       eos_token_id=None, pad_token_id=0)[0].tolist()
        assert cached[len(prompt):] == greedy["tokens"], "generation with a cache differs"
    print(f"{name}: verified, recomputed within {apart:.1e}", flush=True)


def main(verb, root, *names):
    torch.set_num_threads(1)
    donor = Path(root, "..", "tokenizers", "qwen35")
    for name in names or MODELS:
        if verb == "make": make(root, name, donor)
        verify(root, name)


if __name__ == "__main__": main(*sys.argv[1:])
