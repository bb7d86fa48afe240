/* The activations of a batch in a trunk. Each kind is an array [rows, width]. All are in one arena, and the team shares
 * them.
 *
 * In: a trunk, the maximum number of rows. Out: memory for them. Each thread runs with its own copy of the struct, and
 * all copies point to the same rows. */
#ifndef FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H
#define FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H

#include "src/engine/layers/attend.h"
#include "src/engine/layers/layer.h"

/* Counts how the experts of mixtures were used, summed over the layers and over all forwards with these activations. */
typedef struct fr_expert_use {
    uint64_t all;   /* number of experts in the layers that were run, counted again in each run */
    uint64_t read;  /* number of experts that at least one row chose, so that their weights were read */
    uint64_t pairs; /* number of pairs of a row and an expert that the row chose */
} fr_expert_use;

/* A mixture's activations. A pair is one row that is sent to one expert. */
typedef struct fr_experts_rows {
    fr_workspace workspace; /* memory for the products with the rows of this struct */
    float *scores;          /* [rows, experts] first the router's products, later the scores that are computed from
                             * them */
    float *routed;          /* [rows, hidden] the router's input, if the mixture runs in parallel with the
                             * feed-forward */
    float *normed;          /* the experts' input. If the mixture runs in parallel with the feed-forward, it is [rows,
                             * hidden]. If the experts have a latent, it is [rows, latent]. NULL: the experts read the
                             * feed-forward's input */
    float *latent;          /* [rows, latent] the weighted sums of the experts' outputs, if the experts work on a
                             * latent */
    float *input;           /* [pairs, hidden] the experts' input, in the order of the pairs */
    float *inner;           /* [pairs, 2 * width] outputs of gate and up */
    float *output;          /* [pairs, hidden] for each pair, its expert's output */
    float *sum;             /* [rows, hidden] the weighted sum of the outputs of each row's experts */
    const fr_adapter_set **adapters; /* [pairs] the adapters of the pairs' rows, if the batch has any */
    int32_t *row;                    /* [pairs] the row of each pair; pairs are sorted by expert, then by row */
    float *weight;                   /* [pairs] the weight of the pair's expert in the sum of the pair's row */
    size_t *first;                   /* [experts + 1] the first pair of each expert, and the end of the last expert's
                                      * pairs */
    int32_t *chosen;                 /* [rows, top_k] the experts that each row has chosen */
    float *chosen_weight;            /* [rows, top_k] the weights of these experts */
    float *choices;    /* [threads, 2, experts] the scores by which experts are chosen, and the scores of groups */
    int32_t *scratch;  /* [threads, 2, experts] memory for choosing the best experts and the best groups */
    fr_expert_use use; /* counts of the experts that forwards have used so far */
} fr_experts_rows;

/* The rows of a batch that belong to one timeline. They form a chain, which continues the timeline's earlier
 * positions. */
typedef struct fr_conv_span {
    fr_kv *kv;
    int32_t last;    /* the last row of the chain; the other rows are found through `parent` */
    size_t position; /* position of the first row of the chain */
} fr_conv_span;

/* The rows of a batch, for layers with a convolution over positions (conv_inputs.c). */
typedef struct fr_conv_rows {
    float *input; /* [rows, width] for each row the convolution's input, and after it the other values that a timeline's
                   * ring stores for a position */
    size_t width;
    fr_conv_span *spans; /* [rows] the rows of each timeline, in the first span_count entries */
    size_t span_count;
} fr_conv_rows;

/* Activations of gated DeltaNet. */
typedef struct fr_deltanet_rows {
    float *mixed; /* [rows, channels] the convolution's output: queries, keys and values */
    float *z;     /* [rows, width] the gates that multiply the outputs of the states */
    float *seen;  /* [rows, width] the outputs that are computed from the states */
    float *fused; /* [rows, channels + width] the convolution's inputs and z, if one projection makes both; otherwise
                   * NULL */
    float *gates; /* [rows, 2 * value heads] b and a of each value head, from which betas and decays are made, if one
                   * projection makes both; otherwise NULL */
    float *low_a, *low_z; /* [rows, value_dim] for Kimi Delta Attention, where decays and gates are each made by two
                           * matrices: the outputs of the first matrix */
    size_t channels, width;

    float *rerun;          /* [threads, FR_STEP_MAX, rerun_width] keys and values of positions that a thread runs
                            * again */
    float *strips;         /* [threads, strip_size] scratch memory of the kernel for states after rows that may be
                            * rejected */
    fr_deltanet_row *runs; /* [threads, run_size] the rows of the head that a thread is running */
    size_t rerun_width, strip_size, run_size;
} fr_deltanet_rows;

