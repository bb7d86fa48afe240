"""Dense decoders that differ only a little from others (see dense.py): Apertus, Arcee, Cohere 1, CWM, EXAONE 3.5,
Gemma 1, Helium, HyperCLOVA X, Jais 2, Ministral, Nemotron, OLMo 1, StarCoder2 and VaultGemma. Every window is shorter
than the prompts whose greedy text is stored."""
from dense import Kind, passed_by, zeroed
from dense_of_gemma2 import GEMMA2, of_gemma2
from dense_of_gemma3 import embeddings_unscaled, norms_less_one
from dense_of_norms import (BIASES, FULL, LLAMA3, QK_NORMS, SLIDING, family, kind, mean_kept, mean_of_biased_kept,
                            serial, turned_by_halves, windows)


def told(number, value):
    """Sets one of xIELU's numbers in all layers."""
    def edit(model):
        for layer in model.model.layers: getattr(layer.mlp.act_fn, number).fill_(value)
    return edit


def of_apertus(c):
    return BIASES | QK_NORMS | {
        "bias of o": zeroed("o_proj.bias"), "alpha_p": told("alpha_p", 0.2), "alpha_n": told("alpha_n", -1.05),
        "beta": told("beta", 0.5), "eps": told("eps", -1e-6), "scaling": {"rope_scaling": None}}


def of_cohere(c):
    heads = {f"norm of {part}": passed_by(f"{part}_norm") for part in "qk"} if c["use_qk_norm"] else {}
    return heads | {"rope_theta": {"rope_theta": 1e4}, "logit_scale": {"logit_scale": 1.0}, "parallel block": serial,
                    "mean of norms": mean_kept, "neighbours turn": turned_by_halves}


def of_layers_told(c):
    kinds = c["layer_types"]
    features = windows(c) | {"kinds of layers": {"layer_types": kinds[1:] + kinds[:1]},
                             "full layers": {"layer_types": [SLIDING] * len(kinds)},
                             "rope_theta": {"rope_theta": 1e6}}
    return features | ({"scaling": {"rope_scaling": None}} if c.get("rope_scaling") else {})


def of_gemma(c):
    return {"embedding scale": embeddings_unscaled, "norms' 1": norms_less_one, "gelu": {"hidden_act": "silu"},
            "rope_theta": {"rope_theta": 300.0}}


def of_helium(c):
    of = lambda part: zeroed(f"{part}_proj.bias")
    return BIASES | {"bias of gate": of("gate"), "bias of up": of("up"), "bias of down": of("down"),
                     "neighbours turn": turned_by_halves, "rope_theta": {"rope_theta": 1e5}}


def of_hyperclovax(c):
    features = {key: {key: 1.0} for key in ("embedding_multiplier", "logits_scaling", "residual_multiplier")}
    return BIASES | features | {"attention_multiplier": {"attention_multiplier": None},
                                "norm behind attention": passed_by("post_norm1"),
                                "norm behind the feed-forward": passed_by("post_norm2")}


def of_vault_gemma(c):
    return {name: change for name, change in of_gemma2(c).items() if "behind" not in name} | {
        "norm before the feed-forward": passed_by("pre_feedforward_layernorm")}


def of_arcee(c):
    of = lambda part: zeroed(f"{part}_proj.bias")
    return BIASES | {"bias of up": of("up"), "bias of down": of("down"), "bias of o": of("o"),
                     "square": {"hidden_act": "relu"}, "scaling": {"rope_scaling": None}}


