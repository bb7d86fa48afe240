#!/usr/bin/env python3
"""dense.py make|verify|seek FOLDER [NAME...]: tiny random decoders, and what transformers computes with them.

make    writes FOLDER/NAME: the model in its published form, reference.json, reference.safetensors
verify  reads it back, only from the files, and computes everything again, also with a cache
seek    prints the first seed, from that of the table on, with which greedy text passes; writes nothing

Each dense_of_*.py has a table MODELS. The models' dimensions are such that code written only for the published ones
would get them wrong. As in make_reference.py: float32, eager attention, no cache, one thread. README.md describes the
files. `overlooked` in reference.json lists features of the model. For each it has how far the last prompt's logits are
off if the feature is left out, relative to the largest logit. So a test that passes has not left any of them out.
"""
import importlib
import json
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import transformers
from safetensors.torch import load_file, save_file

from make_reference import cut_tokenizer, margins
from mixtures import copy_tokenizer

GREEDY, LENGTHS, GREEDY_PROMPTS = 48, (1, 7, 19, 101), (2, 3)
# the least margin of greedy ids, the least number of different ones, and the least effect of an overlooked feature
LEAST_MARGIN, LEAST_IDS, LEAST_MOVE = 5e-3, 16, 2e-2

BESIDE = ("vision_tower.", "multi_modal_projector.", "model.mtp_layers.")


@dataclass
class Kind:
    """Describes what the models of one family have in common. A model is a dict with seed, kind and config
    (config.json), and, if it has them, tokenizer ("qwen", "gemma"), gguf (dense_gguf.py), and mtp (its `add` gives the
    layer's tensors, its `draft` the drafts' logits). cached=False means that transformers' own generation with a cache
    gives other ids than without one; attention is set if the eager one of transformers is wrong."""
    config: str             # transformers' class of the text model's configuration
    model: object           # transformers' class of the text model, or a class of the table's own
    features: object        # called with the configuration; returns what leaves each feature out: a change or an edit
    whole: tuple = ()       # the same two classes if the model also has a vision encoder
    files: tuple = ()       # pairs of tensor names: transformers', and the published one if it is different
    fill: object = None     # called with a tensor's name and noise; returns its values, or None for the usual ones
    first: tuple = ()       # ids with which every prompt begins
    ids: tuple = (20, 20)   # how many of the first and of the last ids prompts must not have
    names: tuple = ()       # pairs of parts of tensor names: transformers', and the published ones


def text_of(config):
    return config.get("text_config", config)


def all_models():
    """Returns the models of all tables."""
    models = {}
    for file in sorted(Path(__file__).parent.glob("dense_of_*.py")): models |= importlib.import_module(file.stem).MODELS
    return models


# ------------------------------------------------------------------------------------------------------------- models

def build(spec, changes=None):
    """Returns the text part of a model, with `changes` in its configuration."""
    plain = {k: v for k, v in text_of(spec["config"]).items() if k not in ("architectures", "torch_dtype")}
    plain = json.loads(json.dumps(plain | (changes or {})))
    plain.pop("model_type")
    config = getattr(transformers, spec["kind"].config)(**plain)
    config._attn_implementation, config._experts_implementation = spec.get("attention", "eager"), "eager"
    model = spec["kind"].model
    return (getattr(transformers, model) if isinstance(model, str) else model)(config).float().eval()


def whole(spec):
    """Returns a model together with its vision encoder."""
    plain = {k: v for k, v in spec["config"].items() if k not in ("architectures", "torch_dtype", "model_type")}
    config, model = (getattr(transformers, name) for name in spec["kind"].whole)
    return model(config(**json.loads(json.dumps(plain)))).float().eval()


