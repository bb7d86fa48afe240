"""make_partial.py: writes partial.config.json and partial.reference.safetensors, beside this file.

The reference has the results of transformers 5.17.0 in float32, with the weights of model.safetensors, if only half of
each head's values are rotated."""
import json, os
import torch
from safetensors.torch import load_file, save_file
from transformers import GlmOcrConfig, GlmOcrForConditionalGeneration

HERE = os.path.dirname(os.path.abspath(__file__))
config = json.load(open(f"{HERE}/config.json"))
config["text_config"]["rope_parameters"].update(partial_rotary_factor=0.5, mrope_section=[2, 3, 3])
json.dump(config, open(f"{HERE}/partial.config.json", "w"), indent=1)
model = GlmOcrForConditionalGeneration(GlmOcrConfig(**{k: v for k, v in config.items() if k not in ("architectures", "transformers_version")})).float()
model.set_attn_implementation("eager")
missing, _ = model.load_state_dict({k: v.float() for k, v in load_file(f"{HERE}/model.safetensors").items()}, strict=False)
assert not missing, missing
prompt = json.load(open(f"{HERE}/reference.json"))["prompts"][3]
with torch.no_grad():
    logits = model(input_ids=torch.tensor([prompt]), use_cache=False).logits[0]
save_file({"prompt.3.logits": logits.contiguous()}, f"{HERE}/partial.reference.safetensors")
