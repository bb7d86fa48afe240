"""make_pre_tokenizers.py: writes pre_tokenizers.json, beside this file.

The expected ids are those of Hugging Face's tokenizers (0.23.3) with the rules below, which are those in the models'
tokenizer.json. The vocabulary was trained on texts that were not split, so its tokens reach across every place at
which one of the kinds splits, and ids show all splits. "alike" names kinds with the same rules, whose ids are stored
once. llama.cpp (b11549) gives the same ids, with two exceptions: the kinds of APPROXIMATED, whose expressions its
engine can't run, and texts that are not in NFC, which it does not normalize."""
import json, os, random
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
APPROXIMATED = ["gpt-4o", "tekken", "tiny_aya", "kimi-k2", "deepseek-coder", "superbpe"]
S = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
DEEP = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + END)
CHINESE = "[一-龥぀-ゟ゠-ヿ]+"
SCRIPTS = "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+"
CASED = ("A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽ"
         "ᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-"
         "Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-"
         "ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃")


def gpt4(digits):
    return S + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END


def gpt4o(suffix, digits):
    return (rf"[^\r\n\p{{L}}\p{{N}}]?{UP}*{LOW}+{suffix}|[^\r\n\p{{L}}\p{{N}}]?{UP}+{LOW}*{suffix}|{digits}" + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + END)


def kimi():
    up, low = UP[:-1] + r"&&[^\p{Han}]]", LOW[:-1] + r"&&[^\p{Han}]]"
    return (rf"[\p{{Han}}]+|[^\r\n\p{{L}}\p{{N}}]?{up}*{low}+{S}?|[^\r\n\p{{L}}\p{{N}}]?{up}+{low}*{S}?|" +
            r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END)


