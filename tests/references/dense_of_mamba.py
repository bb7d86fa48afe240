"""Decoders with layers of Mamba-2 (see dense.py): Mamba-2 itself, Nemotron-H, Granite 4's hybrids, Bamba and
Falcon-H1, by transformers 5.24. Heads, groups, states and taps differ from those of published models. In some heads
the time steps are so small that the lower bound on them matters, and in others so large that a state fades within a
few positions."""
import torch

from dense import Kind, zeroed
from dense_of_norms import family


@torch.no_grad()
def doubled(*parts):
    def edit(model):
        for name, tensor in model.named_parameters():
            if name.endswith(parts): tensor.mul_(2)
    return edit


def taps_kept(n):
    """Leaves out the n oldest taps of the convolution."""
    def edit(model):
        for name, tensor in model.named_parameters():
            if name.endswith("conv1d.weight"): tensor[..., :n].zero_()
    return edit


def fill_state(name, noise):
    """Gives slopes from about -0.2 to -5, time steps of about 0.1 to 1, and one head with steps below the lower
    bound."""
    if name.endswith("A_log"): return 0.8 * noise
    if name.endswith(".D"): return 0.5 * noise + 1
    if name.endswith("dt_bias"):
        values = noise - 1
        values[-1] = -8
        return values
    if name.endswith("conv1d.weight"): return 0.8 * noise
    return None


def fill_experts(name, noise):
    """As fill_state. The corrections of the router's scores are so large that they change the choice of experts."""
    if name.endswith("e_score_correction_bias"): return 0.2 * noise
    return fill_state(name, noise)


def fill_granite(name, noise):
    """Chooses sizes so that, with the configuration's multipliers, scores and logits have a usual size."""
    if name.endswith(("embed_tokens.weight", "lm_head.weight")): return 0.7 * noise * noise.shape[-1] ** -0.5
    if name.endswith(("q_proj.weight", "k_proj.weight")): return 2.5 * noise * noise.shape[-1] ** -0.5
    return fill_state(name, noise)


def fill_falcon(name, noise):
    if name.endswith("embed_tokens.weight"): return 0.5 * noise
    return fill_state(name, noise)


STATE = {"skip": zeroed(".D"), "bias of steps": zeroed("dt_bias"), "slopes": zeroed("A_log"),
         "bias of the convolution": zeroed("conv1d.bias"), "oldest tap": taps_kept(1)}


def of_mamba2(c):
    return STATE | {"biases": zeroed("_proj.bias"), "limits of steps": {"time_step_limit": [0.0, 0.05]}} if c[
        "use_bias"] else STATE


def of_nemotron_h(c):
    kinds = c.get("layers_block_type") or c["hybrid_override_pattern"]
    feeds = any(kind in ("-", "mlp") for kind in kinds)
    features = STATE | {"scale of scores": scores_doubled,
                        "square": {"mlp_hidden_act": "relu"}}
    if c["time_step_min"] > 0.01: features |= {"least step": {"time_step_min": 1e-6}}
    if c.get("mlp_bias") and feeds: features |= {"bias of up": zeroed("up_proj.bias")}
    if c.get("mlp_bias"): features |= {"bias of down": zeroed("down_proj.bias")}
    if c.get("use_bias"): features |= {"bias of in": zeroed("in_proj.bias"), "bias of out": zeroed("out_proj.bias")}
    if "E" not in kinds and "moe" not in kinds: return features
    features |= {"correction": corrections_zeroed, "shared": zeroed("shared_experts.down_proj.weight"),
                 "scaling": {"routed_scaling_factor": 1.0}, "norm of weights": {"norm_topk_prob": not c.get(
                     "norm_topk_prob", True)}}
    return features | ({"groups": {"n_group": 1, "topk_group": 1}} if c.get("n_group", 1) > 1 else {})


def corrections_zeroed(model):
    for name, tensor in model.named_buffers():
        if name.endswith("e_score_correction_bias"): tensor.zero_()


def scores_doubled(model):
    for name, module in model.named_modules():
        if hasattr(module, "scaling"): module.scaling *= 2


MULTIPLIERS = ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier")


def of_granite_hybrid(c):
    features = STATE | {key: {key: 1.0} for key in MULTIPLIERS}
    if c["position_embedding_type"] == "rope": features |= {"positions": {"position_embedding_type": None}}
    if c["mamba_proj_bias"]: features |= {"bias of in": zeroed("in_proj.bias"), "bias of out": zeroed("out_proj.bias")}
    if c["num_local_experts"]: features |= {"shared": zeroed("shared_mlp.output_linear.weight")}
    return features


