"""Makes small tokenizers of the published styles with Hugging Face's tokenizers (0.23.3), and their results for texts.

    tokenizer_styles.py make              writes tests/data/tokenizers/styles/NAME.json: a tokenizer, 200 texts and
                                          their ids; and ../patterns.json: expressions, and what they match; and
                                          ../runs.json: tokenizers of Gemma's kind, and ids of runs of blanks
    tokenizer_styles.py compare [LIBRARY] [CASES] [BYTES] [NAME...]
                                          compares build/libforerun.so.* with the package on CASES texts per style
                                          (2000) and BYTES strings of random bytes in all (1000000): ids, and texts
                                          printed as a whole and token by token; prints how many differ

Every vocabulary was trained on the words below, with the seeds below. From a published model there is only the way of
splitting texts, which is named after it. The package takes only text, so bytes that are not UTF-8 are replaced
(U+FFFD) before it sees them. forerun takes them as they are and prints bytes, which are replaced before they are
compared. Needs tokenizers and sentencepiece (requirements.txt)."""

import base64, ctypes, glob, io, json, os, random, sys
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.normpath(f"{HERE}/../data/tokenizers/styles")

WORDS = """the of and to in is that it was for on are with as his they be at one have this from or had by hot word but
what some we can out other were all there when up use your how said an each she which do their time if will
way about many then them write would like so these her long make thing see him two has look more day could go
come did number sound no most people my over know water than call first who may down side been now find I'm
you're we've she'll it's don't HELLO World iPhone JSON printf return int void main def self None True function
const naïve café résumé Straße Größe über Ærø señor mañana garçon crème brûlée Łódź žluťoučký kůň İstanbul ΑΒΓ
αβγ Ελλάδα привет мир Москва Добрый день שלום עולם مرحبا بالعالم नमस्ते दुनिया हिन्दी สวัสดี ชาวโลก 你好 世界 中文
日本語 こんにちは カタカナ 한국어 안녕하세요 1 12 123 1234 12345 3.14 2026-01-02 0x1F $100 50% a+b=c (x) [y] {z} <tag> "q" 'q' `c`
# // /* */ -> => != && || ... — – … “x” ‘y’ «z» 😀 👍🏽 ½ ² № ™ ﬁ""".split()


def corpus(seed=1, lines=700):
    rnd = random.Random(seed)
    for _ in range(lines):
        out = []
        for _ in range(rnd.randrange(3, 14)):
            word = rnd.choice(WORDS[:120]) if rnd.random() < 0.7 else rnd.choice(WORDS)
            out.append(
                rnd.choice([" ", " ", " ", " ", "  ", "\n", "\t", "", "    ", "\r\n"])
                + word
                + rnd.choice(["", "", "", ",", ".", "!", "?\n"])
            )
        yield "".join(out)


# -------------------------------------------------------------------------------------------------- regular expressions

LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SUFFIX = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = SUFFIX + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SUFFIX}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SUFFIX}?|\p{{N}}{{1,3}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES
)
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES
)
NO_HAN = r"&&[^\p{Han}]]"
KIMI = (
    rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{UPPER[:-1]}{NO_HAN}*{LOWER[:-1]}{NO_HAN}+{SUFFIX}?|"
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER[:-1]}{NO_HAN}+"
    rf"{LOWER[:-1]}{NO_HAN}*{SUFFIX}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|" + LINES
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
    r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    + LINES
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
EXAONE = (
    SUFFIX
    + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(pattern=None, prefix=False):
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=pattern is None)
    return pre_tokenizers.Sequence([split(pattern), level]) if pattern else level


# ------------------------------------------------------------------------------------------------------------- training


def train(model, trainer, normalizer=None, pre_tokenizer=None):
    tok = Tokenizer(model)
    if normalizer:
        tok.normalizer = normalizer
    if pre_tokenizer:
        tok.pre_tokenizer = pre_tokenizer
    tok.train_from_iterator(corpus(), trainer)
    return tok


