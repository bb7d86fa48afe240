"""DFlash's drafter as a network, and the form in which z-lab publishes it.

A block begins at an anchor, a position whose token is known but which the target has not run yet. The block's rows are
that token, and then masks. Row j predicts the token j positions after the anchor. All rows attend to each other, and
to a row of context for each position before the anchor. A context row is made of the target's taps at its position.
Embeddings and the head are the target's, and are not trained.
"""
import json
import math

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

from drafter import Norm


class Layer(nn.Module):
    """A layer of Qwen3 under its published names."""

    def __init__(self, sizes):
        super().__init__()
        hidden, dim, eps = sizes["hidden_size"], sizes["head_dim"], sizes["rms_norm_eps"]
        heads, shared = sizes["num_attention_heads"], sizes["num_key_value_heads"]
        self.heads, self.shared, self.dim = heads, shared, dim
        self.input_layernorm, self.post_attention_layernorm = Norm(hidden, eps), Norm(hidden, eps)
        self.self_attn, self.mlp = nn.Module(), nn.Module()
        self.self_attn.q_proj = nn.Linear(hidden, heads * dim, bias=False)
        self.self_attn.k_proj = nn.Linear(hidden, shared * dim, bias=False)
        self.self_attn.v_proj = nn.Linear(hidden, shared * dim, bias=False)
        self.self_attn.o_proj = nn.Linear(heads * dim, hidden, bias=False)
        self.self_attn.q_norm, self.self_attn.k_norm = Norm(dim, eps), Norm(dim, eps)
        self.mlp.gate_proj = nn.Linear(hidden, sizes["intermediate_size"], bias=False)
        self.mlp.up_proj = nn.Linear(hidden, sizes["intermediate_size"], bias=False)
        self.mlp.down_proj = nn.Linear(sizes["intermediate_size"], hidden, bias=False)

    def forward(self, x, context, anchors, turn):
        """Runs blocks through the layer. x: [blocks, rows, hidden]; context: [positions, hidden]; anchors: [blocks];
        turn(x, positions) applies rotary positions."""
        blocks, rows, _ = x.shape
        part, group = self.self_attn, self.heads // self.shared
        normed = self.input_layernorm(x)
        places, earlier = anchors[:, None] + torch.arange(rows), torch.arange(len(context))
        q = turn(part.q_norm(part.q_proj(normed).view(blocks, rows, self.heads, self.dim)), places)
        k = turn(part.k_norm(part.k_proj(normed).view(blocks, rows, self.shared, self.dim)), places)
        v = part.v_proj(normed).view(blocks, rows, self.shared, self.dim)
        keys = turn(part.k_norm(part.k_proj(context).view(-1, self.shared, self.dim)), earlier)
        values = part.v_proj(context).view(-1, self.shared, self.dim)
        q = q.view(blocks, rows, self.shared, group, self.dim) / math.sqrt(self.dim)
        far = torch.einsum("nbsgd,tsd->nsgbt", q, keys)
        far = far.masked_fill((earlier[None, :] >= anchors[:, None])[:, None, None, None, :], -torch.inf)
        weights = torch.cat([far, torch.einsum("nbsgd,ncsd->nsgbc", q, k)], -1).softmax(-1)
        far, near = weights.split([len(context), rows], -1)
        mixed = torch.einsum("nsgbt,tsd->nbsgd", far, values) + torch.einsum("nsgbc,ncsd->nbsgd", near, v)
        x = x + part.o_proj(mixed.reshape(blocks, rows, -1))
        normed = self.post_attention_layernorm(x)
        return x + self.mlp.down_proj(functional.silu(self.mlp.gate_proj(normed)) * self.mlp.up_proj(normed))


def least_squares(batches):
    """Returns the weights that map inputs to wanted rows best (ridge regression), and the mean of the inputs'
    products."""
    squares, products, count = 0.0, 0.0, 0
    for inputs, wanted in batches:
        squares, products, count = squares + inputs.T @ inputs, products + inputs.T @ wanted, count + len(inputs)
    diagonal = squares.diagonal()
    ridge = torch.diag(0.01 * diagonal + 1e-6 * diagonal.mean())
    return torch.linalg.solve(squares + ridge, products).T, squares / count


