"""make_cases.py TEMPLATE [COUNT]: writes gemma4_more.json, beside this file.

TEMPLATE is Gemma 4's published chat template (google/gemma-4-31B-it, chat_template.jinja). The expected texts are
those that transformers' own Jinja environment (5.17.0) gives, none of them ours. In a case with "error", rendering
fails there. The first cases were written by hand; COUNT random ones follow (default 120). reference.json came with the
reference fixtures; it was made in the same way from six families' templates."""
import json, os, random, sys
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
from transformers.utils import chat_template_utils

HERE = os.path.dirname(os.path.abspath(__file__))
MISSING = object()


def user(content):
    return {"role": "user", "content": content}


def model(content, **more):
    return {"role": "assistant", "content": content, **more}


def tool(content, **more):
    return {"role": "tool", "content": content, **more}


def call(name, arguments, **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def function(name, parameters=None, description="Does it", **more):
    parameters = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, "description": description, **parameters, **more}}


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)[:1]}


ADDRESS = {"type": "object", "description": "Where", "properties": {
    "street": {"type": "string"}, "number": {"type": "integer", "nullable": True},
    "geo": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat", "lon"]}}, "required": ["street"]}
VALUES = {"text": "äöü \"q\" <|\"|>", "empty": "", "int": 42, "negative": -7, "zero": 0, "float": 1.5, "whole": 100000.0, "small": 1e-05, "tiny": 5e-324,
          "limit": 0.0001, "big": 1e16, "below": 123456789012345.6, "last": 1234567890123456.0, "first": 12345678901234567.0, "huge": 1.7976931348623157e308, "third": 1 / 3, "minus": -0.0, "true": True,
          "false": False, "none": None, "list": [1, [2, "x"], {"b": None, "a": []}], "object": {"Z": 1, "a": {"b": {}}, "B": 2}}
ARGUMENTS = call("all", VALUES, id="a1")

BY_HAND = [
    ("developer", [{"role": "developer", "content": " Short. "}, user("Hi")], {}),
    ("system alone", [{"role": "system", "content": "Hm"}], {}),
    ("system alone, thinking", [{"role": "system", "content": "Hm"}], {"enable_thinking": True}),
    ("system later", [user("Hi"), {"role": "system", "content": "Now"}, user("So")], {}),
    ("two systems", [{"role": "system", "content": "A"}, {"role": "system", "content": "B"}, user("So")], {}),
    ("system of parts", [{"role": "system", "content": [{"type": "text", "text": "it's \"so\"\n\u00ad\u200b\U000e0001é"}]}, user("Hi")], {}),
    ("system null", [{"role": "system", "content": None}, user("Hi")], {}), ("system without content", [{"role": "system"}, user("Hi")], {}),
    ("system number", [{"role": "system", "content": 1.25}, user("Hi")], {}),
    ("role model", [user("Hi"), {"role": "model", "content": "Yo"}, {"role": "model", "content": "Yo yo"}, user("So")], {}),
    ("assistant then model", [user("Hi"), model("Yo"), {"role": "model", "content": "Yo yo"}], {"add_generation_prompt": False}),
    ("two assistants", [user("Hi"), model("Yo"), model("yo"), user("So")], {}),
    ("unknown role", [{"role": "narrator", "content": " It was dark. "}, user("So")], {}), ("empty role", [{"role": "", "content": "x"}], {}),
    ("tool alone", [tool("12")], {}), ("tool first", [tool("12"), user("Hi")], {}),
    ("white space", [user("\u001c\u00a0\u2003\ufeff x \u200b \u3000\u0085\n")], {}),
    ("channels", [user("Hi"), model("a<|channel>thought\nx<channel|>b<channel|> c <|channel>y"), user("a<|channel>b<channel|>c")], {}),
    ("thinking, system, tools", [{"role": "system", "content": "S"}, user("Hi")], {"enable_thinking": True, "tools": [function("f")]}),
    ("no messages", [], {}), ("no role", [{"content": "x"}], {}), ("role null", [{"role": None, "content": "x"}], {}), ("message text", ["hi"], {}),
    ("content null", [user(None)], {}), ("content missing", [{"role": "user"}], {}), ("content number", [user(3)], {}), ("content object", [user({"text": "x"})], {}),
    ("assistant content null", [user("x"), model(None), user("y")], {}), ("no generation prompt, user", [user("x")], {"add_generation_prompt": False}),
    ("parts", [user([{"type": "text", "text": " a "}, {"type": "image"}, {"type": "audio"}, {"type": "video"}, {"type": "text", "text": " b "}, {"type": "other"}, {}, "x", 3])], {}),
    ("parts of a model", [user("x"), model([{"type": "text", "text": " a<|channel>b<channel|>c "}, {"type": "image"}]), user("y")], {}),
    ("part without text", [user([{"type": "text"}])], {}), ("part with null", [user([{"type": "text", "text": None}])], {}),
    ("part with list", [user([{"type": "text", "text": ["a", "it's"]}])], {}), ("model part without text", [user("x"), model([{"type": "text"}])], {}),
    ("image url", [user([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "?"}])], {}),
    ("arguments of all kinds", [user("x"), model("", tool_calls=[ARGUMENTS])], {}), ("arguments as text", [user("x"), model("", tool_calls=[call("f", '{"a": 1}')])], {}),
    ("arguments null", [user("x"), model("", tool_calls=[call("f", None)])], {}), ("arguments list", [user("x"), model("", tool_calls=[call("f", [1])])], {}),
    ("two calls", [user("x"), model("", tool_calls=[call("f", {"a": 1}, id="1"), call("g", {}, id="2")]), tool("one", tool_call_id="1"), tool("two", tool_call_id="2")], {}),
    ("two calls, other order", [user("x"), model("Wait.", tool_calls=[call("f", {}, id="1"), call("g", {}, id="2")]), tool("two", tool_call_id="2"), tool("one", tool_call_id="1"), model("Done."), user("y")], {}),
    ("call without response", [user("x"), model("", tool_calls=[call("f", {})])], {}), ("call and text", [user("x"), model("I look.", tool_calls=[call("f", {})])], {}),
    ("call, text, next", [user("x"), model("I look.", tool_calls=[call("f", {})]), user("y")], {}),
    ("call without function", [user("x"), model("", tool_calls=[{"id": "1"}])], {}), ("call without name", [user("x"), model("", tool_calls=[{"function": {}}])], {}),
    ("calls empty", [user("x"), model("y", tool_calls=[])], {}), ("calls null", [user("x"), model("y", tool_calls=None)], {}), ("calls object", [user("x"), model("y", tool_calls={"a": 1})], {}),
    ("response by name", [user("x"), model("", tool_calls=[call("f", {}, id="1")]), tool("r", name="g", tool_call_id="9")], {}),
    ("response of no tool", [user("x"), model("", tool_calls=[call("f", {}, id="1")]), tool("r", tool_call_id="9")], {}),
    ("response without ids", [user("x"), model("", tool_calls=[call("f", {})]), tool("r")], {}),
    ("response parts", [user("x"), model("", tool_calls=[call("f", {})]), tool([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}])], {}),
    ("response bad part", [user("x"), model("", tool_calls=[call("f", {})]), tool([{"type": "text"}])], {}),
    ("response text part", [user("x"), model("", tool_calls=[call("f", {})]), tool(["a"])], {}),
    ("response object", [user("x"), model("", tool_calls=[call("f", {})]), tool({"a": 1})], {}), ("response empty object", [user("x"), model("", tool_calls=[call("f", {})]), tool({})], {}),
    *((f"response {v!r}", [user("x"), model("", tool_calls=[call("f", {})]), tool(v)], {}) for v in (None, 3, 2.5, True, [], "")),
    ("response missing", [user("x"), model("", tool_calls=[call("f", {})]), {"role": "tool"}], {}),
    ("own responses", [user("x"), model("", tool_calls=[call("f", {})], tool_responses=[{"name": "f", "response": VALUES}, {"name": "g", "response": "text"}])], {}),
    ("own responses, text", [user("x"), model("So.", tool_responses=[{"response": [1]}, {"name": "g"}, {}]), user("y")], {}),
    ("own responses, then tools", [user("x"), model("", tool_calls=[call("f", {})], tool_responses=[{"name": "f", "response": 1}]), tool("12")], {}),
    ("own response name null", [user("x"), model("", tool_responses=[{"name": None, "response": 1}])], {}),
    ("reasoning", [user("x"), model("", reasoning="because", tool_calls=[call("f", {})]), tool("r")], {}),
    ("reasoning content", [user("x"), model("", reasoning="", reasoning_content="because", tool_calls=[call("f", {})]), tool("r"), model("ok")], {}),
    ("reasoning before a user", [user("x"), model("", reasoning="because", tool_calls=[call("f", {})]), tool("r"), model("ok"), user("y")], {}),
    ("reasoning without call", [user("x"), model("ok", reasoning="because")], {}), ("reasoning list", [user("x"), model("", reasoning=["a"], tool_calls=[call("f", {})])], {}),
    ("image and call", [user("x"), model([{"type": "image"}], tool_calls=[call("f", {})]), user("y")], {}),
    ("chain of calls", [user("x"), model("", tool_calls=[call("f", {}, id="1")]), tool("r1", tool_call_id="1"), model("", reasoning="more", tool_calls=[call("g", {}, id="2")]), tool("r2", tool_call_id="2")], {}),
    ("tool messages apart", [user("x"), model("", tool_calls=[call("f", {}, id="1")]), user("y"), tool("r", tool_call_id="1")], {}),
]
TOOLS = [
    ("nested objects", [function("f", schema(address=ADDRESS, name={"type": "string", "description": "Who"}))]),
    ("array of strings", [function("f", schema(tags={"type": "array", "description": "Tags", "items": {"type": "string", "enum": ["a", "b"]}}))]),
    ("array of objects", [function("f", schema(list={"type": "array", "items": ADDRESS, "nullable": True}))]),
    ("array of arrays", [function("f", schema(m={"type": "array", "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "default": None}}))]),
    ("array of mixed", [function("f", schema(m={"type": "array", "items": {"type": ["string", "null"], "properties": 3, "x": {"B": True, "a": 1.5}}}))]),
    ("array without items", [function("f", schema(m={"type": "array"}, n={"type": "array", "items": {}}, o={"type": "array", "items": [1]}))]),
    ("enum of numbers", [function("f", schema(n={"type": "integer", "enum": [1, 2]}, s={"type": "string", "enum": ["x"], "description": "d", "nullable": True}))]),
    ("boolean, number", [function("f", schema(b={"type": "boolean"}, n={"type": "number", "minimum": 0.5}))]),
    ("type list", [function("f", schema(b={"type": ["string", "null"]}))]), ("type missing", [function("f", schema(b={"description": "d"}))]),
    ("object without properties", [function("f", schema(o={"type": "object", "additionalProperties": {"type": "string"}, "title": "T", "flag": True, "n": 3, "l": [1]}))]),
    ("object, bad properties", [function("f", schema(o={"type": "object", "properties": [1], "required": []}))]),
    ("parameter named type", [function("f", {"type": "object", "properties": {"type": {"type": "string"}, "Description": {"type": "string"}, "required": {"type": "string"}, "z": {"type": "string"}}})]),
    ("order of names", [function("f", schema(b={"type": "string"}, A={"type": "string"}, a={"type": "string"}, B={"type": "string"}, _={"type": "string"}, é={"type": "string"}, É={"type": "string"}, Z={"type": "string"}))]),
    ("no parameters", [function("f")]), ("empty parameters", [function("f", {})]), ("parameters without type", [function("f", {"properties": {"a": {"type": "string"}}})]),
    ("parameters without properties", [function("f", {"type": "object", "required": ["a", "b"]})]), ("parameters text", [function("f", "abc")]),
    ("properties list", [function("f", {"type": "object", "properties": [1]})]), ("property text", [function("f", {"type": "object", "properties": {"a": "string", "b": None, "c": 1}})]),
    ("required text", [function("f", {"type": "object", "properties": {"a": {"type": "object", "required": 3}}})]),
    ("description null", [function("f", description=None)]), ("no description", [{"function": {"name": "g"}}]), ("no name", [{"function": {"description": "x"}}]),
    ("response", [function("f", response={"description": "What", "type": "object", "properties": {"a": {"type": "string"}}})]),
    ("response text", [function("f", response={"type": "string"})]), ("response null", [function("f", response=None)]),
    ("no function", [{"name": "f"}]), ("two tools", [function("f"), function("g", schema(a={"type": "string"}))]), ("upper case types", [function("f", {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}})]),
    ("no tools", []),
]
BY_HAND += [(f"tools: {title}", [user("Hi")], {"tools": tools}) for title, tools in TOOLS]


def pick(rnd, *values):
    return rnd.choice(values)


def value(rnd, depth=0):
    kind = rnd.randrange(10 if depth < 3 else 7)
    if kind < 3:
        return pick(rnd, "x", "", " two words ", "it's", "a\"b", "日本\n", "<channel|>", "a<|channel>b<channel|>c", "object", "String", "array")
    if kind < 7:
        return pick(rnd, 0, 1, -3, 2.5, 1e20, True, False, None)
    if kind < 8:
        return [value(rnd, depth + 1) for _ in range(rnd.randrange(4))]
    return {pick(rnd, "a", "B", "b", "c_d", "type", "text", "É"): value(rnd, depth + 1) for _ in range(rnd.randrange(4))}


def random_schema(rnd, depth=0):
    out = {}
    if rnd.random() < 0.95:
        out["type"] = pick(rnd, "string", "integer", "number", "boolean", "array", "object", "OBJECT", ["string", "null"])
    if rnd.random() < 0.5:
        out["description"] = pick(rnd, "A thing", "", "it's", None)
    if rnd.random() < 0.3:
        out["enum"] = [value(rnd, 3) for _ in range(rnd.randrange(3))]
    if rnd.random() < 0.2:
        out["nullable"] = pick(rnd, True, False)
    if rnd.random() < 0.2:
        out[pick(rnd, "default", "title", "format")] = value(rnd)
    if depth < 3 and rnd.random() < 0.5:
        out["items"] = random_schema(rnd, depth + 1)
    if depth < 3 and rnd.random() < 0.4:
        out["properties"] = {pick(rnd, "a", "B", "b", "type", "name", "é"): random_schema(rnd, depth + 1) for _ in range(rnd.randrange(4))}
    if rnd.random() < 0.3:
        out["required"] = [pick(rnd, "a", "B", "c") for _ in range(rnd.randrange(3))]
    return out


def random_message(rnd):
    role = pick(rnd, "user", "user", "assistant", "assistant", "assistant", "tool", "tool", "system", "model", "other")
    content = pick(rnd, "Hello", " so ", "", "a<|channel>b<channel|>c", None, value(rnd), MISSING,
                   [pick(rnd, {"type": "text", "text": pick(rnd, "x", " y ", "<channel|>")}, {"type": pick(rnd, "image", "audio", "video", "file")}, value(rnd)) for _ in range(rnd.randrange(4))])
    out = {"role": role, "content": content, "name": pick(rnd, "f", "g", MISSING, MISSING), "tool_call_id": pick(rnd, "1", "2", MISSING)}
    if rnd.random() < 0.4:
        out["reasoning" if rnd.random() < 0.5 else "reasoning_content"] = pick(rnd, "because", "", None)
    if role in ("assistant", "model") and rnd.random() < 0.5:
        out["tool_calls"] = [call(pick(rnd, "f", "g", "h"), value(rnd), **pick(rnd, {"id": "1"}, {"id": "2"}, {})) for _ in range(rnd.randrange(3))]
    if role in ("assistant", "model") and rnd.random() < 0.15:
        out["tool_responses"] = [{"name": "f", "response": value(rnd)} for _ in range(rnd.randrange(3))]
    return {k: v for k, v in out.items() if v is not MISSING}


def random_case(rnd, index):
    context = {}
    if rnd.random() < 0.4:
        context["tools"] = [function(pick(rnd, "f", "g"), random_schema(rnd), **pick(rnd, {}, {}, {"response": random_schema(rnd)})) for _ in range(rnd.randrange(3))]
    for key in ("enable_thinking", "add_generation_prompt"):
        if rnd.random() < 0.3:
            context[key] = pick(rnd, True, False)
    return f"random {index}", [random_message(rnd) for _ in range(rnd.randrange(1, 7))], context


def main(template, count):
    render = chat_template_utils._compile_jinja_template(open(template).read()).render
    rnd = random.Random(3)
    out = []
    for title, messages, context in BY_HAND + [random_case(rnd, i) for i in range(count)]:
        messages, context = json.loads(json.dumps([messages, {"add_generation_prompt": True, "bos_token": "<bos>", **context}]))
        try:
            result = {"rendered": render(messages=messages, **context)}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        out.append({"title": title, "messages": messages, "context": context, **result})
    with open(f"{HERE}/gemma4_more.json", "w") as f:
        f.write('{"gemma4":[\n' + ",\n".join(json.dumps(case) for case in out) + "\n]}\n")
    print(len(out), sum("error" in case for case in out))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 120)
