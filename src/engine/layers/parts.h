/* The parts that a decoder layer is made of, each run by the whole team over activations.
 *
 * In: a layer's spec and weights, the activations as the part before left them. Out: the activations. The comments
 * here say what each part needs before it and what it leaves; trunk.c makes layers of them. Rows are partitioned by
 * fr_part_rows, features by fr_part_features, so that each thread finds what it made itself. */
#ifndef FR_SRC_ENGINE_LAYERS_PARTS_H
#define FR_SRC_ENGINE_LAYERS_PARTS_H

#include "src/engine/layers/activations.h"
#include "src/engine/weights/partition.h"

/* ----------------------------------------------------------------------------------------------------------- norm.c */

/* Computes y, the norm of a hidden row, of the trunk's kind; without a weight y is the row as it is. bias may be NULL,
 * y may be x. */
void fr_norm_row(const fr_activations *a, float *y, const float *x, const float *weight, const float *bias);

/* ------------------------------------------------------------------------------------------------------ attention.c */

/* Computes cos and sin of the rows' angles, for the thread's own rows. */
void fr_rotations(const fr_team *team, const fr_activations *a);

/* Computes normed = input_norm(x), or takes a->input instead, for the thread's own rows, and prepares them for
 * products of `width` columns. Every layer that mixes positions begins with it. It needs a barrier after it. */
void fr_input_norm(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t width);

/* Computes out = o(attention(x)), and stores K/V of the rows in the cache. Before it the stream must be whole for each
 * row's owner; it needs a barrier after it. ends_rows: no later layer has K/V, so the activations are narrowed to the
 * rows from `keep` on. */
void fr_attention_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                      bool ends_rows);

/* Gives the split over ranks of heads of `each` columns, by the cache that the batch reads. */
fr_split fr_attention_split(const fr_activations *a, const fr_attention_spec *spec, size_t each);

/* Computes attn = attention(q, cache) for all rows and the rank's heads; it needs barriers before and after it. sinks:
 * [heads], or NULL. */
void fr_attention_attend(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                         const float *sinks);

/* ------------------------------------------------------------------------------------------------------------ mla.c */

/* Takes latent attention's activations for up to max_rows rows from the arena, or measures them, if a layer of the
 * trunk has it. */
void fr_mla_layout(fr_activations *a, bool packed, fr_arena *arena, size_t max_rows, size_t threads);

/* Does what fr_attention_run does, for latent attention. */
void fr_mla_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                bool ends_rows);

/* ---------------------------------------------------------------------------------------------------- conv_inputs.c */

/* Takes a->conv for up to max_rows rows from the arena, or measures it. */
void fr_conv_layout(fr_activations *a, fr_recurrent_shape shape, fr_arena *arena, size_t max_rows);

/* Finds the rows of each timeline in a batch, before its first layer. One thread calls it; it needs a barrier after
 * it. */
void fr_conv_begin(const fr_activations *a);

/* Collects the inputs that a convolution at a position reads, the oldest first, at most FR_CONV_KERNEL_MAX: those of
 * rows of the batch, and before them the ring's. row: the newest input's row; -1: it is in the ring. An input before
 * position 0 is NULL. */
void fr_conv_collect(const fr_activations *a, const fr_recurrent *ring, const fr_recurrent_layer *layer,
                     size_t position, int32_t row, const float **inputs);

/* Saves the inputs of recurrent layer `state` before each position where a copy is left; and keeps those that the next
 * forward will read, in place of earlier ones. Timelines are divided among threads; all inputs must be there. */
void fr_conv_save(const fr_team *team, const fr_activations *a, size_t state);
void fr_conv_keep(const fr_team *team, const fr_activations *a, size_t state);

/* ----------------------------------------------------------------------------------------------------- short_conv.c */

/* Gives the shape of the state that a timeline keeps of such a layer of `hidden` channels. */
fr_recurrent_shape fr_short_conv_shape(const fr_short_conv_spec *spec, size_t hidden);