def byte_bpe(pre_tokenizer, specials=("<|endoftext|>",), normalizer=None, size=400, **model):
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
        **{key: model[key] for key in ("end_of_word_suffix",) if key in model},
    )
    tok = train(models.BPE(**model), trainer, normalizer, pre_tokenizer)
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok


def sp_bpe(size=480, specials=("<unk>", "<s>", "</s>")):
    """Trains SentencePiece's kind of BPE: characters, tokens for bytes, and ▁ for a space."""
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[*specials, *bytes_], limit_alphabet=60, show_progress=False
    )
    trained = train(
        models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        trainer,
        None,
        pre_tokenizers.Metaspace(prepend_scheme="always", split=False),
    )
    spec = json.loads(trained.to_str())
    spec["pre_tokenizer"] = None
    spec["added_tokens"] = [t for t in spec["added_tokens"] if not t["content"].startswith("<0x")]
    return spec


def template(tok, before, behind=()):
    names = [*before, *behind]
    return processors.TemplateProcessing(
        single=" ".join([*before, "$A", *behind]),
        special_tokens=[(n, tok.token_to_id(n)) for n in dict.fromkeys(names)],
    )


def of_spec(spec, **parts):
    spec.update(parts)
    return Tokenizer.from_str(json.dumps(spec))


def replaced(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


SP_DECODER = {
    "type": "Sequence",
    "decoders": [
        replaced("▁", " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}


RULES = {
    # fmt: off
    "ﬁ": "fi", "½": "1/2", "²": "2", "Å": "Å", "Å": "Å", "é": "é", "ｱ": "ア", "ﾞ": "゙", "Ａ": "A", "！": "!",
    "，": ",", "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\u200b": "", "\u200d": " ",
    "№": "No", "™": "TM", "…": "...", "가": "가", "﷽": "x",
    # fmt: on
}


def charsmap(rules=RULES, name=None):
    """Returns a map of characters compiled by SentencePiece: the one with this name, or a map of a few rules, because
    the published ones are long."""
    import sentencepiece
    import sentencepiece.sentencepiece_model_pb2 as pb

    path = f"/tmp/charsmap-{os.getpid()}.tsv"
    with open(path, "w") as f:
        for before, behind in rules.items():
            f.write(" ".join(f"{ord(c):X}" for c in before) + "\t" + " ".join(f"{ord(c):X}" for c in behind) + "\n")
    model = io.BytesIO()
    chosen = {"normalization_rule_name": name} if name else {"normalization_rule_tsv": path}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(list(corpus())),
        model_writer=model,
        vocab_size=400,
        model_type="bpe",
        minloglevel=2,
        **chosen,
    )
    os.unlink(path)
    proto = pb.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def unigram(specials, normalizer, pre_tokenizer, size=420, unk="<unk>"):
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=list(specials), unk_token=unk, show_progress=False
    )
    spec = json.loads(train(models.Unigram(), trainer, None, pre_tokenizer).to_str())
    spec["model"]["vocab"] = [[token, round(score, 6)] for token, score in spec["model"]["vocab"]]
    return of_spec(
        spec,
        normalizer=normalizer,
        decoder={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    )


# --------------------------------------------------------------------------------------------------------------- styles

STYLES = {}


def style(make):
    STYLES[make.__name__.replace("_", "-")] = make
    return make


@style
def gpt2():
    return byte_bpe(byte_level())


@style
def gpt_neox():
    tok = byte_bpe(byte_level(), normalizer=normalizers.NFC())
    tok.add_tokens(
        [AddedToken(" " * n, normalized=True) for n in (2, 3, 4, 8)] + [AddedToken("<|pad|>", special=True)]
    )
    return tok


@style
def llama2():
    spec = sp_bpe()
    tok = of_spec(
        spec,
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replaced(" ", "▁")]},
        decoder=SP_DECODER,
    )
    tok.post_processor = template(tok, ["<s>"])
    return tok


@style
def llama2_metaspace():
    tok = of_spec(
        sp_bpe(),
        pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
        decoder=SP_DECODER,
    )
    tok.post_processor = template(tok, ["<s>"], ["</s>"])
    return tok


@style
def mistral_metaspace():
    tok = of_spec(
        sp_bpe(),
        pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        decoder=SP_DECODER,
        normalizer={"type": "Strip", "strip_left": True, "strip_right": False},
    )
    tok.add_special_tokens(["[INST]", AddedToken("[/INST]", lstrip=True, rstrip=True)])
    return tok


@style
def llama3():
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"]
    tok = byte_bpe(byte_level(LLAMA3), specials, ignore_merges=True)
    tok.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), template(tok, ["<|begin_of_text|>"])]
    )
    return tok


