"""Tests the texts that JSON schemas allow: random walks through forerun's masks, judged by the package jsonschema.

usage: tests/references/schemas.py LIBRARY MODEL [WALKS] [FILE...]
       tests/references/schemas.py LIBRARY MODEL --write tests/data/grammars/schemas.json

In: a shared library; a GGUF file with a vocabulary; the number of walks for each schema (20); files with lists of
schemas (default: those below). Out: the line of each schema that is refused, each text that does not fit its schema,
and then counts. Exit status 1 if a text does not fit. A walk takes random allowed tokens; the longer it gets, the more
often it takes short ones that close something. --write: writes, for tests/language/grammar/test_grammar.c, a few such
texts of each schema and others that differ a little, each with jsonschema's verdict.
"""
import ctypes
import json
import random
import sys
from decimal import Decimal

import jsonschema

GBNF, REGEX, SCHEMA = range(3)
LIMIT = 400  # tokens in a walk
CLOSING = [b'"', b"}", b"]", b'"}', b'"]', b"0", b"null"]

SCHEMAS = [
    {}, True, {"type": "object"}, {"type": "array"}, {"type": "string"}, {"type": "integer"}, {"type": "number"},
    {"type": ["string", "null"]}, {"enum": ["a", 1, None, {"b": [True]}]}, {"const": "x\"y\n"},
    {"type": "string", "minLength": 2, "maxLength": 5}, {"type": "string", "pattern": "^[a-z]+-\\d{2,3}$"},
    {"type": "string", "pattern": "b\"|\\\\"}, {"type": "integer", "minimum": -17, "maximum": 1203},
    {"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "maximum": -5}, {"type": "integer", "minimum": 99},
    {"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "exclusiveMinimum": -2.5, "exclusiveMaximum": 3},
    {"type": "number", "minimum": 1000}, {"minimum": 3, "exclusiveMaximum": 4}, {"type": "number", "maximum": -0.5},
    {"type": "integer", "minimum": 10, "exclusiveMinimum": True, "$schema": "http://json-schema.org/draft-04/schema#"},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 2, "maxItems": 4},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": False},
    {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "boolean"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "items": {"type": "null"}, "maxItems": 0}, {"type": "array", "items": {"enum": [1, 2]}},
    {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
     "required": ["name"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}},
    {"type": "object", "properties": {"ab": {"type": "integer"}, "abc": {"type": "null"}, "b": True},
     "additionalProperties": {"type": "string", "maxLength": 3}, "required": ["abc", "z"]},
    {"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "object", "additionalProperties": False},
    {"properties": {"when": {"format": "date-time", "type": "string"}, "day": {"format": "date", "type": "string"},
                    "id": {"format": "uuid", "type": "string"}, "ip": {"format": "ipv4", "type": "string"},
                    "mail": {"format": "email", "type": "string"}, "at": {"format": "uri", "type": "string"},
                    "host": {"format": "hostname", "type": "string"}, "clock": {"format": "time", "type": "string"}},
     "required": ["when", "id"]},
    {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "object", "properties": {"x": {"type": "null"}}}]},
    {"oneOf": [{"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
                "required": ["kind"]},
               {"type": "object", "properties": {"kind": {"const": "dog"}, "good": {"type": "boolean"}},
                "required": ["kind"]}]},
    {"type": "object", "properties": {"q": {"type": "string"}}, "anyOf": [{"required": ["q"]}, {"required": ["r"]}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
               {"properties": {"a": {"minimum": 5}, "b": {"type": "boolean"}}, "required": ["b"]}]},
    {"$defs": {"node": {"type": "object", "required": ["value", "next"], "additionalProperties": False, "properties": {
        "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}},
     "$ref": "#/$defs/node"},
    {"definitions": {"a/b": {"type": "boolean"}}, "type": "array", "items": {"$ref": "#/definitions/a~1b"}},
    {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
     "additionalProperties": False},
    {"type": "object", "properties": {"ä\"ö": {"type": "boolean"}}, "required": ["ä\"ö"], "additionalProperties": {}},
    {"type": ["integer", "array"], "items": {"type": "boolean"}, "minimum": 4},
    {"enum": ["x", 5, True], "type": ["string", "boolean"]},
    {"type": "string", "pattern": "^[a-z][a-z0-9-]*$", "minLength": 2, "maxLength": 6},
    {"type": "string", "pattern": "ab", "maxLength": 4}, {"type": "string", "format": "hostname", "maxLength": 8},
    {"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b"}, {"pattern": "^.{0,5}$"}]},
    {"type": "integer", "multipleOf": 7, "minimum": -50, "maximum": 100}, {"type": "integer", "multipleOf": 25},
    {"type": "number", "multipleOf": 0.25, "minimum": -3, "maximum": 12}, {"type": "number", "multipleOf": 0.01},
    {"type": "integer", "multipleOf": 1.5}, {"allOf": [{"multipleOf": 4, "type": "integer"}, {"multipleOf": 6}]},
    {"type": "object", "patternProperties": {"^x-": {"type": "string", "maxLength": 3}}, "additionalProperties": False},
    {"type": "object", "properties": {"n": {"type": "integer"}, "x-a": {"maxLength": 2}}, "required": ["x-b"],
     "patternProperties": {"^x-": {"type": "string"}, "-\\d$": {"minLength": 1, "maxLength": 4}},
     "additionalProperties": {"type": "boolean"}},
    {"type": "object", "propertyNames": {"pattern": "^[A-Z]{1,3}$"}, "additionalProperties": {"type": "integer"}},
    {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "maxProperties": 1},
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}},
     "minProperties": 2, "additionalProperties": False}, {"type": "object", "minProperties": 1},
    {"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "maxProperties": 2, "required": ["b"]},
    {"type": "array", "items": {"enum": ["r", "g", "b"]}, "uniqueItems": True, "minItems": 1},
    {"type": "array", "items": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 2]}, "uniqueItems": True, "minItems": 3,
     "maxItems": 5},
    {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "contains": {"minimum": 5},
     "maxItems": 4}, {"type": "array", "contains": {"const": "x"}, "minContains": 2, "items": {"enum": ["x", "y"]}},
    {"not": {"type": "string"}}, {"type": "string", "not": {"enum": ["a", "ab"]}, "maxLength": 3},
    {"type": "integer", "minimum": 0, "maximum": 20, "not": {"enum": [3, 17, 20]}}, {"not": {"const": None}},
    {"type": "number", "not": {"const": 0.5}, "minimum": 0, "maximum": 2}, {"enum": [1, 2, "x"], "not": {"const": 2}},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
     "not": {"required": ["a", "b"]}, "additionalProperties": False},
    {"type": "string", "not": {"pattern": "a"}, "maxLength": 4}, {"type": "integer", "not": {"minimum": 10}},
    {"type": "object", "properties": {"kind": {"enum": ["card", "cash"]}, "number": {"type": "string", "maxLength": 3}},
     "required": ["kind"], "if": {"properties": {"kind": {"const": "card"}}}, "then": {"required": ["number"]},
     "else": {"properties": {"number": False}}},
    {"type": "object", "properties": {"country": {"type": "string", "maxLength": 4}, "zip": {"type": "string"}},
     "required": ["country", "zip"],
     "allOf": [{"if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
                "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}}},
               {"if": {"properties": {"country": {"const": "NL"}}, "required": ["country"]},
                "then": {"properties": {"zip": {"pattern": "^[0-9]{4} [A-Z]{2}$"}}}}]},
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}},
     "dependentRequired": {"a": ["b"], "b": ["c"]}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": False,
     "dependentSchemas": {"a": {"maxProperties": 1}}},
    {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "integer"}},
     "dependencies": {"a": ["b"], "b": {"properties": {"b": {"minimum": 5}}}},
     "$schema": "http://json-schema.org/draft-07/schema#"},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object",
     "properties": {"a": {"type": "null"}, "b": {"type": "null"}}, "additionalProperties": False},
    {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "integer", "maximum": 5}]},
    {"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^a"}]},
    {"allOf": [{"properties": {"a": {"type": "null"}}, "additionalProperties": False},
               {"properties": {"a": True, "b": {"type": "integer"}}}], "type": "object"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": {"type": "null"}}}}, "required": ["x"],
     "properties": {"y": {"type": "boolean"}}, "unevaluatedProperties": False},
    {"allOf": [{"anyOf": [{"minimum": 5}, {"maximum": 2}]}, {"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}]}],
     "type": "integer", "minimum": -20, "maximum": 20},
    {"enum": ["abc", "b", "abcd", 7], "minLength": 2, "pattern": "^a"}, {"enum": [1, 5, 9], "minimum": 4},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string", "maxLength": 2}], "items": False,
     "minItems": 1},
    {"anyOf": [{"type": "string", "minLength": 5, "maxLength": 4}, {"type": "boolean"}]},
    {"type": "object", "properties": {"a": {"minimum": 5, "maximum": 4, "type": "integer"}, "b": {"type": "null"}}},
]

