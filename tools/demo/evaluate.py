"""Measures how many tokens a call of the target gives, for each number of drafts.

Speculation does not change the text, so the target's greedy text is known beforehand. One forward over it gives every
hidden row, key and value from which a draft can start, and networks.drafts() makes all drafts at once. From this table
the rounds of an engine are then simulated.
"""
import torch

import networks
from corpus import EOS, PAD

BATCH = 8


def clusters(assistant):
    """Returns the cluster of every id: [vocab]."""
    head = assistant.masked_embedding
    cluster = torch.empty_like(head.token_ordering)
    cluster[head.token_ordering] = torch.arange(len(cluster)) // head.vocab_size_per_centroid
    return cluster


def centroid_guess(assistant, hidden):
    """Returns the most likely id among the ids of the chosen clusters, and whether it is the most likely of all
    ids."""
    head, scores = assistant.masked_embedding, assistant.lm_head(hidden)
    chosen = head.centroids(hidden).topk(head.centroid_intermediate_top_k, -1).indices
    allowed = torch.zeros(*hidden.shape[:2], head.num_centroids, dtype=torch.bool).scatter_(-1, chosen, True)
    guess = scores.masked_fill(~allowed[..., clusters(assistant)], -torch.inf).argmax(-1)
    return guess, guess == scores.argmax(-1)


@torch.no_grad()
def right_guesses(target, assistant, ids, depth):
    """Returns for every row the number of draft steps that predict the text before the first wrong one, [B, n - 1];
    and the recall of the centroid head."""
    rows = torch.arange(ids.shape[1] - 1)
    padded = torch.nn.functional.pad(ids, (0, depth), value=PAD)    # padding, so that the last rows have steps too
    hidden, kv, _ = networks.read(target, padded)
    count, alive, recall = torch.zeros(len(ids), len(rows), dtype=torch.long), True, []
    for out, answer in networks.drafts(assistant, target.get_input_embeddings(), padded, rows, hidden, kv, depth):
        guess, same = centroid_guess(assistant, out)
        alive = (guess == answer) & alive
        count += alive
        recall.append(same.float().mean())
    return count, float(torch.stack(recall).mean())


def calls(right, prompt, length, draft):
    """Returns the number of target calls after the prompt's own token, for one text of `length` ids. A call gives one
    id more than the number of accepted drafts."""
    last, made = prompt, 0
    while last < length - 1:
        last += 1 + min(int(right[last - 1]), draft, length - 2 - last)
        made += 1
    return made


def tokens_per_call(target, assistant, ids, prompt, drafts=(1, 2, 3, 4)):
    """Returns {number of drafts: tokens per call} over all texts together, and the mean recall. ids: [B, prompt +
    generated]."""
    new, made, recalls = 0, {k: 0 for k in drafts}, []
    for part in ids.split(BATCH):
        right, recall = right_guesses(target, assistant, part, max(drafts))
        recalls.append(recall)
        for row, text in zip(right, part.tolist()):
            end = text.index(EOS, prompt) + 1 if EOS in text[prompt:] else len(text)
            new += end - prompt - 1
            for k in drafts:
                made[k] += calls(row, prompt, end, k)
    return {k: new / made[k] for k in drafts}, sum(recalls) / len(recalls)
