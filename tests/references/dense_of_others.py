"""SmolLM3, Seed-OSS, Hunyuan: see dense.py."""
from torch.nn import Identity

from dense import Kind, passed_by, zeroed

SHARED = dict(hidden_act="silu", max_position_embeddings=640, rms_norm_eps=2e-5, attention_dropout=0.0, use_cache=True,
              bos_token_id=1, eos_token_id=2, pad_token_id=0, torch_dtype="bfloat16")


def of_smollm3(c):
    layers = c["num_hidden_layers"]
    features = {"layers without rope": {"no_rope_layers": [1] * layers}, "rope_theta": {"rope_theta": 1e6}}
    if c.get("use_sliding_window"):
        features |= {"window": {"use_sliding_window": False},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1},
                     "window of those without rope alone": {"layer_types": ["sliding_attention"] * layers}}
    return features


def of_seed_oss(c):
    return {"bias of " + one: zeroed(one + "_proj.bias") for one in ("q", "k", "v", "o") if c[
        "attention_out_bias" if one == "o" else "attention_bias"]} | {
            "biases of the feed-forward": zeroed("gate_proj.bias", "up_proj.bias", "down_proj.bias"),
            "rope_theta": {"rope_theta": 1e6}}


def norms_before(model):
    """Computes the norms of heads before the rotation."""
    for layer in model.model.layers:
        attention = layer.self_attn
        q, k = attention.query_layernorm, attention.key_layernorm
        project_q, project_k = attention.q_proj.forward, attention.k_proj.forward
        split = lambda x: x.view(*x.shape[:-1], -1, attention.head_dim)
        attention.q_proj.forward = lambda x, f=project_q, n=q.forward: n(split(f(x))).flatten(-2)
        attention.k_proj.forward = lambda x, f=project_k, n=k.forward: n(split(f(x))).flatten(-2)
        attention.query_layernorm, attention.key_layernorm = Identity(), Identity()


def of_hunyuan(c):
    told = lambda **other: {"rope_scaling": c["rope_scaling"] | other}
    return {"norm of q": passed_by("query_layernorm"), "norm of k": passed_by("key_layernorm"),
            "norms behind the rotation": norms_before, "alpha": told(alpha=1.0)}


SMOLLM3 = Kind("SmolLM3Config", "SmolLM3ForCausalLM", of_smollm3, first=(1,))
SEED_OSS = Kind("SeedOssConfig", "SeedOssForCausalLM", of_seed_oss, first=(1,))
HUNYUAN = Kind("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", of_hunyuan, first=(1,))

MODELS = {
    # Every fourth layer has no rotary positions, which is the default.
    "smollm3-odd": dict(seed=6100, gguf=True, kind=SMOLLM3, config=SHARED | dict(
        architectures=["SmolLM3ForCausalLM"], model_type="smollm3", vocab_size=211, hidden_size=60,
        intermediate_size=44, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, rope_theta=3000.0,
        tie_word_embeddings=True)),
    # The configuration lists the layers without rotary positions, and these have a window.
    "smollm3-window": dict(seed=6202, kind=SMOLLM3, config=SHARED | dict(
        architectures=["SmolLM3ForCausalLM"], model_type="smollm3", vocab_size=203, hidden_size=56,
        intermediate_size=60, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, rope_theta=2000.0,
        no_rope_layers=[0, 1, 1, 0], use_sliding_window=True, sliding_window=9, tie_word_embeddings=False)),
    "seed-oss-odd": dict(seed=6301, gguf=True, kind=SEED_OSS, config=SHARED | dict(
        architectures=["SeedOssForCausalLM"], model_type="seed_oss", vocab_size=199, hidden_size=52,
        intermediate_size=44, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=14,
        rope_theta=3000.0, attention_bias=True, attention_out_bias=True, mlp_bias=True, residual_dropout=0.0,
        tie_word_embeddings=False)),
    "hunyuan-odd": dict(seed=6403, gguf=True, kind=HUNYUAN, config=SHARED | dict(
        architectures=["HunYuanDenseV1ForCausalLM"], model_type="hunyuan_v1_dense", vocab_size=197, hidden_size=64,
        intermediate_size=44, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=18,
        max_position_embeddings=32768, rope_theta=10000.0, attention_bias=False, tie_word_embeddings=True,
        rope_scaling={"type": "dynamic", "rope_type": "dynamic", "alpha": 30.0, "factor": 1.0})),
}
