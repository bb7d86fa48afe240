"""adapted_cases.py: writes tests/data/chat/adapted.json: conversations as clients send them, with the expected
prompts.

A chat template reads messages in one form, and clients send others: a call's arguments as JSON text, a list of text
parts where the template only reads texts, reasoning in `reasoning`. The form that each template reads is listed here
by hand.

In: the templates of tests/data/chat/templates and tests/data/templates; reference.json and gemma4_more.json. Out: the
conversations as clients send them, and what transformers renders if it gets them in the template's form (null for an
error). Cases of the two files are listed if their prompt is different then. Needs transformers (5.17.0)."""

import datetime
import json
import os

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers.utils import chat_template_utils  # noqa: E402

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/data")
CLOCK = datetime.datetime(1970, 1, 1)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True}

# For each template: the form of arguments that it reads, and the roles whose contents it reads only as texts.
MAPPING, TEXT, EITHER = "mapping", "text", "either"
ALL = ("system", "user", "assistant", "tool")
FORMS = {
    "chat/templates/gemma4": (MAPPING, ("system", "developer")),
    "chat/templates/glm4.6": (MAPPING, ("tool",)),
    "chat/templates/glm4.7": (MAPPING, ("tool",)),
    "chat/templates/qwen3.5": (MAPPING, ()),
    "chat/templates/deepseek-v3.1": (MAPPING, ALL),
    "chat/templates/llama3.1": (MAPPING, ALL),
    "templates/qwen2.5": (MAPPING, ALL),
    "templates/qwen3": (EITHER, ALL),
    "templates/qwen3-coder": (MAPPING, ALL),
    "templates/hermes": (EITHER, ALL),
    "templates/minimax": (MAPPING, ()),
    "templates/mistral-small": (EITHER, ("tool",)),
    "templates/kimi": (EITHER, ()),
    "templates/nemotron": (EITHER, ALL),
    "templates/llama4": (MAPPING, ()),
    "joins": (TEXT, ALL),
    "prints": (TEXT, ALL),
    "parts": (MAPPING, ()),
}
NO_ORPHANS = ("chat/templates/gemma4", "templates/minimax")  # these lose or refuse a result without its call
PARTS_ALONE = ("parts",)  # these read parts, and show nothing of a text
ONE_CALL = ("chat/templates/llama3.1",)  # these raise an error for two calls in a message

INLINE = {
    "joins": "{% for m in messages %}{{ m.role + ': ' + m.content }}{% for c in m.tool_calls or [] %}"
             "[{{ c.function.name + ':' + c.function.arguments + ';' }}]{% endfor %}\n{% endfor %}",
    "prints": "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}"
              "[{{ c.function.name }}:{{ c.function.arguments }}]{% endfor %}\n{% endfor %}",
    "parts": "{% for m in messages %}{{ m.role }}{{ ':' if m.content[0]['type'] == 'image' else ': ' }}"
             "{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }};{% endif %}{% endfor %}"
             "{% for c in m.tool_calls or [] %}[{{ c.function.name }}:{{ c.function.arguments | tojson }}]"
             "{% endfor %}\n{% endfor %}",
}


def parted(messages):
    """Puts each call into a message of its own, followed by its result."""
    out = []
    for m in messages:
        out.append(m)
        for call in (m.get("tool_calls") or [])[1:] if isinstance(m, dict) else []:
            out.append({"role": "assistant", "content": "" if isinstance(m["content"], str) else None,
                        "tool_calls": [call]})
        if isinstance(m, dict) and len(m.get("tool_calls") or []) > 1:
            m["tool_calls"] = m["tool_calls"][:1]
    results = {m.get("tool_call_id"): m for m in out if isinstance(m, dict) and m.get("role") == "tool"}
    rest = [m for m in out if not (isinstance(m, dict) and m.get("role") == "tool")]
    whole = []
    for m in rest:
        whole.append(m)
        for call in m.get("tool_calls") or [] if isinstance(m, dict) else []:
            if call.get("id") in results:
                whole.append(results[call["id"]])
    return whole


def part(content):
    """Returns a text as a list with one part, and gives parts with other types the type text."""
    parts = [content] if isinstance(content, str) else content
    return [{"type": "text", "text": p if isinstance(p, str) else p["text"]} for p in parts]


def told(messages):
    """Replaces results that follow no call by JSON in the user's text."""
    out, called, names = [], False, {}
    for m in messages:
        called = bool(m.get("tool_calls")) or called and m.get("role") == "tool"
        if m.get("tool_calls"):
            names = {c["id"]: c["function"].get("name") for c in m["tool_calls"]
                     if isinstance(c, dict) and "function" in c and c.get("id")}
        if m.get("role") == "tool" and not called:
            name = m.get("name") or names.get(m.get("tool_call_id"))
            content = m.get("content", "")
            if isinstance(content, list) and all(isinstance(p, dict) and "text" in p for p in content):
                content = "\n".join(p["text"] for p in content)
            response = {"name": name, "content": content} if name else {"content": content}
            m = {"role": "user", "content": json.dumps({"tool_response": response}, ensure_ascii=False)}
        out.append(m)
    return out


