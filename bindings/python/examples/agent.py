"""An agent: the model calls functions until it can answer. Arguments follow the functions' schemas.

    python agent.py MODEL ["QUESTION"]
"""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any, Callable

import forerun

PEOPLE = {"Ada": "1815-12-10", "Grace": "1906-12-09", "Alan": "1912-06-23"}


def birthday(name: str) -> str:
    """Returns the day on which a person was born."""
    return PEOPLE.get(name.split()[0], "not known")


def days_between(first: str, second: str) -> int:
    """Returns the number of days from one day to another, both as YYYY-MM-DD."""
    return (datetime.date.fromisoformat(second) - datetime.date.fromisoformat(first)).days


FUNCTIONS: dict[str, Callable[..., Any]] = {"birthday": birthday, "days_between": days_between}


def described(function: Callable[..., Any]) -> forerun.Tool:
    """Describes a function, all of whose arguments are texts, as a tool."""
    names = [name for name in function.__annotations__ if name != "return"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    return {
        "type": "function",
        "function": {"name": function.__name__, "description": function.__doc__, "parameters": schema},
    }


def main(path: str, question: str) -> None:
    model = forerun.Model(path)
    session = forerun.Session(model, spec_type="ngram")
    tools = [described(function) for function in FUNCTIONS.values()]
    messages: list[forerun.Message] = [{"role": "user", "content": question}]
    for turn in range(6):
        # The first turn must look something up; later ones decide for themselves.
        reply = session.chat(messages, tools, "required" if turn == 0 else "auto", max_tokens=300)
        messages.append(reply.message)
        if not reply.calls:
            print(reply.content)
            return
        for call in reply.calls:
            try:
                result = FUNCTIONS[call.name](**call.arguments)
            except (KeyError, TypeError, ValueError) as failure:
                result = f"error: {failure}"
            print(f"{call.name}({json.dumps(call.arguments)}) = {result}", file=sys.stderr)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    print("no answer after six turns", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "When was Ada born?")