def of_bamba(c):
    return STATE | {"bias of q": zeroed("q_proj.bias"), "bias of up": zeroed("up_proj.bias"),
                    "rope_theta": {"rope_theta": 1e2, "rope_parameters": None}, "scale of scores": scores_doubled}


def of_falcon_h1(c):
    features = {key: {key: 1.0} for key in c if key.endswith("multiplier") and "head" not in key}
    features |= {"lm_head_multiplier": {"lm_head_multiplier": 1.0}, "gate": {"mlp_multipliers": [
        1.0, c["mlp_multipliers"][1]]}, "down": {"mlp_multipliers": [c["mlp_multipliers"][0], 1.0]}}
    for i, part in enumerate(("z", "x", "B", "C", "dt")):
        changed = list(c["ssm_multipliers"])
        changed[i] = 1.0
        features["multiplier of " + part] = {"ssm_multipliers": changed}
    if c["mamba_rms_norm"]: features |= {"order of norm": {"mamba_norm_before_gate": not c["mamba_norm_before_gate"]}}
    return STATE | features | {"rope_theta": {"rope_theta": 1e2, "rope_parameters": None}}


GRANITE_HYBRID = Kind("GraniteMoeHybridConfig", "GraniteMoeHybridForCausalLM", of_granite_hybrid, fill=fill_granite,
                      names=(("moe.experts.gate_up_proj", "moe.input_linear.weight"),
                             ("moe.experts.down_proj", "moe.output_linear.weight"),
                             ("moe.router.weight", "moe.router.layer.weight")))
BAMBA = Kind("BambaConfig", "BambaForCausalLM", of_bamba, fill=fill_state)
FALCON_H1 = Kind("FalconH1Config", "FalconH1ForCausalLM", of_falcon_h1, fill=fill_falcon)
NEMOTRON_H = Kind("NemotronHConfig", "NemotronHForCausalLM", of_nemotron_h, fill=fill_experts)
MAMBA2 = Kind("Mamba2Config", "Mamba2ForCausalLM", of_mamba2, fill=fill_state)

