"""Trains an EAGLE-3 drafter for a model on that model's own text.

In: the model, folders of `forerun features` whose last tap is the last layer's output. Out: a folder with the drafter
in its published form, and the state from which an interrupted training continues.

    train.py --model MODEL --features FOLDER [FOLDER ...] --out OUT --minutes 60
"""
import argparse
import collections
import json
import pathlib
import time

import torch
from torch.nn import functional

import features
from drafter import Drafter
from target import Target

STEP_WEIGHT = 0.8  # of each further step of a chain


def choose_ids(texts, vocab, count):
    """Returns the ids that the target generates most often, then the lowest ids, which are the merges of frequent
    pieces."""
    said = collections.Counter(i for text in texts for i in text.ids[text.prompt:])
    ids = [i for i, _ in sorted(said.items(), key=lambda pair: (-pair[1], pair[0]))][:count]
    there = set(ids)
    ids += [i for i in range(vocab) if i not in there][:count - len(ids)]
    return torch.tensor(sorted(ids))


class Lesson:
    """A text as the network reads it, and the target's distribution after each pair."""

    def __init__(self, text, target, drafter, head):
        rows, ids = text.rows(), torch.tensor(text.ids)
        pairs = len(text.ids) - 2
        self.taps = rows[:pairs, :drafter.taps].reshape(pairs, -1)
        self.embeddings = target.embedding[ids[1:pairs + 1]]
        self.first = max(0, text.prompt - 2)
        last = functional.rms_norm(rows[self.first + 1:pairs + 1, -1], target.norm.shape, target.norm,
                                   drafter.sizes["rms_norm_eps"])
        self.says = functional.log_softmax(last @ head.T, -1)

    def loss(self, drafter, steps):
        """Returns the loss, and for each step how often its best id is the target's, and of how many."""
        loss, hits = 0.0, []
        for step, (said, logits) in enumerate(drafter(self.taps, self.embeddings, steps, self.first)):
            says = self.says[said - self.first:]
            if not len(says):
                continue
            own = functional.log_softmax(logits, -1)
            loss = loss + STEP_WEIGHT ** step * -(says.exp() * own).sum(-1).mean()
            hits.append((int((own.argmax(-1) == says.argmax(-1)).sum()), len(says)))
        return loss, hits


def shares(hits):
    return [round(sum(h for h, _ in step) / sum(n for _, n in step), 3) for step in zip(*hits)]


def held_out(drafter, texts, target, head, steps):
    with torch.no_grad():
        results = [Lesson(text, target, drafter, head).loss(drafter, steps) for text in texts]
    return sum(float(loss) for loss, _ in results) / max(1, len(results)), shares([h for _, h in results])


