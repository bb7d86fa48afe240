/* The activations of a batch on its way through a trunk: all [rows, width], in one arena, shared by the team.
 *
 * In: a trunk, how many rows at most. Out: memory for them. Each thread runs with a copy of the struct of its own,
 * whose pointers all point at the same rows. */
#ifndef FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H
#define FR_SRC_ENGINE_LAYERS_ACTIVATIONS_H

#include "src/engine/layers/attend.h"
#include "src/engine/layers/layer.h"

/* What a mixture's forwards chose since its activations were made, summed over their layers. */
typedef struct fr_expert_use {
    uint64_t all;   /* experts that there were */
    uint64_t read;  /* that some row chose, whose weights were read */
    uint64_t pairs; /* of a row and an expert that it chose */
} fr_expert_use;

/* A mixture's activations: a pair is one row sent to one expert. */
typedef struct fr_experts_rows {
    fr_workspace workspace; /* of the products with the rows below */
    float *scores;          /* [rows, experts] the router's products, then what they say */
    float *routed;          /* [rows, hidden] the router's input, where the mixture is apart */
    float *normed;          /* [rows, hidden] the experts' input, the same */
    float *input;           /* [pairs, hidden] that input, in pair order */
    float *inner;           /* [pairs, 2 * width] gate and up */
    float *output;          /* [pairs, hidden] */
    float *sum;             /* [rows, hidden] */
    int32_t *row;           /* [pairs] sorted by expert, then row */
    float *weight;          /* [pairs] */
    size_t *first;          /* [experts + 1] first pair of each expert */
    int32_t *chosen;        /* [rows, top] */
    float *chosen_weight;   /* [rows, top] */
    float *choices;         /* [threads, 2, experts] scores that choose, and groups' */
    int32_t *scratch;       /* [threads, 2, experts] for top-k, and groups */
    fr_expert_use use;      /* so far */
} fr_experts_rows;

/* The rows of a batch that are of one timeline: a chain behind what it has. */
typedef struct fr_conv_span {
    fr_kv *kv;
    int32_t last;    /* the row at its end; those before are its parents */
    size_t position; /* of the first */
} fr_conv_span;

/* What layers that convolve over positions have of a batch's rows (conv_inputs.c). */
typedef struct fr_conv_rows {
    float *input; /* [rows, width] of the convolution, and what else a timeline's ring keeps of a position */
    size_t width;
    fr_conv_span *spans; /* [rows] of the batch, span_count of them */
    size_t span_count;
} fr_conv_rows;

/* Activations of gated DeltaNet. */
typedef struct fr_deltanet_rows {
    float *mixed; /* [rows, channels] queries, keys and values, the convolution's output */
    float *z;     /* [rows, width] gates on what is seen */
    float *seen;  /* [rows, width] what the states say */
    float *fused;        /* [rows, channels + width] inputs and z as one projection gives them; or nothing */
    float *gates;        /* [rows, 2 * value heads] b and a likewise */
    size_t channels, width;

    float *rerun;          /* [threads, FR_STEP_MAX, rerun_width] keys and values of positions that are run again */
    float *strips;         /* [threads, strip_size] part of a state that is not kept */
    fr_deltanet_row *runs; /* [threads, run_size] a head's rows */
    size_t rerun_width, strip_size, run_size;
} fr_deltanet_rows;

typedef struct fr_activations {
    const fr_trunk *trunk;
    const fr_kernels *kernels;
    fr_workspace workspace; /* of the products with the rows below */
    fr_batch batch;
    size_t keep;  /* rows before it are run for their K/V alone: none once no later layer has any */
    bool reads_ahead; /* memory does not hold all experts: chosen ones are asked for before they are read */

    const fr_aux_layers *aux_layers; /* NULL: none */
    float *aux_hidden;               /* [aux_layers, hidden] those layers' inputs */
    const float *input; /* what attention's projections read instead of the stream, normed; NULL: nothing else */

    float *x;       /* [hidden] the residual stream */
    float *normed;  /* [hidden] */
    float *out;     /* [hidden] what a branch adds to the stream */
    float *q;       /* [q_width] queries, then */
    float *attn;    /* [q_width] attention's output */
    float *k, *v;   /* [kv_width] before they are stored */
    float *q_a;     /* [q_a_width] latent attention's queries before they are heads */
    float *heads;   /* [heads_width] its heads: nope and rotary parts, then what they make of latents */
    float *gate, *up; /* [ffn_width] */
    float *token;     /* [layers * ple_width] what each layer is told of its token */
    float *ple_table; /* [layers * ple_width] the table's row */
    float *cosine[FR_ROPES], *sine[FR_ROPES]; /* [dims / 2] */
    size_t q_width, kv_width, q_a_width, heads_width, ffn_width;

    fr_attend_workspace attend;
    fr_workspace head_products; /* of latent attention's heads: a thread has head_rows rows of its own */
    size_t head_rows;
    fr_experts_rows *experts;   /* NULL: no mixture */
    fr_conv_rows *conv;         /* NULL: no layer that convolves */
    fr_deltanet_rows *deltanet; /* NULL: none with a state */
    float *gates;               /* [rows, 3 * hidden] of short convolutions */
    uint8_t *lent; /* [rows, lent_bytes of stages] keys and values on their way to other ranks */
} fr_activations;

/* Takes the rows of up to max_rows from the arena, or measures them. input_width: columns of the widest product outside
 * the layers that uses the same workspace, 0 if none is wider than the stream. packed: some matrix is. */
void fr_activations_layout(fr_activations *a, const fr_trunk *trunk, const fr_kernels *kernels, bool packed,
                           fr_arena *arena, size_t max_rows, size_t input_width, size_t threads);

/* Leaves the rows from `keep` on: where the activations that outlive this point begin. */
void fr_activations_narrow(fr_activations *a);

#endif
