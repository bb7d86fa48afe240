#!/usr/bin/env python3
"""nemotron3.py make|verify|seek FOLDER [NAME...]: a tiny random Nemotron 3 with its MTP layer, and what transformers
5.24 computes with it.

transformers ignores the MTP layer of a published folder (`mtp.layers.0`, attention, and `mtp.layers.1`, a mixture). It
is computed here after vLLM's nemotron_h_mtp.py and llama.cpp's src/models/nemotron-h-moe.cpp: transformers' own blocks
between the parts that mixtures.py describes. vLLM norms the output with RMSNorm and llama.cpp with LayerNorm; here it
is RMSNorm. mixtures.py also describes the files and the drafts; its `compute` and its training are used here.
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
from transformers.models.nemotron_h import modeling_nemotron_h as nemotron

import mixtures
from bailing import ENDS, FIRST, LENGTHS
from dense import LEAST_IDS, LEAST_MARGIN, LEAST_MOVE
from dense_of_mamba import of_nemotron_h
from sparse import EAGER, fill

MODELS = {
    # Mamba-2, a mixture with a latent, attention and an MTP layer. All of them have other sizes than published models.
    "nemotron-3-mtp": dict(seed=7311, noise=2e-5, config=dict(
        architectures=["NemotronHForCausalLM"], model_type="nemotron_h", vocab_size=240, hidden_size=48,
        hybrid_override_pattern="MEM*E", num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
        ssm_state_size=20, mamba_num_heads=6, mamba_head_dim=32, n_groups=3, conv_kernel=4, expand=2,
        use_conv_bias=True, use_bias=False, attention_bias=False, mlp_bias=False, mlp_hidden_act="relu2",
        mamba_hidden_act="silu", layer_norm_epsilon=1e-5, time_step_min=0.001, n_routed_experts=6,
        n_shared_experts=1, num_experts_per_tok=2, intermediate_size=44, moe_intermediate_size=24,
        moe_shared_expert_intermediate_size=36, moe_latent_size=26, n_group=1, topk_group=1, norm_topk_prob=True,
        routed_scaling_factor=2.2, chunk_size=16, max_position_embeddings=1024, tie_word_embeddings=False,
        num_nextn_predict_layers=1, mtp_hybrid_override_pattern="*E", bos_token_id=3, eos_token_id=ENDS,
        pad_token_id=0)),
}


class Mtp(nn.Module):
    """The MTP layer. Its tensors have the published names without "mtp."."""

    def __init__(self, config):
        super().__init__()
        config = copy.deepcopy(config)
        config.layer_types = ["full_attention", "moe"]
        self.layers = nn.ModuleList(nemotron.NemotronHBlock(config, i) for i in range(2))
        norm = lambda: nemotron.NemotronHRMSNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        first, second = self.layers
        first.enorm, first.hnorm, second.final_layernorm = norm(), norm(), norm()
        first.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.embed = self.head = None


class Target(mixtures.Target):
    def __init__(self, model, mtp):
        self.model, self.mtp, self.embed, self.head = model.eval(), mtp, model.get_input_embeddings(), model.lm_head

    def pairs(self, tokens, hidden):
        (first, second), e = self.mtp.layers, self.embed(tokens)
        count = torch.arange(e.shape[1])
        seen = torch.where(count[None] <= count[:, None], 0.0, torch.finfo(e.dtype).min)[None, None]
        z = first.eh_proj(torch.cat([first.enorm(e), first.hnorm(hidden)], -1))
        return second.final_layernorm(second(first(z, attention_mask=seen)))


def config_of(c):
    plain = json.loads(json.dumps({k: v for k, v in c.items() if k not in ("architectures", "model_type")}))
    config = transformers.NemotronHConfig(**plain)
    config._attn_implementation = config._experts_implementation = "eager"
    return config


def split(state):
    """Splits stacks into a tensor for each matrix of each expert, as in published files."""
    out = {}
    for name, tensor in state.items():
        stem, kind = name.rsplit(".", 1)
        if not name.endswith((".experts.up_proj", ".experts.down_proj")): out[name] = tensor
        else: out |= {f"{stem}.{e}.{kind}.weight": matrix for e, matrix in enumerate(tensor)}
    return out


def save(folder, spec, model, mtp):
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir(): file.unlink()
    model.save_pretrained(folder)
    state = split(load_file(folder / "model.safetensors") | {"mtp." + k: v for k, v in mtp.state_dict().items()})
    state = {k: v.contiguous() if k.endswith("correction_bias") else v.bfloat16().contiguous()
             for k, v in state.items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(spec["config"] | {"torch_dtype": "bfloat16"}, indent=1))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS, "top_p": 0.95}))


def load(folder, spec, changes=None):
    config = config_of(spec["config"] | (changes or {}))
    model = transformers.NemotronHForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32, **EAGER)
    mtp, state = Mtp(config).float().eval(), load_file(folder / "model.safetensors")
    part = {k.removeprefix("mtp."): v.float() for k, v in state.items() if k.startswith("mtp.")}
    for name, tensor in mtp.state_dict().items():
        if not name.endswith((".experts.up_proj", ".experts.down_proj")): continue
        stem, kind = name.rsplit(".", 1)
        part[name] = torch.stack([part.pop(f"{stem}.{e}.{kind}.weight") for e in range(len(tensor))])
    mtp.load_state_dict(part)
    return Target(model.float().eval(), mtp)


@torch.no_grad()
def overlooked(folder, spec, prompt, right):
    moved = {}
    for feature, change in of_nemotron_h(spec["config"]).items():
        target = load(folder, spec, change if isinstance(change, dict) else None)
        if not isinstance(change, dict): change(target.model)
        moved[feature] = round(float((target.run(prompt)[0] - right).abs().max() / right.abs().max()), 4)
    return moved


def prompts_of(spec, seed):
    rnd = random.Random(seed)
    return [[FIRST] + [rnd.randrange(FIRST, spec["config"]["vocab_size"]) for _ in range(n - 1)] for n in LENGTHS]


def make(root, name):
    spec, folder = MODELS[name], root / name
    prompts, config = prompts_of(spec, spec["seed"]), config_of(spec["config"])
    model, mtp = nemotron.NemotronHForCausalLM(config).float().eval(), Mtp(config).float().eval()
    fill(model.state_dict(), spec["seed"])
    fill(mtp.state_dict(), spec["seed"] + 100)
    info = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": mixtures.GREEDY, "draft_depth": mixtures.DEPTH, "special_ids": {"bos": 3, "eos": ENDS}}
    target = Target(model, mtp)
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
    right, moved = stored["prompt.3.logits"], info["overlooked"]
    target.model.double()
    noise = float((target.run(info["prompts"][-1])[0].float() - right).abs().max() / right.abs().max())
    least = min(g["min_margin"] for g in info["greedy"])
    loops = [(loop["accepted_total"], loop["drafted_total"]) for loop in info["draft"]["loop"]]
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, an overlooked "
          f"feature moves {min(moved.values())} to {max(moved.values())}, drafts {loops}", flush=True)
    assert apart < 1e-5 and noise < spec["noise"] and min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, moved
    assert all(len(set(g["tokens"])) >= LEAST_IDS for g in info["greedy"])


@torch.no_grad()
def seek(name):
    """Prints the first seed, from that of the table on, with which greedy text passes. Writes nothing."""
    spec = MODELS[name]
    for seed in range(spec["seed"], spec["seed"] + 100):
        model, prompts = nemotron.NemotronHForCausalLM(config_of(spec["config"])).float(), prompts_of(spec, seed)
        fill(model.state_dict(), seed)
        texts = [Target(model, None).greedy(prompts[i], mixtures.GREEDY) for i in (2, 3)]
        if all(min(mixtures.margins(rows)) > LEAST_MARGIN and len(set(ids)) >= LEAST_IDS for ids, rows in texts):
            return print(f"{name}: seed {seed}", flush=True)
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
