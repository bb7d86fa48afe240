"""Starts, asks, watches and stops a server of OpenAI's interface, for the scripts here.

In: a command with {port} in it, or the URL of a server that runs already. Out: answers, streams, sizes. It needs only
Python's standard library.
"""
import http.client
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

PATIENCE = 600  # seconds for one answer

# If this process is asked to end, it stops the servers that it has started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Failure(Exception):
    """A violation of what a server must do."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server, which answers at `url` between `start` and `stop`. command: its words as for a shell; None if url is
    given."""

    def __init__(self, command=None, url=None):
        self.command, self.url, self.process, self.log = command, url, None, None

    def start(self, patience=PATIENCE):
        if not self.command: return self
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(shlex.split(self.command.replace("{port}", str(port))), stdout=self.log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        end = time.monotonic() + patience
        while not self.answers():
            why = "it ended" if not self.alive() else f"not ready in {patience} s" if time.monotonic() > end else None
            if why:
                self.stop()
                raise Failure(f"{self.command}: {why}\n{self.tail()}")
            time.sleep(0.05)
        return self

    def answers(self):
        try:
            return Client(self.url, timeout=5).ask("GET", "/health").status == 200
        except (OSError, http.client.HTTPException):
            return False

    def tail(self, lines=10):
        self.log.seek(0)
        return "".join(self.log.readlines()[-lines:])

    def resident(self):
        """Returns the bytes that the process has in memory; None if we did not start it."""
        if not self.process: return None
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))

    def alive(self):
        return not self.process or self.process.poll() is None

    def stop(self, patience=30):
        """Stops the server and returns its exit status, which is negative for a signal. A server that takes too long
        is killed."""
        if not self.process: return 0
        if self.alive(): self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        code, self.process = self.process.returncode, None
        return code

    def __enter__(self):
        return self.start()

    def __exit__(self, *failure):
        self.stop()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Client:
    """A connection that is kept open between requests."""

    def __init__(self, url, timeout=PATIENCE):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)
        self.response = None

    def send(self, method, path, body=None):
        """Sends a request, and returns the response, whose body has not been read yet. If the server has closed the
        connection, it is opened again once."""
        if body is not None and not isinstance(body, (bytes, str)): body = json.dumps(body)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        for last in (False, True):
            try:
                self.connection.request(method, path, body, headers)
                self.response = self.connection.getresponse()
                return self.response
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                self.connection.close()
                if last: raise

    def ask(self, method, path, body=None):
        response = self.send(method, path, body)
        return Answer(response.status, response.headers, response.read())

    def events(self, path, body):
        """Yields each event of a stream with the time of its arrival, until "[DONE]" or llama.cpp's own "stop". If the
        stream has an error or no such end, it raises a Failure."""
        response = self.send("POST", path, body)
        if response.status != 200: raise Refused(response.status, response.headers, response.read())
        done = False
        while line := response.readline():
            at = time.perf_counter()
            if not line.startswith(b"data:"): continue
            text = line[5:].strip().decode()
            if text == "[DONE]":
                done = True
                continue
            event = json.loads(text)
            if done or "error" in event: raise Failure(f"an error in a stream, or more behind its end: {text[:500]}")
            done = event.get("stop") is True
            yield at, event
        if not done: raise Failure("a stream without an end")

    def close(self):
        """Closes the connection at once, even if more of the answer is to come."""
        if self.connection.sock:
            try:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if self.response: self.response.close()
        self.connection.close()


class Refused(Failure):
    """An answer with a status other than 200."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status}: {body[:500].decode(errors='replace')}")
        self.status, self.headers, self.body = status, headers, body
