/* Facts about what was opened, from which inspect.c makes words and inspect_json.c a JSON object.
 *
 * In: a model, a drafter or a vision tower, bound. Out: counts of its tensors. */
#ifndef FR_SRC_API_INSPECT_H
#define FR_SRC_API_INSPECT_H

#include "forerun_lab.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "src/engine/draft/eagle.h"
#include "src/engine/session/session.h"
#include "src/engine/vision/mmproj.h"
#include "src/engine/weights/memory_use.h"

typedef struct fr_inspected {
    const char *kind; /* "model", "drafter" or "tower" */
    const fr_checkpoint *files;
    const fr_weights *weights;
    const fr_model *model;         /* if it is one, or has been opened for its drafter; NULL of a drafter alone */
    const fr_drafter *own;         /* the MTP layer in a model's checkpoint, or NULL */
    const fr_assistant *assistant; /* of a drafter that is Gemma 4's; else NULL */
    const fr_drafter *eagle;       /* a drafter that is EAGLE's; else NULL */
    const fr_drafter *draft_model; /* a drafter that is a model; else NULL */
    const fr_drafter *mtp;         /* a drafter that is a target's MTP layer; else NULL */
    const fr_vision *vision;       /* a tower, or a model's; NULL: none */
    const fr_lab_inspection *how;
    fr_kv_types kv_types;
    fr_session_bytes memory;  /* of a model, with the drafter if it is about one */
    fr_memory_use memory_use; /* of a model's weights, an MTP layer of its own among them */
} fr_inspected;

typedef struct fr_inspected_counts {
    uint64_t parameters, used_parameters; /* values of all tensors that can be read; of those that are */
    size_t towers;                        /* tensors of vision and audio that nothing reads */
    size_t unused;                        /* those, and all others that nothing reads */
} fr_inspected_counts;

/* Gives the type of most of the weights' bytes. */
const char *fr_weights_main_type(const fr_weights *weights);

fr_inspected_counts fr_inspected_count(const fr_inspected *what);

/* The target that the files of an EAGLE drafter or of an MTP layer require. */
typedef struct fr_inspected_needs {
    const char *architecture; /* NULL: they don't say */
    size_t hidden, vocab, layers;
    bool deeper; /* it may have more layers than that */
} fr_inspected_needs;

fr_inspected_needs fr_inspected_need(const fr_inspected *what);

/* Prints one JSON object and a newline. */
fr_status fr_inspected_print_json(const fr_inspected *what, FILE *out);

#endif