@style
def qwen2():
    tok = byte_bpe(byte_level(QWEN2), normalizer=normalizers.NFC())
    tok.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tok.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("<think>", normalized=False)])
    return tok


@style
def cl100k():
    return byte_bpe(byte_level(CL100K))


@style
def deepseek_v3():
    pre = pre_tokenizers.Sequence(
        [
            split(r"\p{N}{1,3}"),
            split("[一-龥぀-ゟ゠-ヿ]+"),
            split(DEEPSEEK),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tok = byte_bpe(pre, ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"])
    tok.add_tokens([AddedToken("<｜User｜>", normalized=True), AddedToken("<｜fim▁hole｜>", normalized=False)])
    return tok


@style
def deepseek_coder():
    pre = pre_tokenizers.Sequence(
        [
            split("[\r\n]"),
            split(r"\s?\p{L}+"),
            split(r"\s?\p{P}+"),
            split("[一-龥ࠀ-一가-퟿]+"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return byte_bpe(pre, normalizer=normalizers.Sequence([]))


@style
def smollm():
    return byte_bpe(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]),
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    )


@style
def starcoder():
    tok = byte_bpe(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), byte_level(prefix=True)]))
    tok.add_special_tokens([AddedToken("<fim_prefix>", single_word=True), AddedToken("<file>", rstrip=True)])
    return tok


@style
def falcon():
    pre = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            byte_level(),
            pre_tokenizers.Digits(individual_digits=False),
            split("[0-9][0-9][0-9]"),
        ]
    )
    return byte_bpe(pre, [">>TITLE<<", "<|endoftext|>"])


@style
def command_r():
    tok = byte_bpe(
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level()]),
        ["<BOS_TOKEN>", "<EOS>"],
        normalizer=normalizers.NFC(),
    )
    tok.post_processor = template(tok, ["<BOS_TOKEN>"])
    return tok


@style
def tekken():
    tok = byte_bpe(byte_level(TEKKEN), ["<unk>", "<s>", "</s>", "[INST]"], ignore_merges=True)
    tok.post_processor = template(tok, ["<s>"])
    return tok


@style
def gemma():
    spec = sp_bpe(specials=("<pad>", "<eos>", "<bos>", "<unk>"))
    tok = of_spec(
        spec,
        normalizer=replaced(" ", "▁"),
        pre_tokenizer={
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        decoder={"type": "Sequence", "decoders": SP_DECODER["decoders"][:3]},
    )
    tok.add_tokens(
        [
            AddedToken("\n\n", normalized=False),
            AddedToken("▁▁", normalized=False),
            AddedToken("<start_of_turn>", normalized=False),
        ]
    )
    tok.post_processor = template(tok, ["<bos>"])
    return tok


@style
def o200k():
    return byte_bpe(byte_level(O200K), ["<|endoftext|>", "<|endofprompt|>"])


@style
def phi3():
    spec = sp_bpe()
    tok = of_spec(
        spec,
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replaced(" ", "▁")]},
        decoder=SP_DECODER,
    )
    tok.add_special_tokens(
        [AddedToken(t, rstrip=True, normalized=False) for t in ("<|assistant|>", "<|end|>", "<|user|>")]
    )
    tok.add_tokens([AddedToken("<|extra|>", normalized=True)])
    return tok


