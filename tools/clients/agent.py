#!/usr/bin/env python3
"""agent.py: runs an agent with three tools many times, with OpenAI's agents framework over /v1/responses.

In: --url URL of a server, or --command that starts one, with {port} in it; --runs N, --at-once N, --api
responses|chat. Out: the number of runs that came to an end, the number of calls, and the calls that did not follow
their tools' schemas. The exit status is 1 if a run did not end or a call was not well-formed. A run answers one
question. Its first answer must be a call; after that the model is free to call or not.
"""
import argparse
import asyncio
import json
import os
import sys
import time
from typing import Literal

import jsonschema
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from agents import set_tracing_disabled
from agents.exceptions import AgentsException
from openai import AsyncOpenAI

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server import Server  # noqa: E402

CITIES = ["Rome", "Oslo", "Paris", "Lima", "Cairo", "Kyoto", "Quito", "Delhi", "Turin", "Perth"]
SKIES = ["sun", "snow", "rain", "clouds", "fog"]
INSTRUCTIONS = "You help with short questions. Call a tool where one helps, then answer in one sentence."


@function_tool
def get_weather(city: str, unit: Literal["C", "F"]) -> str:
    """The weather in a city right now.

    Args:
        city: Its name.
        unit: Of the temperature.
    """
    return json.dumps({"city": city, "sky": SKIES[len(city) % 5], "temperature": len(city) * 3, "unit": unit})


@function_tool
def add(a: int, b: int) -> str:
    """The sum of two whole numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return str(a + b)


@function_tool
def find_notes(words: list[str], most: int) -> str:
    """Notes that have all of some words in them.

    Args:
        words: That are looked for.
        most: How many notes at most.
    """
    return json.dumps([f"a note of {' and '.join(words)}"][:max(0, most)])


TOOLS = [get_weather, add, find_notes]


def question(number):
    city, other = CITIES[number % 10], CITIES[(number * 3 + 1) % 10]
    return [f"What is the weather in {city}, in degrees C?", f"What is {number * 37 + 5} plus {number * 11 + 8}?",
            f"Find at most 3 notes about {city} and trains.", f"Is it warmer in {city} or in {other}? Use F.",
            f"Find one note about {other}."][number % 5]


async def run(model, number, turns):
    """Runs the agent once. Returns (it ended, its calls, their faults, its text or the reason why it did not end)."""
    settings = ModelSettings(temperature=0.7, max_tokens=256, tool_choice="required", parallel_tool_calls=False,
                             extra_body={"seed": number})
    agent = Agent(name="helper", instructions=INSTRUCTIONS, tools=TOOLS, model=model, model_settings=settings)
    try:
        result = await Runner.run(agent, question(number), max_turns=turns)
        items, said, ended = result.new_items, str(result.final_output), True
    except AgentsException as error:
        items = error.run_data.new_items if error.run_data else []
        said, ended = f"{type(error).__name__}: {error}", False
    calls = [item.raw_item for item in items if item.type == "tool_call_item"]
    return ended, len(calls), [fault for call in calls if (fault := fault_of(call))], said


def fault_of(call):
    """Returns the reason why a call is not well-formed; None if it is."""
    schemas = {tool.name: tool.params_json_schema for tool in TOOLS}
    if call.name not in schemas: return f"no tool {call.name}"
    try:
        jsonschema.validate(json.loads(call.arguments), schemas[call.name])
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{call.name}({call.arguments[:200]}): {str(error).splitlines()[0]}"
    return None


async def ask(url, args):
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url + "/v1", api_key="none", timeout=3600, max_retries=0)
    name = (await client.models.list()).data[0].id
    kind = OpenAIResponsesModel if args.api == "responses" else OpenAIChatCompletionsModel
    model, places = kind(name, openai_client=client), asyncio.Semaphore(args.at_once)
    totals, begin = {"ended": 0, "calls": 0, "called": 0, "faults": 0}, time.monotonic()

    async def one(number):
        async with places:
            ended, calls, faults, said = await run(model, number, args.turns)
        totals["ended"] += ended
        totals["calls"] += calls
        totals["called"] += calls > 0
        totals["faults"] += len(faults)
        for fault in faults: print(f"run {number}: {fault}", flush=True)
        if args.verbose or not ended: print(f"run {number}: {calls} calls; {said[:300]!r}", flush=True)

    await asyncio.gather(*(one(number) for number in range(args.runs)))
    print(f"{args.runs} runs over {args.api}: {totals['ended']} ended, {totals['called']} called, {totals['calls']} "
          f"calls, {totals['faults']} of them not well-formed; {time.monotonic() - begin:.0f} s")
    return int(totals["ended"] < args.runs or totals["faults"] > 0 or totals["called"] < args.runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url")
    where.add_argument("--command", help="of a server, with {port} where its port goes")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--turns", type=int, default=8, help="of a run at most")
    parser.add_argument("--api", choices=["responses", "chat"], default="responses")
    parser.add_argument("--verbose", action="store_true", help="what each run said")
    args = parser.parse_args()
    with Server(url=args.url.rstrip("/").removesuffix("/v1")) if args.url else Server(args.command) as server:
        return asyncio.run(ask(server.url, args))


if __name__ == "__main__":
    sys.exit(main())