def of_youtu(c):
    features = {"norm of queries": passed_by("q_a_layernorm"), "norm of the latent": passed_by("kv_a_layernorm"),
                "rope_theta": {"rope_theta": 1e6}}
    if c["model_type"] == "youtu": return features | {"neighbours turn": {"rope_interleave": False}, "mscale_all_dim":
                                                      {"rope_scaling": c["rope_scaling"] | {"mscale_all_dim": 0.0}}}
    of = lambda part: zeroed(f"{part}_proj.bias")
    if c["mlp_bias"]: features |= {"bias of " + part: of(part) for part in ("up", "gate", "down")}
    return features | {"scale_emb": {"scale_emb": 1.0}, "scale_depth": {"scale_depth": None}, "dim_model_base":
                       {"dim_model_base": None}, "scaling": {"rope_scaling": None}}


def of_nemotron(c):
    return {"norms' 1": norms_less_one_but_biases, "biases of norms": zeroed("norm.bias"), "square":
            {"hidden_act": "relu"}, "part that turns": {"partial_rotary_factor": 1.0},
            "rope_theta": {"rope_theta": 1e2}}


def norms_less_one_but_biases(model):
    for name, tensor in model.named_parameters():
        if "norm" in name and name.endswith("weight"): tensor.sub_(1)


def of_jais2(c):
    of = lambda part: zeroed(f"{part}_proj.bias")
    return BIASES | {"bias of up": of("up"), "bias of down": of("down"), "bias of o": of("o"), "square":
                     {"hidden_act": "relu"}, "biases of norms": zeroed("norm.bias"),
                     "mean of norms": mean_of_biased_kept, "rope_theta": {"rope_theta": 1e4}}


def of_starcoder2(c):
    of = lambda part: zeroed(f"{part}.bias")
    features = BIASES | {"bias of o": of("o_proj"), "bias of up": of("c_fc"), "bias of down": of("c_proj"),
                         "gelu": {"hidden_act": "silu"}, "biases of norms": zeroed("norm.bias"),
                         "mean of norms": mean_of_biased_kept, "rope_theta": {"rope_theta": 1e4}}
    return features | (windows(c) if c["sliding_window"] else {})


def of_exaone(c):
    return {"scaling": {"rope_scaling": None}, "rope_theta": {"rope_theta": 1e5}, "activation":
            {"activation_function": "gelu"}, "norm before attention": passed_by("input_layernorm")}


def of_olmo(c):
    features = {"rope_theta": {"rope_theta": 1e5}, "norms": passed_by("layernorm", "model.norm")}
    return features | ({"clip_qkv": {"clip_qkv": None}} if c["clip_qkv"] else {})


def fill_apertus(name, noise):
    """Gives each layer other numbers of xIELU, and all of them have an effect."""
    if name.endswith(".beta"): return 0.6 + 0.2 * noise
    if name.endswith(".eps"): return -0.4 - 0.2 * noise.abs()
    return 0.5 * noise if ".alpha_" in name else None


def fill_nemotron(name, noise):
    """Stores norms less 1, as the model does."""
    return 0.3 * noise if "norm" in name and name.endswith("weight") else None


def fill_gemma(name, noise):
    """Stores norms less 1, as the model does. Embeddings are narrow, because their scale makes them large."""
    if "norm" in name: return 0.3 * noise
    if "embed_tokens" in name: return 0.8 * noise * noise.shape[-1] ** -0.5
    return None


def fill_hyperclovax(name, noise):
    """Chooses sizes as for Granite: with the configuration's multipliers, scores and logits have a usual size."""
    if name.endswith(("embed_tokens.weight", "lm_head.weight")): return 0.7 * noise * noise.shape[-1] ** -0.5
    return 2.5 * noise * noise.shape[-1] ** -0.5 if name.endswith(("q_proj.weight", "k_proj.weight")) else None


