"""Lists an answer's keys and their types, and compares those of two servers.

In: JSON values. Out: paths such as choices[].message.content, each with the types that it was seen with.
"""

TYPES = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array",
         dict: "object"}
OPEN = {"logit_bias", "chat_template_caps"}  # objects whose keys are no part of the form


def shape(value, path="", into=None):
    """Returns the shape of a value, or of several joined: path -> types."""
    into = {} if into is None else into
    into.setdefault(path, set()).add(TYPES[type(value)])
    if isinstance(value, dict) and path.rsplit(".", 1)[-1] not in OPEN:
        for key, item in value.items(): shape(item, f"{path}.{key}" if path else key, into)
    elif isinstance(value, list):
        for item in value: shape(item, path + "[]", into)
    return into


def below(path, paths):
    """True if the path is inside one of them, which is then named alone."""
    return any(path != other and path.startswith((other + ".", other + "[")) for other in paths)


def differences(ours, theirs):
    """Returns (kind, path): "missing" for keys that only they have, "extra" for keys that only we have, "type" for
    different types."""
    missing, extra = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
    found = [("missing", path) for path in missing if not below(path, missing)]
    found += [("extra", path) for path in extra if not below(path, extra)]
    for path in ours.keys() & theirs.keys():
        if ours[path] != theirs[path]:
            found.append(("type", f"{path}: {'/'.join(sorted(ours[path]))}, theirs {'/'.join(sorted(theirs[path]))}"))
    return sorted(found)
