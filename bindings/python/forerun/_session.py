"""One text: its ids, its caches, its sampling, and what is generated."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

from ._chat import Part, Reply, chat_stream
from ._drafting import Drafting, ProposeResult, fill_drafts
from ._grammar import Grammar, Schema
from ._library import (
    Alone,
    Caught,
    Closing,
    Handle,
    Ids,
    InputError,
    UsageError,
    check,
    ffi,
    ids_argument,
    lent,
    lib,
    new_floats,
    path_argument,
    view_floats,
    view_ids,
)
from ._model import Adapter, Drafter, Model, PathText, Picture
from ._options import options_of
from ._tokenizer import Decoder, Message, Prompt, Tool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["Depth", "Generation", "LogProbs", "Piece", "Scored", "Session", "Statistics", "Step"]

#: A prompt: text, ids, or a rendered conversation.
PromptLike = Union[str, Prompt, Ids]

_run_round = lib.fr_session_step
_unpack = ffi.unpack
_SOME = 1 << 20  # ids; longer than any context, for texts without a limit


class Step(NamedTuple):
    """The ids of one round."""

    ids: list[int]
    """1 to 16 ids; none once the text has ended."""
    accepted: int
    """How many of the first ids were drafts."""


class LogProbs(NamedTuple):
    """Natural logarithms of probabilities at one place of a text."""

    own: float
    """That of the id that was chosen."""
    best: list[tuple[int, float]]
    """The best ids with theirs, best first."""


class Scored(NamedTuple):
    """One id of a text that was given, with its log-probability after the ids before it."""

    id: int
    logprob: float
    best: list[tuple[int, float]]
    """The best ids at its place with their log-probabilities, best first."""


class Piece(NamedTuple):
    """What one round of a stream gave."""

    text: str
    """Text that the round completed; it never ends inside a character."""
    ids: list[int]
    """The round's ids."""
    accepted: int
    """How many of the first ids were drafts."""
    logprobs: Sequence[LogProbs] = ()
    """One for each id, with the option logprobs."""


@dataclass(frozen=True)
class Generation:
    """A generated text."""

    text: str
    ids: list[int]
    """Its ids, including the one that ended it."""
    finish: str
    """"eos", "stop" (a text of `stop`), "limit" (max_tokens) or "context" (no room for more)."""
    accepted: int
    """How many of the ids were drafts."""
    logprobs: list[LogProbs] = field(default_factory=list)
    """One for each id, with the option logprobs."""


@dataclass(frozen=True)
class Depth:
    """Counts of the drafts at one depth."""

    drafted: int
    compared: int
    """Compared with the target's own id, because all drafts before were accepted."""
    accepted: int
    rejected: int


@dataclass(frozen=True)
class Statistics:
    """Figures of a session: counts in tokens or calls, times in seconds, sizes in bytes."""

    prompt_tokens: int
    """Prompt tokens run for the first time."""
    reused_tokens: int
    """Prompt tokens that were on the timeline already and had been run."""
    rerun_tokens: int
    """Tokens run again because a cut dropped their caches."""
    generated_tokens: int
    target_calls: int
    """Decode and verify forwards."""
    draft_calls: int
    """Rounds that asked for drafts."""
    drafted: int
    accepted: int
    rejected: int
    prefill_seconds: float
    """Prompts, including their first token."""
    decode_seconds: float
    """Everything after the first token."""
    draft_seconds: float
    verify_seconds: float
    accept_seconds: float
    vision_seconds: float
    tower_runs: int
    target_weight_bytes: int
    draft_weight_bytes: int
    resident_bytes: int
    mapped_bytes: int
    target_kv_bytes: int
    draft_kv_bytes: int
    state_bytes: int
    state_draft_bytes: int
    checkpoint_bytes: int
    scratch_bytes: int
    kv_used_bytes: int
    kv_shared_bytes: int
    kv_cached_bytes: int
    peak_bytes: int
    """Peak of the whole process."""
    depths: tuple[Depth, ...]
    """Counts for each depth at which something was drafted, from the first draft of a round."""
    accepted_lengths: bytes
    """For each verify forward that had drafts, how many it accepted."""


_FIGURES = {
    name: getattr(lib, "FR_STAT_" + name.upper())
    for name in Statistics.__annotations__
    if name not in ("depths", "accepted_lengths")
}


