"""Gemma 3, dense: see dense.py."""
from dense import Kind, passed_by

GEMMA3 = dict(architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", hidden_activation="gelu_pytorch_tanh",
              attention_bias=False, attention_dropout=0.0, use_cache=True, attn_logit_softcapping=None,
              final_logit_softcapping=None, bos_token_id=2, eos_token_id=[1, 6], pad_token_id=0,
              torch_dtype="bfloat16")


def norms_less_one(model):
    for name, tensor in model.named_parameters():
        if "norm" in name: tensor.sub_(1)


def embeddings_unscaled(model):
    model.model.embed_tokens.embed_scale.fill_(1.0)


def of_gemma3(c):
    default = lambda theta: {"rope_type": "default", "rope_theta": theta}
    ropes = c.get("rope_parameters") or {"full_attention": c["rope_scaling"] | {"rope_theta": 1e6},
                                         "sliding_attention": default(1e4)}
    full, local = ropes["full_attention"], ropes["sliding_attention"]
    roped = lambda f, l: {"rope_scaling": None, "rope_parameters": {"full_attention": f, "sliding_attention": l}}
    scalar = c["head_dim"] if c["query_pre_attn_scalar"] != c["head_dim"] else 256
    return {
        "embedding scale": embeddings_unscaled, "norms' 1": norms_less_one,
        "norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm"),
        "norm behind attention": passed_by("post_attention_layernorm"),
        "norm behind the feed-forward": passed_by("post_feedforward_layernorm"),
        "query_pre_attn_scalar": {"query_pre_attn_scalar": scalar}, "window": {"sliding_window": 4096},
        "window, of one more": {"sliding_window": c["sliding_window"] + 1},
        "full layers": {"layer_types": ["sliding_attention"] * c["num_hidden_layers"]},
        "scaling": roped(default(full["rope_theta"]), local),
        "scaling of full layers alone": roped(full, full | {"rope_theta": local["rope_theta"]}),
        "local base": roped(full, default(full["rope_theta"])), "gelu": {"hidden_activation": "silu"},
    }


def fill(name, noise):
    """The stored values of norms are added to 1. Norms after a part are wide and embeddings narrow; otherwise the text
    would repeat one id, because the embedding table is also the head."""
    if "layernorm" in name and "post" in name: return 0.3 * noise + 1.5
    if "norm" in name and not name.endswith("bias"): return 0.3 * noise
    if "embed_tokens" in name: return 0.5 * noise * noise.shape[-1] ** -0.5
    return None


GEMMA3_KIND = Kind("Gemma3TextConfig", "Gemma3ForCausalLM", of_gemma3, fill=fill, first=(2,), ids=(280, 20),
                   whole=("Gemma3Config", "Gemma3ForConditionalGeneration"))

MODELS = {
    # The configuration lists the kind of each layer, and has rotary positions in transformers' current form.
    "gemma3-odd": dict(seed=3104, kind=GEMMA3_KIND, tokenizer="gemma", config=GEMMA3 | dict(
        vocab_size=405, hidden_size=66, intermediate_size=90, num_hidden_layers=5, num_attention_heads=6,
        num_key_value_heads=3, head_dim=14, query_pre_attn_scalar=40, rms_norm_eps=1e-5, sliding_window=5,
        max_position_embeddings=640, tie_word_embeddings=True,
        layer_types=["sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
                     "full_attention"],
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 2.5, "rope_theta": 30000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}})),
    # Gemma 3 4B's published form: a vision encoder, and for the text only the members that differ from the defaults.
    "gemma3-tower": dict(seed=3102, gguf="default", kind=GEMMA3_KIND, tokenizer="gemma", config=dict(
        architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3", boi_token_index=10, eoi_token_index=11,
        eos_token_id=[1, 6], image_token_index=12, initializer_range=0.02, mm_tokens_per_image=4,
        torch_dtype="bfloat16",
        text_config=dict(
            model_type="gemma3_text", vocab_size=450, hidden_size=72, intermediate_size=76, num_hidden_layers=7,
            head_dim=12, query_pre_attn_scalar=12, sliding_window=7, max_position_embeddings=640,
            rope_scaling={"factor": 8.0, "rope_type": "linear"}),
        vision_config=dict(
            model_type="siglip_vision_model", hidden_size=16, image_size=28, intermediate_size=20,
            num_attention_heads=2, num_hidden_layers=1, patch_size=7, vision_use_head=False))),
}
