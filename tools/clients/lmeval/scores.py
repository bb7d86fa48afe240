#!/usr/bin/env python3
"""scores.py --llama-server URL --port N: adds echoed prompts with log-probabilities to a server that lacks them.

llama-server refuses "echo". But it gives the log-probability of the token that it generates, from the model's own
logits, and a large bias makes it generate any token. So the log-probabilities of a prompt are requested one by one,
each after the ids before it, which stay in the server's cache. In: requests as lm-eval's local-completions sends them.
Out: the answers to them, and vLLM's tokenizer routes.
"""
import argparse
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from server import Client  # noqa: E402

FORCED = 10000.0


class Handler(BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        props = Client(self.server.upstream).ask("GET", "/props").json()
        self.answer({"tokenizer_class": "llama.cpp", "bos_token": props["bos_token"] or None,
                     "eos_token": props["eos_token"], "chat_template": props.get("chat_template")})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        client = Client(self.server.upstream)
        if self.path == "/tokenize":
            asked = {"content": body["prompt"], "add_special": body.get("add_special_tokens", True)}
            self.answer(client.ask("POST", "/tokenize", asked).json())
        elif self.path == "/detokenize":
            self.answer({"prompt": client.ask("POST", "/detokenize", body).json()["content"]})
        else:
            prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
            self.answer({"choices": [{"index": index, "text": "", "logprobs": echoed(client, ids)}
                                     for index, ids in enumerate(prompts)]})

    def log_message(self, *_):
        pass


def echoed(client, ids):
    """Returns lists of log-probabilities of a prompt's tokens. Each list ends with an entry for the token after the
    prompt."""
    own, best = [None], [None]
    for at in range(1, len(ids)):
        answer = client.ask("POST", "/completion", {"prompt": ids[:at], "n_predict": 1, "n_probs": 1, "temperature": 0,
                                                    "logit_bias": [[ids[at], FORCED]], "cache_prompt": True}).json()
        told = answer["completion_probabilities"][0]
        assert told["id"] == ids[at], told
        own.append(told["logprob"])
        best.append({"own": told["logprob"], "best": told["top_logprobs"][0]["logprob"]})
    return {"token_logprobs": own + [0.0], "top_logprobs": best + [{}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-server", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    server.upstream = args.llama_server
    server.serve_forever()


if __name__ == "__main__":
    main()
