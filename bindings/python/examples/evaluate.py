"""Runs tasks of lm-eval (pip install lm-eval==0.4.13) through its own interface, without a server.

    python evaluate.py MODEL [--include FOLDER] TASK[,TASK...] [LIMIT]

FOLDER has the YAML files of tasks of one's own; without it the tasks are those that lm-eval downloads. LIMIT: the
number of items of each task.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Optional

import forerun
import lm_eval
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager


class ForerunLM(LM):  # type: ignore[misc]
    """A model of forerun's as lm-eval asks one."""

    def __init__(self, path: str, context: int = 2048) -> None:
        super().__init__()
        self.model = forerun.Model(path)
        self.context = min(context, self.model.context_limit)
        self.session = forerun.Session(self.model, context=self.context, logprobs=1)

    def _score(self, before: list[int], after: list[int]) -> tuple[float, bool]:
        """Returns the log-probability of ids after others, and True if greedy decoding would give them."""
        ids = (before + after)[-self.context :]
        scored = self.session.score(ids)[-len(after) :]
        return sum(one.logprob for one in scored), all(one.best[0][0] == one.id for one in scored)

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Scores continuations of contexts."""
        tokenizer = self.model.tokenizer
        found = []
        for request in requests:
            context, continuation = request.args
            blanks = len(context) - len(context.rstrip())
            if blanks:  # a blank belongs to the token after it
                context, continuation = context[:-blanks], context[-blanks:] + continuation
            whole = tokenizer.encode(context + continuation)
            before = tokenizer.encode(context) if context else self._first()
            if not context and whole[:1] != before:
                whole = before + whole
            found.append(self._score(before, whole[len(before) :]))
        return found

    def _first(self) -> list[int]:
        """Returns the id that stands before a text."""
        tokenizer = self.model.tokenizer
        first = tokenizer.bos if tokenizer.bos is not None else tokenizer.eos
        return [first] if first is not None else []

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """Scores whole texts, in windows that each begin after the last one."""
        found = []
        for request in requests:
            ids = self.model.tokenizer.encode(request.args[0], add_special=False)
            total, room = 0.0, self.context - 1
            for at in range(0, len(ids), room):
                before = self._first() if at == 0 else ids[at - 1 : at]
                total += self._score(before, ids[at : at + room])[0]
            found.append(total)
        return found

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """Generates texts up to one of their stops."""
        found = []
        for request in requests:
            context, settings = request.args
            until = settings.get("until") or []
            limit = int(settings.get("max_gen_toks", 256))
            ids = self.model.tokenizer.encode(context)[limit - self.context :]
            stops = [until] if isinstance(until, str) else list(until)
            found.append(self.session.generate(ids, max_tokens=limit, stop=stops).text)
        return found


def main(path: str, tasks: list[str], include: Optional[str], limit: Optional[int]) -> None:
    manager = TaskManager(include_path=include, include_defaults=include is None)
    results = lm_eval.simple_evaluate(ForerunLM(path), tasks=tasks, limit=limit, task_manager=manager)
    print(json.dumps(results["results"], indent=2, default=str))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    folder = None
    if "--include" in arguments:
        at = arguments.index("--include")
        folder = arguments[at + 1]
        del arguments[at : at + 2]
    if len(arguments) not in (2, 3):
        sys.exit(__doc__)
    main(arguments[0], arguments[1].split(","), folder, int(arguments[2]) if len(arguments) == 3 else None)
