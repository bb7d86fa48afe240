"""MiMo-7B: see dense.py. transformers does not have this model. Its target is a Qwen2, and its MTP layer is computed
here after the published modeling_mimo.py. There is a pair p for each position that the target has run: z =
input_proj([hidden_layernorm(h) ; token_layernorm(embedding of token p + 1)]), where h is the target's row p after its
final norm. z goes through a layer, at the rotary position of token p + 1, and then through final_layernorm. Its row
takes the place of h for the next draft."""
from types import SimpleNamespace

import torch
from transformers.models.qwen2 import modeling_qwen2 as qwen2

from dense import Kind, load, zeroed

BEFORE, DEPTH = "model.mtp_layers.0.", 4


def of_mimo(c):
    return {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkv"} | {"rope_theta": {"rope_theta": 1e6}}


class Mtp(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        norm = lambda: qwen2.Qwen2RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.token_layernorm, self.hidden_layernorm, self.final_layernorm = norm(), norm(), norm()
        self.input_proj = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = qwen2.Qwen2DecoderLayer(config, 0)
        self.rotary = qwen2.Qwen2RotaryEmbedding(config)

    def forward(self, hidden, embeddings):
        """Returns the rows of all pairs. The last row gives the draft."""
        z = self.input_proj(torch.cat([self.hidden_layernorm(hidden), self.token_layernorm(embeddings)], -1))
        count = z.shape[1]
        places = torch.arange(1, count + 1)[None]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        z = self.layer(z, attention_mask=mask, position_ids=places, position_embeddings=self.rotary(z, places))
        return self.final_layernorm(z[0] if isinstance(z, tuple) else z)


def add(state, model):
    """Adds the MTP layer's tensors, by their published names, to the model's."""
    layer = {k.replace("layer.", ""): v for k, v in Mtp(model.config).state_dict().items()}
    return state | {BEFORE + k: v for k, v in layer.items()}


@torch.no_grad()
def draft(spec, state, folder, ids):
    """Returns the logits of a chain of greedy drafts after these ids."""
    model = load(folder, spec)
    mtp = Mtp(model.config).float().eval()
    own = {k.removeprefix(BEFORE): v.float() for k, v in state.items() if k.startswith(BEFORE)}
    beside = ("token_layernorm", "hidden_layernorm", "final_layernorm", "input_proj")
    mtp.load_state_dict({k if k.startswith(beside) else "layer." + k: v for k, v in own.items()})
    embed = model.model.embed_tokens
    hidden = model.model(torch.tensor([ids[:-1]]), use_cache=False).last_hidden_state
    embeddings, rows = embed(torch.tensor([ids[1:]])), []
    for _ in range(DEPTH):
        last = mtp(hidden, embeddings)[:, -1:]
        rows.append(model.lm_head(last)[0, 0])
        hidden = torch.cat([hidden, last], 1)
        embeddings = torch.cat([embeddings, embed(rows[-1].argmax()[None, None])], 1)
    return torch.stack(rows)


MIMO = Kind("Qwen2Config", "Qwen2ForCausalLM", of_mimo, first=(4,))

MODELS = {
    "mimo-odd": dict(seed=8101, kind=MIMO, mtp=SimpleNamespace(add=add, draft=draft), config=dict(
        architectures=["MiMoForCausalLM"], model_type="mimo", hidden_act="silu", max_position_embeddings=640,
        rms_norm_eps=3e-6, use_sliding_window=False, attention_dropout=0.0, use_cache=True, torch_dtype="bfloat16",
        bos_token_id=3, eos_token_id=[5, 7], vocab_size=211, hidden_size=60, intermediate_size=44,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=3000.0,
        tie_word_embeddings=False, num_nextn_predict_layers=1)),
}
