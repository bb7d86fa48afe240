"""Granite, dense: see dense.py."""
from dense import Kind, zeroed

SLIDING, FULL = "sliding_attention", "full_attention"

SHARED = dict(hidden_act="silu", max_position_embeddings=640, rms_norm_eps=2e-5, attention_dropout=0.0, use_cache=True,
              bos_token_id=1, eos_token_id=2, torch_dtype="bfloat16")


def of_granite(c):
    features = {key: {key: 1.0} for key in ("embedding_multiplier", "logits_scaling", "residual_multiplier")}
    features["attention_multiplier"] = {
        "attention_multiplier": (c["hidden_size"] // c["num_attention_heads"]) ** -0.5}
    if "position_embedding_type" in c:
        other = None if c["position_embedding_type"] == "rope" else "rope"
        return features | {"position_embedding_type": {"position_embedding_type": other}}
    return features | {"rope_theta": {"rope_theta": 1e6}}


def of_swa(c):
    """Sets sinks to 0, which still takes part in the softmax. The model's own sinks have both signs."""
    features = {name: change for name, change in of_granite(c).items() if name != "rope_theta"}
    bases, count = c["layer_rope_theta"], c["num_hidden_layers"]
    features |= {"sinks": zeroed("sinks"), "window, of one more": {"sliding_window": c["sliding_window"] + 1},
                 "window": {"sliding_window": 4096}}
    if c["layer_types"]: features["layer_types"] = {"layer_types": None}
    if not bases: return features | {"rope_theta": {"rope_theta": 1e6}}
    return features | {"bases": {"layer_rope_theta": None}, "still layers": {"layer_rope_theta": [
        base or 700.0 for base in bases]}, "last base": {"layer_rope_theta": bases[:count - 1] + [50.0]}}


def fill_swa(name, noise):
    return 1.5 * noise if name.endswith("sinks") else fill(name, noise)


def fill(name, noise):
    """Chooses sizes so that, with the configuration's multipliers, scores and logits have a usual size and the stream
    is more than its embedding."""
    if name.endswith(("embed_tokens.weight", "lm_head.weight")): return 0.7 * noise * noise.shape[-1] ** -0.5
    return 2.5 * noise * noise.shape[-1] ** -0.5 if name.endswith(("q_proj.weight", "k_proj.weight")) else None


GRANITE = Kind("GraniteConfig", "GraniteForCausalLM", of_granite, first=(1,), fill=fill)
SWA = Kind("GraniteSWAConfig", "GraniteSWAForCausalLM", of_swa, first=(1,), fill=fill_swa)
HYBRID = Kind("GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", of_granite, first=(1,), fill=fill)
GRANITE4 = SHARED | dict(architectures=["GraniteMoeHybridForCausalLM"], model_type="granitemoehybrid",
                         attention_bias=False, embedding_multiplier=3.0, attention_multiplier=0.1,
                         residual_multiplier=0.8, logits_scaling=0.4, num_local_experts=0, num_experts_per_tok=0,
                         intermediate_size=44, rope_theta=5000.0, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=1,
                         mamba_d_conv=4, mamba_d_state=16, mamba_expand=2)

MODELS = {
    "granite-odd": dict(seed=5101, gguf=True, kind=GRANITE, config=SHARED | dict(
        architectures=["GraniteForCausalLM"], model_type="granite", vocab_size=211, hidden_size=60,
        intermediate_size=44, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=3000.0,
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True, embedding_multiplier=2.5,
        attention_multiplier=0.21, residual_multiplier=0.7, logits_scaling=0.45)),
    "granite-swa-odd": dict(seed=7301, kind=SWA, config=SHARED | dict(
        architectures=["GraniteSWAForCausalLM"], model_type="granite_swa", vocab_size=213, hidden_size=60,
        intermediate_size=44, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, rope_theta=3000.0,
        attention_bias=True, mlp_bias=True, tie_word_embeddings=True, embedding_multiplier=2.5,
        attention_multiplier=0.21, residual_multiplier=0.7, logits_scaling=0.45, sliding_window=7,
        layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL], layer_rope_theta=[700.0, 0, 3000.0, 700, 90000.0])),
    # The configuration lists neither the kinds of layers nor their rotary bases.
    "granite-swa-plain": dict(seed=7333, gguf=True, kind=SWA, config=SHARED | dict(
        architectures=["GraniteSWAForCausalLM"], model_type="granite_swa", vocab_size=207, hidden_size=64,
        intermediate_size=36, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4, rope_theta=900.0,
        attention_bias=False, tie_word_embeddings=False, embedding_multiplier=2.5, attention_multiplier=0.21,
        residual_multiplier=0.7, logits_scaling=0.45, sliding_window=6, layer_types=None, layer_rope_theta=None)),
    # 4.0 micro's form: a hybrid without Mamba layers.
    "granite4-micro": dict(seed=5200, gguf=True, kind=HYBRID, config=GRANITE4 | dict(
        vocab_size=203, hidden_size=64, intermediate_size=52, shared_intermediate_size=52, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, position_embedding_type="rope", layer_types=["attention"] * 3,
        tie_word_embeddings=True)),
    # As above, without rotary positions, for which GGUF's converter has no key.
    "granite4-still": dict(seed=5300, kind=HYBRID, config=GRANITE4 | dict(
        vocab_size=199, hidden_size=64, shared_intermediate_size=36, num_hidden_layers=2, num_attention_heads=8,
        num_key_value_heads=4, position_embedding_type="nope", layer_types=["attention"] * 2,
        tie_word_embeddings=False)),
}
