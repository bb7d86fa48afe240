"""make_quantized.py: writes model-q4_0.gguf and model-q4_0.reference.safetensors, beside this file.

The GGUF file is model-bf16.gguf with its matrices quantized by gguf-py to Q4_0, and the tables and the MTP projection
to Q8_0. (model-bf16.gguf is llama.cpp's conversion of model.safetensors, and came with the reference fixtures, as did
all other files here.) The reference has the logits that transformers 5.17.0 computes in float32 with the weights that
gguf-py decoded from the file. None of them is ours."""
import json, os
import gguf, numpy as np, torch
from gguf import quants
from safetensors.torch import load_file, save_file
from transformers import GlmOcrConfig, GlmOcrForConditionalGeneration

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "post_attention_norm": "post_self_attn_layernorm",
         "post_ffw_norm": "post_mlp_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj"}


def floats(tensor):
    return quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])


def quantized(reader, path):
    """Writes the same metadata and tensors in other types. Returns the values that they decode to, by name."""
    writer, values = gguf.GGUFWriter(path, "glm4"), {}
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        data = floats(tensor)
        if data.ndim == 1:
            writer.add_tensor(tensor.name, data.astype(np.float32))
        else:
            eight = tensor.name in ("token_embd.weight", "output.weight") or "eh_proj" in tensor.name
            kind = gguf.GGMLQuantizationType.Q8_0 if eight else gguf.GGMLQuantizationType.Q4_0
            blocks = quants.quantize(data, kind)
            writer.add_tensor(tensor.name, blocks, raw_dtype=kind)
            data = quants.dequantize(blocks, kind)
        values[tensor.name] = data
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()
    return values


def published(values, layers, head_dim):
    """Returns the values of the text model with the names and the order of rows of model.safetensors."""
    state = {"lm_head.weight": values["output.weight"], "model.language_model.embed_tokens.weight": values["token_embd.weight"],
             "model.language_model.norm.weight": values["output_norm.weight"]}
    for layer in range(layers):
        for short, name in NAMES.items():
            data = values[f"blk.{layer}.{short}.weight"]
            if short in ("attn_q", "attn_k"):  # GGUF's neighbours are half a head apart in published files
                data = data.reshape(-1, 2, head_dim // 2, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
            state[f"model.language_model.layers.{layer}.{name}.weight"] = data
    return {name: torch.tensor(np.ascontiguousarray(data)) for name, data in state.items()}


def main():
    config = json.load(open(f"{HERE}/config.json"))
    text = config["text_config"]
    values = quantized(gguf.GGUFReader(f"{HERE}/model-bf16.gguf"), f"{HERE}/model-q4_0.gguf")
    state = {name: data.float() for name, data in load_file(f"{HERE}/model.safetensors").items()}
    state.update(published(values, text["num_hidden_layers"], text["head_dim"]))
    model = GlmOcrForConditionalGeneration(GlmOcrConfig(**{k: v for k, v in config.items() if k not in ("architectures", "transformers_version")})).float()
    model.set_attn_implementation("eager")
    missing, _ = model.load_state_dict(state, strict=False)
    assert not missing, missing
    prompts, rows = json.load(open(f"{HERE}/reference.json"))["prompts"], {}
    for index in (1, 2, 3):
        with torch.no_grad():
            rows[f"prompt.{index}.logits"] = model(input_ids=torch.tensor([prompts[index]]), use_cache=False).logits[0].contiguous()
    save_file(rows, f"{HERE}/model-q4_0.reference.safetensors")


main()
