#!/usr/bin/env python3
"""muse_drafter.py make|verify|convert FOLDER [LLAMA_CPP]: a tiny random Muse-Glimmer with its own block drafter, and
what transformers 5.24 computes with both.

make    writes FOLDER: the target's text model, drafter/ in the published form, reference.json, reference.safetensors
verify  reads them back, only from the files, computes everything again, and follows transformers' assisted generation
convert writes drafter.gguf in BF16 with the converter of a source tree of llama.cpp

The drafter is MuseGlimmerAssistantModel, and its drafts are those of DFlashTokenCandidateGenerator, which is given the
target's rows of the whole text. Both are used as they are. As in the other references of tests/data/dflash: float32,
eager attention, one thread. The window is smaller than the block, so that it limits what a block's rows see of each
other too. The tokenizer is that of tests/data/dflash/qwen3."""
import json
import os
import random
import runpy
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from transformers.cache_utils import DFlashCache
from transformers.generation.candidate_generator import DFlashTokenCandidateGenerator

from dense_of_gates import MuseGlimmerText
from mixtures import margins

SEED, GREEDY, BEYOND, POSITIONS, FIRST, LENGTHS = 9820, 48, 8, (1, 2, 9, 30), 270, (5, 12, 33, 21)
SLIDING, FULL, VOCAB, BLOCK, MASK = "sliding_attention", "full_attention", 320, 6, 319
ENDS = dict(bos_token_id=312, eos_token_id=[310, 308], pad_token_id=312)

TEXT = ENDS | dict(
    model_type="muse_glimmer_text", rms_norm_eps=1e-5, post_norm_eps=1e-8, vocab_size=VOCAB, hidden_size=64,
    intermediate_size=80, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
    sliding_window=9, layer_types=[SLIDING, SLIDING, SLIDING, FULL], layer_rope_theta=[500.0, 500.0, 500.0, 0],
    rope_parameters=dict(rope_type="default", rope_theta=500.0), final_logit_softcapping=9.0, qk_scale_factor=2.1,
    output_multiplier=0.7, attention_bias=False, tie_word_embeddings=False, max_position_embeddings=512,
    torch_dtype="bfloat16")
TARGET = ENDS | dict(
    architectures=["MuseGlimmerForConditionalGeneration"], model_type="muse_glimmer", image_token_id=316,
    video_token_id=318, text_config=TEXT, out_hidden_size=64, projector_hidden_size=12, tie_word_embeddings=False,
    vision_config=dict(model_type="muse_glimmer_vision", patch_size=2, pos_emb_height=4, pos_emb_width=4,
                       num_attention_heads=2, num_hidden_layers=1, hidden_size=16, intermediate_size=12,
                       patch_temporal=2, merge_size=2, max_position_embeddings=16))
DRAFTER = ENDS | dict(
    eos_token_id=310, architectures=["MuseGlimmerAssistantModel"], model_type="muse_glimmer_assistant", hidden_size=64,
    intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1, head_dim=16,
    rms_norm_eps=3e-5, rope_parameters=dict(rope_type="default", rope_theta=700.0), max_position_embeddings=512,
    sliding_window=4, layer_types=[SLIDING, FULL, SLIDING], attention_dropout=0, hidden_act="silu", block_size=BLOCK,
    mask_token_id=MASK, target_layer_ids=[0, 2], torch_dtype="bfloat16")


def plain(config):
    return {k: v for k, v in json.loads(json.dumps(config)).items() if k not in ("architectures", "model_type",
                                                                                "torch_dtype")}


def build():
    text = transformers.MuseGlimmerTextConfig(**plain(TEXT))
    own = transformers.MuseGlimmerAssistantConfig(**plain(DRAFTER))
    text._attn_implementation = own._attn_implementation = "eager"
    return MuseGlimmerText(text).float().eval(), transformers.MuseGlimmerAssistantModel(own).float().eval()


