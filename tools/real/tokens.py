#!/usr/bin/env python3
"""tokens.py LIBRARY CORPUS MODEL...: compares the ids of lines with those of the tokenizers package and of llama.cpp.

In: libforerun.so; lines (corpus.py); GGUF files. PEERS in the environment: the folder of bench/peers/build.sh. Out: a
line for each file and each reference, with the number of lines that differ and the first of them. The exit status is 1
if any differs.

The package gets the GGUF file's vocabulary and merges. It also gets the rules of the model's published tokenizer.json,
which are given here, because the GGUF file only names them. Special tokens in the text are recognized, and none is
added. llama.cpp does not normalize to NFC for Qwen, and merges nothing across a byte that the vocabulary lacks. Lines
in which this matters are not compared with it.
"""
import ctypes
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
UNKNOWN, CONTROL, USER, BYTE = 2, 3, 4, 6
MOST_SHOWN = 3

# Names of bytes in a byte-level vocabulary: a printable byte has its own character, the others have characters from
# 256 on.
PRINTED = [*range(33, 127), *range(161, 173), *range(174, 256)]
LETTER_OF_BYTE = {byte: chr(byte) for byte in PRINTED}
LETTER_OF_BYTE |= {byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in PRINTED)}


# ------------------------------------------------------------------------------------------------------------- forerun

class Forerun:
    def __init__(self, library, model):
        self.lib = ctypes.CDLL(library)
        self.lib.fr_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        self.check(self.lib.fr_tokenizer_open(os.fsencode(model), None, ctypes.byref(self.handle)))

    def check(self, status):
        if status: sys.exit("tokens.py: " + self.lib.fr_last_error().decode())

    def ids(self, line):
        found, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        self.check(self.lib.fr_tokenize(self.handle, line, ctypes.c_size_t(len(line)), False, True,
                                        ctypes.byref(found), ctypes.byref(count)))
        made = found[:count.value]
        self.lib.fr_free(found)
        return made


# ---------------------------------------------------------------------------------------------------------- references

def merges_of_scores(pieces, scores):
    """Returns merges like those of a published tokenizer.json. SentencePiece merges the pair whose result has the best
    score."""
    ranked = {}
    for piece in pieces:
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        ranked[piece] = sorted((pair for pair in pairs if pair[0] in pieces and pair[1] in pieces),
                               key=lambda pair: (pieces[pair[0]], pieces[pair[1]]))
    order = sorted(ranked, key=lambda piece: scores[pieces[piece]], reverse=True)
    return [pair for piece in order for pair in ranked[piece]]


def byte_level(pre, vocabulary, merges):
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
        parts = [pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    elif pre == "smollm":
        parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    else: sys.exit(f"tokens.py: no rules for tokenizer.ggml.pre {pre}")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    return tokenizer


def keys_of(model):
    fields = GGUFReader(model).fields
    return {name.removeprefix("tokenizer.ggml."): field.contents() for name, field in fields.items()
            if name.startswith("tokenizer.ggml.")}


def of_package(keys):
    """Returns the tokenizers package's tokenizer for a GGUF file."""
    tokens, types = keys["tokens"], keys["token_type"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    if keys["model"] == "gpt2":
        tokenizer = byte_level(keys["pre"], vocabulary, [tuple(merge.split(" ")) for merge in keys["merges"]])
    else:
        plain = {token: i for token, i in vocabulary.items() if types[i] not in (UNKNOWN, CONTROL, BYTE)}
        merges = merges_of_scores(plain, keys["scores"])
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    added = [tokens[i] for i, kind in enumerate(types) if kind in (CONTROL, USER)]
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in added])
    return tokenizer


def same_for_peer(keys, line):
    """Returns false for lines in which llama.cpp lacks NFC, drops bytes, or takes a word for a control token."""
    if keys["model"] != "gpt2": return True
    text = line.decode()
    if "</s>" in text and dict(zip(keys["tokens"], keys["token_type"])).get("</s>", CONTROL) != CONTROL: return False
    if keys["pre"] == "qwen2": return unicodedata.is_normalized("NFC", text)
    return set(LETTER_OF_BYTE[byte] for byte in line) <= keys["letters"]


def by_package(keys, lines):
    encoded = of_package(keys).encode_batch([line.decode() for line in lines], add_special_tokens=False)
    return [one.ids for one in encoded]


def by_peer(model, lines):
    program = Path(os.environ["PEERS"], "bin/peer-tokens")
    said = subprocess.run([program, model], input=b"".join(line + b"\n" for line in lines), check=True,
                          capture_output=True).stdout.decode()
    return [[int(word) for word in line.split()] for line in said.split("\n")[:len(lines)]]


# ------------------------------------------------------------------------------------------------------------- compare

def compare(model, name, lines, ours, theirs):
    differ = [i for i in range(len(lines)) if ours[i] != theirs[i]]
    print(f"{Path(model).stem}: {len(lines)} lines, {len(differ)} differ from {name}", flush=True)
    for i in differ[:MOST_SHOWN]: print(f"  {lines[i][:120]!r}\n    {ours[i][:40]}\n    {theirs[i][:40]}")
    return len(differ)


def main(library, corpus, *files):
    lines = Path(corpus).read_bytes().split(b"\n")[:-1]
    wrong = 0
    for model in files:
        forerun, keys = Forerun(library, model), keys_of(model)
        keys["letters"] = {token for token in keys["tokens"] if len(token) == 1}
        ours = [forerun.ids(line) for line in lines]
        wrong += compare(model, "tokenizers", lines, ours, by_package(keys, lines))
        if not os.environ.get("PEERS"): continue
        kept = [i for i, line in enumerate(lines) if same_for_peer(keys, line)]
        some = [lines[i] for i in kept]
        wrong += compare(model, "llama.cpp", some, [ours[i] for i in kept], by_peer(model, some))
    return wrong > 0


if __name__ == "__main__":
    if len(sys.argv) < 4: sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
