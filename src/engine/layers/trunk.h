/* Opens a decoder from a spec and a table of names, and runs it over a batch.
 *
 * In: a family's spec and names (layer_spec.h, tensor_names.h), a checkpoint. Out: fr_trunk; when it is run, the hidden
 * rows of a batch, and K/V in the batch's caches. */
#ifndef FR_SRC_ENGINE_LAYERS_TRUNK_H
#define FR_SRC_ENGINE_LAYERS_TRUNK_H

#include "src/engine/layers/activations.h"
#include "src/engine/layers/tensor_names.h"

/* Takes over the spec (spec->layer is freed at close), binds all tensors, and computes the rotary and KV tables.
 * head_order: [vocab] the order in which the head's rows are packed; NULL: unchanged. head_order must outlive the
 * trunk. */
fr_status fr_trunk_open(fr_trunk *trunk, fr_trunk_spec *spec, const fr_tensor_naming *naming, fr_weights *weights,
                        const int32_t *head_order);
void fr_trunk_close(fr_trunk *trunk);

/* Computes the rotary and KV tables of a trunk from its spec. The trunk's tensors must be bound already. path: for
 * error lines. */
fr_status fr_trunk_derive(fr_trunk *trunk, const char *path);

/* Gives the shape of the keys and values of a layer that has this attention. */
fr_kv_shape fr_attention_kv_shape(const fr_attention_spec *spec);

/* Gives a pointer to a recurrent layer's index among the trunk's recurrent layers. */
size_t *fr_layer_state(fr_layer_spec *layer);

/* Frees the memory that was allocated when the layer was bound. */
void fr_layer_close(fr_layer *layer);

/* Runs one layer over a->x, in place. The whole team calls it, after a barrier. On return, each row of the stream is
 * complete for the thread that owns it (fr_part_rows); other threads need another barrier. `a` is the thread's own copy
 * of the struct. Rows before `keep` are needed only for their K/V. In the trunk, these rows stop after the last layer
 * that owns K/V has stored it. In any other layer, they stop when that layer has stored its own K/V. */
void fr_layer_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                  size_t index);

/* Runs all layers of the trunk, in the order of the spec. */
void fr_layers_run(const fr_team *team, fr_activations *a);

/* fr_trunk_run runs a batch from tokens to hidden rows, with the whole team; forward->activations is an
 * fr_activations. No barrier is needed before the call, but one is needed after it. fr_trunk_head gives the head for
 * the hidden rows. */
void fr_trunk_run(const fr_team *team, fr_forward *forward);
fr_head fr_trunk_head(const fr_forward *forward, const fr_trunk *trunk);

/* Writes the scaled input embedding of a token, [hidden]. */
void fr_trunk_embed(const fr_trunk *trunk, const fr_kernels *kernels, int32_t id, float *row);

/* share.c: sets which part of each matrix this rank reads. If ranks divide every layer, the rank reads a share of every
 * matrix, including the head. If ranks run whole layers, it reads all matrices of its own layers and a share of the
 * head. The function also reduces the shapes of states to the heads that the rank keeps. If the embedding table is also
 * the head, embeddings are looked up in the file from then on. */
fr_status fr_trunk_share(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan);

/* Divides a draft model among the ranks that run its target together. The draft model is divided by rows, never by
 * layers. Its KV shapes are divided too, since no other model reads them. If messages between ranks take too long for
 * this to pay, the draft model is not divided, and each rank runs it completely. Returns true if the draft model is
 * divided. */
bool fr_trunk_share_drafter(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan);

/* fr_trunk_keep_heads reduces a KV layer's shape, which has all heads, to the heads that this rank computes and keeps.
 * These are the heads that the rank's own query heads read, or all heads if a drafter on the rank reads them. If ranks
 * run whole layers, a rank keeps all heads or none. Without ranks, all heads are kept. A forward finds the result in
 * the layers of its caches (fr_kv_shape). fr_trunk_head_keeper gives a rank that keeps a given head. */
void fr_trunk_keep_heads(const fr_trunk *trunk, const struct fr_ranks *ranks, size_t kv, fr_kv_shape *shape);
size_t fr_trunk_head_keeper(const fr_trunk *trunk, const struct fr_ranks *ranks, size_t kv, size_t head);

/* Gives the index of the layer that owns the keys and values of KV layer `kv`. */
size_t fr_trunk_kv_owner(const fr_trunk *trunk, size_t kv);

#endif
