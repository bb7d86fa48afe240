"""make_seeds.py FORERUN: writes the seeds of this folder from the fixtures beside it. libFuzzer's targets
(tests/fuzz/fuzz_NAME.c) begin with them, and `make check` replays them. FORERUN is the built command. Files named
found-* are not made here: each once made a target fail.

A GGUF seed ends where the tensors' data begin, and has no tokenizer. The targets append the data.
"""
import base64, json, os, re, struct, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = f"{HERE}/.."
FORERUN = os.path.abspath(sys.argv[1])


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
    """Returns the bytes of each key [(name, bytes)], those of each tensor [bytes], and the version."""
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
    keys = [data for key, data in keys if keep(key)] + [text_array("general.tags", ["a", "", "longer"])]
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    return head + bytes(-len(head) % 32)


def of_block_drafter(key):
    return key == "tokenizer.ggml.mask_token_id" or not key.startswith("tokenizer.")


def text_array(key, texts):
    def string(text):
        return struct.pack("<Q", len(text.encode())) + text.encode()

    return string(key) + struct.pack("<IIQ", ARRAY, STRING, len(texts)) + b"".join(map(string, texts))


def gguf():
    for path in ("gguf/moe-odd", "gguf/e-q4_0", "gguf/ik", "gguf/moe-odd-assistant", "glm-ocr/model-q4_0",
                 "glm-ocr/mmproj-bf16", "llama/q4_0", "dense/qwen2-yarn", "dense/gemma3-tower", "encoders/gguf/bert-mean",
                 "encoders/gguf/nomic", "encoders/gguf/modernbert"):
        write("gguf", path.replace("/", "-"), gguf_head(f"{DATA}/{path}.gguf"))
    for name in ("dspark-qwen3", "v2-qwen3"):
        write("gguf", f"dflash-{name}", gguf_head(f"{DATA}/dflash/{name}/drafter.gguf", of_block_drafter))


# -------------------------------------------------------------------------------------------------- published folders

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
    write("safetensors", "blocks", safetensors({"a": entry("Q4_K", [64, 256], 0, 0)}, b""))
    shards = {"a": "first.safetensors", "b": "first.safetensors", "c": "second.safetensors", "d": "second.safetensors"}
    write("index", "right", compact({"metadata": {"total_size": 20}, "weight_map": shards}))
    write("index", "a-tensor-too-much", compact({"weight_map": {**shards, "e": "first.safetensors"}}))
    write("index", "other-names", compact({"weight_map": {"a": "../first.safetensors", "b": 1}}))


def storages():
    """Writes seeds of quantized folders: config.json, a NUL, and the header of one module."""
    for kind in sorted(os.listdir(f"{DATA}/storages")):
        if kind == "whole":
            continue
        raw = read(f"storages/{kind}/model.safetensors")
        header = json.loads(raw[8:8 + struct.unpack_from("<Q", raw)[0]])
        write("storage", kind, compact(json.loads(read(f"storages/{kind}/config.json"))) + "\0" + compact(header))



def configurations():
    for name in ("gemma4-e", "gemma4-dense-odd", "gemma4-moe", "glm-ocr-odd", "llama", "llama-odd", "qwen2-window",
                 "gemma3-odd", "gemma3-tower", "qwen3-moe-odd", "qwen35-odd", "qwen35-moe-odd", "glm4-moe-odd",
                 "deepseek-v3-odd", "glm-4.7-flash-odd"):
        write("config", name, compact(json.loads(read(f"models/{name}/config.json"))))
    config = json.loads(read("models/llama/config.json"))
    del config["architectures"]
    write("config", "python-numbers", compact({**config, "time_step_limit": [0.0, float("inf")], "x": float("nan"),
                                               "y": -float("inf"), "model_max_length": int(1e30)}))
    write("generation", "python-numbers", '{"eos_token_id": 1, "max_time": Infinity, "x": [NaN, -Infinity, 1e999]}')
    write("generation", "two-ends", read("models/gemma4-dense-odd/generation_config.json"))
    write("generation", "one-end", '{"eos_token_id": 1}')
    write("generation", "none", "{}")
    write("generation", "suppressed", '{"eos_token_id": 1, "suppress_tokens": [258883, 6, -1, 7.0]}')


    for name in ("gemma4-e", "gemma4-dense-odd"):
        write("drafter", name, compact(json.loads(read(f"models/{name}/assistant/config.json"))))
    for name in ("eagle3", "eagle3-odd", "eagle3-qwen", "eagle3-layers", "eagle"):
        write("drafter", name, compact(json.loads(read(f"llama/{name}/config.json"))))
    for name in ("qwen3", "llama-sliding", "spec-llama", "v2-qwen3.5", "dspark-qwen3", "dspark-dense-qwen3"):
        write("drafter", f"dflash-{name}", compact(json.loads(read(f"dflash/{name}/drafter/config.json"))))
    for name in ("vision/tower", "glm-ocr", "vision/gemma3-crops", "vision/smolvlm", "vision/idefics3",
                 "vision/mistral3"):
        write("preprocessor", name.replace("/", "-"), compact(json.loads(read(f"{name}/preprocessor_config.json"))))
    write("preprocessor", "none", "{}")
    write("preprocessor", "nested",
          compact({"image_processor": json.loads(read("vision/tower/preprocessor_config.json"))}))


