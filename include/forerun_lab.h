/* Declares what the forerun command needs beyond forerun.h, without a promise of stability. */
#ifndef FORERUN_LAB_H
#define FORERUN_LAB_H

#include "forerun.h"

#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An option's range: low to high if fr_options_set sets it, least to most if fr_options_set_number does. The pair that
 * is not used is 0; for an option that takes a text both pairs are 0. */
typedef struct fr_lab_range {
    int64_t low, high;
    double least, most;
} fr_lab_range;
fr_lab_range fr_lab_option_range(fr_option option);

/* Says what fr_lab_inspect describes, and in which form. */
typedef struct fr_lab_inspection {
    const char *target; /* the model to check a drafter against, or NULL */
    bool tensors;       /* list every tensor too */
    bool json;          /* one JSON object instead of lines */
    /* Number of positions for which a session's memory is computed, at most those that the model was trained for: 0
     * for the default, SIZE_MAX for all of them. FR_USAGE for a drafter or a tower without its model. */
    size_t context;
    size_t *limit; /* NULL, or out: positions that the model was trained for */
    /* Picture files, for each of which the number of tokens is printed too. FR_INPUT if the model or tower can't see
     * one of them. */
    const char *const *images;
    size_t image_count;
} fr_lab_inspection;

/* Describes a model or a drafter and checks that it can be used: architecture, shapes, parameters, types, tokenizer,
 * and the memory that a session would take. FR_INPUT, with the reason in fr_last_error, if it can't be used. A model
 * for which this machine or the process's control group has no memory is described too; the result is then FR_MEMORY,
 * as fr_model_open would return. how: NULL for plain lines. */
fr_status fr_lab_inspect(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out);

/* Return the number of values in the tensors that a model uses, and the type of most of their bytes ("Q4_K", "BF16").
 */
uint64_t fr_lab_model_parameters(const fr_model *model);
const char *fr_lab_model_type(const fr_model *model);

/* A published model's shape, and which part of it fr_lab_synth writes. */
typedef struct fr_lab_shape {
    const char *name;               /* one of FR_LAB_SHAPES */
    const char *type;               /* the type of all matrices, one of FR_LAB_WRITTEN */
    size_t vocab;                   /* number of ids; 0: the shape's own */
    size_t layers;                  /* number of layers to write, from the first; 0: all */
    size_t experts;                 /* experts in each mixture; 0: all */
    void (*note)(const char *line); /* NULL, or a function that gets warnings for the user, a line each */
} fr_lab_shape;

/* Writes random weights of a shape as GGUF, so that engines can be timed on it. options: only the progress function is
 * read; may be NULL. */
fr_status fr_lab_synth(const fr_lab_shape *shape, const fr_options *options, FILE *out);

/* Writes a GGUF target or drafter as another GGUF file. There the matrices are stored in the order in which kernels
 * stream them, so that the file is mapped and used in place. options: only the progress function is read. After a
 * failure, what was written so far is no valid file. */
fr_status fr_lab_pack(const char *path, const fr_options *options, FILE *out);

/* Packs a drafter that can be read only together with its target: MTP layers in a file of their own, or an EAGLE
 * drafter. Everything else is as in fr_lab_pack. */
fr_status fr_lab_pack_beside(const char *drafter, const char *target, const fr_options *options, FILE *out);

/* Lists of words that options and calls take, from the library's own tables. */
typedef enum fr_lab_words {
    FR_LAB_NO_WORDS,
    FR_LAB_ISA,         /* instruction sets, weakest first */
    FR_LAB_DRAFT,       /* draft methods, as the help names them */
    FR_LAB_DRAFT_OTHER, /* other names of draft methods */
    FR_LAB_CACHED,      /* types that keys and values are cached as */
    FR_LAB_WRITTEN,     /* types that fr_lab_quantize and fr_lab_synth write */
    FR_LAB_MIXTURES,    /* llama-quantize's mixtures of the types in FR_LAB_WRITTEN; fr_lab_synth does not write
                         * mixtures */
    FR_LAB_SHAPES,      /* shapes of random weights */
    FR_LAB_PRE,         /* names by which GGUF files say how a text is cut before tokens are merged */
    FR_LAB_WORDS_COUNT
} fr_lab_words;