@torch.no_grad()
def fill(module, seed):
    """Fills the target's tensors or the drafter's. The layers' norms of the target are stored minus 1."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(module.state_dict().items()):
        noise = torch.randn(tensor.shape, generator=generator)
        less_one = name.startswith("model.") and name.endswith("layernorm.weight")
        if tensor.dim() == 1: tensor.copy_(0.25 * noise + (0 if less_one else 1))
        else: tensor.copy_(noise * (2.5 if name == "lm_head.weight" else 1) * tensor.shape[-1] ** -0.5)
        if name == "lm_head.weight": tensor[312:] *= 0.2  # control tokens are rarely chosen
        tensor.copy_(tensor.bfloat16().float())


class Bench:
    def __init__(self, target, drafter):
        self.target, self.drafter, self.config = target, drafter, drafter.config

    def logits(self, ids):
        return self.target(torch.tensor([ids])).logits[0]

    def greedy(self, ids, count):
        ids, rows = list(ids), []
        for _ in range(count):
            rows.append(self.logits(ids)[-1])
            ids.append(int(rows[-1].argmax()))
        return ids[-count:], torch.stack(rows)

    def rows(self, ids):
        return self.target.model(input_ids=torch.tensor([ids]), output_hidden_states=True)

    @torch.no_grad()
    def block(self, ids, count=BLOCK):
        """Returns the drafts after these ids, the drafter's rows after its norm, and all rows' logits."""
        seen, length = [], len(ids)
        self.config.block_size = count
        generator = DFlashTokenCandidateGenerator(
            self.drafter, self.target.get_input_embeddings(), self.target.lm_head,
            SimpleNamespace(max_length=4096, do_sample=False))
        hook = self.drafter.norm.register_forward_hook(lambda module, inputs, out: seen.append(out[0]))
        kept, logits = generator.get_candidates(
            torch.tensor([ids]), {"position_ids": torch.arange(length)[None],
                                  "attention_mask": torch.ones(1, length, dtype=torch.long)},
            self.rows(ids[:-1]), False, 0)
        hook.remove()
        self.config.block_size = BLOCK
        scores = self.target.lm_head(seen[0])
        assert torch.allclose(scores[1:], logits[0], atol=1e-5)
        return kept[0, length:].tolist(), seen[0], scores

    def train(self, texts, steps=120, enough=0.75):
        """Trains on the target's greedy texts, by blocks at random places, until drafts are right often enough."""
        rnd, parameters = random.Random(SEED), list(self.drafter.parameters())
        optimizer = torch.optim.Adam(parameters, lr=6e-3)
        table = self.target.get_input_embeddings().weight.detach()
        for p in self.target.parameters(): p.requires_grad_(False)
        seen = []
        for ids, first in texts:
            states = self.rows(ids).hidden_states
            seen.append((ids, first, torch.cat([states[i + 1] for i in self.config.target_layer_ids], -1)))
        for step in range(steps):
            loss, right, count = 0.0, 0, 0
            for ids, first, taps in seen:
                for at in rnd.sample(range(first, len(ids) - BLOCK), 6):
                    cache = DFlashCache(config=self.config)
                    cache.set_previous_accepted_tokens(at)
                    rows = self.drafter(
                        noise_embeds=table[[ids[at]] + [MASK] * (BLOCK - 1)][None], context_hidden_states=taps[:, :at],
                        attention_mask=torch.ones(1, at + BLOCK, dtype=torch.long),
                        position_ids=torch.arange(at + BLOCK)[None], cache=cache).last_hidden_state[0, 1:]
                    scores, answer = self.target.lm_head(rows), torch.tensor(ids[at + 1:at + BLOCK])
                    loss = loss + F.cross_entropy(scores, answer)
                    right, count = right + int((scores.argmax(-1) == answer).sum()), count + len(answer)
            if right >= enough * count: break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            for p in parameters: p.copy_(p.bfloat16().float())
        return {"steps": step, "right": round(right / count, 4)}


def save(folder, target, drafter):
    inner = {f"model.language_model.{k}": v for k, v in target.model.state_dict().items()}
    parts = {folder: (TARGET, inner | {"lm_head.weight": target.lm_head.weight}),
             folder / "drafter": (DRAFTER, drafter.state_dict())}
    for place, (config, state) in parts.items():
        place.mkdir(parents=True, exist_ok=True)
        save_file({k: v.detach().bfloat16().contiguous() for k, v in state.items()}, place / "model.safetensors",
                  metadata={"format": "pt"})
        (place / "config.json").write_text(json.dumps(config, indent=1))
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(folder.parent / "qwen3" / file, folder / file)


def load(folder):
    target, drafter = build()
    state = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    target.load_state_dict({k.replace("model.language_model.", "model."): v for k, v in state.items()})
    drafter.load_state_dict({k: v.float() for k, v in load_file(folder / "drafter/model.safetensors").items()})
    return Bench(target, drafter)