@style
def t5():
    tok = unigram(["<pad>", "</s>", "<unk>"], precompiled(), pre_tokenizers.Metaspace(prepend_scheme="always"))
    tok.post_processor = template(tok, [], ["</s>"])
    tok.add_special_tokens([AddedToken(f"<extra_id_{i}>", lstrip=True, rstrip=True) for i in (1, 0)])
    return tok


def precompiled(name=None):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(name=name)).decode()}


def xlm_like(name):
    normalizer = {"type": "Sequence", "normalizers": [precompiled(name), replaced(" {2,}", " ", "Regex")]}
    pre = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tok = unigram(["<s>", "<pad>", "</s>", "<unk>"], normalizer, pre)
    tok.post_processor = template(tok, ["<s>"], ["</s>", "</s>"])
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tok


@style
def xlm_r():
    return xlm_like(None)


@style
def albert():
    parts = [
        replaced("``", '"'),
        replaced("''", '"'),
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        precompiled(),
    ]
    tok = unigram(
        ["<pad>", "<unk>", "[CLS]", "[SEP]"],
        {"type": "Sequence", "normalizers": parts},
        pre_tokenizers.Metaspace(prepend_scheme="always"),
    )
    tok.post_processor = template(tok, ["[CLS]"], ["[SEP]"])
    tok.add_tokens([AddedToken("[MASK]", lstrip=True, normalized=True)])
    return tok


@style
def unigram_bytes():
    spec = json.loads(
        unigram(
            ["<unk>", *[f"<0x{b:02X}>" for b in range(256)]],
            None,
            pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
            size=600,
        ).to_str()
    )
    spec["model"]["byte_fallback"] = True
    spec["added_tokens"] = spec["added_tokens"][:1]
    return of_spec(
        spec,
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "Nmt"},
                {"type": "NFKC"},
                {"type": "Strip", "strip_left": False, "strip_right": True},
            ],
        },
        decoder={
            "type": "Sequence",
            "decoders": [
                {"type": "ByteFallback"},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
            ],
        },
    )


def bert(cased):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=False if cased else None)
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=specials, show_progress=False)
    tok = train(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20),
        trainer,
        normalizer,
        pre_tokenizers.BertPreTokenizer(),
    )
    tok.decoder = decoders.WordPiece(prefix="##", cleanup=not cased)
    tok.post_processor = (
        template(tok, ["[CLS]"], ["[SEP]"]) if cased else processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    )
    return tok


@style
def bert_uncased():
    return bert(False)


@style
def bert_cased():
    return bert(True)


@style
def roberta():
    tok = byte_bpe(byte_level(prefix=True), ["<s>", "<pad>", "</s>", "<unk>"])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return tok


@style
def clip():
    normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pre = pre_tokenizers.Sequence([split(CLIP, "removed", True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok = byte_bpe(
        pre,
        ["<|startoftext|>", "<|endoftext|>"],
        normalizer,
        size=560,
        unk_token="<|endoftext|>",
        end_of_word_suffix="</w>",
    )
    tok.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0))
    return tok


@style
def openai_gpt():
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    tok = train(
        models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
        trainer,
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    )
    tok.decoder = decoders.BPEDecoder(suffix="</w>")
    return tok


@style
def bpe_prefix():
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["[UNK]"], continuing_subword_prefix="##", show_progress=False
    )
    pre = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")])
    tok = train(
        models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", fuse_unk=True), trainer, normalizers.NFD(), pre
    )
    tok.decoder = decoders.WordPiece(cleanup=False)
    return tok


@style
def kimi():
    return byte_bpe(byte_level(KIMI), ["[BOS]", "[EOS]", "<|im_end|>"])


@style
def chatglm():
    tok = byte_bpe(byte_level(LLAMA3), ["<|endoftext|>", "[gMASK]", "<sop>", "<|user|>"], ignore_merges=True)
    tok.post_processor = template(tok, ["[gMASK]", "<sop>"])
    return tok


@style
def exaone():
    return byte_bpe(byte_level(EXAONE), ["[|endofturn|]", "[BOS]"], normalizer=normalizers.NFC())


