#!/usr/bin/env python3
"""make_reference.py make|verify FOLDER [FAMILY...]: tiny random models, and what transformers computes with them.

make    writes FOLDER/FAMILY: the model in its published form, assistant/, reference.json, reference.safetensors
verify  reads them back, only from the files, and computes everything again: with the same definitions, with
        from_pretrained, with transformers' cached generation and with its assisted generation

All numbers are computed in float32 (weights are converted), with eager attention, no cache and one thread, on a CPU.
reference.json      prompts, greedy ids with margins (best minus second logit), draft cases, rounds of verification
reference.safetensors  prompt.I.logits [T, vocab], greedy.I.logits [48, vocab], draft.I.K.logits [4, vocab]
"""
import json
import os
import random
import shutil
import sys
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, GenerationConfig

import gemma4
from families import FAMILIES

GREEDY, DEPTH, ROUND_DRAFT = 48, 4, 3
CASES = (1, 2, 7, 41)               # drafts are stored after this many generated ids
LENGTHS = (6, 13, 40)               # lengths of random prompts
LONG = 101                          # exceeds an attention block of 64; its greedy text exceeds another one
TEXT = "The quick brown fox jumps over the lazy dog"
FIRST_PLAIN = 275                   # smaller ids are special tokens and bytes


def cut_tokenizer(donor, vocab, folder):
    """Writes the donor's tokenizer.json with only its first `vocab` ids and the merges between these."""
    spec = json.loads(Path(donor, "tokenizer.json").read_text(encoding="utf-8"))
    pieces = {piece: i for piece, i in spec["model"]["vocab"].items() if i < vocab}
    join = lambda merge: "".join(merge) if isinstance(merge, list) else merge.replace(" ", "", 1)
    spec["model"]["vocab"] = pieces
    spec["model"]["merges"] = [merge for merge in spec["model"]["merges"] if join(merge) in pieces]
    Path(folder, "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False), encoding="utf-8")
    shutil.copyfile(Path(donor, "tokenizer_config.json"), Path(folder, "tokenizer_config.json"))
    return Tokenizer.from_file(f"{folder}/tokenizer.json")


def make_prompts(vocab, seed, text):
    """Prompt 0 is one id; 1 to 3 are random; 4 is text; 5 is random and long."""
    rnd = random.Random(seed)
    some = lambda length: [gemma4.BOS] + [rnd.randrange(FIRST_PLAIN, vocab) for _ in range(length - 1)]
    return [[gemma4.BOS], *map(some, LENGTHS), text, some(LONG)]


def margins(rows):
    best, second = rows.topk(2, -1).values.unbind(-1)
    return [round(float(m), 6) for m in best - second]


def reference(target, assistant, prompts, tensors, info):
    """Computes everything that is stored about a target and an assistant for these prompts."""
    info["prompts"], info["greedy"], info["draft"] = prompts, [], {"cases": [], "loop": []}
    for i, prompt in enumerate(prompts):
        tensors[f"prompt.{i}.logits"] = target.run(prompt)[0]
    for i in (2, len(prompts) - 1):
        ids, rows = target.greedy(prompts[i], GREEDY + 2 * DEPTH)
        tensors[f"greedy.{i}.logits"] = rows[:GREEDY]
        info["greedy"].append({"prompt": i, "tokens": ids[:GREEDY], "margins": margins(rows[:GREEDY]),
                               "min_margin": min(margins(rows[:GREEDY]))})
        for done in CASES:
            logits, drafted = gemma4.draft(target, assistant, prompts[i] + ids[:done], DEPTH)
            case = f"draft.{i}.{done}"
            tensors[case + ".logits"] = logits
            info["draft"]["cases"].append(
                {"case": case, "prompt": i, "n_generated": done, "L": len(prompts[i]) + done, "tokens": drafted,
                 "margins": margins(logits), "target_next": ids[done:done + DEPTH]})
        loop = rounds(lambda known, depth: gemma4.draft(target, assistant, known, depth), prompts[i], ids)
        info["draft"]["loop"].append({"prompt": i, "draft_length": ROUND_DRAFT} | loop)


def rounds(draft, prompt, ids):
    """Verifies drafts greedily from the first generated id on. The last round may go beyond GREEDY ids. draft returns
    the logits and ids of as many drafts as it is asked for, after the ids that it is given."""
    done, made = 1, []
    while done < GREEDY:
        drafted = draft(prompt + ids[:done], ROUND_DRAFT)[1]
        accepted = next((k for k in range(ROUND_DRAFT) if drafted[k] != ids[done + k]), ROUND_DRAFT)
        made.append({"n_generated": done, "drafted": drafted, "accepted": accepted})
        done += accepted + 1
    accepted = sum(r["accepted"] for r in made)
    return {"rounds": made, "n_rounds": len(made), "drafted_total": ROUND_DRAFT * len(made), "accepted_total": accepted,
            "tokens_per_round": round((accepted + len(made)) / len(made), 4)}


def make(root, name):
    family, folder = FAMILIES[name], Path(root, name)
    seed, stored = family["seed"], family["assistant"]["stored"]
    (folder / "assistant").mkdir(parents=True, exist_ok=True)
    tokenizer = cut_tokenizer(Path(root, "gemma4-e"), family["vocab"], folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folder / file, folder / "assistant" / file)
    prompts = make_prompts(family["vocab"], seed, tokenizer.encode(TEXT).ids)

    config, generation, drafter = gemma4.configs(family)
    model = gemma4.build_target(config)
    gemma4.fill_target(model, seed, family["stored"])
    gemma4.save_target(folder, model, family, config, generation)
    target = gemma4.Target(model)

    assistant = gemma4.build_assistant(drafter)
    gemma4.fill_assistant(assistant, seed + 100, stored)
    lessons = [prompts[2], prompts[-1], *make_prompts(family["vocab"], seed + 50, [gemma4.BOS, FIRST_PLAIN])[:4]]
    training = gemma4.train(target, assistant, [(p + target.greedy(p, GREEDY)[0], len(p)) for p in lessons])
    gemma4.round_weights(assistant, stored)
    gemma4.save_assistant(folder / "assistant", assistant, family, drafter)

    tensors = {}
    info = {"family": name, "seed": seed, "transformers": "5.17.0", "torch": torch.__version__, "n_greedy": GREEDY,
            "draft_depth": DEPTH, "special_ids": {"bos": gemma4.BOS, "eos": gemma4.end_ids(family)},
            "assistant_training": training}
    reference(*reload(folder), prompts, tensors, info)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "reference.safetensors")
    gemma4.write_json(folder / "reference.json", info)
    for file in folder.rglob("*.*"):
        file.chmod(0o644)
    print(f"{name}: smallest margin {min(g['min_margin'] for g in info['greedy'])}, assistant {training}, "
          f"tokens a round {[loop['tokens_per_round'] for loop in info['draft']['loop']]}", flush=True)


