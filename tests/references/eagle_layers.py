#!/usr/bin/env python3
"""eagle_layers.py make|verify TESTS_DATA: EAGLE-3 drafters of several layers for the tiny Llama, and what their class
computes.

make    writes TESTS_DATA/llama/eagle3-layers and eagle3-layers-qwen: config.json, model.safetensors, drafts.json,
        drafts.safetensors
verify  reads the folders back and computes everything again

Needs torch, transformers and speculators 0.9.0, whose Eagle3DraftModel defines such drafters. Its embeddings and norms
are as wide as config.json says, but it takes the target to be as wide, so fc is replaced by one for the target's rows.
eagle3-layers has three layers of Llama's with all biases, of which the second one slides, and a normed residual.
eagle3-layers-qwen has two layers of Qwen3's, of which the second one slides by max_window_layers; it norms all taps
together and passes the normed row on. Both are trained for some steps on the target's own greedy texts, so that some
drafts are accepted.

The class runs its layers over all pairs, and again over one more pair for each further draft. Its own loop does so too,
but for training: there a sliding layer counts the window from the pair that a chain began with. Like vLLM, which runs
these drafters, the masks here count it from the row's own position; for the first draft both are the same, and the
class's own loop is compared with it. drafts.json and drafts.safetensors have the layout of README.md's `draft`.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from transformers import LlamaForCausalLM

H, TARGET, VOCAB, DRAFT, STEPS, DRAFTS, SEED = 44, 256, 512, 101, 4, 3, 67
LAYER = {
    "hidden_size": H, "intermediate_size": 38, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 14,
    "hidden_act": "silu", "vocab_size": VOCAB, "max_position_embeddings": 256, "rms_norm_eps": 3e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 7000.0}}
COMMON = {
    "architectures": ["Eagle3DraftModel"], "speculators_model_type": "eagle3", "draft_vocab_size": DRAFT,
    "target_hidden_size": TARGET, "fc_norm": False, "tie_word_embeddings": False,
    "speculators_config": {
        "algorithm": "eagle3", "default_proposal_method": "greedy",
        "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3}],
        "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": None}}}
FULL, SLIDING = "full_attention", "sliding_attention"
DRAFTERS = {
    "eagle3-layers": {
        **COMMON, "eagle_aux_hidden_state_layer_ids": [1, 4, 6], "norm_before_residual": True, "norm_before_fc": False,
        "norm_output": False, "transformer_layer_config": {
            **LAYER, "model_type": "llama", "num_hidden_layers": 3, "attention_bias": True, "mlp_bias": True,
            "sliding_window": 4, "use_sliding_window": False, "layer_types": [FULL, SLIDING, FULL]}},
    "eagle3-layers-qwen": {
        **COMMON, "eagle_aux_hidden_state_layer_ids": [2, 5], "norm_before_residual": False, "norm_before_fc": True,
        "norm_output": True, "transformer_layer_config": {
            **LAYER, "model_type": "qwen3", "num_hidden_layers": 2, "attention_bias": False, "sliding_window": 5,
            "use_sliding_window": True, "max_window_layers": 1}}}


class Texts:
    """The reference's prompts with their greedy texts, and the inputs of the target's layers for them."""

    def __init__(self, data):
        info = json.loads((data / "models/llama/reference.json").read_text())
        target = LlamaForCausalLM.from_pretrained(data / "models/llama", dtype=torch.float32)
        self.prompts, self.greedy = info["prompts"], {g["prompt"]: g["tokens"] for g in info["greedy"]}
        self.inputs = {}
        for prompt, tokens in self.greedy.items():
            with torch.no_grad():
                seen = target(torch.tensor([self.prompts[prompt] + tokens]), output_hidden_states=True)
            self.inputs[prompt] = [rows[0] for rows in seen.hidden_states]

    def ids(self, prompt, n):
        return self.prompts[prompt] + self.greedy[prompt][:n]


class Drafter:
    def __init__(self, config, texts):
        self.texts, self.taps = texts, config["eagle_aux_hidden_state_layer_ids"]
        layer = {**config["transformer_layer_config"]}
        self.config = Eagle3SpeculatorConfig(**{**config, "transformer_layer_config": layer})
        self.config.transformer_layer_config._attn_implementation = "eager"
        self.model = Eagle3DraftModel(self.config)
        width = len(self.taps) * TARGET
        self.model.fc = torch.nn.Linear(width, H, bias=False)
        if self.model.input_norm is not None:
            self.model.input_norm = type(self.model.input_norm)(width, eps=LAYER["rms_norm_eps"])
        self.model.float()

    def tensors(self):
        left = ("verifier_", "rotary_emb")
        return {k: v for k, v in self.model.state_dict().items() if not k.startswith(left)}

    def taps_of(self, prompt, rows):
        return torch.cat([self.texts.inputs[prompt][t][:rows] for t in self.taps], -1)

    def seen(self, taps):
        return self.model.fc(taps if self.model.input_norm is None else self.model.input_norm(taps))

    def run(self, ids, g):
        """Returns the output and the scores of the last of these pairs, whose tokens are `ids`."""
        m, rows = self.model, len(ids)
        x = torch.cat([m.embed_tokens(torch.tensor([ids])), g[None]], -1)
        places = torch.arange(rows)
        angles = m.rotary_emb(x, places[None])
        for i, layer in enumerate(m.layers):
            behind = places[:, None] - places
            window = m.sliding_window if i in m.sliding_window_indices and m.sliding_window else rows
            masked = torch.where((behind >= 0) & (behind < window), 0.0, float("-inf"))
            x = layer(x, attention_mask=masked[None, None], position_ids=places[None], position_embeddings=angles)
        normed = m.norm(x)
        return (normed if self.config.norm_output else x)[0], m.lm_head(normed)[0]

    def chain(self, prompt, n, steps):
        """Returns the scores of a chain of drafts after n greedy ids, and the drafted ids of the target."""
        ids = self.texts.ids(prompt, n)
        tokens, g, scores, drafts = ids[1:], self.seen(self.taps_of(prompt, len(ids) - 1)), [], []
        for step in range(steps):
            x, logits = self.run(tokens, g)
            scores.append(logits[-1])
            best = int(logits[-1].argmax())
            drafts.append(best + int(self.model.d2t[best]))
            tokens, g = tokens + [drafts[-1]], torch.cat([g, x[-1:]])
        return torch.stack(scores), drafts

    def check_first(self, prompt, n):
        """Compares the first draft with the one of the class's own loop, which gives ids of the draft vocabulary."""
        ids = self.texts.ids(prompt, n)
        rows = len(ids) - 1
        [drafts] = self.model(self.taps_of(prompt, rows)[None], torch.tensor([ids[1:]]),
                              torch.zeros(1, rows, dtype=torch.long), ttt_steps=1)
        _, logits = self.run(ids[1:], self.seen(self.taps_of(prompt, rows)))
        assert torch.equal(drafts[0], logits.argmax(-1))


