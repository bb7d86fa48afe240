"""Defines, for each kind of drafter, what is particular to its training: its network, its loss, its accepted drafts.

In: the target, the taps, texts, options. Out: Eagle3 and DFlash, which train.py uses in the same way. `loss` returns
the loss of a text, and for each draft in order a pair: how often its best id is the target's, and out of how many.
`accepted` returns how many drafts after each anchor are the text's own tokens, counted up to the first that is not. An
anchor is a position whose token is the last known one.
"""
import collections
import math

import torch
from torch.nn import functional

from block import BlockDrafter
from drafter import Drafter, read_gguf

STEP_WEIGHT = 0.8  # factor of the loss of each further step of EAGLE-3's chain
DRAFTS = 7         # number of drafts that are counted, for any kind
ANCHOR_STRIDE = 4  # distance of the anchors from which they are counted


def choose_ids(texts, vocab, count, known=()):
    """Returns the known ids, those that the target generates most often, and then the lowest ids, which are merges of
    frequent pieces."""
    said = collections.Counter(i for text in texts for i in text.ids[text.prompt:])
    ids = list(dict.fromkeys([*known, *sorted(said, key=lambda i: (-said[i], i))]))[:count]
    there = set(ids)
    ids += [i for i in range(vocab) if i not in there][:count - len(ids)]
    return torch.tensor(sorted(ids))


def choose_anchors(text, stride=ANCHOR_STRIDE):
    """Returns positions of the answer that have at least as many tokens after them as drafts are counted."""
    return torch.arange(max(1, text.prompt), max(1, text.prompt, len(text.ids) - DRAFTS), stride)


def count_accepted(drafts, text, anchors):
    """Returns the number of accepted drafts of each row. drafts: ids, [anchors, drafts]."""
    wanted = torch.tensor(text.ids)[anchors[:, None] + torch.arange(1, drafts.shape[1] + 1)]
    return (drafts == wanted).long().cumprod(-1).sum(-1)


class Course:
    def __init__(self, target, layers, options):
        self.target, self.layers, self.options = target, layers, options

    def _head_rows(self, rows):
        """Normalizes rows of the last tap as the target's head reads them."""
        return functional.rms_norm(rows, self.target.norm.shape, self.target.norm, self.target.sizes["rms_norm_eps"])

    def _unit(self, rows):
        return functional.rms_norm(rows, rows.shape[-1:], None, self.target.sizes["rms_norm_eps"])


class Eagle3(Course):
    def __init__(self, target, layers, texts, options, kept):
        super().__init__(target, layers, options)
        self.earlier = read_gguf(options.go_on_from) if options.go_on_from and not kept else None
        if kept:
            self.ids, ffn = kept["ids"], kept.get("ffn") or target.sizes["intermediate_size"]
        else:
            known = self.earlier["d2t"].tolist() if self.earlier else []
            self.ids = choose_ids(texts, target.sizes["vocab_size"], max(len(known), options.draft_vocab), known)
            ffn = len(self.earlier["blk.0.ffn_gate.weight"]) if self.earlier else options.ffn
            ffn = ffn or target.sizes["intermediate_size"]
        self.network = Drafter({**target.sizes, "intermediate_size": ffn}, len(layers), len(self.ids))
        self.head = target.head[self.ids].clone()
        self.kept = {"ids": self.ids, "ffn": ffn}
        if options.freeze_head:
            self.network.lm_head.weight.requires_grad = False

    def begin(self, texts):
        if self.earlier:
            taps = torch.cat([self._linear(text)[0] for text in texts[:20]])
            self.network.load(self.earlier, self.ids, self.target, taps)
        else:
            self.network.begin(self.target, self.ids)
            self.network.fit(self._linear(text) for text in texts)

    def _linear(self, text):
        """Returns the data to which the linear part is fitted. The wanted row is the target's row after each pair,
        before its norm, scaled to one size."""
        rows, pairs = text.rows(), len(text.ids) - 2
        embeddings = self.target.embedding[text.ids[1:pairs + 1]]
        return rows[:pairs, :-1].reshape(pairs, -1), self._unit(embeddings), self._unit(rows[1:pairs + 1, -1])

    def _pairs(self, text, rows):
        pairs = len(text.ids) - 2
        taps = rows[:pairs, :self.network.taps].reshape(pairs, -1)
        return taps, self.target.embedding[text.ids[1:pairs + 1]]

    def loss(self, text, _draw):
        rows, first = text.rows(), max(0, text.prompt - 2)
        says = self._head_rows(rows[first + 1:len(text.ids) - 1, -1]) @ self.head.T
        shares, best, loss, hits = says.softmax(-1), says.max(-1).indices, 0.0, []
        for step, (said, logits) in enumerate(self.network(*self._pairs(text, rows), self.options.chain, first)):
            wanted = shares[said - first:]
            if not len(wanted):
                continue
            loss = loss + STEP_WEIGHT ** step * functional.cross_entropy(logits, wanted)
            hits.append((int((logits.max(-1).indices == best[said - first:]).sum()), len(wanted)))
        return loss, hits

    def accepted(self, text, anchors):
        drafts, first = [], int(anchors[0]) - 1
        for step, (said, logits) in enumerate(self.network(*self._pairs(text, text.rows()), DRAFTS, first)):
            drafts.append(self.ids[logits.argmax(-1)][anchors - 1 + step - said])
        return count_accepted(torch.stack(drafts, -1), text, anchors)

    def save(self, folder, _depth):
        self.network.save(folder, self.layers, self.ids)


