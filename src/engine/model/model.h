/* An opened target, whatever its family.
 *
 * In: a model folder or a GGUF file. Out: fr_model, immutable. What a family is: family.h; the decoder runs it. */
#ifndef FR_SRC_ENGINE_MODEL_MODEL_H
#define FR_SRC_ENGINE_MODEL_MODEL_H

#include "base/options.h"
#include "src/engine/families/architecture.h"
#include "src/engine/families/family.h"

#include <stdio.h>

#define FR_MAX_EOS 64
#define FR_MAX_SUPPRESSED 4096 /* converters list a whole range of an audio vocabulary: 1023 ids of Qwen3-TTS */

struct fr_model {
    fr_checkpoint files;
    fr_weights weights;
    const fr_family *family;
    fr_trunk trunk;
    const fr_kernels *kernels;
    fr_machine machine;
    struct fr_ranks *ranks; /* NULL; or those that run it together (base/ranks.h) */
    fr_rank_plan rank_plan; /* how its weights are shared by those of weights.ranks */
    fr_plan plan; /* what weights were placed by; a session's may have other cores of the same nodes */
    char pre[FR_PRE_SIZE];   /* the pre-tokenizer that was chosen instead of the file's own, "" for none */
    fr_tokenizer *tokenizer; /* NULL: the folder has none */
    fr_tapping tapping; /* set before weights are bound */
    size_t mtp_layers; /* that draft for it, in its own checkpoint */
    struct fr_mmproj *mmproj; /* the file that its vision tower is from; NULL: its own checkpoint, or none */
    struct fr_vision *vision; /* NULL: it can't see */
    fr_pooling pooling;
    int32_t image_token;      /* what stands in ids for a row of a picture; -1: none */
    int32_t eos[FR_MAX_EOS];
    size_t eos_count;
    int32_t suppressed[FR_MAX_SUPPRESSED]; /* ids that are never drawn; in the file's order, as often as there */
    size_t suppressed_count;
};

/* Ready to run; fr_model_unload it. A failure leaves *model NULL, and a line that names the file and what of it. */
fr_status fr_model_load(const char *path, const fr_options *options, fr_model **model);

/* The same without bringing weights into memory: checked and described, not ready to run. */
fr_status fr_model_bind(const char *path, const fr_options *options, fr_model **model);

/* Of that, what follows once files, kernels and plan are set: family, weights, ends of sequences, tokenizer.
 * chat_template: instead of the checkpoint's own, "" for that (src/language/tokenizer/tokenizer.h); `pre` is set
 * before. */
fr_status fr_model_bind_files(fr_model *model, const char *chat_template);

/* What a file of its MTP layer alone says of its target: family and sizes. No weights are bound: there is nothing to
 * run. */
fr_status fr_model_outline(const char *path, const fr_options *options, fr_model **model);

/* Of NULL too. */
void fr_model_unload(fr_model *model);

/* Its layers and widths in words, a line each. */
void fr_trunk_describe(const fr_trunk_spec *spec, FILE *out);

/* Takes activations for batches of up to max_rows from the arena (NULL while measuring). */
void *fr_model_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads);

/* The scaled input embedding of a token, [hidden]: what drafters read. */
void fr_model_embed(const fr_model *model, int32_t id, float *row);

/* What the experts of these activations were used for so far. */
fr_expert_use fr_model_expert_use(const void *activations);

/* Of all bound tensors, its vision tower's too. */
uint64_t fr_model_bytes(const fr_model *model);

/* What all of them take of memory; no drafter. */
fr_residence fr_model_residence(const fr_model *model);

/* Whether `id` ends a sequence. */
bool fr_model_is_eos(const fr_model *model, int32_t id);

/* The family of a target's files; where they are none's, the line says what they are. */
fr_status fr_family_find(const fr_checkpoint *files, const fr_family **family);

/* Whether that is a name of its architecture, in folders or in GGUF, where one name may be two families'
 * (GLM-4.7-Flash's is DeepSeek's): such a file is of both, a folder of one. */
bool fr_model_is_of(const fr_model *model, const char *architecture);

/* The machine, and which threads a model or drafter loads and runs with there. */
fr_status fr_plan_from_options(const fr_options *options, fr_machine *machine, fr_plan *plan);

/* What a session of this model caches keys and values as, by the options: by default f32 where the weights are floats,
 * f16 where they are quantized. Latents are both, of the keys' type. */
fr_kv_types fr_model_kv_types(const fr_model *model, const fr_options *options);

/* Rows of a prompt that a forward runs, by the options; alone: no other session waits for it. */
size_t fr_model_chunk(const fr_model *model, const fr_options *options, bool alone);

/* Whether its cache can be of these types; FR_INPUT if not. */
fr_status fr_model_check_kv_types(const fr_model *model, fr_kv_types types);

/* Runs the batch, head included, on the pool. */
void fr_forward_run(fr_pool *pool, fr_forward *forward);

/* The head alone, over hidden rows that a run left behind. */
void fr_head_run(fr_pool *pool, fr_forward *forward);

#endif