def encoders():
    """Writes seeds of encoders: config.json, or a file of sentence-transformers as its name, a new line and its
    content."""
    for name in ("bert-mean", "roberta", "mpnet", "distilbert", "nomic", "gte", "gemma", "cross-modernbert",
                 "cross-bert"):
        write("encoder", name, compact(json.loads(read(f"encoders/{name}/config.json"))))
    for name in ("modules.json", "1_Pooling/config.json", "2_Dense/config.json", "sentence_bert_config.json",
                 "tokenizer_config.json"):
        write("recipe", name.replace("/", "-"),
              name + "\n" + compact(json.loads(read(f"encoders/bert-modes/{name}"))))
    write("recipe", "judge", "modules.json\n" + compact(
        [{"type": "x.Transformer", "path": ""}, {"type": "x.LogitScore", "path": ""}]))
    write("recipe", "modules-of-all-kinds", "modules.json\n" + compact(
        [{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "1_Pooling"},
         {"type": "x.Dense", "path": "2_Dense"}, {"type": "x.Normalize", "path": ""}]))
    write("recipe", "old-pooling", "1_Pooling/config.json\n" + compact(
        {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True,
         "pooling_mode_max_tokens": True, "pooling_mode_lasttoken": True, "include_prompt": False}))
    write("recipe", "prompts", "config_sentence_transformers.json\n" + compact(
        {"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query",
         "activation_fn": "torch.nn.modules.linear.Identity"}))


# -------------------------------------------------------------------------------------------------------- tokenizers

def smaller(tokenizer, most):
    """Returns a tokenizer with only its added tokens, its single characters and bytes, and the first merges that use
    these."""
    model, added = tokenizer["model"], {token["content"] for token in tokenizer["added_tokens"]}
    basic = {token for token in model["vocab"] if token in added or len(token) == 1 or token.startswith("<0x")}
    merges = []
    for merge in model["merges"]:
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        if len(merges) < most and left in basic and right in basic:
            basic.add(left + right)
            merges.append(merge)
    model["vocab"] = {token: id for token, id in model["vocab"].items() if token in basic}
    model["merges"] = merges
    return tokenizer


