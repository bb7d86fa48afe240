"""Calls that clients make to a server, one function for each case. A function raises an AssertionError, an error of
the client's own, or Skip if the server or its model can't do this.

In: a Target. Out: nothing; target.shapes gets the forms of the raw answers.
"""
import asyncio
import functools
import json
import math
import subprocess

import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, convert_to_messages
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from shapes import shape

CASES = []
ASKED = [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": "Count from one to ten."}]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city right now.",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "Its name."}, "unit": {"type": "string", "enum": ["C", "F"]}}}}}


def called(number, city):
    return {"id": f"call_{number}", "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}


def shown(number, city, sky):
    """Returns a question with a call and its result, as an example for small models."""
    return [{"role": "user", "content": f"What is the weather in {city} right now?"},
            {"role": "assistant", "content": "", "tool_calls": [called(number, city)]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps({"sky": sky})},
            {"role": "assistant", "content": f"In {city} there is {sky}."}]


WEATHER_ASKED = [*shown(1, "Rome", "sun"), *shown(2, "Oslo", "snow"),
                 {"role": "user", "content": "What is the weather in Paris right now?"}]


class Skip(Exception):
    pass


def case(name):
    def keep(function):
        CASES.append((name, function))
        return function
    return keep


class Target:
    """A server under test. ours: it is forerun, which refuses features that it doesn't have."""

    def __init__(self, url, ours):
        self.url, self.ours, self.shapes = url, ours, {}
        self.api = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=600)
        self.model = self.api.models.list().data[0].id

    def curl(self, method, path, body=None, events=False, headers=()):
        """Sends a request by curl. Returns (status, text); with `events`, the list of a stream's events."""
        command = ["curl", "-sS", "-N", "-w", "\n%{http_code}", "-X", method, self.url + path]
        for header in headers: command += ["-H", header]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
            body = body if isinstance(body, str) else json.dumps(body)
        done = subprocess.run(command, input=body, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"curl: {done.stderr.strip()}"
        text, status = done.stdout.rsplit("\n", 1)
        if not events: return int(status), text
        assert int(status) == 200, f"{status}: {text[:300]}"
        lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    def json(self, method, path, body=None, form=None):
        """Returns the answer's value, and stores its form under that name."""
        status, text = self.curl(method, path, body)
        assert status == 200, f"{method} {path}: {status} {text[:300]}"
        value = json.loads(text)
        if form: self.shapes[form] = shape(value)
        return value

    def stream(self, path, body, form=None):
        events = self.curl("POST", path, body | {"stream": True}, events=True)
        kept = {}
        for event in events:
            if form and event != "[DONE]": shape(event, "", kept)
        if form: self.shapes[form] = kept
        return events

    def chat(self, **more):
        """Sends a greedy, short chat request, with other settings if given."""
        return self.api.chat.completions.create(
            **{"model": self.model, "messages": ASKED, "temperature": 0, "max_tokens": 24} | more)

    def complete(self, **more):
        return self.api.completions.create(
            **{"model": self.model, "prompt": "One, two, three,", "temperature": 0, "max_tokens": 16} | more)

    @functools.cached_property
    def text(self):
        """Returns the content of a chat's greedy reply, without its reasoning."""
        return said(self.chat().choices[0].message)


    @functools.cached_property
    def calling(self):
        """Makes a request that the model answers with a call. Small models need words that suggest the call."""
        asked = {"messages": WEATHER_ASKED, "tools": [WEATHER], "max_tokens": 96}
        marks = [self.json("POST", "/tokenize", {"content": mark})["tokens"]
                 for mark in ("<tool_call>", "</tool_call>")]
        tries = [asked]
        if all(len(ids) == 1 for ids in marks):
            for seed in range(16):
                bias = {str(ids[0]): 21 + seed % 4 for ids in marks}
                tries.append(asked | {"logit_bias": bias, "temperature": 0.7, "seed": seed})
        return next((tried for tried in tries if self.chat(**tried).choices[0].message.tool_calls), asked)


def said(message):
    return (getattr(message, "reasoning_content", None) or "") + (message.content or "")


def joined(chunks):
    return "".join((getattr(choice.delta, "reasoning_content", None) or "") + (choice.delta.content or "")
                   for chunk in chunks for choice in chunk.choices)


# ------------------------------------------------------------------------------------------------------------- openai

@case("openai: models")
def models(target):
    found = target.api.models.list().data
    assert found and all(model.object == "model" and model.id for model in found)


@case("openai: chat")
def chat(target):
    answer = target.chat()
    assert len(answer.choices) == 1 and answer.choices[0].message.role == "assistant"
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-") and answer.created > 1.6e9
    assert answer.choices[0].finish_reason in ("stop", "length") and target.text
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert 0 < answer.usage.completion_tokens <= 24


@case("openai: chat, types as published")
def chat_types(target):
    body = {"model": target.model, "messages": ASKED, "max_tokens": 8, "temperature": 0}
    ChatCompletion.model_validate(target.json("POST", "/v1/chat/completions", body, "chat"))
    ChatCompletion.model_validate(target.json("POST", "/v1/chat/completions",
                                              body | {"logprobs": True, "top_logprobs": 2}, "chat, logprobs"))
    events = target.stream("/v1/chat/completions", body | {"stream_options": {"include_usage": True}}, "chat, stream")
    assert events[-1] == "[DONE]" and "[DONE]" not in events[:-1]
    for event in events[:-1]: ChatCompletionChunk.model_validate(event)
    target.stream("/v1/chat/completions", body | {"timings_per_token": True}, "chat, stream, timings_per_token")
    target.stream("/v1/chat/completions", body | {"return_progress": True}, "chat, stream, return_progress")


@case("openai: chat stream, include_usage")
def chat_stream(target):
    chunks = list(target.chat(stream=True, stream_options={"include_usage": True}))
    assert joined(chunks) == target.text, f"{joined(chunks)!r} is not {target.text!r}"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 0
    assert all(chunk.usage is None for chunk in chunks[:-1])
    ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert ends == [target.chat().choices[0].finish_reason]
    assert len({chunk.id for chunk in chunks}) == 1


@case("openai: chat stream without usage")
def chat_stream_bare(target):
    chunks = list(target.chat(stream=True))
    assert joined(chunks) == target.text and all(chunk.usage is None for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)


@case("openai: max_tokens, max_completion_tokens")
def limits(target):
    for name in ("max_tokens", "max_completion_tokens"):
        answer = target.api.chat.completions.create(model=target.model, messages=ASKED, temperature=0,
                                                    extra_body={"ignore_eos": True}, **{name: 5})
        assert answer.usage.completion_tokens == 5 and answer.choices[0].finish_reason == "length", name


@case("openai: stop")
def stop(target):
    text = target.complete().choices[0].text
    assert len(text) > 6, f"the model says only {text!r}"
    for stops in (text[4:6], [text[5], "@@"], ["@@", text[4:7]]):
        before = min(text.find(word) for word in ([stops] if isinstance(stops, str) else stops) if word in text)
        answer = target.complete(stop=stops).choices[0]
        assert answer.text == text[:before] and answer.finish_reason == "stop", f"{stops!r}: {answer.text!r}"
        streamed = "".join(chunk.choices[0].text for chunk in target.complete(stop=stops, stream=True) if chunk.choices)
        assert streamed == text[:before], f"{stops!r}, streamed: {streamed!r}"


@case("openai: seed")
def seed(target):
    drawn = lambda seed: target.complete(temperature=1.5, seed=seed, max_tokens=24).choices[0].text
    texts = [drawn(number) for number in (1, 2, 3, 1, 2, 3)]
    assert texts[:3] == texts[3:], texts
    assert len(set(texts)) > 1, texts


@case("openai: n = 2")
def several(target):
    asked = {"temperature": 1.2, "max_tokens": 16}
    answer = target.chat(n=2, seed=5, **asked)
    assert [choice.index for choice in answer.choices] == [0, 1]
    parts = {0: "", 1: ""}
    for chunk in target.chat(n=2, seed=5, stream=True, **asked):
        for choice in chunk.choices: parts[choice.index] += joined([chunk])
    if target.ours:
        alone = [said(target.chat(seed=number, **asked).choices[0].message) for number in (5, 6)]
        assert [said(choice.message) for choice in answer.choices] == alone
        assert [parts[0], parts[1]] == alone


@case("openai: logprobs")
def logprobs(target):
    answer = target.chat(logprobs=True, top_logprobs=3)
    content = answer.choices[0].logprobs.content
    assert len(content) in (answer.usage.completion_tokens, answer.usage.completion_tokens - 1)
    for item in content:
        assert item.logprob <= 0 and len(item.top_logprobs) == 3
        assert item.top_logprobs[0].token == item.token and item.top_logprobs[0].logprob == item.logprob
        values = [best.logprob for best in item.top_logprobs]
        assert values == sorted(values, reverse=True) and sum(map(math.exp, values)) < 1 + 1e-4
    read = b"".join(bytes(item.bytes) for item in content if item.bytes is not None)
    assert (answer.choices[0].message.content or "").encode() in read
    chunks = target.chat(logprobs=True, top_logprobs=3, stream=True)
    streamed = [item for chunk in chunks for choice in chunk.choices if choice.logprobs
                for item in choice.logprobs.content or []]
    for one, other in zip(content, streamed, strict=True):
        assert one.logprob == other.logprob, f"{one.token!r}: {one.logprob}, then in a stream {other.logprob}"


@case("openai: completions")
def completions(target):
    body = {"model": target.model, "prompt": "One, two, three,", "max_tokens": 8, "temperature": 0}
    answer = target.complete()
    assert answer.object == "text_completion" and answer.choices[0].text and answer.usage.completion_tokens <= 16
    Completion.model_validate(target.json("POST", "/v1/completions", body, "completions"))
    target.json("POST", "/v1/completions", body | {"logprobs": 2}, "completions, logprobs")
    target.stream("/v1/completions", body | {"stream_options": {"include_usage": True}}, "completions, stream")


@case("openai: completions stream")
def completions_stream(target):
    chunks = list(target.complete(stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert text == target.complete().choices[0].text
    assert chunks[-1].usage.completion_tokens > 0


@case("openai: completions of ids, of several prompts")
def prompts(target):
    ids = target.json("POST", "/tokenize", {"content": "One, two, three,", "add_special": True})["tokens"]
    assert target.complete(prompt=ids).choices[0].text == target.complete().choices[0].text
    answer = target.complete(prompt=["One, two, three,", "Red, green,"])
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.choices[0].text == target.complete().choices[0].text


def weather_answer(target, calls):
    """Returns the model's reply to the results of its calls."""
    turns = [*WEATHER_ASKED, {"role": "assistant", "content": None, "tool_calls": calls}]
    for call in calls:
        turns.append({"role": "tool", "tool_call_id": call["id"], "content": '{"sky": "hail", "degrees": 17}'})
    prompt = target.json("POST", "/apply-template", {"messages": turns, "tools": [WEATHER]})["prompt"]
    assert "hail" in prompt, f"the template leaves the tool's answer out: {prompt[-300:]!r}"
    answer = target.chat(messages=turns, tools=[WEATHER], max_tokens=32)
    assert answer.choices[0].finish_reason in ("stop", "length", "tool_calls")


@case("openai: tools")
def tools(target):
    choice = target.chat(**target.calling).choices[0]
    calls = [call.model_dump() for call in choice.message.tool_calls or []]
    weather_answer(target, calls or [called(3, "Paris")])
    if not calls: raise Skip("the model calls nothing, or its template knows no tools")
    assert choice.finish_reason == "tool_calls" and len({call["id"] for call in calls}) == len(calls)
    for call in calls:
        assert call["type"] == "function" and call["id"] and call["function"]["name"] == "get_weather"
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


@case("openai: tools stream")
def tools_stream(target):
    asked = target.calling
    whole = target.chat(**asked).choices[0]
    parts, end = {}, None
    for chunk in target.chat(stream=True, **asked):
        for choice in chunk.choices:
            end = choice.finish_reason or end
            for call in choice.delta.tool_calls or []:
                part = parts.setdefault(call.index, {"name": "", "arguments": ""})
                part["name"] += call.function.name or ""
                part["arguments"] += call.function.arguments or ""
    calls = [{"name": call.function.name, "arguments": call.function.arguments}
             for call in whole.message.tool_calls or []]
    assert [parts[index] for index in sorted(parts)] == calls and end == whole.finish_reason
    if not calls: raise Skip("the model calls nothing")


@case("openai: errors")
def errors(target):
    for wrong in ({"temperature": "hot"}, {"messages": "hello"}, {"max_tokens": {}}):
        try:
            target.chat(**wrong)
            raise AssertionError(f"{wrong} was answered")
        except openai.BadRequestError as error:
            assert error.body and error.body["message"], error
    try:
        target.api.post("/nothing", body={}, cast_to=object)
        raise AssertionError("/v1/nothing was answered")
    except openai.NotFoundError as error:
        assert error.body["message"], error


@case("openai: four at a time")
def together(target):
    async def ask():
        async with openai.AsyncOpenAI(base_url=target.url + "/v1", api_key="none", max_retries=0) as api:
            return await asyncio.gather(*[api.chat.completions.create(
                model=target.model, messages=ASKED, temperature=0, max_tokens=24) for _ in range(4)])
    assert {said(answer.choices[0].message) for answer in asyncio.run(ask())} == {target.text}


# ---------------------------------------------------------------------------------------------------------- langchain

def chain(target, **more):
    return ChatOpenAI(**{"base_url": target.url + "/v1", "api_key": "none", "model": target.model, "temperature": 0,
                         "max_tokens": 24, "max_retries": 0, "stream_usage": True} | more)


TURNS = [SystemMessage(ASKED[0]["content"]), HumanMessage(ASKED[1]["content"])]


@case("langchain: invoke")
def langchain_invoke(target):
    answer = chain(target).invoke(TURNS)
    assert answer.content == (target.chat().choices[0].message.content or "")
    assert answer.usage_metadata["output_tokens"] > 0
    assert answer.response_metadata["finish_reason"] in ("stop", "length")


@case("langchain: stream")
def langchain_stream(target):
    chunks = list(chain(target).stream(TURNS))
    assert "".join(chunk.content for chunk in chunks) == chain(target).invoke(TURNS).content
    usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert len(usage) == 1 and usage[0]["output_tokens"] > 0


@case("langchain: batch, logprobs")
def langchain_batch(target):
    answers = chain(target, logprobs=True, top_logprobs=2).batch([TURNS] * 3)
    assert len({answer.content for answer in answers}) == 1
    assert all(answer.response_metadata["logprobs"]["content"] for answer in answers)


@case("langchain: tools")
def langchain_tools(target):
    @tool
    def get_weather(city: str) -> str:
        """The weather in a city right now."""
        return "hail"

    asked = {key: value for key, value in target.calling.items() if key not in ("messages", "tools")}
    bound = chain(target, **asked).bind_tools([get_weather])
    turns = convert_to_messages(WEATHER_ASKED)
    answer = bound.invoke(turns)
    calls = answer.tool_calls
    made_up = {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_3"}
    answer = AIMessage("", tool_calls=calls or [made_up])
    turns += [answer] + [ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
                         for call in answer.tool_calls if call["name"] == "get_weather"]
    bound.invoke(turns)
    if not calls: raise Skip("the model calls nothing")


@case("langchain: completions")
def langchain_completions(target):
    model = OpenAI(base_url=target.url + "/v1", api_key="none", model=target.model, temperature=0, max_tokens=16,
                   max_retries=0)
    text = target.complete().choices[0].text
    assert model.invoke("One, two, three,") == text
    assert "".join(model.stream("One, two, three,")) == text


# --------------------------------------------------------------------------------------------------------------- curl

@case("curl: /health, /v1/health")
def health(target):
    assert target.json("GET", "/health", form="GET /health")["status"] == "ok"
    assert target.json("GET", "/v1/health")["status"] == "ok"


@case("curl: /v1/models, /models")
def model_list(target):
    found = target.json("GET", "/v1/models", form="GET /v1/models")
    assert found["object"] == "list" and found["data"][0]["id"] == target.model
    target.json("GET", "/models")


@case("curl: /tokenize, /detokenize")
def tokenize(target):
    text = "Grüße, 雨 and rain\n"
    ids = target.json("POST", "/tokenize", {"content": text}, "/tokenize")["tokens"]
    assert ids and all(isinstance(number, int) for number in ids)
    assert target.json("POST", "/detokenize", {"tokens": ids}, "/detokenize")["content"].lstrip() == text
    pieces = target.json("POST", "/tokenize", {"content": "rain and", "with_pieces": True}, "/tokenize, pieces")
    assert "".join(item["piece"] for item in pieces["tokens"]).strip() == "rain and"
    more = target.json("POST", "/tokenize", {"content": text, "add_special": True})["tokens"]
    assert more[-len(ids):] == ids


@case("curl: /apply-template")
def template(target):
    prompt = target.json("POST", "/apply-template", {"messages": ASKED}, "/apply-template")["prompt"]
    assert ASKED[1]["content"] in prompt


@case("curl: /props, /slots")
def props(target):
    found = target.json("GET", "/props", form="GET /props")
    assert found["total_slots"] >= 1 and found["chat_template"]
    slots = target.json("GET", "/slots", form="GET /slots")
    assert len(slots) == found["total_slots"] and [slot["id"] for slot in slots] == list(range(len(slots)))


@case("curl: /metrics")
def metrics(target):
    before = prometheus(target)
    target.complete(max_tokens=8, extra_body={"ignore_eos": True})
    after = prometheus(target)
    assert after["llamacpp:tokens_predicted_total"] >= before["llamacpp:tokens_predicted_total"] + 8
    target.shapes["GET /metrics"] = {name: {"number"} for name in after if "{" not in name}


def prometheus(target):
    status, text = target.curl("GET", "/metrics")
    assert status == 200, f"{status} {text[:200]}"
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in lines}


@case("curl: /completion, whole and streamed")
def native(target):
    body = {"prompt": "One, two, three,", "n_predict": 16, "temperature": 0, "return_tokens": True}
    whole = target.json("POST", "/completion", body, "/completion")
    assert whole["stop"] is True and whole["content"] == target.complete().choices[0].text
    events = target.stream("/completion", body, "/completion, stream")
    assert "".join(event["content"] for event in events if event != "[DONE]") == whole["content"]
    assert sum((event["tokens"] for event in events if event != "[DONE]"), []) == whole["tokens"]
    probed = target.json("POST", "/completion", body | {"n_probs": 2}, "/completion, n_probs")
    assert probed["content"] == whole["content"] and probed["completion_probabilities"]


@case("curl: errors")
def raw_errors(target):
    for path, body, statuses in [
            ("/v1/chat/completions", "{", (400,)), ("/v1/chat/completions", "[1]", (400,)),
            ("/v1/chat/completions", {"model": target.model}, (400,)), ("/v1/completions", {"model": "x"}, (400,)),
            ("/v1/chat/completions", {"messages": [{"role": "user"}], "max_tokens": 4}, (400,)),
            ("/tokenize", "nonsense", (400,)), ("/nothing", {}, (404,))]:
        status, text = target.curl("POST", path, body)
        assert status in statuses, f"{path} {body}: {status} {text[:200]}"
        error = json.loads(text)["error"]
        assert error["code"] == status and error["message"] and error["type"].endswith("error"), text[:200]
    target.shapes["an error"] = shape(json.loads(target.curl("POST", "/v1/chat/completions", "{")[1]))
    status, text = target.curl("POST", "/v1/chat/completions", {"messages": ASKED, "max_tokens": 1, "model": "unknown"})
    assert status in (200, 404), f"an unknown model: {status} {text[:200]}"


@case("curl: a prompt beyond the context")
def too_long(target):
    status, text = target.curl("POST", "/v1/completions", {"prompt": "rain " * 200000, "max_tokens": 1})
    assert status == 400, f"{status} {text[:200]}"
    error = json.loads(text)["error"]
    assert error["type"] == "exceed_context_size_error", error
    target.shapes["a prompt that is too long"] = shape(json.loads(text))


@case("curl: what is not built is refused by name")
def unbuilt(target):
    if not target.ours: raise Skip("built there")
    body = {"messages": ASKED, "max_tokens": 4}
    for field, value in [("echo", True), ("lora", [{"id": 0, "scale": 1}]), ("n_indent", 4),
                         ("response_format", {"type": "structural_tag"}), ("tool_choice", {"type": "allowed_tools"})]:
        more = {"tools": [WEATHER]} if field == "tool_choice" else {}
        status, text = target.curl("POST", "/v1/chat/completions", body | more | {field: value})
        assert status == 400 and field in json.loads(text)["error"]["message"], f"{field}: {status} {text[:200]}"
    assert target.curl("POST", "/v1/chat/completions", body | {"nobody_knows_this": 1})[0] == 200
