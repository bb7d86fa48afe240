"""Cases of the other APIs for chats, by the libraries made for them (see cases.py): OpenAI's /v1/responses and
Anthropic's /v1/messages. Their answers must be those of the chat.

In: a Target. Out: nothing.
"""
import json

import anthropic
import openai
from openai.types.responses import Response
from pydantic import BaseModel

from cases import ASKED, WEATHER, WEATHER_ASKED, Skip, case

FUNCTION = WEATHER["function"]
TOOL = {"type": "function", "strict": None, **FUNCTION}
ANTHROPIC_TOOL = {"name": FUNCTION["name"], "description": FUNCTION["description"],
                  "input_schema": FUNCTION["parameters"]}
SYSTEM, USER = ASKED[0]["content"], ASKED[1:]


class City(BaseModel):
    name: str
    country: str
    inhabitants: int


def check_call(name, arguments):
    assert name == "get_weather" and isinstance(arguments, dict), f"{name}({arguments})"
    assert isinstance(arguments["city"], str) and arguments.keys() <= {"city", "unit"}, arguments
    assert arguments.get("unit", "C") in ("C", "F"), arguments


# ---------------------------------------------------------------------------------------------------------- responses

def respond(target, **more):
    return target.api.responses.create(**{"model": target.model, "instructions": SYSTEM, "input": USER,
                                          "temperature": 0, "max_output_tokens": 24} | more)


def thought(response):
    return "".join(part.text for item in response.output if item.type == "reasoning" for part in item.content)


def as_input(message):
    """Returns a chat's message as items."""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}]
    calls = [{"type": "function_call", "call_id": call["id"], **call["function"]}
             for call in message.get("tool_calls", [])]
    return ([{"role": message["role"], "content": message["content"]}] if message["content"] else []) + calls


WEATHER_INPUT = [item for message in WEATHER_ASKED for item in as_input(message)]


@case("openai: responses")
def responses(target):
    answer = respond(target)
    assert thought(answer) + answer.output_text == target.text
    assert answer.object == "response" and answer.error is None and answer.created_at > 1.6e9
    assert answer.status == ("incomplete" if answer.incomplete_details else "completed")
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    body = {"model": target.model, "input": "Hi", "max_output_tokens": 8}
    Response.model_validate(target.json("POST", "/v1/responses", body), strict=True)
    items = [*({"role": turn["role"], "content": [{"type": "input_text", "text": turn["content"]}]} for turn in ASKED)]
    assert respond(target, instructions=None, input=items).output_text == answer.output_text
    counted = target.api.responses.input_tokens.count(model=target.model, instructions=SYSTEM, input=USER)
    assert counted.input_tokens == answer.usage.input_tokens


@case("openai: responses, stream")
def responses_stream(target):
    whole = respond(target)
    events = list(respond(target, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == whole.output_text, f"{text!r} is not {whole.output_text!r}"
    assert events[-1].type == f"response.{whole.status}" and events[-1].response.output_text == text
    with target.api.responses.stream(model=target.model, instructions=SYSTEM, input=USER, temperature=0,
                                     max_output_tokens=24) as stream:
        assert "".join(event.delta for event in stream if event.type == "response.output_text.delta") == text
        if whole.status == "completed": assert stream.get_final_response().output_text == text


@case("openai: responses, tools")
def responses_tools(target):
    for choice in ("required", {"type": "function", "name": "get_weather"}):
        answer = respond(target, input=WEATHER_INPUT, tools=[TOOL], tool_choice=choice, max_output_tokens=200,
                         parallel_tool_calls=False)
        calls = [item for item in answer.output if item.type == "function_call"]
        if answer.status == "incomplete": raise Skip("the model does not end its call")
        assert len(calls) == 1 and answer.status == "completed", answer.output
        check_call(calls[0].name, json.loads(calls[0].arguments))
    events = list(respond(target, input=WEATHER_INPUT, tools=[TOOL], tool_choice="required", max_output_tokens=200,
                          parallel_tool_calls=False, stream=True))
    deltas = "".join(event.delta for event in events if event.type == "response.function_call_arguments.delta")
    assert json.loads(deltas) == json.loads(calls[0].arguments)
    back = [*WEATHER_INPUT, *(item.model_dump(exclude_none=True) for item in answer.output),
            {"type": "function_call_output", "call_id": calls[0].call_id, "output": '{"sky": "clouds"}'}]
    assert respond(target, input=back, tools=[TOOL]).output_text


@case("openai: responses, json_schema")
def responses_schema(target):
    answer = target.api.responses.parse(model=target.model, input="Name a city.", text_format=City, temperature=0,
                                        max_output_tokens=200)
    assert answer.status == "incomplete" or isinstance(answer.output_parsed, City), answer.output_text
    answer = respond(target, input="A JSON object, please.", text={"format": {"type": "json_object"}},
                     max_output_tokens=200)
    if answer.status == "completed": assert isinstance(json.loads(answer.output_text), dict)


@case("openai: responses, errors")
def responses_errors(target):
    for more, names in [({"previous_response_id": "resp_1"}, "previous_response_id"),
                        ({"tools": [{"type": "custom"}]}, "tools[0]"), ({"background": True}, "background")]:
        try:
            respond(target, **more)
        except openai.BadRequestError as error:
            assert names in error.message, f"{names}: {error.message}"
        else:
            assert not target.ours, f"{more} was taken"


# ----------------------------------------------------------------------------------------------------------- messages

def client_of(target, key="none"):
    return anthropic.Anthropic(base_url=target.url, api_key=key, max_retries=0, timeout=600)


def told(target, **more):
    return {"model": target.model, "system": SYSTEM, "messages": USER, "extra_body": {"temperature": 0},
            "max_tokens": 24} | more


def tell(target, **more):
    return client_of(target).messages.create(**told(target, **more))


def texts(message):
    return "".join(block.thinking if block.type == "thinking" else block.text for block in message.content
                   if block.type in ("thinking", "text"))


def as_blocks(message):
    if message["role"] == "tool":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": message["tool_call_id"],
                                             "content": message["content"]}]}
    calls = [{"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
              "input": json.loads(call["function"]["arguments"])} for call in message.get("tool_calls", [])]
    return {"role": message["role"], "content": calls or message["content"]}


