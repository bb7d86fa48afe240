"""A chat in the terminal. What a turn shares with those before is not run again, and drafts come from the text so far.

    python chat.py MODEL [DRAFTER]
"""

from __future__ import annotations

import sys

import forerun


def main(path: str, drafter_path: str | None) -> None:
    model = forerun.Model(path)
    drafter = forerun.Drafter(model, drafter_path) if drafter_path else None
    methods = {} if drafter else {"spec_type": "ngram"}
    session = forerun.Session(model, drafter, temperature=0.7, top_p=0.95, seed=1, **methods)  # type: ignore[arg-type]
    messages: list[forerun.Message] = []
    while question := next(sys.stdin, ""):
        messages.append({"role": "user", "content": question.strip()})
        parts = session.chat_stream(messages, max_tokens=512)
        try:
            while True:
                part = next(parts)
                if part.kind == "content":
                    print(part.text, end="", flush=True)
        except StopIteration as end:
            messages.append(end.value.message)
        except KeyboardInterrupt:
            messages.pop()  # Ctrl-C ends the answer, and the question is forgotten with it
        print()
    figures = session.statistics
    counts = f"{figures.generated_tokens} tokens, {figures.accepted} of {figures.drafted} drafts accepted"
    print(counts, file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)
