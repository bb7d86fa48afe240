"""Writes the texts that Jinja2, in transformers' configuration, renders from the templates of tests/data/templates.

    python3 tests/references/templates.py tests/data/templates

The templates there (NAME.jinja) were written for this, in the style of published ones. Out, in the same folder:

conversations.json  [{"title", "given": variables}]: what a caller gives a template; messages are among them
rendered.json       {"templates": {NAME: {"own": variables, "rendered": ["LENGTH HASH" or null, ...],
                    "control": ["COUNT HASH" or null, ...]}}, "texts": [...], "tokens": [...]}

`own` has the model's variables; variables of `given` with the same names replace them. `rendered` has an entry for
each conversation: the length in bytes and the FNV-1a hash of the rendered text as UTF-8, or null if rendering raises
an error. `texts` has some complete texts: {"template", "conversation": index, "text"}. The clock shows CLOCK.

`control` tells which of the `tokens` in a rendered text the template itself wrote: their number, and the FNV-1a hash
of "POSITION:TOKEN," for each (the byte's position and the token's index, ascending). To find them, each conversation
is rendered once more with all its letters replaced by other characters. The entry is null if this changed more than
the letters, because the template had looked at them.
"""
import datetime
import json
import re
import sys
from pathlib import Path

from transformers.utils import chat_template_utils

CLOCK = datetime.datetime(2024, 3, 5, 14, 7, 9)

# ------------------------------------------------------------------------------------------------------ conversations


def user(content, **more):
    return {"role": "user", "content": content, **more}


def model(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content, **more):
    return {"role": "system", "content": content, **more}


def call(name, arguments, id):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(content, id, **more):
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def function(name, description, properties, **more):
    parameters = {"type": "object", "properties": properties, **more}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def text(words):
    return {"type": "text", "text": words}


TIDES = function("tides", "When the sea is high at a place", {
    "place": {"type": "string", "description": "A harbour's name"},
    "unit": {"type": "string", "enum": ["m", "ft"]}}, required=["place"])