APERTUS = kind("Apertus", of_apertus, fill_apertus)
GEMMA = Kind("GemmaConfig", "GemmaForCausalLM", of_gemma, fill=fill_gemma, first=(2,), ids=(280, 20))
VAULT = Kind("VaultGemmaConfig", "VaultGemmaForCausalLM", of_vault_gemma, fill=fill_gemma, first=(2,))
COHERE, CWM, MINISTRAL = kind("Cohere", of_cohere), kind("Cwm", of_layers_told), kind("Ministral", of_layers_told)
HELIUM, HYPERCLOVAX = kind("Helium", of_helium), kind("HyperCLOVAX", of_hyperclovax, fill_hyperclovax)
ARCEE, NEMOTRON = kind("Arcee", of_arcee), kind("Nemotron", of_nemotron, fill_nemotron)
YOUTU, MINICPM3 = kind("Youtu", of_youtu), kind("MiniCPM3", of_youtu, fill_hyperclovax)
JAIS2 = kind("Jais2", of_jais2)
OLMO = kind("Olmo", of_olmo)
EXAONE_NAMES = [("model.embed_tokens.", "transformer.wte."), ("model.norm.", "transformer.ln_f.")] + [
    (f"model.layers.{i}.{here}.", f"transformer.h.{i}.{there}.") for i in range(3) for here, there in (
        ("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2"), ("mlp.gate_proj", "mlp.c_fc_0"),
        ("mlp.up_proj", "mlp.c_fc_1"), ("mlp.down_proj", "mlp.c_proj"),
        *((f"self_attn.{one}_proj", f"attn.attention.{'out' if one == 'o' else one}_proj") for one in "qkvo"))]
EXAONE = Kind("ExaoneConfig", "LlamaForCausalLM", of_exaone,
              files=tuple((here + "weight", there + "weight") for here, there in EXAONE_NAMES))
STARCODER2 = kind("Starcoder2", of_starcoder2)

