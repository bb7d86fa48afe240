#!/usr/bin/env python3
"""frameworks.py --forerun COMMAND MODEL | --url URL: runs agent and client frameworks against a server.

Each case imports its own client, and is skipped if that is not installed. No single environment has all clients,
because their pinned packages exclude each other (requirements*.txt). In: a model whose template supports tool calls, a
GGUF file or a folder; or a server that runs already. Out: a line for each case. The exit status is 1 if one failed.
"""
import argparse
import asyncio
import importlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server import Client, Server, free_port  # noqa: E402

CASES = []
QUESTION = "What is the weather in Paris right now?"


class Skip(Exception):
    pass


def case(name):
    def keep(function):
        CASES.append((name, function))
        return function
    return keep


def need(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Skip(f"{name} is not installed here: {error}") from error


class Target:
    def __init__(self, url):
        self.url = url
        self.model = Client(url).ask("GET", "/v1/models").json()["data"][0]["id"]


# ------------------------------------------------------------------------------------------------------------- ollama

@case("ollama: chat, generate, stream, tools, embeddings, models")
def ollama_client(target):
    ollama = need("ollama")
    client = ollama.Client(host=target.url)
    turns = [{"role": "user", "content": "Count from one to five."}]
    greedy = {"temperature": 0, "num_predict": 16}
    whole = client.chat(model=target.model, messages=turns, options=greedy)
    assert whole.message.content and whole.done and whole.eval_count <= 16
    parts = list(client.chat(model=target.model, messages=turns, options=greedy, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content and parts[-1].done
    text = client.generate(model=target.model, prompt="One, two,", raw=True, options=greedy)
    assert text.response and text.done
    assert target.model in [model.model.removesuffix(":latest") for model in client.list().models]
    assert "completion" in client.show(target.model).capabilities
    shaped = client.chat(model=target.model, messages=turns, options=greedy | {"num_predict": 64}, format={
        "type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 5}},
        "required": ["numbers"]})
    assert isinstance(json.loads(shaped.message.content)["numbers"], list)

    def get_weather(city: str) -> str:
        """The weather in a city right now.

        Args:
            city: Its name.
        """
        return f"hail in {city}"

    # ollama's interface can't force a call. If the model makes no call, one is given to it with a result, and the
    # answer must contain that result.
    answer = client.chat(model=target.model, messages=[{"role": "user", "content": QUESTION}], tools=[get_weather],
                         options={"temperature": 0, "num_predict": 64})
    assert answer.message.content or answer.message.tool_calls, answer.message
    called = [{"role": "user", "content": QUESTION},
              {"role": "assistant", "content": "",
               "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]},
              {"role": "tool", "tool_name": "get_weather",
               "content": json.dumps({"city": "Paris", "sky": "hail", "degrees": 17})}]
    answer = client.chat(model=target.model, messages=called, options={"temperature": 0, "num_predict": 64})
    assert "hail" in answer.message.content, answer.message


# --------------------------------------------------------------------------------------------------------- instructor

@case("instructor: objects by tools, by a JSON schema, in parts")
def instructor_client(target):
    instructor, openai, pydantic = need("instructor"), need("openai"), need("pydantic")

    class City(pydantic.BaseModel):
        name: str
        population: int
        coastal: bool

    api = openai.OpenAI(base_url=target.url + "/v1", api_key="none", max_retries=0)
    asked = {"model": target.model, "temperature": 0, "max_tokens": 200, "max_retries": 0,
             "messages": [{"role": "user", "content": "Oslo lies by the sea and has 700000 people."}]}
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS_STRICT):
        city = instructor.from_openai(api, mode=mode).chat.completions.create(response_model=City, **asked)
        assert isinstance(city.population, int) and city.name, f"{mode}: {city}"
    client = instructor.from_openai(api, mode=instructor.Mode.TOOLS)
    parts = list(client.chat.completions.create_partial(response_model=City, **asked))
    assert parts[-1].name and parts[-1].population is not None


# -------------------------------------------------------------------------------------------------------- pydantic-ai

@case("pydantic-ai: an output by a tool, a tool that is run")
def pydantic_ai_client(target):
    need("pydantic_ai")
    from pydantic import BaseModel
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Weather(BaseModel):
        """The weather, as the model's output."""
        city: str
        degrees: int

    model = OpenAIChatModel(target.model, provider=OpenAIProvider(base_url=target.url + "/v1", api_key="none"))
    settings = {"temperature": 0.0, "max_tokens": 128}
    found = Agent(model, output_type=Weather, model_settings=settings).run_sync("In Paris it is 17 degrees.").output
    assert "Paris" in found.city and found.degrees == 17, found

    # The output is a tool too, so each turn must call a tool. A model can't leave the call out, or only quote it.
    ran = []
    agent = Agent(model, output_type=Weather, model_settings=settings)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city right now."""
        ran.append(city)
        return "hail, 17 degrees"

    found = agent.run_sync(QUESTION).output
    assert ran and all("Paris" in city for city in ran), ran
    assert "Paris" in found.city and found.degrees == 17, found

    async def streamed():
        async with Agent(model, model_settings=settings).run_stream("Count to five.") as run:
            return [text async for text in run.stream_text(delta=True)]

    assert "".join(asyncio.run(streamed()))


# --------------------------------------------------------------------------------------------------------- smolagents

@case("smolagents: an agent that must call a tool")
def smolagents_client(target):
    smolagents = need("smolagents")

    @smolagents.tool
    def get_weather(city: str) -> str:
        """The weather in a city right now.

        Args:
            city: Its name.
        """
        return f"In {city} there is hail at 17 degrees."

    model = smolagents.OpenAIModel(model_id=target.model, api_base=target.url + "/v1", api_key="none", temperature=0,
                                   max_tokens=128)
    agent = smolagents.ToolCallingAgent(tools=[get_weather], model=model, max_steps=3, verbosity_level=0)
    assert agent.run(QUESTION) is not None
    steps = [step for step in agent.memory.steps if getattr(step, "tool_calls", None)]
    assert steps and all(call.name in ("get_weather", "final_answer") for step in steps for call in step.tool_calls)


# -------------------------------------------------------------------------------------------------------- llama-index

@case("llama-index: complete, chat, stream, an object")
def llama_index_client(target):
    need("llama_index.llms.openai_like")
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai_like import OpenAILike
    from pydantic import BaseModel

    class Weather(BaseModel):
        """The weather of a city."""
        city: str
        degrees: int

    model = OpenAILike(model=target.model, api_base=target.url + "/v1", api_key="none", is_chat_model=True,
                       is_function_calling_model=True, temperature=0, max_tokens=48, context_window=4096, max_retries=0)
    plain = OpenAILike(model=target.model, api_base=target.url + "/v1", api_key="none", is_chat_model=False,
                       temperature=0, max_tokens=12, context_window=4096, max_retries=0)
    assert plain.complete("One, two, three,").text
    turns = [ChatMessage(role="user", content="Count from one to five.")]
    whole = model.chat(turns).message.content
    assert whole and "".join(part.delta or "" for part in model.stream_chat(turns)) == whole

    def get_weather(city: str) -> str:
        """The weather in a city right now."""
        return f"hail in {city}"

    answer = model.chat_with_tools([FunctionTool.from_defaults(get_weather)], user_msg=QUESTION, tool_required=True)
    calls = model.get_tool_calls_from_response(answer)
    assert len(calls) == 1 and calls[0].tool_name == "get_weather" and "city" in calls[0].tool_kwargs
    found = model.as_structured_llm(Weather).complete("In Paris it is 17 degrees.").raw
    assert isinstance(found.degrees, int)


# ------------------------------------------------------------------------------------------------------------ litellm

@case("litellm: as OpenAI's, as a completion, as ollama's, as Anthropic's")
def litellm_client(target):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # prevents a download
    litellm = need("litellm")
    litellm.telemetry = False
    turns = [{"role": "user", "content": "Count from one to five."}]
    asked = {"messages": turns, "temperature": 0, "max_tokens": 16}
    whole = litellm.completion(model=f"openai/{target.model}", api_base=target.url + "/v1", api_key="none", **asked)
    text = whole.choices[0].message.content
    assert text and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    parts = litellm.completion(model=f"hosted_vllm/{target.model}", api_base=target.url + "/v1", api_key="none",
                               stream=True, **asked)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == text
    said = litellm.text_completion(model=f"text-completion-openai/{target.model}", api_base=target.url + "/v1",
                                   api_key="none", prompt="One, two, three,", max_tokens=8, temperature=0, logprobs=1)
    assert said.choices[0].text
    for model in (f"ollama_chat/{target.model}", f"anthropic/{target.model}"):
        answer = litellm.completion(model=model, api_base=target.url, api_key="none", **asked)
        assert answer.choices[0].message.content == text, f"{model}: {answer.choices[0].message.content!r}"


@case("litellm: as a proxy, asked by OpenAI's client")
def litellm_proxy(target):
    need("litellm")
    need("fastapi")
    openai = need("openai")
    command = Path(sys.executable).with_name("litellm")
    if not command.exists(): raise Skip("litellm's proxy is not installed here")
    port, key = free_port(), "sk-" + secrets.token_hex(32)  # without a key, or with a weak one, the proxy ends at once
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as log:
        config = Path(folder, "config.yaml")
        config.write_text(json.dumps({"model_list": [{"model_name": "ours", "litellm_params": {
            "model": f"openai/{target.model}", "api_base": target.url + "/v1", "api_key": "none"}}]}))
        proxy = subprocess.Popen([command, "--config", config, "--port", str(port), "--host", "127.0.0.1"], cwd=folder,
                                 stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 env={**os.environ, "LITELLM_MASTER_KEY": key, "LITELLM_TELEMETRY": "False",
                                      "LITELLM_LOCAL_MODEL_COST_MAP": "True"})
        try:
            wait_for_proxy(proxy, f"http://127.0.0.1:{port}", log)
            api = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0, timeout=600)
            asked = {"model": "ours", "messages": [{"role": "user", "content": "Count to five."}], "temperature": 0,
                     "max_tokens": 16}
            text = api.chat.completions.create(**asked).choices[0].message.content
            parts = [chunk.choices[0].delta.content or ""
                     for chunk in api.chat.completions.create(stream=True, **asked) if chunk.choices]
            assert text and "".join(parts) == text
        finally:
            proxy.terminate()
            proxy.wait(60)


def wait_for_proxy(proxy, url, log):
    """Waits for the proxy. Its imports take half a minute of processor time. On a busy machine this takes longer, so
    the limit is on processor time."""
    while proxy.poll() is None and seconds_of(proxy.pid) < 300:
        try:
            if Client(url, timeout=60).ask("GET", "/health/liveliness").status == 200: return
        except OSError:
            time.sleep(0.5)
    log.seek(0)
    raise AssertionError(f"the proxy did not start: {log.read()[-500:]}")


def seconds_of(process):
    """Returns the processor time of a process, from words 14 and 15 of its line in /proc."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# --------------------------------------------------------------------------------------------------------------- many

@case("openai: 200 requests at once, with the retries that it has by default")
def crowd(target):
    openai = need("openai")
    httpx = need("httpx")
    failed = []

    async def one(api, number):
        try:
            answer = await api.chat.completions.create(
                model=target.model, messages=[{"role": "user", "content": f"Say the number {number}."}], max_tokens=4,
                temperature=0, stream=number % 2 == 1)
            if number % 2:
                async for chunk in answer: assert chunk.choices or chunk.usage is not None
            else:
                assert answer.usage.completion_tokens > 0
        except Exception as error:  # any exception is reported
            failed.append(f"{number}: {type(error).__name__}: {error}")

    async def all_of_them():
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=1000)
        async with openai.AsyncOpenAI(base_url=target.url + "/v1", api_key="none", timeout=600,
                                      http_client=httpx.AsyncClient(limits=limits, timeout=600)) as api:
            await asyncio.gather(*(one(api, number) for number in range(200)))

    asyncio.run(all_of_them())
    assert not failed, f"{len(failed)} failed: {failed[0]}"


# ---------------------------------------------------------------------------------------------------------------- all

def run(target, only, must):
    bad = 0
    for name, function in CASES:
        if only not in name: continue
        begin = time.monotonic()
        try:
            function(target)
            word, why = "ok", ""
        except Skip as reason:
            word, why = "FAIL" if name.partition(":")[0] in must else "-", str(reason)
        except Exception as error:  # a client may raise any exception
            at = traceback.extract_tb(error.__traceback__)
            line = next((frame for frame in reversed(at) if frame.name == function.__name__), at[-1])
            word, why = "FAIL", f"line {line.lineno}: {line.line}\n      {type(error).__name__}: {str(error)[:600]}"
        bad += word == "FAIL"
        print(f"{time.monotonic() - begin:6.1f} s  {word:4}  {name}{'' if word == 'ok' else ': ' + why}", flush=True)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--forerun")
    parser.add_argument("--url")
    parser.add_argument("--only", default="")
    parser.add_argument("--must", action="append", default=[], help="a client whose cases may not be passed over")
    args = parser.parse_args()
    command = f"{args.forerun} serve -m {args.model} -np 4 -c 4096 --port {{port}}"
    with Server(url=args.url.rstrip("/").removesuffix("/v1")) if args.url else Server(command) as server:
        return run(Target(server.url), args.only, args.must)


if __name__ == "__main__":
    sys.exit(main())