class Run:
    def __init__(self, options):
        self.options, self.out = options, pathlib.Path(options.out)
        torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        self.target = Target(options.model)
        layers, depth, texts = features.read(options.features)
        if layers[-1] != depth:
            raise SystemExit("the last tap of the features must be what the last layer gives")
        self.layers = layers[:-1]
        self.state_path, self.spent, self.taken = self.out / "state.pt", 0.0, 0
        state = torch.load(self.state_path) if self.state_path.exists() else None
        self.ids = state["ids"] if state else choose_ids(texts, self.target.sizes["vocab_size"], options.draft_vocab)
        self.drafter = Drafter(self.target.sizes, len(self.layers), len(self.ids))
        if not options.untrained:
            self.drafter.begin(self.target, self.ids)
        if not state and not options.untrained:
            self.drafter.fit(self.linear(t) for i, t in enumerate(texts) if i % options.hold_every)
        if options.freeze_head:
            self.drafter.lm_head.weight.requires_grad = False
        self.head = self.target.head[self.ids].clone()
        self.weights = [p for p in self.drafter.parameters() if p.requires_grad]
        self.adam = torch.optim.AdamW(self.weights, lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01)
        if state:
            self.drafter.load_state_dict(state["drafter"])
            self.adam.load_state_dict(state["adam"])
            self.spent, self.taken = state["spent"], state["taken"]

    def linear(self, text):
        """Returns the data that the linear part is fitted to: the target's row after each pair, before its norm,
        scaled to one size."""
        rows, pairs = text.rows(), len(text.ids) - 2
        embeddings = self.target.embedding[text.ids[1:pairs + 1]]
        unit = lambda x: functional.rms_norm(x, x.shape[-1:], None, self.target.sizes["rms_norm_eps"])
        return rows[:pairs, :-1].reshape(pairs, -1), unit(embeddings), unit(rows[1:pairs + 1, -1])

    def share_done(self):
        if self.options.steps:
            return self.taken / self.options.steps
        return self.spent / (60 * self.options.minutes)

    def rate(self):
        warm, done = min(1.0, (self.taken + 1) / 20), min(1.0, self.share_done())
        return self.options.rate * warm * (1 - 0.95 * done)

    def save(self):
        self.drafter.save(self.out / "drafter", self.layers, self.ids)
        state = {"ids": self.ids, "drafter": self.drafter.state_dict(), "adam": self.adam.state_dict(),
                 "spent": self.spent, "taken": self.taken}
        torch.save(state, self.out / "state.new")
        (self.out / "state.new").rename(self.state_path)

    def tell(self, **what):
        line = json.dumps({"step": self.taken, "minutes": round(self.spent / 60, 1), **what})
        print(line, flush=True)
        with open(self.out / "log.jsonl", "a") as log:
            log.write(line + "\n")

    def learn(self, text):
        loss, hits = Lesson(text, self.target, self.drafter, self.head).loss(self.drafter, self.options.chain)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = self.rate()
        if not self.options.untrained:
            self.adam.step()
        self.adam.zero_grad()
        self.taken += 1
        return float(loss.detach()), hits

    def test(self):
        _, _, texts = features.read(self.options.features)
        held = texts[::self.options.hold_every]
        loss, hits = held_out(self.drafter, held[:self.options.held_most], self.target, self.head, self.options.chain)
        self.tell(held_out=round(loss, 4), hits=hits)

    def run(self):
        began, saved, seen = time.monotonic() - self.spent, time.monotonic(), []
        if not self.taken:
            self.test()
        while self.share_done() < 1:
            _, _, texts = features.read(self.options.features)
            texts = [t for i, t in enumerate(texts) if i % self.options.hold_every]
            for i in torch.randperm(len(texts), generator=torch.Generator().manual_seed(self.taken)).tolist():
                seen.append(self.learn(texts[i]))
                self.spent = time.monotonic() - began
                if len(seen) == self.options.tell_every:
                    mean = sum(loss for loss, _ in seen) / len(seen)
                    self.tell(loss=round(mean, 4), hits=shares([hits for _, hits in seen]))
                    seen = []
                if time.monotonic() - saved > self.options.save_seconds:
                    self.save()
                    saved = time.monotonic()
                if self.share_done() >= 1:
                    break
        self.test()
        self.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="trains an EAGLE-3 drafter on its target's text")
    parser.add_argument("--model", required=True, help="the target: GGUF, or a published folder")
    parser.add_argument("--features", required=True, nargs="+", help="folders of forerun features")
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--steps", type=int, default=0, help="so many texts instead of a time")
    parser.add_argument("--draft-vocab", type=int, default=4096)
    parser.add_argument("--chain", type=int, default=3, help="steps of a chain")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--freeze-head", action="store_true", help="the head stays the target's")
    parser.add_argument("--untrained", action="store_true", help="random weights as they are, to compare with")
    parser.add_argument("--hold-every", type=int, default=16, help="one text of so many is held out")
    parser.add_argument("--held-most", type=int, default=12)
    parser.add_argument("--tell-every", type=int, default=20)
    parser.add_argument("--save-seconds", type=float, default=240)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    pathlib.Path(arguments.out).mkdir(parents=True, exist_ok=True)
    Run(arguments).run()