WEATHER_BLOCKS = [as_blocks(message) for message in WEATHER_ASKED]


@case("anthropic: messages")
def messages(target):
    answer = tell(target)
    assert texts(answer) == target.text and answer.type == "message" and answer.role == "assistant"
    assert answer.stop_reason in ("end_turn", "max_tokens") and answer.id.startswith("msg_")
    usage = target.chat().usage
    assert answer.usage.output_tokens == usage.completion_tokens
    assert answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0) == usage.prompt_tokens
    blocks = [{"role": "user", "content": [{"type": "text", "text": USER[0]["content"]}]}]
    assert texts(tell(target, messages=blocks, system=[{"type": "text", "text": SYSTEM}])) == target.text
    word = texts(answer)[3:6]
    stopped = tell(target, stop_sequences=[word])
    if texts(answer) == "".join(block.text for block in answer.content if block.type == "text"):
        assert texts(stopped) == texts(answer)[:texts(answer).find(word)]
        assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word)


@case("anthropic: messages, stream")
def messages_stream(target):
    with client_of(target).messages.stream(**told(target)) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    whole = tell(target)
    assert texts(final) == texts(whole) and final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"


@case("anthropic: messages, tools")
def messages_tools(target):
    for choice in ({"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "get_weather",
                                                                        "disable_parallel_tool_use": True}):
        answer = tell(target, messages=WEATHER_BLOCKS, tools=[ANTHROPIC_TOOL], tool_choice=choice, max_tokens=200)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if answer.stop_reason == "max_tokens": raise Skip("the model does not end its call")
        assert len(calls) == 1 and answer.stop_reason == "tool_use", answer.content
        check_call(calls[0].name, calls[0].input)
    with client_of(target).messages.stream(**told(target, messages=WEATHER_BLOCKS, max_tokens=200, tool_choice=choice,
                                                  tools=[ANTHROPIC_TOOL])) as stream:
        final = stream.get_final_message()
    assert [block.input for block in final.content if block.type == "tool_use"] == [calls[0].input]
    back = [*WEATHER_BLOCKS, {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": calls[0].id, "content": "clouds"}]}]
    assert tell(target, messages=back, tools=[ANTHROPIC_TOOL]).content


@case("anthropic: count_tokens")
def count_tokens(target):
    client = client_of(target)
    count = client.messages.count_tokens(model=target.model, system=SYSTEM, messages=USER).input_tokens
    assert count == target.chat().usage.prompt_tokens
    longer = client.messages.count_tokens(model=target.model, messages=WEATHER_BLOCKS, tools=[ANTHROPIC_TOOL])
    assert longer.input_tokens > count


@case("anthropic: errors")
def messages_errors(target):
    for more, names in [({"messages": []}, "messages"), ({"max_tokens": -1}, "max_tokens")]:
        try:
            tell(target, **more)
        except anthropic.BadRequestError as error:
            assert error.body["type"] == "error" and names in error.body["error"]["message"], error.body
        else:
            assert not target.ours, f"{more} was taken"
