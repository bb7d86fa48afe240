#!/usr/bin/env python3
"""dense.py make|verify FOLDER [NAME...]: tiny random dense decoders and what transformers computes on them.

make    writes FOLDER/NAME: the model as published folders are, reference.json, reference.safetensors
verify  reads it back, from the files alone, and computes everything again, with a cache too

Qwen2 and Gemma 3, in numbers that code written for the published shapes would get wrong. As in make_reference.py:
float32, eager attention, no cache, one thread; what the files hold stands in README.md. `overlooked` in reference.json
says of each feature how far the logits of the last prompt are from right without it, in the largest of them: a test
that passes has seen them all.
"""
import json
import os
import random
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import transformers
from safetensors.torch import load_file, save_file

from make_reference import cut_tokenizer, margins
from mixtures import copy_tokenizer

GREEDY, LENGTHS, GREEDY_PROMPTS = 48, (1, 7, 19, 101), (2, 3)
LEAST_MARGIN, LEAST_IDS, LEAST_MOVE = 5e-3, 16, 2e-2    # of greedy ids; how many of them; of an overlooked feature

QWEN2 = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", max_position_embeddings=640,
             rms_norm_eps=3e-6, use_sliding_window=False, eos_token_id=[504, 511], bos_token_id=504,
             attention_dropout=0.0, use_cache=True, torch_dtype="bfloat16")
FEW_IDS = dict(bos_token_id=3, eos_token_id=[5, 7])   # where there is no tokenizer
GEMMA3 = dict(architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", hidden_activation="gelu_pytorch_tanh",
              attention_bias=False, attention_dropout=0.0, use_cache=True, attn_logit_softcapping=None,
              final_logit_softcapping=None, bos_token_id=2, eos_token_id=[1, 6], pad_token_id=0,
              torch_dtype="bfloat16")

# tokenizer: of which kind, none where there is none. Every window is shorter than the prompts that greedy text follows.
MODELS = {
    # The window is told and not used.
    "qwen2-tied": dict(seed=2101, tokenizer="qwen", config=QWEN2 | dict(
        vocab_size=523, hidden_size=84, intermediate_size=76, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, rope_theta=7000.0, tie_word_embeddings=True, sliding_window=6, max_window_layers=1)),
    # As Qwen2.5 is told to read longer texts than it was trained on.
    "qwen2-yarn": dict(seed=2103, config=QWEN2 | FEW_IDS | dict(
        vocab_size=403, hidden_size=72, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, rope_theta=5000.0, tie_word_embeddings=False,
        rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40})),
    # Windows from the second layer on; heads that don't fill the hidden size.
    "qwen2-window": dict(seed=2104, config=QWEN2 | FEW_IDS | dict(
        vocab_size=397, hidden_size=70, intermediate_size=60, num_hidden_layers=4, num_attention_heads=5,
        num_key_value_heads=1, head_dim=18, rope_theta=900.0, tie_word_embeddings=False, use_sliding_window=True,
        sliding_window=9, max_window_layers=1)),
    # Kinds of layers told one by one, positions as transformers writes them today.
    "gemma3-odd": dict(seed=3104, tokenizer="gemma", config=GEMMA3 | dict(
        vocab_size=405, hidden_size=66, intermediate_size=90, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, head_dim=14, query_pre_attn_scalar=40, rms_norm_eps=1e-5, sliding_window=5,
        max_position_embeddings=640, tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                     "full_attention"],
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 2.5, "rope_theta": 30000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}})),
    # As Gemma 3 4B is published: a tower beside, and of the text what is not usual alone.
    "gemma3-tower": dict(seed=3102, tokenizer="gemma", config=dict(
        architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", boi_token_index=10, eoi_token_index=11,
        eos_token_id=[1, 6], image_token_index=12, initializer_range=0.02, mm_tokens_per_image=4,
        torch_dtype="bfloat16",
        text_config=dict(
            model_type="gemma3_text", vocab_size=450, hidden_size=72, intermediate_size=76, num_hidden_layers=7,
            head_dim=12, query_pre_attn_scalar=12, sliding_window=7, max_position_embeddings=640,
            rope_scaling={"factor": 8.0, "rope_type": "linear"}),
        vision_config=dict(
            model_type="siglip_vision_model", hidden_size=16, image_size=28, intermediate_size=20,
            num_attention_heads=2, num_hidden_layers=1, patch_size=7, vision_use_head=False))),
}

TOWER = ("vision_tower.", "multi_modal_projector.")


def text_of(config):
    return config.get("text_config", config)


# ------------------------------------------------------------------------------------------------------------- models

def build(spec, changes=None):
    """The text half of a model; with `changes` in its configuration."""
    plain = {k: v for k, v in text_of(spec["config"]).items() if k not in ("architectures", "torch_dtype")}
    plain = json.loads(json.dumps(plain | (changes or {})))
    gemma = plain.pop("model_type") == "gemma3_text"
    config = (transformers.Gemma3TextConfig if gemma else transformers.Qwen2Config)(**plain)
    config._attn_implementation = "eager"
    kind = transformers.Gemma3ForCausalLM if gemma else transformers.Qwen2ForCausalLM
    return kind(config).float().eval()


