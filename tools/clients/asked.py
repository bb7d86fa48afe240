"""Draws random requests for text, and reduces their answers to one form, the same for whole answers and streams.

In: a random.Random. Out: requests, each a path and a body; and from an answer everything that must be the same
whenever the request is repeated: texts, log-probabilities, reasons, counts. Ids, times and the number of cached tokens
are left out.
"""
import json
import threading
import time

from server import Failure, Refused

CHAT, COMPLETION, NATIVE = "/v1/chat/completions", "/v1/completions", "/completion"

WORDS = """the a of and to in is on with for water river engine page letter small large old new north winter garden
number sum list string return int for if else while value key name file line open close read write house street
morning evening because however between under over every never always three seven twelve hundred""".split()
SYSTEM = "You are a careful assistant. Answer in short sentences, name what you use, and say what you do not know. " * 4
STOPS = ["e", " the", "\n", ".", "ing", ", ", "0", "</", "qq"]


def words(random, longest):
    count = 1 + int(longest * random.random() ** 2)
    text = " ".join(random.choice(WORDS) for _ in range(count))
    return text.capitalize() + random.choice([".", "?", ":", "", "\n", " é ß 雨 🌧"])


def sampling(random):
    """Returns sampling settings: greedy, or sampled with a seed in any of the supported ways."""
    if random.random() < 0.35: return {"temperature": 0}
    body = {"temperature": random.choice([0.2, 0.7, 1.0, 1.5]), "seed": random.randrange(2 ** 31)}
    ways = {"top_k": [0, 1, 5, 40], "top_p": [0.5, 0.9, 1.0], "min_p": [0, 0.05, 0.3], "repeat_penalty": [1.0, 1.3],
            "presence_penalty": [0.5, -0.5], "frequency_penalty": [0.3, 1.0], "repeat_last_n": [-1, 0, 16],
            "typical_p": [0.8], "top_n_sigma": [1.5], "dry_multiplier": [0.8], "xtc_probability": [0.5],
            "dynatemp_range": [0.3], "logit_bias": [[[17, -5], [21, 2.5]], {"17": -100}]}
    chance = {"top_k": 0.5, "top_p": 0.5, "min_p": 0.3}
    for name, values in ways.items():
        if random.random() < chance.get(name, 0.12): body[name] = random.choice(values)
    return body