KINDS = {
    "llama-bpe": [gpt4(r"\p{N}{1,3}")],
    "qwen2": [gpt4(r"\p{N}")],
    "smollm": [r"\p{N}", GPT2],
    "gpt-2": [GPT2],
    "olmo": [GPT2],
    "command-r": [r"\p{N}", GPT2],
    "glm4": "llama-bpe",
    "qwen35": [S + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + END],
    "deepseek-v3": [r"\p{N}{1,3}", CHINESE, DEEP],
    "stablelm2": [gpt4(r"\p{N}")],
    "dbrx": [gpt4(r"\p{N}{1,3}")],
    "gpt-4o": [gpt4o(S + "?", r"\p{N}{1,3}")],
    "tekken": [gpt4o("", r"\p{N}")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", gpt4o(S + "?", r"\p{N}{1,3}")],
    "granite-embed-multi-97m": [gpt4o(S + "?", r"\p{N}{1,3}")],
    "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + CHINESE, gpt4o(S + "?", r"\p{N}")],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", SCRIPTS, DEEP],
    "spark2_5": [r"\p{N}{1,3}", CHINESE, DEEP.split(r"[\r\n]*|")[0] + r"|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"],
    "kimi-k2": [kimi()],
    "deepseek-llm": [r"[\r\n]", r"\s?[" + CASED + "]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [S + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|" + END],
    "ufakzeka": [r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END],
    "laguna": [r"[^\n]+|[\n]+", gpt4(r"\p{N}")],
    "minicpm5": [r"\p{N}{1,3}", gpt4(r"\p{N}+")],
    "exaone-moe": [S + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "viking": [BLOOM, r"\p{N}"],
    "bloom": [BLOOM],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "jais-2": [gpt4(r"\p{N}{1,3}")[:-len(END)] + r"\s*[\r\n]+|" + "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4)) +
               r"|\s{1,2}(?!\S)|\s{1}"],
    "chameleon": ["<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
WHOLE = ["llama-bpe", "tekken", "minicpm5", "granite-embed-multi-97m", "youtu"]  # a piece that is a token stays whole
COMPOSED = ["qwen2", "qwen35", "olmo", "command-r"]
TEXTS = [
    "Hello world, it's 12345 o'clock; don't they've I'LL we'D!", "for (int i = 0; i < 1234567; i++) {\n\t\tsum += x[i] * 0x1F;\n}\n",
    "  leading   and  trailing   \n\n\n  lines \r\n\r\n end  ", "SELECT CamelCaseName, HTTPServer2 FROM snake_case_42 WHERE a!=b && c==d;",
    "日本語のテキスト、中文字符。한국어 텍스트 ３４５", "Привет, мир! Ελληνικά γράμματα. مرحبا ۱۲۳۴۵ ٣٤٥٦", "नमस्ते दुनिया। हिन्दी ไทยภาษา ๑๒๓๔",
    "😀👍🏽 👩‍👩‍👧 emoji\u200d\ufe0f mixed😀text", "e\u0301 caf\u00e9 Z\u0323\u0307 \u212b na\u00efve \u01c5 \u0130stanbul", "a\u00a0b\u3000c\u2028d\u200be\u0085f \u2003 g",
    "\t\tx\n\n\ty\r\n \r\n  z\n \n", "1 22 333 4444 55555 666666 7777777 3.14159 1,000,000 \u00bd \u2460\u2461", "http://a.b/c?d=1&e=%20#f <div class=\"x\">it's</div> @user #tag $9.99",
    "==!==>>=<<= ->-> /* c */ // d\n## e\n```py\nprint('f')\n```", "'s 't 're 've 'm 'll 'd 'S 'T 'RE x'y z'll", "A.B.C. U.S.A. (e.g.) [x]{y}|z|~^`", "<sentinel:42> IMGIMGABCZ IMGIMGZ    x  y",
    " ", "  ", "\n", "\r\n", "   \n", "\n   ", "x  ", "1", " 1", "12345678901234567890", "!", " !", "...", " ...\n\n", "\u4e00\u4e8c\u4e09abc\u56db123", "a\u0301\u0302b \u0915\u094d\u0937 \u0e33",
    "def f(x):\n    return x**2 + 1\n\n\n    # done\n", "{\"key\": [1, 22, -3e10], \"\\u00e9\": null}", "\x00\x01\x1c\x1f\x7f\x80\x9f \x00", "ABCdefGHIjkl ABC's DEF'LL", "Ａｂｃ．ｄ１２，３",
    "'tis 'soup we'reunion I'DDT", "go\n\n \n\tstop HTTPServer's sum",
    "12345abc 1234567_x 12345\u0301 1234567\u00bd 12345\u00b2 123456\u2160 1234 12345!", "so'\u017f it'\u212a \u00b9\u00b2\u00b3\u0664",
    "\ufb01 \uff71\uff72\uff01\u3001\u2026\u2014\u201cx\u201d \u3105\u3106 \u1100\u1161 \ua000\ue000 \u03b1\u10d0\u0561\u3131",
]
UNREACHED = ["ĠHTTPServer", "Ġ'soup"]  # no merges give these tokens


def random_texts(count):
    rnd, made = random.Random(7), []
    parts = [p for t in TEXTS[:17] for p in t.split(" ")] + [" ", "  ", "\n", "\t", "\r\n", "12", "345", "6", "'s", "'LL", ".", "、", "\u3000"]
    for _ in range(count):
        made.append(rnd.choice(["", " "]).join(rnd.choice(parts) for _ in range(rnd.randrange(3, 9))))
    return made


def tokenizer(name, vocab, merges):
    t = Tokenizer(models.BPE(vocab=dict(vocab), merges=[tuple(m) for m in merges], ignore_merges=name in WHOLE))
    splits = [pre_tokenizers.Split(Regex(e), "isolated") for e in KINDS[name]]
    t.pre_tokenizer = pre_tokenizers.Sequence(splits + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    if name in COMPOSED:
        t.normalizer = normalizers.NFC()
    return t


def check_named(ids, texts, model):
    """Checks that the rules with names in tokenizer.json split texts in the same way. No GGUF file names the kind
    "digits"."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    for name, first in (("gpt-2", []), ("smollm", [pre_tokenizers.Digits(individual_digits=True)]), ("digits", [pre_tokenizers.Digits()])):
        t = tokenizer("gpt-2", model["vocab"], model["merges"])
        t.pre_tokenizer = pre_tokenizers.Sequence(first + [level])
        made = [e.ids for e in t.encode_batch(texts)]
        assert ids.setdefault(name, made) == made, name


def main():
    texts = TEXTS + random_texts(22)
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=1100, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    t.train_from_iterator(texts + random_texts(200), trainer)
    model = json.loads(t.to_str())["model"]
    for text in UNREACHED:
        assert text not in model["vocab"]
        model["vocab"][text] = len(model["vocab"])
    ids = {n: k if isinstance(k, str) else [e.ids for e in tokenizer(n, model["vocab"], model["merges"]).encode_batch(texts)] for n, k in KINDS.items()}
    check_named(ids, texts, model)
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    with open(os.path.join(HERE, "pre_tokenizers.json"), "w") as f:
        json.dump({"tokens": tokens, "merges": model["merges"], "texts": texts, "ids": ids}, f, ensure_ascii=True, separators=(",", ":"))


if __name__ == "__main__":
    main()