@style
def bloom():
    return byte_bpe(byte_level(BLOOM), ["<unk>", "<s>", "</s>"])


@style
def byte_normalizer():
    """Writes bytes as characters before anything else, and splits the text in this form."""
    spec = json.loads(byte_bpe(byte_level()).to_str())
    tok = of_spec(
        spec,
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "ByteLevel"}]},
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [{"type": "CharDelimiterSplit", "delimiter": "Ċ"}, {"type": "FixedLength", "length": 7}],
        },
    )
    tok.add_tokens([AddedToken("é x", normalized=True)])
    return tok


@style
def words():
    trainer = trainers.WordLevelTrainer(vocab_size=300, special_tokens=["<unk>"], show_progress=False)
    return train(
        models.WordLevel(unk_token="<unk>"),
        trainer,
        normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]),
        pre_tokenizers.Whitespace(),
    )


# ---------------------------------------------------------------------------------------------------------------- texts

ODD = [
    # fmt: off
    "é", "e\u0301", "日本", "😀", "👩‍👩‍👧‍👦", "▁", "▁▁", "<0x41>", "<0xE3>", "ﬁ", "½", "\u00a0", "\u3000",
    "\u200b", "\x00", "\x07", "\x7f", "\x85", "\u2028", "\u180e", "q\u0323\u0307", "q\u0307\u0323", "각",
    "\u1112\u1161\u11ab", "Å", "\u212b", "İ", "ß", "_", "٣", "Ⓐ", "\u0345", "\u0300\u0316\u0300", "ſ", "K",
    "'S", "'ſ", "'LL", "\ufffd", "\r\n", "\n\n", "\t", "Ǆ", "ǅ", "ª", "²", "Ⅷ", "㈠", "́", "ா", "क्षि", "ก็",
    "\u200d", "\u200c", "﷽", "``", "''", " ", "  ", "Ġ", "Ċ", "##", "</w>", "!", "?", " .", " n't",
    # fmt: on
]


def planes(rnd):
    return chr(
        rnd.choice(
            [
                rnd.randrange(128),
                rnd.randrange(0x80, 0x530),
                rnd.randrange(0x530, 0x2000),
                rnd.randrange(0x2000, 0x2E80),
                rnd.randrange(0x2E80, 0xA000),
                rnd.randrange(0xA000, 0xD7FF),
                rnd.randrange(0xE000, 0x10000),
                rnd.randrange(0x10000, 0x20000),
                rnd.randrange(0x20000, 0x30000),
                0x10FFFF,
            ]
        )
    )


def text_of(rnd, names):
    out = []
    for _ in range(rnd.randrange(1, 9)):
        kind = rnd.randrange(8)
        if kind == 0:
            out.append(rnd.choice(" \n\t ") * rnd.randrange(1, 5))
        elif kind == 1:
            out.append(rnd.choice(ODD))
        elif kind == 2 and names:
            out.append(rnd.choice(["", " ", "  "]) + rnd.choice(names) + rnd.choice(["", " ", " \n"]))
        elif kind == 3:
            out.append(planes(rnd))
        elif kind == 4:
            out.append("".join(rnd.choice("abcdeABC019 '._-") for _ in range(rnd.randrange(1, 12))))
        else:
            out.append(rnd.choice(["", " ", " ", "\n"]) + rnd.choice(WORDS))
    return "".join(out)


def bytes_of(rnd):
    if rnd.random() < 0.5:
        return rnd.randbytes(rnd.randrange(0, 40))
    data = bytearray(text_of(rnd, []).encode())
    for _ in range(rnd.randrange(0, 4)):
        if data:
            at = rnd.randrange(len(data))
            data[at : at + rnd.randrange(2)] = rnd.randbytes(rnd.randrange(3))
    return bytes(data)


def names_of(tok):
    return [t["content"] for t in json.loads(tok.to_str())["added_tokens"]]


# ---------------------------------------------------------------------------------------------------------------- files


