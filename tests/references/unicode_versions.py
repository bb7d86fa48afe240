"""Writes base/unicode_versions.c: the characters for which the libraries in Hugging Face's tokenizers (0.23.3) differ
from Unicode 14.

    unicode_versions.py        needs tokenizers and sentencepiece, and a Python whose unicodedata has Unicode 14 (3.11)

The package is asked about each character. Its parts have several versions of Unicode: Oniguruma, which finds patterns,
has 16; Rust's own tables, which classify and lower characters, have 17; the normalizers have 8 and 9."""

import os, unicodedata
from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizer_styles import charsmap

assert unicodedata.unidata_version == "14.0.0"
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, CODES))
CATEGORY = {c: unicodedata.category(chr(c)) for c in CODES}
FLAGS = [
    "NEW_WORD",
    "NEW_NUMBER",
    "NO_MARK",
    "MARK",
    "NO_NONSPACING",
    "NONSPACING",
    "NO_PUNCTUATION",
    "PUNCTUATION",
    "NO_CONTROL",
    "NO_DECOMPOSITION",
    "NO_CLASS",
    "NEW_JOINING",
]


def of(*categories):
    return {c for c in CODES if CATEGORY[c] in categories}


def kept(pattern):
    return {ord(c) for c in normalizers.Replace(Regex(pattern), "").normalize_str(ALL)}


def runs(values):
    """Returns {code: value} as [first, last, value], with neighbours of the same value joined."""
    out = []
    for code in sorted(values):
        if out and out[-1][1] == code - 1 and out[-1][2] == values[code]:
            out[-1][1] = code
        else:
            out.append([code, code, values[code]])
    return out


def newer():
    """Returns the codes for which Oniguruma has another category than Unicode 14. Each has a character that is in that
    category in Unicode 14 and has the same number of bytes."""
    han, out = kept(r"\P{Han}"), {}
    for category in sorted(set(CATEGORY.values()) - {"Cn", "Cs"}):
        for code in kept(rf"\P{{{category}}}"):
            if CATEGORY[code] == category:
                continue
            low, high = (0x800, 0x10000) if code < 0x10000 else (0x10000, 0x110000)
            out[code] = next(
                c
                for c in range(low, high)
                if CATEGORY.get(c) == category and (c in han) == (code in han) and unicodedata.combining(chr(c)) == 0
            )
    return out


def flags(late):
    now = {**CATEGORY, **{c: CATEGORY[older] for c, older in late.items()}}
    out = {}

    def add(flag, codes):
        for code in codes:
            out.setdefault(code, set()).add(flag)

    def compare(name, got, wanted):
        add("NO_" + name, wanted - got - set(late))
        add(name, got - wanted)

    word = set()
    for text, _ in pre_tokenizers.Whitespace().pre_tokenize_str(" ".join("a" + chr(c) for c in CODES)):
        word |= {ord(text[1])} if len(text) == 2 else set()
    circled = (
        set(range(0x24B6, 0x24EA))
        | set(range(0x1F130, 0x1F14A))
        | set(range(0x1F150, 0x1F16A))
        | set(range(0x1F170, 0x1F18A))
    )
    add(
        "NEW_WORD",
        word - circled - {0x200C, 0x200D} - {c for c in CODES if now[c][0] in "LM" or now[c] in ("Nd", "Nl", "Pc")},
    )
    number = {
        ord(t) for t, _ in pre_tokenizers.Digits(False).pre_tokenize_str("a".join(ALL)) if len(t) == 1 and t != "a"
    }
    add("NEW_NUMBER", number - {c for c in CODES if now[c][0] == "N"})
    whole = set(CODES)
    compare("MARK", whole - {ord(c) for c in normalizers.StripAccents().normalize_str(ALL)}, of("Mn", "Mc", "Me"))
    strip = normalizers.BertNormalizer(
        clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False
    )
    compare("NONSPACING", {c for c in CODES if strip.normalize_str(chr(c)) == ""}, of("Mn"))
    left = {ord(c) for t, _ in pre_tokenizers.Punctuation("removed").pre_tokenize_str(ALL) for c in t}
    compare("PUNCTUATION", whole - left, of("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po") | set(b"$+<=>^`|~"))
    clean = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False
    )
    add("NO_CONTROL", {ord(c) for c in clean.normalize_str(ALL)} & of("Cc", "Cf", "Co"))
    add(
        "NO_DECOMPOSITION",
        {c for c in CODES if unicodedata.normalize("NFKD", chr(c)) != normalizers.NFKD().normalize_str(chr(c))},
    )
    orders = lambda c: [f"a\u0301{chr(c)}", f"a{chr(c)}\u0323", f"a{chr(c)}\u0301\u0334", f"a\u3099{chr(c)}"]
    decompose = normalizers.NFD().normalize_str
    add(
        "NO_CLASS",
        {
            c
            for c in CODES
            if unicodedata.combining(chr(c))
            and any(decompose(t) != unicodedata.normalize("NFD", t) for t in orders(c))
        },
    )
    joins = normalizers.Precompiled(
        charsmap({"x": "y"})
    ).normalize_str  # if the map has the beginning of a grapheme, the whole grapheme becomes its target
    add("NEW_JOINING", {c for c in CODES if c and CATEGORY[c] == "Cn" and joins("x" + chr(c)) == "y"})
    return {code: " | ".join(f for f in FLAGS if f in names) for code, names in out.items()}


def lowers():
    lower = normalizers.Lowercase().normalize_str
    changed = {c: ord(lower(chr(c))) for c in CODES if lower(chr(c)) != chr(c).lower() and len(lower(chr(c))) == 1}
    return runs({c: small - c for c, small in changed.items()})


def rows(name, kind, values, show):
    lines, line = [], "   "
    for first, last, value in values:
        row = f" {{0x{first:X}, 0x{last:X}, {show(value)}}},"
        if len(line + row) > 118:
            lines.append(line)
            line = "   "
        line += row
    return f"static const {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def main():
    late = newer()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../base/unicode_versions.c")
    with open(path) as f:
        before, behind = f.read().split("/* made by tests/references/unicode_versions.py */\n")[::2]
    tables = [
        rows("newer", "newer_range", runs(late), lambda v: f"0x{v:X}"),
        rows("changes", "changed_range", runs(flags(late)), lambda v: v),
        rows("lowers", "lower_range", lowers(), str),
    ]
    mark = "/* made by tests/references/unicode_versions.py */\n"
    with open(path, "w") as f:
        f.write(before + mark + "\n" + "\n".join(tables) + "\n" + mark + behind)


if __name__ == "__main__":
    main()
