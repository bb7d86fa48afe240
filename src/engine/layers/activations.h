/* The activations of a batch in a trunk: each is [rows, width], all are in one arena, and the team shares them.
 *
 * In: a trunk, the maximum number of rows. Out: memory for them. Each thread runs with its own copy of the struct; all
 * copies point at the same rows. */
#ifndef FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H
#define FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H

#include "src/engine/layers/attend.h"
#include "src/engine/layers/layer.h"

/* Counts of the experts that all forwards have used since these activations were made, summed over the layers. */
typedef struct fr_expert_use {
    uint64_t all;   /* all experts of the layers that were run, counted once for each run */
    uint64_t read;  /* experts that at least one row chose, so that their weights were read */
    uint64_t pairs; /* pairs of a row and an expert that the row chose */
} fr_expert_use;

/* A mixture's activations. A pair is one row that is sent to one expert. */
typedef struct fr_experts_rows {
    fr_workspace workspace; /* memory for the products with the rows below */
    float *scores;          /* [rows, experts] the router's products, then the scores */
    float *routed;          /* [rows, hidden] the router's input, if the mixture is parallel to the feed-forward */
    float *normed;          /* the experts' input: [rows, hidden] if the mixture is parallel to the feed-forward, [rows,
                             * latent] if it has a latent; NULL: the feed-forward's input */
    float *latent;          /* [rows, latent] the weighted sums of the experts' outputs, if the experts have a
                             * latent */
    float *input;           /* [pairs, hidden] the experts' input, in pair order */
    float *inner;           /* [pairs, 2 * width] gate and up */
    float *output;          /* [pairs, hidden] the expert's output for each pair */
    float *sum;             /* [rows, hidden] the weighted sum of the outputs of each row's experts */
    const fr_adapter_set **adapters; /* [pairs] the adapters of the pairs' rows, if the batch has any */
    int32_t *row;                    /* [pairs] rows of the pairs, which are sorted by expert, then row */
    float *weight;                   /* [pairs] the weight of the pair's expert in the row's sum */
    size_t *first;                   /* [experts + 1] first pair of each expert */
    int32_t *chosen;                 /* [rows, top_k] the experts that each row has chosen */
    float *chosen_weight;            /* [rows, top_k] the weights of these experts */
    float *choices;    /* [threads, 2, experts] the scores that choose experts, and the scores of groups */
    int32_t *scratch;  /* [threads, 2, experts] room for top-k of experts, and of groups */
    fr_expert_use use; /* the counts of used experts so far */
} fr_experts_rows;

/* Rows of a batch that belong to one timeline. They form a chain that follows the timeline's earlier positions. */
typedef struct fr_conv_span {
    fr_kv *kv;
    int32_t last;    /* last row of the chain; the rows before it are found through `parent` */
    size_t position; /* position of the chain's first row */
} fr_conv_span;

/* A batch's rows for layers that convolve over positions (conv_inputs.c). */
typedef struct fr_conv_rows {
    float *input; /* [rows, width] for each row the convolution's input, and after it the other values that a
                   * timeline's ring keeps of a position */
    size_t width;
    fr_conv_span *spans; /* [rows] the rows of each timeline; the first span_count spans are in use */
    size_t span_count;
} fr_conv_rows;

/* Activations of gated DeltaNet. */
typedef struct fr_deltanet_rows {
    float *mixed; /* [rows, channels] the convolution's output: queries, keys and values */
    float *z;     /* [rows, width] the gates of the states' outputs */
    float *seen;  /* [rows, width] the outputs of the states */
    float *fused; /* [rows, channels + width] the convolution's inputs and z; NULL if these have a projection each */
    float *gates; /* [rows, 2 * value heads] the projections b and a of each value head, from which betas and decays are
                   * made; NULL if b and a have a projection each */
    float *low_a, *low_z; /* [rows, value_dim] in Kimi Delta Attention: inputs of the second matrices that make decays
                           * and gates */
    size_t channels, width;

    float *rerun;          /* [threads, FR_STEP_MAX, rerun_width] keys and values of positions that are run again */
    float *strips;         /* [threads, strip_size] the kernel's scratch, in which it computes the state after
                            * rows that may be rejected */
    fr_deltanet_row *runs; /* [threads, run_size] rows of the head that a thread runs */
    size_t rerun_width, strip_size, run_size;
} fr_deltanet_rows;

