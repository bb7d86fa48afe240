"""Sends invalid requests. A server must refuse each or close the connection, and continue to work.

In: a random.Random, a URL. Out: a Failure for any other answer.
"""
import json
import socket
import urllib.parse

from asked import CHAT, COMPLETION, NATIVE
from server import Failure

TURN = {"role": "user", "content": "a"}

# Bodies that are not JSON, for all paths; and bodies that are invalid for one path.
NO_JSON = [b"", b"{", b"[]", b"null", b'"a"', b"{\"prompt\": \"a\",}", b"\xff\xfe\x00",
           b"{" * 5000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"\0" * 100]
WRONG = {
    CHAT: [{}, {"messages": 5}, {"messages": {}}, {"messages": []}, {"messages": [5]}, {"messages": [{}]},
           {"messages": [{"role": 5, "content": "a"}]}, {"messages": [{"role": "user", "content": 5}]},
           {"messages": [TURN], "max_tokens": "many"}, {"messages": [TURN], "temperature": {}},
           {"messages": [TURN], "n": -1}, {"messages": [TURN], "n": 10 ** 9}, {"messages": [TURN], "stop": [1, 2]},
           {"messages": [TURN], "top_logprobs": 10 ** 9, "logprobs": True}, {"messages": [TURN], "logit_bias": 5},
           {"messages": [TURN], "tools": "all"}, {"messages": [TURN], "stream": "yes"},
           {"messages": [TURN], "regex": "((((a{1,999}){1,999}){1,999}){1,999}){1,999}"},
           {"messages": [TURN], "grammar": "root ::= " + "(" * 3000},
           {"messages": [TURN], "json_schema": {"type": "string", "minLength": 10 ** 8}},
           {"messages": [TURN], "json_schema": {"enum": [f"word {i}" for i in range(20000)]}}],
    COMPLETION: [{}, {"prompt": {"a": 1}}, {"prompt": [[[1]]]}, {"prompt": [-5]}, {"prompt": [10 ** 12]},
                 {"prompt": "a", "max_tokens": []}, {"prompt": "a", "top_p": "x"}, {"prompt": "a", "seed": {}}],
    NATIVE: [{}, {"prompt": 5.5}, {"prompt": "a", "n_predict": {}}, {"prompt": "a", "repeat_penalty": "x"},
             {"prompt": "a", "n_probs": "x"}],
}
HUGE = 10 ** 13  # more bytes than any server accepts


def head(path, length, *more):
    lines = [f"POST {path} HTTP/1.1", "Host: a", "Content-Type: application/json", f"Content-Length: {length}", *more]
    return "".join(line + "\r\n" for line in lines) + "\r\n"


def no_http(random):
    return random.choice([b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"POST / HTTP/9.9\r\n\r\n",
                          b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
                          b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n"])


def draw(random):
    """Returns the bytes to send, and true if they are a complete request, which must be answered."""
    path = random.choice(list(WRONG))
    body = random.choice(NO_JSON) if random.random() < 0.4 else json.dumps(random.choice(WRONG[path])).encode()
    kind = random.choice(["whole", "whole", "whole", "half", "huge", "chunks", "none"])
    if kind == "whole": return head(path, len(body)).encode() + body, True
    if kind == "half": return head(path, len(body) + 50).encode() + body, False
    if kind == "huge": return head(path, HUGE).encode() + b"{" * 1000, False
    if kind == "chunks": return head(path, 0, "Transfer-Encoding: chunked").encode() + b"zz\r\nab\r\n", False
    return no_http(random), False


def status_of(connection):
    """Returns the answer's status; None if the connection was closed without one."""
    try:
        line = connection.makefile("rb").readline()
    except (ConnectionError, TimeoutError):
        return None
    words = line.split()
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else None


def send(random, url):
    parts = urllib.parse.urlsplit(url)
    sent, whole = draw(random)
    with socket.create_connection((parts.hostname, parts.port), timeout=60 if whole else 2) as connection:
        try:
            connection.sendall(sent)
        except ConnectionError:
            return
        status = status_of(connection)
    if whole and status is None: raise Failure(f"no answer to {sent[:300]}")
    if status is not None and not 400 <= status < 500 and status not in (501, 505):
        raise Failure(f"{status} for {sent[:300]}")
