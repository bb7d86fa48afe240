"""Lists an answer's keys and their types, and compares those of two servers.

In: JSON values. Out: paths such as choices[].message.content, each with the types that it was seen with.
"""

TYPES = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array",
         dict: "object"}
OPEN = {"logit_bias", "chat_template_caps"}  # objects whose keys do not belong to the form


def shape(value, path="", into=None):
    """Returns the shape of a value, or of several values together, as {path: types}."""
    into = {} if into is None else into
    into.setdefault(path, set()).add(TYPES[type(value)])
    if isinstance(value, dict) and path.rsplit(".", 1)[-1] not in OPEN:
        for key, item in value.items(): shape(item, f"{path}.{key}" if path else key, into)
    elif isinstance(value, list):
        for item in value: shape(item, path + "[]", into)
    return into


def below(path, paths):
    """Returns true if the path lies inside one of the other paths. Then only the outer path is reported."""
    return any(path != other and path.startswith((other + ".", other + "[")) for other in paths)


def differences(ours, theirs):
    """Returns (kind, path) for each difference. "missing": a key that only they have; "extra": a key that only we
    have; "type": both have the key, with values of different types."""
    missing, extra = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
    found = [("missing", path) for path in missing if not below(path, missing)]
    found += [("extra", path) for path in extra if not below(path, extra)]
    for path in ours.keys() & theirs.keys():
        if ours[path] != theirs[path]:
            found.append(("type", f"{path}: {'/'.join(sorted(ours[path]))}, theirs {'/'.join(sorted(theirs[path]))}"))
    return sorted(found)
