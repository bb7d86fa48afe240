"""Dense decoders with other kinds or places of norms (see dense.py): OLMo 2 and 3, EXAONE 4, Cohere 2, GLM-4, ERNIE
4.5 and StableLM 2. Every window is shorter than the prompts whose greedy text is stored."""
import torch
import transformers
from dense import Kind, passed_by, zeroed

SLIDING, FULL = "sliding_attention", "full_attention"


def family(architecture, model_type, **more):
    return dict(architectures=[architecture], model_type=model_type, hidden_act="silu", max_position_embeddings=1024,
                bos_token_id=3, eos_token_id=[5, 7], pad_token_id=0, attention_dropout=0.0, use_cache=True,
                torch_dtype="bfloat16") | more


def behind_and_narrow(name, noise):
    """Makes norms after a part wide and embeddings narrow; otherwise the text would repeat one id."""
    if "layernorm" in name: return 0.3 * noise + 1.5
    if "embed_tokens" in name: return 0.5 * noise * noise.shape[-1] ** -0.5


def wide(name, noise):
    """Makes embeddings wide, so that the norms after parts do not drown them."""
    if "embed_tokens" in name: return noise


# ------------------------------------------------------------------------------------------------------------ features

def on_modules(kind, change):
    """Applies a change to all modules whose names end with one of these."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(kind): change(module)
    return edit


def by_heads(model):
    """Computes the norms of queries and keys for each head by itself."""
    size = model.model.layers[0].self_attn.head_dim

    def normed(norm):
        def forward(x):
            heads = x.view(*x.shape[:-1], -1, size)
            return (heads * torch.rsqrt(heads.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)).flatten(
                -2) * norm.weight
        norm.forward = forward
    for kind in ("q_norm", "k_norm"): on_modules(kind, normed)(model)


def read_normed(model):
    """Lets each part read a norm of the stream, as in most families."""
    plain = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps)
    for layer in model.model.layers:
        attention, mlp = layer.self_attn.forward, layer.mlp.forward
        layer.self_attn.forward = lambda hidden_states, f=attention, **more: f(
            hidden_states=plain(hidden_states), **more)
        layer.mlp.forward = lambda x, f=mlp: f(plain(x))


def serial(model):
    """Lets the feed-forward read the stream after attention was added."""
    for layer in model.model.layers:
        def forward(hidden_states, layer=layer, **more):
            middle = hidden_states + layer.self_attn(layer.input_layernorm(hidden_states), **more)[0]
            return middle + layer.mlp(layer.input_layernorm(middle))
        layer.forward = forward


def mean_kept(model):
    """Replaces LayerNorm by RMSNorm."""
    def change(norm):
        norm.forward = lambda x: norm.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
    on_modules("norm", change)(model)


def mean_of_biased_kept(model):
    def change(norm):
        norm.forward = lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], norm.weight, norm.eps) + norm.bias
    on_modules("norm", change)(model)


def halves(x, cos, sin):
    n = cos.shape[-1]
    first, second, cos, sin = x[..., :n // 2], x[..., n // 2:n], cos[..., :n // 2], sin[..., :n // 2]
    return torch.cat((first * cos - second * sin, second * cos + first * sin, x[..., n:]), dim=-1)


def turned_by_halves(model):
    """Rotates pairs of values that are half a head apart instead of neighbours."""
    module = __import__(type(model).__module__, fromlist=["apply_rotary_pos_emb"])
    repeated = model.config.model_type == "cohere2"     # each of its angles occurs twice, side by side

    def turned(q, k, cos, sin, unsqueeze_dim=1):
        if repeated: cos, sin = (torch.cat((t[..., ::2],) * 2, -1) for t in (cos, sin))
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return halves(q, cos, sin), halves(k, cos, sin)

    def with_turned(forward):
        def run(*arguments, **named):
            before, module.apply_rotary_pos_emb = module.apply_rotary_pos_emb, turned
            try: return forward(*arguments, **named)
            finally: module.apply_rotary_pos_emb = before
        return run
    for layer in model.model.layers: layer.self_attn.forward = with_turned(layer.self_attn.forward)


def all_layers_turn(model):
    """Applies rotary positions in layers with full attention too. The mask that these get has no window."""
    for layer in model.model.layers:
        attention = layer.self_attn
        if hasattr(attention, "is_sliding"): attention.sliding_window = None
        elif attention.sliding_window is None: attention.sliding_window = 1 << 20


def swap_halves(mlp):
    with torch.no_grad(): mlp.gate_up_proj.weight.copy_(torch.cat(mlp.gate_up_proj.weight.chunk(2)[::-1]))


BIASES = {f"bias of {one}": zeroed(f"{one}_proj.bias") for one in "qkv"}
QK_NORMS = {"norm of q": passed_by("q_norm"), "norm of k": passed_by("k_norm")}
BEHIND = {"norm behind attention": passed_by("post_attention_layernorm"),
          "norm behind the feed-forward": passed_by("post_feedforward_layernorm"),
          "no norm before the parts": read_normed}


def windows(c):
    return {"window": {"sliding_window": 4096}, "window, of one more": {"sliding_window": c["sliding_window"] + 1}}


def of_olmo2(c):
    return BIASES | QK_NORMS | BEHIND | {"bias of o": zeroed("o_proj.bias"), "norms over all heads": by_heads,
                                         "rope_theta": {"rope_theta": 1e4}}


def of_olmo3(c):
    ropes = lambda full, sliding: {"rope_parameters": {FULL: full, SLIDING: sliding}}
    full, sliding = c["rope_parameters"][FULL], c["rope_parameters"][SLIDING]
    return QK_NORMS | BEHIND | windows(c) | {
        "norms over all heads": by_heads, "layer_types": {"layer_types": None},
        "scaling": ropes({"rope_type": "default", "rope_theta": full["rope_theta"]}, sliding),
        "scaling of full layers alone": ropes(full, full | {"rope_theta": sliding["rope_theta"]}),
        "attention factor": ropes({k: v for k, v in full.items() if k != "attention_factor"}, sliding),
        "beta_fast": ropes(full | {"beta_fast": 32.0}, sliding), "beta_slow": ropes(full | {"beta_slow": 1.0}, sliding),
        "base of sliding layers": ropes(full, sliding | {"rope_theta": full["rope_theta"]}),
        "base of full layers": ropes(full | {"rope_theta": 5e5}, sliding)}


def of_exaone4(c):
    features = QK_NORMS | BEHIND | {"rope_theta": {"rope_theta": 1e4}}
    if c["sliding_window"] is None: return features | {"scaling": {"rope_scaling": None}}
    return features | windows(c) | {"full layers without positions": all_layers_turn,
                                    "layer_types": {"layer_types": None, "sliding_window_pattern": 4}}


def of_cohere2(c):
    return windows(c) | {
        "rope_theta": {"rope_theta": 1e4}, "logit_scale": {"logit_scale": 1.0}, "parallel block": serial,
        "mean of norms": mean_kept, "neighbours turn": turned_by_halves, "full layers without positions":
        all_layers_turn, "pattern": {"sliding_window_pattern": 2}}


def of_glm(c):
    return BIASES | {"part that turns": {"partial_rotary_factor": 1.0}, "neighbours turn": turned_by_halves,
                     "norm before attention": passed_by("input_layernorm"), "rope_theta": {"rope_theta": 1e6},
                     "norm before the feed-forward": passed_by("post_attention_layernorm"),
                     "gate before up": on_modules("mlp", swap_halves)}


def of_glm4(c):
    return of_glm(c) | {"norm behind attention": passed_by("post_self_attn_layernorm"),
                        "norm behind the feed-forward": passed_by("post_mlp_layernorm")}


def of_ernie45(c):
    of = lambda part: zeroed(f"{part}_proj.bias")
    return BIASES | {"bias of o": of("o"), "bias of gate": of("gate"), "bias of up": of("up"),
                     "bias of down": of("down"), "neighbours turn": turned_by_halves,
                     "rope_theta": {"rope_theta": 5e5}}


@torch.no_grad()
def normed_as_the_first(model):
    """Gives all heads of a layer the norm of the first head."""
    for _, module in model.named_modules():
        for norm in getattr(module, "norms", ()): norm.weight.copy_(module.norms[0].weight)


def of_stablelm(c):
    features = {"part that turns": {"partial_rotary_factor": 1.0}, "rope_theta": {"rope_theta": 1e2},
                "biases of norms": zeroed("norm.bias")}
    if c["use_qkv_bias"]: features |= BIASES
    if not c["qk_layernorm"]: features["mean of norms"] = mean_of_biased_kept
    else: features |= {"norm of q": passed_by("q_layernorm"), "norm of k": passed_by("k_layernorm"),
                       "norms of heads": normed_as_the_first}
    if c["use_parallel_residual"]: return features | {"parallel block": serial}
    return features | {"norm before the feed-forward": passed_by("post_attention_layernorm")}


# -------------------------------------------------------------------------------------------------------------- models

def kind(name, features, fill=None):
    return Kind(f"{name}Config", f"{name}ForCausalLM", features, fill=fill)


OLMO2, OLMO3, EXAONE4 = (kind("Olmo2", of_olmo2, wide), kind("Olmo3", of_olmo3),
                         kind("Exaone4", of_exaone4, behind_and_narrow))
COHERE2, GLM4, GLM, ERNIE45 = (kind("Cohere2", of_cohere2), kind("Glm4", of_glm4), kind("Glm", of_glm),
                               kind("Ernie4_5", of_ernie45))
STABLELM = kind("StableLm", of_stablelm)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}

MODELS = {
    # The model has biases, which published models don't have. They are added before the norms.
    "olmo2-bias": dict(seed=4801, gguf=True, kind=OLMO2, config=family(
        "Olmo2ForCausalLM", "olmo2", rms_norm_eps=3e-6, vocab_size=339, hidden_size=72, intermediate_size=60,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=700.0, tie_word_embeddings=False,
        attention_bias=True)),
    # Rotary positions are scaled only in the layers with full attention.
    "olmo3-yarn": dict(seed=4602, gguf=True, kind=OLMO3, config=family(
        "Olmo3ForCausalLM", "olmo3", rms_norm_eps=3e-6, attention_bias=False, vocab_size=347, hidden_size=60,
        intermediate_size=72, num_hidden_layers=5, num_attention_heads=5, num_key_value_heads=5,
        tie_word_embeddings=False, sliding_window=7, layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL],
        rope_parameters={FULL: {"rope_type": "yarn", "rope_theta": 3000.0, "factor": 4.0, "attention_factor": 1.3,
                                "beta_fast": 1.0, "beta_slow": 0.25, "original_max_position_embeddings": 40},
                         SLIDING: {"rope_type": "default", "rope_theta": 200.0}})),
    # EXAONE 4 1.2B's form: no windows, and rotary positions in all layers.
    "exaone4-full": dict(seed=9103, kind=EXAONE4, config=family(
        "Exaone4ForCausalLM", "exaone4", rms_norm_eps=1e-5, vocab_size=341, hidden_size=64, intermediate_size=56,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
        sliding_window=None, sliding_window_pattern=None, rope_theta=500.0, layer_types=[FULL] * 3,
        rope_scaling=LLAMA3)),
    # The 32B's form: windows, and no rotary positions in layers with full attention.
    "exaone4-window": dict(seed=4104, gguf=True, kind=EXAONE4, config=family(
        "Exaone4ForCausalLM", "exaone4", rms_norm_eps=1e-5, vocab_size=337, hidden_size=60, intermediate_size=64,
        num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=False, sliding_window=9,
        sliding_window_pattern="LLG", rope_theta=400.0, layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL])),
    "cohere2-window": dict(seed=8405, gguf=True, kind=COHERE2, config=family(
        "Cohere2ForCausalLM", "cohere2", layer_norm_eps=1e-5, attention_bias=False, rotary_pct=1.0, vocab_size=353,
        hidden_size=72, intermediate_size=52, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2,
        rope_theta=300.0, logit_scale=0.4, sliding_window=6, sliding_window_pattern=4, tie_word_embeddings=True)),
    "glm4-dense": dict(seed=4406, gguf=True, kind=GLM4, config=family(
        "Glm4ForCausalLM", "glm4", rms_norm_eps=1e-5, vocab_size=349, hidden_size=60, intermediate_size=56,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=20, rope_theta=300.0,
        tie_word_embeddings=False, attention_bias=True, partial_rotary_factor=0.4)),
    # The GGUF file has no eps and no rotary base, because both are those that the converter always writes. It takes
    # its context from another key.
    "glm-chat": dict(seed=4107, gguf=True, kind=GLM, config=family(
        "GlmForCausalLM", "glm", rms_norm_eps=1e-5, vocab_size=345, hidden_size=64, intermediate_size=60,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16, rope_theta=10000.0,
        tie_word_embeddings=False, attention_bias=True, seq_length=1024)),
    "ernie45-bias": dict(seed=4308, gguf=True, kind=ERNIE45, config=family(
        "Ernie4_5ForCausalLM", "ernie4_5", rms_norm_eps=1e-5, vocab_size=343, hidden_size=60, intermediate_size=52,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, head_dim=14, tie_word_embeddings=True,
        use_bias=True, rope_theta=600.0)),
    "stablelm-serial": dict(seed=5209, gguf=True, kind=STABLELM, config=family(
        "StableLmForCausalLM", "stablelm", layer_norm_eps=1e-5, vocab_size=341, hidden_size=64, intermediate_size=56,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, rope_theta=10000.0, use_qkv_bias=True,
        use_parallel_residual=False, qk_layernorm=False, partial_rotary_factor=0.25, tie_word_embeddings=False,
        hidden_dropout=0.0)),
    "stablelm-parallel": dict(seed=4410, kind=STABLELM, config=family(
        "StableLmForCausalLM", "stablelm", layer_norm_eps=1e-5, vocab_size=337, hidden_size=60, intermediate_size=52,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=3, rope_theta=500.0, use_qkv_bias=True,
        use_parallel_residual=True, qk_layernorm=False, partial_rotary_factor=0.4, tie_word_embeddings=True,
        hidden_dropout=0.0)),
    # as the 12B, whose heads have a LayerNorm each
    "stablelm-heads": dict(seed=5320, gguf=True, kind=STABLELM, config=family(
        "StableLmForCausalLM", "stablelm", layer_norm_eps=1e-4, vocab_size=339, hidden_size=60, intermediate_size=56,
        num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rope_theta=10000.0, use_qkv_bias=False,
        use_parallel_residual=True, qk_layernorm=True, partial_rotary_factor=0.4, tie_word_embeddings=False,
        hidden_dropout=0.0)),
}