/* Returns a word of a list, NULL after the last. */
const char *fr_lab_word(fr_lab_words of, size_t index);

/* Returns the word of the sampler at this index of the options' order, or of the default order if the options set
 * none; NULL after the last. */
const char *fr_lab_sampler(const fr_options *options, size_t index);

/* Returns true if this machine can run the instruction set that this word names. */
bool fr_lab_isa_here(const char *word);

/* Gives a session scripted drafts, for tests and timing: the ids of a known continuation, made wrong at chosen depths.
 * ids: the whole timeline, with the continuation that the target is known to give; they are copied, and an id outside
 * the vocabulary is FR_INPUT. accept: gets the round and the depth, from 0, and returns true if that draft is to be
 * right. The session's drafter still runs, so that a round takes its usual time, but its drafts are replaced. Call it
 * once, before the first prompt. */
typedef bool fr_lab_accept_fn(void *context, size_t round, size_t depth);
fr_status fr_lab_session_script(fr_session *session, const int32_t *ids, size_t count, fr_lab_accept_fn *accept,
                                void *context);

/* Says how a model is quantized. overrides: "PATTERN=TYPE" for tensors whose name a regular expression matches; the
 * first that matches decides. note: NULL, or a function that gets warnings for the user, a line each. */
typedef struct fr_lab_quantization {
    /* The matrices' type, one of FR_LAB_WRITTEN or FR_LAB_MIXTURES in upper or lower case; q3_k, q4_k and q5_k mean
     * the mixtures q3_k_m, q4_k_m and q5_k_m. */
    const char *type;
    bool pure; /* every matrix has the type; otherwise llama-quantize's mixture decides */
    const char *const *overrides;
    size_t override_count;
    const char *output_type, *embedding_type; /* types of head and embeddings; NULL: those that the mixture gives
                                               * them */
    const char *imatrix; /* path of a llama.cpp importance matrix; NULL: all columns have the same weight */
    void (*note)(const char *line);
    const char *drafter; /* NULL, or the folder of an EAGLE-3 drafter for the model; then only the drafter is written */
    bool tower;          /* the folder's vision tower is written instead, as llama.cpp's mmproj file */
    /* adapters (fr_adapter_open) that are merged into the matrices in float32, each with a scale of its own */
    const char *const *adapters;
    const double *adapter_scales;
    size_t adapter_count;
} fr_lab_quantization;

/* Sets *found to true if the folder has a vision tower that fr_lab_quantize can write (fr_lab_quantization.tower). */
fr_status fr_lab_find_tower(const char *path, bool *found);

/* Writes a model or drafter (a published folder or a GGUF file) as GGUF. A value that is not finite, or too large for
 * its type, is FR_INPUT. options: threads, pinning and progress are read. After a failure, what was written so far is
 * no valid file. */
fr_status fr_lab_quantize(const char *path, const fr_lab_quantization *how, const fr_options *options, FILE *out);

/* Makes a model that is opened with these options sum the squares of its matrices' inputs by column, over all rows
 * that it runs. The inputs of the head are included if `head` is true. This works only for GGUF files, because
 * importance matrices use GGUF's names of tensors. */
void fr_lab_collect(fr_options *options, bool head);

/* Says where the sums come from and how they are written. */
typedef struct fr_lab_importances {
    const char *text;               /* name of the text that was run */
    size_t chunk, chunks;           /* chunk: ids in a chunk, at least 1; chunks: the number of chunks that ran */
    bool older;                     /* llama.cpp's older form instead of GGUF */
    void (*note)(const char *line); /* NULL, or called with lines about experts that no row chose */
} fr_lab_importances;

/* Writes the sums that a model has collected (fr_lab_collect) as an importance matrix in llama.cpp's form. */
fr_status fr_lab_write_importances(const fr_model *model, const fr_lab_importances *how, FILE *out);

/* Gives the digest that stands for all values and scales of an adapter. */
void fr_lab_adapter_digest(const fr_adapter *adapter, uint8_t digest[32]);