class BlockDrafter(nn.Module):
    """The whole network. sizes: the keys of config.json that describe the layers."""

    def __init__(self, sizes, taps, block, mask):
        super().__init__()
        hidden, dim, eps = sizes["hidden_size"], sizes["head_dim"], sizes["rms_norm_eps"]
        self.sizes, self.taps, self.block, self.mask = sizes, taps, block, mask
        self.fc = nn.Linear(taps * hidden, hidden, bias=False)
        self.hidden_norm, self.norm = Norm(hidden, eps), Norm(hidden, eps)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes["num_hidden_layers"]))
        frequencies = sizes["rope_theta"] ** (-torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("tap_sizes", torch.ones(taps * hidden))  # few features are much larger than all others
        self.register_buffer("frequencies", frequencies, persistent=False)

    def begin(self, target):
        """Sets the initial weights. The norm is the target's final one. If the widths agree, the feed-forward is that
        of the target's last layer, with an output of 0 at first. Attention has a small output."""
        with torch.no_grad():
            self.norm.weight.copy_(target.norm)
            for layer in self.layers:
                for name, weight in target.ffn.items():
                    own = layer.get_submodule(name).weight
                    if weight is not None and weight.shape == own.shape:
                        own.copy_(weight)
                layer.mlp.down_proj.weight.zero_()
                layer.self_attn.o_proj.weight.mul_(0.1)

    def fit(self, read, mask):
        """Fits the linear part in one step. read() yields (taps of positions, normed embeddings of the tokens after
        them, the target's rows there). fc, and then the values of the first layer, are fitted to those rows by least
        squares. Half of that layer's heads begin by attending to the last context row, and half to the anchor."""
        with torch.no_grad():
            hidden = self.sizes["hidden_size"]
            constant = functional.normalize(torch.randn(hidden), dim=0)  # marks all context rows
            weights, squares = least_squares((taps, torch.cat([wanted, torch.ones(len(taps), 1)], -1))
                                             for taps, _, wanted in read())
            self.tap_sizes.copy_(squares.diagonal().sqrt().clamp_min(1e-6))
            wanted = weights[:-1] - torch.outer(constant, constant @ weights[:-1])
            self.fc.weight.copy_((wanted + 0.3 * hidden ** 0.5 * torch.outer(constant, weights[-1])) * self.tap_sizes)
            weights, squares = least_squares((torch.cat([self.context(taps), embeddings], -1), wanted - mask)
                                             for taps, embeddings, wanted in read())
            shown = torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 1.0]])
            kinds = functional.rms_norm(mask, mask.shape, None, 1e-12)
            (near, far, masks), _ = least_squares(
                (torch.cat([self.context(taps), embeddings, kinds.expand(len(taps), -1)]),
                 shown.repeat_interleave(len(taps), 0)) for taps, embeddings, _ in read())
            half = self.layers[0].shared // 2
            for own, keys, first in ((range(half), near, 0), (range(half, self.layers[0].shared), far, hidden)):
                if len(own):
                    columns = slice(first, first + hidden)
                    self._look(self.layers[0], own, keys is near, keys, masks)
                    self._carry(self.layers[0], own, weights[:, columns], squares[columns, columns])

    def _look(self, layer, own, near, keys, queries):
        """Sets the queries and keys of these heads. A row's query is a pattern times the row's product with `queries`,
        which is 1 for masks and 0 for other rows. A row's key is the same pattern times the row's product with `keys`,
        which is 1 for the rows that the heads attend to and -1 for other rows. With `near`, the pattern prefers keys
        at near positions."""
        part, dim, group = layer.self_attn, layer.dim, layer.heads // layer.shared
        slow = torch.arange(dim // 2) >= dim // 4
        turning = (self.frequencies < 0.4) & (self.frequencies > 0.01) & ~slow if near else slow
        pattern = torch.cat([turning.float(), torch.zeros(dim // 2)])
        pattern *= (dim / pattern.sum().clamp_min(1)).sqrt()
        for norm in (part.q_norm, part.k_norm):
            norm.weight.copy_((torch.where(slow, 6.0, 20.0).repeat(2) / dim ** 0.5).sqrt())  # limits scores
        for h in own:
            for projection, found, count in ((part.k_proj, keys, 1), (part.q_proj, queries, group)):
                weight = projection.weight[h * dim * count:(h + 1) * dim * count]
                weight.mul_(0.1).add_(torch.outer(pattern.repeat(count), found))

    def _carry(self, layer, own, weights, squares):
        """Makes these heads pass on `weights` times the rows that they attend to, as exactly as their width allows."""
        part, dim, group = layer.self_attn, layer.dim, layer.heads // layer.shared
        _, best = torch.linalg.eigh(weights @ squares @ weights.T)  # sorted in ascending order
        best = best[:, -len(own) * dim:].flip(-1)
        values = best.T @ weights
        for i, h in enumerate(own):
            rows = slice(i * dim, (i + 1) * dim)
            if len(values[rows]) < dim:
                break  # there are more heads than directions
            part.v_proj.weight[h * dim:(h + 1) * dim] = values[rows]
            for q in range(h * group, (h + 1) * group):
                part.o_proj.weight[:, q * dim:(q + 1) * dim] = best[:, rows] / group

    def context(self, taps):
        return self.hidden_norm(self.fc(taps / self.tap_sizes))

    def _turn(self, x, places):
        """Returns x with rotary positions. x: [..., heads, dim]; places: the position of each row."""
        angles = places[..., None].float() * self.frequencies
        cosine, sine = (torch.cat([f(angles)] * 2, -1)[..., None, :] for f in (torch.cos, torch.sin))
        low, high = x.chunk(2, -1)
        return x * cosine + torch.cat([-high, low], -1) * sine

    def forward(self, taps, embeddings, mask, anchors):
        """Returns the rows of the masks as the head reads them, [anchors, block - 1, hidden]. taps: [positions, taps *
        hidden]; embeddings: [anchors, hidden], those of the tokens there; mask: [hidden]."""
        context = self.context(taps)
        masks = mask.expand(len(anchors), self.block - 1, -1)
        x = torch.cat([embeddings[:, None], masks], 1)
        for layer in self.layers:
            x = layer(x, context, anchors, self._turn)
        return self.norm(x[:, 1:])

    # ----------------------------------------------------------------------------------------------- published form

    def save(self, folder, layers, target_layers):
        """Writes config.json and model.safetensors as z-lab publishes them. layers: the layers whose inputs are the
        taps, as forerun counts them. z-lab counts the layers whose outputs are the taps, so its numbers are one
        less."""
        tensors = {name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in self.named_parameters()}
        tensors["fc.weight"] = (self.fc.weight.detach() / self.tap_sizes).to(torch.bfloat16)
        config = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", **self.sizes, "hidden_act": "silu",
                  "attention_bias": False, "attention_dropout": 0.0, "tie_word_embeddings": False,
                  "layer_types": ["full_attention"] * len(self.layers), "sliding_window": None,
                  "use_sliding_window": False, "rope_scaling": None, "torch_dtype": "bfloat16",
                  "num_target_layers": target_layers, "block_size": self.block,
                  "dflash_config": {"mask_token_id": self.mask, "block_size": self.block,
                                    "target_layer_ids": [layer - 1 for layer in layers]}}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