NULL, MEMBERS = {"type": "null"}, ["{}"] + [f'{{"{m}":{v}}}' for m in "abc" for v in ("null", "true")]

# Schemas, and texts of which some fit; random walks would hardly ever reach them.
GIVEN = [
    ({"type": "array", "items": {"type": "boolean", "anyOf": [{"const": True}, {"type": "string"}]},
      "uniqueItems": True}, ["[]", "[true]", "[false]", "[true,false]"]),
    ({"type": "array", "items": {"type": "null", "not": {"type": "null"}}, "uniqueItems": True}, ["[]", "[null]"]),
    ({"type": "array", "items": {"enum": [1, 2, 2.0, "a"], "type": "number"}, "uniqueItems": True},
     ["[1,2]", "[2,2]", '["a"]', '[1,"a"]']),
    ({"type": "object", "propertyNames": {"type": "integer"}}, ["{}", '{"a":1}', '{"1":1}']),
    ({"type": "object", "propertyNames": {"type": ["null", "string"], "maxLength": 1}}, ['{"a":1}', '{"ab":1}', "{}"]),
    ({"type": "object", "propertyNames": {"enum": ["a", 5, "b"], "minLength": 1, "pattern": "a"},
      "additionalProperties": {"type": "null"}}, ['{"a":null}', '{"b":null}', '{"5":null}', "{}"]),
    ({"enum": [[1.0], {"a": 2}, [[3]]], "anyOf": [{"const": [1]}, {"const": {"a": 2.0}}]},
     ["[1.0]", '{"a":2}', "[[3]]", "[2]"]),
    ({"enum": [9007199254740993, 9007199254740992, 5], "not": {"const": 9007199254740992}},
     ["9007199254740993", "9007199254740992", "5"]),
    ({"allOf": [{"enum": [9007199254740993, 5]}, {"enum": [9007199254740992, 5]}]},
     ["9007199254740993", "9007199254740992", "5"]),
    ({"enum": [9007199254740992, 9007199254740993, 9007199254740994], "minimum": 9007199254740993,
      "exclusiveMaximum": 9007199254740994}, ["9007199254740992", "9007199254740993", "9007199254740994"]),
    ({"type": "integer", "minimum": 9007199254740993, "maximum": 9007199254740995},
     ["9007199254740992", "9007199254740993", "9007199254740995", "9007199254740996"]),
    ({"type": "integer", "exclusiveMinimum": -900719925474099301, "maximum": -900719925474099299},
     ["-900719925474099301", "-900719925474099300", "-900719925474099299", "-900719925474099298"]),
    ({"allOf": [{"type": "integer", "minimum": 9007199254740993}, {"minimum": 9007199254740992}],
      "maximum": 9007199254740993}, ["9007199254740992", "9007199254740993"]),
    ({"const": 1, "enum": [1.0, 2]}, ["1.0", "2"]),
    ({"type": "string", "all patterns": ["a"], "no patterns": ["b"], "none of": ["ab"], "maxLength": 2},
     ['"ab"', '"b"', '"a"', '"abc"']),
    ({"properties": {"none of": {"type": "null"}}, "required": ["none of"], "additionalProperties": False},
     ['{"none of":null}', "{}"]),
    ({"anyOf": [{"$ref": "#/$defs/a%20b%7E1%25"}, {"$ref": "#/%24defs%2Fc/anyOf/1"}, {"$ref": "#/$defs/%C3%A4~01/0"}],
      "$defs": {"a b/%": {"const": 1}, "c": {"anyOf": [False, {"const": 2}]}, "ä~1": {"0": {"const": 3}}}},
     ["1", "2", "3", "4"]),
    ({"type": "number", "not": {"const": -0.0}, "minimum": 0, "maximum": 1}, ["0", "-0", "0.5", "1"]),
    ({"type": "integer", "not": {"enum": [-0.0, 1]}, "minimum": -1, "maximum": 1}, ["0", "-0", "-1", "1"]),
    ({"enum": [-0.0, 1], "not": {"const": 0}}, ["-0.0", "0", "1"]),
    ({"type": "array", "contains": {"const": 1}, "minContains": 3, "": 1}, ["[1,1,1]", "[1]"]),
    ({"type": "object", "properties": {"a": NULL}, "additionalProperties": False,
      "allOf": [{"properties": {"b": NULL}}]}, MEMBERS),
    ({"type": "object", "properties": {"a": NULL}, "allOf": [{"properties": {"b": NULL}, "additionalProperties": False},
                                                             {"properties": {"c": NULL}}]}, MEMBERS),
    ({"type": "object", "properties": {"a": NULL}, "$ref": "#/$defs/x",
      "$defs": {"x": {"properties": {"b": NULL}, "additionalProperties": {"type": "boolean"}}}}, MEMBERS),
    ({"type": "object", "properties": {"a": NULL, "b": NULL},
      "anyOf": [{"properties": {"b": NULL}, "additionalProperties": False}, {"required": ["a"]}]}, MEMBERS),
    ({"type": "object", "properties": {"a": NULL}, "then": {"properties": {"b": NULL}},
      "if": {"required": ["a"]}, "else": {"properties": {"a": NULL}, "additionalProperties": False}}, MEMBERS),
    ({"type": "object", "properties": {"a": {"enum": [None, True], "not": {"const": None}}},
      "unevaluatedProperties": False}, MEMBERS),
    ({"type": "object", "$ref": "#/$defs/x", "unevaluatedProperties": False,
      "$defs": {"x": {"anyOf": [{"properties": {"a": NULL}}, {"properties": {"b": NULL}, "required": ["b"]}]},
                "y": {"not": {"$ref": "#/$defs/y"}}}}, MEMBERS),
]


