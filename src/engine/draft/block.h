/* Block drafters: DFlash, DFlash2 and DSpark make all drafts of a round in one forward.
 *
 * In: a checkpoint of such a drafter, and the target that it drafts for. The checkpoint is a folder in one of the
 * published spellings, or llama.cpp's GGUF. Out: fr_block_net, checked against the target; forwards of its context and
 * of its blocks.
 *
 * Sources: github.com/z-lab/dflash 0.1.0, dflash/model.py (DFlash, DFlash2); speculators 0.9.0, models/dflash, dflash2
 * and dspark (all three, in its own folders); transformers 5.24, model muse_glimmer_assistant (Muse-Glimmer's own
 * DFlash drafter) and generation/candidate_generator.py; llama.cpp src/models/dflash.cpp (GGUF).
 *
 * Context. The taps of a position are the outputs of some of the target's layers there, side by side. The projection
 * fc reduces them to the drafter's width: c = norm(fc(taps)). From c each layer makes the position's key, k =
 * k_norm(k_proj c), rotated, and its value, v = v_proj c.
 *
 * Block. For a timeline of L ids of which the target has run L - 1, the drafter runs rows of the ids [last id, mask,
 * mask, ...] at positions L - 1, L, ...: embeddings by the target's table, then layers of Qwen3 whose rows also see
 * the rows after them (fr_block_sight). Each mask's row scores the token at its own position. In a drafter that
 * `samples from the anchor` each row scores the token after its position, and the first row does so too. The head is
 * the target's, or one of the drafter's own, which scores a smaller set of ids.
 *
 * DFlash takes the best id of each row. DFlash2 convolves the inputs and outputs of attention and feed-forward over
 * the rows (block_layers.c). From each row's best ids it chooses by how well they follow the preceding draft
 * (draft_block.c). DSpark adds to each row's scores a bias for the preceding draft. A head of its own gives the
 * confidence of each draft. */
#ifndef FR_SRC_ENGINE_DRAFT_BLOCK_H
#define FR_SRC_ENGINE_DRAFT_BLOCK_H

#include "src/engine/draft/draft.h"
#include "src/engine/families/family.h"

typedef enum fr_block_kind { FR_BLOCK_DFLASH, FR_BLOCK_DFLASH2, FR_BLOCK_DSPARK, FR_BLOCK_KINDS } fr_block_kind;

/* Gives the method's name for a kind. */
const char *fr_block_word(fr_block_kind kind);

/* Says what a block's rows see. Full layers see all of the context. Sliding layers see a window of it, usually the
 * last `window` positions up to each row's own. If the window is shared, all rows see the last `window` positions
 * before the block's first row instead. Within the block a row sees all rows, or, if causal, only those up to its own.
 * A window that is not shared limits the rows that are seen within the block too. */
typedef struct fr_block_sight {
    bool full_causal, sliding_causal;
    size_t window; /* 0: sliding layers see all of the context */
    bool shared;
} fr_block_sight;

typedef struct fr_block_config {
    fr_block_kind kind;
    fr_model_spec spec; /* spec of the drafter's layers; spec.vocab is the target's */
    size_t block;       /* rows of a whole block */
    bool from_anchor;   /* each row scores the token after its position */
    int32_t mask;       /* the id of a mask */
    size_t draft_vocab; /* number of ids that the drafter's own head scores */
    fr_aux_layers aux_layers;
    fr_block_sight sight;
    bool slides[FR_LAYERS_MAX]; /* [layers] true for sliding layers */
    /* factor for rows of the target's embedding table; with target_scale the target's own factor applies too */
    float embedding_scale;
    bool target_scale;
    float multiplier, softcap;    /* factor and softcap of the scores; softcap 0: none */
    size_t conv_taps, conv_group; /* conv_taps: number of taps of DFlash2's convolutions; conv_group: number of channels
                                   * that share a factor of the kernel */
    /* rank: the rank of DFlash2's selector or of DSpark's bias; 0: the drafter has neither. top_k: the number of best
     * ids of each row from which DFlash2's selector chooses. */
    size_t rank, top_k;
    bool confidence, confidence_sees_draft; /* confidence: there is a confidence head; confidence_sees_draft: the head
                                             * also reads the preceding draft */
    const char *target;   /* the target's architecture that the drafter was made for; NULL: not given */
    const char *mask_key; /* the key of `mask`, for error lines */
} fr_block_config;

/* Reads the configuration and checks it against the target. If target is NULL, checks only what the drafter's files
 * show. */
fr_status fr_block_config_read(fr_block_config *config, fr_weights *weights, const fr_model *target);

