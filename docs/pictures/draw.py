#!/usr/bin/env python3
"""Draws README's pictures: drafts.svg from drafts.txt, speed.svg from speed.csv. Python's standard library alone.

usage: docs/pictures/draw.py

drafts.txt is what `forerun chat --color` wrote to a terminal, the colour of accepted drafts as the brackets U+27E8 and
U+27E9; speed.csv has tokens a second, a text a line, from bench/results.
"""
import csv
import pathlib
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
OPEN, CLOSE = "\u27e8", "\u27e9"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
COLUMNS, LINE, LETTER = 92, 20, 8.2


def styled(text):
    """Lines of at most COLUMNS characters, broken at blanks, each a list of [accepted, text]."""
    lines, accepted = [[]], False
    for char in text.rstrip("\n"):
        if char in (OPEN, CLOSE):
            accepted = char == OPEN
            continue
        if char == "\n":
            lines.append([])
            continue
        lines[-1].append((char, accepted))
    for line in lines:
        while len(line) > COLUMNS:
            cut = max((i for i in range(COLUMNS) if line[i][0] == " "), default=COLUMNS)
            yield line[:cut]
            line = line[cut + 1:]
        yield line


def spans(line):
    """The characters of a line as SVG, those of accepted drafts in their colour."""
    out, at = "", 0
    while at < len(line):
        end = at
        while end < len(line) and line[end][1] == line[at][1]:
            end += 1
        piece = escape("".join(char for char, _ in line[at:end]))
        out += f'<tspan class="{"kept" if line[at][1] else "own"}">{piece}</tspan>'
        at = end
    return out


def terminal():
    lines = list(styled((HERE / "drafts.txt").read_text()))
    width, height = COLUMNS * LETTER + 48, len(lines) * LINE + 96
    body = "".join(f'<text x="24" y="{84 + i * LINE}" xml:space="preserve">{spans(line)}</text>'
                   for i, line in enumerate(lines))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img"
 aria-label="A terminal: most of the words are drafts that the model accepted, shown in green.">
<style>text {{ font: 13.6px {MONO}; }} .own {{ fill: #e8e6e1; }} .kept {{ fill: #5ee39b; }} .soft {{ fill: #a3a09a; }}
</style>
<rect width="100%" height="100%" rx="10" fill="#1d1d1b"/>
<circle cx="24" cy="22" r="6" fill="#57544e"/><circle cx="44" cy="22" r="6" fill="#57544e"/>
<circle cx="64" cy="22" r="6" fill="#57544e"/>
<text x="24" y="56" class="soft">green: guessed ahead and accepted &#8212; 4.56 tokens for each pass of the model</text>
{body}
</svg>
"""


def chart():
    rows = list(csv.reader((HERE / "speed.csv").open()))
    names, rows = rows[0][1:], rows[1:]
    colours = ["#c9c4ba", "#a49d8f", "#7cc7bd", "#0f766e"]
    bar, gap, left, scale = 9, 14, 74, 8.6
    group = 4 * bar + gap
    height, width = len(rows) * group + 118, 760
    out = []
    for i, row in enumerate(rows):
        top = 58 + i * group
        out.append(f'<text x="{left - 10}" y="{top + 2 * bar + 4}" text-anchor="end">{escape(row[0])}</text>')
        for k, value in enumerate(float(v) for v in row[1:]):
            y = top + k * bar
            out.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{bar - 1}" fill="{colours[k]}"/>')
            if k in (1, 3):
                out.append(f'<text x="{left + value * scale + 6:.1f}" y="{y + 8}" class="small">{value:g}</text>')
    legend, x = "", left
    for colour, name in zip(colours, names):
        legend += f'<rect x="{x}" y="16" width="11" height="11" fill="{colour}"/>' \
                  f'<text x="{x + 16}" y="26" class="small">{escape(name)}</text>'
        x += 44 + 6 * len(name)
    foot = height - 24
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
 aria-label="Tokens a second of llama.cpp and forerun, with and without drafts, for eight kinds of text.">
<style>text {{ font: 13px {SANS}; fill: #2a2925; }} .small {{ font-size: 11px; }} .soft {{ fill: #6b6860; }}</style>
<rect width="100%" height="100%" fill="#fbfaf8"/>
{legend}
{"".join(out)}
<text x="{left}" y="{foot}" class="small soft">tokens a second: Qwen2.5-Coder 1.5B Q4_K_M, the 0.5B drafts; two cores
 of a Xeon; the same files and prompts</text>
</svg>
"""


(HERE / "drafts.svg").write_text(terminal())
(HERE / "speed.svg").write_text(chart())
