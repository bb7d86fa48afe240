"""Finds the texts that are nearest to a query, by the cosine of their embeddings.

An embedding has length 1, so the cosine of two is the sum of their products.

    python search.py MODEL "QUERY" [TEXT...]
"""

from __future__ import annotations

import sys

import forerun

TEXTS = [
    "Rain forms when water vapour condenses into drops.",
    "The cat sleeps on the warm roof.",
    "Clouds carry water over the land.",
    "Interest rates were raised by a quarter of a percent.",
]


def cosine(one: memoryview[float], other: memoryview[float]) -> float:
    """Returns the cosine of two vectors of length 1, each [hidden] float32."""
    return sum(a * b for a, b in zip(one, other))


def main(path: str, query: str, texts: list[str]) -> None:
    model = forerun.Model(path)
    with forerun.Session(model, context=512) as session:
        asked = session.embed(query)
        found = sorted(((cosine(asked, session.embed(text)), text) for text in texts), reverse=True)
    for nearness, text in found:
        print(f"{nearness:.3f}  {text}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3:] or TEXTS)
