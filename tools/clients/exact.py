#!/usr/bin/env python3
"""exact.py COMMAND: checks that each answer is the same, alone and beside others, before a restart and after it.

In: a server's command with {port} in place of its port, such as

    'build/forerun serve -m tools/demo/target -md tools/demo/assistant -np 8 --port {port}'

Out: a line with the number of requests and answers, and a line for each answer that differed. The exit status is 1 if
any differed.

The requests are drawn at random from a seed: chats, completions and llama.cpp's own form; greedy and sampled; with
penalties, stop strings, log-probabilities, several choices. First each is sent alone. Then all are sent over many
connections, in another order and with other settings that must not matter: whole or as a stream, with other numbers of
drafts. Meanwhile other clients leave in the middle of streams, and half way the server is stopped and started again.
Texts, log-probabilities, reasons and counts must not differ at all.
"""
import argparse
import collections
import http.client
import json
import random
import sys
import threading
import time

import asked
from server import Client, Failure, Server


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cut", type=float, default=0.15, help="clients that go away, a request")
    parser.add_argument("--longest", type=int, default=120, help="words of a prompt at most")
    parser.add_argument("--most", type=int, default=48, help="ids of an answer at most")
    parser.add_argument("--shown", type=int, default=5, help="differences that are printed in full")
    return parser.parse_args()


class Crowd:
    """Connections that take requests from one list."""

    def __init__(self, url, requests, expected, wanted):
        self.url, self.requests, self.expected = url, requests, expected
        self.waiting = collections.deque(wanted)
        self.lock = threading.Lock()
        self.faults, self.answered, self.cut = [], 0, 0

    def run(self, connections):
        threads = [threading.Thread(target=self.work) for _ in range(connections)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()

    def next(self):
        with self.lock: return self.waiting.popleft() if self.waiting else None

    def work(self):
        client = Client(self.url)
        while item := self.next():
            try:
                self.take(client, *item)
            except (Failure, OSError, http.client.HTTPException, ValueError) as failure:
                self.blame(item[0], f"{type(failure).__name__}: {failure}")
                client.close()
        client.close()

    def take(self, client, index, body, events):
        path = self.requests[index][0]
        if events:
            asked.cut_off(client, path, body, events)
            with self.lock: self.cut += 1
            return
        got = asked.ask_patiently(client, path, body)
        with self.lock: self.answered += 1
        found = asked.difference(self.expected[index], got)
        if found: self.blame(index, found + "\n    asked now: " + json.dumps(body))

    def blame(self, index, what):
        with self.lock: self.faults.append((index, what))


def order(chance, requests, cut):
    """Returns (index, body, 0 or the event after which to disconnect), once for each request and also for some
    requests that are cut off."""
    items = [(i, asked.otherwise(chance, body), 0) for i, (_, body) in enumerate(requests)]
    for i in chance.sample(range(len(requests)), int(cut * len(requests))):
        items.append((i, asked.otherwise(chance, requests[i][1]), chance.choice([1, 1, 2, 3, 5, 8])))
    chance.shuffle(items)
    return items


def ask_alone(url, requests):
    client, answers = Client(url), []
    for number, (path, body) in enumerate(requests):
        try:
            answers.append(asked.ask(client, path, body))
        except (Failure, OSError, http.client.HTTPException) as failure:
            raise Failure(f"request {number}, alone: {failure}\n    {path} {json.dumps(body)}") from failure
    client.close()
    return answers


def main(args):
    chance = random.Random(args.seed)
    requests = [asked.request(chance, args.longest, args.most) for _ in range(args.requests)]
    items = order(chance, requests, args.cut)
    faults, answered, cut, begin = [], 0, 0, time.monotonic()
    server = Server(args.command).start()
    try:
        expected = ask_alone(server.url, requests)
        alone = time.monotonic() - begin
        for half in (items[:len(items) // 2], items[len(items) // 2:]):
            if not server.process: server.start()
            crowd = Crowd(server.url, requests, expected, half)
            crowd.run(args.connections)
            faults, answered, cut = faults + crowd.faults, answered + crowd.answered, cut + crowd.cut
            code = server.stop()
            if code != 0: faults.append((-1, f"SIGTERM: exit status {code}"))
    finally:
        server.stop()
    for index, what in faults[:args.shown]:
        print(f"request {index}: {what}")
        if index >= 0: print("    asked alone:", requests[index][0], json.dumps(requests[index][1]))
    texts = len({json.dumps(answer, sort_keys=True) for answer in expected})
    print(f"{len(requests)} requests, {texts} different answers: alone in {alone:.0f} s; then over {args.connections} "
          f"connections in {time.monotonic() - begin - alone:.0f} s {answered} answered and {cut} left, one restart: "
          f"{len(faults)} faults")
    return 1 if faults or answered != len(requests) else 0


if __name__ == "__main__":
    try:
        sys.exit(main(arguments()))
    except Failure as failure:
        sys.exit(f"exact.py: {failure}")
