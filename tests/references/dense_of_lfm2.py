"""LFM2, dense: see dense.py. It has layers of attention, and layers of short convolutions between two gates."""
import torch
from dense import Kind, passed_by

LFM2 = dict(architectures=["Lfm2ForCausalLM"], model_type="lfm2", max_position_embeddings=1024, bos_token_id=3,
            eos_token_id=[5, 7], pad_token_id=0, use_cache=True, torch_dtype="bfloat16", norm_eps=1e-5,
            conv_bias=False)


def on_convolutions(change):
    def edit(model):
        with torch.no_grad():
            for layer in model.model.layers:
                if not layer.is_attention_layer: change(layer.conv)
    return edit


def of_part(part):
    """Sets one third of a projection's output to 1 for every row, so that it multiplies nothing."""
    def change(conv):
        inner = conv.in_proj.forward

        def forward(x):
            parts = list(inner(x).chunk(3, dim=-1))
            parts[part] = torch.ones_like(parts[part])
            return torch.cat(parts, dim=-1)
        conv.in_proj.forward = forward
    return on_convolutions(change)


def without_tap(tap):
    return on_convolutions(lambda conv: conv.conv.weight[:, :, tap].zero_())


def evened(kind):
    """Sets all weights of these norms to 1."""
    def edit(model):
        with torch.no_grad():
            for name, tensor in model.named_parameters():
                if kind in name: tensor.fill_(1.0)
    return edit


def of_lfm2(c):
    features = {f"tap {tap}": without_tap(tap) for tap in range(c["conv_L_cache"])}
    return features | {
        "gate before": of_part(0), "gate behind": of_part(1), "order of taps": on_convolutions(
            lambda conv: conv.conv.weight.copy_(conv.conv.weight.flip(2).clone())),
        "norm of q": passed_by("q_layernorm"), "norm of k": passed_by("k_layernorm"),
        "rope_theta": {"rope_theta": 1e6}, "norm before a mixer": evened("operator_norm"),
        "norm before the feed-forward": evened("ffn_norm"),
        "last norm": evened("embedding_norm")}


KIND = Kind("Lfm2Config", "Lfm2ForCausalLM", of_lfm2)

MODELS = {
    # The form of the first published files: they list the numbers of the layers with attention, and the feed-forward's
    # width has to be adjusted.
    "lfm2-old": dict(seed=4201, kind=KIND, config=LFM2 | dict(
        vocab_size=331, hidden_size=60, block_ff_dim=100, block_auto_adjust_ff_dim=True, block_ffn_dim_multiplier=1.25,
        block_multiple_of=8, num_hidden_layers=5, num_attention_heads=6, num_key_value_heads=2, rope_theta=400.0,
        conv_L_cache=3, full_attn_idxs=[1, 4], tie_embedding=True)),
    # The convolution is longer, and the last layer is a convolution.
    "lfm2-long": dict(seed=4302, gguf=True, kind=KIND, config=LFM2 | dict(
        vocab_size=335, hidden_size=64, intermediate_size=72, block_auto_adjust_ff_dim=False,
        block_ffn_dim_multiplier=1.0, block_multiple_of=256, num_hidden_layers=5, num_attention_heads=4,
        num_key_value_heads=2, rope_theta=900.0, conv_L_cache=5, tie_word_embeddings=False,
        layer_types=["conv", "full_attention", "conv", "full_attention", "conv"])),
}
