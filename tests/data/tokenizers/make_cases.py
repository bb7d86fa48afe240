"""make_cases.py [COUNT]: writes gemma/random_cases.json, variants.json and large_cases.json, beside this file.

The expected ids and texts are those of Hugging Face's tokenizers (0.23.3), none of them ours. random_cases.json has
random strings for gemma/tokenizer.json. variants.json has small tokenizers, each with one setting changed, and random
strings for each: COUNT cases (default 12; more for a longer comparison by hand). large_cases.json has texts for a
tokenizer of real size, which tests/language/tokenizer/test_tokenizer_speed.c also generates, by the same rules.
gemma/tokenizer_cases.json came with the reference fixtures."""
import copy, itertools, json, os, random, sys
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
LETTERS = "abcde"
ODD = ["é", "e\u0301", "日本", "😀", "👩‍👩‍👧‍👦", "▁", "▁▁", "<0x41>", "<0xE3>", "ﬁ", "½", "\u00a0", "\u3000", "\u200b", "\x00", "\x07", "\x7f",
       "q\u0323\u0307", "q\u0307\u0323", "각", "\u1112\u1161\u11ab", "Å", "\u212b", "İ", "ß", "_", "٣", "Ⓐ", "\u0345", "\u0300\u0316\u0300"]


FIXED = ["", " ", "  ab", " a  b ", "dad bad dad", " bad", "\n\nab\n", "_cab cab_ -cab cab- cab", "  cab  cabba  <x> \n"]


def merged(vocab, merges, words):
    """Adds each word, and the merges that build it from left to right."""
    for word in words:
        for i in range(2, len(word) + 1):
            if word[:i] not in vocab:
                vocab[word[:i]] = len(vocab)
                merges.append([word[:i - 1], word[i - 1]])


def added(content, **flags):
    token = {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {**token, **flags}


def new_id(spec, content):
    """Returns the id of an added token. One that is in the vocabulary has its id there; others follow without a gap,
    as tokenizers requires."""
    vocab = spec["model"]["vocab"]
    return vocab.get(content, 1 + max([len(vocab) - 1] + [a["id"] for a in spec["added_tokens"]]))


def base():
    vocab, merges = {}, []
    for token in ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{b:02X}>" for b in range(256)), *"▁ \n.,-_" + LETTERS, "é", "日"]:
        vocab[token] = len(vocab)
    merged(vocab, merges, ["ab", "abc", "▁ab", "▁▁", "▁▁▁", "  ", "de", "bcd", "▁de", "aa", "aaaa", "\n\n", "e▁", "e "])
    merges += [["b", "c"]] if "bc" in vocab else []
    merges += [["a", "bc"]]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{**added(c, special=True), "id": i} for i, c in enumerate(["<pad>", "<eos>", "<bos>", "<unk>"])],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
            "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                         {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": merges}}


