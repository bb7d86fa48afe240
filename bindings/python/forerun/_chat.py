"""Conversations: messages in, a message out, with calls of tools."""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from ._grammar import Grammar, Schema
from ._library import Caught, Handle, UsageError, ffi, lib
from ._tokenizer import Message, Prompt, Tokenizer, Tool

if TYPE_CHECKING:
    from ._model import Picture
    from ._session import Session

__all__ = ["Call", "Part", "Reply"]

_PARTS = ("content", "reasoning", "call", "name", "arguments", "call_end", "call_void")


@dataclass(frozen=True)
class Part:
    """A piece of a reply."""

    kind: str
    """content, reasoning, call (the text is its id), name, arguments (JSON text in pieces), or call_end."""
    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    id: str
    name: str
    arguments: Any
    """The arguments, read from JSON: a dict; or the text itself, if it was cut off by max_tokens."""


@dataclass(frozen=True)
class Reply:
    """An answer in a chat."""

    message: dict[str, Any]
    """The message in OpenAI's form, to be appended to the messages."""
    content: str
    reasoning: str
    calls: list[Call]
    finish: str
    """"eos", "stop", "limit" or "context", as of a Generation."""
    ids: list[int]
    """The ids of the answer."""
    prompt: Prompt
    """The prompt that was answered."""


class ReplyReader:
    """Separates reasoning and calls of tools from the content of a reply while it is generated."""

    def __init__(self, tokenizer: Tokenizer, prompt: Prompt) -> None:
        self._caught = Caught()
        self._parts: list[Part] = []
        self._callback = self._caught.callback("fr_reply_fn", self._take, None)
        place = ffi.new("fr_reply_parser **")
        self._caught.check(lib.fr_reply_parser_new(tokenizer._c, self._callback, ffi.NULL, place))
        self._handle = Handle(place[0], lib.fr_reply_parser_free, tokenizer._handle)
        # The ids of calls are made from the seed, so two replies must not have the same.
        seed = random.getrandbits(63)
        begun = lib.fr_reply_parser_begin(place[0], prompt.marked, prompt.options_json, True, seed)
        self._caught.check(begun)

    def _take(self, context: Any, part: int, text: Any, length: int) -> None:
        raw = bytes(ffi.unpack(text, length)) if length else b""
        self._parts.append(Part(_PARTS[part], raw.decode("utf-8", "replace")))

    def _new(self) -> list[Part]:
        parts = self._parts[:]
        self._parts.clear()
        return parts

    def feed(self, ids: Sequence[int]) -> list[Part]:
        """Adds ids of the reply, and returns what they complete."""
        parser = self._handle.pointer
        for token in ids:
            self._caught.check(lib.fr_reply_parser_feed(parser, token))
        return self._new()

    def finish(self, cut: bool) -> list[Part]:
        """Ends the reply, and returns what was held back. cut: it was cut off at a limit."""
        parser = self._handle.pointer
        self._caught.check(lib.fr_reply_parser_cut(parser) if cut else lib.fr_reply_parser_finish(parser))
        return self._new()

    def message(self) -> dict[str, Any]:
        """Returns the reply as a message in OpenAI's form."""
        text = ffi.new("char **")
        length = ffi.new("size_t *")
        self._caught.check(lib.fr_reply_parser_message(self._handle.pointer, text, length))
        raw = bytes(ffi.unpack(text[0], length[0]))
        lib.fr_free(text[0])
        message: dict[str, Any] = json.loads(raw)
        return message


def _calls_of(message: Mapping[str, Any]) -> list[Call]:
    """Reads the calls of a message."""
    calls = []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        arguments = function["arguments"]
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                pass  # a limit has cut the text off
        calls.append(Call(call["id"], function["name"], arguments))
    return calls


def render_chat(
    session: Session,
    messages: Sequence[Message],
    tools: Optional[Sequence[Tool]],
    pictures: Sequence[Picture],
    variables: Mapping[str, Any],
) -> Prompt:
    """Renders a conversation for a session's model, and shows the pictures to the session."""
    tokenizer = session.model.tokenizer
    if not pictures:
        return tokenizer._render(messages, tools, variables, None)
    pointers = ffi.new("fr_picture *[]", [picture._handle.pointer for picture in pictures])
    model = session.model._c

    def spell(marked: Any) -> None:
        Caught().check(lib.fr_pictures_spell(model, pointers, len(pointers), marked))

    prompt = tokenizer._render(messages, tools, {"pictures": True, **variables}, spell)
    session.show(pictures)
    return prompt


def grammar_of(
    session: Session, prompt: Prompt, tools: Optional[Sequence[Tool]], tool_choice: str, schema: Optional[Schema]
) -> Optional[Grammar]:
    """Makes the grammar of a reply, if tool_choice or the schema ask for one."""
    if tool_choice == "auto" and schema is None:
        return None
    if tool_choice == "none" and schema is None:
        return Grammar.reply(session.model, prompt, "none") if tools else None
    if tool_choice in ("auto", "none"):
        return Grammar.reply(session.model, prompt, "may" if tools and tool_choice == "auto" else "none", schema=schema)
    if not tools:
        raise UsageError(f"tool_choice={tool_choice!r}, but there are no tools")
    if tool_choice == "required":
        return Grammar.reply(session.model, prompt, "must", several=False)
    return Grammar.reply(session.model, prompt, "must", tool=tool_choice, several=False)


def chat_stream(
    session: Session,
    messages: Sequence[Message],
    tools: Optional[Sequence[Tool]],
    tool_choice: str,
    schema: Optional[Schema],
    max_tokens: Optional[int],
    stop: Sequence[str],
    pictures: Sequence[Picture],
    variables: Mapping[str, Any],
) -> Generator[Part, None, Reply]:
    """Answers a conversation: see Session.chat_stream."""
    prompt = render_chat(session, messages, tools, pictures, variables)
    reader = ReplyReader(session.model.tokenizer, prompt)
    grammar = grammar_of(session, prompt, tools, tool_choice, schema)
    stream = session.stream(prompt, max_tokens, stop, grammar)
    while True:
        try:
            piece = next(stream)
        except StopIteration as end:
            generation = end.value
            break
        yield from reader.feed(piece.ids)
    yield from reader.finish(generation.finish in ("limit", "context"))
    message = reader.message()
    content = message.get("content") or ""
    if generation.finish == "stop":
        content = content[: min([content.find(text) for text in stop if text in content] or [len(content)])]
        message["content"] = content
    reasoning = message.get("reasoning_content") or ""
    return Reply(message, content, reasoning, _calls_of(message), generation.finish, generation.ids, prompt)

