"""Many sessions of one model, whose rows are computed together."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Optional

from ._grammar import Grammar
from ._library import Alone, Closing, Error, Handle, UsageError, check, failure, ffi, lib
from ._model import Drafter, Model
from ._options import options_of
from ._session import Generation, Piece, PromptLike, Session, Writer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["Engine", "Round"]


class Round(NamedTuple):
    """One session's share of a round."""

    session: Session
    ids: list[int]
    """What the round gave; none while a prompt is being run, and once the text has ended."""
    accepted: int
    """How many of the first ids were drafts."""
    error: Optional[Error]
    """The session's failure; the other sessions of the round are not affected."""


class Engine(Closing):
    """Threads and caches that sessions share: one forward computes the rows of all of them.

    The text of a session never depends on its neighbours. Prompts that begin alike are run once.
    """

    def __init__(
        self, model: Model, drafter: Optional[Drafter] = None, sessions: int = 8, **options: Unpack[Options]
    ) -> None:
        """Opens an engine with room for this many sessions, 1 to 256. options: those about room are read."""
        place = ffi.new("fr_engine **")
        second = ffi.NULL if drafter is None else drafter._c
        check(lib.fr_engine_open(model._c, second, options_of(options), sessions, place))
        used = [model._handle] if drafter is None else [model._handle, drafter._handle]
        self._handle = Handle(place[0], lib.fr_engine_close, *used)
        self.model = model
        self.room = sessions
        self._alone = Alone()
        self._rounds = ffi.new("fr_round[]", sessions)
        self._ids = ffi.new("int32_t[]", sessions * lib.FR_STEP_MAX)

    def close(self) -> None:
        """Frees the engine, once its sessions are closed."""
        with self._alone:
            self._handle.drop()

    def session(self, **options: Unpack[Options]) -> Session:
        """Opens a session of the engine. options: those about drafting, sampling and ends are read."""
        place = ffi.new("fr_session **")
        with self._alone:
            check(lib.fr_engine_session(self._handle.pointer, options_of(options), place))
        gives = options.get("logprobs", -1) >= 0
        return Session._made(place[0], self.model, self._alone, [self._handle], gives)

    def step(self, sessions: Sequence[Session], limits: Optional[Sequence[int]] = None) -> list[Round]:
        """Runs one round of these sessions: one forward over the next ids of all of them, with pieces of prompts.

        limits: the most ids that each gives, default 16; 0 only runs a waiting prompt. Ctrl-C ends a program between
        rounds, and Session.cancel one session's part.
        """
        count = len(sessions)
        if count > self.room:
            raise UsageError(f"the engine has room for {self.room} sessions, not for {count}")
        with self._alone:
            for index, session in enumerate(sessions):
                one = self._rounds[index]
                one.session = session._c
                one.ids = self._ids + index * lib.FR_STEP_MAX
                one.limit = lib.FR_STEP_MAX if limits is None else min(limits[index], lib.FR_STEP_MAX)
            check(lib.fr_engine_step(self._handle.pointer, self._rounds, count))
            found = []
            for index, session in enumerate(sessions):
                one = self._rounds[index]
                error = None
                caught = session._caught
                if one.status or caught.exception is not None:
                    if caught.exception is not None:
                        caught.check(one.status)
                    line = "" if one.error == ffi.NULL else ffi.string(one.error).decode("utf-8", "replace")
                    error = failure(one.status, line)
                found.append(Round(session, ffi.unpack(one.ids, one.count), one.accepted, error))
        return found

    def limit_prompts(self, rows: int) -> int:
        """Limits the prompt rows of a round, so that texts beside prompts wait less; 0: the option chunk.

        Returns the limit that is in force.
        """
        with self._alone:
            return int(lib.fr_engine_set_piece(self._handle.pointer, rows))

    def stream(
        self,
        prompts: Iterable[PromptLike],
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        grammar: Optional[Grammar] = None,
        **options: Unpack[Options],
    ) -> Generator[tuple[int, Piece], None, list[Generation]]:
        """Generates a text for each prompt, as many at once as there is room for.

        Gives the index of a prompt with a piece of its text. The generator's return value is the list of whole texts.
        The arguments are those of Session.stream, and the options those of `session`.
        """
        waiting = deque(enumerate(prompts))
        done: dict[int, Generation] = {}
        total = len(waiting)
        free = [self.session(**options) for _ in range(min(self.room, total))]
        opened = list(free)
        running: dict[Session, tuple[int, Writer]] = {}
        try:
            for session in free:
                session.set_stops(stop)
                session.set_grammar(grammar)
            while len(done) < total:
                while free and waiting:
                    session = free.pop()
                    index, prompt = waiting.popleft()
                    session.put(prompt)
                    running[session] = (index, Writer(session, max_tokens))
                going = [(session, writer.left) for session, (_, writer) in running.items() if writer.left > 0]
                rounds = self.step([one for one, _ in going], [limit for _, limit in going]) if going else []
                for session, ids, accepted, error in rounds:
                    index, writer = running[session]
                    if error is not None:
                        raise error
                    if not ids and session.waiting > 1:
                        continue  # its prompt is still being run
                    piece = writer.take(ids, accepted)
                    if piece is not None:
                        yield index, piece
                for session in [one for one, (_, writer) in running.items() if writer.left == 0]:
                    index, writer = running.pop(session)
                    last = writer.finish()
                    if last:
                        yield index, Piece(last, [], 0)
                    done[index] = writer.generation()
                    free.append(session)
        finally:
            for session in opened:
                session.close()
        return [done[index] for index in range(total)]

    def generate(
        self,
        prompts: Iterable[PromptLike],
        max_tokens: Optional[int] = None,
        stop: Sequence[str] = (),
        grammar: Optional[Grammar] = None,
        **options: Unpack[Options],
    ) -> list[Generation]:
        """Generates a text for each prompt. The arguments are those of `stream`."""
        texts = self.stream(prompts, max_tokens, stop, grammar, **options)
        while True:
            try:
                next(texts)
            except StopIteration as end:
                made: list[Generation] = end.value
                return made
