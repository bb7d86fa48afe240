"""Writes the expected results for tests/language/grammar/test_grammar.c:

  regexes.json     which texts Python's re matches as a whole
  patterns.json    in which texts re finds a match of patterns with lookaround, as schemas' patterns do
  properties.json  in which texts the package regex (2026.11.19) finds Unicode properties
  integers.json    which integers the package jsonschema (4.26.0) accepts, around bounds beyond 64 bits

In: nothing. Out: [expression or schema, [[text, matches], ...]] for the expressions below, and texts made of pieces of
these."""
import json
import random
import re
from pathlib import Path

import jsonschema
import regex

EXPRESSIONS = [
    r"abc", r"a|bc|", r"(ab|a)(bc|c)", r"[a-c]+x?", r"[^a-c]{2,3}", r"\d{3}-\d{4}", r"\w+@\w+\.(com|org)",
    r"\s*\S+\s*", r"(a*)*b", r"(?:x|y){2,}z", r"a{0}b", r"^(yes|no)$", r"[\w.-]+", r"[\]\-^]+", r"\$\{[a-z]+\}",
    r"(?P<y>\d{4})-(0[1-9]|1[0-2])", r".{2}", r"\.\*\\", r"a.c", r"[äöü]ß?", r"[^\n]*\n", r"\x41\u00e9", r"a+?b*?",
    r"((a|b)(c|d)){1,2}", r"x{2,4}y{3}", r"[\d\s]+", r"[^\w]+", r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", r"{a}", r"[a\-z]",
]
MAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
LOOKING = [
    MAIL, r"^(?=.*[A-Z])(?=.*\d)(?=.*[a-z]).{5,64}$", r"^(?!.*--)(?!-)[a-z-]+(?<!-)$", r"^(?:(?!ab).)*$", r"a(?=b)b?c",
    r"a(?!b).", r"(?<=x)a|(?<!x)b$", r"\bab\b", r"^\Ba|b\B.", r"(^|-)a($|-)", r"^(?=.{2,4}$)a*b*$", r"(?i:aBc)[a-c]",
    r"(?i)^x(?-i:y)z$", r"^((?=a.)[a-c]|(?!a)[a-z]){3}$", r"^(?!(?:a|b(?=c)))[a-z]+$", r"(?=a)(?!ab)(?=.c)", r"^(?!$)",
    r"^(?=.{1,253}$)(?!-)[a-zA-Z0-9-]{1,63}(?<!-)(\.(?!-)[a-zA-Z0-9-]{1,63}(?<!-))*$",
    r"^(a|b(?!a)){2,}$", r"(?P<n>a)(?=$)", r"^(?s:a.b)$", r"^(?![\s\S])|^ab",
]
NAMES = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "LC", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf",
         "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "C", "Cc", "Cf", "Letter",
         "Uppercase_Letter", "General_Category=Nd", "gc=Lu", "Script=Latin", "sc=Grek", "Script=Cyrillic", "Script=Han",
         "Script=Hiragana", "Script=Katakana", "Script=Hangul", "Script=Arabic", "Script=Hebrew", "Script=Thai",
         "Script=Devanagari", "Greek", "Han", "scx=Hira", "Script_Extensions=Deva", "Alphabetic", "Uppercase",
         "Lowercase", "White_Space", "Emoji", "Extended_Pictographic", "ASCII", "Any", "ID_Start"]
PROPERTIES = [rf"^[^\x00-\x1f]*\p{{{name}}}$" for name in NAMES] + [
    rf"^\P{{{name}}}$" for name in NAMES if name != "Any"] + [
    r"^\pL\PL\pN$", r"^[\p{L}\p{M}\p{Nd}_' -]+$", r"^[^\p{L}\P{Nd}x]+$", r"^[^\p{Lu}\s]{2,}$", r"^[\P{L}a]+$",
    r"^(?=.*\p{Lu})(?=.*\p{Nd})(?!.*\p{Zs}).{2,9}$", r"^(\p{Extended_Pictographic}|\p{Emoji_Component})+$",
    r"^\p{Lu}\p{Ll}+(?:[- ]\p{Lu}\p{Ll}+)*$", r"^[\u{1F600}-\u{1F64F}\u{61}]+$", r"^\uD83D\uDE42\u{5A}?$",
]
# one or two characters of each general category and script above; all of them are older than Unicode 14
LETTERS = "aZéÉßǅʰªאىあア한中Ωωяあ々अ\u0301ा\u20dd0٣Ⅷ½_-—)”“(,!€+^`©\u00a0 \u2028\u2029\u200d\ue000🙂🏽👩ー・𝒜𠀀"
BIG = 2**64
INTEGERS = [
    {"type": "integer", "minimum": 0, "maximum": BIG - 1}, {"type": "integer", "minimum": BIG - 1, "maximum": 3 * BIG},
    {"type": "integer", "minimum": -2**63, "maximum": 2**63 - 1}, {"type": "integer", "minimum": -2**63 - 1, "maximum": -1},
    {"type": "integer", "exclusiveMinimum": BIG, "exclusiveMaximum": BIG + 3},
    {"type": "integer", "minimum": -10**30, "maximum": 10**30}, {"type": "integer", "maximum": BIG, "minimum": 5},
    {"type": "number", "minimum": -BIG, "maximum": BIG}, {"type": "integer", "minimum": 1e19, "maximum": 1e20},
    {"const": BIG}, {"const": -BIG - 7}, {"enum": [1, BIG, -2**63 - 1]}, {"type": "integer", "enum": [BIG, "x", 2.5]},
    {"enum": [1, BIG, BIG + 1], "minimum": BIG}, {"enum": [7, BIG, BIG + 1], "exclusiveMaximum": BIG + 1},
    {"type": "integer", "minimum": BIG - 8, "maximum": BIG + 8, "not": {"enum": [BIG, BIG - 1]}},
    {"type": "integer", "minimum": BIG - 8, "maximum": BIG + 8, "not": {"const": BIG}},
    {"allOf": [{"minimum": BIG}, {"maximum": BIG + 2}], "type": "integer"}, {"enum": [BIG, 5], "type": "integer", "not": {"minimum": BIG}},
    {"type": "integer", "minimum": BIG, "maximum": BIG + 40, "multipleOf": 7}, {"type": "integer", "minimum": -BIG, "maximum": 0, "multipleOf": 25},
    {"type": "string", "maxLength": BIG, "enum": ["a"]},
]
PIECES = ["", "a", "b", "c", "d", "x", "y", "z", "1", "0", "9", "-", "_", ".", " ", "\t", "\n", "\\", "*", "@", "com", "org",
          "yes", "no", "555-1234", "2026-11", "me@site.org", "${name}", "ä", "ß", "é", "Aé", "]", "^", "-1.5e+3", "{a}", "🙂", "z"]