@torch.no_grad()
def fill(state, seed, own):
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(state.items()):
        noise = torch.randn(tensor.shape, generator=generator)
        values = own and own(name, noise)
        if values is not None: tensor.copy_(values)
        elif "norm" in name and not name.endswith("bias"): tensor.copy_(0.3 * noise + 1)
        elif name.endswith("bias"): tensor.copy_(0.5 * noise)
        else: tensor.copy_(noise * 1.7 * tensor.shape[-1] ** -0.5)
        tensor.copy_(tensor.bfloat16().float())


def filled(spec):
    """Returns the model's tensors by their published names. A tied head is not among them."""
    nested = "text_config" in spec["config"]
    model = build(spec)
    tied = model.config.tie_word_embeddings
    state = {k: v for k, v in model.state_dict().items() if not tied or k != "lm_head.weight"}
    state = {renamed(k, spec["kind"].names): v for k, v in state.items()}
    if "mtp" in spec: state = spec["mtp"].add(state, model)
    fill(state, spec["seed"], spec["kind"].fill)
    if not nested: return state
    state = {"language_model." + k: v for k, v in state.items()}
    if not spec["kind"].whole: return state  # a folder of the text alone
    beside = {published(k): v for k, v in whole(spec).state_dict().items()}
    beside = {k: v for k, v in beside.items() if k.startswith(BESIDE)}
    fill(beside, spec["seed"] + 100, None)
    return state | beside


def renamed(name, pairs):
    for own, theirs in pairs: name = name.replace(own, theirs)
    return name


def published(name):
    """Returns transformers' name of a tensor in the whole model, which published files use too."""
    name = name.removeprefix("model.")
    return name.replace("vision_tower.", "vision_tower.vision_model.", 1) if (
        name.startswith("vision_tower.") and not name.startswith("vision_tower.vision_model.")) else name


def load(folder, spec, changes=None):
    """Returns the text part of the model in a folder. Without a folder, returns the model that would be written."""
    names = {there: here for here, there in spec["kind"].files}
    state = load_file(folder / "model.safetensors") if folder else filled(spec)
    state = {names.get(k, k): v for k, v in state.items()}
    state = {k.removeprefix("language_model."): v.float() for k, v in state.items() if not k.startswith(BESIDE)}
    state = {renamed(k, [(theirs, own) for own, theirs in spec["kind"].names]): v for k, v in state.items()}
    model = build(spec, changes)
    if "lm_head.weight" not in state:
        table = model.get_input_embeddings()
        state["lm_head.weight"] = next(state[n + ".weight"] for n, module in model.named_modules() if module is table)
    model.load_state_dict(state)
    return model


@torch.no_grad()
def run(model, ids):
    return model(torch.tensor([ids]), use_cache=False).logits[0]


# ----------------------------------------------------------------------------------------- features that are left out

def zeroed(*parts):
    def edit(model):
        for name, tensor in model.named_parameters():
            if name.endswith(parts): tensor.zero_()
    return edit


def passed_by(*kinds):
    """Makes modules of these kinds return their input."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(kinds): module.forward = lambda x: x
    return edit


@torch.no_grad()
def overlooked(folder, spec, prompt, right):
    moved = {}
    for feature, change in spec["kind"].features(text_of(spec["config"])).items():
        model = load(folder, spec, change if isinstance(change, dict) else None)
        if not isinstance(change, dict): change(model)
        moved[feature] = round(float((run(model, prompt) - right).abs().max() / right.abs().max()), 4)
    return moved


# --------------------------------------------------------------------------------------------------------- references

def make_prompts(spec):
    rnd, kind = random.Random(spec["seed"]), spec["kind"]
    first, (low, last) = list(kind.first), kind.ids
    high = text_of(spec["config"])["vocab_size"] - last
    return [first + [rnd.randrange(low, high) for _ in range(length - len(first))] for length in LENGTHS]


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


def drafts(folder, spec, prompts):
    """Returns the logits of a model's MTP layer after a prompt, if it has one."""
    if "mtp" not in spec: return {}
    return {"draft.logits": spec["mtp"].draft(spec, load_file(folder / "model.safetensors"), folder, prompts[2])}


