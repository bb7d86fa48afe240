"""Languages that a text has to follow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from ._library import Handle, Ids, UsageError, check, ffi, ids_argument, lib
from ._model import Model
from ._tokenizer import Prompt, Tokenizer

__all__ = ["Grammar"]

Schema = Union[Mapping[str, Any], bool, str]


def _schema_text(schema: Schema) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


class Grammar:
    """Restricts a session's text to a language, without changing it otherwise. Sessions of one engine may share it.

    Drafts that the grammar forbids are not verified, and ids that it forces are drafted without a draft method.
    """

    def __init__(self, owner: Union[Model, Tokenizer], kind: str, text: str) -> None:
        """kind: "gbnf", "regex" or "json_schema". text: the grammar."""
        number = self._kind(kind)
        raw = text.encode()
        self._open(owner, lambda tree, place: lib.fr_grammar_open(tree, number, raw, len(raw), place))

    @staticmethod
    def _kind(kind: str) -> int:
        name = "FR_GRAMMAR_" + kind.upper()
        if kind not in ("gbnf", "regex", "json_schema"):
            raise UsageError(f"{kind!r} is no kind of grammar: gbnf, regex or json_schema")
        return int(getattr(lib, name))

    def _open(self, owner: Union[Model, Tokenizer], opened: Any) -> None:
        tokenizer = owner.tokenizer if isinstance(owner, Model) else owner
        tree = tokenizer._token_tree()
        place = ffi.new("fr_grammar **")
        check(opened(tree.pointer, place))
        self._handle = Handle(place[0], lib.fr_grammar_close, tree)

    @classmethod
    def gbnf(cls, owner: Union[Model, Tokenizer], text: str) -> Grammar:
        """Opens a grammar in llama.cpp's language; texts match its rule `root`."""
        return cls(owner, "gbnf", text)

    @classmethod
    def regex(cls, owner: Union[Model, Tokenizer], pattern: str) -> Grammar:
        """Opens a regular expression that matches the whole text."""
        return cls(owner, "regex", pattern)

    @classmethod
    def schema(cls, owner: Union[Model, Tokenizer], schema: Schema) -> Grammar:
        """Opens a JSON schema, as a dict or as text; the text is one of its values."""
        return cls(owner, "json_schema", _schema_text(schema))

    @classmethod
    def reply(
        cls,
        owner: Union[Model, Tokenizer],
        prompt: Prompt,
        calls: str = "may",
        tool: Optional[str] = None,
        several: bool = True,
        schema: Optional[Schema] = None,
    ) -> Grammar:
        """Opens a grammar of a chat's whole reply: reasoning, then calls of tools or a content.

        prompt: the prompt that is answered, rendered with the tools. calls: "none", "may" or "must". tool: the only
        tool that may be called. several: a reply may have several calls. schema: that of the content; None: any text.
        """
        words = {"none": lib.FR_REPLY_CALLS_NONE, "may": lib.FR_REPLY_CALLS_MAY, "must": lib.FR_REPLY_CALLS_MUST}
        if calls not in words:
            raise UsageError(f"{calls!r} says nothing about calls: none, may or must")
        text = ("root ::= [\\x00-\\U0010FFFF]*" if schema is None else _schema_text(schema)).encode()
        content = ffi.new("char[]", text)
        options = ffi.new("char[]", prompt.options_json)
        name = ffi.new("char[]", tool.encode()) if tool is not None else ffi.NULL
        rule = ffi.new("fr_reply_rule *")
        rule.prompt = prompt.marked
        rule.options_json = options
        rule.calls = words[calls]
        rule.tool = name
        rule.several = several
        rule.kind = lib.FR_GRAMMAR_GBNF if schema is None else lib.FR_GRAMMAR_JSON_SCHEMA
        rule.text = content
        rule.length = len(text)
        grammar = cls.__new__(cls)
        grammar._open(owner, lambda tree, place: lib.fr_grammar_open_reply(tree, rule, place))
        return grammar

    def allowed(self, ids: Ids) -> tuple[list[int], bool]:
        """Returns the ids that may follow these ids of a text, ascending, and True if the text may end here."""
        given, count = ids_argument(ids)
        bits = ffi.new("const uint64_t **")
        ends = ffi.new("bool *")
        check(lib.fr_grammar_allowed(self._handle.pointer, given, count, bits, ends))
        words: Sequence[int] = ffi.unpack(bits[0], (self._count() + 63) // 64)
        found = [64 * at + bit for at, word in enumerate(words) if word for bit in range(64) if word >> bit & 1]
        return found, bool(ends[0])

    def _count(self) -> int:
        tree = self._handle._used[0]
        return int(lib.fr_tokenizer_count(tree._used[0]._pointer))

    def close(self) -> None:
        """Frees the grammar, once no session uses it any more."""
        self._handle.drop()
