#!/usr/bin/env python3
"""corpus.py OUT [LINES]: makes a file of real text lines, all different, for comparing tokenizers (default: 100,000).

In: Debian's manual pages in many languages, downloaded beside OUT; sources of this checkout and of Python's library.
Out: a file of UTF-8 text. A line ends with a line feed. It has no other line feed and no NUL, but may have any other
character. 4 of 10 lines are from manual pages, 4 from sources, and 2 are made: emoji with their joiners, digits,
control characters, all kinds of blanks, letters with separate marks, words of several scripts. The same packages give
the same file.
"""
import gzip
import io
import os
import random
import subprocess
import sys
import sysconfig
import tarfile
import unicodedata
from pathlib import Path

LANGUAGES = ("de fr es it pl ru uk sr cs el da sv nl pt-br ro hu fi vi id tr ja zh").split()
SHARES = {"pages": 0.4, "sources": 0.4, "made": 0.2}
LONGEST = 2000  # characters of a line, at most


def download(folder):
    """Downloads the packages of manual pages that are still missing."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"manpages-{language}" for language in LANGUAGES]
    missing = [name for name in names if not list(folder.glob(f"{name}_*.deb"))]
    if missing: subprocess.run(["apt-get", "download", "-qq", *missing], cwd=folder, check=True)
    return [next(folder.glob(f"{name}_*.deb")) for name in names]


def lines_of(data):
    for line in data.decode("utf-8", "ignore").split("\n"):
        line = line.replace("\0", "")[:LONGEST]
        if line.strip(): yield line


def of_pages(packages):
    for package in packages:
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
            for member in archive:
                if not member.isfile() or not member.name.endswith(".gz"): continue
                yield from lines_of(gzip.decompress(archive.extractfile(member).read()))


def of_sources():
    top = Path(__file__).resolve().parents[2]
    here = [path for suffix in ("c", "h", "py", "md", "sh") for path in top.glob(f"[!.]*/**/*.{suffix}")]
    here = [path for path in here if "build" not in path.parts]
    library = Path(sysconfig.get_path("stdlib")).glob("*/*.py")
    for path in sorted(here) + sorted(library): yield from lines_of(path.read_bytes())


# ---------------------------------------------------------------------------------------------------------- made lines

EMOJI = [chr(c) for c in [*range(0x1f300, 0x1f650), *range(0x1f680, 0x1f6d8), *range(0x1f900, 0x1f9ff), 0x2764, 0x2600]]
TONES = [chr(c) for c in range(0x1f3fb, 0x1f400)]
BLANKS = list(" \t\r\u00a0\u2003\u2009\u200b\u3000\u2028\x85\x0b\x0c")
CONTROLS = [chr(c) for c in [*range(1, 10), *range(11, 32), *range(127, 160), 0xad, 0x200c, 0x200d, 0x200e, 0xfeff]]
SCRIPTS = [(0x41, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x531, 0x586), (0x5d0, 0x5ea), (0x620, 0x64a),
           (0x904, 0x939), (0xe01, 0xe2e), (0x10d0, 0x10f0), (0x1200, 0x1240), (0x3041, 0x3096), (0x30a1, 0x30fa),
           (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1d400, 0x1d454), (0x20000, 0x20100)]
MARKS = [chr(c) for c in range(0x300, 0x330)]
NUMERALS = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) in ("Nd", "Nl", "No")]


def word(rnd):
    first, last = rnd.choice(SCRIPTS)
    letters = [chr(rnd.randint(first, last)) for _ in range(rnd.randint(1, 9))]
    if rnd.random() < 0.2: letters.insert(rnd.randint(1, len(letters)), rnd.choice(MARKS))
    return "".join(letters)


def emoji(rnd):
    made_of = [rnd.choice(EMOJI)]
    if rnd.random() < 0.3: made_of.append(rnd.choice(TONES))
    if rnd.random() < 0.2: made_of.append("\ufe0f")
    if rnd.random() < 0.2: made_of += ["\u200d", rnd.choice(EMOJI)]
    return "".join(made_of)


def number(rnd):
    plain = str(rnd.randrange(10 ** rnd.randint(1, 14)))
    return rnd.choice([plain, f"{int(plain):,}", f"{int(plain) / 1e3:.3f}", f"-{plain}", f"0x{int(plain):X}",
                       "".join(rnd.choices(NUMERALS, k=rnd.randint(1, 5))), f"{plain}km/h", f"1e-{plain[:2]}"])


MARKUP = ["don't", "I'LL", "we've", "it's", "l'été", "'S", "<|im_end|", "</s", "```", "==", "->", "{}"]
PIECES = {word: 4, emoji: 2, number: 3, lambda rnd: rnd.choice(CONTROLS): 1, lambda rnd: rnd.choice("'!?.,;()_/|@#"): 2,
          lambda rnd: rnd.choice(MARKUP): 1}


def made(rnd):
    pieces = []
    for _ in range(rnd.randint(1, 14)):
        pieces.append(rnd.choices(list(PIECES), list(PIECES.values()))[0](rnd))
        between = ["", " ", "".join(rnd.choices(BLANKS, k=rnd.randint(1, 6)))]
        pieces.append(rnd.choices(between, [3, 6, 2])[0])
    return "".join(pieces)


# ------------------------------------------------------------------------------------------------------------- the file

def main(out, count=100000):
    rnd, out, count = random.Random(11), Path(out), int(count)
    kinds = {"pages": of_pages(download(out.parent / "manpages")), "sources": of_sources()}
    lines = []
    for kind, found in kinds.items():
        different = list(dict.fromkeys(found))
        lines += rnd.sample(different, min(len(different), int(count * SHARES[kind])))
    seen = set(lines)
    while len(lines) < count:
        line = made(rnd)
        if line and line not in seen: lines.append(line)
        seen.add(line)
    rnd.shuffle(lines)
    text = "".join(line + "\n" for line in lines).encode("utf-8", "ignore")
    part = out.with_name(out.name + ".part")
    part.write_bytes(text)
    os.replace(part, out)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3: sys.exit(__doc__)
    main(*sys.argv[1:])