MODELS = {
    "apertus-odd": dict(seed=7322, gguf=True, kind=APERTUS, config=family(
        "ApertusForCausalLM", "apertus", rms_norm_eps=1e-5, vocab_size=231, hidden_size=60, intermediate_size=68,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=500.0, rope_scaling=LLAMA3,
        attention_bias=True, hidden_act="xielu", tie_word_embeddings=False)),
    "arcee-bias": dict(seed=6202, gguf=True, kind=ARCEE, config=family(
        "ArceeForCausalLM", "arcee", rms_norm_eps=1e-5, vocab_size=225, hidden_size=60, intermediate_size=72,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=500.0, rope_scaling=LLAMA3,
        attention_bias=True, mlp_bias=True, hidden_act="relu2", tie_word_embeddings=False)),
    "cohere-odd": dict(seed=6107, gguf=True, kind=COHERE, config=family(
        "CohereForCausalLM", "cohere", layer_norm_eps=1e-5, attention_bias=False, vocab_size=233, hidden_size=60,
        intermediate_size=52, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=300.0,
        logit_scale=0.4, use_qk_norm=False, tie_word_embeddings=True)),
    # as Command R+, whose heads have a LayerNorm each
    "cohere-heads": dict(seed=6427, kind=COHERE, config=family(
        "CohereForCausalLM", "cohere", layer_norm_eps=1e-4, attention_bias=True, vocab_size=227, hidden_size=56,
        intermediate_size=45, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, rope_theta=500.0,
        logit_scale=0.3, use_qk_norm=True, tie_word_embeddings=False)),
    "cwm-odd": dict(seed=6103, kind=CWM, config=family(
        "CwmForCausalLM", "cwm", rms_norm_eps=1e-5, vocab_size=229, hidden_size=60, intermediate_size=52,
        num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=12, rope_theta=400.0,
        rope_scaling=LLAMA3, sliding_window=7, layer_types=[FULL, SLIDING, SLIDING, FULL, SLIDING],
        tie_word_embeddings=False)),
    # The form that was published first: the activation is called gelu, and there is a key that nothing reads. The GGUF
    # file has no rotary base, because all published models have the same.
    "gemma-odd": dict(seed=6107, gguf="default", kind=GEMMA, tokenizer="gemma", config=family(
        "GemmaForCausalLM", "gemma", rms_norm_eps=1e-6, vocab_size=402, hidden_size=66, intermediate_size=70,
        num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1, head_dim=18, hidden_act="gelu",
        hidden_activation=None, rope_theta=10000.0, tie_word_embeddings=True, attention_bias=False, bos_token_id=2)),
    "helium-bias": dict(seed=6105, kind=HELIUM, config=family(
        "HeliumForCausalLM", "helium", rms_norm_eps=1e-8, vocab_size=227, hidden_size=56, intermediate_size=52,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=14, rope_theta=700.0,
        attention_bias=True, mlp_bias=True, tie_word_embeddings=False)),
    "hyperclovax-odd": dict(seed=6105, kind=HYPERCLOVAX, config=family(
        "HyperCLOVAXForCausalLM", "hyperclovax", rms_norm_eps=1e-5, vocab_size=223, hidden_size=60,
        intermediate_size=44, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=3000.0,
        attention_bias=True, tie_word_embeddings=True, embedding_multiplier=2.5, attention_multiplier=0.21,
        residual_multiplier=0.7, logits_scaling=2.2)),
    "jais2-odd": dict(seed=7893, gguf=True, kind=JAIS2, config=family(
        "Jais2ForCausalLM", "jais2", layer_norm_eps=3e-5, vocab_size=223, hidden_size=60, intermediate_size=72,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=500.0, attention_bias=True,
        mlp_bias=True, hidden_act="relu2", tie_word_embeddings=False)),
    "ministral-odd": dict(seed=6107, kind=MINISTRAL, config=family(
        "MinistralForCausalLM", "ministral", rms_norm_eps=1e-5, vocab_size=239, hidden_size=60, intermediate_size=52,
        num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3, head_dim=12, rope_theta=400.0,
        sliding_window=6, layer_types=[SLIDING, FULL, SLIDING, SLIDING], tie_word_embeddings=False)),
    "vault-gemma-odd": dict(seed=6110, kind=VAULT, config=GEMMA2 | dict(
        architectures=["VaultGemmaForCausalLM"], model_type="vaultgemma", vocab_size=251, hidden_size=66,
        intermediate_size=70, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3, head_dim=14,
        query_pre_attn_scalar=5, rms_norm_eps=1e-6, sliding_window=6, rope_theta=700.0, attn_logit_softcapping=1.5,
        final_logit_softcapping=6.0)),
    "nemotron-odd": dict(seed=6268, gguf=True, kind=NEMOTRON, config=family(
        "NemotronForCausalLM", "nemotron", norm_eps=1e-5, vocab_size=231, hidden_size=64, intermediate_size=72,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, rope_theta=10000.0, hidden_act="relu2",
        partial_rotary_factor=0.5, attention_bias=False, mlp_bias=False, tie_word_embeddings=False)),
    "exaone3-odd": dict(seed=6703, gguf=True, kind=EXAONE, config=dict(
        architectures=["ExaoneForCausalLM"], model_type="exaone", vocab_size=221, hidden_size=60, intermediate_size=72,
        num_layers=3, num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=1024, rope_theta=500.0,
        rope_scaling=LLAMA3, layer_norm_epsilon=3e-5, activation_function="silu", tie_word_embeddings=False,
        bos_token_id=3, eos_token_id=[5, 7], pad_token_id=0, torch_dtype="bfloat16")),
    "olmo-clip": dict(seed=6802, gguf=True, kind=OLMO, config=family(
        "OlmoForCausalLM", "olmo", vocab_size=223, hidden_size=60, intermediate_size=52, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=3, rope_theta=900.0, clip_qkv=1.1, attention_bias=False,
        tie_word_embeddings=False)),
    "olmo-odd": dict(seed=6903, kind=OLMO, config=family(
        "OlmoForCausalLM", "olmo", vocab_size=217, hidden_size=56, intermediate_size=68, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=4, rope_theta=10000.0, clip_qkv=None, attention_bias=False,
        tie_word_embeddings=True)),
    "youtu-odd": dict(seed=7401, gguf=True, kind=YOUTU, config=family(
        "YoutuForCausalLM", "youtu", rms_norm_eps=3e-6, vocab_size=227, hidden_size=60, intermediate_size=68,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=26, kv_lora_rank=22,
        qk_rope_head_dim=10, qk_nope_head_dim=14, v_head_dim=18, rope_theta=900.0, rope_interleave=True,
        rope_scaling=dict(rope_type="yarn", factor=8.0, original_max_position_embeddings=64, beta_fast=9, beta_slow=2,
                          mscale=0.8, mscale_all_dim=0.8), attention_bias=False, tie_word_embeddings=True,
        pad_token_id=None)),  # otherwise transformers would load its row as zeros
    # Queries have no latent, pairs of a head's values are half a head apart, and positions are not scaled.
    "youtu-plain": dict(seed=7502, kind=kind("Youtu", lambda c: {
        "halves turn": {"rope_interleave": True}, "rope_theta": {"rope_theta": 1e6},
        "norm of the latent": passed_by("kv_a_layernorm")}), config=family(
        "YoutuForCausalLM", "youtu", rms_norm_eps=1e-6, vocab_size=221, hidden_size=56, intermediate_size=52,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=24,
        qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16, rope_theta=700.0, rope_interleave=False,
        attention_bias=False, tie_word_embeddings=False)),
    "minicpm3-odd": dict(seed=7601, kind=MINICPM3, config=family(
        "MiniCPM3ForCausalLM", "minicpm3", rms_norm_eps=1e-5, vocab_size=219, hidden_size=60, intermediate_size=44,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=26, kv_lora_rank=22,
        qk_rope_head_dim=8, qk_nope_head_dim=14, v_head_dim=None, rope_theta=900.0, attention_bias=False,
        mlp_bias=True, scale_emb=2.5, scale_depth=1.1, dim_model_base=132, tie_word_embeddings=True,
        rope_scaling=dict(rope_type="longrope", long_factor=[1.2, 1.9, 3.0, 4.1], short_factor=[1.0, 1.3, 2.2, 3.1],
                          original_max_position_embeddings=512))),
    # The numbers for which GGUF has no key are those of the published model: the multipliers, the rotary base, and as
    # many trained positions as there are.
    "minicpm3-plain": dict(seed=7629, gguf=True, kind=MINICPM3, config=family(
        "MiniCPM3ForCausalLM", "minicpm3", rms_norm_eps=1e-5, vocab_size=213, hidden_size=60, intermediate_size=44,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=26, kv_lora_rank=22,
        qk_rope_head_dim=8, qk_nope_head_dim=14, v_head_dim=None, rope_theta=10000.0, attention_bias=False,
        mlp_bias=False, scale_emb=12, scale_depth=1.4, dim_model_base=256, tie_word_embeddings=True,
        rope_scaling=dict(rope_type="longrope", long_factor=[1.2, 1.9, 3.0, 4.1], short_factor=[1.0, 1.3, 2.2, 3.1],
                          original_max_position_embeddings=1024))),
    "starcoder2-odd": dict(seed=6458, gguf=True, kind=STARCODER2, config=family(
        "Starcoder2ForCausalLM", "starcoder2", norm_epsilon=1e-5, vocab_size=219, hidden_size=60, intermediate_size=72,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=700.0, sliding_window=None,
        hidden_act="gelu_pytorch_tanh", use_bias=True, tie_word_embeddings=False)),
    "starcoder2-window": dict(seed=6214, kind=STARCODER2, config=family(
        "Starcoder2ForCausalLM", "starcoder2", norm_epsilon=1e-5, vocab_size=217, hidden_size=48, intermediate_size=56,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, rope_theta=700.0, sliding_window=7,
        hidden_act="gelu_pytorch_tanh", use_bias=True, tie_word_embeddings=False)),
}
