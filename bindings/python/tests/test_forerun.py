"""Tests of the Python package, on tiny models for which Hugging Face transformers computed the expected numbers.

tests/bindings/test_python.sh runs them. In: FORERUN_LIBRARY, or an installed package.
"""

from __future__ import annotations

import array
import ctypes
import gc
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from typing import Any, Optional

import forerun

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests", "data")
LLAMA = os.path.join(DATA, "models", "llama")
GEMMA = os.path.join(DATA, "models", "gemma4-e")
EAGLE = os.path.join(DATA, "llama", "eagle3")
EMBEDDING = os.path.join(DATA, "embedding")


def tensors(path: str) -> dict[str, Any]:
    """Reads a safetensors file of float32 and int32: flat arrays by name."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    kinds = {"F32": "f", "I32": "i"}
    return {
        name: array.array(kinds[entry["dtype"]], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def largest_difference(one: Any, other: Any) -> float:
    """Returns the largest difference of two flat arrays, as a share of the largest value."""
    return float(max(abs(a - b) for a, b in zip(one, other)) / max(abs(b) for b in other))


def flat(view: memoryview[float]) -> memoryview[float]:
    """Returns an array of rows as one of numbers."""
    return view.cast("B").cast("f")


class Base(unittest.TestCase):
    """Has the model and its reference."""

    model: forerun.Model
    reference: dict[str, Any]
    numbers: dict[str, Any]
    prompt: list[int]
    greedy: list[int]

    @classmethod
    def setUpClass(cls) -> None:
        cls.model = forerun.Model(LLAMA, threads=1)
        with open(os.path.join(LLAMA, "reference.json"), encoding="utf-8") as file:
            cls.reference = json.load(file)
        cls.numbers = tensors(os.path.join(LLAMA, "reference.safetensors"))
        first = cls.reference["greedy"][0]
        cls.prompt = cls.reference["prompts"][first["prompt"]]
        cls.greedy = first["tokens"]

    def session(self, drafter: Optional[forerun.Drafter] = None, **options: Any) -> forerun.Session:
        options = {"threads": 1, "context": 256, "ignore_eos": True, **options}
        return forerun.Session(self.model, drafter, **options)


class TestModel(Base):
    def test_facts(self) -> None:
        with open(os.path.join(LLAMA, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual(self.model.vocab, config["vocab_size"])
        self.assertEqual(self.model.hidden, config["hidden_size"])
        self.assertEqual(self.model.layers, config["num_hidden_layers"])
        self.assertEqual(self.model.context_limit, config["max_position_embeddings"])
        self.assertFalse(self.model.sees)
        self.assertEqual(forerun.version, forerun.__version__)

    def test_errors_are_exceptions_with_the_line(self) -> None:
        with self.assertRaises(forerun.InputError) as raised:
            forerun.Model(os.path.join(DATA, "answers"))
        self.assertEqual(raised.exception.status, "input")
        self.assertIn("answers", str(raised.exception))
        with self.assertRaises(forerun.UsageError) as raised_too:
            forerun.Model(LLAMA, threads=100000)
        self.assertIsInstance(raised_too.exception, ValueError)
        with self.assertRaises(TypeError):
            forerun.Model(LLAMA, thread=1)  # type: ignore[call-arg]
        with self.session(context=8) as session, self.assertRaises(forerun.InputError) as raised:
            session.prompt([1] * 9)
        self.assertEqual(raised.exception.option, "context")

    def test_every_option_is_declared(self) -> None:
        from forerun import _options

        self.assertEqual(set(forerun.Options.__annotations__), set(_options._NUMBERS))

    def test_every_figure_is_declared(self) -> None:
        from forerun._library import lib

        names = {name[len("FR_STAT_") :].lower() for name in dir(lib) if name.startswith("FR_STAT_")} - {"count"}
        self.assertEqual(set(forerun.Statistics.__annotations__) - {"depths", "accepted_lengths"}, names)
        names = {name[len("FR_ESTIMATE_") :].lower() for name in dir(lib) if name.startswith("FR_ESTIMATE_")}
        self.assertEqual(set(forerun.Estimate.__annotations__), names - {"count"})

    def test_an_estimate_has_a_total(self) -> None:
        found = forerun.estimate(LLAMA, threads=1)
        self.assertEqual(
            found.total, found.resident + found.kv + found.states + found.checkpoints + found.drafting + found.scratch
        )

    def test_objects_may_be_closed_in_any_order(self) -> None:
        model = forerun.Model(LLAMA, threads=1)
        session = forerun.Session(model, threads=1, context=64)
        model.close()
        session.prompt(self.prompt)
        logits = session.next_logits()
        session.close()
        self.assertAlmostEqual(logits[0], self.numbers["prompt.2.logits"][12 * 512], delta=1e-3)
        with self.assertRaises(forerun.UsageError):
            session.step()
        del model, session, logits
        gc.collect()


class TestTokenizer(Base):
    def test_text_comes_back(self) -> None:
        tokenizer = self.model.tokenizer
        text = "Wörter, 漢字 and \U0001f600"
        ids = tokenizer.encode(text, add_special=False)
        self.assertEqual(tokenizer.decode(ids), text)
        decoder = forerun.Decoder(tokenizer)
        pieces = [decoder.feed([token]) for token in ids]
        self.assertEqual("".join(pieces) + decoder.finish(), text)
        self.assertNotIn("\ufffd", "".join(pieces))

    def test_control_tokens(self) -> None:
        tokenizer = self.model.tokenizer
        with open(os.path.join(LLAMA, "tokenizer.json"), encoding="utf-8") as file:
            added = {token["content"]: token["id"] for token in json.load(file)["added_tokens"] if token["special"]}
        text, number = next(iter(added.items()))
        self.assertEqual(tokenizer.encode(text, add_special=False, parse_special=True), [number])
        self.assertNotIn(number, tokenizer.encode(text, add_special=False))
        self.assertEqual(tokenizer.token(number).kind, "control")
        self.assertEqual(tokenizer.token(number).text, text)

    def test_a_conversation(self) -> None:
        prompt = self.model.tokenizer.render([{"role": "user", "content": "Hello <|eot_id|>"}])
        raw = prompt.text.encode()
        self.assertIn("Hello", prompt.text)
        self.assertNotIn(b"Hello", b"".join(raw[begin:end] for begin, end in prompt.trusted))
        self.assertGreater(len(prompt.ids), 3)


class TestSession(Base):
    def test_logits_are_those_of_the_reference(self) -> None:
        with self.session() as session:
            logits = session.logits(self.prompt)
            self.assertEqual(logits.shape, (len(self.prompt), self.model.vocab))
            self.assertLess(largest_difference(flat(logits), self.numbers["prompt.2.logits"]), 1e-4)
            pieces: list[float] = []
            session.each_logits(self.prompt, lambda rows: pieces.extend(flat(rows)), first_row=3)
            self.assertEqual(pieces, list(flat(logits))[3 * self.model.vocab :])

    def test_rows_are_those_of_the_reference(self) -> None:
        with self.session() as session:
            rows = session.rows(self.prompt)
            self.assertEqual(rows.shape, (len(self.prompt), self.model.hidden))
            self.assertLess(largest_difference(flat(rows), self.numbers["prompt.2.hidden"]), 1e-4)
            self.assertEqual(session.rows(self.prompt, [0, 1]).shape, (len(self.prompt), 2 * self.model.hidden))

    def test_steps_give_the_ids_of_the_reference(self) -> None:
        with self.session() as session:
            session.prompt(array.array("i", self.prompt))
            found: list[int] = []
            while len(found) < len(self.greedy):
                found += session.step(len(self.greedy) - len(found)).ids
            self.assertEqual(found, self.greedy)
            self.assertEqual(session.ids, self.prompt + self.greedy)
            self.assertEqual(len(session), len(self.prompt) + len(self.greedy))

    def test_a_drafter_changes_nothing(self) -> None:
        with forerun.Drafter(self.model, EAGLE, threads=1) as drafter, self.session(drafter, draft_max=4) as session:
            generation = session.generate(self.prompt, max_tokens=len(self.greedy))
            self.assertEqual(generation.ids, self.greedy)
            self.assertEqual(generation.finish, "limit")
            figures = session.statistics
            self.assertEqual(figures.generated_tokens, len(self.greedy))
            self.assertEqual(figures.prompt_tokens, len(self.prompt))
            self.assertGreater(figures.accepted, 0)
            self.assertEqual(figures.accepted, generation.accepted)
            self.assertEqual(figures.accepted, sum(figures.accepted_lengths))
            self.assertEqual(figures.accepted, sum(depth.accepted for depth in figures.depths))
            self.assertLess(figures.target_calls, len(self.greedy))

    def test_a_stream_gives_the_text(self) -> None:
        with self.session() as session:
            whole = session.generate(self.prompt, max_tokens=30)
            self.assertEqual(whole.ids, self.greedy[:30])
            pieces = list(session.stream(self.prompt, max_tokens=30))
            self.assertEqual("".join(piece.text for piece in pieces), whole.text)
            self.assertEqual([token for piece in pieces for token in piece.ids], whole.ids)
            stop = whole.text[5:8]
            stopped = session.generate(self.prompt, max_tokens=30, stop=[stop])
            self.assertEqual(stopped.text, whole.text[: whole.text.index(stop)])
            self.assertEqual(stopped.finish, "stop")
            self.assertEqual("".join(piece.text for piece in session.stream(self.prompt, 30, [stop])), stopped.text)
            self.assertEqual(session.generate(self.prompt, max_tokens=30).text, whole.text)

    def test_the_timeline(self) -> None:
        with self.session() as session:
            session.prompt(self.prompt)
            session.step()
            session.cut(len(self.prompt) - 2)
            session.prompt(self.prompt[-2:])
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[:5])
            session.set_prompt(self.prompt)
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[:5])
            self.assertGreater(session.statistics.reused_tokens, 0)
            session.put(self.prompt)
            self.assertGreater(session.waiting, 0)
            self.assertEqual(session.step().ids, self.greedy[:1])
            session.reset()
            self.assertEqual(len(session), 0)

    def test_saving_and_loading(self) -> None:
        with self.session() as session, self.session() as other, tempfile.TemporaryDirectory() as folder:
            session.prompt(self.prompt)
            session.attached = b"mine"
            path = os.path.join(folder, "session")
            session.save(path)
            other.load(path)
            self.assertEqual(other.attached, b"mine")
            self.assertEqual(other.generate(max_tokens=9).ids, self.greedy[:9])
            other.load_bytes(session.save_bytes())
            self.assertEqual(other.generate(max_tokens=9).ids, self.greedy[:9])
            with self.assertRaises(forerun.InputError):
                other.load_bytes(b"no session at all")

    def test_log_probabilities(self) -> None:
        with self.session(logprobs=3) as session:
            scored = session.score(self.prompt + self.greedy[:5])
            self.assertEqual([one.id for one in scored], (self.prompt + self.greedy[:5])[1:])
            for one in scored[-5:]:
                self.assertEqual(one.best[0], (one.id, one.logprob))
                self.assertEqual(len(one.best), 3)
            generation = session.generate(self.prompt, max_tokens=5)
            self.assertEqual([one.own for one in generation.logprobs], [one.logprob for one in scored[-5:]])

    def test_an_embedding_is_that_of_the_reference(self) -> None:
        numbers = tensors(os.path.join(EMBEDDING, "reference.safetensors"))
        with forerun.Model(EMBEDDING, threads=1) as model, forerun.Session(model, threads=1) as session:
            for pooling in ("mean", "cls", "last"):
                for text in range(3):
                    ids = numbers[f"ids.{text}"]
                    found = session.embed(ids, pooling)
                    self.assertLess(largest_difference(found, numbers[f"{pooling}.{text}"]), 1e-4)


class TestAdapters(Base):
    """Compares with the logits that peft, or a hook in transformers, gives."""

    def test_an_adapter_and_none(self) -> None:
        folder = os.path.join(DATA, "adapters", "llama")
        with open(os.path.join(folder, "reference.json"), encoding="utf-8") as file:
            ids = json.load(file)["ids"]
        expected = tensors(os.path.join(folder, "reference.safetensors"))["logits"]
        with forerun.Model(LLAMA) as model, forerun.Session(model) as session:
            plain = list(flat(session.logits(ids)))
            adapter = forerun.Adapter(model, folder)
            self.assertGreater(adapter.rank, 0)
            self.assertGreater(adapter.matrices, 0)
            session.set_adapters([(adapter, 1.0)])
            adapter.close()  # the session still uses it
            self.assertLess(largest_difference(flat(session.logits(ids)), expected), 5e-5)
            session.set_adapters([])
            self.assertEqual(list(flat(session.logits(ids))), plain)

    def test_a_control_vector(self) -> None:
        folder = os.path.join(DATA, "adapters", "llama-vector")
        expected = tensors(os.path.join(folder, "reference.safetensors"))
        with forerun.Model(LLAMA) as model, forerun.Session(model) as session:
            ids = [(7 + 13 * i) % model.vocab for i in range(len(expected["part"]) // model.vocab)]
            vector = forerun.Adapter.control_vector(model, os.path.join(folder, "vector.gguf"), 2, 4)
            session.set_adapters([(vector, -0.5)])
            self.assertLess(largest_difference(flat(session.logits(ids)), expected["part"]), 5e-5)
            with self.assertRaises(forerun.UsageError):
                session.set_adapters([(vector, 1.0), (vector, 1.0)])


class TestPythonInRounds(Base):
    def test_a_draft_method_changes_nothing(self) -> None:
        told: list[tuple[int, int]] = []
        known = self.prompt + self.greedy

        def propose(drafting: forerun.Drafting) -> list[int]:
            length = len(drafting.ids)
            self.assertEqual(list(drafting.ids), known[:length])
            return known[length : length + drafting.count]

        with self.session(draft_max=7) as session:
            session.draft_with(propose, lambda ids, proposed, accepted: told.append((proposed, accepted)))
            generation = session.generate(self.prompt, max_tokens=len(self.greedy))
            self.assertEqual(generation.ids, self.greedy)
            self.assertGreater(generation.accepted, 30)
            self.assertEqual(sum(accepted for _, accepted in told), generation.accepted)
            session.draft_with(lambda drafting: forerun.Drafts([1, 2, 3], odds=[0.5, 0.5, 0.5]))
            self.assertEqual(session.generate(self.prompt, max_tokens=20).ids, self.greedy[:20])

    def test_a_draft_method_that_fails(self) -> None:
        def fails(drafting: forerun.Drafting) -> list[int]:
            raise KeyError("mine")

        with self.session(draft_max=2) as session:
            session.draft_with(fails)
            session.prompt(self.prompt)
            session.step()
            with self.assertRaises(KeyError):
                session.step()
            self.assertEqual(session.ids, self.prompt + self.greedy[:1])
            session.draft_with(lambda drafting: [self.model.vocab])
            with self.assertRaises(forerun.UsageError):
                session.step()
            session.draft_with(lambda drafting: None)
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[1:6])

    def test_a_draft_method_can_not_call_its_session(self) -> None:
        with self.session(draft_max=2) as session:
            session.draft_with(lambda drafting: session.ids)
            session.prompt(self.prompt)
            session.step()
            with self.assertRaises(forerun.UsageError):
                session.step()

    def test_an_array_of_a_callback_ends_with_it(self) -> None:
        kept: list[Any] = []
        with self.session() as session:
            session.mask_with(lambda ids, logits: kept.extend([ids, logits]))
            session.prompt(self.prompt)
            session.step()
        with self.assertRaises(ValueError):
            kept[1][0]

    def test_a_callback_can_not_keep_a_lent_array(self) -> None:
        kept: list[Any] = []

        def keep(ids: memoryview, logits: memoryview[float]) -> None:
            kept.append((ctypes.c_float * len(logits)).from_buffer(logits))  # as numpy.asarray does

        with self.session() as session:
            session.prompt(self.prompt)
            with self.assertRaises(forerun.UsageError) as raised:
                session.mask_with(keep)
                session.step()
            self.assertIn("copy it", str(raised.exception))

    def test_a_trace(self) -> None:
        lines: list[dict[str, Any]] = []
        with self.session() as session:
            session.set_trace(lambda line: lines.append(json.loads(line)))
            session.generate(self.prompt, max_tokens=3)
        self.assertEqual([line["event"] for line in lines][:2], ["begin", "prompt"])
        given = [line["ids"] for line in lines if line["event"] == "accept"]
        self.assertEqual([token for ids in given for token in ids], self.greedy[:3])

    def test_a_mask(self) -> None:
        banned = self.greedy[0]

        def mask(ids: memoryview, logits: memoryview[float]) -> None:
            logits[banned] = float("-inf")

        with self.session() as session:
            session.mask_with(mask)
            self.assertNotIn(banned, session.generate(self.prompt, max_tokens=20).ids)
            session.mask_with(None)
            self.assertEqual(session.generate(self.prompt, max_tokens=20).ids, self.greedy[:20])

    def test_a_sampler(self) -> None:
        def second(ids: memoryview, logits: memoryview[float]) -> int:
            best = sorted(range(len(logits)), key=lambda token: -logits[token])
            return best[len(ids) % 2]

        with self.session() as session, self.session(spec_type="ngram", draft_max=4) as drafting:
            session.prompt(self.prompt)
            logits = list(session.next_logits())
            session.sample_with(second)
            found = session.generate(self.prompt, max_tokens=30).ids
            self.assertEqual(found[0], sorted(range(len(logits)), key=lambda token: -logits[token])[13 % 2])
            self.assertNotEqual(found, self.greedy[:30])
            drafting.sample_with(second)
            self.assertEqual(drafting.generate(self.prompt, max_tokens=30).ids, found)
            session.sample_with(lambda ids, logits: -1)
            with self.assertRaises(forerun.InputError):
                session.generate(self.prompt, max_tokens=1)

    def test_own_loop_over_logits(self) -> None:
        with self.session() as session:
            session.prompt(self.prompt)
            found = []
            for _ in range(5):
                logits = session.next_logits()
                found.append(max(range(len(logits)), key=lambda token: logits[token]))
                session.prompt(found[-1:])
            self.assertEqual(found, self.greedy[:5])


class TestGrammars(Base):
    def test_kinds(self) -> None:
        with self.session(ignore_eos=False) as session:
            digits = forerun.Grammar.regex(self.model, "[0-9]{3}")
            self.assertRegex(session.generate(self.prompt, 20, grammar=digits).text, r"\A[0-9]{3}\Z")
            choice = forerun.Grammar.gbnf(self.model, 'root ::= "yes" | "no"')
            self.assertIn(session.generate(self.prompt, 20, grammar=choice).text, ("yes", "no"))
            schema = forerun.Grammar.schema(self.model, {"type": "array", "items": {"type": "boolean"}, "maxItems": 2})
            self.assertIsInstance(json.loads(session.generate(self.prompt, 40, grammar=schema).text), list)
            self.assertEqual(session.generate(self.prompt, 5).ids, self.greedy[:5])

    def test_allowed_ids(self) -> None:
        grammar = forerun.Grammar.regex(self.model, "a+")
        ids, ends = grammar.allowed([])
        self.assertFalse(ends)
        for token in ids:
            self.assertRegex(self.model.tokenizer.token(token).bytes, rb"\Aa+\Z")
        self.assertTrue(grammar.allowed(ids[:1])[1])

    def test_what_can_not_be_read(self) -> None:
        with self.assertRaises(forerun.InputError):
            forerun.Grammar.regex(self.model, "(")
        with self.assertRaises(forerun.UsageError):
            forerun.Grammar(self.model, "abnf", "x")


class TestChat(Base):
    messages = [{"role": "user", "content": "Is it so?"}]
    tools = [
        {
            "type": "function",
            "function": {
                "name": "answer",
                "description": "Answers",
                "parameters": {"type": "object", "properties": {"so": {"type": "boolean"}}, "required": ["so"]},
            },
        }
    ]

    def test_a_reply(self) -> None:
        with self.session(ignore_eos=False) as session:
            reply = session.chat(self.messages, max_tokens=20)
            prompt = self.model.tokenizer.render(self.messages)
            self.assertEqual(reply.prompt, prompt)
            self.assertEqual(reply.ids, session.generate(prompt, max_tokens=20).ids)
            self.assertEqual(reply.message["role"], "assistant")
            parts = list(session.chat_stream(self.messages, max_tokens=20))
            self.assertEqual("".join(part.text for part in parts if part.kind == "content"), reply.content)

    def test_a_schema(self) -> None:
        with self.session(ignore_eos=False) as session:
            reply = session.chat(self.messages, schema={"enum": [["one", 2]]}, max_tokens=60)
            self.assertEqual(json.loads(reply.content), ["one", 2])
            self.assertEqual(reply.finish, "eos")

    def test_a_forced_call(self) -> None:
        # Llama's template writes more of tools than the tiny model has room for.
        with forerun.Model(GEMMA, threads=1) as model, forerun.Session(model, threads=1, context=1024) as session:
            for choice in ("required", "answer"):
                reply = session.chat(self.messages, self.tools, choice, max_tokens=100)
                self.assertEqual([call.name for call in reply.calls], ["answer"])
                self.assertIsInstance(reply.calls[0].arguments["so"], bool)
                self.assertEqual(reply.message["tool_calls"][0]["id"], reply.calls[0].id)
            with self.assertRaises(forerun.UsageError):
                session.chat(self.messages, tool_choice="required")


class TestQuantize(Base):
    def test_a_type_without_loss_changes_nothing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            told: list[tuple[int, int]] = []
            forerun.quantize(LLAMA, path, "bf16", progress=lambda done, total: told.append((done, total)), threads=1)
            self.assertEqual(told[-1][0], told[-1][1])
            with forerun.Model(path, threads=1) as model, forerun.Session(model, threads=1, ignore_eos=True) as session:
                self.assertEqual(session.generate(self.prompt, max_tokens=48).ids, self.greedy)

    def test_failures_leave_no_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            none: dict[int, None] = {}
            with self.assertRaises(forerun.UsageError):
                forerun.quantize(LLAMA, path, "q17")
            with self.assertRaises(forerun.InputError):
                forerun.quantize(os.path.join(DATA, "answers"), path, "q8_0")
            with self.assertRaises(forerun.InputError):
                forerun.quantize(LLAMA, os.path.join(folder, "none", "model.gguf"), "q8_0")
            with self.assertRaises(KeyError):
                forerun.quantize(LLAMA, path, "q8_0", progress=lambda done, total: none[done])
            self.assertEqual(os.listdir(folder), [])


class TestEngine(Base):
    def test_texts_are_those_of_lone_sessions(self) -> None:
        prompts = [self.prompt, self.reference["prompts"][3], self.prompt[:4], self.prompt[:9], self.prompt]
        with self.session() as session:
            alone = [session.generate(prompt, max_tokens=12).ids for prompt in prompts]
        self.assertEqual(alone[0], self.greedy[:12])
        with forerun.Engine(self.model, sessions=3, threads=1, context=128) as engine:
            together = engine.generate(prompts, max_tokens=12, ignore_eos=True)
            self.assertEqual([generation.ids for generation in together], alone)
            self.assertEqual({generation.finish for generation in together}, {"limit"})

    def test_a_fork(self) -> None:
        with forerun.Engine(self.model, sessions=2, threads=1, context=128) as engine:
            session = engine.session(ignore_eos=True)
            session.prompt(self.prompt)
            first = session.step().ids
            fork = session.fork()
            rounds = engine.step([session, fork], [16, 16])
            self.assertEqual([one.ids for one in rounds], [self.greedy[1:2]] * 2)
            self.assertEqual(first, self.greedy[:1])
            self.assertIsNone(rounds[0].error)
            with self.assertRaises(forerun.UsageError):
                engine.session()
            fork.close()
            session.close()


class TestThreads(Base):
    def test_sessions_of_threads_run_beside_each_other(self) -> None:
        found: dict[int, list[int]] = {}

        def run(number: int) -> None:
            with self.session() as session:
                found[number] = session.generate(self.prompt, max_tokens=20).ids

        threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(list(found.values()), [self.greedy[:20]] * 3)

    def test_the_interpreter_runs_beside_the_engine(self) -> None:
        with self.session() as session:
            inside = threading.Event()
            outside = threading.Event()

            def propose(drafting: forerun.Drafting) -> list[int]:
                inside.set()
                self.assertTrue(outside.wait(20))
                return []

            session.draft_with(propose)
            thread = threading.Thread(target=session.generate, args=(self.prompt, 3))
            thread.start()
            self.assertTrue(inside.wait(20))
            with self.assertRaises(forerun.UsageError):
                session.step()  # the other thread's call is still running
            outside.set()
            thread.join()

    def test_cancel(self) -> None:
        with self.session() as session:
            session.cancel()
            with self.assertRaises(forerun.Aborted):
                session.prompt(self.prompt)
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[:5])

    def test_ctrl_c_ends_a_call(self) -> None:
        long = (self.prompt * 20)[:250]
        with self.session(chunk=1) as session:
            # The signal comes while the prompt's first forwards run.
            session.set_progress(lambda done, total: os.kill(os.getpid(), signal.SIGINT) if done == 3 else None)
            old = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    session.prompt(long)
            finally:
                signal.signal(signal.SIGINT, old)
            self.assertGreater(session.waiting, 200)
            session.set_progress(None)
            session.set_prompt(self.prompt)
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[:5])

    def test_a_child_opens_sessions_on_its_parents_model(self) -> None:
        with self.session() as session:
            session.prompt(self.prompt)
            child = os.fork()
            if child == 0:
                try:
                    with self.session() as own:
                        same = own.generate(self.prompt, max_tokens=5).ids == self.greedy[:5]
                    try:
                        session.step()
                        same = False
                    except forerun.UsageError:
                        pass
                    os._exit(0 if same else 1)
                except BaseException:
                    os._exit(2)
            _, status = os.waitpid(child, 0)
            self.assertEqual(status, 0)
            self.assertEqual(session.generate(max_tokens=5).ids, self.greedy[:5])


class TestExamples(unittest.TestCase):
    def run_example(self, name: str, *arguments: str, given: str = "") -> str:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", name)
        command = [sys.executable, path, GEMMA, *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_chat(self) -> None:
        self.assertIn("\n", self.run_example("chat.py", given="Hello\n"))

    def test_batch(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
            table.write("name,text\na,good\nb,bad\n")
            table.flush()
            lines = self.run_example("batch.py", table.name, "text").split()
        self.assertEqual(lines[0], "text,label")
        self.assertRegex(lines[1], r"\Agood,(positive|negative)\Z")
        self.assertEqual(len(lines), 3)

    def test_own_drafter(self) -> None:
        self.run_example("own_drafter.py")

    def test_agent(self) -> None:
        self.run_example("agent.py", "When was Ada born?")

    def test_search(self) -> None:
        lines = self.run_example("search.py", "same", "other", "same").splitlines()
        self.assertEqual(lines[0], "1.000  same")


if __name__ == "__main__":
    unittest.main()