# The list shows how Oniguruma and PCRE2 differ, and which of the expressions are built.
PATTERNS = r"""[a[bc]] [a-w&&[^c-g]z] [^a&&b] [\w&&[^\d]]+ []a]+ [a\]b-]+ [&&a] [a&b] [[:punct:]] [[:^space:]]+
\p{Punct} \p{^L} \P{Lu} \p{han} \p{White_Space} \s+ \S+ \w+ \W+ [\w]+ [^\w]+ \h+ \H \d+ \D \b \B ^ $
^.+$ a$ \A. .\z .\Z \R \N+ \O (?m:.+) (?i)A|b a(?i)B|c (?i:'s|'ll) (?i:[st]+) (?-i)a (?i:(?-i:a)b)
a{2}+ a{1,2}+ a{,2} a{2}? a{1,2}? a++b a*+ a?+ a+* a{1,2}{2} a{ a{x} x{,} (a|b)+ (?<n>a) (?>a|ab)c
(?=a). (?!a). (?<=a). (?<!a). (?#note)a \x41 \x{65E5} \u00e9 \t|\n|\r|\f|\v|\a|\e é+ 日. }]+ - \- \_
[^\s\p{L}\p{N}]+ \p{N}{1,3}+ [\p{Lu}\p{Lt}&&[^\p{Han}]]+""".split()
REFUSED = r"""(a)\1 \k<n>(?<n>a) \g<1>(a) (?~a) (?i:é) (?i:ss) (?i)\p{Lu} \X \G \K \y \cA \xE9 \012 (*FAIL) (?{a})
\p{Greek} [[:alpha:]] (?W)a [a-\d] (?(1)a|b)""".split()
PATTERN_TEXTS = [
    "",
    "a",
    "ab aB AB\nab",
    "  a1 b22\n\nc",
    "éa日本 ß_x",
    "'s 'S 'ſ it's 'LL",
    "a\r\nb\x85c\u2028d\u180ee",
    "-_-.}] $+😀!",
    "aaabbb 1 12 1234",
    "²½ⒶⅧ\u0897 A\n",
    "\n",
    "a b\tc\n x{,}a{x}[&",
]


def make_patterns():
    matched = []
    for pattern in PATTERNS:
        replace = normalizers.Replace(Regex(pattern), "|").normalize_str
        matched.append([pattern, [replace(text) for text in PATTERN_TEXTS]])
    with open(f"{DATA}/../patterns.json", "w") as f:
        parts = {"texts": PATTERN_TEXTS, "matched": matched, "refused": REFUSED}
        json.dump(parts, f, separators=(",", ":"), ensure_ascii=False)


def with_runs(by_score):
    """Returns a tokenizer of Gemma 3's kind with tokens of blanks and of newlines. Its merges are those that
    transformers' converter makes: all pairs of tokens that together are a token, in the order of the token's id or of
    its score in SentencePiece's file, in which runs have the best one."""
    spec = json.loads(gemma().to_str())
    runs = [c * n for c in "\n▁" for n in range(2, 12)]
    kept = [t for t in spec["model"]["vocab"] if len(t) == 1 or set(t) - set("\n▁")]
    vocab = {t: i for i, t in enumerate(kept[:260] + runs + kept[260:])}
    score = {t: (0 if t in runs else -i) if by_score else -i for t, i in vocab.items()}
    merges = [(t[:i], t[i:]) for t in vocab for i in range(1, len(t)) if t[:i] in vocab and t[i:] in vocab]
    turn = -1 if by_score else 1
    merges.sort(key=lambda m: (-score[m[0] + m[1]], turn * len(m[0]), turn * len(m[1])))
    spec["model"].update(vocab=vocab, merges=merges)
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["special"]]
    tok = Tokenizer.from_str(json.dumps(spec))
    tok.add_tokens([AddedToken(t, normalized=False) for t in [*runs, "<start_of_turn>"]])
    return tok


