/* Gemma 4 as data: configuration, weights, and the pass through its layers that target and assistant share.
 *
 * In: config.json (or GGUF metadata) and tensors of Gemma4ForCausalLM, Gemma4ForConditionalGeneration (text part) or,
 * for the drafter, the text_config of Gemma4AssistantForCausalLM. Out: fr_gemma4 (immutable), fr_gemma4_pass (one batch
 * on its way). Source of the architecture: the published checkpoints and transformers 5.17, models gemma4 and
 * gemma4_assistant. */
#ifndef FR_SRC_GEMMA4_H
#define FR_SRC_GEMMA4_H

#include "src/decoder/attend.h"
#include "src/decoder/kv.h"
#include "src/decoder/weights.h"
#include "src/families/model.h"

#include <stdio.h>

typedef enum fr_layer_kind { FR_SLIDING, FR_FULL, FR_LAYER_KINDS } fr_layer_kind;

typedef struct fr_gemma4_rope {
    bool proportional; /* the first partial * head_dim / 2 angles turn, the rest stand still */
    double theta, partial, factor;
} fr_gemma4_rope;

typedef struct fr_gemma4_layer_config {
    fr_layer_kind kind;
    size_t head_dim, kv_heads;
    bool owns_kv;  /* false: reads the KV of the last owning layer of its kind */
    size_t ffn;
} fr_gemma4_layer_config;

typedef struct fr_gemma4_config {
    size_t vocab, hidden, layers, heads, window, context_limit;
    size_t ple;                            /* width of the per-layer embeddings, 0: none */
    size_t experts, expert_top, expert_ffn; /* 0: dense */
    float eps, softcap;                    /* softcap 0: none */
    bool k_eq_v;                           /* full layers take their values from the key projection */
    fr_gemma4_rope rope[FR_LAYER_KINDS];
    const int32_t *head_order;             /* [vocab] the rows' order that the head would be packed in; NULL: its own */
    fr_gemma4_layer_config *layer;         /* [layers] */
} fr_gemma4_config;

typedef struct fr_gemma4_layer {
    const float *input_norm, *post_attn_norm, *pre_ffn_norm, *post_ffn_norm; /* [hidden] */
    fr_matrix q, k, v, o;           /* [heads * d, hidden], [kv_heads * d, hidden] twice, [hidden, heads * d] */
    const float *q_norm, *k_norm;   /* [head_dim] */
    fr_matrix gate, up, down;       /* [ffn, hidden] twice, [hidden, ffn] */
    float scalar;                   /* multiplies the layer's output */
    fr_matrix ple_gate, ple_out;    /* [ple, hidden], [hidden, ple] */
    const float *post_ple_norm;     /* [hidden] */
    fr_matrix router;               /* [experts, hidden] */
    const float *router_scale;      /* [hidden] */
    const float *expert_scale;      /* [experts] */
    const float *pre_moe_norm, *post_dense_norm, *post_moe_norm; /* [hidden] */
    fr_matrix *expert_in;           /* [2 * experts] gate and up of each: [expert_ffn, hidden] */
    fr_matrix *expert_out;          /* [experts]: [hidden, expert_ffn] */
    size_t kv;                      /* index of the KV layer it reads; an owner also writes it */
} fr_gemma4_layer;

typedef struct fr_gemma4 {
    fr_gemma4_config config;
    fr_gemma4_layer *layers;
    fr_matrix embedding;            /* [vocab, hidden] */
    fr_matrix head;                 /* [vocab, hidden]; the embedding where they are tied */
    bool head_sorted;               /* its rows are in head_order; there is no embedding then */
    fr_matrix ple_embedding;        /* [vocab, layers * ple] */
    fr_matrix ple_projection;       /* [layers * ple, hidden] */
    const float *ple_norm;          /* [ple] */
    const float *norm;              /* [hidden], the final one */
    float *inverse[FR_LAYER_KINDS]; /* rotary frequencies, [widest head_dim of the kind / 2] */
    size_t rope_dim[FR_LAYER_KINDS];
    fr_kv_shape *kv_shapes;         /* one per owning layer */
    size_t kv_count;
    size_t kv_last[FR_LAYER_KINDS]; /* KV layer of the last owner of each kind; SIZE_MAX: none */
    size_t owners;                  /* layers from here on borrow their KV */
    bool packed;                    /* some matrix is */
} fr_gemma4;

/* From config.json or GGUF metadata. assistant: every layer borrows its KV. */
fr_status fr_gemma4_config_read(fr_gemma4_config *config, fr_weights *weights, bool assistant);
fr_status fr_gemma4_config_from_gguf(fr_gemma4_config *config, fr_weights *weights, bool assistant);

/* The last `shared` layers borrow; checks that each finds a cache to borrow, and what heads must divide. where: for
 * error lines. */