class DFlash(Course):
    def __init__(self, target, layers, texts, options, kept):
        super().__init__(target, layers, options)
        if min(layers) < 1:
            raise SystemExit("tap 0 is what the first layer is given; DFlash's files name layers that give a tap")
        sizes, block, mask = kept["shape"] if kept else (self._choose_sizes(), options.block, self._choose_mask(texts))
        self.network = BlockDrafter(sizes, len(layers), block, mask)
        self.ids = kept["ids"] if kept else choose_ids(texts, target.sizes["vocab_size"], options.draft_vocab)
        self.kept = {"ids": self.ids, "shape": (sizes, block, mask)}

    def _choose_sizes(self):
        target, options = self.target.sizes, self.options
        heads = options.heads or target["num_attention_heads"]
        shared = options.kv_heads or heads
        if options.block < 2 or heads % shared:
            raise SystemExit("--block must be 2 at least, and --kv-heads divide the number of heads")
        return {**target, "num_hidden_layers": options.layers, "num_attention_heads": heads,
                "num_key_value_heads": shared, "intermediate_size": options.ffn or target["intermediate_size"]}

    def _choose_mask(self, texts):
        """Chooses an id that no text has. It is --mask-id, or the last id that the tokenizer leaves unused, or else
        the last of its control tokens. Masks get the embedding of this id, and the drafter must distinguish them from
        all tokens of a text."""
        if self.options.mask_id is not None:
            if not 0 <= self.options.mask_id < self.target.sizes["vocab_size"]:
                raise SystemExit("--mask-id is no id of the model's vocabulary")
            return self.options.mask_id
        said = {i for text in texts for i in text.ids} | self.target.ends
        for ids in (self.target.unused, self.target.control):
            free = [i for i in ids if i not in said and self.target.embedding[i].any()]
            if free:
                return max(free)
        raise SystemExit("every control token of the vocabulary is in the texts: choose the mask's id by --mask-id")

    def begin(self, texts):
        def read():
            for text in texts:
                rows, embeddings = text.rows(), self.target.embedding[text.ids[1:]]
                yield rows[:-1, :-1].reshape(len(rows) - 1, -1), self._unit(embeddings), self._unit(rows[1:, -1])
        self.network.begin(self.target)
        self.network.fit(read, self.target.embedding[self.network.mask])

    def _blocks(self, text, rows, anchors):
        taps = rows[:, :-1].reshape(len(text.ids), -1)
        embedding = self.target.embedding
        return self.network(taps, embedding[torch.tensor(text.ids)[anchors]], embedding[self.network.mask], anchors)

    def loss(self, text, draw):
        """Returns the soft cross-entropy over the ids of --draft-vocab and as many others. The others are drawn anew
        each time, and stand for all the rest. The head of the whole vocabulary would cost more than the drafter."""
        options, rows = self.options, text.rows()
        begins = torch.arange(max(1, text.prompt), len(text.ids) - 1)
        anchors = begins[torch.randperm(len(begins), generator=draw)[:options.blocks]]
        places = anchors[:, None] + torch.arange(self.network.block - 1)  # rows that predict wanted tokens
        there = places < len(text.ids) - 1
        hidden = self._blocks(text, rows, anchors)
        wanted = self._head_rows(rows[:, -1])[places.clamp_max(len(text.ids) - 1)]
        vocab = len(self.target.embedding)
        listed = torch.zeros(vocab, dtype=torch.bool).index_fill_(0, self.ids, True)
        rest = (~listed).nonzero()[:, 0]
        drawn = rest[torch.randperm(len(rest), generator=draw)[:len(self.ids)]]
        head = self.target.head[torch.cat([self.ids, drawn])]
        stands_for = torch.zeros(len(head))
        stands_for[len(self.ids):] = math.log(len(rest) / max(1, len(drawn))) if len(rest) else 0.0
        own = functional.log_softmax(hidden[there] @ head.T + stands_for, -1)
        says = functional.log_softmax(wanted[there] @ head.T + stands_for, -1)
        row = torch.arange(self.network.block - 1).expand_as(there)[there]
        weight = torch.exp(-row / options.decay)
        loss = (weight * -(says.exp() * own).sum(-1)).sum() / weight.sum()
        hit = own.argmax(-1) == says.argmax(-1)
        return loss, [(int(hit[row == j].sum()), int((row == j).sum())) for j in range(self.network.block - 1)]

    def accepted(self, text, anchors):
        drafts = (self._blocks(text, text.rows(), anchors) @ self.target.head.T).argmax(-1)
        return count_accepted(drafts[:, :DRAFTS], text, anchors)

    def save(self, folder, depth):
        self.network.save(folder, self.layers, depth)


KINDS = {"eagle3": Eagle3, "dflash": DFlash}