class Session(Closing):
    """One text. A session, and an engine with all its sessions, is used by one thread at a time."""

    def __init__(self, model: Model, drafter: Optional[Drafter] = None, **options: Unpack[Options]) -> None:
        """Opens a session with threads and caches of its own.

        drafter: None for plain decoding, or for drafts from n-grams (spec_type="ngram"). options: those about room,
        drafting, sampling and ends are read.
        """
        place = ffi.new("fr_session **")
        second = ffi.NULL if drafter is None else drafter._c
        check(lib.fr_session_open(model._c, second, options_of(options), place))
        used = [model._handle] if drafter is None else [model._handle, drafter._handle]
        self._take(place[0], model, Alone(), used, options.get("logprobs", -1) >= 0)

    @classmethod
    def _made(
        cls, pointer: Any, model: Model, alone: Alone, used: Sequence[Handle], gives_logprobs: bool
    ) -> Session:
        session = cls.__new__(cls)
        session._take(pointer, model, alone, used, gives_logprobs)
        return session

    def _take(
        self, pointer: Any, model: Model, alone: Alone, used: Sequence[Handle], gives_logprobs: bool
    ) -> None:
        self._handle = Handle(pointer, lib.fr_session_close, *used)
        self._opened_with = tuple(used)
        self.model = model
        self._vocab = model.vocab
        self._hidden = model.hidden
        self._alone = alone
        self._caught = Caught()
        self._ids = ffi.new("int32_t[]", lib.FR_STEP_MAX)
        self._count = ffi.new("size_t *")
        self._accepted = ffi.new("size_t *")
        self._gives_logprobs = gives_logprobs
        self._stops: Any = None  # the stops as an array of C, with their texts
        self._grammar: Optional[Handle] = None
        self._adapters: list[Handle] = []
        self._methods: dict[str, Any] = {}  # the functions of draft_with
        self._waits = True  # a step may have several forwards to run, those of a prompt
        # A callback's exception ends a call of several forwards, and so does Ctrl-C, which is raised in a callback.
        caught = self._caught
        self._handle.kept["abort"] = caught.callback("fr_abort_fn", lambda context: caught.exception is not None, True)

    @property
    def _c(self) -> Any:
        return self._handle.pointer

    def close(self) -> None:
        """Frees the session, once no array of it is used any more."""
        with self._alone:
            self._handle.drop()

    # ---------------------------------------------------------------------------------------------------- the timeline

    @contextmanager
    def _interruptible(self) -> Iterator[Any]:
        """Lets Ctrl-C end a call of several forwards. Gives the session's pointer.

        The interpreter raises KeyboardInterrupt only while it runs Python, so a callback between forwards gives it the
        opportunity. A round is one forward, after which the interpreter runs anyway.
        """
        with self._alone:
            pointer = self._c
            lib.fr_session_set_abort(pointer, self._handle.kept["abort"], ffi.NULL)
            try:
                yield pointer
            except BaseException:
                self._waits = True
                raise
            finally:
                lib.fr_session_set_abort(pointer, ffi.NULL, ffi.NULL)

    def _prompt_ids(self, prompt: PromptLike) -> Ids:
        if isinstance(prompt, str):
            return self.model.tokenizer.encode(prompt, add_special=True, parse_special=True)
        return prompt.ids if isinstance(prompt, Prompt) else prompt

    def prompt(self, prompt: PromptLike) -> None:
        """Appends a prompt to the timeline and runs it. What steps gave is there already, so don't append it again."""
        ids, count = ids_argument(self._prompt_ids(prompt))
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_prompt(session, ids, count))

    def set_prompt(self, prompt: PromptLike) -> None:
        """Makes a prompt the whole timeline: keeps the beginning that they share and runs only what is new."""
        ids, count = ids_argument(self._prompt_ids(prompt))
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_set_prompt(session, ids, count))

    def put(self, prompt: PromptLike) -> None:
        """Makes a prompt the whole timeline, but runs nothing yet: the next step, or an engine's rounds, run it."""
        ids, count = ids_argument(self._prompt_ids(prompt))
        with self._alone:
            self._waits = True
            self._caught.check(lib.fr_session_put(self._c, ids, count))

    @property
    def waiting(self) -> int:
        """Ids of the timeline that must still be run before the session can generate."""
        return int(lib.fr_session_waiting(self._c))

    def step(self, limit: int = 16) -> Step:
        """Runs one round: drafts, verifies them in one forward, accepts. `limit`: the most ids that it gives."""
        if limit < 1:
            raise UsageError("a step gives at least one id")
        ids = self._round(limit)
        return Step(ids, self._accepted[0])

    def _round(self, limit: int) -> list[int]:
        """Runs one round and returns its ids; self._accepted has the number of drafts among them.

        It is called once for each round, after a forward that has driven everything else out of the processor's
        caches, so it touches little.
        """
        handle, alone = self._handle, self._alone
        if limit > 16:
            limit = 16
        if self._waits:
            with self._interruptible() as session:
                status = lib.fr_session_step(session, self._ids, limit, self._count, self._accepted)
                self._waits = status != 0
        elif handle.dropped:
            raise UsageError("this object is closed")
        elif alone.acquire(False):
            try:
                status = _run_round(handle._pointer, self._ids, limit, self._count, self._accepted)
            finally:
                alone.release()
        else:
            raise alone.busy()
        if status or self._caught.exception is not None:
            self._waits = True
            self._caught.check(status)
        found: list[int] = _unpack(self._ids, self._count[0])
        return found

    def cut(self, length: int) -> None:
        """Cuts the timeline to its first `length` tokens. Everything is then as after a prompt of these."""
        with self._alone:
            self._waits = True
            check(lib.fr_session_truncate(self._c, length))

    def reset(self) -> None:
        """Empties the timeline."""
        with self._alone:
            lib.fr_session_reset(self._c)

    def __len__(self) -> int:
        """Returns the number of tokens on the timeline."""
        return int(lib.fr_session_length(self._c))

    @property
    def context(self) -> int:
        """The number of tokens that the timeline has room for."""
        return int(lib.fr_session_context(self._c))

    @property
    def ids(self) -> list[int]:
        """The ids of the timeline."""
        ids = ffi.new("const int32_t **")
        with self._alone:
            count = lib.fr_session_ids(self._c, ids)
            return ffi.unpack(ids[0], count) if count else []

    def cancel(self) -> None:
        """Makes the call that is running, else the next one, raise Aborted before its next forward.

        Any thread may call it. The session stays usable.
        """
        lib.fr_session_cancel(self._c)

    def set_options(self, **options: Unpack[Options]) -> None:
        """Replaces the options about sampling, draft_min, draft_p_min and ignore_eos from the next token on.

        Those that are not given become defaults again.
        """
        with self._alone:
            check(lib.fr_session_set_options(self._c, options_of(options)))

    def set_stops(self, stops: Sequence[str]) -> None:
        """Sets texts, up to 16, that end the session's steps as an end of sequence does."""
        texts = [ffi.new("char[]", stop.encode()) for stop in stops]
        with self._alone:
            pointers = ffi.new("char *[]", texts)
            check(lib.fr_session_set_stops(self._c, pointers, len(texts)))
            self._stops = (pointers, texts) if texts else None

    def set_grammar(self, grammar: Optional[Grammar]) -> None:
        """Gives the session a grammar that the text after its prompt follows, or none."""
        with self._alone:
            pointer = ffi.NULL if grammar is None else grammar._handle.pointer
            check(lib.fr_session_set_grammar(self._c, pointer))
            old = self._grammar
            self._grammar = None if grammar is None else self._handle.hold(grammar._handle)
            if old is not None:
                self._handle.release(old)

    def set_adapters(self, adapters: Sequence[tuple[Adapter, float]]) -> None:
        """Makes the target use these adapters, each with a scale that multiplies its own; an empty list: none.

        If they or the scales are others than before, the timeline is emptied. A fork inherits them.
        """
        with self._alone:
            pointers = ffi.new("fr_adapter *[]", [adapter._c for adapter, _ in adapters])
            scales = ffi.new("double[]", [scale for _, scale in adapters])
            self._waits = True
            check(lib.fr_session_set_adapters(self._c, pointers, scales, len(adapters)))
            old = self._adapters
            self._adapters = [self._handle.hold(adapter._handle) for adapter, _ in adapters]
            for handle in old:
                self._handle.release(handle)

    def begin_grammar(self, position: int) -> None:
        """Sets the position at which the grammar's text begins, for a session that was loaded or cut within it."""
        with self._alone:
            check(lib.fr_session_begin_grammar(self._c, position))

    def set_trace(self, trace: Optional[Callable[[str], None]]) -> None:
        """Sets what gets a JSON object, as one line, for each event of the session; None ends the trace."""
        callback = ffi.NULL
        with self._alone:
            if trace is not None:
                told = trace

                def trace_in(context: Any, text: Any, length: int) -> None:
                    told(ffi.unpack(text, length).decode("utf-8", "replace"))

                callback = self._caught.callback("fr_trace_fn", trace_in, None)
            lib.fr_session_set_trace(self._c, callback, ffi.NULL)
            self._handle.kept["trace"] = callback

    def set_progress(self, progress: Optional[Callable[[int, int], None]]) -> None:
        """Sets what is called with the numbers of prompt ids run so far and in all, after each forward of a prompt."""
        callback = ffi.NULL
        if progress is not None:
            told = progress
            callback = self._caught.callback("fr_prompt_fn", lambda context, done, total: told(done, total), None)
        with self._alone:
            lib.fr_session_set_progress(self._c, callback, ffi.NULL)
            self._handle.kept["progress"] = callback

    def show(self, pictures: Sequence[Picture]) -> None:
        """Runs the vision tower over pictures, for the image tokens of the next prompt in their order."""
        pointers = [picture._handle.pointer for picture in pictures]
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_show(session, ffi.new("fr_picture *[]", pointers), len(pointers)))

    # ------------------------------------------------------------------------------------------------------ generation

    def logprobs(self, index: int) -> LogProbs:
        """Gives log-probabilities of the last step's id at this index; the session needs the option logprobs."""
        own = ffi.new("float *")
        ids = ffi.new("const int32_t **")
        values = ffi.new("const float **")
        with self._alone:
            count = lib.fr_session_logprobs(self._c, index, own, ids, values)
            best = list(zip(ffi.unpack(ids[0], count), ffi.unpack(values[0], count))) if count else []
        return LogProbs(own[0], best)

    def stream(
        self,
        prompt: Optional[PromptLike] = None,
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        grammar: Optional[Grammar] = None,
    ) -> Generator[Piece, None, Generation]:
        """Generates a text and gives what each round adds. The generator's return value is the whole.

        prompt: becomes the whole timeline; what it shares with the present one is not run again. None: goes on.
        max_tokens: None for as many as there is room for. stop: texts that end it, and are left out of it. grammar:
        what the text follows.
        """
        self.set_stops(stop)
        self.set_grammar(grammar)
        if prompt is not None:
            self.set_prompt(prompt)
        writer = Writer(self, max_tokens)
        accepted = self._accepted
        while writer.left > 0:
            ids = self._round(writer.left)
            piece = writer.take(ids, accepted[0])
            if piece is None:
                break
            yield piece
        last = writer.finish()
        if last:
            yield Piece(last, [], 0)
        return writer.generation()

    def generate(
        self,
        prompt: Optional[PromptLike] = None,
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        grammar: Optional[Grammar] = None,
    ) -> Generation:
        """Generates a text. The arguments are those of `stream`."""
        self.set_stops(stop)
        self.set_grammar(grammar)
        if prompt is not None:
            self.set_prompt(prompt)
        writer = Writer(self, max_tokens, pieces=False)
        accepted = self._accepted
        while writer.left > 0:
            ids = self._round(writer.left)
            writer.take(ids, accepted[0])
        writer.finish()
        return writer.generation()

    def chat_stream(
        self,
        messages: Sequence[Message],
        tools: Optional[Sequence[Tool]] = None,
        tool_choice: str = "auto",
        schema: Optional[Schema] = None,
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        pictures: Sequence[Picture] = (),
        **variables: Any,
    ) -> Generator[Part, None, Reply]:
        """Answers a conversation, and gives the reply's parts as they are generated.

        The generator's return value is the whole reply. What the conversation shares with the session's timeline is not
        run again, so keep one session for a conversation. Calls of tools are given when they are complete.

        messages: in OpenAI's form. tools: functions that the model may call, in OpenAI's form. tool_choice: "auto",
        "none", "required", or the name of the tool that must be called. schema: a JSON schema that the content
        follows. stop: texts that end the reply and are left out of it; a part may end with one. pictures: those of the
        messages' parts of type "image", in their order. variables: those of the chat template, such as
        enable_thinking=False.
        """
        return chat_stream(self, messages, tools, tool_choice, schema, max_tokens, stop, pictures, variables)

    def chat(
        self,
        messages: Sequence[Message],
        tools: Optional[Sequence[Tool]] = None,
        tool_choice: str = "auto",
        schema: Optional[Schema] = None,
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        pictures: Sequence[Picture] = (),
        **variables: Any,
    ) -> Reply:
        """Answers a conversation. The arguments are those of `chat_stream`."""
        parts = chat_stream(self, messages, tools, tool_choice, schema, max_tokens, stop, pictures, variables)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                reply: Reply = end.value
                return reply

    # -------------------------------------------------------------------------------------------- Python in the rounds

    def draft_with(
        self,
        propose: Optional[Callable[[Drafting], ProposeResult]],
        commit: Optional[Callable[[memoryview, int, int], None]] = None,
    ) -> None:
        """Makes a Python function the session's draft method. The text is the same whatever it proposes.

        propose: gets a Drafting, which shows the timeline, and returns ids that may come next, or Drafts. Of these
        `drafting.count` can be used. `drafting.suggested` has the drafts of the session's drafter. None: these alone,
        as before. commit: called after each round with the timeline, the number of drafts proposed, and accepted. An
        exception makes the step fail and changes nothing. A second call replaces the function of the first.
        """
        with self._alone:
            if not self._methods:
                self._add_method()
            self._methods["propose"] = propose
            self._methods["commit"] = commit

    def _add_method(self) -> None:
        """Gives the library one method for all functions of draft_with: it would ask an older one for suggestions."""
        caught, vocab, methods = self._caught, self._vocab, self._methods

        def propose_in(context: Any, drafting: Any) -> int:
            shown = Drafting(drafting)
            propose = methods["propose"]
            try:
                with lent(shown.ids):
                    return fill_drafts(shown.suggested if propose is None else propose(shown), drafting, vocab)
            finally:
                shown.end()

        def commit_in(context: Any, ids: Any, length: int, proposed: int, accepted: int) -> None:
            commit = methods["commit"]
            if commit is not None:
                view = view_ids(ids, length)
                with lent(view):
                    commit(view, proposed, accepted)

        method = ffi.new("fr_proposer *")
        # More drafts than there is room for make the round fail, after which the exception is raised.
        proposing = caught.callback("size_t(void *, fr_drafting *)", propose_in, lib.FR_STEP_MAX)
        committing = caught.callback("void(void *, const int32_t *, size_t, size_t, size_t)", commit_in, None)
        method.propose, method.commit = proposing, committing
        check(lib.fr_session_set_proposer(self._c, method))
        self._handle.kept["method"] = (proposing, committing)

    def mask_with(self, mask: Optional[Callable[[memoryview, memoryview[float]], None]]) -> None:
        """Sets a function that changes the logits before a token is chosen from them, or none.

        mask(ids, logits): ids are those before the place, [length] int32, with drafts that may be rejected; logits are
        [vocab] float32, changed in place, for example to -math.inf to ban an id. numpy.asarray(logits) copies nothing.
        Penalties, bias, temperature and filters apply afterwards. What it does must depend on the ids alone.
        """
        callback = ffi.NULL
        if mask is not None:
            changed = mask

            def mask_in(context: Any, ids: Any, length: int, logits: Any, vocab: int) -> int:
                before, row = view_ids(ids, length), view_floats(logits, (vocab,))
                with lent(before, row):
                    changed(before, row)
                return 0

            callback = self._caught.callback("fr_mask_fn", mask_in, lib.FR_ABORTED)
        self._set_mask(callback)

    def sample_with(self, choose: Optional[Callable[[memoryview, memoryview[float]], int]]) -> None:
        """Sets a sampler of the program's own, or none. It works with drafts, and the text does not depend on them.

        choose(ids, logits): returns the next id. The arguments are those of `mask_with`. It must depend on the ids
        alone: a sampler that draws takes its noise from a seed and len(ids).
        """
        callback = ffi.NULL
        if choose is not None:
            chosen = choose
            nothing = ffi.new("float[]", [float("-inf")] * self._vocab)

            def choose_in(context: Any, ids: Any, length: int, logits: Any, vocab: int) -> int:
                before, row = view_ids(ids, length), view_floats(logits, (vocab,))
                with lent(before, row):
                    token = chosen(before, row)
                if not 0 <= token < vocab:
                    raise InputError(f"the sampler chose {token}, which is no id of the vocabulary")
                ffi.memmove(logits, nothing, 4 * vocab)
                logits[token] = 0.0
                return 0

            callback = self._caught.callback("fr_mask_fn", choose_in, lib.FR_ABORTED)
        self._set_mask(callback)

    def _set_mask(self, callback: Any) -> None:
        with self._alone:
            self._caught.check(lib.fr_session_set_mask(self._c, callback, ffi.NULL))
            self._handle.kept["mask"] = callback

    def draft_ahead(self) -> None:
        """Begins to draft for the next step in a thread of the session's own, and returns at once."""
        with self._alone:
            check(lib.fr_draft_submit(self._c))

    def drafts(self, count: int = 15) -> list[int]:
        """Returns the session's drafter's best ids after the timeline, up to 15. Steps do not use them."""
        ids = ffi.new("int32_t[]", lib.FR_STEP_MAX)
        with self._alone:
            self._caught.check(lib.fr_draft_now(self._c, count, ids, self._count, ffi.NULL))
            found: list[int] = ffi.unpack(ids, self._count[0])
            return found

    # ------------------------------------------------------------------------------------------------- logits and rows

    def next_logits(self) -> memoryview[float]:
        """Gives the raw logits of the next token, [vocab] float32, without a copy.

        They are true until the next call for any session of the engine; copy them to keep them. As long as the array
        is used, the session's memory stays, even after `close`. numpy.asarray(logits) copies nothing.
        """
        place = ffi.new("const float **")
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_next_logits(session, place))
        handle = self._handle
        handle.use()
        return view_floats(ffi.gc(place[0], lambda pointer: handle.leave()), (self._vocab,))

    def logits(self, prompt: PromptLike, first_row: int = 0) -> memoryview[float]:
        """Runs a text and gives the raw logits after each of its ids from `first_row`: [rows, vocab] float32.

        The timeline is reset first. `each_logits` needs no memory for all rows.
        """
        ids = self._prompt_ids(prompt)
        rows = len(ids) - first_row
        if rows < 1:
            raise UsageError("there is no row to give logits of")
        array, memory = new_floats((rows, self._vocab))
        at = 0

        def sink(context: Any, logits: Any, count: int, vocab: int) -> int:
            nonlocal at
            ffi.memmove(memory + at, logits, 4 * count * vocab)
            at += count * vocab
            return 0

        self._run_logits(ids, first_row, sink)
        return array

    def each_logits(self, prompt: PromptLike, sink: Callable[[memoryview[float]], None], first_row: int = 0) -> None:
        """Runs a text and calls sink(logits) with some rows at a time, in order: [rows, vocab] float32.

        Nothing is copied; the rows are true until the sink returns. The timeline is reset first.
        """

        def rows(context: Any, logits: Any, count: int, vocab: int) -> int:
            view = view_floats(logits, (count, vocab))
            with lent(view):
                sink(view)
            return 0

        self._run_logits(self._prompt_ids(prompt), first_row, rows)

    def _run_logits(self, ids: Ids, first_row: int, sink: Callable[..., int]) -> None:
        given, count = ids_argument(ids)
        callback = self._caught.callback("fr_logits_fn", sink, lib.FR_ABORTED)
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_logits(session, given, count, first_row, callback, ffi.NULL))

    def score(self, prompt: PromptLike) -> list[Scored]:
        """Runs a text and gives the log-probability of each id after the first, given the ids before it.

        The session needs the option logprobs, which says how many best ids come with each. The timeline is reset
        first, and the text stays on it.
        """
        given, count = ids_argument(self._prompt_ids(prompt))
        found: list[Scored] = []

        def sink(context: Any, token: int, own: float, ids: Any, values: Any, best: int) -> int:
            pairs = list(zip(ffi.unpack(ids, best), ffi.unpack(values, best))) if best else []
            found.append(Scored(token, own, pairs))
            return 0

        callback = self._caught.callback("fr_score_fn", sink, lib.FR_ABORTED)
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_score(session, given, count, callback, ffi.NULL))
        return found

    def rows(self, prompt: PromptLike, layers: Optional[Sequence[int]] = None) -> memoryview[float]:
        """Runs a text and gives hidden rows: [ids, width] float32.

        layers: up to 8 numbers of layers, whose inputs are side by side; `model.layers` stands for the last one's
        output. None: the rows after the final norm, as the head reads them. The timeline is reset first.
        """
        given, count = ids_argument(self._prompt_ids(prompt))
        if count < 1:
            raise UsageError("there is no row to give")
        chosen = ffi.NULL if layers is None else ffi.new("size_t[]", list(layers))
        some = 0 if layers is None else len(layers)
        array, memory = new_floats((count, self._hidden * max(some, 1)))
        at = 0

        def sink(context: Any, values: Any, number: int, width: int) -> int:
            nonlocal at
            ffi.memmove(memory + at, values, 4 * number * width)
            at += number * width
            return 0

        callback = self._caught.callback("fr_rows_fn", sink, lib.FR_ABORTED)
        with self._interruptible() as session:
            status = lib.fr_session_rows(session, given, count, chosen, some, callback, ffi.NULL)
            self._caught.check(status)
        return array

    def embed(self, prompt: PromptLike, pooling: Optional[str] = None) -> memoryview[float]:
        """Combines a text's rows into one of length 1: [hidden] float32.

        pooling: mean, cls or last; None for the one of the model's makers, or mean if they don't say.
        """
        name = pooling or self.model.pooling
        if name == "none":
            name = "mean"
        number = getattr(lib, "FR_POOLING_" + name.upper(), None)
        if number is None:
            raise UsageError(f"{name!r} is no pooling: mean, cls or last")
        text = self.model.tokenizer.encode(prompt) if isinstance(prompt, str) else self._prompt_ids(prompt)
        given, count = ids_argument(text)
        array, memory = new_floats((self._hidden,))
        with self._interruptible() as session:
            self._caught.check(lib.fr_session_embed(session, given, count, number, memory))
        return array

    # ---------------------------------------------------------------------------------------- forks, files and figures

    def fork(self, **options: Unpack[Options]) -> Session:
        """Opens a session with the same timeline in the same engine, so that the text can go on in two ways.

        options: none for those of this session. A fork has the stops, but no grammar, mask or draft method of this
        one. A session that was not opened by an engine has no room for forks.
        """
        place = ffi.new("fr_session **")
        with self._alone:
            check(lib.fr_session_fork(self._c, options_of(options) if options else ffi.NULL, place))
            gives = options.get("logprobs", -1) >= 0 if options else self._gives_logprobs
            made = self._made(place[0], self.model, self._alone, self._opened_with, gives)
        made._stops = self._stops
        made._adapters = [made._handle.hold(handle) for handle in self._adapters]
        return made

    def save(self, path: PathText) -> None:
        """Writes the timeline and its caches to a file, which only its owner may read."""
        with self._alone:
            check(lib.fr_session_save(self._c, path_argument(path)))

    def load(self, path: PathText) -> None:
        """Replaces the timeline by a saved session's of the same model. Nothing is run."""
        with self._alone:
            self._waits = True
            check(lib.fr_session_restore(self._c, path_argument(path)))

    def save_bytes(self) -> bytes:
        """Returns what `save` would write."""
        memory = ffi.new("void **")
        size = ffi.new("size_t *")
        with self._alone:
            check(lib.fr_session_save_bytes(self._c, memory, size))
        saved = bytes(ffi.buffer(memory[0], size[0]))
        lib.fr_free(memory[0])
        return saved

    def load_bytes(self, data: Any) -> None:
        """Does the same as `load`, from a buffer of bytes."""
        held = ffi.from_buffer(data)
        with self._alone:
            self._waits = True
            check(lib.fr_session_restore_bytes(self._c, held, len(held)))

    @property
    def attached(self) -> bytes:
        """Bytes of the program's own, which are saved and loaded with the session."""
        size = ffi.new("size_t *")
        memory = lib.fr_session_attached(self._c, size)
        return bytes(ffi.buffer(memory, size[0])) if size[0] else b""

    @attached.setter
    def attached(self, data: bytes) -> None:
        with self._alone:
            check(lib.fr_session_attach(self._c, data, len(data)))

    @property
    def adapts(self) -> bool:
        """True if the depth of drafting depends on measured times; the ids do not."""
        return bool(lib.fr_session_adapts(self._c))

    @property
    def statistics(self) -> Statistics:
        """The session's figures."""
        with self._alone:
            session = self._c
            figures: dict[str, Any] = {}
            for name, number in _FIGURES.items():
                value = lib.fr_session_stat(session, number)
                figures[name] = value if name.endswith("_seconds") else int(value)
            depths = []
            for depth in range(lib.FR_STEP_MAX - 1):
                counts = [
                    int(lib.fr_session_depth_stat(session, depth, number)) for number in range(lib.FR_DEPTH_COUNT)
                ]
                if counts[0]:
                    depths.append(Depth(*counts))
            lengths = ffi.new("const uint8_t **")
            count = lib.fr_session_accepted_lengths(session, lengths)
            accepted = bytes(ffi.buffer(lengths[0], count)) if count else b""
        return Statistics(**figures, depths=tuple(depths), accepted_lengths=accepted)


