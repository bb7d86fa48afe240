"""Reads folders of `forerun features`.

In: their paths. Out: texts, each with its ids, the number of ids that were the prompt, and its rows. Rows are mapped.
If a folder is still being written, it has more texts the next time it is read.
"""
import json
import pathlib

import numpy
import torch


class Text:
    def __init__(self, ids, prompt, rows):
        self.ids, self._rows = ids, rows
        self.prompt = prompt if prompt < len(ids) else 0  # 0: the text was only read, so all of it counts

    def rows(self):
        """Returns the rows as float32, [ids, taps, hidden]."""
        return torch.from_numpy(numpy.array(self._rows)).view(torch.bfloat16).float()


def read(paths):
    """Returns (the layers of the taps, the model's number of layers, texts)."""
    kinds, texts = [], []
    for path in map(pathlib.Path, paths):
        kind = json.loads((path / "features.json").read_text())
        kinds.append(kind)
        shape = (-1, len(kind["layers"]), kind["hidden"])
        rows = numpy.memmap(path / "rows.bf16", dtype=numpy.int16, mode="r")
        rows = rows[:len(rows) // (shape[1] * shape[2]) * shape[1] * shape[2]].reshape(shape)
        for line in (path / "index.jsonl").read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            text = json.loads(line)
            if "error" in text or len(text["ids"]) < 4 or len(text["ids"]) - text["prompt"] == 1:
                continue  # an error, or a text too short to learn from
            at, count = text["at"], len(text["ids"])
            texts.append(Text(text["ids"], text["prompt"], rows[at:at + count]))
    if any(kind != kinds[0] for kind in kinds):
        raise SystemExit("the folders' features are of different models or layers")
    return kinds[0]["layers"], kinds[0]["model_layers"], texts
