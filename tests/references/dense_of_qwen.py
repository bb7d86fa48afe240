"""Dense decoders of Qwen: see dense.py. Every window is shorter than the prompts whose greedy text is stored."""
from dense import Kind, passed_by, zeroed

QWEN2 = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_act="silu", max_position_embeddings=640,
             rms_norm_eps=3e-6, use_sliding_window=False, eos_token_id=[504, 511], bos_token_id=504,
             attention_dropout=0.0, use_cache=True, torch_dtype="bfloat16")
FEW_IDS = dict(bos_token_id=3, eos_token_id=[5, 7])   # for models without a tokenizer


def of_qwen2(c):
    """Returns, for each feature, the change of the configuration or of the model that leaves it out."""
    features = {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkv"}
    features |= {"biases": zeroed("_proj.bias"), "rope_theta": {"rope_theta": 1e4}}
    if c["use_sliding_window"]:
        features |= {"window": {"use_sliding_window": False}, "max_window_layers": {"max_window_layers": 0},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1}}
    elif c.get("sliding_window"):
        features["use_sliding_window false"] = {"use_sliding_window": True}
    if "rope_scaling" in c:
        scaled = lambda **other: {"rope_scaling": c["rope_scaling"] | other}
        features |= {"scaling": {"rope_scaling": None}, "scaling, as linear": scaled(type="linear", rope_type="linear"),
                     "scaling's attention factor": scaled(attention_factor=1.0),
                     "scaling's length before": scaled(original_max_position_embeddings=640)}
    return features


def of_qwen3(c):
    features = {"norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm"), "rope_theta": {"rope_theta": 1e6}}
    if c["attention_bias"]: features |= {"bias of " + one: zeroed(one + "_proj.bias") for one in "qkvo"}
    if c.get("layer_types"):
        features |= {"window": {"layer_types": ["full_attention"] * c["num_hidden_layers"]},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1}}
    return features


QWEN3_KIND = Kind("Qwen3Config", "Qwen3ForCausalLM", of_qwen3, first=(4,))
QWEN3 = QWEN2 | FEW_IDS | dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3")
QWEN2_KIND = Kind("Qwen2Config", "Qwen2ForCausalLM", of_qwen2, first=(300,), ids=(280, 20))

MODELS = {
    # The configuration has a window and says that it is not used.
    "qwen2-tied": dict(seed=2101, gguf="qwen2", tokenizer="qwen", kind=QWEN2_KIND, config=QWEN2 | dict(
        vocab_size=523, hidden_size=84, intermediate_size=76, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, rope_theta=7000.0, tie_word_embeddings=True, sliding_window=6, max_window_layers=1)),
    # Qwen2.5's form for texts longer than those that it was trained on.
    "qwen2-yarn": dict(seed=2103, gguf=True, kind=QWEN2_KIND, config=QWEN2 | FEW_IDS | dict(
        vocab_size=403, hidden_size=72, intermediate_size=92, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, rope_theta=5000.0, tie_word_embeddings=False,
        rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 40})),
    # Windows from the second layer on, and heads that together are narrower than the stream.
    "qwen2-window": dict(seed=2104, kind=QWEN2_KIND, config=QWEN2 | FEW_IDS | dict(
        vocab_size=397, hidden_size=70, intermediate_size=60, num_hidden_layers=4, num_attention_heads=5,
        num_key_value_heads=1, head_dim=18, rope_theta=900.0, tie_word_embeddings=False, use_sliding_window=True,
        sliding_window=9, max_window_layers=1)),
    "qwen3-odd": dict(seed=2220, gguf=True, kind=QWEN3_KIND, config=QWEN3 | dict(
        vocab_size=211, hidden_size=60, intermediate_size=44, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=18, rope_theta=3000.0, attention_bias=True, tie_word_embeddings=True)),
    # The configuration lists for each layer if it has a window.
    "qwen3-window": dict(seed=2302, kind=QWEN3_KIND, config=QWEN3 | dict(
        vocab_size=203, hidden_size=64, intermediate_size=52, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, head_dim=14, rope_theta=3000.0, attention_bias=False, tie_word_embeddings=False,
        use_sliding_window=True, sliding_window=9, max_window_layers=1,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
}