class Writer:
    """Collects what a session's rounds give, until a limit, an end or a stop."""

    def __init__(self, session: Session, max_tokens: Optional[int], pieces: bool = True) -> None:
        """pieces: False converts the ids to text at the end only, which spares each round the time."""
        tokenizer = session.model._tokenizer
        self._session = session
        #: Ids that are still wanted, 0 after the end.
        self.left = _SOME if max_tokens is None else max(max_tokens, 0)
        self._pieces = pieces and tokenizer is not None
        self._decoder = None if tokenizer is None else Decoder(tokenizer, follows=len(session) > 0)
        self._eos = frozenset(session.model.eos)
        self._raw = bytearray()  # bytes that the decoder gave
        self._shown = 0  # how many of them pieces have given
        self._ids: list[int] = []
        self._accepted = 0
        self._logprobs: list[LogProbs] = []
        self._finish = ""
        self._which = ffi.new("int *", -1)  # the stop that was found

    def take(self, ids: list[int], accepted: int) -> Optional[Piece]:
        """Adds a round's ids and returns what it adds; None if the text has ended without a new id."""
        session = self._session
        if not ids:
            if lib.fr_session_stopped(session._c, ffi.NULL) >= 0:
                self._finish = "stop"
            elif not (self._ids and self._ids[-1] in self._eos):
                self._finish = "context"
            self.left = 0
            return None
        self.left -= len(ids)
        self._ids += ids
        self._accepted += accepted
        logprobs: Sequence[LogProbs] = ()
        if session._gives_logprobs:
            logprobs = [session.logprobs(index) for index in range(len(ids))]
            self._logprobs.extend(logprobs)
        text = ""
        if self._pieces:
            assert self._decoder is not None
            raw = self._decoder.feed_bytes(ids)
            self._raw += raw
            if session._stops is None:
                text = raw.decode("utf-8", "replace")
            else:
                text = self._take_text(self._find_stop())
        return Piece(text, ids, accepted, logprobs)

    def _find_stop(self) -> int:
        """Returns the end of what may be shown, and ends the text at a stop."""
        rest = bytes(self._raw[self._shown :])
        stops, texts = self._session._stops
        end = self._shown + int(lib.fr_stop_find(stops, len(texts), rest, len(rest), 0, self._which))
        if self._which[0] >= 0:
            self._finish = "stop"
            self.left = 0
            del self._raw[end:]
        return end

    def _take_text(self, end: int) -> str:
        """Returns the text up to `end`, without a character that begins before it and ends after it."""
        while self._shown < end < len(self._raw) and self._raw[end] & 0xC0 == 0x80:
            end -= 1
        text = bytes(self._raw[self._shown : end]).decode("utf-8", "replace")
        self._shown = max(end, self._shown)
        return text

    def finish(self) -> str:
        """Ends the text, and returns what was still held back of it."""
        if self._decoder is None or self._which[0] >= 0:
            return ""
        if not self._pieces:
            self._raw += self._decoder.feed_bytes(self._ids)
        before = len(self._raw)
        self._raw += self._decoder.finish_bytes()
        if self._session._stops is None:
            return bytes(self._raw[before:]).decode("utf-8", "replace")
        self._find_stop()
        return self._take_text(len(self._raw))

    def generation(self) -> Generation:
        """Returns the whole text."""
        if not self._finish:
            self._finish = "eos" if self._ids and self._ids[-1] in self._eos else "limit"
        text = bytes(self._raw).decode("utf-8", "replace")
        return Generation(text, self._ids, self._finish, self._accepted, self._logprobs)
