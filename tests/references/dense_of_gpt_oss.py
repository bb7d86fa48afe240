"""gpt-oss in transformers' own form: see dense.py. The experts' weights are so wide that gates and the values that
they multiply exceed their limits."""
from dense import Kind, zeroed

GPT_OSS = dict(architectures=["GptOssForCausalLM"], model_type="gpt_oss", hidden_act="silu", attention_bias=True,
               attention_dropout=0.0, swiglu_limit=7.0, use_cache=True, bos_token_id=3, eos_token_id=[5, 7],
               pad_token_id=0, max_position_embeddings=640, tie_word_embeddings=False, torch_dtype="bfloat16")
YARN = {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 40}


def of_experts(**values):
    def edit(model):
        for layer in model.model.layers:
            for name, value in values.items(): setattr(layer.mlp.experts, name, value)
    return edit


def without_sinks(model):
    for layer in model.model.layers: layer.self_attn.sinks.fill_(-1e4)


def not_one_more(model):
    """Leaves out the 1 that is added to the gated values."""
    import torch
    for layer in model.model.layers:
        experts = layer.mlp.experts

        def gate(gate_up, limit=experts.limit, alpha=experts.alpha):
            gate, up = gate_up[..., ::2].clamp(max=limit), gate_up[..., 1::2].clamp(-limit, limit)
            return gate * torch.sigmoid(alpha * gate) * up
        experts._apply_gate = gate


def gates_first(model):
    """Reads the columns as if all gates came before all values, although they alternate."""
    import torch
    for layer in model.model.layers:
        weight = layer.mlp.experts.gate_up_proj
        half = weight.shape[-1] // 2
        weight.copy_(torch.stack((weight[..., :half], weight[..., half:]), dim=-1).reshape(weight.shape))


def weighed_among_all(model):
    import torch
    for layer in model.model.layers:
        router = layer.mlp.router

        def forward(x, r=router):
            logits = torch.nn.functional.linear(x, r.weight, r.bias)
            weights, ids = torch.topk(logits.softmax(-1), r.top_k, dim=-1)
            return logits, weights, ids
        router.forward = forward


def of_gpt_oss(c):
    scaled = lambda **other: {"rope_scaling": c["rope_scaling"] | other}
    features = {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkvo"}
    return features | {
        "sinks": without_sinks, "bias of the router": zeroed("router.bias"),
        "bias of gates": zeroed("gate_up_proj_bias"), "bias of experts": zeroed("down_proj_bias"),
        "limit": of_experts(limit=1e9), "alpha": of_experts(alpha=1.0), "the 1": not_one_more,
        "turns of gates": gates_first, "softmax of the chosen": weighed_among_all,
        "window": {"sliding_window": 4096}, "window, of one more": {"sliding_window": c["sliding_window"] + 1},
        "full layers": {"layer_types": ["sliding_attention"] * c["num_hidden_layers"]},
        "kinds of layers": {"layer_types": ["full_attention", "sliding_attention"] * (c["num_hidden_layers"] // 2)},
        "rope_theta": {"rope_theta": 150000.0}, "scaling": {"rope_scaling": None, "rope_parameters": {
            "rope_type": "default", "rope_theta": c["rope_theta"]}},
        "scaling's attention factor": scaled(attention_factor=1.0),
        "scaling's truncation": scaled(truncate=True),
    }


def fill(name, noise):
    if name.endswith("sinks"): return noise + 1
    if name.endswith("gate_up_proj"): return 5 * noise * noise.shape[1] ** -0.5
    if name.endswith("gate_up_proj_bias"): return 2 * noise
    if name.endswith("down_proj"): return 0.3 * noise * noise.shape[1] ** -0.5
    if name.endswith("router.weight"): return 1.7 * noise * noise.shape[-1] ** -0.5
    return None


GPT_OSS_KIND = Kind("GptOssConfig", "GptOssForCausalLM", of_gpt_oss, fill=fill, ids=(20, 20))

MODELS = {
    "gpt-oss-odd": dict(seed=5202, gguf="default", kind=GPT_OSS_KIND, config=GPT_OSS | dict(
        vocab_size=389, hidden_size=70, intermediate_size=38, num_hidden_layers=4, num_attention_heads=6,
        num_key_value_heads=2, head_dim=18, num_local_experts=5, num_experts_per_tok=2, sliding_window=6,
        rms_norm_eps=1e-5, rope_theta=900.0, rope_scaling=YARN)),
}
