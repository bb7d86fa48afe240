#!/usr/bin/env python3
"""Train the demo model: a small Gemma 4 and its multi-token-prediction assistant, on a CPU.

  train.py STAGE --text FOLDER --out FOLDER [options]

Stages, in the order in which `all` runs them:
  tokenizer   the text -> OUT/target/tokenizer.json
  target      the text -> OUT/target
  greedy      the target's own greedy text, continuing prompts from the training text -> OUT/greedy/*.npy
  assistant   the text and the greedy text -> OUT/assistant
  evaluate    tokens per target call with OUT/assistant, on prompts of held-out documents

Each stage reads what the earlier ones wrote. A stage that was interrupted continues where it last saved
(OUT/STAGE.state). A complete stage is not run again, unless its result and its state are removed. The learning rate
depends on the time used, so a stage takes as many minutes as it is given. `assistant --begin-from FOLDER` starts from
a trained assistant instead of random weights.
"""
import argparse
import math
import shutil
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import corpus
import evaluate
import networks

LENGTH = 256            # length of a window of the text
GREEDY_LENGTH = 320     # length of a prompt and its greedy continuation
GREEDY_PROMPT = (6, 120)
GREEDY_BATCH = 64
DEPTH = 4               # number of draft steps that are trained, one more than the default number of drafts
ROWS = 128              # number of drafts that are trained in a text of a batch
CENTROID_SHARE = 0.2    # factor of the loss on clusters, beside that on ids
SAVE_SECONDS = 120


def rate(spent, peak):
    """Returns the learning rate at a share of the stage's time: 3 % warm-up, then a cosine down to a twentieth of the
    peak."""
    if spent < 0.03:
        return peak * spent / 0.03
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (spent - 0.03) / 0.97)))


class Stage:
    """A timed training run: the optimizer, the clock, and the state file from which a later run continues."""

    def __init__(self, name, model, out, minutes, peak, decay):
        self.name, self.model, self.peak, self.seconds = name, model, peak, 60 * minutes
        self.file = Path(out, f"{name}.state")
        matrices = {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": decay}
        vectors = {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0}
        self.optimizer = torch.optim.AdamW([matrices, vectors], lr=peak, betas=(0.9, 0.98), fused=True)
        self.step, self.before, self.shown = 0, 0.0, None
        if self.file.exists():
            state = torch.load(self.file)
            model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.before = state["step"], state["seconds"]
        self.start = self.saved = time.monotonic()

    def spent(self):
        return (self.before + time.monotonic() - self.start) / self.seconds

    def update(self, loss, *figures):
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.spent(), self.peak)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        now = np.array([loss.item(), *figures])
        self.shown = now if self.shown is None else 0.98 * self.shown + 0.02 * now
        if self.step % 50 == 0:
            figures = " ".join(f"{x:.3f}" for x in self.shown)
            print(f"{self.name}: step {self.step}, {self.spent():.1%} of the time, {figures}", flush=True)
        if time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()

    def save(self):
        self.saved = time.monotonic()
        fresh = self.file.with_suffix(".new")
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step,
                    "seconds": self.before + self.saved - self.start}, fresh)
        fresh.replace(self.file)


def train_target(data, out, minutes, batch):
    torch.manual_seed(0)
    model = networks.new_target()
    stage = Stage("target", model, out, minutes, peak=2.5e-3, decay=0.05)
    rng = np.random.default_rng(1 + stage.step)
    while stage.spent() < 1:
        ids = torch.from_numpy(corpus.windows(data, batch, LENGTH, rng))
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(ids[:, :-1], use_cache=False).logits
        stage.update(F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten()))
    stage.save()
    networks.save(model, Path(out, "target"))


