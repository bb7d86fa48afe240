"""Gemma 2: see dense.py."""
from dense import Kind, passed_by
from dense_of_gemma3 import embeddings_unscaled, norms_less_one

GEMMA2 = dict(architectures=["Gemma2ForCausalLM"], model_type="gemma2", hidden_activation="gelu_pytorch_tanh",
              attention_bias=False, attention_dropout=0.0, use_cache=True, bos_token_id=2, eos_token_id=[1, 6],
              pad_token_id=0, max_position_embeddings=640, tie_word_embeddings=True, torch_dtype="bfloat16")


def of_gemma2(c):
    kinds = c.get("layer_types") or ["sliding_attention", "full_attention"] * c["num_hidden_layers"]
    scalar = c["head_dim"] if c["query_pre_attn_scalar"] != c["head_dim"] else 256
    return {
        "embedding scale": embeddings_unscaled, "norms' 1": norms_less_one,
        "norm behind attention": passed_by("post_attention_layernorm"),
        "norm behind the feed-forward": passed_by("post_feedforward_layernorm"),
        "query_pre_attn_scalar": {"query_pre_attn_scalar": scalar}, "window": {"sliding_window": 4096},
        "window, of one more": {"sliding_window": c["sliding_window"] + 1},
        "full layers": {"layer_types": ["sliding_attention"] * c["num_hidden_layers"]},
        "kinds of layers": {"layer_types": kinds[1:c["num_hidden_layers"]] + kinds[:1]},
        "cap of scores": {"attn_logit_softcapping": None}, "cap of logits": {"final_logit_softcapping": None},
        "rope_theta": {"rope_theta": 1e4 if c["rope_theta"] != 1e4 else 500.0}, "gelu": {"hidden_activation": "silu"},
    }


def fill(name, noise):
    """Gives weights the scale of Gemma 3's, but a larger one, because queries and keys have no norms."""
    if "layernorm" in name and "post" in name: return 0.5 * noise + 3
    if "norm" in name: return 0.3 * noise
    if "embed_tokens" in name: return 0.8 * noise * noise.shape[-1] ** -0.5
    return None


GEMMA2_KIND = Kind("Gemma2Config", "Gemma2ForCausalLM", of_gemma2, fill=fill, first=(2,), ids=(280, 20))

MODELS = {
    # The configuration lists the kind of each layer. Most scores come near the soft caps.
    "gemma2-odd": dict(seed=5101, kind=GEMMA2_KIND, config=GEMMA2 | dict(
        vocab_size=405, hidden_size=66, intermediate_size=90, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, head_dim=14, query_pre_attn_scalar=3, rms_norm_eps=1e-5, sliding_window=5,
        rope_theta=700.0, attn_logit_softcapping=1.5, final_logit_softcapping=6.0,
        layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention",
                     "sliding_attention"])),
    # The published form: every other layer has a window, and scores are scaled by the head's width.
    "gemma2-usual": dict(seed=5116, gguf="default", kind=GEMMA2_KIND, tokenizer="gemma", config=GEMMA2 | dict(
        vocab_size=450, hidden_size=72, intermediate_size=76, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=12, query_pre_attn_scalar=12, rms_norm_eps=1e-6, sliding_window=7,
        rope_theta=10000.0, attn_logit_softcapping=1.25, final_logit_softcapping=5.0)),
}