BOOK = function("book_boat", "Books a boat.\nPays nothing.", {
    "boat": {"type": "object", "description": "Which", "properties": {
        "length": {"type": "number", "description": "in metres"}, "sails": {"type": "integer", "nullable": True},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"}}, "required": ["length"]},
    "crew": {"type": "array", "items": {"type": "string"}, "description": "names \"as they are\""},
    "days": {"type": ["integer", "string"]}, "insured": {"type": "boolean", "default": False},
    "extra": {"type": "object", "additionalProperties": {"type": "number"}},
    "route": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
    "pay": {"anyOf": [{"type": "string", "description": "a word"}, {"type": "number"}]}, "any": {}},
    required=["boat", "crew"])
EMPTY = function("now", "The time", {})

SPECIAL = """<bos><eos><pad><unk><s></s><|begin_of_text|><|end_of_text|><|eot_id|><|eom_id|><|start_header_id|>user
<|end_header_id|><|python_tag|><|im_start|>system
<|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response><|vision_start|>
<|image_pad|><|vision_end|>[INST][/INST]<<SYS>><</SYS>>[AVAILABLE_TOOLS][/AVAILABLE_TOOLS][TOOL_CALLS][TOOL_RESULTS]
[/TOOL_RESULTS][SYSTEM_PROMPT][/SYSTEM_PROMPT][IMG]<start_of_turn>model
<end_of_turn><start_of_image><|turn>model
<turn|><|channel>thought
<channel|><|think|><|tool><tool|><|tool_call><tool_call|><|tool_response><tool_response|><|"|><|image|>[gMASK]<sop>
<|system|><|user|><|assistant|><|observation|><|begin_of_image|><|end_of_image|><arg_key></arg_key><arg_value>
</arg_value>/nothink<｜begin▁of▁sentence｜><｜end▁of▁sentence｜><｜User｜><｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁calls▁end｜>
<｜tool▁call▁begin｜><｜tool▁call▁end｜><｜tool▁sep｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜><｜tool▁output▁end｜>
<|START_OF_TURN_TOKEN|><|END_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|USER_TOKEN|><|CHATBOT_TOKEN|><|END_THINKING|><|end|>
<|start|><|message|><|channel|>final<|return|><|call|><|start_of_role|>system<|end_of_role|>]~!b[]~b]system
[e~[<|im_user|><|im_middle|><|tool_calls_section_begin|><|end_of_turn|>[|system|][|endofturn|]<SPECIAL_10>System
{{ messages }}{% raw %}{# #}{% endraw %}"""

# Without the marks that templates look for in an assistant's messages.
SPOKEN = SPECIAL.replace("<think></think>", "").replace("<|channel>thought\n<channel|>", "")

UNICODE = ("ä ö ü ß ẞ İ ı ǆ ﬁ Σας"
           " 日本語 한국어 עברית שָׁלוֹם العربية مَرْحَبًا ไทยน้ำ e\u0301 n\u0303\u0323"
           " 😀👩‍👩‍👧‍👦🇩🇪👍🏽 \u202ertl\u202c \ufeff\u200b\u00ad\u2028\u2029\u0085 𝔘𐍈")

VALUES = {
    "text": "ä \"q\" \\ <|\"|> '", "empty": "", "int": 42, "negative": -7, "zero": 0, "float": 1.5, "whole": 100000.0,
    "small": 1e-05, "big": 1e16, "third": 1 / 3, "minus": -0.0, "long": 9007199254740993, "true": True, "false": False,
    "none": None, "list": [1, [2, "x"], {"b": None, "a": []}], "object": {"Z": 1, "a": {"b": {}}, "B": 2}}

IMAGE = {"type": "image"}
IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:,"}}
TIDES_OF_BREST = call("tides", {"place": "Brest"}, "abc123DEF")

ASKED = [
    user("When is the sea high in Brest, and in Ålesund?"),
    model("", tool_calls=[call("tides", {"place": "Brest", "unit": "m"}, "abc123DEF"),
                          call("tides", {"place": "Ålesund"}, "ghi456JKL")]),
    result("04:12, 6.3 m", "abc123DEF", name="tides"), result("{\"at\": \"11:40\"}", "ghi456JKL", name="tides")]

TURNS = [user("Hi"), model("Hello, what can I do?"), user("What is 2+2?")]

PIRATE = [system("You are a pirate."), user("Hi"), model("Arr!"), user("Again"), model("Arr, again!"), user("Bye")]

STEPS = [
    system("Step by step."), user("Tides and a boat"),
    model(None, tool_calls=[call("tides", {"place": "Brest"}, "aaaaaaaa1")], reasoning_content="\nfirst tides\n"),
    result("04:12", "aaaaaaaa1"),
    model("Now the boat", tool_calls=[call("book_boat", VALUES, "aaaaaaaa2")], reasoning_content="then a boat"),
    result([text("booked"), text("twice")], "aaaaaaaa2"), model("<think>\nall done\n</think>\n\nDone.")]

SPECIAL_CALLS = [
    user("?", name=SPECIAL[:40]),
    model(SPOKEN, tool_calls=[call("<|im_end|><tool_call|>", {"<|turn>": SPECIAL, "</arg_key>": ["<|eot_id|>"]},
                                    "<s>456789")]),
    result(SPECIAL, "<s>456789", name="<turn|>"), user("So?")]

LONG = [m for i in range(60) for m in (
    user(f"Question {i}: " + "lorem ipsum dolor " * (i % 17)),
    model(f"Answer {i}.\n" + "\n".join(["sit amet"] * (i % 11))))] + [user("last")]

VARIABLES = {
    "documents": [{"doc_id": 7, "title": "T", "text": "First\npaper"}, {"title": "U", "text": "Second"}],
    "thinking": False, "controls": {"length": "short", "citations": True}, "date_string": "1 Jan 2020",
    "builtin_tools": ["code_interpreter", "search"], "custom_tools": [EMPTY], "xml_tools": [EMPTY],
    "python_tools": ["def f(): ..."], "reasoning_effort": "high", "model_identity": "a test", "reasoning": False,
    "use_default_system": True, "bos_token": "<given>"}

CONVERSATIONS = [
    ("one user", [user("Hello!")], {}),
    ("a system", [system("Be brief."), user("Hello!")], {"tools": None, "documents": None}),
    ("two turns", TURNS, {"enable_thinking": None}),
    ("a system and three turns", PIRATE, {"enable_thinking": True, "thinking": True}),
    ("several systems", [system("One."), system("Two."), user("Hi"), model("Yes?"), system("Three."), user("Go on")],
     {}),
    ("no message", [], {}),
    ("a system alone", [system("Alone.")], {"enable_thinking": False}),
    ("nothing in them", [user(""), model(""), user("")], {"add_generation_prompt": False}),
    ("null in them", [user("Hi"), model(None), user("?"), {"role": "assistant"}, user("!")], {}),
    ("spaces", [system(" \t a\r\nb "), user("\n  leading and trailing \r\n "), model("\n\n x \n"),
                user("\u00a0\u3000z\x1c")], {}),
    ("text parts", [system([text("In "), text(" parts.")]), user([text("one"), text(" two")]),
                    model([text("three")]), user([text("four")])], {}),
    ("pictures", [user([IMAGE, text("What is this?")]), model("A boat."),
                  user([text("And "), IMAGE_URL, IMAGE, text("?")])], {"add_vision_id": True}),
    ("unicode", [system(UNICODE), user(UNICODE[::-1]), model(UNICODE.upper()), user("\U0010ffff\u0000\x7f")], {}),
    ("special tokens", [system(SPECIAL), user(SPECIAL), model(SPOKEN), user("x" + SPECIAL + "y")], {}),
    ("special tokens in calls", SPECIAL_CALLS,
     {"tools": [function("<|im_end|>", SPECIAL, {"<|user|>": {"type": "string", "description": "[INST]"}})]}),
    ("tools", [user("When is the sea high?")], {"tools": [TIDES]}),
    ("tools and a system", [system("Use tools."), user("Book it.")],
     {"tools": [TIDES, BOOK, EMPTY], "enable_thinking": True, "tools_in_user_message": False}),
    ("a call", [user("The sea in Brest?"), model("", tool_calls=[TIDES_OF_BREST])],
     {"tools": [TIDES], "add_generation_prompt": False}),
    ("a call with words",
     [user("The sea in Brest?"), model(" I look. ", tool_calls=[TIDES_OF_BREST], reasoning_content="Brest\n"),
      result("04:12", "abc123DEF"), model("At 4."), user("Thanks")], {"tools": [TIDES], "enable_thinking": False}),
    ("calls side by side", ASKED, {"tools": [TIDES]}),
    ("calls answered", ASKED + [model("At 4 and at 11.", reasoning_content="both known"), user("Book a boat.")],
     {"tools": [TIDES, BOOK]}),
    ("steps", STEPS, {"tools": [TIDES, BOOK], "add_generation_prompt": False}),
    ("thoughts", [user("Q1"), model("<think>\nhm\n</think>\n\nA1"), user("Q2"),
                  model("A2", reasoning_content="because", thinking="why"), user("Q3 /no_think")],
     {"enable_thinking": True}),
    ("arguments as text",
     [user("?"), model("", tool_calls=[call("tides", '{"place": "Brest"}', "abc123DEF")]),
      result({"at": 4.5, "ok": True, "more": [None]}, "abc123DEF"), user("!")], {"tools": [TIDES]}),
    ("no arguments",
     [user("?"), model("", tool_calls=[call("now", {}, "abc123DEF"), {"name": "bare", "arguments": {}}]),
      result(12, "abc123DEF")], {"tools": [EMPTY]}),
    ("odd roles", [{"role": "developer", "content": "Dev."}, user("Hi"),
                   {"role": "narrator", "content": "It was dark."}, model("Who is there?"),
                   {"role": "", "content": "?"}], {}),
    ("two users", [user("A"), user("B"), model("C"), model("D")], {"add_generation_prompt": False}),
    ("not texts", [user(12.5), model(True), user({"a": [1, None, "it's"]}), model([["x"]])], {}),
    ("long", LONG, {"tools": [TIDES] * 3}),
    ("variables", [system("/system_override Docs.", tools="[]"), user("What do they say?", weight=0),
                   model("Nothing", weight=1), user("/think Sure?")], VARIABLES),
]

# ---------------------------------------------------------------------------------------------------------- templates

CHATML = {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
LLAMA = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
SENTENCE = {"bos_token": "<s>", "eos_token": "</s>"}
GEMMA = {"bos_token": "<bos>", "eos_token": "<eos>"}
DEEPSEEK = {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}
OWN = {"llama": LLAMA, "functionary": LLAMA, "mistral": SENTENCE, "vicuna": SENTENCE, "openchat": SENTENCE,
       "gemma": GEMMA, "deepseek": DEEPSEEK, "llama2": SENTENCE}

TEXTS = [("numbers", 2), ("undefined", 2), ("falcon", 4), ("command-r", 16), ("block-calls", 19)]


def own_variables(name):
    """Returns the variables of the longest prefix of the template's name that has any."""
    found = [prefix for prefix in OWN if name.startswith(prefix)]
    return OWN[max(found, key=len)] if found else CHATML


def render(template, variables):
    """Returns the text, or None if rendering raises an error."""
    try:
        return template.render(strftime_now=CLOCK.strftime, **variables)
    except Exception:  # undefined values, wrong types, raise_exception, or anything else
        return None


# -------------------------------------------------------------------------------------------- the template's own tokens

TOKENS = sorted(set(re.findall(r"<[^<> \n]+>|\[[^][ \n]+\]", SPECIAL)))
PRIVATE = 0xE000  # characters without a meaning, case or white space
ROLES = {"system", "developer", "user", "assistant", "model", "tool", "function", "ipython"}  # the template's own


def hide(words):
    """Replaces letters. Quotes and backslashes stay, because JSON would write them as two characters."""
    return "".join(chr(PRIVATE + ord(c)) if "!" <= c <= "~" and c not in "\"\\" else c for c in words)


def show(words):
    return "".join(chr(ord(c) - PRIVATE) if PRIVATE <= ord(c) < PRIVATE + 128 else c for c in words)


def hidden(value, key=None, names=False):
    """Returns the value with its texts hidden. names: its keys are hidden too."""
    if isinstance(value, str):
        return value if key == "type" or key == "role" and value in ROLES else hide(value)  # templates compare these
    if isinstance(value, list):
        return [hidden(item, key) for item in value]
    if isinstance(value, dict):
        return {hide(k) if names else k: hidden(v, None if names else k, k in ("arguments", "properties"))
                for k, v in value.items()}
    return value


def control(text, masked):
    """Returns the entry of `control`. One message says "all done" between marks like those of templates. They
    can't be told from the template's own marks, so the entry is null."""
    if text is None or masked is None or show(masked) != text or "all done" in text:
        return None
    found = sorted((match.start(), i) for i, token in enumerate(TOKENS)
                   for match in re.finditer(re.escape(token), masked))
    places = "".join(f"{len(text[:at].encode())}:{i}," for at, i in found)
    return f"{len(found)} {fnv1a(places.encode()):016x}"


def fnv1a(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def summary(text):
    if text is None:
        return None
    data = text.encode("utf-8", "surrogatepass")
    return f"{len(data)} {fnv1a(data):016x}"


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, indent=0) + "\n")


def main(folder):
    conversations = [{"title": title, "given": {"messages": messages, "add_generation_prompt": True, **more}}
                     for title, messages, more in CONVERSATIONS]
    templates, texts = {}, []
    for path in sorted(folder.glob("*.jinja")):
        template = chat_template_utils._compile_jinja_template(path.read_bytes().decode())
        own = own_variables(path.stem)
        rendered = [render(template, {**own, **conversation["given"]}) for conversation in conversations]
        masked = [render(template, {**own, **hidden(conversation["given"])}) for conversation in conversations]
        templates[path.stem] = {"own": own, "rendered": [summary(text) for text in rendered],
                                "control": [control(text, mask) for text, mask in zip(rendered, masked)]}
        texts += [{"template": name, "conversation": i, "text": rendered[i]} for name, i in TEXTS if name == path.stem]
        print(f"{path.stem}: {sum(text is not None for text in rendered)} rendered")
    write(folder / "conversations.json", conversations)
    write(folder / "rendered.json", {"templates": templates, "texts": texts, "tokens": TOKENS})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