def variants():
    def make(name, **changes):
        spec = copy.deepcopy(base())
        for key, value in changes.items():
            if key == "tokens":
                for token in value():
                    spec["added_tokens"].append({**token, "id": new_id(spec, token["content"])})
            elif key == "vocab":
                value(spec["model"]["vocab"])
            elif key in spec["model"]:
                spec["model"][key] = value
            else:
                spec[key] = value
        return name, spec

    def drop(*ranges):
        def change(vocab):
            for low, high in ranges:
                for b in range(low, high):
                    del vocab[f"<0x{b:02X}>"]
            for i, token in enumerate(list(vocab)):
                vocab[token] = i
        return change

    def replace(pattern, content, kind="String"):
        return {"type": "Replace", "pattern": {kind: pattern}, "content": content}

    def split(pattern, behavior, invert=False, kind="String"):
        return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}

    yield make("base")
    yield make("merges as strings", merges=[" ".join(m) for m in base()["model"]["merges"] if " " not in "".join(m)])
    def unreached(vocab):
        vocab.update({"dad": len(vocab), "▁bad": len(vocab) + 1})  # no merges give these tokens

    for ignore in (True, False):
        yield make(f"ignore merges {ignore}", ignore_merges=ignore, vocab=unreached, pre_tokenizer=split("▁", "MergedWithNext"))
    for fuse in (True, False):
        yield make(f"no byte fallback, fuse {fuse}", byte_fallback=False, fuse_unk=fuse)
        yield make(f"some byte tokens, fuse {fuse}", fuse_unk=fuse, vocab=drop((0x80, 0xA0), (0xF0, 0xF8)))
    yield make("no unknown token", byte_fallback=False, unk_token=None)
    for kind in ("NFC", "NFD", "NFKC", "NFKD"):
        yield make(kind, normalizer={"type": "Sequence", "normalizers": [{"type": kind}, replace(" ", "▁")]})
    yield make("prepend", normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")]},
               decoder={"type": "Sequence", "decoders": [replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})
    yield make("regex normalizer", normalizer={"type": "Sequence", "normalizers": [replace(r"\s+", "▁", "Regex"), replace("[^a-d▁]", "e", "Regex")]})
    yield make("empty regex matches", normalizer=replace("x*", "-", "Regex"), pre_tokenizer=split("b*", "Isolated", kind="Regex"))
    yield make("no normalizer", normalizer=None, pre_tokenizer=None)
    yield make("regex decoder", decoder={"type": "Sequence", "decoders": [replace("[▁b]", " ", "Regex"), {"type": "ByteFallback"}]})
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            yield make(f"split {behavior} {invert}", normalizer=None, pre_tokenizer=split(" ", behavior, invert))
        yield make(f"split regex {behavior}", pre_tokenizer=split(r"▁?\p{L}+|\d|\s+", behavior, kind="Regex"))
    yield make("splits in sequence", normalizer=None, pre_tokenizer={"type": "Sequence", "pretokenizers": [
        split(r"\p{N}{1,3}", "Isolated", kind="Regex"), split("b", "MergedWithNext"), split(r"\s+(?!\S)|\s+", "Isolated", kind="Regex")]})
    for flag in ("lstrip", "rstrip", "single_word", "normalized", "special"):
        yield make(f"added {flag}", tokens=lambda f=flag: [added("cab", **{f: True}), added("cabba", **{f: True}), added("<x y>", **{f: True})])
    yield make("added all", tokens=lambda: [added("cab", lstrip=True, rstrip=True, single_word=True, special=True), added("<x>", lstrip=True, rstrip=True)])
    for flag in ("lstrip", "rstrip"):  # with both at once, over tokens of white space, tokenizers panics
        yield make(f"added white space, {flag}", tokens=lambda f=flag: [added("\n"), added("\n\n\n"), added("<x>", **{f: True}), added("  ", **{f: True})])
    yield make("added overlapping", tokens=lambda: [added(t) for t in ("ab", "abc", "bcde", "cde", "<", "<|", "<|a|>", "|>")])
    yield make("added normalized", normalizer={"type": "Sequence", "normalizers": [replace("b", "d"), replace(" ", "▁")]},
               tokens=lambda: [added("cabba", normalized=True), added("x y", normalized=True), added("bb")])
    yield make("template", post_processor={"type": "TemplateProcessing", "pair": [], "special_tokens": {
        "<bos>": {"id": "<bos>", "ids": [2, 0], "tokens": ["<bos>", "<pad>"]}, "<eos>": {"id": "<eos>", "ids": [1], "tokens": ["<eos>"]}},
        "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<eos>", "type_id": 0}}]})


