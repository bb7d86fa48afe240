#!/usr/bin/env python3
"""Compares rows of text encoders with those of sentence-transformers, in float32, for texts of many kinds.

usage: embeddings.py FORERUN CORPUS FOLDER...

In: the command; a file of lines (corpus.py); folders of sentence-transformers. Out: a line for each folder, with the
largest difference of a number in a row, and of a cosine. The exit status is 1 if a number differs by more than 1e-5 of
the length of the longest row. Needs sentence-transformers.
"""
import os
import subprocess
import sys
import tempfile

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}

import numpy as np
from sentence_transformers import SentenceTransformer

BOUND = 1e-5
OWN = ["", " ", "a", "The quick brown fox jumps over the lazy dog.", "Ünïcödé, naïve café; ÀÉÎÕÜ",
       "日本語のテキストと English", "한국어 문장입니다.", "Это предложение на русском языке.", "مرحبا بالعالم",
       "[MASK] and [SEP] in a text, <mask> and </s> too", "tabs\tand\u00a0blanks\u2003here", "emoji 🙂🚀 and 👩‍👩‍👧",
       "12,345.67 % of $9.99 -- (see #42)", "x" * 120, "word " * 600, "don't can't it's U.S.A. e.g.", "İstanbul ǅ ﬁ ½"]


def lines_of(path, count):
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n") for line in file if line.strip()]
    step = max(1, len(lines) // count)
    return [line[:2000] for line in lines[::step][:count] if "\0" not in line and "\x01" not in line]


def rows_of(forerun, folder, texts, width):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write("".join(text + "\x01" for text in texts))
        file.flush()
        run = subprocess.run([forerun, "embed", "-m", folder, "-f", file.name, "--embd-separator", "\x01", "-o", "f32",
                              "--quiet"], stdout=subprocess.PIPE, check=True)
    return np.frombuffer(run.stdout, "<f4").reshape(len(texts), width)


def main():
    if len(sys.argv) < 4: sys.exit(__doc__)
    forerun, corpus, *folders = sys.argv[1:]
    texts, failed = OWN + lines_of(corpus, 200), False
    for folder in folders:
        model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": "float32"})
        expected = np.stack([model.encode(text, batch_size=1) for text in texts])
        got = rows_of(forerun, folder, texts, expected.shape[1])
        lengths = np.linalg.norm(expected, axis=1)
        worst = np.abs(got - expected).max(1) / lengths.max()
        cosine = 1 - (got * expected).sum(1) / lengths / np.linalg.norm(got, axis=1)
        print(f"{os.path.basename(os.path.normpath(folder))}: {len(texts)} texts, numbers differ by at most "
              f"{worst.max():.2g} of the longest row, cosines by {cosine.max():.2g}", flush=True)
        for text, difference in zip(texts, worst):
            if difference > BOUND:
                failed = True
                print(f"  {difference:.3g}: {text[:80]!r}")
    sys.exit(failed)


main()