@torch.no_grad()
def compute(bench, prompts):
    tensors, info = {}, {"prompts": prompts, "greedy": [], "draft": {"cases": [], "cut": [], "loop": []}}
    draft = info["draft"]
    for i, prompt in enumerate(prompts): tensors[f"prompt.{i}.logits"] = bench.logits(prompt)
    for i in (2, 3, 4):
        text, rows = bench.greedy(prompts[i], GREEDY + BEYOND)
        tensors[f"greedy.{i}.logits"] = rows[:GREEDY]
        info["greedy"].append({"prompt": i, "tokens": text[:GREEDY], "margins": margins(rows[:GREEDY]),
                               "min_margin": min(margins(rows[:GREEDY]))})
        for case, done, count in [(f"draft.{i}.{n}", n, BLOCK) for n in POSITIONS] + [
                (f"draft_cut.{i}.{count}", 9, count) for count in (2, BLOCK - 3)]:
            tokens, hidden, scores = bench.block(prompts[i] + text[:done], count)
            tensors[f"{case}.hidden"], tensors[f"{case}.logits"] = hidden, scores
            draft["cases" if count == BLOCK else "cut"].append(
                {"case": case, "prompt": i, "n_generated": done, "L": len(prompts[i]) + done, "rows": count,
                 "tokens": tokens, "margins": margins(scores[1:]), "target_next": text[done:done + len(tokens)]})
        done, rounds = 1, []
        while done < GREEDY:
            drafted, n = bench.block(prompts[i] + text[:done])[0], 0
            while n < len(drafted) and done + n < len(text) and drafted[n] == text[done + n]: n += 1
            rounds.append({"n_generated": done, "drafted": drafted, "accepted": n})
            done += n + 1
        draft["loop"].append({"prompt": i, "draft_length": BLOCK - 1, "rounds": rounds, "n_rounds": len(rounds),
                              "accepted_total": sum(r["accepted"] for r in rounds)})
    return tensors, info


def make(folder):
    rnd = random.Random(SEED)
    prompts = [[312]] + [[312] + [rnd.randrange(FIRST, 312) for _ in range(n - 1)] for n in LENGTHS]
    target, drafter = build()
    fill(target, SEED)
    fill(drafter, SEED + 100)
    bench = Bench(target, drafter)
    with torch.no_grad(): texts = [(p + bench.greedy(p, GREEDY + BEYOND)[0], len(p)) for p in prompts[1:]]
    info = {"family": "muse-glimmer", "seed": SEED, "transformers": transformers.__version__,
            "torch": torch.__version__, "n_greedy": GREEDY, "special_ids": {"bos": 312, "eos": ENDS["eos_token_id"]},
            "training": bench.train(texts), "drafter": {"kind": "muse", "block_size": BLOCK, "mask_token_id": MASK,
                                                        "first_draft_row": 1, "draft_vocab": VOCAB}}
    save(folder, target, drafter)
    tensors, computed = compute(load(folder), prompts)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(info | computed, separators=(",", ":")))
    for file in folder.rglob("*.*"): file.chmod(0o644)
    print(info["training"], [(loop["n_rounds"], loop["accepted_total"]) for loop in computed["draft"]["loop"]],
          "margins:", [g["min_margin"] for g in computed["greedy"]],
          min(min(c["margins"]) for c in computed["draft"]["cases"] + computed["draft"]["cut"]))


def verify(folder):
    bench, info = load(folder), json.loads((folder / "reference.json").read_text())
    stored = load_file(folder / "reference.safetensors")
    tensors, again = compute(bench, info["prompts"])
    assert stored.keys() == tensors.keys() and all(again[k] == info[k] for k in again)
    apart = max(float((stored[k] - v).abs().max()) for k, v in tensors.items())
    whole = transformers.MuseGlimmerForConditionalGeneration(transformers.MuseGlimmerConfig(**plain(TARGET))).float()
    whole.model.language_model.load_state_dict(bench.target.model.state_dict())
    whole.lm_head.load_state_dict(bench.target.lm_head.state_dict())
    for greedy in info["greedy"]:
        prompt = torch.tensor([info["prompts"][greedy["prompt"]]])
        blocks, before = [], DFlashTokenCandidateGenerator.get_candidates
        def follow(self, input_ids, *rest, **named):
            out = before(self, input_ids, *rest, **named)
            blocks.append(out[0][0, input_ids.shape[1]:].tolist())
            return out
        DFlashTokenCandidateGenerator.get_candidates = follow
        made = whole.eval().generate(prompt, assistant_model=bench.drafter, speculation_type="dflash",
                                     max_new_tokens=GREEDY, do_sample=False, eos_token_id=None, pad_token_id=0)
        DFlashTokenCandidateGenerator.get_candidates = before
        text, rounds = greedy["tokens"], next(loop["rounds"] for loop in info["draft"]["loop"]
                                              if loop["prompt"] == greedy["prompt"])
        same = sum(block == round["drafted"] for block, round in zip([b for b in blocks if b], rounds))
        print(f"assisted generation: text {made[0, prompt.shape[1]:].tolist() == text}, blocks {same} of {len(rounds)}")
    assert apart < 1e-4, apart
    print(f"verified within {apart:.1e}")


def convert(folder, tree):
    sys.path[:0] = [tree, f"{tree}/gguf-py"]
    from conversion.base import TextModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"  # it knows only whole published tokenizers
    sys.argv = ["convert_hf_to_gguf.py", str(folder / "drafter"), "--target-model-dir", str(folder), "--outtype",
                "bf16", "--outfile", str(folder / "drafter.gguf")]
    runpy.run_path(f"{tree}/convert_hf_to_gguf.py", run_name="__main__")


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"make": make, "verify": verify, "convert": convert}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
