/* An opened target, whatever its family, and the one forward function a family has.
 *
 * In: a model folder. Out: fr_model, immutable. A family is data plus the functions of fr_family, one file
 * (model_*.c) and one line in model.c's table. */
#ifndef FR_SRC_MODEL_H
#define FR_SRC_MODEL_H

#include "src/base/options.h"
#include "src/decoder/forward.h"
#include "src/decoder/matrix.h"
#include "src/decoder/weights.h"
#include "src/families/architecture.h"

#include <stdio.h>

typedef struct fr_family fr_family;
typedef struct fr_chained_family fr_chained_family;

#define FR_MAX_EOS 64

struct fr_model {
    fr_checkpoint files;
    fr_weights weights;
    const fr_family *family;
    void *net; /* the family's own */
    const fr_kernels *kernels;
    fr_machine machine;
    fr_plan plan; /* what weights were placed by; a session's may have other cores of the same nodes */
    fr_tokenizer *tokenizer; /* NULL: the folder has none */
    size_t vocab, hidden, layers, context_limit;
    size_t mtp_layers; /* that draft for it, in its own checkpoint */
    const fr_kv_shape *kv_shapes;
    size_t kv_count;
    struct fr_mmproj *mmproj; /* the file that its vision tower is from; NULL: its own checkpoint, or none */
    struct fr_vision *vision; /* NULL: it can't see */
    int32_t image_token;      /* what stands in ids for a row of a picture; -1: none */
    int32_t eos[FR_MAX_EOS];
    size_t eos_count;
};

/* What a mixture's forwards chose since its working rows were made, summed over their layers. */
typedef struct fr_expert_use {
    uint64_t all;   /* experts that there were */
    uint64_t read;  /* that some row chose, whose weights were read */
    uint64_t pairs; /* of a row and an expert that it chose */
} fr_expert_use;

struct fr_family {
    const char *const *architectures; /* names in config.json and in GGUF, NULL-terminated */
    const char *picture; /* the token that stands for a row of one; NULL: it takes none */

    /* Reads the configuration, binds the weights, fills the model's sizes. */
    fr_status (*open)(fr_model *model);
    void (*close)(fr_model *model);

    /* Takes the working rows of batches up to max_rows from the arena (NULL while measuring). */
    void *(*layout)(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads);

    /* By the whole team: tokens to hidden rows. No barrier needed before; a barrier is needed after. */
    void (*forward)(const fr_team *team, fr_forward *forward);

    fr_head (*head)(const fr_forward *forward);

    /* The scaled input embedding of a token, [hidden]: what drafters read. */
    void (*embed)(const fr_model *model, int32_t id, float *row);

    /* What the experts of these working rows were used for; NULL: the family has no mixtures. */
    fr_expert_use (*experts)(const void *pass);

    /* Its layers and widths in words, a line each. */
    void (*describe)(const fr_model *model, FILE *out);

    /* For models with an MTP layer in the checkpoint (draft_chained.h); NULL: the family has none. */
    const fr_chained_family *chained;
};

extern const fr_family fr_family_gemma4, fr_family_glm;

fr_status fr_model_load(const char *path, const fr_options *options, fr_model **model);

/* The same without bringing weights into memory: checked and described, not ready to run. */
fr_status fr_model_bind(const char *path, const fr_options *options, fr_model **model);

/* Of that, what follows once files, kernels and plan are set: family, weights, ends of sequences, tokenizer. */
fr_status fr_model_bind_files(fr_model *model);

void fr_model_unload(fr_model *model);

/* Of all bound tensors, its vision tower's too. */
uint64_t fr_model_bytes(const fr_model *model);

/* Whether `id` ends a sequence. */
bool fr_model_is_eos(const fr_model *model, int32_t id);

/* The family of a target's files; where they are none's, the line says what they are. */
fr_status fr_family_find(const fr_checkpoint *files, const fr_family **family);

/* The machine, and which threads a model or drafter loads and runs with there. */
fr_status fr_plan_from_options(const fr_options *options, fr_machine *machine, fr_plan *plan);

/* What a session of this model caches keys and values as, by the options: by default f32 where the weights are floats,
 * f16 where they are quantized. */
fr_kv_types fr_model_kv_types(const fr_model *model, const fr_options *options);

/* Brings bound weights into memory as the options ask. */
fr_status fr_weights_settle(const fr_weights *weights, const fr_plan *plan, const fr_options *options);

/* Runs the batch, head included, on the pool. */
void fr_forward_run(fr_pool *pool, fr_forward *forward);

/* The head alone, over hidden rows that a run left behind. */
void fr_head_run(fr_pool *pool, fr_forward *forward);

#endif
