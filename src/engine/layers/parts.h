/* The parts of a decoder layer, each run by the whole team over activations.
 *
 * In: a layer's spec and weights, the activations as the previous part left them. Out: the activations. The comments
 * here say what each part needs before it and what it leaves; trunk.c builds layers from them. Rows are partitioned by
 * fr_part_rows, features by fr_part_features, so that each thread reads data that it wrote itself.
 *
 * A function whose name ends in _layout takes the activations of a part from an arena. If the arena only counts bytes
 * (base/arena.h), the function only adds up the sizes. */
#ifndef FR_SRC_ENGINE_LAYERS_PARTS_H
#define FR_SRC_ENGINE_LAYERS_PARTS_H

#include "src/engine/layers/activations.h"
#include "src/engine/weights/partition.h"

/* ----------------------------------------------------------------------------------------------------------- norm.c */

/* Computes y, the norm of a hidden row. The trunk's spec says which kind of norm it is. If weight is NULL, y is a copy
 * of the row. bias may be NULL, and y may be x. */
void fr_norm_row(const fr_activations *a, float *y, const float *x, const float *weight, const float *bias);

/* ------------------------------------------------------------------------------------------------------ attention.c */

/* Computes cosines and sines of the rotary angles, for the thread's own rows. */
void fr_rotations(const fr_team *team, const fr_activations *a);

/* Computes normed = input_norm(x) for the thread's own rows, and prepares these rows for products of `width` columns.
 * If a->input is set, no norm is computed, and the rows of a->input are prepared. Every layer that mixes positions
 * begins with this function. A barrier is needed after the call. */
void fr_input_norm(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t width);

/* Computes out = o(attention(x)), and stores K/V of the rows in the cache. Before the call, each row of the stream must
 * be complete for the thread that owns the row. A barrier is needed after the call. If ends_rows is true, no later
 * layer has K/V, so the activations are reduced to the rows from `keep` on. */
void fr_attention_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                      bool ends_rows);

/* Computes K/V of rows from a->input and stores K/V. Nothing else is computed of these rows. The rows of a->input must
 * be prepared. Barriers are needed before and after the call. The layer must norm its keys head by head. */
void fr_attention_store(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* Gives the split of query heads among ranks. Each head has `each` columns. The split follows from the number of KV
 * heads in the batch's caches. */
fr_split fr_attention_split(const fr_activations *a, const fr_attention_spec *spec, size_t each);

/* Computes attn = attention(q, cache) for all rows and the rank's heads. Barriers are needed before and after the
 * call. sinks: [heads], or NULL. */
void fr_attention_attend(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                         const float *sinks);

/* ------------------------------------------------------------------------------------------------------------ mla.c */

/* Takes the activations of latent attention for up to max_rows rows from the arena. If no layer of the trunk has latent
 * attention, nothing is taken. */
void fr_mla_layout(fr_activations *a, bool packed, fr_arena *arena, size_t max_rows, size_t threads);

/* Runs latent attention, under the same conditions as fr_attention_run. */
void fr_mla_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                bool ends_rows);

/* ---------------------------------------------------------------------------------------------------- conv_inputs.c */

/* Takes a->conv for up to max_rows rows from the arena. */
void fr_conv_layout(fr_activations *a, fr_recurrent_shape shape, fr_arena *arena, size_t max_rows);

/* Finds the rows of each timeline in a batch. One thread calls this before the first layer is run; a barrier is needed
 * after the call. */
void fr_conv_begin(const fr_activations *a);

/* Collects the inputs that a convolution at a position reads, at most FR_CONV_KERNEL_MAX, the oldest first. Inputs of
 * the batch's rows are taken from the batch, and earlier inputs from the ring. row: the batch's row that has the newest
 * input; -1 if the newest input is in the ring. An input before position 0 is NULL. */
void fr_conv_collect(const fr_activations *a, const fr_recurrent *ring, const fr_recurrent_layer *layer,
                     size_t position, int32_t row, const float **inputs);

/* Both functions are for recurrent layer `state`. fr_conv_save copies the last inputs before each point's position to
 * the page of that point (fr_recurrent_point). fr_conv_keep writes the inputs that the next forward will read into the
 * rings, over earlier inputs. Timelines are divided among threads. All inputs must have been computed before the
 * calls. */
void fr_conv_save(const fr_team *team, const fr_activations *a, size_t state);
void fr_conv_keep(const fr_team *team, const fr_activations *a, size_t state);

/* ----------------------------------------------------------------------------------------------------- short_conv.c */

/* Gives the shape of the state that a timeline keeps for a short convolution of `hidden` channels. */
fr_recurrent_shape fr_short_conv_shape(const fr_short_conv_spec *spec, size_t hidden);

/* Takes a->conv and a->gates for up to max_rows rows from the arena. */
void fr_short_conv_layout(fr_activations *a, const fr_short_conv_spec *spec, fr_arena *arena, size_t max_rows);

/* Computes out = out(c * conv(b * x)), under the same conditions as fr_attention_run. */
void fr_short_conv_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                       bool ends_rows);

/* ------------------------------------------------------------------------------------------------------- deltanet.c */

/* fr_deltanet_shape gives the shape of the state that a timeline keeps for a layer of gated DeltaNet.
 * fr_deltanet_split gives the split of value heads among ranks; each head has `each` columns. */
fr_recurrent_shape fr_deltanet_shape(const fr_deltanet_spec *spec);
fr_split fr_deltanet_split(const fr_deltanet_spec *spec, size_t each);