def adapt(messages, form, text_roles, one_call=False, parts=False, orphans=True):
    out = json.loads(json.dumps(messages))
    for m in out if all(isinstance(m, dict) for m in out) else []:
        for key in [key for key, value in m.items() if value is None and key != "content"]:
            del m[key]
        if m.get("role") == "assistant" or "content" in m:
            m["content"] = "" if m.get("content") is None else m["content"]
        content = m.get("content")
        texts = isinstance(content, list) and all(
            isinstance(p, str) or isinstance(p, dict) and p.get("type") in ("text", "input_text", "output_text")
            and isinstance(p.get("text"), str) for p in content)
        if texts and m.get("role") in text_roles:
            m["content"] = "\n".join(p if isinstance(p, str) else p["text"] for p in content)
        if m.get("role") == "assistant" and isinstance(m.get("reasoning"), str):
            if m.get("reasoning_content") in (None, ""):
                m["reasoning_content"] = m["reasoning"]
            m["reasoning"] = m["reasoning_content"]
        calls = m.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function", call)
            arguments = function.get("arguments")
            if arguments is None or isinstance(arguments, str) and arguments.strip() in ("", "null"):
                arguments = function["arguments"] = {}
            if form == MAPPING and isinstance(arguments, str):
                function["arguments"] = parsed(arguments)
            if form == TEXT and isinstance(arguments, dict):
                function["arguments"] = json.dumps(arguments, ensure_ascii=False)
    several = any(isinstance(m, dict) and isinstance(m.get("tool_calls"), list) and len(m["tool_calls"]) > 1
                  for m in out)
    out = out if orphans or not all(isinstance(m, dict) for m in out) else told(out)
    for m in out if parts else []:
        if m.get("content") is not None:
            m["content"] = part(m["content"])
    return parted(out) if one_call and several else out


# These templates have no place for tools, so the system's turn describes them. The values are the calls that it shows.
NO_PLACE = {"chat/templates/deepseek-v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>"
                                            '{"PARAMETER": VALUE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'}


def describe(messages, context, example):
    if not context.get("tools"):
        return messages
    lines = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in context["tools"]]
    text = "\n".join(["You can call functions. Each of them is described by JSON:", *lines,
                      "To call one, reply with nothing but the call, in this form:", example,
                      "Where no call is needed, reply to the user as usual."])
    if messages[0]["role"] != "system":
        return [{"role": "system", "content": text}, *messages]
    return [{**messages[0], "content": messages[0]["content"] + "\n\n" + text}, *messages[1:]]


def parsed(text):
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


# ------------------------------------------------------------------------------------------------------------ messages


def text(value, **more):
    return {"type": "text", "text": value, **more}


def asked(*calls, answer="ok", **more):
    calls = [{"id": f"call0000{i}", "type": "function", "function": {"name": "get", "arguments": arguments}}
             for i, arguments in enumerate(calls)]
    answers = [{"role": "tool", "tool_call_id": call["id"], "name": "get", "content": answer} for call in calls]
    return [{"role": "user", "content": "weather?"},
            {"role": "assistant", "content": "", "tool_calls": calls, **more}, *answers]


