#!/usr/bin/env python3
"""mixtures_mtp.py make|verify|seek DATA [NAME...]: tiny random mixtures of sparse.py with an MTP layer, and what
transformers 5.24 computes with them. mixtures_mtp.py convert LLAMA_CPP DATA: llama.cpp's GGUF file of K-EXAONE.

Mellum 2's MTP layer is transformers' own: `verify` reads it from the folder by MtpModel. transformers ignores the
others. K-EXAONE's is computed here after vLLM's exaone_moe_mtp.py, and ERNIE 4.5's after FastDeploy's
ernie4_5_mtp.py, in which the model's last norm comes before the head: both are a decoder layer of transformers with a
dense feed-forward. mixtures.py describes the files and the drafts, and its `compute` and its training are used here.
"""
import copy
import json
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.modeling_layers import MtpModel

import mixtures
import sparse
from dense import LEAST_IDS, LEAST_MARGIN
from dense_of_norms import FULL, SLIDING

MODELS = {
    # A full MTP layer without positions and with a dense feed-forward, as published, behind a sliding layer.
    "exaone-moe-mtp": dict(seed=7434, kind=FULL, mlp="dense", config=sparse.EXAONE | dict(
        num_hidden_layers=4, layer_types=[SLIDING, FULL, SLIDING, SLIDING], mlp_layer_types=["dense"] + ["sparse"] * 3,
        vocab_size=240, max_position_embeddings=1024, num_nextn_predict_layers=1, mtp_layer_types=[FULL],
        mtp_sliding_windows=[0])),
    # A sliding MTP layer with a mixture, by default. Its window is shorter than the texts.
    "mellum-mtp": dict(seed=7543, kind=SLIDING, mlp="sparse", config=sparse.MELLUM | dict(
        num_hidden_layers=3, layer_types=[SLIDING, FULL, FULL], mlp_layer_types=["sparse"] * 3, vocab_size=240,
        max_position_embeddings=1024, num_nextn_predict_layers=1)),
    # A full MTP layer with a dense feed-forward, as the lists say, behind a layer with a mixture.
    "mellum-mtp-dense": dict(seed=7721, kind=FULL, mlp="dense", config=sparse.MELLUM | dict(
        num_hidden_layers=2, layer_types=[SLIDING, FULL], mlp_layer_types=["sparse"] * 2, vocab_size=240,
        max_position_embeddings=1024, num_nextn_predict_layers=1, mtp_layer_types=[FULL],
        mtp_mlp_layer_types=["dense"])),
    "ernie4.5-moe-mtp": dict(seed=7603, kind=FULL, mlp="dense", config=sparse.ERNIE | dict(
        vocab_size=240, num_hidden_layers=3, head_dim=14, max_position_embeddings=1024, tie_word_embeddings=True,
        num_nextn_predict_layers=1)),
}

# The published beginnings of the names of an MTP layer's tensors.
USUAL = {"": "mtp."}
NAMES = {"ernie4_5_moe": {"pre_fc_norm_embedding.": "model.mtp_emb_norm.0.", "fc.": "model.mtp_linear_proj.0.",
                          "pre_fc_norm_hidden.": "model.mtp_hidden_norm.0.", "layers.0.": "model.mtp_block.0."}}


def published(spec, name):
    names = NAMES.get(spec["config"]["model_type"], USUAL)
    begin = next(begin for begin in names if name.startswith(begin))
    return names[begin] + name.removeprefix(begin)


class Mtp(nn.Module):
    """The MTP layer. Its tensors have Qwen3-Next's names without "mtp."."""

    def __init__(self, model, spec):
        super().__init__()
        config, last = copy.deepcopy(model.config), model.model.layers[-1]
        config.layer_types, config.mlp_layer_types, config.num_hidden_layers = [spec["kind"]], [spec["mlp"]], 1
        ernie = config.model_type == "ernie4_5_moe"
        if ernie: config.moe_layer_start_index = 1
        norm = lambda: type(model.model.norm)(config.hidden_size, eps=config.rms_norm_eps)
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = norm(), norm()
        if not ernie: self.norm = norm()
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layers = nn.ModuleList([type(last)(config, 0)])


class Target(mixtures.Target):
    def __init__(self, model, mtp, spec):
        self.model, self.mtp, self.spec = model.eval(), mtp.eval(), spec
        self.embed, self.head = model.get_input_embeddings(), model.lm_head
        self.norm = getattr(mtp, "norm", model.model.norm)

    def around(self, embedded):
        """Returns what the layer gets besides its rows: positions, what its rows see, and its rotary positions."""
        places = torch.arange(1, embedded.shape[1] + 1)[None]
        apart = places.T - places
        window = self.spec["config"]["sliding_window"] if self.spec["kind"] == SLIDING else len(apart)
        seen = torch.where((apart >= 0) & (apart < window), 0.0, torch.finfo(embedded.dtype).min)[None, None]
        kinds = [self.spec["kind"]] if self.spec["config"]["model_type"] == "mellum" else []
        return dict(position_ids=places, attention_mask=seen,
                    position_embeddings=self.model.model.rotary_emb(embedded, places, *kinds))

    def pairs(self, tokens, hidden):
        m, e = self.mtp, self.embed(tokens)
        z = m.layers[0](m.fc(torch.cat([m.pre_fc_norm_embedding(e), m.pre_fc_norm_hidden(hidden)], -1)),
                        **self.around(e))
        return self.norm(z[0] if isinstance(z, tuple) else z)