/* Takes a->conv and a->deltanet for up to max_rows rows from the arena. */
void fr_deltanet_layout(fr_activations *a, const fr_deltanet_spec *spec, fr_arena *arena, size_t max_rows,
                        size_t threads);

/* Moves the states forward over the rows of x, and multiplies the states' outputs by the layer's output matrix; the
 * product is in a->out. The function also stores what each row changes in the states, so that the states can go back if
 * rows are rejected. The conditions of fr_attention_run hold here too. */
void fr_deltanet_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                     bool ends_rows);

/* ---------------------------------------------------------------------------------------------------------- mamba.c */

/* fr_mamba_shape gives the shape of the state that a timeline keeps for a layer of Mamba-2. fr_mamba_split gives the
 * split of the layer's heads among ranks; each head has `each` columns. */
fr_recurrent_shape fr_mamba_shape(const fr_mamba_spec *spec);
fr_split fr_mamba_split(const fr_mamba_spec *spec, size_t each);

/* Takes a->conv and a->mamba for up to max_rows rows from the arena. */
void fr_mamba_layout(fr_activations *a, const fr_layer_spec *spec, fr_arena *arena, size_t max_rows, size_t threads);

/* Moves the states forward over the rows of x, and multiplies the states' outputs by the layer's output matrix; the
 * product is in a->out. The function also stores what each row changes in the states, so that the states can go back if
 * rows are rejected. The conditions of fr_attention_run hold here too. */
void fr_mamba_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                  bool ends_rows);

/* Runs fr_mamba_run and fr_attention_run on the same input, and puts the sum of their outputs in a->out. */
void fr_mamba_run_beside(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                         bool ends_rows);

/* ------------------------------------------------------------------------------------------------------------ ffn.c */

/* fr_mixer_join computes x += norm(out) for the thread's own rows; `out` is the output of the part that mixes
 * positions. fr_ffn_prepare first does the same, if the layer has such a part. Then it computes the input of the next
 * products. That is normed = pre_ffn_norm(x), or the norm of the layer's input if attention and feed-forward share that
 * norm. A barrier is needed after fr_ffn_prepare. */
void fr_mixer_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);
void fr_ffn_prepare(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* Computes gate = activation(gate) * up, n values. */
void fr_activate(const fr_kernels *kernels, fr_activation activation, float *gate, const float *up, size_t n);

/* Computes x = activation(x), n values, for a feed-forward without a gate. ones: room for n floats. */
void fr_activate_ungated(const fr_kernels *kernels, fr_activation activation, float *x, float *ones, size_t n);

/* Computes xIELU of n values, in place: alpha_p x^2 + beta x for x > 0, otherwise alpha_n (exp(min(x, eps)) - 1 - x) +
 * beta x. The layer's numbers (fr_ffn_spec.xielu) are alpha_p, alpha_n, beta and eps. room: n floats. */
void fr_activate_xielu(const fr_kernels *kernels, const float *numbers, float *x, float *room, size_t n);

/* Computes gate = activation(gate(normed)) * up(normed), or activation(up(normed)) if there is no gate, for the
 * thread's own features. */
void fr_ffn_gate(const fr_team *team, const fr_activations *a, const fr_ffn_spec *spec, const fr_ffn_weights *weights);

/* Computes out = down(gate). The function begins with a barrier, which also completes the results of fr_experts_score.
 * Another barrier is needed before `out` is read. */
void fr_ffn_down(const fr_team *team, const fr_activations *a, const fr_ffn_weights *weights);

/* For the thread's own rows, computes x += norm(out). If the layer has a mixture of experts, `out` includes the
 * experts' output. */
void fr_ffn_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer);

/* -------------------------------------------------------------------------------------------------------- experts.c */

/* Takes a->experts for up to max_rows rows from the arena. */
void fr_experts_layout(fr_activations *a, const fr_experts_spec *spec, bool packed, fr_arena *arena, size_t max_rows,
                       size_t threads);

/* Computes the inputs of the router and of the experts for one row, if the mixture is parallel to the feed-forward.
 * These inputs are made from the stream as it is before the feed-forward. Other mixtures read the feed-forward's input.
 * The thread that owns the row calls this function. */
void fr_experts_prepare(const fr_activations *a, const fr_experts_weights *weights, size_t row);

/* Computes the router's products of all rows. A barrier is needed between fr_experts_prepare and this function. */
void fr_experts_score(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                      const fr_experts_weights *weights);

/* Chooses a row's experts and weights (router.c). A single thread calls this, after the team has computed the router's
 * products. */
void fr_experts_choose(const fr_activations *a, const fr_experts_spec *spec, const fr_experts_weights *weights,
                       size_t row, size_t thread);

/* Chooses experts for the rows and runs them, after fr_ffn_down. The function has barriers of its own. One more barrier
 * is needed before experts->sum is read. */
void fr_experts_run(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                    const fr_experts_weights *weights);

/* Adds up the outputs of the feed-forward and of the experts for one row, in `out`. The thread that owns the row calls
 * this function. */
void fr_experts_join(const fr_activations *a, const fr_layer_spec *spec, const fr_experts_weights *weights, size_t row);

/* ------------------------------------------------------------------------------------------- per_layer_embeddings.c */

/* Computes the per-layer embeddings of each row's token, from the embeddings in x. The function has barriers of its
 * own. Another barrier is needed after the call. */
void fr_ple_inputs(const fr_team *team, const fr_activations *a);

/* Computes x += norm(out(gelu(gate(x)) * token)) for layer `index`; token is the layer's embedding of the row's token.
 * The function has barriers of its own. The stream's rows must be prepared. */
void fr_ple_branch(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t index);

#endif