def tokenizers():
    for name in ("models/gemma4-dense-odd", "tokenizers/glm4", "tokenizers/deepseek3", "tokenizers/llama3"):
        tokenizer = compact(smaller(json.loads(read(f"{name}/tokenizer.json")), 20))
        write("tokenizer", name.split("/")[1],
              tokenizer + "\0" + compact(json.loads(read(f"{name}/tokenizer_config.json"))))
    # Rules that no published tokenizer has, over a vocabulary of a few characters.
    small = {"version": "1.0", "added_tokens": [
        {"id": 4, "content": "<bos>", "special": True, "lstrip": True, "rstrip": True},
        {"id": 6, "content": "it", "single_word": True, "normalized": False}],
             "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Prepend", "prepend": "_"}]},
             "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a+(?!b)|\\s+"}, "behavior": "Isolated",
                               "invert": False},
             "decoder": {"type": "Sequence", "decoders": [
                 {"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
                 {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
             "post_processor": None,
             "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": False,
                       "vocab": {"<unk>": 0, "a": 1, "_": 2, "_a": 3, "<bos>": 4, "x": 5, "it": 6}, "merges": [["_", "a"]]}}
    write("tokenizer", "rules", compact(small))
    beside(small)
    styles()
    for path in ("gguf/moe-odd", "glm-ocr/model-q4_0"):
        keys = gguf_parts(f"{DATA}/{path}.gguf")[1]
        write_tokenizer(path.replace("/", "-"), gguf_texts(keys, 512))
    tokens = ["<unk>", "<s>", "</s>", "<end_of_turn>", "\n\n", *(f"<0x{b:02X}>" for b in range(0, 256, 5)), "▁", "a", "b", "aa", "▁a", "ab"]
    scores = [0.0] * (len(tokens) - 6) + [-9.0, -8.0, -7.0, -1.0, -2.0, -2.0]
    types = [2, 3, 3, 1, 4] + [6] * (len(tokens) - 11) + [1] * 6
    write_tokenizer("scores", [gguf_text("general.architecture", "gemma3"), gguf_text("tokenizer.ggml.model", "llama"),
                               text_array("tokenizer.ggml.tokens", tokens), numbers("tokenizer.ggml.scores", 6, "f", scores),
                               numbers("tokenizer.ggml.token_type", 5, "i", types)])
    tokens = [chr(b) for b in range(33, 127)] + ["Ġ", "Ċ", "ab", "<|im_start|>", "<|im_end|>", "<think>", "<|of_a_kind|>"]
    for pre in ("smollm", "qwen2", "kimi-k2", "superbpe", "jais-2", "tiny_aya", "deepseek-llm", "youtu", "gemma4"):
        write_tokenizer(pre, [gguf_text("general.architecture", "llama"), gguf_text("tokenizer.ggml.model", "gpt2"),
                              gguf_text("tokenizer.ggml.pre", pre), text_array("tokenizer.ggml.tokens", tokens),
                              text_array("tokenizer.ggml.merges", ["a b"])])
    gguf_models()


def gguf_models():
    """Writes seeds of GGUF tokenizers other than byte-level BPE, cut short, and of tokens that end texts."""
    kept = {"t5": 60, "bert": 60, "whitespace": 40}
    for case in json.loads(read("tokenizers/gguf_models.json")):
        if case["name"] not in kept: continue
        most = kept[case["name"]]
        keys = [gguf_text("general.architecture", "t5"), gguf_text("tokenizer.ggml.model", case["model"]),
                text_array("tokenizer.ggml.tokens", case["tokens"][:most]), numbers("tokenizer.ggml.token_type", 5, "i", case["types"][:most])]
        if "scores" in case:
            keys += [numbers("tokenizer.ggml.scores", 6, "f", case["scores"][:most]),
                     numbers("tokenizer.ggml.precompiled_charsmap", 0, "B", case["charsmap"])]
        if "merges" in case: keys.append(text_array("tokenizer.ggml.merges", case["merges"][:8]))
        keys += [flag(f"tokenizer.ggml.{name}", value) for name, value in case["flags"].items()]
        keys += [number(f"tokenizer.ggml.{name}_token_id", value) for name, value in case["ids"].items()]
        write_tokenizer(case["name"], keys)
    tokens = [chr(b) for b in range(97, 123)] + ["<|end|>", "<|return|>", "<|call|>", "</s>", "<|file_sep|>", "<|fim_pad|>", "[EOT]"]
    write_tokenizer("ends", [gguf_text("general.architecture", "llama"), gguf_text("tokenizer.ggml.model", "gpt2"),
                             gguf_text("tokenizer.ggml.pre", "gpt-4o"), text_array("tokenizer.ggml.tokens", tokens),
                             numbers("tokenizer.ggml.token_type", 5, "i", [1] * 26 + [3] * 7), text_array("tokenizer.ggml.merges", []),
                             number("tokenizer.ggml.eos_token_id", 27), number("tokenizer.ggml.fim_sep_token_id", 30)])


def flag(key, value):
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I?", 7, value)


def number(key, value):
    return struct.pack("<Q", len(key)) + key.encode() + struct.pack("<II", 4, value)


def styles():
    """Writes seeds of other kinds of tokenizers, cut short, and of single rules: a pattern, a text, a map of
    characters."""
    for name in ("t5", "albert", "bert-uncased", "openai-gpt", "clip", "falcon", "byte-normalizer", "words"):
        spec = json.loads(read(f"tokenizers/styles/{name}.json"))["tokenizer"]
        kept = {token["content"] for token in spec["added_tokens"]}
        vocab, most = spec["model"]["vocab"], spec["model"]["vocab"].__len__() if "merges" in spec["model"] else 80
        if isinstance(vocab, list):
            spec["model"]["vocab"] = vocab[:80]
        else:
            short = {token: id for token, id in vocab.items() if id < most and (len(token) < 3 or token in kept or most == 80)}
            spec["model"]["vocab"] = short
        spec["model"]["merges"] = []
        if isinstance(vocab, list) or spec["model"]["type"] != "BPE":
            del spec["model"]["merges"]
        spec["added_tokens"] = [token for token in spec["added_tokens"] if token["id"] < 80]
        write("tokenizer", f"style-{name}", compact(spec))
    patterns = json.loads(read("tokenizers/patterns.json"))
    charsmap = json.loads(read("tokenizers/styles/t5.json"))["tokenizer"]["normalizer"]["precompiled_charsmap"]
    text = "".join(patterns["texts"]).replace("\0", "").encode()[:200]
    for number, (pattern, _) in enumerate(patterns["matched"]):
        if number % 3 == 0:
            write("text_rules", f"pattern-{number}", pattern.encode() + b"\0" + text)
    write("text_rules", "charsmap", b"\0" + "ﬁ½²é x\t№…".encode() + b"\0" + base64.b64decode(charsmap))


def beside(tokenizer):
    """Writes seeds of a tokenizer.json with the other files of its folder."""
    config = {"bos_token": {"content": "<bos>", "lstrip": False}, "pad_token": "x", "extra_special_tokens": {"image_token": "it"},
              "added_tokens_decoder": {"7": {"content": "<new>", "special": True, "lstrip": True}, "4": {"content": "<bos>"},
                                       "1": {"content": "<taken>"}}}
    write("tokenizer", "beside", compact(tokenizer) + "\0" + compact(config))
    flags = {"bos_token": "<bos>", "eos_token": "it", "add_bos_token": False, "add_eos_token": True, "x": float("nan")}
    write("tokenizer", "flags", compact({**tokenizer, "added_tokens": tokenizer["added_tokens"][:1] * 2}) + "\0" + compact(flags))
    old = [{"add_bos_token": True}, {"bos_token": "<bos>", "additional_special_tokens": ["<new>", {"content": "a"}]},
           {"<new>": 7, "it": 6}]
    write("tokenizer", "beside-old", compact(tokenizer) + "".join("\0" + compact(file) for file in old))


def write_tokenizer(name, keys):
    write("tokenizer_gguf", name, b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys) + bytes(32))


def gguf_text(key, text):
    return b"".join(struct.pack("<Q", len(part)) + part + more for part, more in
                    ((key.encode(), struct.pack("<I", STRING)), (text.encode(), b"")))


def numbers(key, element, form, values):
    return (struct.pack("<Q", len(key)) + key.encode() + struct.pack("<IIQ", ARRAY, element, len(values)) +
            struct.pack(f"<{len(values)}{form}", *values))


def gguf_texts(keys, most):
    """Returns the keys from which a tokenizer is read, with only the first tokens and at most one merge."""
    kept = []
    for key, data in keys:
        at = 8 + len(key) + 4
        if not key.startswith(("tokenizer.", "general.architecture")):
            continue
        if struct.unpack_from("<I", data, at - 4)[0] == ARRAY:
            element, count = struct.unpack_from("<IQ", data, at)
            count = min(count, 1 if key.endswith("merges") else most)
            begin = end = at + 12
            for _ in range(count):
                end += 8 + struct.unpack_from("<Q", data, end)[0] if element == STRING else SIZES[element]
            data = data[:at] + struct.pack("<IQ", element, count) + data[begin:end]
        kept.append(data)
    return kept


# -------------------------------------------------------------------------------------------------- the command's files

def lines():
    write("messages", "turns", '\n[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},'
          '{"role":"user","content":" What? "}]')
    write("messages", "calls-as-text", "\n" + json.dumps([
        {"role": "user", "content": [{"type": "text", "text": "a"}, "b"]},
        {"role": "assistant", "reasoning": "r", "content": None, "tool_calls": [
            {"id": "c", "function": {"name": "f", "arguments": '{"a": [1, {"b": 12345678901234567890}]}'}},
            {"function": {"name": "g", "arguments": ""}}]},
        {"role": "tool", "content": [{"type": "text", "text": "1"}]}]))
    write("messages", "wide-integers", '{"n":-9223372036854775809}\n[{"role":"user","content":"Hi"},{"role":"assistant",'
          '"tool_calls":[{"function":{"name":"f","arguments":{"n":[12345678901234567890,{"m":9223372036854775808}]}}}]}]')
    write("messages", "out-of-order", '{"tools":[{"name":"f"}],"rearrange":true}\n' + compact([
        {"role": "system", "content": "a"}, {"role": "developer", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": None}, {"role": "user", "content": "c"}, {"role": "system", "content": "d"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "x", "function": {"name": "f"}}, {"id": "y", "function": {"name": "g", "arguments": " null"}}]},
        {"role": "tool", "tool_call_id": "y", "content": "r"}, {"role": "system", "content": "e"},
        {"role": "function", "name": "f", "content": None}]))
    for name, options, last in (
            ("going-on", {}, {"content": "<think>\nb\n</think>\n\nc "}),
            ("going-on-thinking", {"thinking": True, "strict_roles": True}, {"content": None, "reasoning": "b "})):
        write("messages", name, compact({"continue_final_message": True, **options}) + "\n" + compact([
            {"role": "user", "content": "a"}, {"role": "assistant", **last}]))
    write("messages", "picture", '{"pictures":true,"enable_thinking":true}\n[{"role":"user","content":'
          '[{"type":"image"},{"type":"text","text":"Read"}]}]')
    for case in json.loads(read("chat/reference.json"))["gemma4"]:
        context = {key: value for key, value in case["context"].items() if not key.endswith("_token")}
        if "tool" in case["title"] and len(compact(case["messages"])) < 1500:
            write("messages", re.sub(r"\W+", "-", case["title"]), compact(context) + "\n" + compact(case["messages"]))
    forms = {"gemma4": 0, "deepseek": 1, "glm": 2, "qwen3.5": 3, "qwen": 4, "hermes": 4, "llama": 5}
    for case in json.loads(read("replies/calls.json"))["cases"]:
        template = os.path.basename(case["template"]).removesuffix(".jinja")
        form = [forms[name] for name in forms if template.startswith(name)][0]
        if case["title"] in ("one", "two", "kinds"):
            name = f"{template}-{case['title']}" + ("-thoughts" if case["message"]["reasoning_content"] else "")
            write("reply", name, chr(ord("9") + form) + "b" + case["reply"].replace("get_weather", "now"))
    for name, form, reply in (
            ("python-tag", 5, '<|python_tag|>now.call(s="a", n="b")'),
            ("plain-quotes", 0, '<|tool_call>call:now{s:"a\\"\u00e4",o:{"k":[<|"|>b<|"|>,\'c\']}}<tool_call|>'),
            ("void", 2, "<tool_call>now\n<arg_key>s</arg_key><arg_value>a</arg_value></arg_value>b"),
            ("unmarked", 3, "Look.\n<function=now>\n<parameter=s>\nx\n<parameter=o>\n{'k': None,}\n</function>"),
            ("held", 3, "<think>a <tool_call>\n<function=now>\n</function>\n</tool_call>\n"),
            ("loose", 4, "<tool_call>{'name': 'now', 'arguments': {'s': 'a\\x41\nb', \"s\": \"\\d\"}}"),
            ("several", 5, '{"name": "now", "parameters": {}}; {"name": "now", "parameters": {}}'),
            ("kimi", 7, "a<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>"
             '{"n": 1}<|tool_call_end|><|tool_calls_section_end|>'),
            ("minimax", 8, '<minimax:tool_call>\n<invoke name="now">\n<parameter name="s">a</parameter>\n</invoke>\n'
             '<invoke name="now"></invoke>\n</minimax:tool_call>'),
            ("seed-oss", 9, "<seed:tool_call>\n<function=now>\n<parameter=n>1</parameter>\n</function>\n"
             "</seed:tool_call>"),
            ("mistral", 10, '[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{"n": 1}[TOOL_CALLS]now[ARGS]{}'),
            ("mistral-list", 11, '[TOOL_CALLS] [{"name": "now", "arguments": {}}, {"name": "now", "arguments": {}}]'),
            ("lfm2", 12, "<|tool_call_start|>[now(s='a', o={'k': [True]}), now(n=1)]<|tool_call_end|>"),
            ("olmo3", 13, '<function_calls>\nnow(n=1)\nnow(s="x")\n</function_calls>'),
            ("command", 14, '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "now", "parameters": {"n": 1}}'
             "\n]<|END_ACTION|>"),
            ("command-r", 15, 'Action: ```json\n[{"tool_name": "now", "parameters": {}}]\n```'),
            ("phi4", 16, 'functools[{"name": "now", "arguments": {"n": 1}}]'),
            ("granite", 17, '<|tool_call|>[{"name": "now", "arguments": {"n": 1}}]'),
            ("glm4", 18, 'now\n{"n": 1}\nnow\n{}<|observation|>')):
        write("reply", name, chr(ord("9") + form) + "b" + reply)
    write("reply", "opened", b"9c\nhm\n\xff\xfe<channel|>\xffhi\n\xff\xfe<|tool_call>\xffcall:now{}\xff\xfe<tool_call|>")
    write("marked_text", "gemma", "\0\x11\x07\x08\0\x0d\n<bos><|turn>user\n<turn|><turn|>\n<|turn>model\n")
    write("marked_text", "qwen", "\0\x11\x0b\x0c\x03\x07\n<|im_start|>user\n<|im_start|im_end|>\n <think>e\u0301 </think>")
    write("marked_text", "spans", "!\0\x05\x05\x0c\x20\x30\n<bos><|turn>" + "<\uff5cUser\uff5c>" * 4)
    cases = json.loads(read("chat/template_cases.json"))["cases"]
    rendered = [case["template"] for case in cases if "rendered" in case and len(case["template"]) > 8]
    for i in range(0, len(rendered), 16):
        write("template", f"cases-{i // 16:02}", "\n".join(rendered[i:i + 16]))
    write("template", "wide-integers", '{{ w, v, -w, w > v, w == 1e19, [w, 1, v] | sort, {w: 1} | tojson, "%30d" % w, '
          '"{:,}".format(v), w + 0.5, v | abs, w | float, v | round }}')
    for i, case in enumerate(cases[::8]):
        if "error" in case:
            write("template", f"refused-{i}", case["template"])
    for case in json.loads(read("chat/reference.json"))["gemma4"]:
        if case["title"] in ("tool called and answered", "text parts", "reasoning_content", "thinking on"):
            given = compact({"messages": case["messages"], **case["context"]})
            write("template", "given-" + re.sub(r"\W+", "-", case["title"]), given)
    turns = [("system", "Be brief."), ("user", "Hi\0"), ("assistant", "Hello"), ("user", " caf\u00e9? "),
             ("assistant", "")]
    for name, first in (("system", 0), ("turns", 1)):
        messages = [compact({"role": role, "content": text}) for role, text in turns[first:]]
        write("conversation", name, "[" + ",\n".join(messages) + "]")
    called = [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
              {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": "f"}}]},
              {"role": "tool", "content": "wet"}, {"role": "assistant", "content": "Take a coat."}]
    write("conversation", "called", "[" + ",\n".join(compact(message) for message in called) + "]")
    said = {"messages": [{"role": "user", "content": "Hi"}], "ignore_eos": True, "stop": ["a", "bc"]}
    sampled = {"ids": [2, 5, 9], "temp": 0.9, "seed": 7, "top_k": 5, "top_p": 0.9, "min_p": 0.1}
    chat = {"messages": said["messages"], "max_tokens": 3, "logprobs": True, "top_logprobs": 2, "logit_bias": {"5": -1}}
    completion = {"prompt": [2, 5], "max_tokens": 3, "logprobs": 1, "temperature": 0.5, "stop": ["z"], "user": None}
    for name, line in (("prompt", {"id": [1], "prompt": "Once upon a time", "n": 4}), ("ids", sampled),
                       ("messages", said), ("images", {"prompt": "x", "images": ["a.png"]}),
                       ("chat-request", {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": chat}),
                       ("completion-request", {"custom_id": "b", "url": "/v1/completions", "body": completion})):
        write("job", name, compact(line))
    server = {**chat, "n": 2, "stream": True, "stream_options": {"include_usage": True}, "speculative.n_max": 2}
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                          {"role": "assistant", "content": "Once"}], "n_predict": 2, "reasoning_format": "auto"}
    native = {"prompt": ["Once", 5, " upon"], "n_predict": 3, "top_k": -1, "logit_bias": [[" a", False]], "n_probs": 1,
              "samplers": ["top_k", "temperature"], "speculative": {"n_max": "auto", "type": "ngram"}, "id_slot": 0}
    several = {"prompt": ["a", [2, 5]], "max_tokens": 2, "n": 2, "seed": -1, "dry_sequence_breakers": ["x"], "user": 5}
    url = "data:image/png;base64," + base64.b64encode(read("glm-ocr/image/digits.png")).decode()
    shown = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "Read"}]
    seen = {"messages": [{"role": "user", "content": shown}], "max_tokens": 2}
    for name, form, body in (("chat", 0, server), ("parts", 0, parts), ("native", 2, native), ("several", 1, several),
                             ("picture", 3, seen)):
        write("request", name, str(form) + compact(body))
    item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    tool = {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}
    response = {"instructions": "S", "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}, item,
        {"type": "function_call_output", "call_id": "c", "output": "7"}], "tools": [tool], "max_output_tokens": 2,
        "tool_choice": "auto", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}}
    server_tool = {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters")}}
    called = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    message = {"system": "S", "max_tokens": 2, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, called]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "7"}]}],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}], "stop_sequences": ["z"],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "thinking": {"type": "enabled"}}
    looked = {"max_tokens": 2, "messages": [{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": url.split(",")[1]}}, {"type": "text", "text": "Read"}]}]}
    told = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "thinking": "hm",
                          "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                         {"role": "tool", "content": "7", "tool_name": "f"}], "tools": [server_tool], "think": False,
            "options": {"num_predict": 2, "temperature": 0.5, "stop": ["z"]}, "format": "json", "keep_alive": "5m"}
    generated = {"prompt": "Hi", "system": "S", "raw": False, "stream": False, "options": {"num_predict": 2}}
    unit = {"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]}
    given = {"type": "object", "required": ["u", "n"], "$defs": {"unit": {"type": "string", "enum": ["c", "f"]}},
             "properties": {"u": unit, "n": {"type": "integer", "minimum": 3}, "t": {"type": "string"}}}
    forced = {"input": "Hi", "tools": [{**tool, "parameters": given}], "tool_choice": "required", "top_logprobs": 2,
              "max_output_tokens": 9, "include": ["message.output_text.logprobs"]}
    node = {"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/properties/list"}}}
    listed = {"properties": {"list": {"anyOf": [node, {"type": "null"}]}, "k": {"enum": ["a", 1, None, [True]]}}}
    mixed = {"properties": {"a": {"type": ["string", "null"]}, "b": {"allOf": [{"$ref": "#/$defs/c"}]}, "d": True,
                            "e": {"items": {"type": "number", "maximum": 2}, "maxItems": 2}, "f": {"const": "x y"}},
             "$defs": {"c": {"type": "string"}}, "required": ["b", "e"], "additionalProperties": False}
    for form in range(9):
        for name, parameters in (("given", given), ("listed", listed), ("mixed", mixed)):
            write("tools", f"{name}-{form}", chr(form) + compact(parameters))
    held = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}],
            "thinking": {"type": "enabled", "budget_tokens": 2}}
    filled = {"input_prefix": "int f(", "input_suffix": ") {}", "prompt": "int ", "n_predict": 2,
              "input_extra": [{"filename": "a.c", "text": "int g;"}], "samplers": ["infill", "top_k"]}
    patched = {"type": "custom_tool_call", "call_id": "p", "name": "exec", "namespace": "n", "input": "a\nb"}
    codex = {"input": [
        {"type": "additional_tools", "tools": [{"type": "namespace", "name": "n", "tools": [
            {"type": "custom", "name": "exec"}]}]},
        {"role": "user", "content": "Hi"}, {"type": "ghost_snapshot"}, patched,
        {"type": "custom_tool_call_output", "call_id": "p", "output": [{"type": "input_text", "text": "7"}]}],
        "tools": [{"type": "web_search"}], "max_output_tokens": 2}
    shell = {"input": [
        {"role": "user", "content": "Hi"}, {"type": "local_shell_call", "call_id": "s", "action": {"command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "s", "output": {"exit": 0}},
        {"type": "tool_search_call", "call_id": "t", "arguments": {}},
        {"type": "tool_search_output", "call_id": "t", "tools": [{"type": "function", "name": "f"}]}],
        "tool_choice": {"type": "custom", "name": "f"}, "max_output_tokens": 2}
    claude = {"max_tokens": 2, "system": [{"type": "text", "text": "x-anthropic-billing-header: a;"},
                                          {"type": "text", "text": "S"}],
              "messages": [{"role": "user", "content": [
                  {"type": "document", "title": "T", "source": {"type": "text", "data": "D"}},
                  {"type": "search_result", "source": "u", "content": [{"type": "text", "text": "F"}]}]},
                  {"role": "assistant", "content": [{"type": "compaction", "content": "C"},
                                                    {"type": "server_tool_use", "id": "w", "name": "web_search"}]},
                  {"role": "user", "content": "x-anthropic-billing-header: b;\nHi"}],
              "tools": [{"type": "bash_20250124", "name": "bash"}], "context_management": {"edits": []}}
    custom = {"type": "custom", "id": "p", "custom": {"name": "f", "input": "a"}}
    other = {"max_tokens": 2, "messages": [{"role": "user", "content": "Hi"},
                                           {"role": "assistant", "content": None, "tool_calls": [custom]},
                                           {"role": "tool", "tool_call_id": "p", "content": "7"}],
             "tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {
                 "definition": "a"}}}}, {"type": "web_search"}],
             "tool_choice": "auto", "repetition_penalty": 1.5, "stop_token_ids": [7], "min_tokens": 1,
             "include_stop_str_in_output": True, "reasoning": {"enabled": False}}
    guided = {"prompt": "Hi", "max_tokens": 2, "structured_outputs": {"choice": ["a\"", "b\n"]}}
    write("request", "chat-custom", "0" + compact(other))
    write("request", "guided", "1" + compact(guided))
    echoed = {"prompt": [[2, 5, 7], "a"], "max_tokens": 0, "echo": True, "logprobs": 1, "stop": ["", "z"]}
    ranked = {"prompt": "a", "max_tokens": 2, "n": 2, "best_of": 3, "suffix": "", "seed": 1}
    drawn = {"prompt": {"prompt_string": "a", "multimodal_data": ""}, "n_predict": 2, "n_probs": 2,
             "post_sampling_probs": True, "temperature": 1}
    for name, form, body in (("echo", 1, echoed), ("best-of", 1, ranked), ("suffix", 1, {**ranked, "suffix": "b"}),
                             ("drawn", 2, drawn)):
        seed = str(form) + compact(body)
        write("request", name, seed + "\n" * (-len(seed) % 32))  # the target runs this number of bytes
    for name, form, body in (("response", "B", response), ("response-codex", "B", codex),
                             ("response-shell", "B", shell), ("message-claude", "T", claude), ("message", "T", message), ("message-picture", "Q", looked),
                             ("ollama-chat", "f", told), ("ollama-generate", "r", generated),
                             ("ollama-raw", "r", {**generated, "raw": True}), ("response-forced", "@", forced),
                             ("message-budget", "Q", held), ("infill", "\x7f", filled)):
        write("request", name, form + compact(body))
    write("options", "sampling", "21n0.9\n22i40\n23n0.95\n24n0.05\n25i7\n16n1.1\n19i64\n20t5+1.5,6-inf,7:2\n")
    write("options", "caches", "11tq8_0\n12tf16\n8i3\n14i1\n10i1\n9i-1\n13tngram,mtp\n26trejection\n27i5\n")
    write("options", "limits", "0i1\n7i4096\n13tnone\n14i1024\n6t/none\n3tscalar\n99i1\n4t\n")
    write("arguments", "generate", "generate\n-m\nmodel\n--prompt=Once\n-n\n20\n--temp\n0.8\n--stop\nEnd\n"
          "--logit-bias\n5+1\n--spec-type\nngram,mtp\n--output\njson\n--logprobs\n3")
    write("arguments", "ids", "logits\n-m\nmodel\n--ids\n1,2,30\n-o\n-\n--rows\nlast\n-t\n2\n--isa\nscalar")
    write("arguments", "bench", "bench\nmodel\n-m\nmodel\n--rows\n1..8,16\n--draft-max\n1..4,auto\n-p\n0,512")
    write("arguments", "quantize", "quantize\n-m\nmodel\n--type\nq4_k\n--tensor-type\nffn=q6_k\n-o\nout.gguf")
    chunk, vocab = [1, 4, 2, 0, 3], 5
    rows = b"".join(struct.pack("<ff6H", 1e-4, -9.0, *range(row, row + 5), 0) for row in range(2))
    write("base", "two-rows", b"_logits_" + struct.pack("<3i5i", len(chunk), vocab, 1, *chunk) + rows)
    write("arguments", "near", "genrate\n--promt\nx\n--help")


