#!/usr/bin/env python3
"""ling3.py make|verify FOLDER [NAME...]: tiny random models of Ling 3.0, and what transformers 5.24 computes with
them.

transformers ignores the MTP layer of a published folder. It is computed here after llama.cpp's
src/models/bailingmoe3.cpp: a layer of transformers' own, with latent attention and a mixture, between the parts that
mixtures.py describes. mixtures.py also describes the files and the drafts; its `compute` and its training are used
here.
"""
import copy
import json
import os
import random
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.models.bailing_hybrid import modeling_bailing_hybrid as ling

import mixtures
from bailing import ENDS, FIRST, LENGTHS
from dense import LEAST_IDS, LEAST_MARGIN, LEAST_MOVE, passed_by, zeroed
from sparse import EAGER, fill, one_decay, silent, taps_kept, zeroed_buffers

LING = dict(architectures=["BailingMoeV3ForCausalLM"], model_type="bailing_hybrid", hidden_act="silu",
            max_position_embeddings=1024, tie_word_embeddings=False, use_qkv_bias=False, use_bias=False,
            use_qk_norm=True, score_function="sigmoid", topk_method="noaux_tc", moe_router_enable_expert_bias=True,
            rope_interleave=True, rope_scaling=None, no_kda_lora=True, kda_safe_gate=True, use_mla_nope=False,
            gated_attention_proj_granularity_type="head_wise", mtp_use_kda=False, bos_token_id=3, eos_token_id=ENDS,
            pad_token_id=0)
# `noise` bounds the distance between float32 and double precision. It is large because states carry rounding errors
# on.
MODELS = {
    # The published form: groups of two layers, groups of experts, a lower bound on decays, queries without a latent,
    # an MTP layer.
    "ling3-odd": dict(seed=5301, noise=2e-5, config=LING | dict(
        vocab_size=351, hidden_size=72, intermediate_size=52, num_hidden_layers=4, num_attention_heads=5,
        num_key_value_heads=5, head_dim=20, layer_group_size=2, short_conv_kernel_size=4, kda_lower_bound=-3.5,
        q_lora_rank=None, kv_lora_rank=28, qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18, rms_norm_eps=3e-5,
        rope_theta=5000.0, partial_rotary_factor=0.5, rotary_dim=10, num_experts=12, num_experts_per_tok=4,
        num_shared_experts=1, moe_intermediate_size=22, moe_shared_expert_intermediate_size=22, n_group=4,
        topk_group=2, norm_topk_prob=True, routed_scaling_factor=1.9, first_k_dense_replace=1,
        num_nextn_predict_layers=1)),
    # The form that transformers saves: a list of the layers' kinds, decays without a bound, queries with a latent,
    # YaRN, three taps, two shared experts, weights that are not normalized.
    "ling3-saved": dict(seed=5408, noise=2e-5, saved=True, config=LING | dict(
        vocab_size=347, hidden_size=60, intermediate_size=44, num_hidden_layers=5, num_attention_heads=3,
        num_key_value_heads=3, head_dim=28, short_conv_kernel_size=3, kda_safe_gate=False, q_lora_rank=34,
        layer_types=["full_attention"] + ["linear_attention"] * 2 + ["full_attention", "linear_attention"],
        mlp_layer_types=["sparse", "dense", "sparse", "sparse", "sparse"], kv_lora_rank=36, qk_rope_head_dim=12,
        qk_nope_head_dim=10, v_head_dim=22, rms_norm_eps=1e-6, rope_parameters=dict(
            rope_type="yarn", rope_theta=900.0, factor=9.0, original_max_position_embeddings=40, beta_fast=9,
            beta_slow=2, mscale=1.0, mscale_all_dim=0.6),
        num_experts=9, num_experts_per_tok=2, num_shared_experts=2, moe_intermediate_size=26, n_group=1, topk_group=1,
        norm_topk_prob=False, routed_scaling_factor=1.4, num_nextn_predict_layers=0)),
}


class Mtp(nn.Module):
    def __init__(self, config):
        super().__init__()
        config = copy.deepcopy(config)
        config.layer_types, config.mlp_layer_types = ["full_attention"], ["sparse"]
        self.enorm, self.hnorm, self.norm = (ling.BailingHybridRMSNorm(config.hidden_size, config.rms_norm_eps)
                                             for _ in range(3))
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = ling.BailingHybridDecoderLayer(config, 0)
        self.embed = self.head = None


