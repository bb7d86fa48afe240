/* GLM as data: configuration, weights, and the pass through its layers that target and MTP layer share.
 *
 * In: config.json and tensors of GlmOcrForConditionalGeneration (text part), or llama.cpp's GGUF of it (architecture
 * "glm4"). Out: fr_glm (immutable), fr_glm_pass (one batch on its way). Source of the architecture: the published
 * checkpoint and transformers 5.17, model glm_ocr. */
#ifndef FR_SRC_GLM_H
#define FR_SRC_GLM_H

#include "src/decoder/attend.h"
#include "src/families/chained.h"

typedef struct fr_glm_config {
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context_limit;
    size_t mtp_layers; /* behind the others */
    size_t rotary;     /* of a head's values, those that turn: the first */
    bool halves; /* value i turns with i + rotary / 2, as llama.cpp orders the rows; else neighbours 2i and 2i + 1 */
    size_t sections[FR_AXES]; /* how many of the rotary / 2 angles follow each axis, in this order */
    double theta;
    float eps;
    int32_t image_token; /* what stands in the ids for a row of an image; -1: none */
} fr_glm_config;

typedef struct fr_glm_layer {
    const float *input_norm, *post_attn_norm, *pre_ffn_norm, *post_ffn_norm; /* [hidden] */
    fr_matrix q, k, v, o; /* [heads * d, hidden], [kv_heads * d, hidden] twice, [hidden, heads * d] */
    fr_matrix gate_up[2]; /* [ffn, hidden] each */
    fr_matrix down;       /* [hidden, ffn] */
} fr_glm_layer;

typedef struct fr_glm {
    fr_glm_config config;
    fr_glm_layer *layers;
    fr_matrix embedding;    /* [vocab, hidden] */
    fr_matrix head;         /* [vocab, hidden]; the embedding where they are tied */
    const float *norm;      /* [hidden], the final one */
    float *inverse;         /* [rotary / 2] rotary frequencies */
    fr_kv_shape *kv_shapes; /* [layers] */
} fr_glm;

/* From config.json or GGUF metadata. */
fr_status fr_glm_config_read(fr_glm_config *config, const fr_weights *weights);

/* Binds all tensors but the MTP layer's, derives rotary and KV tables. */
fr_status fr_glm_open(fr_glm *net, const fr_glm_config *config, fr_weights *weights);
void fr_glm_close(fr_glm *net);

/* The MTP layer, for draft_chained.c. */
extern const fr_chained_family fr_glm_chained;

/* ----------------------------------------------------------------------------------------------------------- a pass */

/* The working rows of a batch. All [rows, width], in one arena; shared by the team. */
typedef struct fr_glm_pass {
    const fr_glm *net;
    const fr_kernels *kernels;
    fr_work work; /* of the products with the rows below */
    size_t rows;
    size_t slot; /* row r writes its K/V at slot + r, and sees what is there and before it */

    float *x;             /* [hidden] the residual stream */
    float *normed;        /* [hidden] */
    float *out;           /* [hidden] what a branch adds to the stream */
    float *q;             /* [heads * head_dim] queries, then */
    float *attn;          /* [heads * head_dim] attention's output */
    float *k, *v;         /* [kv_heads * head_dim] before they are stored */
    float *gate, *up;     /* [ffn] */
    float *cosine, *sine; /* [rotary / 2] */

    fr_attend_room attend;
} fr_glm_pass;

/* Takes the working rows of up to max_rows from the arena, or measures them. packed: some matrix is. */
void fr_glm_pass_layout(fr_glm_pass *pass, const fr_glm *net, const fr_kernels *kernels, bool packed, fr_arena *arena,
                        size_t max_rows, size_t threads);

/* cos and sin of the rows' angles. By the whole team; rows of the thread. */
void fr_glm_rotations(const fr_team *team, const fr_glm_pass *pass, const fr_place *places);

/* One decoder layer over pass->x, in place. Called by the whole team, synchronized before; the stream is complete for
 * each row's owner (fr_rows_part) on return, for others after the next barrier. */
void fr_glm_layer_run(const fr_team *team, const fr_glm_pass *pass, const fr_glm_layer *layer,
                      const fr_kv_layer *cache);

#endif