class Library:
    def __init__(self, path, model):
        self.c = ctypes.CDLL(path)
        self.c.fr_last_error.restype = ctypes.c_char_p
        self.c.fr_tokenizer_count.restype = ctypes.c_size_t
        self.c.fr_token_bytes.restype = ctypes.c_void_p
        self.tokenizer, self.tree = ctypes.c_void_p(), ctypes.c_void_p()
        self.ask(self.c.fr_tokenizer_open(model.encode(), None, ctypes.byref(self.tokenizer)))
        self.ask(self.c.fr_token_tree_open(self.tokenizer, ctypes.byref(self.tree)))
        self.count = self.c.fr_tokenizer_count(self.tokenizer)
        self.bytes = [self.token(i) for i in range(self.count)]

    def ask(self, status):
        if status: raise ValueError(self.c.fr_last_error().decode())

    def token(self, number):
        length = ctypes.c_size_t()
        at = self.c.fr_token_bytes(self.tokenizer, number, ctypes.byref(length))
        return ctypes.string_at(at, length.value) if at else b""

    def open(self, kind, text):
        grammar, data = ctypes.c_void_p(), text.encode()
        self.ask(self.c.fr_grammar_open(self.tree, kind, data, ctypes.c_size_t(len(data)), ctypes.byref(grammar)))
        return grammar

    def allowed(self, grammar, ids):
        bits, ends = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_bool()
        array = (ctypes.c_int32 * max(len(ids), 1))(*ids)
        self.ask(self.c.fr_grammar_allowed(grammar, array, ctypes.c_size_t(len(ids)), ctypes.byref(bits),
                                           ctypes.byref(ends)))
        return [i for i in range(self.count) if bits[i // 64] >> (i % 64) & 1], ends.value


def walk(library, grammar):
    """Returns a text, and true if it came to an end."""
    ids = []
    while len(ids) < LIMIT:
        allowed, ends = library.allowed(grammar, ids)
        if ends and (not allowed or random.random() < 0.3): break
        closing = [i for i in allowed if library.bytes[i].strip(b" \n\t") in CLOSING]
        plain = [i for i in allowed if library.bytes[i].isascii()] or allowed
        if not allowed: raise ValueError("nothing is allowed where the text can't end")
        closes = closing and random.random() < len(ids) / 60
        ids.append(random.choice(closing if closes else random.choice([plain, allowed])))
    else:
        ends = False
    return b"".join(library.bytes[i] for i in ids), ends


def says(judge, text):
    """Returns true if a text is JSON that the schema allows."""
    try:
        judge.validate(json.loads(text.decode(), parse_float=Decimal))
    except Exception:  # jsonschema may raise anything for a wrong text
        return False
    return True


def changed(text):
    """Returns the text with one character less, more, or replaced."""
    at, kind = random.randrange(len(text)), random.randrange(3)
    other = random.choice(b'"{}[],:019-.eabcx tn')
    return text[:at] + (bytes([other]) if kind else b"") + text[at + (kind < 2):]


def write(library, path):
    lines = []
    for schema in SCHEMAS:
        judge, grammar = judge_of(schema), library.open(SCHEMA, json.dumps(schema, ensure_ascii=False))
        texts = {}
        for _ in range(40):
            text, whole = walk(library, grammar)
            if len(text) > 300 or len(texts) > 24: continue
            for candidate in [text] if whole else []: texts[candidate] = says(judge, candidate)
            for candidate in (changed(text) for _ in range(8)):
                if candidate.isascii() and not says(judge, candidate): texts[candidate] = False
        kept = [[t.decode(), yes] for t, yes in texts.items()]
        lines.append(json.dumps([json.dumps(schema, ensure_ascii=False), kept], ensure_ascii=False))
    for schema, texts in GIVEN:
        kept = [[text, says(judge_of(schema), text.encode())] for text in texts]
        lines.append(json.dumps([json.dumps(schema, ensure_ascii=False), kept], ensure_ascii=False))
    with open(path, "w") as file: file.write("[" + ",\n".join(lines) + "]\n")


def judge_of(schema):
    """Returns a validator that reads numbers as decimal ones: 0.3 is a multiple of 0.1."""
    schema = json.loads(json.dumps(schema), parse_float=Decimal)
    kind = jsonschema.validators.validator_for(schema)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def main(path, model, walks="20", *files):
    library = Library(path, model)
    if walks == "--write":
        random.seed(20261128)
        return write(library, files[0])
    schemas = [s for name in files for s in json.load(open(name))] if files else SCHEMAS
    random.seed(20261128)
    ended = wrong = refused = 0
    for number, schema in enumerate(schemas):
        try:
            grammar = library.open(SCHEMA, json.dumps(schema, ensure_ascii=False))
        except ValueError as error:
            refused += 1
            print(f"{number}: refused: {error}")
            continue
        judge = judge_of(schema)
        for _ in range(int(walks)):
            text, whole = walk(library, grammar)
            if not whole: continue
            ended += 1
            try:
                judge.validate(json.loads(text.decode(), parse_float=Decimal))
            except Exception as error:  # jsonschema may raise anything for a wrong text
                wrong += 1
                print(f"{number}: {text!r}: {str(error).splitlines()[0]}")
        library.c.fr_grammar_close(grammar)
    print(f"{len(schemas)} schemas, {refused} refused; {ended} texts, {wrong} not of their schema")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