/* Activations of Mamba-2. */
typedef struct fr_mamba_rows {
    float *mixed;  /* [rows, channels] the convolution's output: values, keys and queries */
    float *z;      /* [rows, width] the gates that multiply the outputs of the states */
    float *seen;   /* [rows, width] the outputs that are computed from the states */
    float *beside; /* [rows, hidden] Mamba-2's output in a layer that also has attention, to which attention's output is
                    * added; NULL: there is no such layer */
    size_t channels, width;

    float *rerun;          /* [threads, FR_STEP_MAX, rerun_width] keys and values of positions that a thread runs
                            * again */
    float *strips;         /* [threads, strip_size] scratch memory of the kernel for states after rows that may be
                            * rejected */
    fr_deltanet_row *runs; /* [threads, run_size] a head's rows */
    size_t rerun_width, strip_size, run_size;
} fr_mamba_rows;

typedef struct fr_activations {
    const fr_trunk *trunk;
    const fr_kernels *kernels;
    fr_workspace workspace; /* memory for the products with the rows of this struct */
    fr_batch batch;
    size_t keep;      /* rows before this row are run only for their keys and values; 0 once no later layer has keys and
                       * values */
    bool reads_ahead; /* memory does not hold all experts, so the operating system is asked to read chosen experts in
                       * advance */

    const fr_adapter_set **adapters; /* [rows] the adapters of each row, if the batch has any */
    const fr_aux_layers *aux_layers; /* NULL: none */
    float *aux_hidden;               /* [aux_layers, hidden] the inputs of the layers in aux_layers */
    /* the input of attention's projections; NULL: it is `normed` */
    const float *input;
    const fr_sight *sights; /* [rows] the positions that each row sees in attention; NULL: a row sees all positions up
                             * to its own */

    float *x;         /* [hidden] the residual stream */
    float *normed;    /* [hidden] the residual stream after a norm, which is the input of the next products */
    float *out;       /* [hidden] the output of a branch, which is added to the residual stream */
    float *q;         /* [q_width] queries; if there are gates, each head's query is followed by the head's gate */
    float *attn;      /* [q_width] attention's output */
    float *own_gates; /* [own_gates_width] gates of heads that a separate matrix makes */
    float *k, *v;     /* [kv_width] keys and values, before they are stored */
    float *q_a;       /* [q_a_width] the latents of queries, in latent attention */
    float *heads;     /* [heads_width] for latent attention: first each head's query, the part that is not rotated and
                       * then the rotated part; later the heads' outputs */
    float *gate, *up; /* [ffn_width] outputs of the feed-forward's first products */
    float *token;     /* [layers * ple_width] the per-layer embeddings of the row's token */
    float *ple_table; /* [layers * ple_width] the token's row in the table of per-layer embeddings */
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
    fr_deltanet_rows *deltanet; /* rows for gated DeltaNet; NULL: no layer has it */
    fr_mamba_rows *mamba;       /* rows for Mamba-2; NULL: no layer has it */
    float *gates;               /* [rows, 3 * hidden] the gates of short convolutions */
    uint8_t *lent;              /* [rows, lent_bytes of stages] keys and values that are sent to other ranks */
} fr_activations;

/* Takes memory for up to max_rows rows from the arena, which may be a measuring one (base/arena.h). input_width: number
 * of columns of the widest product outside of the layers that uses the same workspace, or 0 if that product is not
 * wider than the residual stream. packed: at least one matrix is packed. */
void fr_activations_layout(fr_activations *a, const fr_trunk *trunk, const fr_kernels *kernels, bool packed,
                           fr_arena *arena, size_t max_rows, size_t input_width, size_t threads);

/* Drops the rows before `keep` from the activations, because no later layer needs them. */
void fr_activations_narrow(fr_activations *a);

#endif