def main():
    random.seed(20261128)
    out = []
    for expression in EXPRESSIONS:
        ready = re.compile(expression, re.ASCII)
        texts = {"".join(random.choices(PIECES, k=random.randint(0, 4))) for _ in range(300)}
        texts |= {"".join(random.choices("abcxyz", k=random.randint(1, 6))) for _ in range(100)}
        yes = sorted(t for t in texts if ready.fullmatch(t))
        no = sorted(texts - set(yes))
        out.append([expression.replace("(?P<", "(?<"), 
                    [[t, True] for t in yes[:25]] + [[t, False] for t in random.sample(no, min(25, len(no)))]])
    write("regexes.json", out)
    out = []
    for expression in LOOKING:
        ready = re.compile(expression, re.ASCII)
        texts = {"".join(random.choices("abcxyzA1-.@ ", k=random.randint(0, 7))) for _ in range(900)}
        texts |= {"".join(random.choices("abcx-", k=random.randint(0, 4))) for _ in range(400)}
        texts |= {"a@b.ch", "First.Last+x@sub.example.org", ".a@b.ch", "a..b@b.ch", "Passw0rd", "a-b", "xaBcc", "XyZ"}
        yes = sorted(t for t in texts if ready.search(t))
        no = sorted(texts - set(yes))
        kept = random.sample(yes, min(25, len(yes))) + random.sample(no, min(25, len(no)))
        out.append([json.dumps({"type": "string", "pattern": expression}),
                    [[json.dumps(t), t in yes] for t in sorted(kept)]])
    write("patterns.json", out)
    out = []
    for expression in PROPERTIES:
        # ECMA 262's codes of characters and of surrogate pairs become the characters themselves
        own = re.sub(r"\\u\{([0-9A-F]+)\}", lambda m: chr(int(m[1], 16)), expression.replace(r"\uD83D\uDE42", "🙂"))
        ready = regex.compile(own, regex.V1)
        texts = set(LETTERS) | {"".join(random.choices(LETTERS, k=random.randint(2, 4))) for _ in range(900)}
        texts |= {"".join(random.choices("aZéÉ1٣ -中", k=random.randint(2, 6))) for _ in range(400)}
        texts |= {"Zoë", "Anna-Łucja Øst", "O'Neil", "👩\u200d🚀", "東京2020"}
        yes = sorted(t for t in texts if ready.search(t))
        no = sorted(texts - set(yes))
        kept = random.sample(yes, min(12, len(yes))) + random.sample(no, min(12, len(no)))
        out.append([json.dumps({"type": "string", "pattern": expression}),
                    [[json.dumps(t, ensure_ascii=False), t in yes] for t in sorted(kept)]])
    write("properties.json", out)
    write("integers.json", [[json.dumps(schema), sorted(judged(schema))] for schema in INTEGERS])


def judged(schema):
    """Returns integers near the schema's numbers and near powers. Very long ones are left out on a side without a
    bound, because forerun does not write them."""
    def numbers(value):
        if isinstance(value, dict):
            return [n for v in value.values() for n in numbers(v)]
        if isinstance(value, list):
            return [n for v in value for n in numbers(v)]
        return [int(value)] if isinstance(value, (int, float)) and not isinstance(value, bool) else []
    around = set(numbers(schema)) | {0, 7, 10**17, 2**63, 2**64, 10**19, 3 * 10**20}
    near = {s * n + d for n in around for d in (-11, -7, -1, 0, 1, 2, 10) for s in (1, -1)}
    bounded = [any(k in json.dumps(schema) for k in keys) for keys in (("inimum", "enum", "const"), ("aximum", "enum", "const"))]
    for n in near:
        if len(str(abs(n))) <= 18 or bounded[n > 0] and (n >= 0 or bounded[0]):
            yield [str(n), jsonschema.validators.validator_for(schema)(schema).is_valid(n)]


def write(name, cases):
    lines = ",\n".join(json.dumps(x, ensure_ascii=False) for x in cases)
    Path(__file__).with_name(name).write_text(f"[{lines}]\n")


main()