def make_runs():
    """Writes ../runs.json: tokenizers whose merges become scores when forerun writes them as GGUF, and ids of texts.
    No text has U+2581 itself. In "trained" each token has one merge, and blanks are also an added token."""
    trained = gemma()
    trained.add_tokens([AddedToken("       ", normalized=False)])
    made = {"by-id": with_runs(False), "by-score": with_runs(True), "trained": trained}
    rnd = random.Random(7)
    texts = [a + c * n + b for c in " \n\t" for n in range(1, 31) for a, b in [("", ""), ("a", "the"), ("x\n", ".")]]
    texts += [t for t in (text_of(rnd, ["<start_of_turn>", "       ", "\n\n\n"]) for _ in range(200)) if "▁" not in t]
    found = {}
    for name, tok in made.items():
        ids = [tok.encode(t, add_special_tokens=False).ids for t in texts]
        found[name] = {"tokenizer": json.loads(tok.to_str()), "ids": ids}
    with open(os.path.join(DATA, "../runs.json"), "w") as f:
        json.dump({"texts": texts, **found}, f, separators=(",", ":"), ensure_ascii=False)


def make():
    make_patterns()
    make_runs()
    os.makedirs(DATA, exist_ok=True)
    for number, (name, build) in enumerate(STYLES.items()):
        tok, rnd = build(), random.Random(1000 + number)
        size = tok.get_vocab_size()
        cases = []
        for text in ["", " ", "a", " a", "\n"] + [text_of(rnd, names_of(tok)) for _ in range(195)]:
            ids = tok.encode(text, add_special_tokens=False).ids
            decoded = tok.decode(ids, skip_special_tokens=False)
            cases.append([text, ids] + ([decoded] if decoded != text else []))
        printed = []
        while len(printed) < 60:
            ids = [rnd.randrange(size) for _ in range(rnd.randrange(1, 8))]
            if "ByteFallback" in tok.to_str() and "\ufffd" in tok.decode(ids, skip_special_tokens=False):
                continue  # bytes that are not text: the package prints them, and forerun doesn't
            printed.append(
                [ids, tok.decode(ids, skip_special_tokens=False), tok.decode(ids, skip_special_tokens=True)]
            )
        around = tok.encode("a").ids
        spec = json.loads(tok.to_str())
        with open(f"{DATA}/{name}.json", "w") as f:
            json.dump(
                {"tokenizer": spec, "around": around, "cases": cases, "printed": printed},
                f,
                separators=(",", ":"),
                ensure_ascii=False,
            )
        print(name, os.path.getsize(f"{DATA}/{name}.json"))


# ----------------------------------------------------------------------------------------------------------- comparison


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.fr_last_error.restype = ctypes.c_char_p
        self.lib.fr_token_bytes.restype = ctypes.POINTER(ctypes.c_char)

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.fr_last_error().decode("utf-8", "replace"))

    def open(self, spec):
        folder = f"/tmp/tokenizer-styles-{os.getpid()}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/tokenizer.json", "w") as f:
            f.write(spec)
        self.tok = ctypes.c_void_p()
        self.check(self.lib.fr_tokenizer_open(folder.encode(), None, ctypes.byref(self.tok)))
        os.unlink(f"{folder}/tokenizer.json")
        os.rmdir(folder)

    def encode(self, data, special):
        ids, count = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        self.check(
            self.lib.fr_tokenize(
                self.tok, data, ctypes.c_size_t(len(data)), special, True, ctypes.byref(ids), ctypes.byref(count)
            )
        )
        out = ids[: count.value]
        self.lib.fr_free(ids)
        return out

    def decode(self, ids, special):
        """Returns the text's bytes. Decoding all ids in one call must give the same as decoding them one by one."""
        decoder, text, length = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_char)(), ctypes.c_size_t()
        self.check(self.lib.fr_decoder_new(self.tok, special, ctypes.byref(decoder)))
        out = []
        for i in ids:
            self.check(self.lib.fr_decoder_feed(decoder, i, ctypes.byref(text), ctypes.byref(length)))
            out.append(text[: length.value])
        self.check(self.lib.fr_decoder_finish(decoder, ctypes.byref(text), ctypes.byref(length)))
        out.append(text[: length.value])
        self.lib.fr_decoder_free(decoder)
        streamed = b"".join(out)
        if special:
            array = (ctypes.c_int32 * len(ids))(*ids)
            self.check(
                self.lib.fr_detokenize(
                    self.tok, array, ctypes.c_size_t(len(ids)), ctypes.byref(text), ctypes.byref(length)
                )
            )
            whole = text[: length.value]
            self.lib.fr_free(text)
            assert whole == streamed, (ids, whole, streamed)
        return streamed


