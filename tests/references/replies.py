"""Writes tests/data/replies/calls.json: tool calls in the form in which chat templates write them, and their meaning.

    python3 tests/references/replies.py tests/data

A reply is the text that a template renders after the prompt for an assistant's message, up to the end of its turn: the
text that the model was trained to write. The templates are published ones (chat/templates there), and ones in their
style (templates).

replies/calls.json  {"tools": [...], "cases": [{"template", "title", "prompt", "reply", "message": {"content",
                    "reasoning_content", "tool_calls": [{"name", "arguments"}]}}]}; of prompts the last bytes
"""
import json
import sys
from pathlib import Path

from transformers.utils import chat_template_utils

OWN = {"gemma4": {"bos_token": "<bos>"}, "llama3.1": {"bos_token": "<|begin_of_text|>"},
       "deepseek-v3.1": {"bos_token": "<｜begin▁of▁sentence｜>"}}

# These marks begin and end an assistant's turn. The first belong to the prompt, and the second are ends of sequence.
BEGINS = ["<|turn>model\n", "<｜Assistant｜>"]
ENDS = ["<turn|>\n", "<|im_end|>\n", "<|im_end|>", "<｜end▁of▁sentence｜>", "<|eot_id|>", "<|tool_response>"]

TEMPLATES = [f"chat/templates/{name}.jinja" for name in (
    "gemma4", "glm4.6", "glm4.7", "qwen3.5", "deepseek-v3.1", "llama3.1")] + [
    f"templates/{name}.jinja" for name in ("qwen2.5", "qwen3", "hermes", "deepseek-r1", "qwen3-coder")]
SINGLE = {"llama3.1"}  # these templates allow one call in a turn
THINKING = {"gemma4", "glm4.6", "glm4.7", "qwen3.5", "qwen3"}  # these render the reasoning of an earlier turn
SILENT = {"llama3.1", "hermes"}  # in these a message with calls has no content


def parameters(**properties):
    return {"type": "object", "properties": properties}


def tool(name, **properties):
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.",
                                             "parameters": parameters(**properties)}}


TEXT, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
TOOLS = [
    tool("now"),
    tool("get_weather", city=TEXT, unit={"type": "string", "enum": ["c", "f"]}),
    tool("write_file", path=TEXT, text=TEXT),
    tool("all.kinds-of_2", text=TEXT, whole=INTEGER, number=NUMBER, small=NUMBER, yes=BOOLEAN, no=BOOLEAN,
         nothing={"type": ["null", "integer"]}, list={"type": "array", "items": {}}, object={"type": "object"},
         empty=TEXT, digits=TEXT, word={"type": "string"}, either={"type": ["integer", "null"]},
         any={"anyOf": [{"type": "number"}, {"type": "boolean"}]}),
]

CODE = 'def f(x):\n    """Doc."""\n    return {"a": [x, \'b\\n\']}  # <b>&amp;</b> </tag> }} ]] "\n\n\tif x:\n'
KINDS = {"text": "It's \"so\": äöü 日本語 😀 \\ / \t|", "whole": -42, "number": 1.5, "small": 1e-05, "yes": True,
         "no": False, "nothing": None, "list": [1, [2.5, "x"], {"b": "}", "a": []}, []],
         "object": {"k": {"deep": ["v", {}]}, "n": 0}, "empty": "", "digits": "0123", "word": "true", "either": 7,
         "any": 0.5}

CALLS = [
    ("no arguments", "", [("now", {})]),
    ("one", "", [("get_weather", {"city": "Köln", "unit": "c"})]),
    ("words before", "Let me look.", [("get_weather", {"city": "São Paulo"})]),
    ("lines before", "First:\n\n- a\n- b", [("get_weather", {"city": ""})]),
    ("code", "", [("write_file", {"path": "/tmp/a b.py", "text": CODE})]),
    ("kinds", "", [("all.kinds-of_2", KINDS)]),
    ("two", "", [("get_weather", {"city": "Köln"}), ("get_weather", {"city": "Brest", "unit": "f"})]),
    ("three", "All of them.", [("now", {}), ("all.kinds-of_2", KINDS), ("now", {})]),
]


def reply_of(template, own, messages, message, thoughts):
    """Returns the prompt and the reply."""
    context = {**own, "tools": TOOLS}
    if thoughts:
        context["enable_thinking"] = True
    whole = template.render(messages=messages + [message], add_generation_prompt=False, **context)
    prompt = template.render(messages=messages, add_generation_prompt=True, **context)
    if not whole.startswith(prompt):  # the prompt begins no reasoning, or ends it at once
        prompt = template.render(messages=messages, add_generation_prompt=True, **{**context, "enable_thinking": False})
    if not whole.startswith(prompt):
        prompt = template.render(messages=messages, add_generation_prompt=False, **context)
        assert whole.startswith(prompt), (prompt, whole)
    reply = whole[len(prompt):]
    for begin in BEGINS:
        reply = reply.removeprefix(begin)
    for end in ENDS:
        reply = reply.removesuffix(end)
    return prompt, reply


def cases(name, template):
    for title, words, calls in CALLS:
        if len(calls) > 1 and name in SINGLE or words and name in SILENT:
            continue
        for thoughts in ["", "The user asks.\n\nI look."] if name in THINKING else [""]:
            message = {"role": "assistant", "content": words, "tool_calls": [
                {"id": f"call{i:05}", "type": "function", "function": {"name": f, "arguments": a}}
                for i, (f, a) in enumerate(calls)]}
            if thoughts:
                message["reasoning_content"] = thoughts
            before = [{"role": "user", "content": "Go."}]
            prompt, reply = reply_of(template, OWN.get(name, {}), before, message, thoughts)
            expected = {"content": words, "reasoning_content": thoughts,
                        "tool_calls": [{"name": f, "arguments": a} for f, a in calls]}
            yield {"title": title, "prompt": prompt[-40:], "reply": reply, "message": expected}


def main(data):
    result = {"tools": TOOLS, "cases": []}
    for path in TEMPLATES:
        template = chat_template_utils._compile_jinja_template((data / path).read_text())
        result["cases"] += [{"template": path, **case} for case in cases(Path(path).stem, template)]
    (data / "replies").mkdir(exist_ok=True)
    (data / "replies/calls.json").write_text(json.dumps(result, ensure_ascii=False, indent=0) + "\n")
    print(f"{len(result['cases'])} replies")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