/* Activations of Mamba-2. */
typedef struct fr_mamba_rows {
    float *mixed;  /* [rows, channels] the convolution's output: values, keys and queries */
    float *z;      /* [rows, width] the gates of the states' outputs */
    float *seen;   /* [rows, width] the outputs of the states */
    float *beside; /* [rows, hidden] Mamba-2's output in a layer that has attention too; attention's output is added to
                    * it. NULL: there is no such layer */
    size_t channels, width;

    float *rerun;          /* [threads, FR_STEP_MAX, rerun_width] keys and values of positions that are run again */
    float *strips;         /* [threads, strip_size] the kernel's scratch, in which it computes the state after
                            * rows that may be rejected */
    fr_deltanet_row *runs; /* [threads, run_size] a head's rows */
    size_t rerun_width, strip_size, run_size;
} fr_mamba_rows;

typedef struct fr_activations {
    const fr_trunk *trunk;
    const fr_kernels *kernels;
    fr_workspace workspace; /* memory for the products with the rows below */
    fr_batch batch;
    size_t keep;      /* rows before this one are run only for their K/V; 0 once no later layer has K/V */
    bool reads_ahead; /* memory does not hold all experts, so the system is asked to read chosen ones in advance */

    const fr_adapter_set **adapters; /* [rows] the adapters of each row, if the batch has any */
    const fr_aux_layers *aux_layers; /* NULL: none */
    float *aux_hidden;               /* [aux_layers, hidden] the inputs of the layers in aux_layers */
    /* the input of attention's projections; NULL: it is the normed stream */
    const float *input;
    const fr_sight *sights; /* [rows] the positions that attention sees; NULL: a row sees all positions up to its
                             * own */

    float *x;         /* [hidden] the residual stream */
    float *normed;    /* [hidden] the stream after a norm: the input of the next products */
    float *out;       /* [hidden] the output of a branch, which is added to the stream */
    float *q;         /* [q_width] queries, each followed by its gate if there are gates */
    float *attn;      /* [q_width] attention's output */
    float *own_gates; /* [own_gates_width] the gates of heads that come from a matrix of their own */
    float *k, *v;     /* [kv_width] keys and values, before they are stored */
    float *q_a;       /* [q_a_width] the latents of queries, in latent attention */
    float *heads;     /* [heads_width] for latent attention: first the heads' queries, with nope and rotary parts;
                       * later the heads' outputs */
    float *gate, *up; /* [ffn_width] outputs of the feed-forward's first products */
    float *token;     /* [layers * ple_width] the per-layer embeddings of the row's token */
    float *ple_table; /* [layers * ple_width] the row of the token in the table of per-layer embeddings */
    float *cosine[FR_ROPES], *sine[FR_ROPES]; /* [dims / 2] cosines and sines of the rotary angles */
    size_t q_width, own_gates_width, kv_width, q_a_width, heads_width, head_gates_width, ffn_width;

    /* [head_gates_width] the gates of latent attention's heads; NULL: no layer has such gates */
    float *head_gates;

    fr_attend_workspace attend;
    /* memory for the products of latent attention's heads; each thread has head_rows rows of its own */
    fr_workspace head_products;
    size_t head_rows;
    fr_experts_rows *experts;   /* NULL: there is no mixture */
    fr_conv_rows *conv;         /* NULL: no layer convolves */
    fr_deltanet_rows *deltanet; /* NULL: there is no layer of gated DeltaNet */
    fr_mamba_rows *mamba;       /* NULL: there is no layer of Mamba-2 */
    float *gates;               /* [rows, 3 * hidden] the gates of short convolutions */
    uint8_t *lent;              /* [rows, lent_bytes of stages] keys and values that are sent to other ranks */
} fr_activations;

/* Takes room for up to max_rows rows from the arena, which may be a measuring one (base/arena.h). input_width: columns
 * of the widest product outside of the layers that uses the same workspace; 0 if that is not wider than the stream.
 * packed: at least one matrix is packed. */
void fr_activations_layout(fr_activations *a, const fr_trunk *trunk, const fr_kernels *kernels, bool packed,
                           fr_arena *arena, size_t max_rows, size_t input_width, size_t threads);

/* Drops the rows before `keep` from the activations, because no later layer needs them. */
void fr_activations_narrow(fr_activations *a);

#endif
