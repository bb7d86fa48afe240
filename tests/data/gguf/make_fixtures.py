"""Writes the GGUF files of this folder with llama.cpp's converter, llama-quantize and gguf-py: none of them is our own output.

    python3 make_fixtures.py LLAMA_CPP        (its source folder; needs torch, transformers, safetensors, numpy)

moe-odd.gguf, moe-odd-assistant.gguf   the folder ../models/gemma4-moe-odd and its assistant, as the converter writes them
atomic.gguf, ik.gguf                   the same assistant as AtomicChat's fork and as ik_llama.cpp write it: other names
                                       of architecture, keys and tensors; the centroid tensors kept, by ik_llama.cpp with
                                       the ordering turned into a map of ids to centroids. atomic.gguf has no texts of tokens
gemma-tokenizer.gguf                   the tokenizer ../tokenizers/gemma, with the converter's token types, and no tensors
e-q4_0.gguf                            the folder ../models/gemma4-e after llama-quantize Q4_0; e-q4_0.reference.json and
                                       .safetensors are transformers' logits with its weights dequantized by gguf-py. These
                                       three are not made here
low-bits.gguf, nvfp4-experts.gguf      and their references: tests/references/low_bits.py
"""
import json, os, subprocess, sys
import numpy as np

LLAMA = sys.argv[1]
sys.path.insert(0, f"{LLAMA}/gguf-py")
import gguf
from gguf import GGUFValueType as V
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = f"{HERE}/../models"
# The converter marks these tokens as user-defined, so that a parser of chats sees them.
SHOWN = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>'}
TEXTS = tuple(f"tokenizer.ggml.{key}" for key in ("tokens", "scores", "token_type", "merges"))


def convert(folder, out):
    env = {**os.environ, "PYTHONPATH": f"{LLAMA}/gguf-py"}
    subprocess.run([sys.executable, f"{LLAMA}/convert_hf_to_gguf.py", folder, "--outfile", out, "--outtype", "bf16"],
                   check=True, env=env)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rename(source, out, architecture, names, drop):
    """Returns a writer with the source's keys under another architecture, and its tensors under other names."""
    reader = gguf.GGUFReader(source)
    old = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(out, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture" or key in drop:
            continue
        key = key.replace(f"{old}.", f"{architecture}.") if key.startswith(f"{old}.") else key
        more = {"sub_type": field.types[-1]} if field.types[0] == V.ARRAY else {}
        writer.add_key_value(key, field.contents(), field.types[0], **more)
    for tensor in reader.tensors:
        if tensor.name not in drop:
            writer.add_tensor(names.get(tensor.name, tensor.name), tensor.data, raw_dtype=tensor.tensor_type)
    return writer


def forks(source, folder):
    config = json.load(open(f"{folder}/config.json"))
    weights = load_file(f"{folder}/model.safetensors")
    centroids = weights["masked_embedding.centroids.weight"].float().numpy()
    ordering = weights["masked_embedding.token_ordering"].numpy().astype(np.int32)
    count, top, width = config["num_centroids"], config["centroid_intermediate_top_k"], config["backbone_hidden_size"]
    owner = np.empty_like(ordering)
    owner[ordering] = np.arange(len(ordering)) // (len(ordering) // count)
    own = ("gemma4-assistant.embedding_length_out", "gemma4-assistant.nextn_predict_layers")
    for name, architecture, drop, keys, tensors, values in (
        ("atomic", "gemma4_assistant", own + TEXTS, {"n_embd_backbone": width, "n_centroids": count},
         ("mtp.pre_projection", "mtp.post_projection", "mtp.centroids", "mtp.token_ordering"), ordering),
        ("ik", "gemma4_mtp", own + ("rope_freqs.weight",), {"backbone_embedding_length": width, "centroid_count": count},
         ("mtp_pre_proj", "mtp_post_proj", "mtp_centroids", "mtp_token_ordering"), owner),
    ):
        names = {"nextn.pre_projection.weight": f"{tensors[0]}.weight", "nextn.post_projection.weight": f"{tensors[1]}.weight"}
        writer = rename(source, f"{HERE}/{name}.gguf", architecture, names, drop)
        for key, value in {**keys, "centroid_top_k": top}.items():
            writer.add_key_value(f"{architecture}.{key}", value, V.UINT32)
        writer.add_key_value(f"{architecture}.use_ordered_embeddings", True, V.BOOL)
        writer.add_tensor(f"{tensors[2]}.weight", centroids)
        writer.add_tensor(f"{tensors[3]}.weight", values)
        finish(writer)


def tokenizer(folder, out):
    file = json.load(open(f"{folder}/tokenizer.json"))
    ids = file["model"]["vocab"]
    texts = sorted(ids, key=ids.get)
    assert [ids[t] for t in texts] == list(range(len(texts)))
    added = {token["content"] for token in file["added_tokens"]}

    def kind(text):
        if text in SHOWN:
            return gguf.TokenType.USER_DEFINED
        if text in added:
            return gguf.TokenType.CONTROL
        return gguf.TokenType.BYTE if text.startswith("<0x") and len(text) == 6 else gguf.TokenType.NORMAL

    writer = gguf.GGUFWriter(out, "gemma4")
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list(texts)
    writer.add_token_scores([-1000.0] * len(texts))
    writer.add_token_types([kind(text) for text in texts])
    writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])
    writer.add_bos_token_id(ids["<bos>"])
    writer.add_eos_token_id(ids["<eos>"])
    writer.add_unk_token_id(ids["<unk>"])
    writer.add_pad_token_id(ids["<pad>"])
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    finish(writer)


if __name__ == "__main__":
    convert(f"{MODELS}/gemma4-moe-odd", f"{HERE}/moe-odd.gguf")
    convert(f"{MODELS}/gemma4-moe-odd/assistant", f"{HERE}/moe-odd-assistant.gguf")
    forks(f"{HERE}/moe-odd-assistant.gguf", f"{MODELS}/gemma4-moe-odd/assistant")
    tokenizer(f"{HERE}/../tokenizers/gemma", f"{HERE}/gemma-tokenizer.gguf")