def random_text(rnd, words):
    out = []
    for _ in range(rnd.randrange(1, 12)):
        kind = rnd.randrange(7)
        if kind == 0:
            out.append(rnd.choice(" \n\t") * rnd.randrange(1, 5))
        elif kind == 1:
            out.append(rnd.choice(ODD))
        elif kind == 2:
            out.append(rnd.choice(words))
        elif kind == 3:
            word = rnd.choice(words)
            cut = rnd.randrange(len(word))
            out.append(word[cut:] if rnd.random() < 0.5 else word[:cut])
        elif kind == 4:
            # codepoints are left out that a Unicode version after 12 may have changed
            out.append(chr(rnd.choice([rnd.randrange(32), rnd.randrange(0x80, 0x530), rnd.randrange(0x3041, 0x3097), rnd.randrange(0x4E00, 0x9FA6),
                                       rnd.randrange(0xAC00, 0xD7A4), rnd.randrange(0xE000, 0xF900), rnd.randrange(0x1F300, 0x1F600), 0x10FFFF])))
        else:
            out.append("".join(rnd.choice(LETTERS + "  1.,") for _ in range(rnd.randrange(1, 12))))
    return "".join(out)


def cases(tok, rnd, words, count):
    out = []
    for text in FIXED + [random_text(rnd, words) for _ in range(count)]:
        ids = tok.encode(text, add_special_tokens=False).ids
        out.append({"text": text, "ids": ids, "ids_with_special": tok.encode(text).ids,
                    "decoded": tok.decode(ids, skip_special_tokens=False), "decoded_skip_special": tok.decode(ids, skip_special_tokens=True)})
    return out


def large():
    """Returns a tokenizer of 262,144 tokens and 514,000 merges: special tokens, bytes, letters, and all words of one
    to three syllables of two letters; not all of those with three fit. A word of three syllables is merged from both
    sides."""
    consonants, vowels = "bdfghjklmnprstvz", "aeio"
    syllables = [c + v for c in consonants for v in vowels]
    vocab, merges = {}, []
    for token in ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{b:02X}>" for b in range(256)), "▁", *consonants, *vowels, *syllables]:
        vocab[token] = len(vocab)
    merges += [list(s) for s in syllables]
    for one, two in itertools.product(syllables, repeat=2):
        vocab[one + two] = len(vocab)
        merges.append([one, two])
    for one, two, three in itertools.product(syllables, repeat=3):
        if len(vocab) == 262144:
            break
        vocab[one + two + three] = len(vocab)
        merges += [[one + two, three], [one, two + three]]
    spec = base()
    spec["model"].update(vocab=vocab, merges=merges[:514000])
    return spec


def large_cases(count):
    tok = Tokenizer.from_str(json.dumps(large()))
    rnd = random.Random(9)
    parts = ["ba", "be", "do", "ki", "zo", "ra", "me", "na", "to", "ti", "li", "b", "a", "k", " ", "é", "<eos>"]
    texts = ["".join(rnd.choice(parts) for _ in range(rnd.randrange(1, 60))) for _ in range(count)]
    return [{"text": text, "ids": tok.encode(text, add_special_tokens=False).ids} for text in texts]


def main(count):
    rnd = random.Random(7)
    out = []
    for name, spec in variants():
        tok = Tokenizer.from_str(json.dumps(spec))
        words = [a["content"] for a in spec["added_tokens"]] + ["cab", "cabba", "<x>", "<x y>", "x y", "12345", "bb", "aaaaaaaa"]
        out.append({"name": name, "tokenizer": spec, "cases": cases(tok, rnd, words, count)})
    with open(f"{HERE}/variants.json", "w") as f:
        json.dump(out, f, separators=(",", ":"))
    with open(f"{HERE}/large_cases.json", "w") as f:
        json.dump({"encode": large_cases(5 * count)}, f, separators=(",", ":"))
    tok = Tokenizer.from_file(f"{HERE}/gemma/tokenizer.json")
    spec = json.load(open(f"{HERE}/gemma/tokenizer.json"))
    words = [a["content"] for a in spec["added_tokens"]] + ["Hello world", " the answer", "int main(void) {\n", "2026-01-02", "naïve café", "Straße"]
    with open(f"{HERE}/gemma/random_cases.json", "w") as f:
        json.dump({"encode": cases(tok, rnd, words, 25 * count)}, f, separators=(",", ":"))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
