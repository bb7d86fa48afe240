#!/usr/bin/env python3
"""logits.py FORERUN PEER_LOGITS FOLDER...: compares the logits of both engines with references.

In: the command; the program that build.sh makes of peer_logits.c; folders of references. A folder has reference.json
with the prompts, files gguf/NAME.gguf, and the logits that float32 activations give with the file's decoded weights,
in gguf/NAME.reference.safetensors. These are logits of the prompts, and of a greedy continuation that is in
NAME.reference.json. Out: markdown. "Wrong" counts rows with another best id than the reference's, although the
reference's best logit is ahead of its second by more than 5% of the row's spread.
"""
import array
import json
import pathlib
import struct
import subprocess
import sys

CLEAR = 0.05
KV_TYPES = ("f16", "f32")


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.decode()[-1000:]}")
    return array.array("f", done.stdout)


def read_safetensors(path):
    """Reads float32 tensors as {name: (columns, values)}."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            tensors[name] = tensor["shape"][-1], array.array("f", data[8 + size + begin:8 + size + end])
    return tensors


def cases(folder, stem):
    """Yields the ids of a case, the first of their rows that the reference has, its number of columns, and its
    values."""
    prompts = json.loads((folder / "reference.json").read_text())["prompts"]
    greedy = {run["prompt"]: run["tokens"] for run in
              json.loads((folder / f"gguf/{stem}.reference.json").read_text())["greedy"]}
    for name, (columns, values) in read_safetensors(folder / f"gguf/{stem}.reference.safetensors").items():
        kind, prompt, _ = name.split(".")
        ids = prompts[int(prompt)]
        yield (ids + greedy[int(prompt)][:-1] if kind == "greedy" else ids,
               len(ids) - 1 if kind == "greedy" else 0, columns, values)


def is_wrong(got, expected):
    best, second = sorted(expected)[:-3:-1]
    if best - second <= CLEAR * (best - min(expected)):
        return False
    return expected.index(best) != max(range(len(got)), key=got.__getitem__)


class Sums:
    """Sums of differences of one engine on one file."""
    def __init__(self):
        self.values = self.rows = self.wrong = 0
        self.difference = self.spread = 0.0

    def add(self, got, expected, columns):
        if len(got) != len(expected):
            sys.exit(f"{len(got)} logits where the reference has {len(expected)}")
        for at in range(0, len(expected), columns):
            row, reference = got[at:at + columns], expected[at:at + columns]
            self.difference += sum(abs(a - b) for a, b in zip(row, reference))
            self.spread += max(reference) - min(reference)
            self.wrong += is_wrong(row, reference)
            self.rows += 1
        self.values += len(expected)


def compare(forerun, peer, folder, stem, kv):
    ours, theirs, path = Sums(), Sums(), folder / f"gguf/{stem}.gguf"
    for ids, first, columns, expected in cases(folder, stem):
        text = ",".join(map(str, ids))
        ours.add(run(forerun, "logits", "-m", path, "--ids", text, "-ctk", kv, "-ctv", kv, "--quiet", "-o",
                     "-")[first * columns:], expected, columns)
        theirs.add(run(peer, path, kv, text)[first * columns:], expected, columns)
    mean = [side.difference / side.values for side in (ours, theirs)]
    return (f"{kv} | {ours.rows} | {ours.spread / ours.rows:.1f} | {mean[0]:.4f} | {mean[1]:.4f} | "
            f"{mean[0] / mean[1]:.2f} | {ours.wrong} | {theirs.wrong} |")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    forerun, peer, folders = sys.argv[1], sys.argv[2], [pathlib.Path(path) for path in sys.argv[3:]]
    print("| file | KV | rows | mean spread | forerun: mean difference | llama.cpp: mean difference | ratio "
          "| forerun: wrong | llama.cpp: wrong |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for folder in folders:
        for reference in sorted(folder.glob("gguf/*.reference.safetensors")):
            stem = reference.name.removesuffix(".reference.safetensors")
            for kv in KV_TYPES:
                print(f"| {folder.name}/{stem} | {compare(forerun, peer, folder, stem, kv)}", flush=True)


if __name__ == "__main__":
    main()
