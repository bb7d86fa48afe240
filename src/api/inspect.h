/* Describes a model, a drafter or a vision tower that was opened. inspect.c prints the facts as words, and
 * inspect_json.c as a JSON object.
 *
 * In: an opened model, drafter or vision tower. Out: counts of its tensors. */
#ifndef FR_SRC_API_INSPECT_H
#define FR_SRC_API_INSPECT_H

#include "forerun_lab.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "src/engine/draft/block.h"
#include "src/engine/draft/eagle.h"
#include "src/engine/session/session.h"
#include "src/engine/vision/mmproj.h"
#include "src/engine/weights/memory_use.h"

typedef struct fr_inspected {
    const char *kind; /* "model", "drafter" or "tower" */
    const fr_checkpoint *files;
    const fr_weights *weights;
    const fr_model *model;         /* the model, or the target of a drafter; NULL: a drafter without its target */
    const fr_drafter *own;         /* the MTP layer in the checkpoint of a model; NULL: it has none */
    const fr_assistant *assistant; /* the drafter, if it is Gemma 4's assistant; otherwise NULL */
    const fr_drafter *eagle;       /* the drafter, if it is of EAGLE's kind; otherwise NULL */
    const fr_drafter *block;       /* the drafter, if it drafts whole blocks; otherwise NULL */
    const fr_drafter *draft_model; /* the drafter, if it is a whole model; otherwise NULL */
    const fr_drafter *mtp;         /* the drafter, if it is a target's MTP layer; otherwise NULL */
    const fr_vision *vision;       /* the vision tower, alone or in a model; NULL: there is none */
    const fr_lab_inspection *how;
    fr_kv_types kv_types;
    fr_session_bytes memory;  /* memory of a session with the model, and with the drafter if one is described */
    fr_memory_use memory_use; /* memory of a model's weights, including those of its own MTP layer */
} fr_inspected;

typedef struct fr_inspected_counts {
    /* parameters: the number of values in all tensors of supported types. used_parameters: the number of values in the
     * tensors that are used. */
    uint64_t parameters, used_parameters;
    size_t towers; /* number of tensors of vision and audio towers that nothing reads */
    size_t unused; /* number of all tensors that nothing reads, including those of towers */
} fr_inspected_counts;

/* Gives the type in which most bytes of the weights are stored. */
const char *fr_weights_main_type(const fr_weights *weights);

fr_inspected_counts fr_inspected_count(const fr_inspected *what);

enum { FR_STORAGES_SHOWN = 8 };

/* The used matrices of a folder that a quantizer wrote, counted by their kind of storage. count 0: the folder has no
 * quantized matrices. */
typedef struct fr_inspected_storages {
    struct {
        const struct fr_storage *storage; /* the storage of one matrix of this kind */
        size_t matrices;
        uint64_t values, bytes;
    } of[FR_STORAGES_SHOWN];
    size_t count;
    size_t left; /* matrices that are not quantized */
    uint64_t left_bytes;
} fr_inspected_storages;

fr_inspected_storages fr_inspected_stored(const fr_inspected *what);

/* Describes the target that an EAGLE drafter, a block drafter or an MTP layer needs, as far as the drafter's own files
 * say. */
typedef struct fr_inspected_needs {
    const char *architecture; /* NULL: the files don't say */
    size_t hidden, vocab, layers;
    bool deeper; /* the target may have more layers than `layers` */
} fr_inspected_needs;

fr_inspected_needs fr_inspected_need(const fr_inspected *what);

/* Usual sizes of pictures (width and height) for which the number of tokens is printed. */
enum { FR_INSPECTED_SIZES = 4 };
extern const size_t fr_inspected_sizes[FR_INSPECTED_SIZES][2];

/* A picture, and what it costs. */
typedef struct fr_inspected_picture {
    size_t width, height, tokens;
    double multiply_adds; /* number of multiply-adds that the tower's layers do for this picture */
    /* the estimated time of the tower on this machine; 0: there is no estimate for this type of weights */
    double seconds;
} fr_inspected_picture;

/* Opens the picture how->images[index]. To estimate the tower's time for it, the speed of the float kernels is
 * measured for a moment. */
fr_status fr_inspect_image(const fr_inspected *what, size_t index, fr_inspected_picture *picture);

/* Prints one JSON object and a newline. */
fr_status fr_inspected_print_json(const fr_inspected *what, FILE *out);

#endif
