/* Declares what the forerun command needs beyond forerun.h, without a promise of stability. */
#ifndef FORERUN_LAB_H
#define FORERUN_LAB_H

#include "forerun.h"

#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An option's range. For an option that fr_options_set sets, the range is low to high, and least and most are 0. For an
 * option that fr_options_set_number sets, it is least to most, and low and high are 0. For an option that takes a text,
 * all four are 0. */
typedef struct fr_lab_range {
    int64_t low, high;
    double least, most;
} fr_lab_range;
fr_lab_range fr_lab_option_range(fr_option option);

/* Says what fr_lab_inspect describes, and in which form. */
typedef struct fr_lab_inspection {
    const char *target; /* the target against which a drafter is checked, or NULL */
    bool tensors;       /* list every tensor too */
    bool json;          /* one JSON object instead of lines */
    /* Number of positions for which a session's memory is computed. 0 means the default, and SIZE_MAX the number that
     * the model was trained for, which is also the most. FR_USAGE for a drafter or a tower without its model. */
    size_t context;
    size_t *limit; /* NULL, or out: positions that the model was trained for */
    /* Picture files; for each of them the number of its tokens is printed, too. FR_INPUT if the model or tower can't
     * read one of them. */
    const char *const *images;
    size_t image_count;
} fr_lab_inspection;

/* Describes a model or a drafter and checks that it can be used: architecture, shapes, parameters, types, tokenizer,
 * and the memory that a session would take. If it can't be used, the call returns FR_INPUT, with the reason in
 * fr_last_error. If this machine or the process's control group has too little memory for the model, the model is still
 * described, and the call returns FR_MEMORY, as fr_model_open would. how: NULL for plain lines. */
fr_status fr_lab_inspect(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out);

/* Return the number of values in the tensors that a model uses, and the type of most of their bytes ("Q4_K", "BF16").
 */
uint64_t fr_lab_model_parameters(const fr_model *model);
const char *fr_lab_model_type(const fr_model *model);

/* Says which published model's shape fr_lab_synth writes, and which part of it. */
typedef struct fr_lab_shape {
    const char *name;               /* one of FR_LAB_SHAPES */
    const char *type;               /* the type of all matrices, one of FR_LAB_WRITTEN */
    size_t vocab;                   /* number of ids; 0: the shape's own */
    size_t layers;                  /* number of layers to write, beginning with the first; 0: all */
    size_t experts;                 /* experts in each mixture; 0: all */
    void (*note)(const char *line); /* NULL, or a function that gets warnings for the user, a line each */
} fr_lab_shape;

/* Writes random weights in a shape as GGUF, so that engines can be timed with them. options: only the progress function
 * is read; may be NULL. */
fr_status fr_lab_synth(const fr_lab_shape *shape, const fr_options *options, FILE *out);

/* Writes a GGUF target or drafter as another GGUF file. In the new file the matrices are stored in the order in which
 * kernels read them, so that the file is mapped and used in place. options: only the progress function is read. After a
 * failure, the bytes written so far are no valid file. */
fr_status fr_lab_pack(const char *path, const fr_options *options, FILE *out);

/* Packs a drafter that can be read only together with its target: MTP layers in a file of their own, or an EAGLE
 * drafter. In all other respects it works like fr_lab_pack. */
fr_status fr_lab_pack_beside(const char *drafter, const char *target, const fr_options *options, FILE *out);

/* Lists of words that options and calls accept. They come from the library's own tables. */
typedef enum fr_lab_words {
    FR_LAB_NO_WORDS,
    FR_LAB_ISA,         /* instruction sets, weakest first */
    FR_LAB_DRAFT,       /* draft methods, as the help names them */
    FR_LAB_DRAFT_OTHER, /* other names of draft methods */
    FR_LAB_CACHED,      /* types in which keys and values are cached */
    FR_LAB_WRITTEN,     /* types in which fr_lab_quantize and fr_lab_synth write matrices */
    FR_LAB_MIXTURES,    /* llama-quantize's mixtures of the types in FR_LAB_WRITTEN; fr_lab_synth does not write
                         * mixtures */
    FR_LAB_SHAPES,      /* shapes of random weights */
    FR_LAB_PRE,         /* names in GGUF files of the rules that cut a text before tokens are merged */
    FR_LAB_WORDS_COUNT
} fr_lab_words;

