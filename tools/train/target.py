"""Reads the parts of a target that its drafter uses: sizes, embeddings, head, final norm, the feed-forward of its last
layer.

In: a GGUF file, or a published folder (config.json, *.safetensors), of a model with Llama's names. Out: Target, all of
it float32.
"""
import json
import pathlib

import numpy
import torch

GGUF_NAMES = {"embedding": "token_embd.weight", "head": "output.weight", "norm": "output_norm.weight"}
NAMES = {"embedding": "model.embed_tokens.weight", "head": "lm_head.weight", "norm": "model.norm.weight"}
GGUF_FFN = {"post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
            "mlp.down_proj": "ffn_down"}
GGUF_CONTROL, GGUF_UNUSED = 3, 5  # kinds of tokens


class Target:
    """Parts of a target. sizes: keys of config.json. embedding, head, norm: tensors. ffn: the last layer's tensors by
    their published names. Lists of ids: control tokens, unused ids, and tokens that begin or end texts."""

    def __init__(self, path):
        path = pathlib.Path(path)
        if path.is_dir():
            self._read_folder(path)
        else:
            self._read_gguf(path)
        if self.head is None:
            self.head = self.embedding

    def _read_gguf(self, path):
        import gguf
        reader = gguf.GGUFReader(path)
        tensors = {t.name: t for t in reader.tensors}
        arch = reader.fields["general.architecture"].contents()

        def key(name, default=None):
            field = reader.fields.get(f"{arch}.{name}")
            return field.contents() if field else default

        def tensor(name):
            found = tensors.get(name)
            return None if found is None else torch.from_numpy(
                numpy.array(gguf.dequantize(found.data, found.tensor_type), dtype=numpy.float32))

        self.embedding, self.head, self.norm = (tensor(GGUF_NAMES[n]) for n in ("embedding", "head", "norm"))
        heads, hidden = key("attention.head_count"), key("embedding_length")
        self.sizes = {"hidden_size": hidden, "intermediate_size": key("feed_forward_length"),
                      "num_attention_heads": heads, "head_dim": key("attention.key_length", hidden // heads),
                      "rms_norm_eps": key("attention.layer_norm_rms_epsilon"),
                      "rope_theta": key("rope.freq_base", 10000.0), "vocab_size": self.embedding.shape[0],
                      "max_position_embeddings": key("context_length")}
        kinds = reader.fields.get("tokenizer.ggml.token_type")
        kinds = kinds.contents() if kinds else []
        self.control = [i for i, kind in enumerate(kinds) if kind == GGUF_CONTROL]
        self.unused = [i for i, kind in enumerate(kinds) if kind == GGUF_UNUSED]
        ends = (reader.fields.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "eot", "unknown"))
        self.ends = {field.contents() for field in ends if field}
        last = key("block_count") - 1
        self.ffn = {name: tensor(f"blk.{last}.{own}.weight") for name, own in GGUF_FFN.items()}

    def _read_folder(self, path):
        import safetensors.torch
        config, tensors = json.loads((path / "config.json").read_text()), {}
        for file in sorted(path.glob("*.safetensors")):
            tensors |= safetensors.torch.load_file(file)

        def tensor(name):
            return tensors[name].float() if name in tensors else None

        self.embedding, self.head, self.norm = (tensor(NAMES[n]) for n in ("embedding", "head", "norm"))
        heads, hidden = config["num_attention_heads"], config["hidden_size"]
        theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta", 10000.0)
        self.sizes = {"hidden_size": hidden, "intermediate_size": config["intermediate_size"],
                      "num_attention_heads": heads, "head_dim": config.get("head_dim") or hidden // heads,
                      "rms_norm_eps": config.get("rms_norm_eps", 1e-6), "rope_theta": theta,
                      "vocab_size": self.embedding.shape[0],
                      "max_position_embeddings": config.get("max_position_embeddings", 4096)}
        tokenizer = json.loads((path / "tokenizer.json").read_text()) if (path / "tokenizer.json").exists() else {}
        added, pieces = tokenizer.get("added_tokens", []), tokenizer.get("model", {}).get("vocab", [])
        self.control = [token["id"] for token in added if token["special"]]
        self.unused = list(range(max([len(pieces)] + [token["id"] + 1 for token in added]), len(self.embedding)))
        ends = [config.get(f"{name}_token_id") for name in ("bos", "eos")]
        self.ends = {i for end in ends for i in (end if isinstance(end, list) else [end]) if i is not None}
        last = config["num_hidden_layers"] - 1
        self.ffn = {name: tensor(f"model.layers.{last}.{name}.weight") for name in GGUF_FFN}
