"""Replays conversations of coding agents, turn by turn, in the form of their clients (see cases.py):
tests/data/agents.

In: a Target. Out: nothing. The assistant's messages are recorded too, so that any model can be tested. Each turn is a
stream, which must come to its proper end. Its prompt must be longer than the one before by what is new in the turn.
"""
import json
from pathlib import Path

from cases import Skip, case

AGENTS = Path(__file__).parents[2] / "tests" / "data" / "agents"


def body_of(recorded, list_so_far, turn):
    limit = "max_tokens" if "max_tokens" in recorded["body"] else "max_output_tokens"
    body = recorded["body"] | {recorded["list"]: list_so_far, "temperature": 0, limit: 8}
    return json.loads(json.dumps(body).replace("@TURN@", f"{turn:05x}"))


def ask(target, recorded, list_so_far, turn):
    """Returns the stream's events."""
    body = body_of(recorded, list_so_far, turn)
    status, text = target.curl("POST", recorded["path"], body, headers=["anthropic-version: 2023-06-01"])
    if status == 400 and ("maximum context length" in text or "prompt is too long" in text):
        raise Skip("the server's context is too short")
    assert status == 200, f"turn {turn}: {status} {text[:300]}"
    return [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:")]


def turns(target, name, usage_of):
    """Returns the usage of each turn. The last turn comes after a compaction."""
    recorded, list_so_far, taken = json.loads((AGENTS / f"{name}.json").read_text()), [], []
    for turn, more in enumerate(recorded["turns"]):
        list_so_far = list_so_far + more
        taken.append(usage_of(ask(target, recorded, list_so_far, turn)))
        assert turn == 0 or taken[-1][0] > taken[-2][0], f"turn {turn}: {taken}"
    taken.append(usage_of(ask(target, recorded, recorded["compacted"], len(taken))))
    assert len(taken) == 11 and taken[-1][0] < taken[-2][0], taken
    return taken


def check_kept(taken):
    """Checks that at least half of the previous turn was found in the cache. The rest may differ, because a template
    may drop thoughts of ended turns."""
    for before, (_, cached) in zip(taken, taken[1:-1]):
        assert 2 * cached >= before[0], taken


@case("codex: a recorded conversation")
def codex(target):
    def usage_of(events):
        assert events[0]["type"] == "response.created", events[0]
        assert events[-1]["type"] in ("response.completed", "response.incomplete"), events[-1]
        done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        assert done == events[-1]["response"]["output"], done
        usage = events[-1]["response"]["usage"]
        return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]

    taken = turns(target, "codex", usage_of)
    if target.ours: check_kept(taken)


@case("claude code: a recorded conversation")
def claude_code(target):
    def usage_of(events):
        kinds = [event["type"] for event in events if event["type"] != "ping"]
        assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds
        assert kinds.count("content_block_start") == kinds.count("content_block_stop") > 0, kinds
        usage = next(event["usage"] for event in events if event["type"] == "message_delta")
        cached = usage["cache_read_input_tokens"]
        return usage["input_tokens"] + cached, cached

    taken = turns(target, "claude-code", usage_of)
    if target.ours: check_kept(taken)
    recorded = json.loads((AGENTS / "claude-code.json").read_text())
    body = body_of(recorded, recorded["compacted"], 0)
    counted = target.json("POST", "/v1/messages/count_tokens", {key: body[key] for key in ("model", "system", "tools",
                                                                                           "messages", "thinking")})
    assert counted["input_tokens"] <= taken[-1][0], f"{counted} tokens are not {taken[-1]}"
