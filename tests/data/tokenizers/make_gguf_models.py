"""make_gguf_models.py: writes gguf_models.json, beside this file: small GGUF tokenizers other than byte-level BPE.

The vocabularies have the form in which llama.cpp's converter writes them (conversion/t5.py, bert.py), with the keys of
their files. The expected ids are those of Hugging Face's tokenizers (0.23.3) with the rules in such models' published
tokenizer.json: T5's, XLM-RoBERTa's, BERT's. sentencepiece (0.2.1) trains the unigram models and compiles their maps of
characters; tokenizers trains WordPiece and merges."""
import io, json, os, tempfile
import sentencepiece
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from make_pre_tokenizers import TEXTS, random_texts

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
BLANKS = ["  two  words   here ", " ", "", "\u3000wide\u00a0space", "tab\tand\nline", "naïve façade ﬁne ｆｕｌｌ", "日本 漢字", "ＡＢＣ１２３", "a▁b ▁c",
          "x</s>y <pad>z", "[MASK] it [SEP] [unused1]", "İstanbul ẞ ǅ", "e\u0301a\u0300 n\u0303", "\u200bzero\ufeff", "word" * 60, "##ing ing"]
RULES = [(0x3000, 0x20), (0xA0, 0x20), (0x09, 0x20), (0x0A, 0x20), (0x0D, 0x20), (0xFB01, 0x66, 0x69)] + [(0xFF21 + i, 0x41 + i) for i in range(3)] + \
        [(0xFF11 + i, 0x31 + i) for i in range(3)]


def train_unigram(texts):
    with tempfile.TemporaryDirectory() as folder:
        rules = os.path.join(folder, "rules.tsv")
        with open(rules, "w") as f:
            f.writelines(f"{r[0]:X}\t{' '.join(f'{c:X}' for c in r[1:])}\n" for r in RULES)
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([line for t in texts for line in t.split("\n") if line.strip()]), model_writer=model, model_type="unigram",
            vocab_size=400, normalization_rule_tsv=rules, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=9,
            character_coverage=0.98)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return [(p.piece, p.score) for p in proto.pieces], proto.normalizer_spec.precompiled_charsmap


def unigram(pieces, charsmap, keeps):
    t = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    if charsmap:
        t.normalizer = normalizers.Precompiled(charsmap)
    space = pre_tokenizers.Metaspace("▁", "always", split=not keeps)
    t.pre_tokenizer = space if keeps else pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    t.add_special_tokens([AddedToken(p, normalized=False) for p in ("<pad>", "</s>", "<unk>")])
    return t


def words(vocab, lowers, strips):
    t = Tokenizer(models.WordPiece(vocab=vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowers, strip_accents=strips)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return t


def blanks(lowers):
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    if lowers:
        t.normalizer = normalizers.Lowercase()
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return t


def phantom(token, kind):
    return token if kind == CONTROL else token[2:] if token.startswith("##") else "▁" + token


def main():
    texts, cases = TEXTS + random_texts(20) + BLANKS, []
    encode = lambda t, before, behind: [[s, before + t.encode(s, add_special_tokens=False).ids + behind] for s in texts]

    pieces, charsmap = train_unigram(TEXTS + random_texts(60))
    scored = {"tokens": [p for p, _ in pieces], "scores": [s for _, s in pieces],
              "types": [CONTROL, CONTROL, UNKNOWN] + [NORMAL] * (len(pieces) - 3), "charsmap": list(charsmap)}
    flags = {"add_space_prefix": True, "remove_extra_whitespaces": True}
    cases.append({"name": "t5", "model": "t5", **scored, "flags": flags, "ids": {}, "encode": encode(unigram(pieces, charsmap, False), [], [1])})
    cases.append({"name": "t5 of both ends", "model": "t5", **scored, "flags": {**flags, "add_bos_token": True, "add_eos_token": False},
                  "ids": {"bos": 0}, "encode": encode(unigram(pieces, charsmap, False), [0], [])})
    plain = {**scored, "charsmap": []}
    cases.append({"name": "t5 without a map", "model": "t5", **plain, "flags": flags, "ids": {}, "encode": encode(unigram(pieces, b"", False), [], [1])})
    cases.append({"name": "t5 that keeps blanks", "model": "t5", **scored, "flags": {"add_space_prefix": True}, "ids": {},
                  "encode": encode(unigram(pieces, charsmap, True), [], [1])})

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name, lowers, strips in (("bert", True, True), ("bert that keeps case", False, False), ("bert that keeps accents", True, False)):
        t = words({"[UNK]": 0}, lowers, strips)
        t.train_from_iterator(TEXTS + random_texts(60), trainers.WordPieceTrainer(vocab_size=420, special_tokens=special + ["[unused1]"], show_progress=False))
        vocab = t.get_vocab()
        tokens = sorted(vocab, key=vocab.get)
        t = words(vocab, lowers, strips)
        t.add_special_tokens([AddedToken(s, normalized=False) for s in special])
        types = [CONTROL if s in special else NORMAL for s in tokens]
        flags = {} if lowers and strips else {"normalizer.lowercase": lowers, "normalizer.strip_accents": strips}
        cases.append({"name": name, "model": "bert", "tokens": [phantom(s, k) for s, k in zip(tokens, types)], "types": types, "flags": flags,
                      "ids": {"bos": 2, "unknown": 1, "seperator": 3, "padding": 0, "mask": 4}, "encode": encode(t, [2], [3])})

    for name, lowers in (("whitespace", False), ("whitespace in lower case", True)):
        t = blanks(lowers)
        t.train_from_iterator([s.replace("\0", "") for s in TEXTS], trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>"], show_progress=False))
        model = json.loads(t.to_str())["model"]
        tokens = sorted(model["vocab"], key=model["vocab"].get)
        cases.append({"name": name, "model": "whitespace", "tokens": tokens, "types": [UNKNOWN] + [NORMAL] * (len(tokens) - 1),
                      "merges": [" ".join(m) for m in model["merges"]], "flags": {"normalizer.lowercase": True} if lowers else {},
                      "ids": {"unknown": 0}, "encode": encode(t, [], [])})
    with open(os.path.join(HERE, "gguf_models.json"), "w") as f:
        json.dump(cases, f, ensure_ascii=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
