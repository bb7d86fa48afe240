"""make_quantized.py: writes model-whole-q8_0.gguf, model-apart-q8_0.gguf and their .reference.safetensors, beside this
file.

Both are model-bf16.gguf with the matrices whose rows are whole blocks quantized to Q8_0 by gguf-py. The first has the
older form of GGUF files: kv_b in one tensor, which newer files split into k_b and v_b, and the keys of that time. A
reference has the logits that transformers 5.17 computes in float32 with the weights that gguf-py decoded from the
file. None of them is ours."""
import json
import os

import gguf
import numpy as np
import torch
from gguf import quants
from safetensors.torch import load_file, save_file
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
Q8 = gguf.GGMLQuantizationType.Q8_0
NAMES = {"attn_q_a": "self_attn.q_a_proj", "attn_q_b": "self_attn.q_b_proj",
         "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
         "ffn_down_shexp": "mlp.shared_experts.down_proj", "attn_kv_b": "self_attn.kv_b_proj"}
KEYS = {"head_count_kv": 4, "key_length": 48, "value_length": 32}  # the values before the split are those of the heads
HEADS, NOPE, VALUE, LATENT = 4, 32, 32, 64


def floats(tensor):
    return quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])


def joined(tensors):
    """Returns the tensors with each layer's k_b and v_b joined to kv_b."""
    out = {}
    for name, data in tensors.items():
        if name.endswith("attn_k_b.weight"):
            both = np.concatenate([data.swapaxes(1, 2), tensors[name.replace("_k_b", "_v_b")]], 1)
            out[name.replace("_k_b", "_kv_b")] = both.reshape(HEADS * (NOPE + VALUE), LATENT)
        elif not name.endswith("attn_v_b.weight"):
            out[name] = data
    return out


def write(reader, path, tensors, whole):
    writer, values = gguf.GGUFWriter(path, "deepseek2"), {}
    for field in reader.fields.values():
        short = field.name.removeprefix("deepseek2.attention.")
        if field.name.startswith("GGUF.") or field.name == "general.architecture" or whole and short.endswith("_mla"):
            continue
        kind = field.types[0]
        value = KEYS[short] if whole and short in KEYS else field.contents()
        writer.add_key_value(field.name, value, kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for name, data in tensors.items():
        if data.ndim > 1 and data.shape[-1] % 32 == 0 and "gate_inp" not in name:
            blocks = quants.quantize(np.ascontiguousarray(data), Q8)
            writer.add_tensor(name, blocks, raw_dtype=Q8)
            data = quants.dequantize(blocks, Q8).reshape(data.shape)
        else:
            writer.add_tensor(name, data.astype(np.float32))
        values[name] = data
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()
    return values if whole else joined(values)


def model_of(values):
    """Returns the folder's model with the values of the file."""
    config = json.load(open(f"{HERE}/config.json"))
    config = {k: v for k, v in config.items() if k not in ("architectures", "torch_dtype")}
    eager = dict(attn_implementation="eager", experts_implementation="eager")
    model = DeepseekV3ForCausalLM(DeepseekV3Config(**config, **eager))
    state = {k: v.float() for k, v in model.state_dict().items()}
    state |= {k: v.float() for k, v in load_file(f"{HERE}/model.safetensors").items() if k in state}
    tensor = lambda name: torch.tensor(np.ascontiguousarray(values[name]))
    state["lm_head.weight"], state["model.embed_tokens.weight"] = tensor("output.weight"), tensor("token_embd.weight")
    for name in values:
        if not name.startswith("blk."): continue
        _, layer, short = name.removesuffix(".weight").split(".", 2)
        if short in NAMES: state[f"model.layers.{layer}.{NAMES[short]}.weight"] = tensor(name)
        stem = f"model.layers.{layer}.mlp.experts."
        if short == "ffn_gate_exps":
            state[stem + "gate_up_proj"] = torch.cat([tensor(name), tensor(name.replace("gate", "up"))], 1)
        if short == "ffn_down_exps": state[stem + "down_proj"] = tensor(name)
    model.load_state_dict(state)
    return model.float().eval()


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    reader = gguf.GGUFReader(f"{HERE}/model-bf16.gguf")
    plain = {t.name: floats(t) for t in reader.tensors}
    prompts = json.load(open(f"{HERE}/reference.json"))["prompts"]
    for name, whole in (("whole", True), ("apart", False)):
        path = f"{HERE}/model-{name}-q8_0.gguf"
        model = model_of(write(reader, path, joined(plain) if whole else plain, whole))
        logits = {f"prompt.{i}.logits": model(torch.tensor([ids]), use_cache=False).logits[0].contiguous()
                  for i, ids in enumerate(prompts)}
        save_file(logits, path.replace(".gguf", ".reference.safetensors"))


main()