/* Takes a->conv and a->gates for up to max_rows rows from the arena, or measures them. */
void fr_short_conv_layout(fr_activations *a, const fr_short_conv_spec *spec, fr_arena *arena, size_t max_rows);

/* Computes out = out(c * conv(b * x)), under the conditions of fr_attention_run. */
void fr_short_conv_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                       bool ends_rows);

/* ------------------------------------------------------------------------------------------------------- deltanet.c */

/* Gives the shape of the state that a timeline keeps of such a layer; and the split over ranks of value heads of
 * `each` columns. */
fr_recurrent_shape fr_deltanet_shape(const fr_deltanet_spec *spec);
fr_split fr_deltanet_split(const fr_deltanet_spec *spec, size_t each);

/* Takes a->conv and a->deltanet for up to max_rows rows from the arena, or measures them. */
void fr_deltanet_layout(fr_activations *a, const fr_deltanet_spec *spec, fr_arena *arena, size_t max_rows,
                        size_t threads);

/* Computes out = o(outputs of the states for x), moves the states on and keeps the rows' inputs, under the conditions
 * of fr_attention_run. */
void fr_deltanet_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                     bool ends_rows);

/* ------------------------------------------------------------------------------------------------------------ ffn.c */

/* Computes x += norm(out), and the next products' input, normed = pre_ffn_norm(x), or the input's norm if the parts
 * share it, for the thread's own rows. It needs a barrier after it. */
void fr_ffn_prepare(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* Computes gate = activation(gate) * up, n values. */
void fr_activate(const fr_kernels *kernels, fr_activation activation, float *gate, const float *up, size_t n);

/* Computes gate = activation(gate(normed)) * up(normed), for the thread's own features. */
void fr_ffn_gate(const fr_team *team, const fr_activations *a, const fr_ffn_spec *spec, const fr_ffn_weights *weights);

/* Computes out = down(gate). It begins with a barrier, which serves fr_experts_score too, and needs one after it. */
void fr_ffn_down(const fr_team *team, const fr_activations *a, const fr_ffn_weights *weights);

/* Computes x += norm(out), together with a mixture's branch, for the thread's own rows. */
void fr_ffn_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* -------------------------------------------------------------------------------------------------------- experts.c */

/* Takes a->experts for up to max_rows rows from the arena, or measures it. */
void fr_experts_layout(fr_activations *a, const fr_experts_spec *spec, bool packed, fr_arena *arena, size_t max_rows,
                       size_t threads);

/* Makes one row's inputs of the router and the experts if the mixture is parallel to the feed-forward, from the stream
 * before that; the row's owner calls it. Other mixtures read the feed-forward's input. */
void fr_experts_prepare(const fr_activations *a, const fr_experts_weights *weights, size_t row);

/* Computes the router's products of all rows. It needs a barrier after the rows' preparation. */
void fr_experts_score(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                      const fr_experts_weights *weights);

/* router.c: chooses a row's experts and weights, on one thread of the team that computed the router's products. */
void fr_experts_choose(const fr_activations *a, const fr_experts_spec *spec, const fr_experts_weights *weights,
                       size_t row, size_t thread);

/* Routes the rows and runs their experts, after fr_ffn_down. It has barriers of its own; experts->sum needs one more
 * before it is read. */
void fr_experts_run(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                    const fr_experts_weights *weights);

/* Joins the outputs of the feed-forward and of the experts for one row, in `out`; the row's owner calls it. */
void fr_experts_join(const fr_activations *a, const fr_layer_spec *spec, const fr_experts_weights *weights, size_t row);

/* ------------------------------------------------------------------------------------------- per_layer_embeddings.c */

/* Computes the per-layer embeddings of each row's token, from the embeddings in x. It has barriers of its own, and
 * needs one after it. */
void fr_ple_inputs(const fr_team *team, const fr_activations *a);

/* Computes x += norm(out(gelu(gate(x)) * token)) for layer `index`, with barriers of its own. The stream's rows must
 * be prepared. */
void fr_ple_branch(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t index);

#endif
