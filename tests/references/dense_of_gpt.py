"""Decoders older than Llama (see dense.py): BLOOM, Falcon, GPT-2, GPT-J, GPT-NeoX, MPT, OPT, Phi-1 and 2.
Their norms are LayerNorm, most with biases, and their feed-forwards have no gates."""
import torch
from dense import Kind, passed_by, zeroed
from dense_of_norms import on_modules
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.falcon import modeling_falcon as falcon
from transformers.models.mpt import modeling_mpt as mpt

NAMES_OF_SLOPES = {bloom: "_get_alibi_slopes", mpt: "build_mpt_alibi_tensor"}
COMMON = dict(bos_token_id=3, eos_token_id=[5, 7], pad_token_id=0, use_cache=True, torch_dtype="bfloat16")


def biases(*parts):
    return {f"bias of {part}": zeroed(f"{part}.bias") for part in parts}


def means_kept(*kinds):
    def change(norm):
        norm.forward = lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], norm.weight, norm.eps) + (
            0 if norm.bias is None else norm.bias)
    return on_modules(kinds, change)


def parts_in_turn(model):
    """Changes layers so that the feed-forward reads the stream after attention was added."""
    for layer in model.transformer.h if hasattr(model, "transformer") else model.model.layers:
        norm, attention = getattr(layer, "ln_1", None) or layer.input_layernorm, getattr(layer, "attn", None)

        def forward(x, layer=layer, norm=norm, attend=attention or layer.self_attn, **more):
            middle = x + attend(hidden_states=norm(x), **more)[0]
            return middle + layer.mlp(norm(middle))
        layer.forward = forward


def of_gpt2(c):
    return biases("c_attn", "attn.c_proj", "c_fc", "mlp.c_proj", "ln_1", "ln_2", "ln_f") | {
        "positions": zeroed("wpe.weight"), "mean of norms": means_kept("ln_1", "ln_2", "ln_f"),
        "activation": {"activation_function": "silu"}} | (
        {"scale of the layer": {"scale_attn_by_inverse_layer_idx": False}, "scale": {"scale_attn_weights": True}}
        if c.get("scale_attn_by_inverse_layer_idx") else {})


def of_gptj(c):
    return biases("fc_in", "fc_out", "lm_head", "ln_1", "ln_f") | {
        "rotary_dim": {"rotary_dim": 4}, "mean of norms": means_kept("ln_1", "ln_f"),
        "activation": {"activation_function": "silu"}, "parallel block": parts_in_turn}


def of_gpt_neox(c):
    named = ("dense_h_to_4h", "dense_4h_to_h", "layernorm", "final_layer_norm")
    return biases(*named, *(("query_key_value", "attention.dense") if c.get("attention_bias", True) else ())) | {
        "part that turns": {"rotary_pct": 1.0}, "base": {"rotary_emb_base": 100.0},
        "activation": {"hidden_act": "silu"},
        "parallel block": {"use_parallel_residual": not c["use_parallel_residual"]},
        "mean of norms": means_kept("layernorm", "layer_norm")}


def of_phi(c):
    return biases("q_proj", "k_proj", "v_proj", "dense", "fc1", "fc2", "lm_head", "layernorm") | {
        "part that turns": {"partial_rotary_factor": 1.0}, "rope_theta": {"rope_theta": 100.0},
        "activation": {"hidden_act": "silu"}, "mean of norms": means_kept("layernorm"),
        "parallel block": parts_in_turn}


def of_opt(c):
    parts = ("q_proj", "v_proj", "out_proj", "fc1", "fc2", "layer_norm")    # a bias of k_proj has no effect
    features = {"positions": zeroed("embed_positions.weight"), "offset of positions": positions_moved,
                "activation": {"activation_function": "silu"}}
    if c["enable_bias"]: features |= biases(*parts)
    if c["layer_norm_elementwise_affine"]: features["mean of norms"] = means_kept("layer_norm")
    if not c["do_layer_norm_before"]: features["norms after sums"] = {"do_layer_norm_before": True,
                                                                      "_remove_final_layer_norm": True}
    return features


