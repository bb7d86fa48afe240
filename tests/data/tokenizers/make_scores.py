"""make_scores.py: writes scores.json, beside this file: a vocabulary in the form of SentencePiece's files, with scores
and without merges.

The expected ids are those of Hugging Face's tokenizers (0.23.3) with the merges that follow from the scores: every
pair of tokens that together are a token, the one with the highest score first. "prefixed": a space is put before each
text, and after each token that is found before all others. "stripping": tokens take the blanks after them, as Phi-3's
do. llama.cpp (b11549) gives the same ids, except for "stripping" if the model's name does not contain its
family's."""
import json, os, random
from tokenizers import AddedToken, Tokenizer, models, normalizers, trainers
from make_pre_tokenizers import TEXTS, random_texts

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<start_of_turn>", CONTROL), ("<end_of_turn>", CONTROL),
           ("\n", USER_DEFINED), ("\n\n", USER_DEFINED), ("<b>", USER_DEFINED), ("</b>", USER_DEFINED), ("  ", USER_DEFINED)]
MARKED = ["<b>bold</b> text", "a <b> b</b>", "\n\n\nx\n\n y", "  x   y    z", "x<s>y", "▁under▁", "<0x41> <0x0A>", "a  \n\n  <b>", "</b>"]
TURNS = ["<start_of_turn>\n hi<end_of_turn>\n<s> x </s>\n\ty <unk>  z", "<b> a </b>\n\n b", "  <start_of_turn> \u3000  <end_of_turn>  a", "<end_of_turn>\n", "<s>\n"]
UNTRAINED = "ĀžΩЖ€☃𝔘"  # these characters become bytes


def train(texts):
    t = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False)
    t.train_from_iterator([s.replace(" ", "▁") for s in texts], trainer)
    return [v for v, _ in sorted(json.loads(t.to_str())["model"]["vocab"].items(), key=lambda x: x[1])]


def merges_of(vocab, score):
    pairs = [(w[:i], w[i:]) for w in vocab for i in range(1, len(w)) if w[:i] in vocab and w[i:] in vocab]
    return sorted(pairs, key=lambda p: (-score[p[0] + p[1]], len(p[0])))


def tokenizer(tokens, types, scores, prefixed, strips=False):
    vocab, score = {t: i for i, t in enumerate(tokens)}, dict(zip(tokens, scores))
    plain = [t for t, k in zip(tokens, types) if k == NORMAL]
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges_of(set(plain), score), unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    rules = [normalizers.Prepend("▁")] if prefixed else []
    t.normalizer = normalizers.Sequence(rules + [normalizers.Replace(" ", "▁")])
    added = (CONTROL, UNKNOWN, USER_DEFINED) if strips else (USER_DEFINED,)
    t.add_tokens([AddedToken(x, normalized=False, rstrip=strips and x not in ("<s>", "<unk>")) for x, k in zip(tokens, types) if k in added])
    return t


def main():
    texts = TEXTS + random_texts(40)
    pieces = [p for p in train(texts + random_texts(300)) if p != "\0" and p not in UNTRAINED and p not in dict(SPECIAL)]
    tokens = [t for t, _ in SPECIAL] + [f"<0x{b:02X}>" for b in range(256)] + pieces
    types = [k for _, k in SPECIAL] + [BYTE] * 256 + [NORMAL] * len(pieces)
    longer = [p for p in pieces if len(p) > 1]
    random.Random(5).shuffle(longer)
    scores = [-1000.0] * (len(SPECIAL) + 256) + [-float(longer.index(p)) if p in longer else -5000.0 for p in pieces]
    texts += MARKED + [UNTRAINED] + random_texts(20)
    texts = [t for t in texts if "\0" not in t]
    ids = {name: [e.ids for e in tokenizer(tokens, types, scores, name == "prefixed").encode_batch(texts, add_special_tokens=False)]
           for name in ("plain", "prefixed")}
    strips = [[t, tokenizer(tokens, types, scores, True, True).encode(t, add_special_tokens=False).ids] for t in TURNS]
    with open(os.path.join(HERE, "scores.json"), "w") as f:
        json.dump({"tokens": tokens, "types": types, "scores": scores, "texts": texts, "ids": ids, "stripping": strips}, f, separators=(",", ":"))


if __name__ == "__main__":
    main()