def as_package(data, tok, ids, falls_back):
    """Returns the text as the package prints it, with bytes that are not UTF-8 replaced. If tokens stand for single
    bytes, the package replaces each byte of a run that is not UTF-8; None stands for such a text."""
    if not falls_back:
        return data.decode("utf-8", "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def differences(name, tok, lib, cases, strings, rnd):
    falls_back, names, wrong, runs = "ByteFallback" in tok.to_str(), names_of(tok), 0, 0
    size = tok.get_vocab_size()

    def tell(what, given, got, wanted):
        nonlocal wrong
        wrong += 1
        if wrong < 6:
            print(f"{name}: {what}\n  given  {given!r}\n  got    {got!r}\n  wanted {wanted!r}")

    def check_text(data, text):
        nonlocal runs
        runs += 1
        try:
            wanted = tok.encode(text, add_special_tokens=False).ids
        except BaseException as error:  # if the package panics, there is nothing to compare
            if "unwrap" not in str(error) and "slice" not in str(error) and "split" not in str(error):
                raise
            return
        got = lib.encode(data, False)
        if got != wanted:
            return tell("ids", text, got, wanted)
        for special in (True, False):
            printed = as_package(lib.decode(got, special), tok, got, falls_back)
            wanted_text = tok.decode(got, skip_special_tokens=not special)
            if printed is not None and printed != wanted_text:
                tell(f"text, special tokens {special}", got, printed, wanted_text)

    def check_ids(ids):
        nonlocal runs
        runs += 1
        for special in (True, False):
            printed = as_package(lib.decode(ids, special), tok, ids, falls_back)
            wanted_text = tok.decode(ids, skip_special_tokens=not special)
            if printed is not None and printed != wanted_text:
                tell(f"text, special tokens {special}", ids, printed, wanted_text)

    for _ in range(cases):
        text = text_of(rnd, names)
        check_text(text.encode(), text)
        if lib.encode(text.encode(), True) != tok.encode(text).ids:
            tell("ids with what the post-processor adds", text, lib.encode(text.encode(), True), tok.encode(text).ids)
        check_ids([rnd.randrange(size) for _ in range(rnd.randrange(0, 9))])
    for _ in range(strings):
        data = bytes_of(rnd)
        text = data.decode("utf-8", "replace")
        lib.encode(data, False)
        check_text(text.encode(), text)
    return wrong, runs


def compare(arguments):
    path = arguments[0] if arguments else glob.glob(f"{HERE}/../../build/libforerun.so.*")[0]
    cases, strings = (
        int(arguments[i]) if len(arguments) > i else default for i, default in ((1, 2000), (2, 1000000))
    )
    lib, chosen, total = Library(os.path.abspath(path)), {**STYLES, "xlm-r-nmt-nfkc": lambda: xlm_like("nmt_nfkc")}, 0
    if arguments[3:]:
        chosen = {name: chosen[name] for name in arguments[3:]}
    for number, (name, build) in enumerate(chosen.items()):
        tok = build()
        lib.open(tok.to_str())
        wrong, runs = differences(name, tok, lib, cases, strings // len(chosen), random.Random(2000 + number))
        total += wrong
        print(f"{name}: {wrong} of {runs} differ", flush=True)
        lib.lib.fr_tokenizer_close(lib.tok)
    print(f"{len(chosen)} styles: {total} differ")
    return total > 0


if __name__ == "__main__":
    sys.exit(make() if sys.argv[1:] == ["make"] else compare(sys.argv[2:]))
