/* Block drafters: DFlash, DFlash2 and DSpark make all drafts of a round in one forward.
 *
 * In: a checkpoint of such a drafter, and the target for which it drafts. The checkpoint is a folder in one of the
 * published forms, or llama.cpp's GGUF. Out: fr_block_net, checked against the target; forwards of its context and of
 * its blocks.
 *
 * Sources: github.com/z-lab/dflash 0.1.0, dflash/model.py (DFlash, DFlash2); speculators 0.9.0, models/dflash, dflash2
 * and dspark (all three, in folders of its own form); transformers 5.24, model muse_glimmer_assistant (Muse-Glimmer's
 * own DFlash drafter) and generation/candidate_generator.py; llama.cpp src/models/dflash.cpp (GGUF).
 *
 * Context. The drafter reads the outputs of some of the target's layers at a position, joined to one row: the taps of
 * this position. The projection fc reduces the taps to the drafter's width: c = norm(fc(taps)). From c each layer makes
 * the position's key, k = k_norm(k_proj c), which is then rotated, and its value, v = v_proj c.
 *
 * Block. Let a timeline have L ids, of which the target has run L - 1. The drafter then runs rows of the ids [last id,
 * mask, mask, ...] at positions L - 1, L, and so on. The rows are embedded with the target's table. They pass through
 * layers of Qwen3 in which a row also sees the rows after it (fr_block_sight). Each mask's row scores the token at its
 * own position. In a drafter that `samples from the anchor`, each row scores the token after its position, and so does
 * the first row. The head that scores the tokens is either the target's head, or a head of the drafter for a smaller
 * set of ids.
 *
 * DFlash takes the best id of each row. DFlash2 convolves the inputs and outputs of attention and feed-forward over the
 * rows (block_layers.c). Among the best ids of each row, DFlash2 chooses by how well they follow the preceding draft
 * (draft_block.c). DSpark adds to each row's scores a bias for the preceding draft. A second head of DSpark gives the
 * confidence of each draft. */
#ifndef FR_SRC_ENGINE_DRAFT_BLOCK_H
#define FR_SRC_ENGINE_DRAFT_BLOCK_H

#include "src/engine/draft/draft.h"
#include "src/engine/families/family.h"

typedef enum fr_block_kind { FR_BLOCK_DFLASH, FR_BLOCK_DFLASH2, FR_BLOCK_DSPARK, FR_BLOCK_KINDS } fr_block_kind;

/* Gives the word for a kind of block drafter, which is the name of its draft method. */
const char *fr_block_word(fr_block_kind kind);

/* Says which positions the rows of a block see. Rows see all of the context in full layers, and a window of the context
 * in sliding layers. Usually the window of a row is the last `window` positions up to the row's own position. If the
 * window is shared, all rows see the last `window` positions before the block's first row instead. Within the block a
 * row sees all rows of the block; if the layer is causal, it sees only the rows up to its own. A window that is not
 * shared also limits which rows of the block are seen. */
typedef struct fr_block_sight {
    bool full_causal, sliding_causal;
    size_t window; /* number of positions that sliding layers see; 0: they see all of the context */
    bool shared;
} fr_block_sight;

typedef struct fr_block_config {
    fr_block_kind kind;
    fr_model_spec spec; /* the spec of the drafter's layers; spec.vocab is the number of the target's ids */
    size_t block;       /* rows of a whole block */
    bool from_anchor;   /* each row scores the token after its position */
    int32_t mask;       /* the id of a mask */
    size_t draft_vocab; /* number of ids that the drafter's own head scores */
    fr_aux_layers aux_layers;
    fr_block_sight sight;
    bool slides[FR_LAYERS_MAX]; /* [layers] true for sliding layers */
    /* factor for rows of the embedding table; target_scale: these rows are also multiplied by the target's own factor,
     * as in z-lab's drafters of Gemma, but not in DSpark's or in the library's folders */
    float embedding_scale;
    bool target_scale;
    float multiplier, softcap;    /* factor and softcap of the scores; softcap 0: scores are not capped */
    size_t conv_taps, conv_group; /* conv_taps: number of rows that DFlash2's convolutions combine; conv_group: number
                                   * of channels that share a factor of the kernel */
    /* rank: the rank of DFlash2's selector or of DSpark's bias; 0: the drafter has neither. top_k: the number of best
     * ids of each row from which DFlash2's selector chooses. */
    size_t rank, top_k;
    bool confidence, confidence_sees_draft; /* confidence: there is a confidence head; confidence_sees_draft: the head
                                             * also reads the preceding draft */
    const char *target;   /* the architecture of the target for which the drafter was made; NULL: the files don't name
                           * it */
    const char *mask_key; /* the key from which `mask` was read, for error lines */
} fr_block_config;

/* Reads the configuration and checks it against the target. If `target` is NULL, checks only what needs no target. */
fr_status fr_block_config_read(fr_block_config *config, fr_weights *weights, const fr_model *target);