def reload(folder):
    target = gemma4.Target(gemma4.load(folder, gemma4.build_target))
    return target, gemma4.load(folder / "assistant", gemma4.build_assistant)


def verify(root, name):
    folder = Path(root, name)
    stored, info = load_file(folder / "reference.safetensors"), json.loads((folder / "reference.json").read_text())
    target, assistant = reload(folder)
    tensors, again = {}, {}
    reference(target, assistant, info["prompts"], tensors, again)
    assert stored.keys() == tensors.keys(), stored.keys() ^ tensors.keys()
    worst = max(float((stored[k] - tensors[k]).abs().max()) for k in stored)
    same = all(again[k] == info[k] for k in again)
    lines = [f"recomputed within {worst:.1e}, ids and rounds {'equal' if same else 'DIFFER'}"]
    good = same and worst < 1e-4

    if not FAMILIES[name]["nested"]:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        logits = gemma4.Target(model).run(info["prompts"][-1])[0]
        gap = float((logits - stored[f"prompt.{len(info['prompts']) - 1}.logits"]).abs().max())
        lines.append(f"from_pretrained within {gap:.1e}")
        good = good and gap < 1e-4
    for which, extra in (("cached", {}), ("assisted", {"assistant_model": assistant})):
        for greedy in info["greedy"]:
            equal = generated(target.model, info["prompts"][greedy["prompt"]], extra) == greedy["tokens"]
            lines.append(f"{which} generation {'equal' if equal else 'DIFFERS'}")
            good = good and equal
    print(f"{name}: " + ", ".join(lines), flush=True)
    return good


def generated(model, prompt, extra):
    model.generation_config = GenerationConfig(pad_token_id=gemma4.PAD)
    for assistant in extra.values():
        assistant.generation_config.num_assistant_tokens = ROUND_DRAFT
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
    out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=GREEDY, eos_token_id=-1, **extra)
    return out[0, len(prompt):].tolist()


def main(verb, root, *names):
    torch.set_num_threads(1)
    names = names or FAMILIES
    if verb == "make":
        for name in names:
            make(root, name)
    elif not all([verify(root, name) for name in names]):
        raise SystemExit("something differs")


if __name__ == "__main__":
    main(*sys.argv[1:])