def config_of(c):
    plain = json.loads(json.dumps({k: v for k, v in c.items() if k not in ("architectures", "model_type")}))
    config = transformers.BailingHybridConfig(**plain)
    config._attn_implementation = config._experts_implementation = "eager"
    return config


# -------------------------------------------------------------------------------------------------------------- files

RENAMED = [("norm.", "final_layernorm."), ("layer.", ""), ("self_attn.o_proj", "attention.dense"),
           ("self_attn.", "attention."), ("e_score_correction_bias", "expert_bias")]


def published(name):
    for own, other in RENAMED:
        if name.startswith(own) or own not in ("norm.", "layer."): name = name.replace(own, other, 1)
    return name


def save(folder, spec, model, mtp):
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir(): file.unlink()
    model.save_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    if mtp:
        layer = f"model.layers.{spec['config']['num_hidden_layers']}."
        state |= {layer + published(k): v for k, v in mixtures.split(mtp.state_dict()).items()}
    state = {k: v.contiguous() if k.endswith("expert_bias") else v.bfloat16().contiguous() for k, v in state.items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text()) if spec.get("saved") else spec["config"]
    config = {k: v for k, v in config.items() if k not in ("dtype", "transformers_version")}
    (folder / "config.json").write_text(json.dumps(config | {"torch_dtype": "bfloat16"}, indent=1))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS, "top_p": 0.95}))


def load(folder, spec, changes=None):
    c = spec["config"] | (changes or {})
    config = config_of(c)
    model = transformers.BailingHybridForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, **EAGER)
    mtp = None
    if c["num_nextn_predict_layers"]:
        mtp, layer = Mtp(config).float().eval(), f"model.layers.{c['num_hidden_layers']}."
        part = {k.removeprefix(layer): v.float() for k, v in load_file(folder / "model.safetensors").items()
                if k.startswith(layer)}
        back = {published(k): k for k in mixtures.split(mtp.state_dict())}
        mtp.load_state_dict(mixtures.join({back[k]: v for k, v in part.items()}))
    return mixtures.Target(model.float().eval(), mtp)


# ----------------------------------------------------------------------------------------- features that are left out

def gates(kind):
    def edit(model):
        for layer in model.model.layers:
            if layer.block_type == kind: layer.self_attn.g_proj.weight.zero_()
    return edit


def features_of(c):
    features = {"experts' number": {"num_experts_per_tok": 1}, "norm_topk_prob": {"norm_topk_prob":
                not c["norm_topk_prob"]}, "routed_scaling_factor": {"routed_scaling_factor": 1.0},
                "correction": zeroed_buffers("e_score_correction_bias"), "shared experts": silent("shared_experts"),
                "oldest tap": taps_kept, "slopes": zeroed("A_log"), "bias of decays": zeroed("dt_bias"),
                "decays of each value": one_decay, "gates": gates("linear_attention"),
                "gates of heads": gates("full_attention"), "norm of the latent": passed_by("kv_a_layernorm"),
                "kda_safe_gate": {"kda_safe_gate": not c["kda_safe_gate"]}}
    if c["kda_safe_gate"]: features["kda_lower_bound"] = {"kda_lower_bound": -5.0}
    if c["n_group"] > 1: features["groups"] = {"topk_group": c["n_group"]}
    if c["q_lora_rank"]: features["norm of queries"] = passed_by("q_a_layernorm")
    rope = c.get("rope_parameters")
    if not rope: return features | {"rope_theta": {"rope_theta": 6e6}}
    return features | {"rope_theta": {"rope_parameters": rope | {"rope_theta": 6e6}},
                       "scaling": {"rope_parameters": {"rope_type": "default", "rope_theta": rope["rope_theta"]}},
                       "mscale_all_dim": {"rope_parameters": rope | {"mscale_all_dim": 0.0, "mscale": 0.0}}}


@torch.no_grad()
def overlooked(folder, spec, prompt, right):
    moved = {}
    for feature, change in features_of(spec["config"]).items():
        target = load(folder, spec, change if isinstance(change, dict) else None)
        if not isinstance(change, dict): change(target.model)
        moved[feature] = round(float((target.run(prompt)[0] - right).abs().max() / right.abs().max()), 4)
    return moved


