"""Classifies the rows of a table, many at a time. Answers follow a grammar, so each is one of the labels.

The table is read by pandas if it is there, else by the csv module.

    python batch.py MODEL [TABLE.csv COLUMN]
"""

from __future__ import annotations

import csv
import sys

import forerun

LABELS = ("positive", "negative")
TEXTS = ["I love it.", "It broke after a day.", "The best film of the year!", "What a waste of money."]


def read_column(path: str, column: str) -> list[str]:
    """Returns a column of a table as texts."""
    try:
        import pandas
    except ImportError:
        with open(path, newline="", encoding="utf-8") as file:
            return [row[column] for row in csv.DictReader(file)]
    return [str(value) for value in pandas.read_csv(path)[column]]


def write_columns(columns: dict[str, list[str]]) -> None:
    """Writes a table to standard output."""
    try:
        import pandas
    except ImportError:
        writer = csv.writer(sys.stdout)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values()))
        return
    pandas.DataFrame(columns).to_csv(sys.stdout, index=False)


def main(path: str, texts: list[str]) -> None:
    model = forerun.Model(path)
    grammar = forerun.Grammar.regex(model, "|".join(LABELS))
    question = "Is this review positive or negative? Answer with one word.\n\n"
    prompts = [model.tokenizer.render([{"role": "user", "content": question + text}]) for text in texts]
    with forerun.Engine(model, sessions=8, context=1024) as engine:
        answers = engine.generate(prompts, max_tokens=8, grammar=grammar)
    write_columns({"text": texts, "label": [answer.text for answer in answers]})


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    main(sys.argv[1], read_column(sys.argv[2], sys.argv[3]) if len(sys.argv) == 4 else TEXTS)
