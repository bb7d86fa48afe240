"""Texts to ids and back, and conversations to prompts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from ._library import (
    Closing,
    Handle,
    Ids,
    UsageError,
    check,
    failure,
    ffi,
    ids_argument,
    lib,
    lines_of,
    path_argument,
    take_ids,
)
from ._options import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["Decoder", "Message", "Prompt", "Token", "Tokenizer", "Tool"]

#: A message in OpenAI's form: {"role": "user", "content": "..."}.
Message = Mapping[str, Any]
#: A function that a model may call, in OpenAI's form: {"type": "function", "function": {"name": ..., ...}}.
Tool = Mapping[str, Any]

_feed = lib.fr_decoder_feed
_unpack = ffi.unpack
_KINDS = ("none", "text", "added", "control", "byte", "unknown")


@dataclass(frozen=True)
class Token:
    """One id of a vocabulary."""

    id: int
    kind: str
    """none, text, added, control, byte or unknown."""
    text: str
    """The text as the vocabulary writes it, such as "<0x0A>"."""
    bytes: bytes
    """The bytes that it prints, which may be part of a character."""


@dataclass(frozen=True)
class Prompt:
    """A conversation in the form that a model was trained on.

    In the bytes of messages no control token is recognized, so no message can end its turn.
    """

    text: str
    """The rendered text."""
    ids: list[int]
    """Its ids."""
    trusted: list[tuple[int, int]]
    """Spans of the UTF-8 bytes that the template wrote itself."""
    options_json: bytes = field(repr=False)
    """The variables that it was rendered with, among them the tools."""
    marked: Any = field(default=None, repr=False, compare=False)
    """The text as the library has it."""


class Decoder:
    """Converts ids to text as they are generated. The text never ends inside a character."""

    def __init__(self, tokenizer: Tokenizer, print_special: bool = False, follows: bool = False) -> None:
        """print_special: writes special tokens out. follows: the ids continue a text, such as a prompt."""
        place = ffi.new("fr_decoder **")
        check(lib.fr_decoder_new(tokenizer._c, print_special, place))
        self._handle = Handle(place[0], lib.fr_decoder_free, tokenizer._handle)
        self._text = ffi.new("const char **")
        self._length = ffi.new("size_t *")
        if follows:
            lib.fr_decoder_follow(self._handle.pointer)

    def feed_bytes(self, ids: Ids) -> bytes:
        """Returns the UTF-8 bytes that these ids complete."""
        handle, text, length = self._handle, self._text, self._length
        if handle.dropped:
            raise UsageError("this object is closed")
        raw = b""
        for token in ids:
            status = _feed(handle._pointer, token, text, length)
            if status:
                raise failure(status)
            if length[0]:
                raw += _unpack(text[0], length[0])
        return raw

    def feed(self, ids: Ids) -> str:
        """Returns the text that these ids complete."""
        return self.feed_bytes(ids).decode("utf-8", "replace")

    def finish_bytes(self) -> bytes:
        """Returns the bytes of an incomplete character at the end of the text."""
        check(lib.fr_decoder_finish(self._handle.pointer, self._text, self._length))
        return bytes(ffi.unpack(self._text[0], self._length[0])) if self._length[0] else b""

    def finish(self) -> str:
        """Returns the text of what is still held back at its end."""
        return self.finish_bytes().decode("utf-8", "replace")


class Tokenizer(Closing):
    """Converts texts to ids and back. Any number of threads may share it."""

    def __init__(self, path: Union[str, os.PathLike[str]], **options: Unpack[Options]) -> None:
        """Opens a tokenizer without its model.

        path: a folder with tokenizer.json, or a GGUF file. options: chat_template and tokenizer_pre are read.
        """
        place = ffi.new("fr_tokenizer **")
        check(lib.fr_tokenizer_open(path_argument(path), options_of(options), place))
        self._handle = Handle(place[0], lib.fr_tokenizer_close)
        self._tree: Optional[Handle] = None

    @classmethod
    def _of_model(cls, model: Handle, pointer: Any) -> Tokenizer:
        """Makes the tokenizer that belongs to a model."""
        tokenizer = cls.__new__(cls)
        tokenizer._handle = Handle(pointer, lambda pointer: None, model)
        tokenizer._tree = None
        return tokenizer

    @property
    def _c(self) -> Any:
        return self._handle.pointer

    def close(self) -> None:
        """Frees the tokenizer, once nothing uses it any more."""
        self._handle.drop()

    def __len__(self) -> int:
        """Returns one more than the largest id."""
        return int(lib.fr_tokenizer_count(self._c))

    @property
    def bos(self) -> Optional[int]:
        """The id of beginning of sequence."""
        token: int = lib.fr_tokenizer_bos(self._c)
        return token if token >= 0 else None

    @property
    def eos(self) -> Optional[int]:
        """The id of end of sequence."""
        token: int = lib.fr_tokenizer_eos(self._c)
        return token if token >= 0 else None

    @property
    def unk(self) -> Optional[int]:
        """The id of unknown text."""
        token: int = lib.fr_tokenizer_unk(self._c)
        return token if token >= 0 else None

    @property
    def notes(self) -> list[str]:
        """Lines about assumptions where the tokenizer's file leaves something out."""
        return list(lines_of(lambda index: lib.fr_tokenizer_note(self._c, index)))

    @property
    def chat_template(self) -> Optional[str]:
        """The source of the template that renders conversations; None if there is none."""
        length = ffi.new("size_t *")
        text = lib.fr_chat_template_text(self._c, length)
        return None if text == ffi.NULL else bytes(ffi.unpack(text, length[0])).decode("utf-8", "replace")

    def token(self, token: int) -> Token:
        """Describes an id."""
        length = ffi.new("size_t *")
        kind: int = lib.fr_token_kind_of(self._c, token)
        text = lib.fr_token_text(self._c, token, length)
        name = ffi.unpack(text, length[0]) if text != ffi.NULL else b""
        printed = lib.fr_token_bytes(self._c, token, length)
        raw = ffi.unpack(printed, length[0]) if printed != ffi.NULL else b""
        return Token(token, _KINDS[kind], name.decode("utf-8", "replace"), raw)

    def encode(self, text: Union[str, bytes], add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Converts a text to ids.

        add_special: adds the ids that the tokenizer adds, such as <bos>. parse_special: control tokens written in the
        text become their ids.
        """
        raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else bytes(text)
        ids = ffi.new("int32_t **")
        count = ffi.new("size_t *")
        check(lib.fr_tokenize(self._c, raw, len(raw), add_special, parse_special, ids, count))
        return take_ids(ids[0], count[0])

    def decode_bytes(self, ids: Ids) -> bytes:
        """Converts ids to bytes, with special tokens written out."""
        given, count = ids_argument(ids)
        text = ffi.new("char **")
        length = ffi.new("size_t *")
        check(lib.fr_detokenize(self._c, given, count, text, length))
        raw: bytes = ffi.unpack(text[0], length[0])
        lib.fr_free(text[0])
        return raw

    def decode(self, ids: Ids) -> str:
        """Converts ids to text, with special tokens written out."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def render(
        self, messages: Sequence[Message], tools: Optional[Sequence[Tool]] = None, **variables: Any
    ) -> Prompt:
        """Renders a conversation by the model's chat template.

        messages: in OpenAI's form. tools: functions that the model may call, in OpenAI's form. variables: those of the
        template, such as enable_thinking=False, and those that the library reads: add_generation_prompt,
        continue_final_message, late_systems, rearrange, strict_roles, pictures (forerun.h, fr_chat_render).
        """
        return self._render(messages, tools, variables, None)

    def _render(
        self,
        messages: Sequence[Message],
        tools: Optional[Sequence[Tool]],
        variables: Mapping[str, Any],
        spell: Optional[Any],
    ) -> Prompt:
        """Renders a conversation; spell(marked) may put pictures into the text."""
        given = dict(variables)
        if tools:
            given["tools"] = list(tools)
        options_json = json.dumps(given).encode()
        marked = ffi.gc(ffi.new("fr_marked_text *"), lib.fr_marked_text_free)
        check(lib.fr_chat_render(self._c, json.dumps(list(messages)).encode(), options_json, marked))
        if spell is not None:
            spell(marked)
        ids = ffi.new("int32_t **")
        count = ffi.new("size_t *")
        check(lib.fr_tokenize_marked(self._c, marked, ids, count))
        spans = [(marked.trusted[i].begin, marked.trusted[i].end) for i in range(marked.trusted_count)]
        text: bytes = ffi.unpack(marked.text, marked.length)
        return Prompt(text.decode("utf-8", "replace"), take_ids(ids[0], count[0]), spans, options_json, marked)

    def _token_tree(self) -> Handle:
        """Returns the tree in which grammars search for tokens; it is made for the first grammar."""
        if self._tree is None:
            place = ffi.new("fr_token_tree **")
            check(lib.fr_token_tree_open(self._c, place))
            self._tree = Handle(place[0], lib.fr_token_tree_close, self._handle)
        return self._tree
