"""Trains a drafter, EAGLE-3's or DFlash's, for a model on that model's own text.

In: the model; folders of `forerun features` whose last tap is the last layer's output. Out: a folder with the drafter
in its published form, and the state from which an interrupted training continues.

    train.py --model MODEL --features FOLDER [FOLDER ...] --out OUT --minutes 60 [--kind dflash]
"""
import argparse
import json
import pathlib
import time

import torch

import features
from courses import DRAFTS, KINDS, choose_anchors
from target import Target


def shares(hits):
    return [round(sum(h for h, _ in step) / max(1, sum(n for _, n in step)), 3) for step in zip(*hits)]


class Run:
    def __init__(self, options):
        self.options, self.out = options, pathlib.Path(options.out)
        torch.set_num_threads(options.threads)
        torch.manual_seed(options.seed)
        self.target = Target(options.model)
        layers, depth, texts = features.read(options.features)
        if layers[-1] != depth:
            raise SystemExit("the last tap of the features must be what the last layer gives")
        self.state_path, self.spent, self.taken, self.depth = self.out / "state.pt", 0.0, 0, depth
        state = torch.load(self.state_path) if self.state_path.exists() else None
        if state and state.get("kind", "eagle3") != options.kind:
            raise SystemExit(f"{self.out} has the training of another kind, {state.get('kind', 'eagle3')}")
        self.course = KINDS[options.kind](self.target, layers[:-1], texts, options, state)
        self.drafter = self.course.network
        if not state and not options.untrained:
            self.course.begin(self.read_texts()[:options.fit_most])
        if options.bfloat16:  # least squares, above, need exact products
            torch.set_float32_matmul_precision("medium")
        self.weights = [p for p in self.drafter.parameters() if p.requires_grad]
        self.adam = torch.optim.AdamW(self.weights, lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        if state:
            self.drafter.load_state_dict(state["drafter"])
            self.adam.load_state_dict(state["adam"])
            self.spent, self.taken = state["spent"], state["taken"]

    def read_texts(self, held=False):
        """Returns the texts to learn from, or the held-out ones."""
        options = self.options
        if options.held_out:
            return features.read(options.held_out if held else options.features)[2]
        texts = features.read(options.features)[2]
        return [t for i, t in enumerate(texts) if (i % options.hold_every == 0) == held]

    def share_done(self):
        if self.options.steps:
            return self.taken / self.options.steps
        return self.spent / (60 * self.options.minutes)

    def rate(self):
        warm, done = min(1.0, (self.taken + 1) / 20), min(1.0, self.share_done())
        return self.options.rate * warm * (1 - 0.95 * done)

    def save(self):
        self.course.save(self.out / "drafter", self.depth)
        state = {"kind": self.options.kind, **self.course.kept, "drafter": self.drafter.state_dict(),
                 "adam": self.adam.state_dict(), "spent": self.spent, "taken": self.taken}
        torch.save(state, self.out / "state.new")
        (self.out / "state.new").rename(self.state_path)

    def tell(self, **what):
        line = json.dumps({"step": self.taken, "minutes": round(self.spent / 60, 1), **what})
        print(line, flush=True)
        with open(self.out / "log.jsonl", "a") as log:
            log.write(line + "\n")

    def learn(self, text):
        """Adds a text's gradient, and takes a step of Adam at the last text of a batch."""
        loss, hits = self.course.loss(text, torch.Generator().manual_seed(self.taken))
        (loss / self.options.batch).backward()
        self.taken += 1
        if self.taken % self.options.batch == 0:
            self.step()
        return float(loss.detach()), hits

    def step(self):
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = self.rate()
        if not self.options.untrained:
            self.adam.step()
        self.adam.zero_grad()

    def test(self):
        """Reports the loss of held-out texts, and the mean number of accepted drafts for each number of drafts."""
        held = self.read_texts(held=True)[:self.options.held_most]
        with torch.no_grad():
            results = [self.course.loss(text, torch.Generator().manual_seed(i)) for i, text in enumerate(held)]
            places = [(text, choose_anchors(text)) for text in held]
            accepted = torch.cat([self.course.accepted(text, anchors) for text, anchors in places if len(anchors)]
                                 or [torch.zeros(1, dtype=torch.long)])
        loss = sum(float(loss) for loss, _ in results) / max(1, len(results))
        depths = [round(float(accepted.clamp_max(depth).float().mean()), 3) for depth in range(1, DRAFTS + 1)]
        self.tell(held_out=round(loss, 4), hits=shares([h for _, h in results]), accepted=depths, calls=len(accepted))

    def run(self):
        began, saved, seen = time.monotonic() - self.spent, time.monotonic(), []
        while self.share_done() < 1:
            self.test()
            texts = self.read_texts()
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
    parser = argparse.ArgumentParser(description="trains a drafter on its target's text")
    parser.add_argument("--model", required=True, help="the target: GGUF, or a published folder")
    parser.add_argument("--features", required=True, nargs="+", help="folders of forerun features")
    parser.add_argument("--out", required=True)
    parser.add_argument("--kind", choices=sorted(KINDS), default="eagle3")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--steps", type=int, default=0, help="so many texts instead of a time")
    parser.add_argument("--draft-vocab", type=int, default=4096)
    parser.add_argument("--chain", type=int, default=3, help="eagle3: steps of a chain")
    parser.add_argument("--block", type=int, default=8, help="dflash: rows of a block, one more than its drafts")
    parser.add_argument("--blocks", type=int, default=48, help="dflash: blocks that are drawn of a text")
    parser.add_argument("--decay", type=float, default=4.0, help="dflash: row j counts exp(-j / DECAY)")
    parser.add_argument("--layers", type=int, default=2, help="dflash: layers")
    parser.add_argument("--heads", type=int, help="dflash: heads of attention (the target's)")
    parser.add_argument("--kv-heads", type=int, help="dflash: heads of keys and values (as many)")
    parser.add_argument("--ffn", type=int, help="features of the feed-forward (the target's)")
    parser.add_argument("--mask-id", type=int, help="dflash: the id of masks (one that stands for nothing)")
    parser.add_argument("--batch", type=int, default=1, help="texts of a step of Adam")
    parser.add_argument("--go-on-from", metavar="GGUF", help="eagle3: begin as this drafter, with its ids")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--freeze-head", action="store_true", help="eagle3: the head stays the target's")
    parser.add_argument("--bfloat16", action="store_true", help="multiply in bfloat16, faster on some processors")
    parser.add_argument("--untrained", action="store_true", help="random weights as they are, to compare with")
    parser.add_argument("--held-out", nargs="+", help="folders of texts to test with, of topics that are not learned")
    parser.add_argument("--hold-every", type=int, default=16, help="without --held-out: one text of so many is")
    parser.add_argument("--fit-most", type=int, default=400, help="texts to which the linear part is fitted")
    parser.add_argument("--held-most", type=int, default=12)
    parser.add_argument("--tell-every", type=int, default=20)
    parser.add_argument("--save-seconds", type=float, default=240)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.go_on_from and arguments.kind != "eagle3":
        parser.error("--go-on-from is for --kind eagle3")
    pathlib.Path(arguments.out).mkdir(parents=True, exist_ok=True)
    Run(arguments).run()
