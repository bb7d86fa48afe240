/* The parts that a decoder layer is made of, each run by the whole team over activations.
 *
 * In: a layer's spec and weights, the activations as the part before left them. Out: the activations. What each needs
 * before it and leaves behind it is said here; a layer strings them together (trunk.c). Rows are partitioned by
 * fr_part_rows, features by fr_part_features, so that each thread finds what it made itself. */
#ifndef FR_SRC_ENGINE_LAYERS_PARTS_H
#define FR_SRC_ENGINE_LAYERS_PARTS_H

#include "src/engine/layers/activations.h"
#include "src/engine/weights/partition.h"

/* ----------------------------------------------------------------------------------------------------------- norm.c */

/* y = the norm of a hidden row, of the trunk's kind; without a weight the row as it is. bias may be NULL, y may be
 * x. */
void fr_norm_row(const fr_activations *a, float *y, const float *x, const float *weight, const float *bias);

/* ------------------------------------------------------------------------------------------------------ attention.c */

/* cos and sin of the rows' angles; the thread's own rows. */
void fr_rotations(const fr_team *team, const fr_activations *a);

/* normed = input_norm(x), or what stands for it, of the thread's own rows, prepared for products of `width` columns:
 * what a layer that mixes positions begins with. A barrier behind. */
void fr_input_norm(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t width);

/* out = o(attention(x)), K/V of the rows in the cache. The stream is whole for each row's owner before; a barrier is
 * needed behind. ends_rows: no later layer has K/V, so the activations are narrowed to the rows from `keep` on. */
void fr_attention_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                      bool ends_rows);

/* How heads of so many columns each are split over ranks, by the cache that the batch sees. */
fr_split fr_attention_split(const fr_activations *a, const fr_attention_spec *spec, size_t each);

/* attn = attention(q, cache) of all rows and the rank's heads; barriers before and behind. sinks: [heads], or NULL. */
void fr_attention_attend(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                         const float *sinks);

/* ------------------------------------------------------------------------------------------------------------ mla.c */

/* Takes latent attention's activations for up to max_rows rows from the arena, or measures them, where a layer of the
 * trunk has it. */
void fr_mla_layout(fr_activations *a, bool packed, fr_arena *arena, size_t max_rows, size_t threads);

/* As fr_attention_run, of latent attention. */
void fr_mla_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                bool ends_rows);

/* ---------------------------------------------------------------------------------------------------- conv_inputs.c */

/* Takes rows of inputs for up to max_rows rows from the arena, or measures them: a->conv. */
void fr_conv_layout(fr_activations *a, fr_recurrent_shape shape, fr_arena *arena, size_t max_rows);

/* Whose rows a batch has, before its first layer: by one thread, a barrier behind. */
void fr_conv_begin(const fr_activations *a);

/* The inputs that a convolution at a position reads, the oldest first, of FR_MOST_CONV_KERNEL at most: those of rows of
 * the batch, and before them the ring's. row: the newest one's; -1: none is. NULL: before position 0. */
void fr_conv_collect(const fr_activations *a, const fr_recurrent *ring, const fr_recurrent_layer *layer,
                     size_t position, int32_t row, const float **inputs);

/* Inputs of recurrent layer `state` before each position where a copy is left; and those that the next forward will
 * look back to, which take the places of the ones before. Timelines are dealt to threads; all inputs are there. */
void fr_conv_save(const fr_team *team, const fr_activations *a, size_t state);
void fr_conv_keep(const fr_team *team, const fr_activations *a, size_t state);

/* ----------------------------------------------------------------------------------------------------- short_conv.c */

/* What a timeline keeps of such a layer of `hidden` channels. */
fr_recurrent_shape fr_short_conv_shape(const fr_short_conv_spec *spec, size_t hidden);

/* Takes its activations for up to max_rows rows from the arena, or measures them. */
void fr_short_conv_layout(fr_activations *a, const fr_short_conv_spec *spec, fr_arena *arena, size_t max_rows);

/* out = out(c * conv(b * x)): as fr_attention_run. */
void fr_short_conv_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                       bool ends_rows);

/* ------------------------------------------------------------------------------------------------------- deltanet.c */

/* What a timeline keeps of such a layer; and how value heads of so many columns each are split over ranks. */
fr_recurrent_shape fr_deltanet_shape(const fr_deltanet_spec *spec);
fr_split fr_deltanet_split(const fr_deltanet_spec *spec, size_t each);

/* Takes its activations for up to max_rows rows from the arena, or measures them: a->deltanet. */
void fr_deltanet_layout(fr_activations *a, const fr_deltanet_spec *spec, fr_arena *arena, size_t max_rows,
                        size_t threads);

/* out = o(what the states say of x), the states moved on and the rows' inputs kept: as fr_attention_run. */
void fr_deltanet_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                     bool ends_rows);

/* ------------------------------------------------------------------------------------------------------------ ffn.c */

/* x += norm(out), and the next products' input, normed = pre_ffn_norm(x), or the input's norm where parts share it: the
 * thread's own rows; a barrier behind. */
void fr_ffn_prepare(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* gate = activation(gate) * up, n values. */
void fr_activate(const fr_kernels *kernels, fr_activation activation, float *gate, const float *up, size_t n);

/* gate = activation(gate(normed)) * up(normed), of the thread's own features. */
void fr_ffn_gate(const fr_team *team, const fr_activations *a, const fr_ffn_spec *spec, const fr_ffn_weights *weights);

/* out = down(gate); a barrier behind. Begins with one, which stands behind fr_experts_score too. */
void fr_ffn_down(const fr_team *team, const fr_activations *a, const fr_ffn_weights *weights);

/* x += norm(out), with a mixture's branch beside it: the thread's own rows. */
void fr_ffn_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* -------------------------------------------------------------------------------------------------------- experts.c */

/* Takes a mixture's activations for up to max_rows rows from the arena, or measures them: a->experts. */
void fr_experts_layout(fr_activations *a, const fr_experts_spec *spec, bool packed, fr_arena *arena, size_t max_rows,
                       size_t threads);

/* What router and experts of a mixture apart read of one row, from the stream before the feed-forward: by the row's
 * owner. Others read what the feed-forward reads. */
void fr_experts_prepare(const fr_activations *a, const fr_experts_weights *weights, size_t row);

/* The router's products of all rows. Needs a barrier between it and the rows' preparation. */
void fr_experts_score(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                      const fr_experts_weights *weights);

/* router.c: a row's experts and weights, by one thread, of the team that made the router's products. */
void fr_experts_choose(const fr_activations *a, const fr_experts_spec *spec, const fr_experts_weights *weights,
                       size_t row, size_t thread);

/* Routing and experts, once fr_ffn_down has run: has barriers of its own; experts->sum needs one more before it is
 * read. */
void fr_experts_run(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                    const fr_experts_weights *weights);

/* out: the feed-forward's of one row, and the experts', as one; by the row's owner. */
void fr_experts_join(const fr_activations *a, const fr_layer_spec *spec, const fr_experts_weights *weights, size_t row);

/* ---------------------------------------------------------------------------------------------------
 * per_layer_embeddings.c */

/* What each layer is told of each row's token, from the embeddings in x; barriers of its own, and one behind. */
void fr_ple_inputs(const fr_team *team, const fr_activations *a);

/* x += norm(out(gelu(gate(x)) * told)), of layer `index`; barriers of its own. The stream's rows were prepared. */
void fr_ple_branch(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t index);

#endif
