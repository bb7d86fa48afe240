#!/usr/bin/env python3
"""pre_tokenizers.py LIBRARY [COUNT [SEED]]: compares every name of tokenizer.ggml.pre on COUNT random texts each
(2000).

In: libforerun.so. Out: for each name a line with the number of texts that have other ids than Hugging Face's
tokenizers gives, by the rules that tests/data/tokenizers/make_pre_tokenizers.py has for its kind; and the first of
these texts. Exit status 1 if there are any.

The texts are of code, of many scripts, digits, emoji, control characters, contractions, line ends, and long runs.
Their vocabulary is trained on texts that were not split, so that ids show every split. The names are those of
formats/pre_tokenizers.c, so a name without rules here is reported too.
"""
import ctypes
import json
import os
import random
import re
import struct
import sys
import tempfile
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data", "tokenizers"))
import make_pre_tokenizers as made
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

# These kinds don't split texts into bytes. U+2581 stands for a space, and <0xNN> for bytes that have no token.
SPACES = ["gemma4", "granite-embed-multi-311m", "sarvam-moe"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
SCRIPTS = [(0x41, 0x17F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x587), (0x590, 0x6FF), (0x900, 0x97F),
           (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1780, 0x17E9), (0x1E00, 0x1FFF), (0x2000, 0x206F),
           (0x2100, 0x218B), (0x2460, 0x24FF), (0x2E80, 0x2FDF), (0x3000, 0x30FF), (0x3105, 0x312F), (0x3131, 0x318E),
           (0x3400, 0x3450), (0x4E00, 0x4F00), (0x9F00, 0x9FFF), (0xA000, 0xA0FF), (0xA722, 0xA78E), (0xAA60, 0xAA7F),
           (0xAC00, 0xAD00), (0xF900, 0xFA6D), (0xFE30, 0xFE4F), (0xFF01, 0xFFDC), (0x10400, 0x1044F),
           (0x1F300, 0x1F6FF), (0x1F100, 0x1F190), (0x20000, 0x20050), (0x0, 0x20), (0x7F, 0xA0), (0x300, 0x36F),
           (0x660, 0x669), (0xB2, 0xBE)]
WORDS = ["def ", "return", "int main(void) {\n", "\tfor (;;)", "  ", "\r\n", "\n\n", "\n", " \n ", "\t\t", "'s", "'LL",
         "'Re", " don't", "we'Ve", "i'\u017f", "http://x.y/?a=1&b=", "CamelCase", "snake_case", "HTTPServer", "USA",
         "x1y22z333", "12", "345", "6789", "0x1F", "3.14", "1,000,000", "\uff11\uff12\uff13", "!=", "->", "==", "...",
         '"', "(", ")", "{", "}", "/*", "*/", "//", "#", "@", "$", "%", "_", "\u200d", "\ufe0f", "\U0001f44d\U0001f3fd",
         "\U0001f469\u200d\U0001f469\u200d\U0001f467", "e\u0301", "\u00c5", "\u212b", "\u3001", "\u3002", "\uff01",
         "\u3000", "\u00a0", "\u2028", "\x85", "<sentinel:7>", "IMGIMGABZ"]

# An expression may look through such runs again and again.
LONG = [part * 3000 for part in (" ", "\n", "\r\n", "\t ", "7", "a", "A", "aA", "Aa", "\u4e00", "!", "'", "'s",
                                 "\u0301", " a", "a ", "\u0e33", "-a", "1a", "a1")]
LONG += [before + run + behind for run in (" " * 3000, "7" * 3000, "A" * 3000)
         for before, behind in (("", "x"), ("x", "_"), (" ", "!"))]


def random_part(rnd):
    kind = rnd.randrange(10)
    if kind < 4: return rnd.choice(WORDS)
    if kind < 6:
        low, high = rnd.choice(SCRIPTS)
        return "".join(chr(rnd.randint(low, high)) for _ in range(rnd.randrange(1, 6)))
    if kind == 6: return "".join(rnd.choice(LETTERS) for _ in range(rnd.randrange(1, 9)))
    if kind == 7: return "".join(rnd.choice("0123456789") for _ in range(rnd.choice([1, 2, 3, 4, 5, 7, 12, 40])))
    if kind == 8: return rnd.choice(" \t\n\r") * rnd.choice([1, 2, 3, 5, 17, 300])
    return rnd.choice(made.TEXTS)


def random_text(rnd):
    parts = [random_part(rnd) + (" " if rnd.random() < 0.3 else "") for _ in range(rnd.randrange(1, 14))]
    return "".join(c for c in "".join(parts) if unicodedata.category(c) not in ("Cs", "Cn"))


# ------------------------------------------------------------------------------------------------------------- forerun

class Forerun:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.fr_last_error.restype = ctypes.c_char_p

    def open(self, path):
        handle = ctypes.c_void_p()
        if self.lib.fr_tokenizer_open(path.encode(), None, ctypes.byref(handle)):
            sys.exit(self.lib.fr_last_error().decode())
        return handle

    def ids(self, handle, text):
        """Returns the ids of a text, or the error line."""
        found, count, data = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), text.encode()
        if self.lib.fr_tokenize(handle, data, ctypes.c_size_t(len(data)), False, False, ctypes.byref(found),
                                ctypes.byref(count)):
            return self.lib.fr_last_error().decode()
        ids = found[:count.value]
        self.lib.fr_free(found)
        return ids


