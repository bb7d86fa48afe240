/* What the forerun command needs beyond forerun.h. No promise of stability. */
#ifndef FORERUN_LAB_H
#define FORERUN_LAB_H

#include "forerun.h"

#include <stdio.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What fr_options_set takes of an option, whole numbers of low to high, or of one that takes a real number
 * fr_options_set_number: least to most. Of the other kind, and of an option that takes a text, both are 0. */
typedef struct fr_lab_range {
    int64_t low, high;
    double least, most;
} fr_lab_range;
fr_lab_range fr_lab_option_range(fr_option option);

/* How fr_lab_inspect describes. */
typedef struct fr_lab_inspection {
    const char *target; /* the model to check a drafter against, or NULL */
    bool tensors;       /* list every tensor too */
    bool json;          /* one object instead of lines */
    /* Positions that a session's memory is told for: 0 for its default, SIZE_MAX for all; at most those that the model
     * was made for. FR_USAGE of a drafter or a tower without their model. */
    size_t context;
    size_t *limit; /* NULL, or out: positions that the model was made for */
} fr_lab_inspection;

/* Writes what a model or drafter folder is, and checks that it can be used: architecture, shapes, parameters, types,
 * tokenizer, memory a session would take. A folder that can't be used is FR_INPUT with the reason in fr_last_error().
 * One that this machine, or a control group of the process, has no memory for is described, and then FR_MEMORY, as to
 * fr_model_open.
 * how: NULL for lines. */
fr_status fr_lab_inspect(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out);

/* Values of the tensors that a model uses; and the type that most bytes of them are of, "Q4_K", "BF16". */
uint64_t fr_lab_model_parameters(const fr_model *model);
const char *fr_lab_model_type(const fr_model *model);

/* A published shape, and what of it. */
typedef struct fr_lab_shape {
    const char *name; /* of FR_LAB_SHAPES */
    const char *type; /* of all matrices: of FR_LAB_WRITTEN */
    size_t vocab;     /* ids; 0: the shape's own */
    size_t layers;    /* the first so many, the last of them of full attention; 0: all */
    size_t experts;   /* of each mixture so many; 0: all */
    void (*note)(const char *line); /* NULL, or called with lines about what a user may not expect */
} fr_lab_shape;

/* Writes random weights of a shape as GGUF: what engines are timed on. Of the options, progress counts; they may be
 * NULL. */
fr_status fr_lab_synth(const fr_lab_shape *shape, const fr_options *options, FILE *out);

/* Writes a GGUF target or drafter as a GGUF whose matrices are stored as kernels stream them: mapped and used as it
 * lies. Of the options, progress counts. What was written to out before a failure is of no use. */
fr_status fr_lab_pack(const char *path, const fr_options *options, FILE *out);

/* The same of a drafter that says what it is with its target at hand alone: an MTP layer in a file of its own, an EAGLE
 * drafter. */
fr_status fr_lab_pack_beside(const char *drafter, const char *target, const fr_options *options, FILE *out);

/* Words that options and calls take, by the library's own tables. */
typedef enum fr_lab_words {
    FR_LAB_NO_WORDS,
    FR_LAB_ISA,         /* instruction sets, weakest first */
    FR_LAB_DRAFT,       /* who drafts, as help has it, */
    FR_LAB_DRAFT_OTHER, /* and other names of the same */
    FR_LAB_CACHED,      /* types that keys and values are cached as */
    FR_LAB_WRITTEN,     /* types that fr_lab_quantize and fr_lab_synth write, */
    FR_LAB_MIXTURES,    /* and llama-quantize's mixtures of them, which the latter doesn't */
    FR_LAB_SHAPES,      /* of random weights */
    FR_LAB_PRE,         /* how GGUF files say that texts are cut */
    FR_LAB_WORDS_COUNT
} fr_lab_words;

/* NULL past the end. */
const char *fr_lab_word(fr_lab_words of, size_t index);

/* Whether this machine can run an instruction-set word. */
bool fr_lab_isa_here(const char *word);

/* A drafter for tests and timing: proposes the ids of a known continuation, wrong at chosen depths.
 * ids: the whole timeline, as the target is known to continue it (its token at index i is ids[i]); copied; one outside
 * the vocabulary is FR_INPUT. accept: a function of (round, depth from 0) that says whether this draft shall be right.
 * With a drafter, the drafter works as ever and its drafts are replaced, so a round costs what it costs. Call it
 * once, before the first prompt. */
typedef bool fr_lab_accept_fn(void *context, size_t round, size_t depth);
fr_status fr_lab_session_script(fr_session *session, const int32_t *ids, size_t count, fr_lab_accept_fn *accept,
                                void *context);