fr_status fr_gemma4_config_share(fr_gemma4_config *config, size_t shared, bool assistant, const char *where);
void fr_gemma4_config_free(fr_gemma4_config *config);

/* Layers and widths in words, a line each. */
void fr_gemma4_describe(const fr_gemma4_config *config, FILE *out);

/* Binds all tensors, derives rotary and KV tables. The config is taken over. */
fr_status fr_gemma4_open(fr_gemma4 *net, fr_gemma4_config *config, fr_weights *weights);
void fr_gemma4_close(fr_gemma4 *net);

/* ----------------------------------------------------------------------------------------------------------- a pass */

/* The working rows of a batch. All [rows, width], in one arena; shared by the team. */
typedef struct fr_gemma4_pass {
    const fr_gemma4 *net;
    const fr_kernels *kernels;
    fr_work work;              /* of the products with the rows below */
    fr_kv *kv;
    size_t rows;
    size_t keep;               /* rows before it are run for their K/V alone: none once no later layer has any */
    int64_t position;          /* rotary position of row 0; row r stands at position + r */
    int64_t last;              /* last position that row 0 sees; row r sees last + r */
    size_t span[FR_LAYER_KINDS]; /* positions a row of that kind sees at most, 0: all */

    float *x;       /* [hidden] the residual stream */
    float *normed;  /* [hidden] */
    float *out;     /* [hidden] what a branch adds to the stream */
    float *q;       /* [q_width] queries, then */
    float *attn;    /* [q_width] attention's output */
    float *k, *v;   /* [kv_width] before they are normed and stored */
    float *gate, *up; /* [widest ffn] */
    float *ple;     /* [layers * ple] what each layer is told of its token */
    float *ple_table; /* [layers * ple] room for the table's row */
    float *cosine[FR_LAYER_KINDS], *sine[FR_LAYER_KINDS]; /* [rope_dim / 2] */
    size_t q_width, kv_width, ffn_width;

    fr_attend_room attend;
    struct fr_moe *moe; /* NULL for a dense model */
} fr_gemma4_pass;

/* Takes the working rows of up to max_rows from the arena, or measures them. input_width: columns of the widest product
 * outside the layers that uses the pass's work, 0 if none is wider than the stream. */
void fr_gemma4_pass_layout(fr_gemma4_pass *pass, const fr_gemma4 *net, const fr_kernels *kernels, fr_arena *arena,
                           size_t max_rows, size_t input_width, size_t threads);

/* cos and sin of the rows' angles. By the whole team; rows of the thread. */
void fr_gemma4_rotations(const fr_team *team, fr_gemma4_pass *pass);

/* One decoder layer over pass->x, in place. Called by the whole team, synchronized before; the stream is complete for
 * each row's owner (fr_rows_part) on return, for others after the next barrier. The last layer that owns a KV narrows
 * the pass to the rows from `keep` on. pass is the thread's own copy. */
void fr_gemma4_layer_run(const fr_team *team, fr_gemma4_pass *pass, size_t index);

/* ----------------------------------------------------------------------------------------------- mixture of experts */

/* The routed branch's working memory: a pair is one row sent to one expert. */
typedef struct fr_moe {
    fr_work work;      /* of the products with the rows below */
    float *scores;     /* [rows, experts] */
    float *routed;     /* [rows, hidden] the router's input */
    float *normed;     /* [rows, hidden] the experts' input */
    float *input;      /* [pairs, hidden] that input, in pair order */
    float *inner;      /* [pairs, 2 * expert_ffn] gate and up */
    float *output;     /* [pairs, hidden] */
    float *sum;        /* [rows, hidden] */
    int32_t *row;      /* [pairs] sorted by expert, then row */
    float *weight;     /* [pairs] */
    size_t *first;     /* [experts + 1] first pair of each expert */
    int32_t *chosen;   /* [rows, expert_top] */
    float *chosen_weight; /* [rows, expert_top] */
    int32_t *room;     /* [experts] for top-k */
    fr_expert_use use; /* so far */
} fr_moe;

void fr_moe_layout(fr_gemma4_pass *pass, fr_arena *arena, size_t max_rows, size_t threads);

/* Row by row, by the row's owner: what router and experts read, from the stream before the feed-forward. */
void fr_moe_prepare(const fr_gemma4_pass *pass, const fr_gemma4_layer *layer, size_t row);

/* The router's scores of all rows, by the team's outs. Needs a barrier between it and fr_moe_prepare. */
void fr_moe_score(const fr_team *team, fr_gemma4_pass *pass, const fr_gemma4_layer *layer);

/* Routing and experts: needs a barrier between it and fr_moe_score; has barriers of its own, so the whole team calls
 * it. moe->sum needs one more barrier before it is read. */
void fr_moe_run(const fr_team *team, fr_gemma4_pass *pass, const fr_gemma4_layer *layer);

#endif