/* Returns the word at this index of a list; NULL after the last. */
const char *fr_lab_word(fr_lab_words of, size_t index);

/* Returns the word of the sampler at this index of the order that the options set, or of the default order if they set
 * none; NULL after the last. */
const char *fr_lab_sampler(const fr_options *options, size_t index);

/* Returns true if this machine can run the instruction set that this word names. */
bool fr_lab_isa_here(const char *word);

/* Gives a session prepared drafts, for tests and timing: the ids of a known continuation, made wrong at chosen depths
 * (places in a round). ids: the whole timeline, with the continuation that the target is known to give. The ids are
 * copied; an id outside the vocabulary is FR_INPUT. accept: gets the round and the depth, both from 0, and returns true
 * if that draft shall be right. The session's drafter still runs, so that a round takes its usual time, but its drafts
 * are replaced. Call it once, before the first prompt. */
typedef bool fr_lab_accept_fn(void *context, size_t round, size_t depth);
fr_status fr_lab_session_script(fr_session *session, const int32_t *ids, size_t count, fr_lab_accept_fn *accept,
                                void *context);

/* Says how a model is quantized. overrides: texts "PATTERN=TYPE". The first text whose regular expression PATTERN
 * matches a tensor's name decides that tensor's type. note: NULL, or a function that gets warnings for the user, a line
 * each. */
typedef struct fr_lab_quantization {
    /* The matrices' type: one of FR_LAB_WRITTEN or FR_LAB_MIXTURES, in upper or lower case. q3_k, q4_k and q5_k mean
     * the mixtures q3_k_m, q4_k_m and q5_k_m. */
    const char *type;
    bool pure; /* every matrix has the type; otherwise each matrix has the type that llama-quantize would give it */
    const char *const *overrides;
    size_t override_count;
    /* types of the head and of the embeddings; NULL: the type that llama-quantize would give them */
    const char *output_type, *embedding_type;
    const char *imatrix; /* path of a llama.cpp importance matrix; NULL: all columns have the same weight */
    void (*note)(const char *line);
    const char *drafter; /* NULL, or the folder of an EAGLE-3 drafter for the model; then only the drafter is written */
    bool tower;          /* writes only the folder's vision tower, as llama.cpp's mmproj file */
    /* adapters (fr_adapter_open) that are merged into the matrices in float32, and the scale of each */
    const char *const *adapters;
    const double *adapter_scales;
    size_t adapter_count;
} fr_lab_quantization;

/* Sets *found to true if the folder has a vision tower that fr_lab_quantize can write (fr_lab_quantization.tower). */
fr_status fr_lab_find_tower(const char *path, bool *found);

/* Writes a model or drafter (a published folder or a GGUF file) as GGUF. A value that is not finite, or too large for
 * its type, is FR_INPUT. options: the call reads threads, pinning and progress. After a failure, the bytes written so
 * far are no valid file. */
fr_status fr_lab_quantize(const char *path, const fr_lab_quantization *how, const fr_options *options, FILE *out);

/* Prepares options for a model that collects an importance matrix. A model that is opened with them sums the squares of
 * its matrices' inputs by column, over all rows that it runs. If `head` is true, this includes the inputs of the head.
 * It works only for GGUF files, because importance matrices use GGUF's names of tensors. */
void fr_lab_collect(fr_options *options, bool head);

/* Describes the text that was run to collect the sums, and how they are written. */
typedef struct fr_lab_importances {
    const char *text;               /* name of the text that was run */
    size_t chunk, chunks;           /* chunk: ids in a chunk, at least 1; chunks: the number of chunks that ran */
    bool older;                     /* llama.cpp's older form instead of GGUF */
    void (*note)(const char *line); /* NULL, or a function that gets lines about experts that no row was sent to */
} fr_lab_importances;