NESTED = '{"city":"Bern","n":3,"r":2.50,"deep":{"l":[1,null,true,{"ä":"\\u00e4\\n\\"q\\""}]},"none":{}}'
CALLS = [
    ("text", asked('{"city": "Bern", "n": 3}')),
    ("compact text", asked('{"city":"Bern","n":3}')),
    ("nested text", asked(NESTED)),
    ("object", asked(json.loads(NESTED))),
    ("empty object in text", asked(" {} ")),
    ("no text", asked("")),
    ("flat", [{"role": "user", "content": "a"},
              {"role": "assistant", "content": "", "tool_calls": [{"name": "get", "arguments": '{"a": "b"}'}]}]),
    ("wide integers in text", asked('{"n":123456789012345678901234567890,"l":[-9223372036854775809]}')),
    ("wide integers", asked({"n": -10**40, "l": [2**63, {"k": 2**64}]})),
    ("content null", asked('{"a": "b"}', content=None)),
]
NO_OBJECTS = [(f"no object: {value}", asked(value)) for value in ("Bern", "5", "[1]", '"{}"', "{")]
NOTHING = [(f"nothing: {value!r}", asked(value)) for value in (None, " \n", "null", " null ")] + [
    ("no arguments", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call00000", "type": "function", "function": {"name": "get"}}]}]),
    ("no content", [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [
        {"id": "call00000", "type": "function", "function": {"name": "get", "arguments": "{}"}}]}]),
    ("null members", [
        {"role": "user", "content": "a", "name": None, "tool_calls": None},
        {"role": "assistant", "content": "b", "tool_calls": None, "reasoning_content": None, "reasoning": None,
         "refusal": None, "audio": None, "function_call": None, "annotations": None, "tool_call_id": None},
        {"role": "user", "content": None}, {"role": "assistant", "content": None}, {"role": "user", "content": "c"}]),
    ("null beside results", [*asked({"a": "b"}, answer=None), {"role": "assistant", "content": None},
                             {"role": "user", "content": "c"}]),
    ("null system", [{"role": "system", "content": None, "name": None}, {"role": "user", "content": "c"}]),
]
PARTS = [
    ("user", [{"role": "user", "content": [text("Hello"), text("you")]}]),
    ("one part", [{"role": "user", "content": [text("Hello")]}]),
    ("system", [{"role": "system", "content": [text("Be"), text(" brief.\n")]}, {"role": "user", "content": "hi"}]),
    ("assistant", [{"role": "user", "content": "a"}, {"role": "assistant", "content": [text("b"), text("c")]},
                   {"role": "user", "content": [text("d")]}]),
    ("tool", asked({"a": "b"}, answer=[text("1"), text("2")])),
]
ODD_PARTS = [
    ("no part", [{"role": "user", "content": []}]),
    ("other words", [{"role": "user", "content": ["a", {"type": "input_text", "text": "b"},
                                                  {"type": "output_text", "text": "c"}]}]),
]
THOUGHTS = [
    (f"thoughts: {json.dumps(more)}", asked({"a": "b"}, **more))
    for more in ({"reasoning": "Let me."}, {"reasoning": "no", "reasoning_content": "Let me."},
                 {"reasoning": "Let me.", "reasoning_content": None}, {"reasoning": "Let me.", "reasoning_content": ""},
                 {"reasoning": None, "reasoning_content": "Let me."}, {"reasoning": None},
                 {"reasoning_content": "Let me."})
]



ORPHANS = [
    ("result without a call", [{"role": "user", "content": "Summary."},
                               {"role": "tool", "tool_call_id": "call00009", "content": "seven"},
                               {"role": "user", "content": "and?"}]),
    ("result after another turn", [*asked({"a": "b"})[:2], {"role": "user", "content": "wait"},
                                   {"role": "tool", "tool_call_id": "call00000", "content": [text("1"), text("2")]}]),
]

CONVERSATIONS = CALLS + PARTS + ODD_PARTS + THOUGHTS + [("two", asked('{"a": 1}', {"b": "2"}))] + NO_OBJECTS + NOTHING
CONVERSATIONS += ORPHANS


def render(template, messages, context):
    try:
        return {"rendered": template.render(messages=messages, strftime_now=CLOCK.strftime, **context)}
    except Exception as error:  # a template may raise anything
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def compiled(name):
    if name in INLINE:
        return chat_template_utils._compile_jinja_template(INLINE[name])
    with open(f"{DATA}/{name}.jinja") as f:
        return chat_template_utils._compile_jinja_template(f.read())


def own_cases(name):
    template, (form, text_roles) = compiled(name), FORMS[name]
    for _, messages in CONVERSATIONS:
        yield render(template, adapt(messages, form, text_roles, name in ONE_CALL,
                                     name in PARTS_ALONE, name not in NO_ORPHANS), TOKENS).get("rendered")


def adapted_references():
    """Returns, by style and title, the cases of the other files whose prompt is different if messages are adapted."""
    for file in ("reference", "gemma4_more"):
        with open(f"{DATA}/chat/{file}.json") as f:
            styles = json.load(f)
        for style, cases in styles.items():
            template, (form, text_roles) = compiled(f"chat/templates/{style}"), FORMS[f"chat/templates/{style}"]
            for case in cases:
                name = f"chat/templates/{style}"
                wanted = adapt(case["messages"], form, text_roles, name in ONE_CALL, False, name not in NO_ORPHANS)
                if f"chat/templates/{style}" in NO_PLACE:
                    wanted = describe(wanted, case["context"], NO_PLACE[f"chat/templates/{style}"])
                if wanted == case["messages"]:
                    continue
                result = render(template, wanted, case["context"])
                if result.get("rendered") != case.get("rendered"):
                    yield {"style": style, "title": case["title"], **result}


def main():
    rendered = {name: list(own_cases(name)) for name in FORMS}
    instead = list(adapted_references())
    with open(f"{DATA}/chat/adapted.json", "w") as f:
        said = ",\n".join(json.dumps({"title": title, "messages": messages}) for title, messages in CONVERSATIONS)
        texts = ",\n".join(f"{json.dumps(name)}: {json.dumps(texts)}" for name, texts in rendered.items())
        others = ",\n".join(json.dumps(case) for case in instead)
        f.write(f'{{"inline": {json.dumps(INLINE)},\n"context": {json.dumps(TOKENS)},\n"conversations": [\n{said}\n],\n'
                f'"rendered": {{\n{texts}\n}},\n"instead": [\n{others}\n]}}\n')
    print(len(rendered), "templates,", len(CONVERSATIONS), "conversations,", len(instead), "instead of others")


if __name__ == "__main__":
    main()