def whole(spec):
    """All of a wrapped model."""
    plain = {k: v for k, v in spec["config"].items() if k not in ("architectures", "torch_dtype", "model_type")}
    config = transformers.Gemma3Config(**json.loads(json.dumps(plain)))
    return transformers.Gemma3ForConditionalGeneration(config).float().eval()


@torch.no_grad()
def fill(state, seed, gemma):
    """Norms of Gemma stand for what is added to 1. There those behind a part are wide, embeddings narrow: else the
    text, whose head is the embedding, would say the same id again and again."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(state.items()):
        noise = torch.randn(tensor.shape, generator=generator)
        if gemma and "layernorm" in name and "post" in name: tensor.copy_(0.3 * noise + 1.5)
        elif "norm" in name and not name.endswith("bias"): tensor.copy_(0.3 * noise + (0 if gemma else 1))
        elif name.endswith("bias"): tensor.copy_(0.5 * noise)
        elif gemma and "embed_tokens" in name: tensor.copy_(0.5 * noise * tensor.shape[-1] ** -0.5)
        else: tensor.copy_(noise * 1.7 * tensor.shape[-1] ** -0.5)
        tensor.copy_(tensor.bfloat16().float())


def filled(spec):
    """A state of the model, by the published names; a tied head is not in it."""
    text = text_of(spec["config"])
    gemma, nested = text["model_type"] == "gemma3_text", text is not spec["config"]
    model = build(spec)
    tied = model.config.tie_word_embeddings
    state = {k: v for k, v in model.state_dict().items() if not tied or k != "lm_head.weight"}
    fill(state, spec["seed"], gemma)
    if not nested: return state
    state = {"language_model." + k: v for k, v in state.items()}
    beside = {published(k): v for k, v in whole(spec).state_dict().items()}
    beside = {k: v for k, v in beside.items() if k.startswith(TOWER)}
    fill(beside, spec["seed"] + 100, False)
    return state | beside


def published(name):
    """What transformers calls a tensor of the whole model, as published files do."""
    name = name.removeprefix("model.")
    return name.replace("vision_tower.", "vision_tower.vision_model.", 1) if (
        name.startswith("vision_tower.") and not name.startswith("vision_tower.vision_model.")) else name


def load(folder, spec, changes=None):
    """The text half of what a folder holds."""
    state = {k.removeprefix("language_model."): v.float() for k, v in load_file(folder / "model.safetensors").items()
             if not k.startswith(TOWER)}
    model = build(spec, changes)
    if "lm_head.weight" not in state: state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    return model


@torch.no_grad()
def run(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


# --------------------------------------------------------------------------------------------------------- overlooked

def zeroed(*parts):
    def edit(model):
        for name, tensor in model.named_parameters():
            if name.endswith(parts): tensor.zero_()
    return edit


def passed_by(*kinds):
    """Modules that hand on what they get."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(kinds): module.forward = lambda x: x
    return edit


def norms_less_one(model):
    for name, tensor in model.named_parameters():
        if "norm" in name: tensor.sub_(1)


def embeddings_unscaled(model):
    model.model.embed_tokens.embed_scale.fill_(1.0)


def of_qwen2(c):
    """What of a feature missing would be another: changes of the configuration, or of the model."""
    features = {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkv"}
    features |= {"biases": zeroed("_proj.bias"), "rope_theta": {"rope_theta": 1e4}}
    if c["use_sliding_window"]:
        features |= {"window": {"use_sliding_window": False}, "max_window_layers": {"max_window_layers": 0},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1}}
    elif c.get("sliding_window"):
        features["use_sliding_window false"] = {"use_sliding_window": True}
    if "rope_scaling" in c:
        scaled = lambda **other: {"rope_scaling": c["rope_scaling"] | other}
        features |= {"scaling": {"rope_scaling": None}, "scaling, as linear": scaled(type="linear", rope_type="linear"),
                     "scaling's attention factor": scaled(attention_factor=1.0),
                     "scaling's length before": scaled(original_max_position_embeddings=640)}
    return features


