"""Writes schemas of the kinds that people use for models. The same seed gives the same schemas.

usage: tests/schemas/generate.py COUNT [SEED]

In: the number of schemas. Out: a schema per line. Lists and most strings are bounded, so that a small model's texts
come to an end. A few schemas have something that is refused (equal items, references to other documents), so that the
error lines are tested too.
"""
import json
import random
import sys

WORDS = ["id", "name", "kind", "size", "items", "note", "tags", "when", "count", "ok", "user", "path", "x-ref", "größe"]
PATTERNS = ["^[a-z]{2,8}$", "^[A-Z]{3}-\\d{2,4}$", "^(yes|no|maybe)$", "[0-9]", "^#[0-9a-f]{6}$", "^[^\\s]{1,10}$",
            "^v\\d+"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "email", "hostname", "uri"]
VALUES = ["red", "a b", "", "é", 0, 1, -3, 2.5, True, False, None, [1, 2], {"k": "v"}]


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def chance(self, share):
        return self.r.random() < share

    def pick(self, kinds):
        return self.r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]

    def bounds(self, low, high, least, most):
        """Returns, at random, a lower bound and an upper bound, or only one, or none."""
        one, other = sorted([self.r.randint(least, most), self.r.randint(least, most)])
        return {**({low: one} if self.chance(0.6) else {}), **({high: other} if self.chance(0.7) else {})}

    # ------------------------------------------------------------------------------------------------------- values

    def string(self, _):
        schema = {"type": "string"}
        kind = self.pick([("plain", 2), ("length", 4), ("pattern", 3), ("format", 3), ("both", 2), ("not", 0.5)])
        if kind in ("plain", "not"): schema["maxLength"] = self.r.randint(0, 30)
        if kind == "length": schema |= {"minLength": self.r.randint(0, 5), "maxLength": self.r.randint(5, 40)}
        if kind in ("pattern", "both"): schema["pattern"] = self.r.choice(PATTERNS)
        if kind == "both": schema["maxLength"] = self.r.randint(7, 20)
        if kind == "format": schema["format"] = self.r.choice(FORMATS)
        if kind == "not": schema["not"] = {"enum": ["none", "x"]}
        return schema

    def integer(self, _):
        schema = {"type": "integer", **self.bounds("minimum", "maximum", -1000, 5000)}
        if self.chance(0.2): schema["multipleOf"] = self.r.choice([1, 2, 5, 10, 25])
        if "multipleOf" in schema and "minimum" in schema and "maximum" in schema: schema["maximum"] += 50
        if self.chance(0.1): schema["exclusiveMinimum"] = schema.pop("minimum", 0) - 1
        return schema

    def number(self, _):
        schema = {"type": "number", **self.bounds("minimum", "maximum", -100, 100)}
        if self.chance(0.2): schema["multipleOf"] = self.r.choice([0.5, 0.25, 0.1, 0.01, 3])
        if "maximum" in schema and self.chance(0.3): schema["exclusiveMaximum"] = schema.pop("maximum") + 0.5
        return schema

    def word(self, _):
        return {"type": self.r.choice(["boolean", "null", "boolean"])}

    def enum(self, _):
        values = self.r.sample(VALUES, self.r.randint(1, 5))
        if self.chance(0.3): return {"const": values[0]}
        if self.chance(0.5): return {"type": "string", "enum": self.r.sample(WORDS, self.r.randint(1, 6))}
        return {"enum": values}

    def types(self, _):
        types = self.r.sample(["string", "integer", "boolean", "null"], 2)
        return {"type": types, "maxLength": 12} if "string" in types else {"type": types}

    # ------------------------------------------------------------------------------------------------ composed schemas

    def array(self, depth):
        schema = {"type": "array", "maxItems": self.r.randint(0, 5)}
        kind = self.pick([("list", 6), ("tuple", 2), ("unique", 1), ("contains", 0.5), ("any", 0.3), ("refused", 0.15)])
        if kind == "list": schema["items"] = self.schema(depth - 1)
        if kind == "list" and self.chance(0.5): schema["minItems"] = self.r.randint(0, schema["maxItems"])
        if kind == "tuple":
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(self.r.randint(1, 3))]
            schema["items"] = self.r.choice([False, {"type": "boolean"}])
        if kind == "unique": schema |= {"items": {"enum": self.r.sample(WORDS, self.r.randint(2, 9))}}
        if kind == "refused": schema |= {"items": {"type": "string", "maxLength": 4}, "maxItems": 3}
        if kind in ("unique", "refused"): schema["uniqueItems"] = True
        if kind == "contains":
            schema |= {"items": {"type": "integer"}, "contains": {"minimum": 5, "maximum": 50}, "maxItems": 3}
        return schema

    def object(self, depth):
        names = self.r.sample(WORDS, self.r.randint(0, 5))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        if self.chance(0.8): schema["required"] = [name for name in names if self.chance(0.6)]
        kind = self.pick([("closed", 5), ("open", 3), ("typed", 1), ("patterns", 1), ("names", 0.5), ("counted", 1)])
        if kind == "closed": schema["additionalProperties"] = False
        if kind == "typed": schema |= {"additionalProperties": {"type": "boolean"}, "maxProperties": len(names) + 2}
        if kind == "patterns":
            schema["patternProperties"] = {"^x-[a-z]{1,4}$": {"type": "string", "maxLength": 8}}
            schema |= {"additionalProperties": False, "maxProperties": len(names) + 2}
        if kind == "names":
            schema = {"type": "object", "propertyNames": {"pattern": "^[a-z]{1,6}$"}, "maxProperties": 3,
                      "additionalProperties": self.schema(0)}
        if kind == "counted": schema |= {"minProperties": min(len(names), 1), "additionalProperties": False}
        if len(names) > 1 and kind in ("closed", "open") and self.chance(0.15): self.condition(schema, names)
        return schema

    def condition(self, schema, names):
        one, other = names[:2]
        kind = self.r.choice(["dependent", "if", "one", "not"])
        if kind == "dependent": schema["dependentRequired"] = {one: [other]}
        if kind == "if": schema |= {"if": {"required": [one]}, "then": {"required": [other]}}
        if kind == "one": schema["oneOf"] = [{"required": [one]}, {"required": [other]}]
        if kind == "not": schema["not"] = {"required": [one, other]}
        if kind in ("one", "not"): schema.pop("required", None)

    def choice(self, depth):
        kind = self.r.choice(["anyOf", "anyOf", "oneOf", "allOf"])
        if kind == "anyOf": return {"anyOf": [self.schema(depth - 1) for _ in range(self.r.randint(1, 3))]}
        if kind == "allOf":
            names = self.r.sample(WORDS, 2)
            return {"allOf": [{"type": "object", "properties": {n: self.schema(depth - 1)}, "required": [n]}
                              for n in names]}
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": k}, "value": self.schema(depth - 1)},
                           "required": ["kind"], "additionalProperties": False} for k in ("a", "b", "c")[:2]]}

    def schema(self, depth):
        leaves = [(self.string, 4), (self.integer, 3), (self.number, 2), (self.word, 2), (self.enum, 2),
                  (self.types, 1)]
        inner = [(self.object, 5), (self.array, 4), (self.choice, 2)] if depth > 0 else []
        return self.pick(leaves + inner)(depth)

    # -------------------------------------------------------------------------------------------------- whole schemas

    def with_definitions(self):
        leaf, name = self.schema(1), self.r.choice(["$defs", "definitions"])
        return {name: {"leaf": leaf}, "type": "object", "required": ["one"], "additionalProperties": False,
                "properties": {"one": {"$ref": f"#/{name}/leaf"},
                               "more": {"type": "array", "items": {"$ref": f"#/{name}/leaf"}, "maxItems": 2}}}

    def recursive(self):
        end = self.r.choice([{"type": "null"}, {"const": 0}])
        node = {"type": "object", "properties": {"value": self.schema(0), "next": {"anyOf": [{"$ref": "#"}, end]}},
                "required": ["value", "next"], "additionalProperties": False}
        if self.chance(0.5): node["properties"]["next"] = {"anyOf": [end, {"$ref": "#"}]}
        return node

    def whole(self):
        kind = self.pick([("object", 6), ("any", 2), ("definitions", 1), ("recursive", 0.7), ("elsewhere", 0.1)])
        if kind == "definitions": return self.with_definitions()
        if kind == "recursive": return self.recursive()
        if kind == "elsewhere": return {"type": "array", "items": {"$ref": "other.json#/a"}, "maxItems": 2}
        return self.object(self.r.randint(1, 3)) if kind == "object" else self.schema(self.r.randint(1, 3))


def schemas(count, seed=20261128):
    generator = Generator(seed)
    return [generator.whole() for _ in range(count)]


if __name__ == "__main__":
    for schema in schemas(int(sys.argv[1]), *map(int, sys.argv[2:])): print(json.dumps(schema, ensure_ascii=False))
