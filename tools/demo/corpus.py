"""Reads the demo's text: folders of files in, a tokenizer and arrays of token ids out.

The text is the reStructuredText of the Python 3.11 documentation and the modules of its standard library, from two
Debian packages. A shuffle with a fixed seed sets 3 % of the documents aside. No stage trains on these, and `evaluate`
takes its prompts from them.
"""
import json
import random
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

VOCAB = 4096
PAD, EOS, BOS = 0, 1, 2
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>"]
LEFT_OUT = {"encodings", "pydoc_data", "test", "libregrtest", "support"}    # tables, and a copy of the documentation
SHORTEST = 500                                                              # characters; shorter documents are stubs


def documents(folder):
    """Returns (training, held out): every .rst.txt and .py file below the folder, as text."""
    texts = []
    for path in sorted(Path(folder).rglob("*")):
        if not path.name.endswith((".rst.txt", ".py")) or path.is_symlink() or LEFT_OUT & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        if len(text) > SHORTEST:
            texts.append(text)
    if not texts:
        raise SystemExit(f"{folder}: no .rst.txt or .py files below it")
    random.Random(0).shuffle(texts)
    cut = len(texts) * 97 // 100
    return texts[:cut], texts[cut:]


def make_tokenizer(texts, folder):
    """Writes tokenizer.json and tokenizer_config.json: a byte-fallback BPE in the form of Gemma's published one."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    # Used only for training: words, runs of blanks and runs of newlines stay separate, as in Gemma's merges.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(r"▁?[^\s▁\d\W]+|▁?\d|▁+|\n+|▁?[^\s▁\w]+|\s"), "isolated")
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL + bytes_, limit_alphabet=160, show_progress=False))

    spec = json.loads(tokenizer.to_str())
    spec["pre_tokenizer"] = {
        "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    spec["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    spec["added_tokens"] = [token for token in spec["added_tokens"] if not token["content"].startswith("<0x")]
    first = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    second = {"SpecialToken": {"id": "<bos>", "type_id": 1}}
    spec["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, second, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<bos>": {"id": "<bos>", "ids": [BOS], "tokens": ["<bos>"]}}}
    config = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>",
              "add_bos_token": True, "add_eos_token": False, "clean_up_tokenization_spaces": False,
              "model_max_length": 4096, "tokenizer_class": "GemmaTokenizer"}
    for name, value in (("tokenizer.json", spec), ("tokenizer_config.json", config)):
        Path(folder, name).write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def load_tokenizer(path):
    return Tokenizer.from_file(str(path))


def encode(tokenizer, texts):
    """Returns one array of all documents without <bos>, each followed by <eos>."""
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    return np.concatenate([np.array(e.ids + [EOS], dtype=np.int64) for e in encoded])


def windows(ids, count, length, rng):
    """Returns `count` random windows of the array, each with <bos> before it: [count, 1 + length]."""
    starts = rng.integers(0, len(ids) - length, count)
    rows = np.stack([ids[s:s + length] for s in starts])
    return np.concatenate([np.full((count, 1), BOS), rows], axis=1)


def line_starts(tokenizer, texts, count, length, rng):
    """Returns `count` prompts of equal length that begin where a line begins, as people's prompts do: [count, 1 +
    length]."""
    rows = []
    while len(rows) < count:
        text = texts[rng.integers(len(texts))]
        begin = text.find("\n", rng.integers(len(text))) + 1
        ids = tokenizer.encode(text[begin:begin + 8 * length], add_special_tokens=False).ids
        if len(ids) >= length:
            rows.append([BOS] + ids[:length])
    return np.array(rows)