TEXT, ARRAY = 8, 9


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def write_gguf(path, pre, tokens, merges):
    keys = [string(name) + struct.pack("<I", TEXT) + string(value) for name, value in
            [("general.architecture", "none"), ("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", pre)]]
    for name, items in ("tokens", tokens), ("merges", merges):
        keys.append(string("tokenizer.ggml." + name) + struct.pack("<IIQ", ARRAY, TEXT, len(items)) +
                    b"".join(map(string, items)))
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys) + b"\0" * 64)


# ---------------------------------------------------------------------------------------------------------- references

def train(texts, spaces):
    """Trains a vocabulary and merges. If `spaces` is set, <0xNN> come first."""
    t = Tokenizer(models.BPE())
    if spaces: t.normalizer = normalizers.Replace(" ", "\u2581")
    else: t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=2500, show_progress=False,
        initial_alphabet=[] if spaces else sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[f"<0x{i:02X}>" for i in range(256)] if spaces else [])
    t.train_from_iterator([s.replace("\0", "") for s in texts] if spaces else texts, trainer)
    return json.loads(t.to_str())["model"]


def of_spaces(model):
    merges = [tuple(m) for m in model["merges"]]
    t = Tokenizer(models.BPE(vocab=dict(model["vocab"]), merges=merges, byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", "\u2581")
    return t


def kinds():
    """Returns the names of each kind with merges, from the source of the table."""
    with open(os.path.join(HERE, "..", "..", "formats", "pre_tokenizers.c")) as f:
        rows = re.findall(r'\{\.model = "gpt2",\s*\.names = \{([^}]*)\}', f.read())
    return [re.findall(r'"([^"]+)"', row) for row in rows]


def reference_of(kind, model):
    if kind in SPACES: return of_spaces(model)
    rules = made.KINDS.get(kind)
    if isinstance(rules, str): return reference_of(rules, model)
    return rules and made.tokenizer(kind, model["vocab"], model["merges"])


# ---------------------------------------------------------------------------------------------------------- comparison

def compare(name, texts, ours, wanted):
    differ = [i for i in range(len(texts)) if ours[i] != wanted[i]]
    print(f"{name}: {len(texts)} texts, {len(differ)} differ", flush=True)
    for i in differ[:2]: print(f"  {texts[i][:200]!r}\n    {ours[i][:60]}\n    {wanted[i][:60]}")
    return len(differ)


def main(library, count=2000, seed=1):
    forerun, rnd, wrong = Forerun(library), random.Random(int(seed)), 0
    texts = [random_text(rnd) for _ in range(int(count))] + LONG
    trained = {spaces: train(texts[:400] + made.TEXTS, spaces) for spaces in (False, True)}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "made.gguf")
        for names in kinds():
            model = trained[names[0] in SPACES]
            reference = reference_of(names[0], model)
            if not reference: sys.exit(f"pre_tokenizers.py: no rules for {names[0]}")
            tokens, merges = sorted(model["vocab"], key=model["vocab"].get), [" ".join(m) for m in model["merges"]]
            wanted = [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)]
            for name in names:
                write_gguf(path, name, tokens, merges)
                handle = forerun.open(path)
                wrong += compare(name, texts, [forerun.ids(handle, text) for text in texts], wanted)
                forerun.lib.fr_tokenizer_close(handle)
    return wrong > 0


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