def write_greedy(target, tokenizer, texts, folder, batches):
    """Writes batches of GREEDY_LENGTH ids as NNNN-PROMPT.npy, where PROMPT is the length of their prompt."""
    folder.mkdir(exist_ok=True)
    for number in range(batches):
        if any(folder.glob(f"{number:04d}-*.npy")):
            continue
        rng = np.random.default_rng(1000 + number)
        length = int(rng.integers(*GREEDY_PROMPT))
        prompts = corpus.line_starts(tokenizer, texts, GREEDY_BATCH, length, rng)
        ids = networks.greedy(target, torch.from_numpy(prompts), GREEDY_LENGTH - prompts.shape[1])
        whole = folder / f"{number:04d}-{prompts.shape[1]}.npy"
        np.save(folder / "unfinished.npy", ids.numpy().astype(np.uint16))
        Path(folder, "unfinished.npy").replace(whole)
        print(f"greedy: {number + 1} of {batches}", flush=True)


class Drafting:
    """Training batches of the assistant: greedy text, in which every next id is the target's own choice, and the
    original text."""

    def __init__(self, target, data, folder, text_share, batch):
        self.target, self.embed = target, target.get_input_embeddings()
        self.data, self.text_share, self.batch = data, text_share, batch
        self.greedy = [(torch.from_numpy(np.load(file).astype(np.int64)), int(file.stem.split("-")[1]))
                       for file in sorted(folder.glob("*-*.npy"))]

    def draw(self, rng):
        """Returns ids [B, n], the first row to train, and whether the ids after it are the target's own."""
        if rng.random() < self.text_share or not self.greedy:
            return torch.from_numpy(corpus.windows(self.data, self.batch, LENGTH, rng)), 8, False
        ids, prompt = self.greedy[rng.integers(len(self.greedy))]
        return ids[torch.from_numpy(rng.choice(len(ids), self.batch, replace=False))], prompt - 1, True

    def loss(self, assistant, rng, clusters):
        """Returns the cross entropy of the target's own ids, summed over the draft steps. A step after a wrong one
        counts less, because an engine would not reach it. With clusters, the cross entropy of the id's cluster is
        added."""
        ids, first, own = self.draw(rng)
        rows = torch.from_numpy(np.sort(first + rng.permutation(ids.shape[1] - 1 - DEPTH - first)[:ROWS]))
        total, reached, right = 0.0, torch.ones(ids.shape[0], len(rows)), []
        with torch.autocast("cpu", torch.bfloat16):
            hidden, kv, logits = networks.read(self.target, ids)
            best = logits.argmax(-1)
            steps = networks.drafts(assistant, self.embed, ids, rows, hidden, kv, DEPTH)
            for k, (out, following) in enumerate(steps):
                want = (following if own else best[:, rows + 1 + k]).flatten()
                weight = (0.2 + 0.8 * reached).flatten()
                scores = assistant.lm_head(out).float().flatten(0, 1)
                losses = F.cross_entropy(scores, want, reduction="none")
                if clusters is not None:
                    of_cluster = assistant.masked_embedding.centroids(out).float().flatten(0, 1)
                    losses = losses + CENTROID_SHARE * F.cross_entropy(of_cluster, clusters[want], reduction="none")
                total = total + (losses * weight).mean()
                reached = reached * (scores.argmax(-1) == want).view_as(reached)
                right.append(float(reached.mean()))
        return total, right


@torch.no_grad()
def make_clusters(assistant, rounds=15):
    """Makes clusters of equal size from the head's rows, by cosine. In every round the ids with the clearest
    preference choose first."""
    head, rows = assistant.masked_embedding, F.normalize(assistant.lm_head.weight, dim=-1)
    size, count = head.vocab_size_per_centroid, head.num_centroids
    centres = rows[torch.randperm(len(rows))[:count]]
    for _ in range(rounds):
        near = rows @ centres.T
        best, second = near.topk(2, -1).values.unbind(-1)
        wishes = near.argsort(-1, descending=True).tolist()
        room, label = [size] * count, torch.empty(len(rows), dtype=torch.long)
        for row in (best - second).argsort(descending=True).tolist():
            label[row] = next(c for c in wishes[row] if room[c])
            room[label[row]] -= 1
        centres = F.normalize(torch.stack([rows[label == c].mean(0) for c in range(count)]), dim=-1)
    head.token_ordering.copy_(label.argsort(stable=True))
    head.centroids.weight.copy_(centres)


