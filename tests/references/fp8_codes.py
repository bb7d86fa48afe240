"""Converts matrices to FP8 codes with a scale for each block of 128 rows by 128 columns, the published form, and
back."""
import torch
import torch.nn.functional as F

BLOCK = 128
CONFIG = dict(quantization_config=dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8",
                                       weight_block_size=[BLOCK, BLOCK]))


def spread(scales, shape):
    """Returns the scale of each weight."""
    return scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:shape[0], :shape[1]]


def to_codes(state, chosen):
    """Replaces each tensor whose name `chosen` accepts by two: codes and scales."""
    out = {}
    for name, tensor in state.items():
        out[name] = tensor
        if not chosen(name): continue
        rows, cols = ((n + BLOCK - 1) // BLOCK * BLOCK - n for n in tensor.shape)
        blocks = F.pad(tensor.float(), (0, cols, 0, rows)).unflatten(0, (-1, BLOCK)).unflatten(2, (-1, BLOCK))
        scales = blocks.abs().amax((1, 3)) / 448
        out[name] = (tensor.float() / spread(scales, tensor.shape)).clamp(-448, 448).to(torch.float8_e4m3fn)
        out[name + "_scale_inv"] = scales
    return out


def from_codes(state):
    scales = {k.removesuffix("_scale_inv"): v for k, v in state.items() if k.endswith("_scale_inv")}
    plain = {k: v.float() for k, v in state.items() if not k.endswith("_scale_inv")}
    return plain | {k: plain[k] * spread(v, plain[k].shape) for k, v in scales.items()}
