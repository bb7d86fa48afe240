"""Gemma 4 with transformers' own classes: configurations, random weights, folders, and the plain definition of
drafting.

In: a family of families.py. Out: models in float32 whose weights are exactly those that their folder stores.
"""
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from transformers import (Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4ForCausalLM, Gemma4TextConfig)

from families import DEFAULT_ROPE

KINDS = {"s": "sliding_attention", "f": "full_attention"}
BOS, PAD = 2, 0


# -------------------------------------------------------------------------------------- configurations

def text_config(family, part, eos):
    """Returns config.json of the target (if part is the family's target), or the assistant's text_config, as a
    dictionary."""
    target, rope = family["target"], family.get("rope", DEFAULT_ROPE)
    layers = [KINDS[c] for c in part["layers"]]
    experts = part.get("experts") or (None, None, None)
    is_target = part is target
    config = {
        "model_type": "gemma4_text", "vocab_size": family["vocab"], "hidden_size": part["hidden"],
        "intermediate_size": part["ffn"], "num_hidden_layers": len(layers), "num_attention_heads": part["heads"],
        "num_key_value_heads": target["kv"], "head_dim": target["head_dim"], "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 4096, "rms_norm_eps": target.get("eps", 1e-6), "pad_token_id": PAD,
        "bos_token_id": BOS, "tie_word_embeddings": True, "attention_bias": False, "attention_dropout": 0.0,
        "sliding_window": target["window"], "layer_types": layers, "final_logit_softcapping": part.get("softcap"),
        "use_bidirectional_attention": None, "vocab_size_per_layer_input": family["vocab"] if is_target else 0,
        "hidden_size_per_layer_input": part.get("ple", 0),
        "attention_k_eq_v": target.get("k_eq_v", False), "use_double_wide_mlp": part.get("double", False),
        "num_kv_shared_layers": part.get("shared", 0) if is_target else len(layers),
        "enable_moe_block": "experts" in part, "num_experts": experts[0], "top_k_experts": experts[1],
        "moe_intermediate_size": experts[2],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": rope["sliding"]},
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": rope["partial"],
                               "rope_theta": rope["full"]}}}
    if eos is not None:
        config["eos_token_id"] = eos
    global_kv = target.get("global_kv")
    if family["spelling"] == "global":
        config["global_head_dim"], config["num_global_key_value_heads"] = target["global_head_dim"], global_kv
    else:
        one = {"head_dim": target["global_head_dim"]} | ({"num_key_value_heads": global_kv} if global_kv else {})
        config["per_layer_config"] = {str(i): one for i, kind in enumerate(layers) if kind == KINDS["f"]}
    return config


