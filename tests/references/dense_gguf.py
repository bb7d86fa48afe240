#!/usr/bin/env python3
"""dense_gguf.py LLAMA_CPP DATA [NAME...]: llama.cpp's converter writes models of dense.py as GGUF files.

In: a source tree of llama.cpp; tests/data. Out: DATA/dense/NAME.gguf in BF16. Its logits are those of
DATA/models/NAME/reference.safetensors, because values are stored unchanged (Gemma's norms with 1 added). The models
are those whose line in a table has a `gguf`: the name of the pre-tokenizer for the file, or True if the model has no
tokenizer.

Gemma's published folders have a tokenizer.model beside tokenizer.json, which the converter prefers. It is made here
from the pieces of tokenizer.json. The converter recognizes other tokenizers by the ids that they give a text.
Tokenizers that were cut short give others, so this script tells it the name.
"""
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def write_pieces(folder):
    """Writes tokenizer.model for a folder with Gemma's tokenizer.json. A piece that is merged later has a lower
    score."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    spec = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    added = {token["content"] for token in spec["added_tokens"]}
    model = proto.ModelProto()
    model.trainer_spec.model_type = proto.TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    for i, name in enumerate(("pad_id", "eos_id", "bos_id", "unk_id")): setattr(model.trainer_spec, name, i)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = model.normalizer_spec.remove_extra_whitespaces = False
    for piece, i in sorted(spec["model"]["vocab"].items(), key=lambda item: item[1]):
        first = {"<unk>": UNKNOWN, "<pad>": CONTROL, "<eos>": CONTROL, "<bos>": CONTROL}
        kind = first.get(piece, USER if piece in added else BYTE if piece.startswith("<0x") else NORMAL)
        model.pieces.add(piece=piece, score=-float(i) if kind == NORMAL else 0.0, type=kind)
    (folder / "tokenizer.model").write_bytes(model.SerializeToString())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["added_tokens_decoder"] = {str(t["id"]): {"content": t["content"], "special": t["special"]}
                                        for t in spec["added_tokens"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def below(kind):
    """Returns a class and all classes derived from it."""
    return [kind] + [one for of in kind.__subclasses__() for one in below(of)]


def yields_stacks(kind):
    """Makes a converter give the stacked norms of heads, which its generator returns instead of yielding them."""
    of_tensor = kind.modify_tensors

    def modify_tensors(self, *arguments):
        stacked = yield from of_tensor(self, *arguments)
        if stacked is not None: yield from stacked

    kind.modify_tensors = modify_tensors


def convert_here(tree, folder, out, pre):
    """Runs the converter, as the program that it is; the caller starts a process for it."""
    sys.path[:0] = [tree, f"{tree}/gguf-py"]
    import conversion
    from conversion.base import ModelBase, TextModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    read = lambda *_, **__: json.loads(Path(folder, "config.json").read_text())
    if read()["model_type"] == "nemotron_h":  # transformers would add its defaults for a mixture
        ModelBase.load_hparams = staticmethod(read)
    conversion.load_all_models()
    config = json.loads(Path(folder, "config.json").read_text())
    if config["model_type"] == "stablelm": yields_stacks(conversion.get_model_class(config["architectures"][0]))
    # transformers names keys of these families differently than the converter expects
    if config["model_type"] in ("exaone", "gpt_neox"):
        load = ModelBase.load_hparams
        ModelBase.load_hparams = staticmethod(lambda *arguments: load(*arguments) | config)
    if not Path(folder, "tokenizer.json").exists():
        for kind in below(TextModel): kind.set_vocab = lambda self: self._set_vocab_none()
    sys.argv = ["convert_hf_to_gguf.py", folder, "--outtype", "bf16", "--outfile", out]
    runpy.run_path(f"{tree}/convert_hf_to_gguf.py", run_name="__main__")


def convert(tree, data, name, pre):
    source, out = data / "models" / name, data / "dense" / f"{name}.gguf"
    out.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, name)
        folder.mkdir()
        for file in source.iterdir():
            if not file.name.startswith("reference."): shutil.copy(file, folder)
        config = json.loads((folder / "config.json").read_text())
        if config["model_type"] in ("gemma", "gemma2", "gemma3"): write_pieces(folder)
        subprocess.run([sys.executable, __file__, "--here", tree, folder, out, str(pre)], check=True)
    out.chmod(0o644)


if __name__ == "__main__":
    if sys.argv[1] == "--here": convert_here(*sys.argv[2:])
    else:
        from dense import all_models
        models = {name: spec["gguf"] for name, spec in all_models().items() if "gguf" in spec}
        for name in sys.argv[3:] or models: convert(sys.argv[1], Path(sys.argv[2]), name, models[name])