/* A convolution of DFlash2 around the attention or the feed-forward of a layer. Side 0 is for the input, side 1 for
 * the output. For channel c of a row, tap t multiplies the value t rows before by base[side][t][c] +
 * kernel(input)[side][t][c / group]. */
typedef struct fr_block_conv {
    const float *base; /* [2, taps, hidden] the fixed part of the factors */
    fr_matrix kernel;  /* [2 * taps * hidden / group, hidden] makes the part that depends on the input */
} fr_block_conv;

typedef enum fr_block_part { FR_BLOCK_ATTENTION, FR_BLOCK_FFN, FR_BLOCK_PARTS } fr_block_part;

/* An opened drafter; immutable. */
typedef struct fr_block_net {
    fr_block_config config;
    fr_trunk trunk;            /* the drafter's layers, with its own head or the target's; trunk.embedding has no data
                                * if the target's table is used */
    fr_matrix fc;              /* [hidden, aux_layers * hidden] makes context rows from the target's rows */
    const float *context_norm; /* [hidden] the weights of the norm that follows fc */
    const float *mask_row;     /* [hidden] the input embedding of a mask; NULL: a mask has the embedding of the id
                                * config.mask */
    const int32_t *ids;        /* [draft_vocab] the target's id for each of the drafter's ids; NULL: both have the same
                                * ids */
    bool own_head;
    bool packed;                            /* some matrix is packed */
    fr_block_conv (*convs)[FR_BLOCK_PARTS]; /* [layers] the convolutions of each layer; NULL: there are none */
    size_t conv_width; /* number of factors that fr_block_conv.kernel gives for a row: 2 * taps * hidden / group */
    fr_matrix before, after, selector; /* DFlash2: the codebooks `before` and `after` [vocab, rank], and the selector
                                        * [rank, hidden] */
    fr_matrix bias_before, bias_after; /* DSpark's bias: the codebooks bias_before [vocab, rank] and bias_after
                                        * [draft_vocab, rank] */
    /* DSpark's confidence head: a matrix of one row, which has `hidden` columns, and `rank` more if the head also reads
     * the preceding draft. NULL: there is no such head. */
    const float *confidence;
    float confidence_bias;
} fr_block_net;

/* Binds all tensors. drafter->weights and ->target must be set; if target is NULL, fields that come from the target
 * stay empty. */
fr_status fr_block_open(fr_block_net *net, const fr_block_config *config, fr_drafter *drafter);
void fr_block_close(fr_block_net *net);

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Memory that the drafter's rows are run in. */
typedef struct fr_block_rows {
    const fr_block_net *net;
    const fr_model *target;
    fr_activations *activations;
    size_t most;                /* the most rows of a batch */
    fr_row *rows;               /* [most] the rows of the batch */
    fr_sight *full, *sliding;   /* [most] positions that a block's rows see in full layers, and in sliding layers */
    float *input;               /* [most, aux_layers * hidden] the target's rows that context is made of */
    float *kernels, *convolved; /* kernels: [most, conv_width] the factors that fr_block_conv.kernel gave for each row;
                                 * convolved: [most, hidden] convolved rows; NULL: there are no convolutions */
    float *hidden;              /* [most, hidden] out: a block's rows after the final norm */
} fr_block_rows;

/* Takes the memory for batches of up to `rows` rows from the arena, which may be a measuring one (base/arena.h). */
void fr_block_rows_layout(fr_block_rows *rows, const fr_drafter *drafter, fr_arena *arena, size_t count,
                          size_t threads);

/* Stores the keys and values of `count` context rows for all layers. The rows' taps must be in rows->input. */
void fr_block_run_context(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch);

/* Runs blocks side by side through all layers and the final norm. Rows with `id` -1 are masks. */
void fr_block_run_layers(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch);

/* Sets which positions the `count` rows of a block see. position: that of the block's first row. */
void fr_block_set_sights(const fr_block_sight *sight, size_t position, size_t count, fr_sight *full, fr_sight *sliding);

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Gives the name in GGUF of a published tensor (the part after "blk.N." for a layer's tensor). If GGUF has no place for
 * the tensor, returns false. */
bool fr_block_name(const char *published, const char **gguf, fr_tensor_name_found *found);
extern const fr_tensor_naming fr_block_names;
extern const fr_family fr_family_block; /* block drafters' layers are read and written as this family's */
/* Returns `count` of a target's layers, spread evenly, by the rule that z-lab's folders follow for the layers that
 * they tap. */
fr_aux_layers fr_block_spread_layers(size_t count, size_t targets);
fr_status fr_block_put_keys(const fr_drafter *drafter, fr_gguf_writer *writer);

#endif
