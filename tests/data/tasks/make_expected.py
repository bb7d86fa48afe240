#!/usr/bin/env python3
"""make_expected.py > expected.json: the tasks of these files that the demo model answers correctly, by transformers'
logits.

Run it from the top level, with the requirements of tests/references. It also writes answers.bin: questions with
answers in the layout of llama-perplexity's --multiple-choice. Only Python's own means read the text files. If the two
best scores of a task are closer than float32 can tell apart, the run ends with an error.
"""
import csv
import json
import struct
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

DATA = "tests/data/tasks"
DEMO = "tools/demo/target"
BOS = 2
ANSWERS = [
    ("Question: Where do fish live? Answer:", ["in the water", "in trees, high above the ground", "in ovens"], [1, 0, 0]),
    ("Question: What falls in winter? Answer:", ["stones", "snow"], [0, 1]),
    ("Question: What is two and two? Answer:", ["four", "five", "two and two and two", "a", "an old tree"], [1, 0, 0, 0, 0]),
    ("Question: Which is a color? Answer:", ["green", "to run", "slowly and with care", "because"], [1, 0, 0, 0]),
    ("Question: What does a clock show? Answer:", ["the way to the sea", "the time", "the time of all"], [0, 1, 0]),
    ("Question: What is said first? Answer:", ["the first", "the first word", "a word"], [1, 0, 0]),
]


class Model:
    def __init__(self):
        self.tokenizer = Tokenizer.from_file(f"{DEMO}/tokenizer.json")
        self.net = AutoModelForCausalLM.from_pretrained(DEMO, dtype=torch.float32, attn_implementation="eager").eval()

    def ids(self, text):
        return [BOS] + self.tokenizer.encode(text, add_special_tokens=False).ids

    def mean(self, ids, first, end):
        with torch.no_grad():
            rows = torch.log_softmax(self.net(torch.tensor([ids])).logits[0].double(), -1)
        return sum(float(rows[i - 1, ids[i]]) for i in range(first, end)) / (end - first)


def shared(texts):
    count = 0
    while all(count + 1 < len(ids) and ids[count] == texts[0][count] for ids in texts):
        count += 1
    return count


def best(scores):
    order = sorted(scores)
    if len(order) > 1 and order[-1] - order[-2] < 1e-3:
        raise SystemExit(f"too close to tell: {scores}")
    return scores.index(order[-1])


def choose(model, before, choices):
    texts = [model.ids(before + " " + choice) for choice in choices]
    first = shared(texts)
    return best([model.mean(ids, first, len(ids)) for ids in texts])


def hellaswag(model):
    lines = open(f"{DATA}/hellaswag.txt").read().splitlines()
    return [choose(model, lines[i], lines[i + 2:i + 6]) == int(lines[i + 1]) for i in range(0, len(lines), 6)]


def winogrande(model):
    for _, sentence, one, two, answer in csv.reader(open(f"{DATA}/winogrande.csv", newline="")):
        before, after = sentence.split("_", 1)
        texts = [model.ids(before + word + after) for word in (one, two)]
        first = shared(texts)
        skips = all(len(ids) - first > 3 for ids in texts)
        scores = []
        for ids, word in zip(texts, (one, two)):
            start = len(model.ids(before + word)) if skips else first
            scores.append(model.mean(ids, start, max(len(ids) - 1, start + 1)))
        yield best(scores) == int(answer) - 1


def text(string):
    return struct.pack("<I", len(string.encode())) + string.encode()


def answers(model):
    tasks = []
    for question, choices, labels in ANSWERS:
        listed = struct.pack("<I", len(choices)) + b"".join(map(text, choices)) + struct.pack(f"<{len(labels)}I", *labels)
        tasks.append(text(question) + listed + struct.pack("<I", 0))
    places = [4 + 4 * len(tasks) + sum(map(len, tasks[:i])) for i in range(len(tasks))]
    with open(f"{DATA}/answers.bin", "wb") as file:
        file.write(struct.pack(f"<{1 + len(tasks)}I", len(tasks), *places) + b"".join(tasks))
    return [bool(labels[choose(model, question, choices)]) for question, choices, labels in ANSWERS]


def main():
    torch.set_num_threads(1)
    model = Model()
    json.dump({"hellaswag": hellaswag(model), "winogrande": list(winogrande(model)), "multiple-choice": answers(model)},
              sys.stdout, indent=1)
    print()


main()
