"""make_seeds.py FORERUN: the seeds of this folder, which libFuzzer's targets (tests/fuzz/fuzz_NAME.c) begin with and
`make check` replays, from the fixtures beside it. FORERUN is the built command. Files named found-* are not made here:
they once made a target fail.

A GGUF seed ends where the tensors' data begin, and has no tokenizer: the targets put data behind it.
"""
import json, os, re, shutil, struct, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = f"{HERE}/.."
FORERUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None


def write(folder, name, content):
    os.makedirs(f"{HERE}/{folder}", exist_ok=True)
    with open(f"{HERE}/{folder}/{name}", "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def read(path):
    with open(f"{DATA}/{path}", "rb") as file:
        return file.read()


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------------- GGUF

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


def gguf_parts(path):
    """The keys and the tensors, each as its bytes: [(name, bytes)], [bytes], version."""
    raw = open(path, "rb").read()
    at = 4

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize("<" + form)
        return value[0]

    def skip(kind, count=1):
        nonlocal at
        if kind == STRING:
            for _ in range(count):
                length = take("Q")
                at += length
        elif kind == ARRAY:
            element = take("I")
            skip(element, take("Q"))
        else:
            at += SIZES[kind] * count

    def name():
        nonlocal at
        length = take("Q")
        at += length
        return raw[at - length:at].decode()

    version, tensors, keys = take("I"), take("Q"), take("Q")
    found, infos = [], []
    for _ in range(keys):
        begin, key = at, name()
        skip(take("I"))
        found.append((key, raw[begin:at]))
    for _ in range(tensors):
        begin = at
        name()
        dims = take("I")
        at += 8 * dims + 4 + 8
        infos.append(raw[begin:at])
    return version, found, infos


def gguf_head(path, keep=lambda key: not key.startswith("tokenizer.")):
    version, keys, infos = gguf_parts(path)
    keys = [data for key, data in keys if keep(key)]
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    return head + bytes(-len(head) % 32)


def gguf():
    for path in ("gguf/moe-odd", "gguf/e-q4_0", "gguf/ik", "glm-ocr/model-q4_0", "glm-ocr/mmproj-bf16"):
        write("gguf", path.replace("/", "-"), gguf_head(f"{DATA}/{path}.gguf"))


# ----------------------------------------------------------------------------------------------- folders as published

def safetensors(header, data):
    text = header if isinstance(header, str) else compact(header)
    return struct.pack("<Q", len(text)) + text.encode() + data


def weights():
    def entry(kind, shape, begin, end):
        return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}

    write("safetensors", "types", safetensors(
        {"__metadata__": {"format": "pt"}, "m.weight": entry("BF16", [2, 4], 0, 16), "n.weight": entry("F32", [3], 16, 28),
         "h": entry("F16", [1, 2, 3], 28, 40), "order": entry("I64", [2], 40, 56), "u": entry("F8_E4M3", [4], 56, 60),
         "s": entry("F32", [], 60, 64), "empty": entry("F32", [0, 5], 64, 64)}, bytes(64)))
    write("safetensors", "none", safetensors("{}", b""))
    write("safetensors", "padded", safetensors('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}   ', bytes(4)))
    shards = {"a": "first.safetensors", "b": "first.safetensors", "c": "second.safetensors", "d": "second.safetensors"}
    write("index", "right", compact({"metadata": {"total_size": 20}, "weight_map": shards}))
    write("index", "a-tensor-too-much", compact({"weight_map": {**shards, "e": "first.safetensors"}}))
    write("index", "other-names", compact({"weight_map": {"a": "../first.safetensors", "b": 1}}))


def configurations():
    for name in ("gemma4-e", "gemma4-dense-odd", "gemma4-moe", "glm-ocr-odd"):
        write("config", name, compact(json.loads(read(f"models/{name}/config.json"))))
    write("generation", "two-ends", read("models/gemma4-dense-odd/generation_config.json"))
    write("generation", "one-end", '{"eos_token_id": 1}')
    write("generation", "none", "{}")


if __name__ == "__main__":
    gguf()
    weights()
    configurations()