MODELS = {
    "mamba2-odd": dict(seed=7102, gguf=True, kind=MAMBA2, config=family(
        "Mamba2ForCausalLM", "mamba2", vocab_size=240, hidden_size=48, num_hidden_layers=4, num_heads=6, head_dim=16,
        state_size=20, n_groups=3, conv_kernel=4, expand=2, layer_norm_epsilon=1e-5, use_bias=False,
        use_conv_bias=True, hidden_act="silu", tie_word_embeddings=False)),
    "mamba2-bias": dict(seed=7103, kind=MAMBA2, config=family(
        "Mamba2ForCausalLM", "mamba2", vocab_size=223, hidden_size=44, num_hidden_layers=3, num_heads=4, head_dim=33,
        state_size=18, n_groups=2, conv_kernel=3, expand=3, layer_norm_epsilon=1e-5, use_bias=True,
        use_conv_bias=True, hidden_act="silu", chunk_size=16, tie_word_embeddings=True)),
    # transformers applies the lower bound on time steps only without a cache.
    "nemotron-h-odd": dict(seed=7202, gguf=True, cached=False, kind=NEMOTRON_H, config=family(
        "NemotronHForCausalLM", "nemotron_h", vocab_size=232, hidden_size=44, intermediate_size=52,
        hybrid_override_pattern="M-M*-MM-", num_hidden_layers=8, num_attention_heads=6, num_key_value_heads=2,
        head_dim=14, ssm_state_size=20, mamba_num_heads=6, mamba_head_dim=32, n_groups=3, conv_kernel=4, expand=2,
        use_conv_bias=True, use_bias=False, mamba_proj_bias=False, attention_bias=False, mlp_bias=False,
        mlp_hidden_act="relu2", mamba_hidden_act="silu", layer_norm_epsilon=1e-5, time_step_min=0.001,
        time_step_max=0.1, chunk_size=16,
        tie_word_embeddings=False)),
    "nemotron-3-odd": dict(seed=7302, kind=NEMOTRON_H, cached=False, config=family(
        "NemotronHForCausalLM", "nemotron_h", vocab_size=229, hidden_size=40, intermediate_size=44,
        layers_block_type=["mamba", "moe", "mamba", "attention", "moe", "mlp"], num_attention_heads=4,
        num_key_value_heads=4, head_dim=10, ssm_state_size=17, mamba_num_heads=4, mamba_head_dim=22, n_groups=2,
        conv_kernel=3, use_conv_bias=True, use_bias=True, attention_bias=False, mlp_bias=True, mlp_hidden_act="relu2",
        mamba_hidden_act="silu", layer_norm_epsilon=1e-5, time_step_min=0.3, n_routed_experts=6, n_shared_experts=1,
        num_experts_per_tok=2, moe_intermediate_size=24, moe_shared_expert_intermediate_size=36, moe_latent_size=26,
        n_group=3, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.2, chunk_size=16,
        tie_word_embeddings=False)),
    "granite-h-odd": dict(seed=7405, gguf=True, kind=GRANITE_HYBRID, config=family(
        "GraniteMoeHybridForCausalLM", "granitemoehybrid", rms_norm_eps=1e-5, vocab_size=224, hidden_size=48,
        intermediate_size=28, shared_intermediate_size=44, num_hidden_layers=4, num_attention_heads=6,
        num_key_value_heads=2, layer_types=["mamba", "attention", "mamba", "mamba"], num_local_experts=5,
        num_experts_per_tok=2, position_embedding_type="nope", attention_bias=False, mamba_n_heads=6,
        mamba_d_head=16, mamba_n_groups=1, mamba_d_state=20, mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True,
        mamba_proj_bias=False, embedding_multiplier=6.0, attention_multiplier=0.21, residual_multiplier=0.6,
        logits_scaling=0.4, rope_theta=10000.0, tie_word_embeddings=True)),
    "granite-h-rope": dict(seed=7401, kind=GRANITE_HYBRID, config=family(
        "GraniteMoeHybridForCausalLM", "granitemoehybrid", rms_norm_eps=1e-5, vocab_size=217, hidden_size=40,
        intermediate_size=28, shared_intermediate_size=52, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, layer_types=["attention", "mamba", "attention", "mamba"], num_local_experts=0,
        num_experts_per_tok=0, position_embedding_type="rope", attention_bias=True, mamba_n_heads=6,
        mamba_d_head="auto", mamba_n_groups=3, mamba_d_state=18, mamba_d_conv=3, mamba_expand=3, mamba_conv_bias=True,
        mamba_proj_bias=True, embedding_multiplier=6.0, attention_multiplier=0.21, residual_multiplier=0.6,
        logits_scaling=0.4, rope_theta=500.0, tie_word_embeddings=False)),
    "bamba-odd": dict(seed=7501, kind=BAMBA, config=family(
        "BambaForCausalLM", "bamba", rms_norm_eps=1e-5, vocab_size=221, hidden_size=48, intermediate_size=60,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, attn_layer_indices=[1, 3],
        attention_bias=True, mlp_bias=True, mamba_n_heads=4, mamba_d_head="auto", mamba_n_groups=2, mamba_d_state=22,
        mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True, mamba_proj_bias=False, attn_rotary_emb=6,
        rope_theta=800.0, tie_word_embeddings=False)),
    # The multipliers are such that weights in BF16 can include them without a loss.
    "falcon-h1-odd": dict(seed=7603, gguf=True, kind=FALCON_H1, config=family(
        "FalconH1ForCausalLM", "falcon_h1", rms_norm_eps=1e-5, vocab_size=224, hidden_size=48, intermediate_size=60,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=14, attention_bias=False,
        mlp_bias=False, projectors_bias=False, mamba_d_ssm=80, mamba_n_heads=5, mamba_d_head=16, mamba_n_groups=1,
        mamba_d_state=20, mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True, mamba_proj_bias=False,
        mamba_rms_norm=False, mamba_norm_before_gate=False, rope_theta=700.0, embedding_multiplier=32.0,
        lm_head_multiplier=0.5, key_multiplier=2.0, attention_in_multiplier=2.0, attention_out_multiplier=4.0,
        ssm_in_multiplier=2.0, ssm_out_multiplier=0.5, mlp_multipliers=[0.5, 2.0],
        ssm_multipliers=[2.0, 0.5, 4.0, 0.25, 0.5], tie_word_embeddings=False)),
    "falcon-h1-norm": dict(seed=7605, kind=FALCON_H1, config=family(
        "FalconH1ForCausalLM", "falcon_h1", rms_norm_eps=1e-5, vocab_size=219, hidden_size=44, intermediate_size=52,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, head_dim=12, attention_bias=False,
        mlp_bias=False, projectors_bias=False, mamba_d_ssm=None, mamba_n_heads=4, mamba_d_head="auto",
        mamba_n_groups=2, mamba_d_state=18, mamba_d_conv=3, mamba_expand=2, mamba_conv_bias=True,
        mamba_proj_bias=False, mamba_rms_norm=True, mamba_norm_before_gate=True, rope_theta=700.0,
        embedding_multiplier=2.5, lm_head_multiplier=0.6, key_multiplier=0.7, attention_in_multiplier=0.8,
        attention_out_multiplier=1.4, ssm_in_multiplier=1.3, ssm_out_multiplier=0.7, mlp_multipliers=[0.8, 1.3],
        ssm_multipliers=[1.4, 0.8, 1.5, 0.7, 0.6], tie_word_embeddings=False)),
}
