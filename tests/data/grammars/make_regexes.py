"""Writes regexes.json: which texts Python's re matches as a whole, and patterns.json: in which ones it finds what looks
around, as schemas' patterns do, for tests/test_grammar.c.

In: nothing. Out: [expression or schema, [[text, matches], ...]] for expressions below, texts made of their own pieces."""
import json
import random
import re
from pathlib import Path

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


def write(name, cases):
    lines = ",\n".join(json.dumps(x, ensure_ascii=False) for x in cases)
    Path(__file__).with_name(name).write_text(f"[{lines}]\n")


main()
