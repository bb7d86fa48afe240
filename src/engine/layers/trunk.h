/* A decoder as a whole: opened from a spec and a table of names, and run over a batch.
 *
 * In: what a family says of itself (layer_spec.h, tensor_names.h), a checkpoint. Out: fr_trunk; hidden rows of a
 * batch, K/V in its caches. */
#ifndef FR_SRC_ENGINE_LAYERS_TRUNK_H
#define FR_SRC_ENGINE_LAYERS_TRUNK_H

#include "src/engine/layers/activations.h"
#include "src/engine/layers/tensor_names.h"

/* Takes the spec over (spec->layer is freed at close), binds all tensors, derives rotary and KV tables. head_order:
 * [vocab] the rows' order that the head would be packed in, which must outlive the trunk; NULL: its own. */
fr_status fr_trunk_open(fr_trunk *trunk, fr_trunk_spec *spec, const fr_tensor_naming *naming, fr_weights *weights,
                        const int32_t *head_order);
void fr_trunk_close(fr_trunk *trunk);

/* Of a trunk whose tensors somebody else has bound: its rotary and KV tables, by its spec. path: in a failure's
 * line. */
fr_status fr_trunk_derive(fr_trunk *trunk, const char *path);

/* What a layer of that attention keeps, if it does. */
fr_kv_shape fr_attention_kv_shape(const fr_attention_spec *spec);

/* Frees what binding a layer took. */
void fr_layer_close(fr_layer *layer);

/* One layer over a->x, in place. By the whole team, synchronized before; the stream is complete for each row's owner
 * (fr_part_rows) on return, for others after the next barrier. a is the thread's own copy. Rows before `keep` are left
 * in the last layer that owns K/V, and in any that is none of the trunk's. */
void fr_layer_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                  size_t index);

/* The same over layers that are not to be left, in the order of the spec. */
void fr_layers_run(const fr_team *team, fr_activations *a);

/* forward->activations: fr_activations. By the whole team: tokens to hidden rows. No barrier is needed before; one
 * behind. */
void fr_trunk_run(const fr_team *team, fr_forward *forward);
fr_head fr_trunk_head(const fr_forward *forward, const fr_trunk *trunk);

/* The scaled input embedding of a token, [hidden]. */
void fr_trunk_embed(const fr_trunk *trunk, const fr_kernels *kernels, int32_t id, float *row);

/* share.c. Tells the weights of which matrices a rank reads its share alone: the head, and of layers those whose rows
 * it doesn't make for itself whole; or all of its own layers, where they are what is dealt; and the shapes of states
 * which heads' it keeps. A table that is also the head is looked up in the file from then on. */
fr_status fr_trunk_share(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan);

/* The same of a model that drafts for one that ranks run: by rows, its KV shapes too, which nobody else reads; or not
 * at all, where messages take so long that rows don't pay: each rank then runs it whole. Whether it is shared. */
bool fr_trunk_share_drafter(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan);

/* Cuts a KV layer's shape, as the trunk has it, to the heads that this rank makes keys and values of and keeps, where
 * nobody there reads them all: those of its own query heads; or all or none, where it runs whole layers. This alone
 * says so; a forward finds it in its caches' layers (fr_kv_shape). Without ranks they are all. And a rank that
 * keeps a head. */
void fr_trunk_keep_heads(const fr_trunk *trunk, const struct fr_ranks *ranks, size_t kv, fr_kv_shape *shape);
size_t fr_trunk_head_keeper(const fr_trunk *trunk, const struct fr_ranks *ranks, size_t kv, size_t head);

/* The layer that owns a KV layer. */
size_t fr_trunk_kv_owner(const fr_trunk *trunk, size_t kv);

#endif