def of_falcon(c):
    norms = ("ln_attn", "ln_mlp") if c["new_decoder_architecture"] else ("input_layernorm",)
    if not c["parallel_attn"]: norms += ("post_attention_layernorm",)
    parts = ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h") if c["bias"] else ()
    features = {"alibi": {"alibi": False}, "steps": slopes_unrounded} if c["alibi"] else {
        "rope_theta": {"rope_theta": 100.0}}
    return biases(*norms, *parts, "ln_f") | features | {"activation": {"activation": "relu"},
                                                        "mean of norms": means_kept(*norms, "ln_f")}


def slopes_scaled(module, scale):
    """Has the slopes of a module of transformers multiplied by a number; each model has a forward of its own."""
    def edit(model):
        own, build = model.forward, getattr(module, NAMES_OF_SLOPES[module])

        def forward(*args, **more):
            setattr(module, NAMES_OF_SLOPES[module], lambda *of, **how: scale * build(*of, **how))
            try: return own(*args, **more)
            finally: setattr(module, NAMES_OF_SLOPES[module], build)
        model.forward = forward
    return edit


def slopes_unrounded(model):
    """Falcon with BLOOM's slopes, which are not rounded."""
    own, build = model.forward, falcon.build_alibi_tensor

    def forward(*args, **more):
        falcon.build_alibi_tensor = bloom.build_alibi_tensor
        try: return own(*args, **more)
        finally: falcon.build_alibi_tensor = build
    model.forward = forward


def of_bloom(c):
    named = ("query_key_value", "self_attention.dense", "dense_h_to_4h", "dense_4h_to_h", "layernorm", "ln_f")
    return biases(*named) | {"norm of embeddings": passed_by("word_embeddings_layernorm"), "slopes": slopes_scaled(
        bloom, 0.5), "mean of norms": means_kept("layernorm", "ln_f"), "alibi": slopes_scaled(bloom, 0)}


def slopes_as_told(self, heads, length, device=None):
    """Gives transformers' function of the slopes the folder's number, as llama.cpp does; transformers 5.24 leaves it
    out, so that alibi_bias_max has no effect."""
    return mpt.build_mpt_alibi_tensor(heads, length, self.config.attn_config.alibi_bias_max, device)


mpt.MptModel.build_mpt_alibi_tensor = slopes_as_told


def of_mpt(c):
    usual = dict(clip_qkv=None, softmax_scale=None, alibi_bias_max=8)
    told = {key: {"attn_config": c["attn_config"] | {key: usual[key]}} for key in usual
            if c["attn_config"].get(key, usual[key]) != usual[key]}
    return told | {"slopes": slopes_scaled(mpt, 0.5), "alibi": slopes_scaled(mpt, 0), "mean of norms": means_kept(
        "norm_1", "norm_2", "norm_f")}


def positions_moved(model):
    with torch.no_grad(): model.model.decoder.embed_positions.weight[:-2] = (
        model.model.decoder.embed_positions.weight[2:].clone())


def fill_quiet(name, noise):
    """Keeps the values that all rows have in common small, and tied embeddings too; otherwise the text would repeat
    one id."""
    common = ("ln_", "norm", "lm_head", "proj.bias", "dense.bias", "fc_out", "fc2", "4h_to_h")
    if name.endswith("bias") and any(part in name for part in common): return 0.2 * noise
    if name.endswith(("c_attn.weight", "q_proj.weight", "k_proj.weight", "query_key_value.weight",
                      "Wqkv.weight")):
        return 3 * noise * noise.shape[-1 if "c_attn" not in name else 0] ** -0.5
    if ".ln_" in name and name.endswith("weight"): return 0.3 * noise + 1
    tables = ("wte.weight", "embed_tokens.weight", "embed_in.weight", "word_embeddings.weight")
    size = 0.8 if name.endswith(tables) else 0.0
    if name.endswith(("wpe.weight", "embed_positions.weight")): size = 2.5
    return size * noise * noise.shape[-1] ** -0.5 if size else None


def fill_early(name, noise):
    """As fill_quiet, but the outputs of the parts are also small compared with the normed stream."""
    for part, size in (("fc2.weight", 0.3), ("out_proj.weight", 0.8), ("embed_positions.weight", 0.7)):
        if name.endswith(part): return size * noise * noise.shape[-1] ** -0.5
    return fill_quiet(name, 2 * noise if name.endswith("embed_tokens.weight") else noise)


def kind(name, features, files=(), fill=fill_quiet):
    return Kind(f"{name}Config", f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM", features,
                fill=fill, files=files)