def train_assistant(target, data, out, minutes, batch, text_share, begin_from):
    """Trains an assistant. At first it learns the whole head. After half of the time the ids are clustered, and from
    then on it also learns to choose clusters."""
    torch.manual_seed(2)
    assistant = networks.load_assistant(begin_from) if begin_from else networks.new_assistant()
    stage = Stage("assistant", assistant.train(), out, minutes, peak=1e-3 if begin_from else 2e-3, decay=0.02)
    drafting = Drafting(target, data, Path(out, "greedy"), text_share, batch)
    rng, ordering, clusters = np.random.default_rng(3 + stage.step), assistant.masked_embedding.token_ordering, None
    while stage.spent() < 1:
        if not ordering.any() and stage.spent() > 0.5:
            make_clusters(assistant)
        if clusters is None and ordering.any():
            clusters = evaluate.clusters(assistant)
        loss, right = drafting.loss(assistant, rng, clusters)
        stage.update(loss, *right)
    stage.save()
    networks.save(assistant, Path(out, "assistant"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(Path(out, "target", name), Path(out, "assistant", name))


def report(target, tokenizer, texts, out):
    """Prints the tokens per target call over 300 greedy ids after each of 64 prompts of 25 ids from held-out
    documents."""
    prompts = torch.from_numpy(corpus.line_starts(tokenizer, texts, 64, 24, np.random.default_rng(77)))
    ids = networks.greedy(target, prompts, 300)
    assistant = networks.load_assistant(Path(out, "assistant")).eval()
    figures, recall = evaluate.tokens_per_call(target, assistant, ids, prompts.shape[1])
    for draft, tokens in figures.items():
        print(f"{draft} drafted: {tokens:.3f} tokens a target call")
    print(f"the centroid head finds the whole head's choice in {recall:.2%} of the steps")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["tokenizer", "target", "greedy", "assistant", "evaluate", "all"])
    parser.add_argument("--text", required=True, help="folder with the .rst.txt and .py files")
    parser.add_argument("--out", required=True)
    parser.add_argument("--target-minutes", type=float, default=120)
    parser.add_argument("--greedy-batches", type=int, default=150)
    parser.add_argument("--assistant-minutes", type=float, default=90)
    parser.add_argument("--text-share", type=float, default=0.15, help="of the assistant's batches; the rest is greedy")
    parser.add_argument("--begin-from", help="folder of a trained assistant")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    out, wanted = Path(options.out), lambda stage: options.stage in (stage, "all")
    folder = out / "target"
    folder.mkdir(parents=True, exist_ok=True)
    training, held_out = corpus.documents(options.text)
    if wanted("tokenizer") and not (folder / "tokenizer.json").exists():
        corpus.make_tokenizer(training, folder)
        shutil.copyfile(Path(__file__).parent / "target/chat_template.jinja", folder / "chat_template.jinja")
    tokenizer = corpus.load_tokenizer(folder / "tokenizer.json")
    data = corpus.encode(tokenizer, training)
    size = sum(map(len, training)) / 1e6
    print(f"{len(training)} documents, {size:.1f} MB, {len(data) / 1e6:.2f} million tokens", flush=True)

    if wanted("target") and not (folder / "model.safetensors").exists():
        train_target(data, out, options.target_minutes, options.batch)
    if options.stage in ("tokenizer", "target"):
        return
    target = networks.load_target(folder)
    if wanted("greedy"):
        write_greedy(target, tokenizer, training, out / "greedy", options.greedy_batches)
    if wanted("assistant") and not (out / "assistant" / "model.safetensors").exists():
        train_assistant(target, data, out, options.assistant_minutes, options.batch, options.text_share,
                        options.begin_from)
    if wanted("evaluate"):
        report(target, tokenizer, held_out, out)


if __name__ == "__main__":
    main()
