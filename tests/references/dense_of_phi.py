"""Phi-3 and 4: see dense.py. With LongRoPE, the second greedy text of a model begins as a short text and becomes a
long one, so that from then on all its positions are rotated differently. That is what transformers computes without a
cache. With a cache it means to do the same: it drops the cache when a text becomes long, but (5.17) then runs only the
last id."""
from dense import Kind

SHARED = dict(architectures=["Phi3ForCausalLM"], model_type="phi3", hidden_act="silu", rms_norm_eps=2e-5,
              attention_dropout=0.0, embd_pdrop=0.0, resid_pdrop=0.0, use_cache=True, bos_token_id=1, eos_token_id=2,
              pad_token_id=0, torch_dtype="bfloat16")


def of_phi3(c):
    features = {"rope_theta": {"rope_theta": 1e6}}
    if c.get("sliding_window"):
        features |= {"window": {"sliding_window": None},
                     "window, of one more": {"sliding_window": c["sliding_window"] + 1}}
    if "rope_scaling" in c:
        told = lambda **other: {"rope_scaling": c["rope_scaling"] | other}
        features |= {"long factors": told(long_factor=c["rope_scaling"]["short_factor"]),
                     "attention factor": told(attention_factor=1.0),
                     "where long begins": {"original_max_position_embeddings": 200}}
    return features


PHI3 = Kind("Phi3Config", "Phi3ForCausalLM", of_phi3, first=(1,))

MODELS = {
    # Phi-3-mini-4k's form: all layers have a window, which llama.cpp ignores.
    "phi3-window": dict(seed=7100, gguf=True, kind=PHI3, config=SHARED | dict(
        vocab_size=211, hidden_size=60, intermediate_size=44, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, rope_theta=3000.0, sliding_window=11, max_position_embeddings=640,
        original_max_position_embeddings=640, tie_word_embeddings=False)),
    # Phi-4-mini's form: LongRoPE rotates three quarters of a head; the head of the model is tied.
    "phi4-longrope": dict(cached=False, seed=7200, gguf=True, kind=PHI3, config=SHARED | dict(
        vocab_size=203, hidden_size=64, intermediate_size=52, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, rope_theta=2000.0, partial_rotary_factor=0.75, sliding_window=None,
        max_position_embeddings=640, original_max_position_embeddings=40, tie_word_embeddings=True,
        rope_scaling={"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5],
                      "long_factor": [1.5, 2.0, 4.0, 7.0, 12.0, 20.0]})),
    # The older form of Phi-3-mini-128k, with a window.
    "phi3-su": dict(cached=False, seed=7305, kind=PHI3, config=SHARED | dict(
        vocab_size=199, hidden_size=48, intermediate_size=60, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=4, rope_theta=5000.0, sliding_window=17, max_position_embeddings=640,
        original_max_position_embeddings=40, tie_word_embeddings=False,
        rope_scaling={"type": "su", "original_max_position_embeddings": 40,
                      "short_factor": [1.05, 1.0, 1.2, 1.4, 1.1, 1.9],
                      "long_factor": [1.2, 3.0, 2.0, 9.0, 10.0, 30.0]})),
}