# --------------------------------------------------------------------------------------------------------- references

def make(root, name):
    spec, folder = MODELS[name], root / name
    rnd = random.Random(spec["seed"])
    prompts = [[FIRST] + [rnd.randrange(FIRST, spec["config"]["vocab_size"]) for _ in range(n - 1)] for n in LENGTHS]
    config = config_of(spec["config"])
    model, mtp = ling.BailingHybridForCausalLM(config).float().eval(), None
    fill(model.state_dict(), spec["seed"])
    info = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": mixtures.GREEDY, "draft_depth": mixtures.DEPTH, "special_ids": {"bos": 3, "eos": ENDS}}
    if spec["config"]["num_nextn_predict_layers"]:
        mtp = Mtp(config).float().eval()
        fill(mtp.state_dict(), spec["seed"] + 100)
        target = mixtures.Target(model, mtp)
        with torch.no_grad():
            texts = [(p + target.greedy(p, mixtures.GREEDY)[0], len(p)) for p in [prompts[2], prompts[-1], prompts[1]]]
        info["training"] = mixtures.train(target, texts)
        with torch.no_grad():
            for p in mtp.parameters(): p.copy_(p.bfloat16().float())
    save(folder, spec, model, mtp)
    tensors, computed = mixtures.compute(load(folder, spec), prompts)
    info["overlooked"] = overlooked(folder, spec, prompts[-1], tensors["prompt.3.logits"])
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(info | computed, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


@torch.no_grad()
def verify(root, name):
    spec, folder = MODELS[name], root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    target = load(folder, spec)
    tensors, again = mixtures.compute(target, info["prompts"])
    assert stored.keys() == tensors.keys() and all(again[k] == info[k] for k in again)
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    for greedy in info["greedy"]:
        prompt = torch.tensor([info["prompts"][greedy["prompt"]]])
        made = target.model.generate(prompt, max_new_tokens=mixtures.GREEDY, do_sample=False, eos_token_id=-1,
                                     pad_token_id=0)
        assert made[0, prompt.shape[1]:].tolist() == greedy["tokens"], "generation with a cache differs"
        assert len(set(greedy["tokens"])) >= LEAST_IDS, greedy["tokens"]
    right, moved = stored["prompt.3.logits"], info["overlooked"]
    target.model.double()
    noise = float((target.run(info["prompts"][-1])[0].float() - right).abs().max() / right.abs().max())
    least = min(g["min_margin"] for g in info["greedy"])
    loops = [(loop["accepted_total"], loop["drafted_total"]) for loop in info.get("draft", {}).get("loop", [])]
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, an overlooked "
          f"feature moves {min(moved.values())} to {max(moved.values())}, drafts {loops}", flush=True)
    assert apart < 1e-5 and noise < spec["noise"] and min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, moved


@torch.no_grad()
def seek(name):
    """Prints the first seed, from that of the table on, with which greedy text passes. Writes nothing."""
    spec = MODELS[name]
    for seed in range(spec["seed"], spec["seed"] + 100):
        rnd = random.Random(seed)
        prompts = [[FIRST] + [rnd.randrange(FIRST, spec["config"]["vocab_size"]) for _ in range(n - 1)]
                   for n in LENGTHS]
        model, sure = ling.BailingHybridForCausalLM(config_of(spec["config"])).float().eval(), True
        fill(model.state_dict(), seed)
        for i in (2, 3):
            out = model.generate(torch.tensor([prompts[i]]), max_new_tokens=mixtures.GREEDY, do_sample=False,
                                 eos_token_id=-1, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
            least, ids = min(mixtures.margins(torch.cat(out.logits))), out.sequences[0].tolist()[len(prompts[i]):]
            sure = sure and least > LEAST_MARGIN and len(set(ids)) >= LEAST_IDS
            if not sure: break
        if sure: return print(f"{name}: seed {seed}", flush=True)
    print(f"{name}: no seed", flush=True)


def main(verb, root, *names):
    torch.set_num_threads(1)
    for name in names or MODELS:
        if verb == "seek":
            seek(name)
            continue
        if verb == "make": make(Path(root), name)
        verify(Path(root), name)


if __name__ == "__main__": main(*sys.argv[1:])