GPT2, GPTJ, PHI = kind("GPT2", of_gpt2), kind("GPTJ", of_gptj), kind("Phi", of_phi)
OPT, OPT_EARLY = kind("OPT", of_opt), kind("OPT", of_opt, fill=fill_early)
FALCON = kind("Falcon", of_falcon)
BLOOM, MPT = kind("Bloom", of_bloom), kind("Mpt", of_mpt)
PARTS_OF_MPT = ("norm_1", "norm_2", "attn.Wqkv", "attn.out_proj", "ffn.up_proj", "ffn.down_proj")
NAMES_OF_MPT = ["wte", "norm_f", *(f"blocks.{i}.{part}" for i in range(3) for part in PARTS_OF_MPT)]
MPT_BARE = kind("Mpt", of_mpt, files=[(f"transformer.{name}.weight", f"{name}.weight") for name in NAMES_OF_MPT])
NEOX = kind("GPTNeoX", of_gpt_neox, files=(("lm_head.weight", "embed_out.weight"),))

MODELS = {
    # A number of heads that is no power of two has slopes of two sequences.
    "bloom-odd": dict(seed=8729, gguf=True, kind=BLOOM, config=COMMON | dict(
        architectures=["BloomForCausalLM"], model_type="bloom", vocab_size=219, hidden_size=60, n_layer=3, n_head=5,
        layer_norm_epsilon=3e-5, seq_length=512, apply_residual_connection_post_layernorm=False,
        tie_word_embeddings=True)),
    "mpt-odd": dict(seed=8762, gguf=True, kind=MPT, config=COMMON | dict(
        architectures=["MPTForCausalLM"], model_type="mpt", vocab_size=221, d_model=56, n_layers=3, n_heads=7,
        max_seq_len=256, layer_norm_epsilon=1e-5, no_bias=True, expansion_ratio=4, attn_config=dict(
            alibi=True, alibi_bias_max=13, attn_type="multihead_attention", clip_qkv=1.3, softmax_scale=None),
        tie_word_embeddings=True)),
    # The names of a decoder that was saved without its head.
    "mpt-scaled": dict(seed=8912, kind=MPT_BARE, config=COMMON | dict(
        architectures=["MptForCausalLM"], model_type="mpt", vocab_size=217, d_model=48, n_layers=3, n_heads=4,
        max_seq_len=256, layer_norm_epsilon=3e-5, attn_config=dict(clip_qkv=None, softmax_scale=0.31),
        tie_word_embeddings=True)),
    # transformers' eager attention would add the slopes twice.
    "falcon-rw": dict(seed=8812, kind=FALCON, attention="sdpa", config=COMMON | dict(
        architectures=["FalconForCausalLM"], model_type="falcon", vocab_size=227, hidden_size=48, num_hidden_layers=3,
        num_attention_heads=12, alibi=True, new_decoder_architecture=False, multi_query=False, parallel_attn=False,
        bias=True, layer_norm_epsilon=1e-5, max_position_embeddings=512, tie_word_embeddings=False)),
    # Falcon 7B's form: one key head, one norm.
    "falcon-7b": dict(seed=8101, gguf=True, kind=FALCON, config=COMMON | dict(
        architectures=["FalconForCausalLM"], model_type="falcon", vocab_size=233, hidden_size=60, num_hidden_layers=3,
        num_attention_heads=5, num_kv_heads=1, alibi=False, new_decoder_architecture=False, multi_query=True,
        parallel_attn=True, bias=False, layer_norm_epsilon=1e-5, rope_theta=10000.0, max_position_embeddings=2048)),
    # Falcon 40B's form: several key heads, two norms.
    "falcon-40b": dict(seed=8215, gguf=True, kind=FALCON, config=COMMON | dict(
        architectures=["FalconForCausalLM"], model_type="falcon", vocab_size=231, hidden_size=64, num_hidden_layers=3,
        num_attention_heads=8, num_kv_heads=2, alibi=False, new_decoder_architecture=True, multi_query=True,
        parallel_attn=True, bias=False, layer_norm_epsilon=1e-5, rope_theta=10000.0, max_position_embeddings=2048)),
    "falcon-serial": dict(seed=8302, kind=FALCON, config=COMMON | dict(
        architectures=["FalconForCausalLM"], model_type="falcon", vocab_size=229, hidden_size=48, num_hidden_layers=3,
        num_attention_heads=4, alibi=False, new_decoder_architecture=False, multi_query=False, parallel_attn=False,
        bias=True, layer_norm_epsilon=3e-5, rope_theta=700.0, ffn_hidden_size=72, max_position_embeddings=512,
        tie_word_embeddings=False)),
    "gpt2-odd": dict(seed=7103, gguf=True, kind=GPT2, config=COMMON | dict(
        architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=211, n_positions=192, n_ctx=192, n_embd=48,
        n_layer=3, n_head=4, n_inner=None, activation_function="gelu_new", layer_norm_epsilon=1e-5,
        tie_word_embeddings=True)),
    # Scores are scaled only by the layer's number, and heads have an odd size.
    "gpt2-scaled": dict(seed=7201, kind=GPT2, config=COMMON | dict(
        architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=213, n_positions=170, n_embd=45, n_layer=3,
        n_head=3, n_inner=52, activation_function="relu", layer_norm_epsilon=3e-5, scale_attn_weights=False,
        scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False)),
    "gptj-odd": dict(seed=7302, kind=GPTJ, config=COMMON | dict(
        architectures=["GPTJForCausalLM"], model_type="gptj", vocab_size=215, n_positions=192, n_embd=56, n_layer=3,
        n_head=4, n_inner=72, rotary_dim=6, activation_function="gelu_new", layer_norm_epsilon=1e-5,
        tie_word_embeddings=False)),
    "gpt-neox-odd": dict(seed=7402, gguf=True, kind=NEOX, config=COMMON | dict(
        architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", vocab_size=217, hidden_size=60,
        intermediate_size=76, num_hidden_layers=3, num_attention_heads=3, max_position_embeddings=256, rotary_pct=0.4,
        rotary_emb_base=10000, hidden_act="gelu", layer_norm_eps=1e-5, use_parallel_residual=True,
        tie_word_embeddings=False)),
    "gpt-neox-serial": dict(seed=7505, kind=NEOX, config=COMMON | dict(
        architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", vocab_size=219, hidden_size=48,
        intermediate_size=56, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=256, rotary_pct=0.5,
        rotary_emb_base=700, hidden_act="gelu_new", layer_norm_eps=3e-5, use_parallel_residual=False,
        attention_bias=False, tie_word_embeddings=True)),
    "opt-odd": dict(seed=7702, kind=OPT, config=COMMON | dict(
        architectures=["OPTForCausalLM"], model_type="opt", vocab_size=229, hidden_size=48, ffn_dim=68,
        num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=180, word_embed_proj_dim=48,
        do_layer_norm_before=True, _remove_final_layer_norm=False, enable_bias=True,
        layer_norm_elementwise_affine=True, activation_function="relu", tie_word_embeddings=True)),
    # OPT 350M's form: norms after the sums, embeddings narrower than the stream, no final norm.
    "opt-350m": dict(seed=7810, kind=OPT_EARLY, config=COMMON | dict(
        architectures=["OPTForCausalLM"], model_type="opt", vocab_size=227, hidden_size=60, ffn_dim=52,
        num_hidden_layers=3, num_attention_heads=3, max_position_embeddings=170, word_embed_proj_dim=28,
        do_layer_norm_before=False, enable_bias=True, layer_norm_elementwise_affine=True, activation_function="relu",
        tie_word_embeddings=True)),
    # Galactica's form: no biases, norms without weights.
    "opt-plain": dict(seed=7901, kind=OPT, config=COMMON | dict(
        architectures=["OPTForCausalLM"], model_type="opt", vocab_size=225, hidden_size=56, ffn_dim=64,
        num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=170, word_embed_proj_dim=56,
        do_layer_norm_before=True, enable_bias=False, layer_norm_elementwise_affine=False, activation_function="gelu",
        tie_word_embeddings=True)),
    # In the GGUF file, the feed-forward must be four times as wide as the stream.
    "phi2-odd": dict(seed=7602, gguf=True, kind=PHI, config=COMMON | dict(
        architectures=["PhiForCausalLM"], model_type="phi", vocab_size=223, hidden_size=48, intermediate_size=192,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=256,
        rope_theta=10000.0, partial_rotary_factor=0.5, hidden_act="gelu_new", layer_norm_eps=1e-5, qk_layernorm=False,
        tie_word_embeddings=False)),
}