/* How a model is quantized. overrides: "PATTERN=TYPE" for tensors whose name a regular expression matches; the first
 * that matches decides. note: NULL, or told what a user may not expect. */
typedef struct fr_lab_quantization {
    /* Of matrices, in any case: FR_LAB_WRITTEN, or FR_LAB_MIXTURES; q3_k, q4_k and q5_k mean the mixtures M. */
    const char *type;
    bool pure; /* the type of every matrix; otherwise in llama-quantize's mixture */
    const char *const *overrides;
    size_t override_count;
    const char *output_type, *embedding_type; /* of the head and of embeddings; NULL: as the mixture has them */
    const char *imatrix; /* a file of llama.cpp's, of either form, that says how much columns matter; NULL: all alike */
    void (*note)(const char *line);
    const char *drafter; /* NULL; or the folder of an EAGLE-3 drafter for the model: it is what is written */
} fr_lab_quantization;

/* Writes a model or drafter, a published folder or a GGUF file, as GGUF. A value that is not finite, or too large for
 * its type, is FR_INPUT. Of the options, threads, pinning and progress count. What was written to out before a failure
 * is of no use. */
fr_status fr_lab_quantize(const char *path, const fr_lab_quantization *how, const fr_options *options, FILE *out);

/* A model that is opened with these options sums up what its matrices are applied to, from then on: by column the
 * squares of all rows that run. The head's too, if wanted. That is for GGUF files, whose names of tensors importance
 * matrices go by. */
void fr_lab_collect(fr_options *options, bool head);

/* Where sums are from, and how they are written. */
typedef struct fr_lab_importances {
    const char *text;     /* its name */
    size_t chunk, chunks; /* ids of a chunk, at least 1, and how many have run */
    bool older;           /* llama.cpp's older form instead of GGUF */
    void (*note)(const char *line); /* NULL, or told of experts that no row has chosen */
} fr_lab_importances;

/* Writes the sums of such a model as an importance matrix of llama.cpp's. */
fr_status fr_lab_write_importances(const fr_model *model, const fr_lab_importances *how, FILE *out);

/* Whether words of FR_OPT_SPEC_TYPE draft with a drafter's weights; NULL: not set, so it is the drafter's to say. */
bool fr_lab_takes_drafter(const char *spec_type);

/* Where a file that a path names lies or will lie: links at the path's end are followed, to what is not there yet too.
 * fr_free; NULL with errno set. */
char *fr_lab_file_place(const char *path);

/* FR_LOST if a file that a model or its drafter (NULL: it has none) is mapped from was cut or written to meanwhile. Any
 * thread, a few system calls. */
fr_status fr_lab_files_check(const fr_model *model, const fr_drafter *drafter);

/* True for a path that names an open descriptor (/dev/stdout, /dev/fd/3), perhaps by way of links: it is written in
 * place, whatever it leads to. */
bool fr_lab_file_is_descriptor(const char *path);

/* A file that gets its name once it is complete. open makes it under a temporary name in the folder of its place,
 * locked as long as a descriptor of it is open, and removes files that killed runs left there; -1 with errno set. keep
 * syncs it, renames it and syncs the folder; 0 or an errno, after which the temporary name may still be there. fd stays
 * open. */
int fr_lab_temporary_open(const char *place, char *name, size_t size, mode_t mode);
int fr_lab_temporary_keep(int fd, const char *name, const char *place);

/* Jansson's json_loadb, but for integers beyond int64: each is a string of its digits behind a byte FR_LAB_WIDE, which
 * no text begins with. Written out as those digits they mean the same to fr_chat_render. Duplicate keys may be refused
 * though flags don't ask for it. */
#define FR_LAB_WIDE '\xff'
struct json_t;
struct json_error_t;
struct json_t *fr_lab_json_load(const char *text, size_t length, size_t flags, struct json_error_t *error);

/* A session gives up its pages for those of others: what it holds waits in its memory (a session with pictures can't,
 * FR_INPUT), and it is empty until it takes them up again, FR_MEMORY where there are none. A failure changes nothing. A
 * reset drops what waits. Of several ranks each keeps its own part. */
fr_status fr_lab_session_set_aside(fr_session *session);
fr_status fr_lab_session_take_up(fr_session *session);

/* How much a reply may reason, as an fr_mask_fn: once it has for so many tokens, and a character of several is whole,
 * what ends reasoning comes next. A function of the ids alone. options_json, prompt: as for fr_reply_parser_begin;
 * count: of the prompt's ids. *budget is NULL where the model's template has no marks of reasoning; FR_UNBUILT: what
 * marks it is no token. The tokenizer outlives it. */
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