def random_drafter(name, texts):
    rnd = torch.Generator().manual_seed(SEED + sorted(DRAFTERS).index(name))
    drafter = Drafter(DRAFTERS[name], texts)
    kept = sorted({t for g in texts.greedy.values() for t in g})
    rest = [t for t in torch.randperm(VOCAB, generator=rnd).tolist() if t not in kept][:DRAFT - len(kept)]
    order = torch.tensor(kept + rest)[torch.randperm(DRAFT, generator=rnd)]
    t2d = torch.zeros(VOCAB, dtype=torch.bool)
    t2d[order] = True
    with torch.no_grad():
        for key, value in drafter.tensors().items():
            if not value.is_floating_point():
                continue
            norm, bias = value.dim() == 1 and "norm" in key, key.endswith("bias")
            scale = 0.2 if norm else 0.3 if bias else 1.2 * value.shape[-1] ** -0.5
            value.copy_(norm + scale * torch.randn(value.shape, generator=rnd))
        drafter.model.d2t.copy_(order - torch.arange(DRAFT))
        drafter.model.t2d.copy_(t2d)
    return drafter


def train(drafter):
    texts, model = drafter.texts, drafter.model
    order = (model.d2t + torch.arange(DRAFT)).tolist()
    optimizer = torch.optim.Adam([p for k, p in model.named_parameters() if not k.startswith("verifier_")], lr=2e-3)
    for _ in range(20):
        for prompt, tokens in texts.greedy.items():
            ids = texts.ids(prompt, len(tokens))
            x, logits = drafter.run(ids[1:-1], drafter.seen(drafter.taps_of(prompt, len(ids) - 2)))
            wanted = torch.tensor([order.index(t) for t in tokens[1:]])
            loss = torch.nn.functional.cross_entropy(logits[-len(wanted):], wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        for value in drafter.tensors().values():
            if value.is_floating_point():
                value.copy_(value.bfloat16())


def compute(drafter):
    texts, out, logits = drafter.texts, {"cases": [], "loop": []}, {}
    for prompt, tokens in texts.greedy.items():
        for n in (1, 2, 7, 41):
            drafter.check_first(prompt, n)
            name = f"eagle3_draft.{prompt}.{n}"
            scores, drafts = drafter.chain(prompt, n, STEPS)
            best = scores.topk(2).values
            assert (best[:, 0] - best[:, 1]).min() > 1e-2, name
            out["cases"].append({"case": name, "prompt": prompt, "n_generated": n, "L": len(texts.ids(prompt, n)),
                                 "tokens": drafts})
            logits[name + ".logits"] = scores.contiguous()
        n, rounds = 1, []
        while n < len(tokens):
            _, drafts = drafter.chain(prompt, n, DRAFTS)
            accepted = 0
            while accepted < DRAFTS and drafts[accepted:accepted + 1] == tokens[n + accepted:n + accepted + 1]:
                accepted += 1
            rounds.append({"n_generated": n, "drafted": drafts, "accepted": accepted})
            n += accepted + 1
        out["loop"].append({"prompt": prompt, "draft_length": DRAFTS, "rounds": rounds})
    return {"eagle3_draft": out}, logits


def read(folder, texts):
    drafter = Drafter(json.loads((folder / "config.json").read_text()), texts)
    stored = load_file(folder / "model.safetensors")
    missing = drafter.model.load_state_dict({k: v.float() if v.is_floating_point() else v for k, v in stored.items()},
                                            strict=False)
    assert not missing.unexpected_keys and all(k.startswith("verifier_") for k in missing.missing_keys), missing
    return drafter


def main():
    what, data = sys.argv[1], Path(sys.argv[2])
    texts = Texts(data)
    for name in DRAFTERS:
        folder = data / "llama" / name
        if what == "make":
            drafter = random_drafter(name, texts)
            train(drafter)
            folder.mkdir(exist_ok=True)
            (folder / "config.json").write_text(json.dumps(DRAFTERS[name], indent=1) + "\n")
            save_file({k: v.bfloat16().contiguous() if v.is_floating_point() else v
                       for k, v in drafter.tensors().items()}, folder / "model.safetensors")
        with torch.no_grad():
            drafts, logits = compute(read(folder, texts))
        accepted = [r["accepted"] for loop in drafts["eagle3_draft"]["loop"] for r in loop["rounds"]]
        print(name, "accepted per round:", accepted)
        if what == "make":
            (folder / "drafts.json").write_text(json.dumps(drafts) + "\n")
            save_file(logits, folder / "drafts.safetensors")
        elif json.loads((folder / "drafts.json").read_text()) != drafts or any(
                (load_file(folder / "drafts.safetensors")[k] - v).abs().max() > 1e-5 for k, v in logits.items()):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
