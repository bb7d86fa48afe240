/* Turns a published folder into GGUF tensors and keys, for quantize.c.
 *
 * In: an opened folder of a target or a drafter. Out: the list of its tensors with their names in GGUF, and the keys.
 * The tokenizer's keys are made by export_tokenizer.c. */
#ifndef FR_SRC_CONVERT_EXPORT_H
#define FR_SRC_CONVERT_EXPORT_H

#include "formats/gguf_write.h"
#include "src/convert/outputs.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "src/engine/draft/block.h"
#include "src/engine/draft/eagle.h"
#include "src/engine/embed/recipe.h"
#include "src/engine/encoder/encoder.h"
#include "src/engine/model/model.h"

typedef struct fr_export {
    const fr_checkpoint *files; /* files of what is written: the target or the drafter */
    const fr_family *family;    /* the family whose keys are written */
    const fr_tensor_naming *names;
    const fr_trunk_spec *spec;
    size_t mtp_layers; /* number of MTP layers; they come after the trunk's layers */
    const fr_weights *weights;
    const char *architecture; /* the architecture's name in the GGUF file */
    fr_model *target;         /* the target, whose tokenizer is written; NULL: an assistant is written */
    fr_drafter *mtp;          /* the MTP layer of the target; NULL: it has none */
    /* the EAGLE-3 or block drafter that is written for `target`; NULL: the target itself is written, or an assistant */
    fr_drafter *written;
    fr_checkpoint drafter_files;
    fr_weights drafter_weights;
    fr_assistant drafter;
    fr_recipe recipe; /* how a text encoder makes an embedding; family, names and spec are NULL for an encoder */
    /* the table of positions without its first rows, if a text encoder does not use these rows */
    fr_tensor positions;
    /* the table of token types without its last rows, if a text encoder does not use these rows */
    fr_tensor types;
} fr_export;

/* Does all checks that running the model would do, then lists the model's tensors. Takes over the files. drafter: the
 * folder of an EAGLE-3 drafter or a block drafter, which is written instead of the model; NULL: the model is
 * written. */
fr_status fr_export_open(fr_export *export, fr_checkpoint *files, const char *drafter, const fr_options *options,
                         fr_outputs *outputs);
void fr_export_close(fr_export *export);

/* Adds all keys except those about the types of tensors. */
fr_status fr_export_metadata(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer);

/* The next two functions are in export_encoder.c. For a text encoder, which is export->target, they do what
 * fr_export_open and fr_export_metadata do for a model that generates. */
fr_status fr_export_encoder_open(fr_export *export, fr_outputs *outputs);
fr_status fr_export_encoder_metadata(const fr_export *export, fr_gguf_writer *writer);

/* The kind of tokenizer that an architecture's files have in GGUF. */
typedef struct fr_tokenizer_form {
    /* values of tokenizer.ggml.model and tokenizer.ggml.pre. If model is NULL, its value depends on how the tokenizer
     * makes its pieces. If pre is NULL, its key is not written. */
    const char *model, *pre;
    bool counts_ids; /* the number of ids is written as a key, too */
    bool masks;      /* the file has the key of a mask token already, so the tokenizer's own is not written */
} fr_tokenizer_form;

/* Adds the tokenizer.* keys for `vocab` ids, in this form (export_tokenizer.c). For a folder without tokenizer.json it
 * adds only the key that says that there is none. */
fr_status fr_export_tokenizer(const fr_checkpoint *files, const fr_tokenizer_form *form, size_t vocab,
                              fr_gguf_writer *writer);

#endif
