/* Reads what the files of an EAGLE drafter or a block drafter say about its target, and checks it.
 *
 * In: a drafter's files, and the target for which it is opened. Out: FR_OK, or an error line with the drafter's value
 * and the target's value. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFTER_TARGET_H
#define FR_SRC_ENGINE_DRAFT_DRAFTER_TARGET_H

#include "src/engine/model/model.h"

/* The target for which a drafter was made. The keys are those from which the target's width and number of ids were
 * read. */
typedef struct fr_drafter_target {
    const char *architecture; /* NULL: the drafter's files don't name it */
    const char *width_key, *vocab_key;
    size_t width, vocab;
    const fr_aux_layers *aux_layers;
} fr_drafter_target;

/* Reads the name of the target's architecture. The speculators library writes it as the verifier's architecture.
 * *architecture is NULL if config.json doesn't give it. Also refuses the drafter's own architecture if it is not a
 * string. */
fr_status fr_drafter_read_architecture(const json_t *config, const char *where, const char **architecture);

/* Checks that a number of the drafter equals the same number of the target. */
fr_status fr_drafter_check_number(const fr_weights *weights, const char *what, size_t own, size_t targets);

/* Checks that the drafter was made for this target. */
fr_status fr_drafter_check_target(const fr_drafter_target *wanted, const fr_weights *weights, const fr_model *target);

/* Binds the array that gives the target's id for each of the drafter's `count` ids. No id of the target may occur
 * twice. Folders store the target's id minus the drafter's id. GGUF stores the target's id itself. */
fr_status fr_drafter_bind_ids(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t vocab,
                              const int32_t **ids);

#endif
