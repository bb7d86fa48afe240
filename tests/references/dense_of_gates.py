"""Decoders whose heads have gates from a matrix of their own: see dense.py. LFM3 and the text of Muse-Glimmer."""
import torch
import transformers
from dense import Kind, passed_by, zeroed
from dense_of_lfm2 import evened

SLIDING, FULL, CONV = "sliding_attention", "full_attention", "conv"
COMMON = dict(max_position_embeddings=1024, bos_token_id=3, eos_token_id=[5, 7], pad_token_id=0, use_cache=True,
              torch_dtype="bfloat16")
TOKENS = {key: COMMON[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}


class MuseGlimmerText(torch.nn.Module):
    """Muse-Glimmer without its tower; transformers has no class for that."""
    def __init__(self, config):
        super().__init__()
        self.config, self.model = config, transformers.MuseGlimmerTextModel(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def get_input_embeddings(self):
        return self.model.embed_tokens

    def forward(self, ids, use_cache=False):
        rows = self.lm_head(self.model(input_ids=ids, use_cache=use_cache).last_hidden_state)
        cap = self.config.final_logit_softcapping
        rows = torch.tanh(rows * self.config.output_multiplier / cap) * cap
        return transformers.modeling_outputs.CausalLMOutputWithPast(logits=rows)


def gates_open(part):
    """Returns an edit of a model that makes its gates 1 for every row."""
    def edit(model):
        for name, module in model.named_modules():
            if name.endswith(part): module.forward = lambda x, module=module: torch.full(
                (*x.shape[:-1], module.weight.shape[0]), 40.0)
    return edit


def of_lfm3(c):
    full, sliding = (c["rope_parameters"][kind] for kind in (FULL, SLIDING))
    theta = lambda kind, of: {"rope_parameters": c["rope_parameters"] | {kind: of | {"rope_theta": 50.0}}}
    features = {"window": {"sliding_window": 64}, "base of sliding layers": theta(SLIDING, sliding),
                "base of full layers": theta(FULL, full), "norm of q": passed_by("q_norm"),
                "norm of k": passed_by("k_norm"),
                "part that turns": {"rope_parameters": c["rope_parameters"] | {FULL: full | {
                    "partial_rotary_factor": 1.0}}}, "last norm": evened("embedding_norm")}
    if c["use_attention_gate"]: features["gates"] = gates_open("g_proj")
    if c["use_sandwich_norm"]: features |= {name: passed_by(name) for name in ("post_operator_norm", "post_ffn_norm")}
    if c["attention_bias"]: features |= {f"bias of {part}": zeroed(f"{part}_proj.bias") for part in "qvo"}
    return features


def of_muse(c):
    bases = [0 if base else 7.0 for base in c["layer_rope_theta"]]
    return {"window": {"sliding_window": 64}, "base": {"rope_parameters": c["rope_parameters"] | {"rope_theta": 50.0}},
            "layers that turn": {"layer_rope_theta": bases}, "gates": gates_open("self_attn.gate_proj"),
            "factor of queries": {"qk_scale_factor": 1.0}, "factor of logits": {"output_multiplier": 1.0},
            "soft cap": {"final_logit_softcapping": 40.0}, "norm of heads": passed_by("qk_norm"),
            "eps behind the parts": {"post_norm_eps": 1e-5}, "norm of embeddings": passed_by("embed_norm"),
            **{name: passed_by(name) for name in ("post_attention_layernorm", "post_feedforward_layernorm")}}


def fill_muse(name, noise):
    """Stores the layers' norms less 1, as the model does. The parts' outputs are small, so that the eps of the norms
    after the parts has an effect."""
    if name.endswith("layernorm.weight"): return 0.3 * noise
    if name.endswith(("o_proj.weight", "down_proj.weight")): return 2e-4 * noise
    return 0.05 * noise if name.endswith("embed_tokens.weight") else None


def muse_names(layers):
    """Returns pairs of tensor names: the name that dense.py gives, and the name that transformers saves."""
    inside = ["embed_tokens", "norm"] + [f"layers.{i}.{part}" for i in range(layers) for part in (
        *(f"self_attn.{part}_proj" for part in ("q", "k", "v", "o", "gate")), *(f"mlp.{part}_proj" for part in (
            "gate", "up", "down")), "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
        "post_feedforward_layernorm")]
    return tuple((f"language_model.model.{name}.weight", f"model.language_model.{name}.weight") for name in inside) + (
        ("language_model.lm_head.weight", "lm_head.weight"),)


LFM3 = Kind("Lfm3Config", "Lfm3ForCausalLM", of_lfm3, names=((".g_proj.", ".gate_proj."),))
MUSE = Kind("MuseGlimmerTextConfig", MuseGlimmerText, of_muse, fill=fill_muse, files=muse_names(5))

MODELS = {
    "lfm3-odd": dict(seed=9103, kind=LFM3, config=COMMON | dict(
        architectures=["Lfm3ForCausalLM"], model_type="lfm3", norm_eps=3e-5, vocab_size=231, hidden_size=60,
        intermediate_size=52, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
        conv_L_cache=5, conv_bias=False, sliding_window=7, use_sandwich_norm=True, use_attention_gate=True,
        attention_bias=True, layer_types=[CONV, SLIDING, FULL, CONV, SLIDING], rope_parameters={
            SLIDING: dict(rope_type="default", rope_theta=300.0),
            FULL: dict(rope_type="proportional", rope_theta=900.0, partial_rotary_factor=0.5)},
        tie_word_embeddings=True)),
    # There are no gates and no norms after the parts. The kinds of layers follow the published pattern.
    "lfm3-plain": dict(seed=9203, kind=LFM3, config=COMMON | dict(
        architectures=["Lfm3ForCausalLM"], model_type="lfm3", norm_eps=1e-5, vocab_size=227, hidden_size=56,
        intermediate_size=68, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4, head_dim=14,
        conv_L_cache=3, sliding_window=9, use_sandwich_norm=False, use_attention_gate=False, attention_bias=False,
        rope_parameters={SLIDING: dict(rope_type="default", rope_theta=400.0),
                         FULL: dict(rope_type="proportional", rope_theta=700.0, partial_rotary_factor=0.5)},
        tie_word_embeddings=False)),
    "muse-glimmer-odd": dict(seed=9314, kind=MUSE, cached=False, config=TOKENS | dict(
        architectures=["MuseGlimmerForConditionalGeneration"], model_type="muse_glimmer", image_token_id=220,
        video_token_id=221, text_config=COMMON | dict(
            model_type="muse_glimmer_text", rms_norm_eps=1e-5, post_norm_eps=1e-7, vocab_size=233, hidden_size=60,
            intermediate_size=44, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, head_dim=12,
            sliding_window=7, layer_types=[FULL, SLIDING, SLIDING, FULL, SLIDING],
            layer_rope_theta=[0, 500.0, 500.0, 500.0, 0], rope_parameters=dict(rope_type="default", rope_theta=500.0),
            final_logit_softcapping=9.0, qk_scale_factor=2.1, output_multiplier=0.7, attention_bias=False,
            tie_word_embeddings=False),
        vision_config=dict(model_type="muse_glimmer_vision", patch_size=2, pos_emb_height=4, pos_emb_width=4,
                           num_attention_heads=2, num_hidden_layers=1, hidden_size=16, intermediate_size=12,
                           patch_temporal=2, merge_size=2, max_position_embeddings=16),
        out_hidden_size=64, projector_hidden_size=12, tie_word_embeddings=False)),
}
# Readers of GGUF assume this eps behind the parts, and that full layers are those without rotary positions.
ODD = MODELS["muse-glimmer-odd"]
MODELS["muse-glimmer-plain"] = ODD | dict(seed=9411, gguf=True, config=ODD["config"] | dict(
    text_config=ODD["config"]["text_config"] | dict(
        post_norm_eps=1e-8, layer_types=[SLIDING, SLIDING, FULL, SLIDING, FULL],
        layer_rope_theta=[500.0, 500.0, 0, 500.0, 0], final_logit_softcapping=7.0, num_key_value_heads=3)))