def make(root, name, spec):
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    names = dict(spec["kind"].files)
    state = {names.get(k, k): v.bfloat16().contiguous() for k, v in filled(spec).items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(spec["config"], indent=1))
    ends = spec["config"]["eos_token_id"]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends, "top_p": 0.95}))
    if spec.get("tokenizer") == "qwen": copy_tokenizer(root, folder, True)
    if spec.get("tokenizer") == "gemma": cut_tokenizer(root / "gemma4-e", text_of(spec["config"])["vocab_size"], folder)
    model = load(folder, spec)
    info, tensors = compute(model, make_prompts(spec))
    tensors |= drafts(folder, spec, info["prompts"])
    head = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": GREEDY, "special_ids": {"bos": spec["config"].get("bos_token_id"), "eos": ends},
            "overlooked": overlooked(folder, spec, info["prompts"][-1], tensors["prompt.3.logits"])}
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(head | info, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


# -------------------------------------------------------------------------------------------------------- verification

def published_model(folder, spec):
    """Returns the logits that transformers computes from the folder by itself."""
    kind = getattr(transformers, spec["config"]["architectures"][0], None)
    known = spec["config"]["model_type"] in transformers.CONFIG_MAPPING
    kind = kind or getattr(transformers, "AutoModelForCausalLM" if known else spec["kind"].model)
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation=spec.get("attention", "eager"),
                                experts_implementation="eager").eval()


def verify(root, name, spec):
    folder = root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    model, by_itself = load(folder, spec), published_model(folder, spec)
    again, tensors = compute(model, info["prompts"])
    tensors |= drafts(folder, spec, info["prompts"])
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
        same = cached[len(prompt):] == greedy["tokens"]
        assert same or not spec.get("cached", True), "generation with a cache differs"
        assert len(set(greedy["tokens"])) >= LEAST_IDS, greedy["tokens"]
    moved, least = info["overlooked"], min(g["min_margin"] for g in info["greedy"])
    assert min(moved.values()) > LEAST_MOVE and least > LEAST_MARGIN, (moved, least)
    print(f"{name}: verified within {apart:.1e}, float32 within {noise:.1e}; smallest margin {least}, "
          f"an overlooked feature moves {min(moved.values())} to {max(moved.values())}", flush=True)


def greedy(model, spec, prompt):
    """Returns greedy ids and their rows of logits. It uses a cache unless that changes the ids."""
    if spec.get("cached", True):
        out = model.generate(torch.tensor([prompt]), max_new_tokens=GREEDY, do_sample=False, eos_token_id=-1,
                             pad_token_id=0, output_logits=True, return_dict_in_generate=True)
        return out.sequences[0].tolist()[len(prompt):], torch.cat(out.logits)
    ids, rows = [], []
    while len(ids) < GREEDY:
        rows.append(run(model, prompt + ids)[-1])
        ids.append(int(rows[-1].argmax()))
    return ids, torch.stack(rows)


@torch.no_grad()
def is_sure(spec):
    """Returns true if the margins of a model's greedy text are large enough, and it has enough different ids."""
    model = load(None, spec)
    for prompt in (make_prompts(spec)[i] for i in GREEDY_PROMPTS):
        ids, rows = greedy(model, spec, prompt)
        if min(margins(rows)) <= LEAST_MARGIN or len(set(ids)) < LEAST_IDS: return False
    return True


def seek(name, spec):
    for seed in range(spec["seed"], spec["seed"] + 300):
        if is_sure(spec | dict(seed=seed)): return print(f"{name}: seed {seed}", flush=True)
    print(f"{name}: no seed", flush=True)


def main(verb, root, *names):
    torch.set_num_threads(1)
    models = all_models()
    for name in names or models:
        if verb == "seek": seek(name, models[name])
        if verb == "make": make(Path(root), name, models[name])
        if verb != "seek": verify(Path(root), name, models[name])


if __name__ == "__main__": main(*sys.argv[1:])
