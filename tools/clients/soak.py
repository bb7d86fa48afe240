#!/usr/bin/env python3
"""soak.py COMMAND: checks that a server keeps its size, its answers and its health over a long time.

In: a server's command with {port} in place of its port; a number of minutes. Out: a line for each minute, and one at
the end. The exit status is 1 if memory grew after the first quarter of the time, if an answer was lost, invalid or
mixed up with another, or if a status reported a fault of the server. (503 for a full queue is no fault; the request is
repeated.)

First each request of a pool is sent alone. Then clients repeat the requests in any order, disconnect in the middle of
streams, and send invalid requests: text that is not JSON, values of wrong types, half requests, bodies without end.
"""
import argparse
import http.client
import random
import sys
import threading
import time

import asked
import broken
from server import Client, Failure, Server

MIB = 1 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool", type=int, default=150, help="different requests")
    parser.add_argument("--longest", type=int, default=300, help="words of a prompt at most")
    parser.add_argument("--most", type=int, default=64, help="ids of an answer at most")
    parser.add_argument("--broken", type=float, default=0.02, help="how many are no requests")
    parser.add_argument("--killed", type=float, default=0.05, help="how many clients go away")
    parser.add_argument("--slack", type=float, default=8, help="MiB that memory may grow by behind the first quarter")
    return parser.parse_args()


class Soak:
    def __init__(self, server, args):
        self.server, self.args = server, args
        chance = random.Random(args.seed)
        self.pool = [asked.request(chance, args.longest, args.most) for _ in range(args.pool)]
        self.lock, self.over = threading.Lock(), threading.Event()
        self.counts = dict.fromkeys(("answered", "broken", "killed", "waited"), 0)
        self.faults = []
        self.sizes = []  # (seconds, bytes)

    def ask_alone(self):
        client = Client(self.server.url)
        self.expected = [asked.ask(client, path, body) for path, body in self.pool]
        client.close()

    def ask_again(self):
        """Repeats the requests at the end, one at a time."""
        client = Client(self.server.url)
        for index, (path, body) in enumerate(self.pool):
            found = asked.difference(self.expected[index], asked.ask(client, path, body))
            if found: self.blame(f"request {index}, alone again: {found}")
        client.close()

    def count(self, what, by=1):
        with self.lock: self.counts[what] += by

    def blame(self, what):
        with self.lock: self.faults.append(what)

    def work(self, number):
        chance = random.Random(self.args.seed * 1000 + number)
        client = Client(self.server.url)
        while not self.over.is_set():
            try:
                self.step(chance, client)
            except (Failure, OSError, http.client.HTTPException, ValueError) as failure:
                self.blame(f"{type(failure).__name__}: {failure}")
                client.close()
                if not self.server.alive(): return
        client.close()

    def step(self, chance, client):
        lot = chance.random()
        if lot < self.args.broken:
            broken.send(chance, self.server.url)
            self.count("broken")
            return
        index = chance.randrange(len(self.pool))
        path, body = self.pool[index][0], asked.otherwise(chance, self.pool[index][1])
        if lot < self.args.broken + self.args.killed:
            asked.cut_off(client, path, body, chance.choice([1, 2, 5]))
            self.count("killed")
            return
        waits = []
        found = asked.difference(self.expected[index], asked.ask_patiently(client, path, body, waits))
        self.count("answered")
        self.count("waited", len(waits))
        if found: self.blame(f"request {index}: {found}")
        if chance.random() < 0.2: client.close()

    def watch(self):
        """Records the sizes, one per second, and prints a line per minute."""
        begin = time.monotonic()
        while (at := time.monotonic() - begin) < self.args.minutes * 60 and self.server.alive():
            self.sizes.append((at, self.server.resident()))
            if len(self.sizes) % 60 == 0:
                size = self.sizes[-1][1] / MIB
                print(f"{at / 60:4.0f} min  {size:8.1f} MiB  {self.counts}  {len(self.faults)} faults", flush=True)
            time.sleep(1)
        self.over.set()

    def growth(self):
        """Returns by how many bytes the largest size of the later three quarters exceeds that of the first quarter."""
        quarter = self.args.minutes * 60 / 4
        first = max(size for at, size in self.sizes if at <= quarter)
        return max((size for at, size in self.sizes if at > quarter), default=first) - first, first

    def run(self):
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(self.args.clients)]
        for thread in threads: thread.start()
        self.watch()
        for thread in threads: thread.join()


def main(args):
    with Server(args.command) as server:
        soak = Soak(server, args)
        soak.ask_alone()
        soak.run()
        grown, first = soak.growth()
        if grown > args.slack * MIB: soak.blame(f"memory grew by {grown / MIB:.1f} MiB")
        if not server.alive(): soak.blame(f"the server ended:\n{server.tail()}")
        else: soak.ask_again()
        code = server.stop()
        if code != 0: soak.blame(f"SIGTERM: exit status {code}")
    for what in soak.faults[:10]: print("fault:", what)
    print(f"{args.minutes:g} minutes, {args.clients} clients: {soak.counts}; {first / MIB:.1f} MiB, then "
          f"{grown / MIB:+.1f}; {len(soak.faults)} faults")
    return 1 if soak.faults or not soak.counts["answered"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main(arguments()))
    except Failure as failure:
        sys.exit(f"soak.py: {failure}")
