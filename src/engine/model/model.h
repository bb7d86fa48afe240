/* An opened target of any family.
 *
 * In: a model folder or a GGUF file. Out: fr_model, immutable. A family is described in family.h, and its layers are
 * run by src/engine/layers. */
#ifndef FR_SRC_ENGINE_MODEL_MODEL_H
#define FR_SRC_ENGINE_MODEL_MODEL_H

#include "base/options.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/family.h"

#include <stdio.h>

#define FR_EOS_MAX        64
#define FR_SUPPRESSED_MAX 4096 /* large enough for a list of audio ids: Qwen3-TTS has 1023 */

struct fr_model {
    fr_checkpoint files;
    fr_weights weights;
    const fr_family *family;
    fr_trunk trunk;
    const fr_kernels *kernels;
    fr_machine machine;
    struct fr_ranks *ranks; /* ranks that run the model together (base/ranks.h); NULL: one process runs it */
    fr_rank_plan rank_plan; /* the division of the weights among the ranks */
    fr_plan plan; /* the threads for which weights were placed; a session may use other cores of the same NUMA nodes */
    char pre[FR_PRE_SIZE];                     /* the pre-tokenizer that the options name; "": the file's own */
    fr_tokenizer *tokenizer;                   /* NULL: the model has none */
    fr_activation_stats_kind activation_stats; /* the products whose inputs are summed up for an importance matrix; set
                                                * before weights are bound */
    size_t mtp_layers;                         /* number of MTP layers in the model's own checkpoint, which can draft
                                                * for the model */
    /* file of the vision tower; NULL: the tower is in the model's own checkpoint, or there is none */
    struct fr_mmproj *mmproj;
    struct fr_vision *vision; /* NULL: the model has no vision tower */
    /* A text encoder, which has no family, trunk or sessions (src/engine/encoder); NULL: the model generates text. */
    struct fr_encoder *encoder;
    fr_pooling pooling;
    int32_t image_token; /* the id that stands for a row of a picture; -1: none */
    size_t block_rows;   /* if all rows of a picture must be in one forward: the most rows that a picture has; otherwise
                          * 0 */
    int32_t eos[FR_EOS_MAX];
    size_t eos_count;
    int32_t suppressed[FR_SUPPRESSED_MAX]; /* ids that are never drawn, in the file's order, including repeated ones */
    size_t suppressed_count;
};

/* Loads a model so that it is ready to run. fr_model_unload frees it. If loading fails, *model is NULL and the error
 * line names the file. */
fr_status fr_model_load(const char *path, const fr_options *options, fr_model **model);

/* Opens a model without loading its weights. The model is checked and can be described, but it cannot be run. */
fr_status fr_model_bind(const char *path, const fr_options *options, fr_model **model);

/* Binds a model whose files, kernels, plan and `pre` are set: finds the family, and binds weights, ends of sequences
 * and tokenizer. fr_model_bind calls it. chat_template replaces the checkpoint's own template; "" keeps that template
 * (src/language/tokenizer/tokenizer.h). */
fr_status fr_model_bind_files(fr_model *model, const char *chat_template);

/* Reads the target's family and sizes from a file that holds only the target's MTP layer. No weights are bound, because
 * such a file has none of the target's layers. */
fr_status fr_model_outline(const char *path, const fr_options *options, fr_model **model);

/* Fails with FR_INPUT if the model has no head, as models for embeddings have none. Such a model computes correct
 * hidden rows, but no logits. */
fr_status fr_model_check_head(const fr_model *model);

/* Frees a model; NULL does nothing. */
void fr_model_unload(fr_model *model);

/* Prints the layers and widths in words, one line each. */
void fr_trunk_describe(const fr_trunk_spec *spec, FILE *out);

/* Takes activations for batches of up to max_rows rows from the arena. Returns NULL if the arena only counts bytes
 * (base/arena.h). */
void *fr_model_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads);

/* Writes the scaled input embedding of a token, [hidden], which drafters read. */
void fr_model_embed(const fr_model *model, int32_t id, float *row);

/* Gives the counts of used experts, summed over all forwards that ran with these activations. */
fr_expert_use fr_model_expert_use(const void *activations);

/* Gives the bytes of all bound tensors, including those of the model's vision tower. */
uint64_t fr_model_bytes(const fr_model *model);

/* Gives the memory that all bound tensors take; a drafter is not counted. */
fr_memory_use fr_model_memory_use(const fr_model *model);

bool fr_model_is_eos(const fr_model *model, int32_t id);

/* Refuses a text encoder where text is to be generated. */
fr_status fr_model_check_generates(const fr_model *model);

/* Finds the family of a target's files. If the files belong to no family, the error line says what they are. */
fr_status fr_family_find(const fr_checkpoint *files, const fr_family **family);

/* Returns true if this is a name of the model's architecture, in folders or in GGUF. In GGUF two families may have the
 * same name; for example, GLM-4.7-Flash has DeepSeek's name. A GGUF file with such a name matches both families. A
 * folder matches only its own family. */
bool fr_model_is_of(const fr_model *model, const char *architecture);

/* Reads the machine's properties, and chooses the threads with which a model or drafter is loaded and run. */
fr_status fr_plan_from_options(const fr_options *options, fr_machine *machine, fr_plan *plan);

/* Gives the types in which a session of this model caches keys and values. If the options don't set the types, they are
 * f32 if the weights are floats, and f16 if the weights are quantized. In latent attention a latent is both key and
 * value, so values then have the keys' type. */
fr_kv_types fr_model_kv_types(const fr_model *model, const fr_options *options);

/* Gives the number of prompt rows in a forward, as the options say. If alone is true, the session has an engine of its
 * own, so no other session waits for its forwards. */
size_t fr_model_chunk(const fr_model *model, const fr_options *options, bool alone);

/* Checks that the model's cache can have these types. Fails with FR_INPUT if it can't. */
fr_status fr_model_check_kv_types(const fr_model *model, fr_kv_types types);

/* Runs the batch, including the head, on the pool. */
void fr_forward_run(fr_pool *pool, fr_forward *forward);

/* Runs only the head, over hidden rows of an earlier run. */
void fr_head_run(fr_pool *pool, fr_forward *forward);

/* picture_marks.c: fr_model_picture_mark gives the text that marks a picture's place in a prompt. NULL: the model sees
 * no pictures, or has no tokenizer. fr_model_spell_pictures replaces marks by the text that stands for pictures: their
 * image tokens, and the tokens around these that the model was trained with. The first `count` marks whose bytes are
 * all trusted are replaced. The inserted text is trusted too. */
const char *fr_model_picture_mark(const fr_model *model);
fr_status fr_model_spell_pictures(const fr_model *model, const fr_picture *const *pictures, size_t count,
                                  fr_marked_text *text);

#endif