/* Returns true if these words of FR_OPT_SPEC_TYPE draft with a drafter's weights. NULL: the option is not set, so the
 * drafter decides. */
bool fr_lab_takes_drafter(const char *spec_type);

/* Gives the path with the symbolic links at its end followed, even to a file that does not exist yet. Free it with
 * fr_free. NULL with errno set on failure. */
char *fr_lab_file_place(const char *path);

/* Returns FR_LOST if a mapped file of the model or its drafter (NULL: none) was cut or written to since it was opened.
 * May be called from any thread; it makes a few system calls. */
fr_status fr_lab_files_check(const fr_model *model, const fr_drafter *drafter);

/* Returns true for a path that names an open descriptor (/dev/stdout, /dev/fd/3), also through links: such a file is
 * written in place. */
bool fr_lab_file_is_descriptor(const char *path);

/* Write a file that gets its name once it is complete. fr_lab_temporary_open creates the file under a temporary name
 * in the folder of `place`, and locks it as long as a descriptor of it is open. It also removes temporary files that
 * killed runs left there; it returns -1 with errno set on failure. fr_lab_temporary_keep syncs the file, renames it to
 * `place` and syncs the folder; it returns 0 or an errno, after which the temporary name may still exist. fd stays
 * open. */
int fr_lab_temporary_open(const char *place, char *name, size_t size, mode_t mode);
int fr_lab_temporary_keep(int fd, const char *name, const char *place);

/* Parses JSON like jansson's json_loadb, except that an integer beyond int64 becomes a string: the byte FR_LAB_WIDE,
 * with which no text begins, and its digits. In the JSON text for fr_chat_render such a number is plain digits again.
 * Duplicate keys may be refused even where the flags don't ask for it. */
#define FR_LAB_WIDE '\xff'
struct json_t;
struct json_error_t;
struct json_t *fr_lab_json_load(const char *text, size_t length, size_t flags, struct json_error_t *error);

/* Set a session aside so that other sessions can use its pages, and take it up again. Meanwhile a copy of its caches
 * waits in memory and the session is empty. FR_INPUT for a session with pictures, which can't be set aside; FR_MEMORY
 * where there are no pages to take it up. A failure changes nothing. A reset drops the copy. Each rank keeps its own
 * part. */
fr_status fr_lab_session_set_aside(fr_session *session);
fr_status fr_lab_session_take_up(fr_session *session);

/* Gives the session in which an embedder of an engine runs its texts, so that the session can get adapters. Copies of
 * it run further texts in the free places of the engine. The session belongs to the embedder. FR_USAGE for an embedder
 * without an engine. */
fr_status fr_lab_embedder_session(fr_embedder *embedder, fr_session **session);

/* Gives the number of texts whose rows or scores the last call of fr_embedder_rows or fr_embedder_scores made. If the
 * call failed while it ran texts, this is the index of the text that failed, and the texts before it have their rows or
 * scores. If the call was refused before it ran any, this is 0. */
size_t fr_lab_embedder_done(const fr_embedder *embedder);

/* Opens a budget for a reply's reasoning, whose fr_lab_reply_budget_mask is an fr_mask_fn. After `most` tokens of
 * reasoning, and any more that complete the last character, the mask allows only what ends the reasoning. The mask
 * depends on the ids alone. options_json, prompt: as for fr_reply_parser_begin. count: number of the prompt's ids.
 * *budget is NULL if the model's template marks no reasoning; FR_UNBUILT if the marks are not tokens. The tokenizer
 * must outlive the budget. */
typedef struct fr_lab_reply_budget fr_lab_reply_budget;
fr_status fr_lab_reply_budget_open(const fr_tokenizer *tokenizer, const char *options_json,
                                   const fr_marked_text *prompt, size_t count, size_t most,
                                   fr_lab_reply_budget **budget);
void fr_lab_reply_budget_close(fr_lab_reply_budget *budget);
fr_status fr_lab_reply_budget_mask(void *budget, const int32_t *ids, size_t length, float *logits, size_t vocab);

#ifdef __cplusplus
}
#endif
#endif