def of_gemma3(c):
    default = lambda theta: {"rope_type": "default", "rope_theta": theta}
    ropes = c.get("rope_parameters") or {"full_attention": c["rope_scaling"] | {"rope_theta": 1e6},
                                         "sliding_attention": default(1e4)}
    full, local = ropes["full_attention"], ropes["sliding_attention"]
    roped = lambda f, l: {"rope_scaling": None, "rope_parameters": {"full_attention": f, "sliding_attention": l}}
    scalar = c["head_dim"] if c["query_pre_attn_scalar"] != c["head_dim"] else 256
    return {
        "embedding scale": embeddings_unscaled, "norms' 1": norms_less_one,
        "norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm"),
        "norm behind attention": passed_by("post_attention_layernorm"),
        "norm behind the feed-forward": passed_by("post_feedforward_layernorm"),
        "query_pre_attn_scalar": {"query_pre_attn_scalar": scalar}, "window": {"sliding_window": 4096},
        "window, of one more": {"sliding_window": c["sliding_window"] + 1},
        "full layers": {"layer_types": ["sliding_attention"] * c["num_hidden_layers"]},
        "scaling": roped(default(full["rope_theta"]), local),
        "scaling of full layers alone": roped(full, full | {"rope_theta": local["rope_theta"]}),
        "local base": roped(full, default(full["rope_theta"])), "gelu": {"hidden_activation": "silu"},
    }


@torch.no_grad()
def overlooked(folder, spec, prompt, right):
    features = (of_qwen2 if spec["config"]["model_type"] == "qwen2" else of_gemma3)(text_of(spec["config"]))
    moved = {}
    for feature, change in features.items():
        model = load(folder, spec, change if isinstance(change, dict) else None)
        if not isinstance(change, dict): change(model)
        moved[feature] = round(float((run(model, prompt) - right).abs().max() / right.abs().max()), 4)
    return moved


# ---------------------------------------------------------------------------------------------------------- reference

def make_prompts(spec):
    """Gemma's begin with its first id."""
    rnd, c = random.Random(spec["seed"]), text_of(spec["config"])
    first = [2] if c["model_type"] == "gemma3_text" else [300]
    return [first + [rnd.randrange(280, c["vocab_size"] - 20) for _ in range(length - 1)] for length in LENGTHS]


def compute(model, prompts):
    info, tensors = {"prompts": prompts, "greedy": []}, {}
    for i, prompt in enumerate(prompts): tensors[f"prompt.{i}.logits"] = run(model, prompt)
    for i in GREEDY_PROMPTS:
        ids, rows = [], []
        while len(ids) < GREEDY:
            rows.append(run(model, prompts[i] + ids)[-1])
            ids.append(int(rows[-1].argmax()))
        tensors[f"greedy.{i}.logits"] = torch.stack(rows)
        least = margins(torch.stack(rows))
        info["greedy"].append({"prompt": i, "tokens": ids, "margins": least, "min_margin": min(least)})
    return info, tensors


def make(root, name):
    spec, folder = MODELS[name], root / name
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.bfloat16().contiguous() for k, v in filled(spec).items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(spec["config"], indent=1))
    ends = spec["config"]["eos_token_id"]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends, "top_p": 0.95}))
    if spec.get("tokenizer") == "qwen": copy_tokenizer(root, folder, True)
    if spec.get("tokenizer") == "gemma": cut_tokenizer(root / "gemma4-e", text_of(spec["config"])["vocab_size"], folder)
    model = load(folder, spec)
    info, tensors = compute(model, make_prompts(spec))
    head = {"family": name, "seed": spec["seed"], "transformers": "5.17.0", "torch": torch.__version__,
            "n_greedy": GREEDY, "special_ids": {"bos": spec["config"].get("bos_token_id"), "eos": ends},
            "overlooked": overlooked(folder, spec, info["prompts"][-1], tensors["prompt.3.logits"])}
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(head | info, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


# -------------------------------------------------------------------------------------------------------------- verify

def published_model(folder, spec):
    """What transformers makes of the folder by itself."""
    kind = getattr(transformers, spec["config"]["architectures"][0])
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def verify(root, name):
    spec, folder = MODELS[name], root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    model, by_itself = load(folder, spec), published_model(folder, spec)
    again, tensors = compute(model, info["prompts"])
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    assert stored.keys() == tensors.keys() and apart < 1e-5 and all(info[k] == again[k] for k in again), apart
    ids, right = info["prompts"][-1], stored["prompt.3.logits"]
    assert float((run(by_itself, ids) - right).abs().max()) < 1e-5
    noise = float((run(load(folder, spec).double(), ids).float() - right).abs().max() / right.abs().max())
    assert noise < 1e-5, noise
    for greedy in info["greedy"]:
        prompt = info["prompts"][greedy["prompt"]]
        cached = by_itself.generate(torch.tensor([prompt]), max_new_tokens=GREEDY, do_sample=False, eos_token_id=-1,
                                    pad_token_id=0)[0].tolist()
        assert cached[len(prompt):] == greedy["tokens"], "generation with a cache differs"
        assert len(set(greedy["tokens"])) >= LEAST_IDS, greedy["tokens"]
    moved, least = info["overlooked"], min(g["min_margin"] for g in info["greedy"])
    assert min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, (moved, least)
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, "
          f"an overlooked feature moves {min(moved.values())} to {max(moved.values())}", flush=True)


def main(verb, root, *names):
    torch.set_num_threads(1)
    for name in names or MODELS:
        if verb == "make": make(Path(root), name)
        verify(Path(root), name)


if __name__ == "__main__": main(*sys.argv[1:])