/* Writes the sums that a model has collected (fr_lab_collect) as an importance matrix in llama.cpp's form. */
fr_status fr_lab_write_importances(const fr_model *model, const fr_lab_importances *how, FILE *out);

/* Gives a digest of all values and scales of an adapter, by which adapters are compared. */
void fr_lab_adapter_digest(const fr_adapter *adapter, uint8_t digest[32]);

/* Returns true if a draft method that spec_type names drafts with a drafter's weights. spec_type: words of
 * FR_OPT_SPEC_TYPE; NULL: the option is not set, so the drafter decides. */
bool fr_lab_takes_drafter(const char *spec_type);

/* Gives the path to which the symbolic links at the path's end lead, even if no file exists there yet. Free it with
 * fr_free. On failure the result is NULL, and errno is set. */
char *fr_lab_file_place(const char *path);

/* Returns FR_LOST if a mapped file of the model or of its drafter (NULL: none) was shortened or written to since it was
 * opened. May be called from any thread; makes a few system calls. */
fr_status fr_lab_files_check(const fr_model *model, const fr_drafter *drafter);

/* Returns true if the path names an open descriptor (/dev/stdout, /dev/fd/3), also through links. Such a file is
 * written in place. */
bool fr_lab_file_is_descriptor(const char *path);

/* These two functions write a file that gets its name once it is complete. fr_lab_temporary_open creates the file under
 * a temporary name in the folder of `place`. The file is locked as long as a descriptor of it is open. The call also
 * removes temporary files that killed processes left in the folder. On failure it returns -1 and sets errno.
 * fr_lab_temporary_keep syncs the file, renames it to `place` and syncs the folder. It returns 0, or an errno; after an
 * error the file may still have its temporary name. fd stays open. */
int fr_lab_temporary_open(const char *place, char *name, size_t size, mode_t mode);
int fr_lab_temporary_keep(int fd, const char *name, const char *place);

/* Parses JSON like jansson's json_loadb, except that an integer beyond int64 becomes a string. The string is the byte
 * FR_LAB_WIDE, with which no UTF-8 text begins, and then the integer's digits. In the JSON text for fr_chat_render the
 * integer must be written as plain digits again. Duplicate keys may be refused even if the flags do not ask for it. */
#define FR_LAB_WIDE '\xff'
struct json_t;
struct json_error_t;
struct json_t *fr_lab_json_load(const char *text, size_t length, size_t flags, struct json_error_t *error);

/* fr_lab_session_set_aside frees a session's pages so that other sessions can use them, and fr_lab_session_take_up gets
 * pages for it again. In between, a copy of its caches is kept in memory, and the session is empty. FR_INPUT for a
 * session with pictures, which can't be set aside. FR_MEMORY if there are no pages for the session when it is taken up.
 * A failure changes nothing. fr_session_reset discards the copy. Each rank keeps the copy of its own part. */
fr_status fr_lab_session_set_aside(fr_session *session);
fr_status fr_lab_session_take_up(fr_session *session);

/* Gives the session in which an embedder of an engine runs its texts, so that the session can get adapters. Further
 * texts run in copies of this session, for which the engine must have room. The session belongs to the embedder.
 * FR_USAGE for an embedder without an engine. */
fr_status fr_lab_embedder_session(fr_embedder *embedder, fr_session **session);

/* Gives the number of texts for which the last call of fr_embedder_rows or fr_embedder_scores made a row or a score. If
 * the call failed while it ran texts, this is the index of the text that failed, and all texts before it have their
 * rows or scores. If the call failed before it ran any text, this is 0. */
size_t fr_lab_embedder_done(const fr_embedder *embedder);

/* Opens a budget for a reply's reasoning, whose fr_lab_reply_budget_mask is an fr_mask_fn. After `most` tokens of
 * reasoning, the mask allows only tokens that complete the last character, and then only the tokens that end the
 * reasoning. The mask depends only on the ids. options_json, prompt: as in fr_reply_parser_begin. count: number of the
 * prompt's ids. *budget is NULL if the model's template marks no reasoning; FR_UNBUILT if the marks are not tokens. The
 * tokenizer must outlive the budget. */
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