def messages(random, longest):
    turns = [{"role": "system", "content": SYSTEM}] if random.random() < 0.4 else []
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        turns += [{"role": "user", "content": words(random, longest // 2)},
                  {"role": "assistant", "content": words(random, longest // 2)}]
    return turns + [{"role": "user", "content": words(random, longest)}]


def chat(random, longest):
    body = {"messages": messages(random, longest)}
    if random.random() < 0.4: body |= {"logprobs": True, "top_logprobs": random.choice([0, 1, 5])}
    return CHAT, body


def completion(random, longest):
    prompt = words(random, longest)
    if random.random() < 0.1: prompt = [prompt, words(random, longest)]
    body = {"prompt": SYSTEM + prompt if isinstance(prompt, str) and random.random() < 0.3 else prompt}
    if random.random() < 0.4: body["logprobs"] = random.choice([1, 5])
    return COMPLETION, body


def native(random, longest):
    body = {"prompt": words(random, longest), "return_tokens": True}
    if random.random() < 0.4: body["n_probs"] = random.choice([1, 5])
    return NATIVE, body


def request(random, longest=120, most=48):
    """Returns a path and a body, with prompts of this many words and answers of this many ids at most."""
    path, body = random.choice([chat, chat, completion, native])(random, longest)
    body |= sampling(random)
    body["n_predict" if path == NATIVE else "max_tokens"] = 1 + int(most * random.random())
    if random.random() < 0.3: body["stop"] = random.sample(STOPS, random.choice([1, 1, 2]))
    if path != NATIVE and random.random() < 0.1: body["n"] = 2
    if random.random() < 0.1: body["ignore_eos"] = True
    return path, body | manner(random)


def manner(random):
    """Returns settings that do not change an answer's content: whole or as a stream, with or without drafts."""
    body = {"stream": random.random() < 0.5}
    if body["stream"]: body["stream_options"] = {"include_usage": True}
    depth = random.choice([None, None, 0, 2, 5])
    return body if depth is None else body | {"speculative.n_max": depth}


def otherwise(random, body):
    """Returns the same request with other settings from `manner`."""
    kept = {key: value for key, value in body.items() if key not in ("stream", "stream_options", "speculative.n_max")}
    return kept | manner(random)


# ---------------------------------------------------------------------------------------------------------- answers

# Parts of an answer that are joined over the events of a stream: choices, their messages and deltas,
# log-probabilities.
TEXTS = ("content", "reasoning_content", "text", "arguments", "name")
LASTS = ("finish_reason", "stop_type", "stopping_word", "truncated", "tokens_evaluated", "tokens_predicted", "role")


def join(into, part):
    """Appends a part of a message, a choice or its log-probabilities to the parts before it."""
    for key, value in part.items():
        if value is None or key in ("index", "id", "type", "message", "delta"): continue
        if key in LASTS: into[key] = value
        elif key in TEXTS and isinstance(value, str): into[key] = into.get(key, "") + value
        elif key == "tool_calls":
            for at, call in enumerate(value):
                join(into.setdefault("tool_calls", {}).setdefault(str(call.get("index", at)), {}), call)
        elif isinstance(value, list): into[key] = into.get(key, []) + value
        elif isinstance(value, dict): join(into.setdefault(key, {}), value)
        else: into[key] = value
    for inner in ("message", "delta"):
        if part.get(inner): join(into, part[inner])


def said(path, events):
    """Returns the content of a whole answer (given as a list of one), or of a stream's events."""
    all_said = {}
    for event in events:
        if path == NATIVE:
            join(all_said, {key: event.get(key) for key in LASTS + ("content", "tokens", "completion_probabilities")})
            continue
        for choice in event.get("choices", []): join(all_said.setdefault(str(choice["index"]), {}), choice)
        usage = event.get("usage")
        if usage: all_said["usage"] = [usage["prompt_tokens"], usage["completion_tokens"]]
        all_said["fingerprint"] = event.get("system_fingerprint")
    for choice in all_said.values():
        if isinstance(choice, dict) and "finish_reason" not in choice and path != NATIVE:
            raise Failure(f"a choice without an end: {json.dumps(choice)[:300]}")
    return tidy(all_said)


def tidy(value):
    """Removes empty values: a stream leaves out what a whole answer gives as "" or null."""
    if isinstance(value, dict):
        return {key: kept for key, item in value.items() if (kept := tidy(item)) not in ("", None, {}, [])}
    return [tidy(item) for item in value] if isinstance(value, list) else value


def ask(client, path, body):
    """Sends a request in that form, and returns its answer."""
    if body.get("stream"): return said(path, [event for _, event in client.events(path, body)])
    answer = client.ask("POST", path, body)
    if answer.status != 200: raise Refused(answer.status, answer.headers, answer.body)
    return said(path, [answer.json()])


def ask_patiently(client, path, body, waits=None):
    """Does the same as `ask`. If the queue is full, it repeats the request when the server says so. waits: counts
    these repetitions."""
    while True:
        try:
            return ask(client, path, body)
        except Refused as refusal:
            if refusal.status != 503: raise
            if "Retry-After" not in refusal.headers: raise Failure("503 without Retry-After") from refusal
            if waits is not None: waits.append(threading.get_ident())
            time.sleep(min(2.0, float(refusal.headers["Retry-After"])))


def cut_off(client, path, body, events):
    """Disconnects after this many events of a stream."""
    for count, _ in enumerate(client.events(path, body | {"stream": True}), 1):
        if count >= events: break
    client.close()


def difference(expected, got, path=""):
    """Returns the first place where two answers differ, with both values; None if they are equal."""
    if type(expected) is type(got) is dict:
        for key in sorted(expected.keys() | got.keys()):
            found = difference(expected.get(key), got.get(key), f"{path}.{key}")
            if found: return found
        return None
    if type(expected) is type(got) is list and len(expected) == len(got):
        found = (difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(expected, got)))
        return next(filter(None, found), None)
    return None if expected == got else f"{path}: {json.dumps(expected)[:200]} became {json.dumps(got)[:200]}"