def files(folder):
    """Writes seeds of a trace, a saved session, and the headers of packed files."""
    def run(*words):
        subprocess.run([FORERUN, *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    models = os.path.abspath(f"{DATA}/models")
    dense, e = f"{models}/gemma4-dense-odd", f"{models}/gemma4-e"
    run("generate", "-m", dense, "-md", f"{dense}/assistant", "--ids", "2,9,40", "-n", "12", "--ignore-eos",
        "--draft-max", "3", "--trace", "trace", "--temp", "1")
    write("trace", "dense", open(f"{folder}/trace", "rb").read())
    write("trace", "cut-off", open(f"{folder}/trace", "rb").read()[:600])
    for name, count in (("short", 2), ("snapshots", 140)):
        ids = ",".join(str(2 + i % 50) for i in range(count))
        run("generate", "-m", dense, "--ids", ids, "-n", "3", "--ignore-eos", "-c", "192", "--chunk", "8", "--prompt-cache",
            name)
        saved = open(f"{folder}/{name}", "rb").read()
        snapshots, length = struct.unpack_from("<I", saved, 20)[0], struct.unpack_from("<Q", saved, 32)[0]
        # The caches are left out, because the target appends them.
        write("session", name, saved if count < 9 else saved[:56 + 4 * length + 16 * snapshots])
        if count < 9:
            write("session", "attached", saved[:8] + struct.pack("<I", 2) + saved[12:-8] + b"beside it" + saved[-8:])
    for name, source in (("model", e), ("drafter", f"{e}/assistant")):
        run("quantize", "-m", source, "--type", "q8_0", "--pure", "-o", "plain.gguf")
        run("pack", "-m", "plain.gguf", "-o", "packed.gguf")
        write("packed", name, gguf_head(f"{folder}/packed.gguf"))


def pictures():
    for name in ("png-0-1-i.png", "png-0-16.png", "png-2-8-key.png", "png-3-4-i.png", "png-6-8.png", "jpeg-420.jpg",
                 "jpeg-cmyk.jpg", "jpeg-grey.jpg", "jpeg-progressive.jpg", "jpeg-restarts.jpg", "jpeg-turned-6.jpg", "jpeg-turned-astray.jpg",
                 "jpeg-turned-big-endian.jpg", "webp-lossy.webp", "webp-lossless-alpha.webp", "webp-lossless-few.webp",
                 "webp-moving.webp", "webp-moving-small.webp", "webp-turned-6.webp", "gif-16.gif", "gif-interlaced.gif",
                 "gif-inside-transparent.gif", "gif-comment.gif", "gif-moving.gif", "gif-local-alone.gif"):
        write("image", name, read(f"images/{name}"))


def named():
    """Writes seeds of models by name: a name, a NUL, and the content of every file in the caches."""
    def put(seed, name, content):
        write("named", seed, name + "\0" + content)

    def layers(*kinds, digest="sha256:" + 62 * "0" + "aa"):
        return compact({"layers": [{"mediaType": "application/vnd.ollama.image." + kind, "digest": digest, "size": 3}
                                   for kind in kinds]})

    commit = "0123456789abcdef0123456789abcdef01234567"
    put("hub", "o/m:Q4_K_M", commit)
    put("hub-file", "o/m:a.gguf", commit + "\n")
    put("hub-outside", "o/m", "../../../../../etc")
    put("llama", "o/l", compact({"ggufFile": {"rfilename": "a.gguf"}, "mmprojFile": {"rfilename": "b/c.gguf"}}))
    put("ollama", "ollama:m", layers("template", "model"))
    put("ollama-tower", "ollama:m", layers("model", "projector"))
    put("ollama-outside", "ollama:m", layers("model", digest="sha256:../../../etc/passwd"))
    put("ollama-adapter", "ollama:registry.ollama.ai/library/m:latest", layers("adapter"))


# --------------------------------------------------------------------------------------------------------- grammars


def grammars():
    """Writes seeds of grammars: a byte that selects the language, and a text in this language."""
    for name in sorted(os.listdir(f"{DATA}/grammars")):
        if name.endswith(".gbnf"): write("grammar", name[:-5], b"\0" + read(f"grammars/{name}"))
    for kind, file in (1, "regexes"), (2, "schemas"), (2, "patterns"):
        for i, (text, _) in enumerate(json.loads(read(f"grammars/{file}.json"))):
            write("grammar", f"{file}-{i}", chr(kind) + text)
    counted = ["\0root ::= ((\"a\"{1,70000} \"b\"){0,80000} \"c\"){3,2000000000}", "\1((a|b?)c?){500,90000}(ab{300})*",
               "\2" + compact({"minLength": 400, "maxLength": 2 ** 31, "pattern": "^[a-z]+$"}),
               "\2" + compact({"items": {"maxLength": 65536}, "minItems": 300, "maxItems": 1e15}),
               "\2" + compact({"uniqueItems": True, "items": {"anyOf": [{"const": 1}, {"type": ["null", "boolean"]}]}})]
    counted += ["\2" + compact({"format": f, "maxLength": 300}) for f in ["uri", "date-time", "email", "iri", "ipv6"]]
    for i, text in enumerate(counted): write("grammar", f"counted-{i}", text)


# ------------------------------------------------------------------------------------------------ importance matrices

def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def imatrix_gguf():
    keys = [text("imatrix.datasets") + struct.pack("<IIQ", ARRAY, STRING, 1) + text("t"),
            text("imatrix.chunk_count") + struct.pack("<II", 4, 2),
            text("imatrix.chunk_size") + struct.pack("<II", 4, 32)]
    tensors = [text("blk.0.a.in_sum2") + struct.pack("<IQQIQ", 2, 2, 2, 0, 0),
               text("blk.0.a.counts") + struct.pack("<IQQIQ", 2, 1, 2, 0, 32)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys + tensors)
    head += bytes(-len(head) % 32)
    return head + struct.pack("<4f", 1, 2, 3, 4) + bytes(16) + struct.pack("<2f", 64, 0)


def imatrix_older():
    entry = lambda name, *values: (struct.pack("<i", len(name)) + name.encode() +
                                   struct.pack(f"<ii{len(values)}f", 2, len(values), *values))
    return struct.pack("<i", 2) + entry("b", 1, 2, 3) + entry("a", 4) + struct.pack("<ii", 2, 1) + b"t"


def importances():
    write("imatrix", "gguf", imatrix_gguf())
    write("imatrix", "older", imatrix_older())


# ----------------------------------------------------------------------------------------------------------- adapters

def safetensors(path, wanted):
    """Returns the tensors of a file whose names `wanted` accepts, as {name: (type, shape, bytes)}."""
    raw = read(path)
    length = struct.unpack_from("<Q", raw)[0]
    at = lambda offset: raw[8 + length + offset[0]:8 + length + offset[1]]
    return {name: (t["dtype"], t["shape"], at(t["data_offsets"]))
            for name, t in json.loads(raw[8:8 + length]).items() if name != "__metadata__" and wanted(name)}


def safetensors_bytes(tensors):
    head, data = {}, b""
    for name, (kind, shape, values) in tensors.items():
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    head = compact(head).encode()
    return struct.pack("<Q", len(head)) + head + data


def adapter_gguf(tensors):
    """Returns a GGUF file with an adapter for qwen3. Its tensors are converted from BF16 to F32."""
    keys = [text(key) + struct.pack("<I", STRING) + text(value) for key, value in
            [("general.architecture", "qwen3"), ("general.type", "adapter"), ("adapter.type", "lora")]]
    keys.append(text("adapter.lora.alpha") + struct.pack("<If", 6, 4))
    infos, data = [], b""
    for name, (_, shape, values) in tensors.items():
        infos.append(text(name) + struct.pack("<IQQIQ", 2, shape[1], shape[0], 0, len(data)))
        data += b"".join(b"\0\0" + values[i:i + 2] for i in range(0, len(values), 2))
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys + infos)
    return head + bytes(-len(head) % 32) + data


def adapters():
    first = {"qwen3": "layers.0.self_attn.", "phi3": "layers.0.", "experts": "layers.1.mlp.experts.2.",
             "deltanet": "layers.0."}
    for name, stem in first.items():
        config = json.loads(read(f"adapters/{name}/adapter_config.json"))
        kept = ["peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "bias", "use_dora"]
        config = {key: config[key] for key in kept if key in config}
        tensors = safetensors(f"adapters/{name}/adapter_model.safetensors", lambda key: stem in key)
        if name == "phi3": config |= {"use_rslora": True, "alpha_pattern": {"(qkv|o)_proj": 5, r".*\.down_.*": 0}}
        write("adapter", name, compact(config).encode() + b"\0" + safetensors_bytes(tensors))
    names = {"q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output"}
    tensors = safetensors("adapters/qwen3/adapter_model.safetensors", lambda key: first["qwen3"] in key)
    write("adapter", "gguf", adapter_gguf({
        f"blk.0.{names[key.split('.')[-3]]}.weight.{key.split('.')[-2].lower()}": tensor
        for key, tensor in tensors.items()}))


# -------------------------------------------------------------------------------------------------------------- tasks

def tasks():
    write("tasks", "hellaswag", "\0" + "A man\n2\nis.\nsits.\nruns.\n\n" + "Tea: It\r\n0\r\nis\r\na\r\nb\r\nc")
    write("tasks", "winogrande", "\1" + '0,"A ""cup"" is, so _ is.",cup,"a ""b"", c",2\n\n1,_ is,a,b,1\r\n' + '2,"_')
    write("tasks", "answers", b"\2" + read("tasks/answers.bin"))


if __name__ == "__main__":
    gguf()
    weights()
    storages()
    configurations()
    encoders()
    tokenizers()
    lines()
    pictures()
    named()
    importances()
    adapters()
    tasks()
    grammars()
    with tempfile.TemporaryDirectory() as folder:
        files(folder)
