"""EAGLE-3's drafter as a network: one layer, chained as when it is run; and its published form and its GGUF file.

Pair q consists of the target's taps at position q and the embedding of token q + 1. It predicts token q + 2. In step 0
every pair has taps. In step k a pair has, instead of taps, the output of the pair before it in step k - 1. It attends
to the pairs of step 0 up to the beginning of its chain, and to the pairs of its own chain.
"""
import json
import math

import numpy
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional


class Norm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


def strongest_features(ffn, count):
    """Returns the target's feed-forward, or its count features of the largest weights. Returns nothing if it has fewer
    features, or no gate."""
    gate, up, down = (ffn.get(f"mlp.{name}_proj") for name in ("gate", "up", "down"))
    if gate is None or up is None or down is None or len(gate) < count:
        return {}
    strength = gate.norm(dim=1) * up.norm(dim=1) * down.norm(dim=0)
    chosen = strength.topk(count).indices.sort().values
    norm = ffn.get("post_attention_layernorm")
    return {"mlp.gate_proj": gate[chosen], "mlp.up_proj": up[chosen],
            **({} if norm is None else {"post_attention_layernorm": norm})}


class Drafter(nn.Module):
    def __init__(self, sizes, taps, draft_vocab):
        super().__init__()
        self.sizes, self.taps = sizes, taps
        hidden, heads, dim = sizes["hidden_size"], sizes["num_attention_heads"], sizes["head_dim"]
        ffn, eps = sizes["intermediate_size"], sizes["rms_norm_eps"]
        self.fc = nn.Linear(taps * hidden, hidden, bias=False)
        self.input_layernorm, self.hidden_norm = Norm(hidden, eps), Norm(hidden, eps)
        self.post_attention_layernorm, self.norm = Norm(hidden, eps), Norm(hidden, eps)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(2 * hidden, heads * dim, bias=False)
                                                for _ in range(3))
        self.o_proj = nn.Linear(heads * dim, hidden, bias=False)
        self.gate_proj, self.up_proj = (nn.Linear(hidden, ffn, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(ffn, hidden, bias=False)
        self.lm_head = nn.Linear(hidden, draft_vocab, bias=False)
        frequencies = sizes["rope_theta"] ** (-torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("tap_sizes", torch.ones(taps * hidden))  # few features are much larger than all others
        self.register_buffer("frequencies", frequencies, persistent=False)

    def begin(self, target, ids):
        """Sets the initial weights. The head, the norm and the feed-forward are the target's, and the feed-forward has
        an output of 0 at first. Attention begins by looking at its own pair: queries and keys are the same projection
        of the embedding, whose product with itself is the largest."""
        hidden, width = self.sizes["hidden_size"], self.o_proj.in_features
        with torch.no_grad():
            self.lm_head.weight.copy_(target.head[ids])
            self.norm.weight.copy_(target.norm)
            for name, weight in strongest_features(target.ffn, self.sizes["intermediate_size"]).items():
                getattr(self, name.split(".")[-1]).weight.copy_(weight)
            self.down_proj.weight.zero_()
            own = torch.linalg.qr(torch.randn(max(width, hidden), min(width, hidden)))[0]
            own = own if own.shape == (width, hidden) else own.T
            for projection in (self.q_proj, self.k_proj):
                projection.weight[:, hidden:] *= 0.1
                projection.weight[:, :hidden] = 1.1 * own
            self.v_proj.weight[:, hidden:] *= 0.1
            self.fc.weight.mul_(0.1)

    def fit(self, batches):
        """Fits the linear part in one step, by least squares (ridge) on (taps, normed embeddings, wanted rows) of the
        target's text. The linear part is fc, and the part of the embedding that attention passes on. This needs an
        attention that is as wide as the rows."""
        hidden, inputs = self.sizes["hidden_size"], self.fc.in_features + self.sizes["hidden_size"]
        if self.o_proj.in_features != hidden:
            return
        squares, products, count = torch.zeros(inputs, inputs), torch.zeros(inputs, hidden), 0
        for taps, embeddings, wanted in batches:
            rows = torch.cat([taps, embeddings], -1)
            squares += rows.T @ rows
            products += rows.T @ wanted
            count += len(rows)
        diagonal = squares.diagonal().clone()
        squares += torch.diag(0.01 * diagonal + 1e-6 * diagonal.mean())
        weights = torch.linalg.solve(squares, products).T
        with torch.no_grad():
            self.tap_sizes.copy_((diagonal[:self.fc.in_features] / count).sqrt())
            self.fc.weight.copy_(weights[:, :self.fc.in_features] * self.tap_sizes)
            self.o_proj.weight.copy_(torch.eye(hidden))
            self.v_proj.weight[:, :hidden] = weights[:, self.fc.in_features:]
            self.v_proj.weight[:, hidden:] = 0

    def _turned(self, x, first):
        """Returns rows with the rotary positions first, first + 1, ... x: [rows, heads, dim]."""
        angles = torch.outer(torch.arange(first, first + x.shape[0]).float(), self.frequencies)
        cosine, sine = (torch.cat([f(angles)] * 2, -1)[:, None] for f in (torch.cos, torch.sin))
        low, high = x.chunk(2, -1)
        return x * cosine + torch.cat([-high, low], -1) * sine

    def _layer(self, g, embedding, first, earlier):
        """Runs the rows of one step. first: the slot of the first row. earlier: for each step before, its keys, its
        values, and the slot of its first row."""
        heads, dim = self.sizes["num_attention_heads"], self.sizes["head_dim"]
        rows, step = g.shape[0], len(earlier)
        x = torch.cat([self.input_layernorm(embedding), self.hidden_norm(g)], -1)
        q, k, v = (p(x).view(rows, heads, dim) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = self._turned(q, first), self._turned(k, first)
        chain = earlier + [(k, v, first)]
        keys, values, at = chain[0]
        scores = torch.einsum("qhd,khd->hqk", q, keys) / math.sqrt(dim)
        slots, begun = torch.arange(first, first + rows), torch.arange(at, at + keys.shape[0])
        scores = scores + torch.zeros(rows, len(begun)).masked_fill(begun > slots[:, None] - step, -torch.inf)
        for i in range(1, step + 1):  # the pair of step i that belongs to the same chain
            keys, _, at = chain[i]
            own = keys[first - step + i - at:][:rows]
            scores = torch.cat([scores, ((q * own).sum(-1) / math.sqrt(dim)).T[:, :, None]], -1)
        weights = scores.softmax(-1)
        count = chain[0][0].shape[0]
        mixed = torch.einsum("hqk,khd->qhd", weights[:, :, :count], chain[0][1])
        for i in range(1, step + 1):
            _, values, at = chain[i]
            mixed = mixed + weights[:, :, count + i - 1].T[:, :, None] * values[first - step + i - at:][:rows]
        x = g + self.o_proj(mixed.reshape(rows, -1))
        normed = self.post_attention_layernorm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(normed)) * self.up_proj(normed)), chain

    def forward(self, taps, embeddings, steps, first_said):
        """Gives, for each step, a slot and the logits of all slots from that slot on. The slot is first_said, or the
        step's first slot if that comes later. taps: [pairs, taps * hidden]; embeddings: [pairs, hidden], those of the
        tokens after the taps."""
        chain, x, out = [], None, []
        for step in range(steps):
            g = self.fc(taps / self.tap_sizes) if step == 0 else x[:-1]
            x, chain = self._layer(g, embeddings[step:], step, chain)
            said = max(first_said, step)
            out.append((said, self.lm_head(self.norm(x[said - step:]))))
        return out

    # ----------------------------------------------------------------------------------------------- published form

    NAMES = {"fc": "fc", "norm": "norm", "lm_head": "lm_head", "input_layernorm": "midlayer.input_layernorm",
             "hidden_norm": "midlayer.hidden_norm",
             "post_attention_layernorm": "midlayer.post_attention_layernorm",
             "q_proj": "midlayer.self_attn.q_proj", "k_proj": "midlayer.self_attn.k_proj",
             "v_proj": "midlayer.self_attn.v_proj", "o_proj": "midlayer.self_attn.o_proj",
             "gate_proj": "midlayer.mlp.gate_proj", "up_proj": "midlayer.mlp.up_proj",
             "down_proj": "midlayer.mlp.down_proj"}

    def save(self, folder, layers, ids):
        """Writes config.json and model.safetensors as SpecForge and vLLM read them. The embeddings are the target's
        and are left out."""
        vocab = self.sizes["vocab_size"]
        tensors = {f"{theirs}.weight": getattr(self, own).weight.detach().to(torch.bfloat16).contiguous()
                   for own, theirs in self.NAMES.items()}
        tensors["fc.weight"] = (self.fc.weight.detach() / self.tap_sizes).to(torch.bfloat16)
        tensors["d2t"] = ids - torch.arange(len(ids))
        tensors["t2d"] = torch.zeros(vocab, dtype=torch.bool).index_fill_(0, ids, True)
        config = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "num_hidden_layers": 1,
                  "num_key_value_heads": self.sizes["num_attention_heads"], "hidden_act": "silu",
                  "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
                  "torch_dtype": "bfloat16", "draft_vocab_size": len(ids),
                  "target_hidden_size": self.sizes["hidden_size"], "eagle_aux_hidden_state_layer_ids": layers,
                  "eagle_config": {"use_aux_hidden_state": True,
                                   "eagle_aux_hidden_state_layer_ids": [layer - 1 for layer in layers]},
                  **self.sizes}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    GGUF_NAMES = {"fc": "fc", "norm": "output_norm", "lm_head": "output", "input_layernorm": "blk.0.attn_norm",
                  "hidden_norm": "blk.0.attn_norm_2", "post_attention_layernorm": "blk.0.ffn_norm",
                  "q_proj": "blk.0.attn_q", "k_proj": "blk.0.attn_k", "v_proj": "blk.0.attn_v",
                  "o_proj": "blk.0.attn_output", "gate_proj": "blk.0.ffn_gate", "up_proj": "blk.0.ffn_up",
                  "down_proj": "blk.0.ffn_down"}

    def load(self, tensors, ids, target, taps):
        """Sets the weights of a drafter's GGUF file. For ids that it does not have, the head gets the target's rows,
        mapped as those of the others were changed by learning, by least squares. tensors: those of read_gguf; ids:
        those of the head; taps: rows of the target's text, from which the sizes of taps come that the file has folded
        into fc."""
        with torch.no_grad():
            for own, theirs in self.GGUF_NAMES.items():
                if own != "lm_head":
                    getattr(self, own).weight.copy_(tensors[f"{theirs}.weight"])
            self.tap_sizes.copy_(taps.square().mean(0).sqrt().clamp_min(1e-6))
            self.fc.weight.mul_(self.tap_sizes)
            learned, known = tensors["output.weight"], tensors["d2t"]
            self.lm_head.weight.copy_(target.head[ids] @ torch.linalg.lstsq(target.head[known], learned).solution)
            self.lm_head.weight[torch.searchsorted(ids, known)] = learned


def read_gguf(path):
    """Returns the tensors of a drafter's GGUF file as float32, and its ids as they are."""
    import gguf
    return {t.name: torch.from_numpy(numpy.array(t.data if t.name == "d2t" else
                                                 gguf.dequantize(t.data, t.tensor_type)))
            for t in gguf.GGUFReader(path).tensors}