/* A convolution of DFlash2 around the attention or the feed-forward of a layer. Side 0 convolves the input, side 1 the
 * output. Tap t of a convolution reads the row that is t rows before. For channel c, the value of that row is
 * multiplied by base[side][t][c] + kernel(input)[side][t][c / group]. */
typedef struct fr_block_conv {
    const float *base; /* [2, taps, hidden] the fixed part of the factors */
    fr_matrix kernel;  /* [2 * taps * hidden / group, hidden] makes the part that depends on the input */
} fr_block_conv;

typedef enum fr_block_part { FR_BLOCK_ATTENTION, FR_BLOCK_FFN, FR_BLOCK_PARTS } fr_block_part;

/* An opened drafter; immutable. */
typedef struct fr_block_net {
    fr_block_config config;
    fr_trunk trunk;            /* the drafter's layers; their head is the drafter's own or the target's. trunk.embedding
                                * has no data if the target's table is used */
    fr_matrix fc;              /* [hidden, aux_layers * hidden] makes context rows from the target's rows */
    const float *context_norm; /* [hidden] the weights of the norm that follows fc */
    const float *mask_row;     /* [hidden] the input embedding of a mask; NULL: a mask has the embedding of id
                                * config.mask */
    const int32_t *ids;        /* [draft_vocab] the target's id for each of the drafter's ids; NULL: the drafter has the
                                * target's ids */
    bool own_head;
    bool packed;                            /* some matrix is packed */
    fr_block_conv (*convs)[FR_BLOCK_PARTS]; /* [layers] the convolutions of each layer; NULL: there are none */
    size_t conv_width; /* number of factors that fr_block_conv.kernel gives for a row: 2 * taps * hidden / group */
    fr_matrix before, after, selector; /* DFlash2 has two codebooks, `before` and `after` [vocab, rank], and `selector`
                                        * [rank, hidden] */
    fr_matrix bias_before, bias_after; /* DSpark computes its bias from two codebooks, bias_before [vocab, rank] and
                                        * bias_after [draft_vocab, rank] */
    /* DSpark's confidence head, a matrix of one row. The row has `hidden` columns. If the head also reads the preceding
     * draft, the row has `rank` more columns. NULL: there is no such head. */
    const float *confidence;
    float confidence_bias;
} fr_block_net;

/* Binds all tensors. drafter->weights and drafter->target must be set. If the target is NULL, fields that come from the
 * target stay empty. */
fr_status fr_block_open(fr_block_net *net, const fr_block_config *config, fr_drafter *drafter);
void fr_block_close(fr_block_net *net);

/* ------------------------------------------------------------------------------------------------------------- rows */

/* The memory in which the drafter's rows are run. */
typedef struct fr_block_rows {
    const fr_block_net *net;
    const fr_model *target;
    fr_activations *activations;
    size_t most;                /* the most rows of a batch */
    fr_row *rows;               /* [most] the rows of the batch */
    fr_sight *full, *sliding;   /* [most] the positions that each row of a block sees in full layers, and in sliding
                                 * layers */
    float *input;               /* [most, aux_layers * hidden] the target's rows from which context rows are made */
    float *kernels, *convolved; /* kernels: [most, conv_width] the factors that fr_block_conv.kernel gives for each row;
                                 * convolved: [most, hidden] rows after a convolution; both are NULL if there are no
                                 * convolutions */
    float *hidden;              /* [most, hidden] out: a block's rows after the final norm */
} fr_block_rows;

/* Takes the memory for batches of up to `rows` rows from the arena, which may be a measuring one (base/arena.h). */
void fr_block_rows_layout(fr_block_rows *rows, const fr_drafter *drafter, fr_arena *arena, size_t count,
                          size_t threads);

/* Computes and stores the keys and values of `count` context rows for all layers. The rows' taps must be in
 * rows->input. */
void fr_block_run_context(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch);

/* Runs several blocks together through all layers and the final norm. Rows with `id` -1 are masks. */
void fr_block_run_layers(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch);

/* Sets which positions the `count` rows of a block see. position: the position of the block's first row. */
void fr_block_set_sights(const fr_block_sight *sight, size_t position, size_t count, fr_sight *full, fr_sight *sliding);

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Gives the GGUF name of a published tensor. For a layer's tensor this is the part of the name after "blk.N.". Returns
 * false if GGUF has no place for the tensor. */
bool fr_block_name(const char *published, const char **gguf, fr_tensor_name_found *found);
extern const fr_tensor_naming fr_block_names;
extern const fr_family fr_family_block; /* the family as which the layers of block drafters are read and written */
/* Returns `count` of a target's `targets` layers, spread evenly. The rule is the one by which z-lab's folders choose
 * the layers that a drafter reads. */
fr_aux_layers fr_block_spread_layers(size_t count, size_t targets);
fr_status fr_block_put_keys(const fr_drafter *drafter, fr_gguf_writer *writer);

#endif