def target_of(model, spec):
    return Target(model, Mtp(model, spec).float(), spec)


def save(folder, spec, target):
    """Adds the MTP layer to the folder that sparse.py has saved, with a tensor for each matrix of each expert."""
    sparse.save(folder, spec)
    state = mixtures.split({published(spec, k): v for k, v in target.mtp.state_dict().items()})
    state = load_file(folder / "model.safetensors") | {k: v.bfloat16().contiguous() for k, v in state.items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def load(folder, spec):
    target = target_of(sparse.load(folder, spec), spec)
    state = mixtures.join(load_file(folder / "model.safetensors"))
    target.mtp.load_state_dict({k: state[published(spec, k)].float() for k in target.mtp.state_dict()})
    return target


def make(root, name):
    spec, folder = MODELS[name], root / name
    target, prompts = target_of(sparse.filled(spec), spec), sparse.make_prompts(spec)
    sparse.fill(target.mtp.state_dict(), spec["seed"] + 100)
    info = {"family": name, "seed": spec["seed"], "transformers": transformers.__version__, "torch": torch.__version__,
            "n_greedy": mixtures.GREEDY, "draft_depth": mixtures.DEPTH,
            "special_ids": {"bos": 3, "eos": sparse.ENDS["eos_token_id"]}}
    with torch.no_grad():
        texts = [(p + target.greedy(p, mixtures.GREEDY)[0], len(p)) for p in [prompts[2], prompts[-1], prompts[1]]]
    info["training"] = mixtures.train(target, texts)
    save(folder, spec, target)
    tensors, computed = mixtures.compute(load(folder, spec), prompts)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(info | computed, separators=(",", ":")))
    for file in folder.iterdir(): file.chmod(0o644)


@torch.no_grad()
def transformers_draft(folder, target, ids):
    """Returns the first draft of transformers' own MTP layer, which it reads from the folder."""
    model = sparse.class_of(target.spec).from_pretrained(folder, dtype=torch.float32, **sparse.EAGER)
    own = MtpModel.from_pretrained(model).float().eval()
    hidden, embedded = target.run(ids[:-1])[1], target.embed(torch.tensor([ids[1:]]))
    return target.head(own.layers[0](embedded, hidden, cache=None, **target.around(embedded))[0, -1])


@torch.no_grad()
def verify(root, name):
    spec, folder = MODELS[name], root / name
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    target = load(folder, spec)
    tensors, again = mixtures.compute(target, info["prompts"])
    assert stored.keys() == tensors.keys() and all(again[k] == info[k] for k in again)
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    for case in info["draft"]["cases"] if spec["config"]["model_type"] == "mellum" else []:
        text = next(g["tokens"] for g in info["greedy"] if g["prompt"] == case["prompt"])
        row = transformers_draft(folder, target, info["prompts"][case["prompt"]] + text[:case["n_generated"]])
        apart = max(apart, float((row - stored[case["case"] + ".logits"][0]).abs().max()))
    least = min(g["min_margin"] for g in info["greedy"])
    loops = [(loop["accepted_total"], loop["drafted_total"]) for loop in info["draft"]["loop"]]
    print(f"{name}: verified within {apart:.1e}; smallest margin {least}, drafts {loops}", flush=True)
    assert apart < 2e-5 and least > LEAST_MARGIN
    assert all(len(set(g["tokens"])) >= LEAST_IDS for g in info["greedy"])


@torch.no_grad()
def seek(name):
    """Prints the first seed, from that of the table on, with which greedy text passes. Writes nothing."""
    for seed in range(MODELS[name]["seed"], MODELS[name]["seed"] + 100):
        spec = MODELS[name] | dict(seed=seed)
        target, prompts = target_of(sparse.filled(spec), spec), sparse.make_prompts(spec)
        texts = (target.greedy(prompts[i], mixtures.GREEDY) for i in (2, 3))
        if all(min(mixtures.margins(rows)) > LEAST_MARGIN and len(set(ids)) >= LEAST_IDS for ids, rows in texts):
            return print(f"{name}: seed {seed}", flush=True)
    print(f"{name}: no seed", flush=True)


def main(verb, root, *names):
    torch.set_num_threads(1)
    if verb == "convert": return sparse.convert(root, Path(names[0]), "exaone-moe-mtp")
    for name in names or MODELS:
        if verb == "seek":
            seek(name)
            continue
        if verb == "make": make(Path(root, "models"), name)
        verify(Path(root, "models"), name)


if __name__ == "__main__": main(*sys.argv[1:])