def configs(family):
    """Returns config.json, generation_config.json and assistant/config.json."""
    eos, assistant = family["eos"], family["assistant"]
    text = text_config(family, family["target"], eos.get("text", eos["config"]))
    if family["nested"]:
        config = {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "text_config": text,
                  "tie_word_embeddings": True, "eos_token_id": eos["config"]}
    else:
        config = {"architectures": ["Gemma4ForCausalLM"], **text}
    generation = {"do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95, "bos_token_id": BOS}
    if eos["generation"] is not None:
        generation["eos_token_id"] = eos["generation"]
    centroids = assistant["centroids"]
    drafter = {"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
               "backbone_hidden_size": family["target"]["hidden"], "use_ordered_embeddings": centroids is not None,
               "num_centroids": centroids[0] if centroids else 2048,
               "centroid_intermediate_top_k": centroids[1] if centroids else 32, "tie_word_embeddings": True,
               "text_config": text_config(family, assistant, 1)}
    for made, stored in ((config, family["stored"]), (generation, None), (drafter, assistant["stored"])):
        made["transformers_version"] = "5.17.0"
        if stored:
            made["dtype"] = stored
    return config, generation, drafter


def end_ids(family):
    """Returns every id that ends a sequence, in whichever file it is named."""
    ids = [family["eos"].get(where) for where in ("config", "text", "generation")]
    return sorted({i for some in ids if some is not None for i in ([some] if isinstance(some, int) else some)})


def build_target(config):
    text = {k: v for k, v in config.get("text_config", config).items()
            if k not in ("architectures", "transformers_version", "dtype")}
    model = Gemma4ForCausalLM(Gemma4TextConfig(**text))
    model.set_attn_implementation("eager")
    return model.float().eval().requires_grad_(False)


def build_assistant(config):
    rest = {k: v for k, v in config.items()
            if k not in ("architectures", "transformers_version", "dtype", "model_type")}
    model = Gemma4AssistantForCausalLM(Gemma4AssistantConfig(**rest))
    model.set_attn_implementation("eager")
    return model.float().eval().requires_grad_(False)


# -------------------------------------------------------------------------------- random weights

def fill(model, seed, stored, special):
    """Fills every parameter and buffer, in the order of names: with special(name, tensor, g) if that gives a value,
    otherwise norms with values about 1 and matrices with N(0, 1/fan-in). Values are rounded to the type that the
    folder stores."""
    g = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(model.state_dict(keep_vars=True).items()):
        if name == "lm_head.weight":
            continue
        value = special(name, tensor, g)
        if value is None:
            noise = torch.randn(tensor.shape, generator=g)
            value = 1 + 0.25 * noise if "norm" in name.split(".")[-2] else noise / math.sqrt(tensor.shape[-1])
        tensor.data = value.to(getattr(torch, stored)).float() if value.is_floating_point() else value
    model.tie_weights()


def fill_target(model, seed, stored):
    hidden, ple = model.config.hidden_size, model.config.hidden_size_per_layer_input

    def special(name, tensor, g):
        noise = lambda: torch.randn(tensor.shape, generator=g)
        if name.endswith("layer_scalar"):
            return 0.35 + 0.3 * torch.rand(tensor.shape, generator=g)
        if name.endswith("embed_tokens.weight"):
            weight = 2.0 * noise() / hidden ** 0.5
            weight[:19] *= 0.2                  # special tokens, so that greedy text does not reach an end of sequence
            return weight
        if name.endswith("embed_tokens_per_layer.weight"):
            return noise() / ple ** 0.5
        if name == "model.norm.weight":         # both signs, or tied tokens repeat themselves
            return 2.5 * (1 + 0.25 * noise()) * (1 - 2.0 * torch.randint(0, 2, tensor.shape, generator=g))
        if name.endswith("router.scale"):
            return 1 + 0.25 * noise()
        if name.endswith("per_expert_scale"):
            return 0.6 + 0.8 * torch.rand(tensor.shape, generator=g)
        if name.endswith("router.proj.weight"):
            return 6.0 * noise()
        if name.endswith(("q_norm.weight", "k_norm.weight")):   # small, or attention sees only one position
            return (1 + 0.25 * noise()) * 1.3 / tensor.shape[0] ** 0.25
        return None
    fill(model, seed, stored, special)


def fill_assistant(model, seed, stored):
    hidden = model.config.text_config.hidden_size

    def special(name, tensor, g):
        noise = lambda: torch.randn(tensor.shape, generator=g)
        if name.endswith("layer_scalar"):
            return 0.5 + 0.4 * torch.rand(tensor.shape, generator=g)
        if name.endswith("embed_tokens.weight"):
            return 2.0 * noise() / hidden ** 0.5
        if name.endswith("token_ordering"):
            return torch.randperm(tensor.numel(), generator=g)
        if name.endswith("q_norm.weight"):
            return (1 + 0.25 * noise()) * 1.3 / tensor.shape[0] ** 0.25
        return None
    fill(model, seed, stored, special)


# ---------------------------------------------------------------- folders

def write_json(path, value):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def save_tensors(folder, state, stored, shards):
    state = {k: (v.to(getattr(torch, stored)) if v.is_floating_point() else v).contiguous().clone()
             for k, v in sorted(state.items()) if k != "lm_head.weight"}
    if shards == 1:
        save_file(state, f"{folder}/model.safetensors", metadata={"format": "pt"})
        return
    names, size = list(state), math.ceil(len(state) / shards)
    where = {}
    for i in range(shards):
        part = {name: state[name] for name in names[i * size:(i + 1) * size]}
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file(part, f"{folder}/{file}", metadata={"format": "pt"})
        where |= {name: file for name in part}
    total = sum(v.numel() * v.element_size() for v in state.values())
    write_json(f"{folder}/model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def unused_kv(model, seed):
    """Adds k_proj, v_proj and k_norm of the layers that share KV, as in published checkpoints. Nothing may read
    them."""
    g, state = torch.Generator().manual_seed(seed), {}
    attentions = [layer.self_attn for layer in model.model.layers]
    own = {attention.layer_type: attention for attention in attentions if not attention.is_kv_shared_layer}
    for i, attention in enumerate(attentions):
        if attention.is_kv_shared_layer:
            for name in ("k_proj.weight", "v_proj.weight", "k_norm.weight"):
                like = own[attention.layer_type].get_parameter(name)
                state[f"model.layers.{i}.self_attn.{name}"] = torch.randn(like.shape, generator=g)
    return state


def save_target(folder, model, family, config, generation):
    write_json(f"{folder}/config.json", config)
    write_json(f"{folder}/generation_config.json", generation)
    state = model.state_dict() | unused_kv(model, family["seed"] + 7)
    if family["nested"]:
        state = {name.replace("model.", "model.language_model.", 1): v for name, v in state.items()}
    save_tensors(folder, state, family["stored"], family["shards"])


def save_assistant(folder, model, family, config):
    write_json(f"{folder}/config.json", config)
    save_tensors(folder, model.state_dict(), family["assistant"]["stored"], 1)


def read_state(folder):
    state = {}
    for file in sorted(Path(folder).glob("model*.safetensors")):
        state |= load_file(file)
    return {name.replace("model.language_model.", "model."): v.float() if v.is_floating_point() else v
            for name, v in state.items()}


def load(folder, build):
    """Loads a target or an assistant only from its files, which must have every tensor of the model."""
    model, state = build(json.loads(Path(folder, "config.json").read_text())), read_state(folder)
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    known = model.state_dict().keys()
    model.load_state_dict({name: v for name, v in state.items() if name in known})
    model.tie_weights()
    return model


# ----------------------------------------------------- running the models

class Target:
    """Computes the logits [T, vocab], the hidden rows [T, hidden] after the final norm, and the KV that an assistant
    reads, which is that of the last layer of each type with KV of its own. There is no cache: every call computes
    everything."""

    def __init__(self, model):
        self.model, self.embed = model, model.get_input_embeddings()

    @torch.no_grad()
    def run(self, ids):
        out = self.model(input_ids=torch.tensor([ids]), use_cache=False, output_hidden_states=True,
                         return_shared_kv_states=True)
        return out.logits[0].float(), out.hidden_states[-1], dict(out.shared_kv_states)

    def greedy(self, ids, count):
        """Returns `count` new ids and their logits [count, vocab]. It does not stop at an end of sequence."""
        ids, rows = list(ids), []
        for _ in range(count):
            rows.append(self.run(ids)[0][-1])
            ids.append(int(rows[-1].argmax()))
        return ids[-count:], torch.stack(rows)


@torch.no_grad()
def draft(target, assistant, ids, depth):
    """Returns logits [depth, vocab] and the drafted ids. ids: L accepted ids, the last of which the target has not
    run.

    The first step reads the target's embedding of the last id (scaled by sqrt(hidden)) beside the target's hidden row
    at L-2. Each later step reads the drafted id's embedding beside the row after the post-projection of the step
    before. Every step is at position L-1 and reads the target's KV 0..L-2, of which transformers' layers with a window
    see the last window + 1.
    """
    _, hidden, kv = target.run(ids[:-1])
    state, last, position = hidden[:, -1:], torch.tensor([ids[-1:]]), torch.tensor([[len(ids) - 1]])
    logits, drafted = [], []
    for _ in range(depth):
        out = assistant(inputs_embeds=torch.cat([target.embed(last), state], -1), position_ids=position,
                        shared_kv_states=kv)
        state, last = out.last_hidden_state, out.logits.argmax(-1)
        logits.append(out.logits[0, 0].float())
        drafted.append(int(last))
    return torch.stack(logits), drafted


# ------------------------------------------------------------------------------------------------- training of drafters

def train(target, assistant, texts, steps=150, enough=0.85):
    """Trains by Adam on greedy texts [(ids, length of the prompt)], two draft steps deep, until the first draft is
    right often enough. All rows of a text are trained at once: row q drafts from KV 0..q, and rows don't see each
    other."""
    window, ordered = assistant.config.text_config.sliding_window, assistant.masked_embedding
    parameters = [p for name, p in assistant.named_parameters() if "layer_scalar" not in name]
    for p in parameters:
        p.requires_grad_(True)
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    if ordered is not None:
        cluster = torch.empty_like(ordered.token_ordering)
        cluster[ordered.token_ordering] = torch.arange(len(cluster)) // ordered.vocab_size_per_centroid
    seen = [(torch.tensor([ids]), target.run(ids[:-1]), prompt - 1) for ids, prompt in texts]
    for step in range(steps):
        loss, hits, rows = 0.0, 0, 0
        for ids, (_, hidden, kv), first in seen:
            state, count = hidden, hidden.shape[1]
            q, k = torch.arange(count)[:, None], torch.arange(count)[None]
            never = torch.finfo(torch.float32).min
            full = torch.where(k <= q, 0.0, never)[None, None]
            near = torch.where((k <= q) & (k >= q - window), 0.0, never)[None, None]
            for depth in range(2):
                m = count - 1 - depth
                inputs = torch.cat([target.embed(ids[:, 1 + depth:count]), state[:, :m]], -1)
                out = assistant.model(
                    inputs_embeds=assistant.pre_projection(inputs), position_ids=torch.arange(1, m + 1)[None],
                    attention_mask={KINDS["f"]: full[:, :, :m], KINDS["s"]: near[:, :, :m]}, shared_kv_states=kv,
                    use_cache=False).last_hidden_state
                state, answer = assistant.post_projection(out), ids[0, 2 + depth:][first:]
                scores = assistant.lm_head(out[0, first:])
                loss = loss + F.cross_entropy(scores, answer)
                if ordered is not None:
                    loss = loss + F.cross_entropy(ordered.centroids(out[0, first:]), cluster[answer])
                if depth == 0:
                    hits, rows = hits + int((scores.argmax(-1) == answer).sum()), rows + len(answer)
        if hits >= enough * rows:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for p in parameters:
        p.requires_grad_(False)
    return {"steps": step, "right": round(hits / rows, 4)}


def round_weights(model, stored):
    for p in model.parameters():
        p.data = p.data.to(getattr(torch, stored)).float()
