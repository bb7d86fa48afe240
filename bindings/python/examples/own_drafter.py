"""A draft method of one's own: drafts the rest of a document whose sentences come back in the answer.

The text is the same with and without it, which the example checks.

    python own_drafter.py MODEL
"""

from __future__ import annotations

import sys

import forerun

DOCUMENT = """\
def area(width, height):
    return width * height

def perimeter(width, height):
    return 2 * (width + height)
"""


class FromDocument:
    """Drafts what comes next in a document after the last ids of the text."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids
        self.accepted = 0

    def propose(self, drafting: forerun.Drafting) -> list[int]:
        last = list(drafting.ids[-3:])
        for at in range(len(self.ids) - 3):
            if self.ids[at : at + 3] == last:
                return self.ids[at + 3 : at + 3 + drafting.count]
        return []

    def commit(self, ids: memoryview, proposed: int, accepted: int) -> None:
        self.accepted += accepted


def main(path: str) -> None:
    model = forerun.Model(path)
    question = "Repeat this code, but call the height `depth` everywhere:\n\n" + DOCUMENT
    prompt = model.tokenizer.render([{"role": "user", "content": question}])
    method = FromDocument(model.tokenizer.encode(DOCUMENT, add_special=False))
    with forerun.Session(model) as plain, forerun.Session(model, draft_max=7) as drafting:
        expected = plain.generate(prompt, max_tokens=120)
        drafting.draft_with(method.propose, method.commit)
        found = drafting.generate(prompt, max_tokens=120)
        print(found.text)
        print(f"{method.accepted} of {len(found.ids)} ids were drafts", file=sys.stderr)
        calls = plain.statistics.target_calls, drafting.statistics.target_calls
        print(f"{calls[0]} forwards without drafts, {calls[1]} with them", file=sys.stderr)
        if found.ids != expected.ids:
            sys.exit("the texts differ, which must never happen")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
