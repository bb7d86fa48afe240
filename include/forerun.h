/* forerun: speculative decoding on the CPU, one answer by construction.
 *
 * The data path:   MODEL on disk -> fr_model -> fr_session: prompt, then steps -> token ids -> text. A whole program,
 * which make install puts into share/doc/forerun/examples beside others (an engine, a method of one's own, C++):
 *
 *     #include <forerun.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     static fr_status print_answer(fr_session *session, fr_decoder *decoder) {
 *         int32_t ids[FR_STEP_MAX];
 *         size_t count = 1, length = 0, i;
 *         const char *text = "";
 *         fr_status status = FR_OK;
 *         while (status == FR_OK && count > 0) {
 *             status = fr_session_step(session, ids, FR_STEP_MAX, &count, NULL);
 *             for (i = 0; i < count && status == FR_OK; i++) {
 *                 status = fr_decoder_feed(decoder, ids[i], &text, &length);
 *                 fwrite(text, 1, length, stdout);
 *             }
 *         }
 *         if (status == FR_OK) status = fr_decoder_finish(decoder, &text, &length);
 *         if (status == FR_OK) fwrite(text, 1, length, stdout);
 *         return status;
 *     }
 *
 *     int main(int argc, char **argv) {
 *         fr_model *model = NULL;
 *         fr_drafter *drafter = NULL;
 *         fr_session *session = NULL;
 *         fr_decoder *decoder = NULL;
 *         int32_t *ids = NULL;
 *         size_t count = 0;
 *         if (argc < 3) return FR_USAGE;
 *         fr_status status = fr_model_open(argv[1], NULL, &model);
 *         if (status == FR_OK && argc > 3) status = fr_drafter_open(argv[3], model, NULL, &drafter);
 *         if (status == FR_OK) status = fr_session_open(model, drafter, NULL, &session);
 *         if (status == FR_OK) status = fr_decoder_new(fr_model_tokenizer(model), false, &decoder);
 *         if (status == FR_OK)
 *             status = fr_tokenize(fr_model_tokenizer(model), argv[2], strlen(argv[2]), true, false, &ids, &count);
 *         if (status == FR_OK) status = fr_session_prompt(session, ids, count);
 *         if (status == FR_OK) status = print_answer(session, decoder);
 *         if (status != FR_OK) fprintf(stderr, "%s: %s\n", fr_status_name(status), fr_last_error());
 *         fr_free(ids);
 *         fr_decoder_free(decoder);
 *         fr_session_close(session);
 *         fr_drafter_close(drafter);
 *         fr_model_close(model);
 *         return (int)status;
 *     }
 *
 * Three nouns. A model and a drafter never change once opened and may be shared by any number of sessions and threads;
 * so may a tokenizer, a picture, and options that nobody changes meanwhile. A session is one timeline: one thread at a
 * time may call into it, any thread, not always the same. Everything not in this file is not API. Enumerators may get
 * other numbers, and the five structs that are public (fr_span, fr_marked_text, fr_drafting, fr_proposer, fr_round)
 * other fields, with a new minor version until 1.0 is out: the shared library's name and its symbols' version have it,
 * and FR_VERSION tells a program that links otherwise. Ids are int32_t, counts and lengths are in tokens, sizes in
 * bytes, times in seconds.
 *
 * Callbacks (progress, log, abort, mask, ...) are called by the thread that called into the library, within the call.
 * They must not call into the object that they were called from, and must return: neither a C++ exception nor longjmp
 * may leave one. A call may take 300 KB of its thread's stack.
 *
 * Errors. Functions that can fail return a status. fr_last_error() then has one line that names the file, tensor or
 * number at fault, and behind a line feed perhaps a second one, of what would do instead. It belongs to the calling
 * thread and stays until that thread's next failing call; a status that a caller's own function gave is passed on
 * without one. A failing *_open leaves NULL behind; what else a failing call would give is 0, NULL or empty. Every
 * *_close and *_free takes NULL. Options may be NULL, the defaults; any other pointer only where it is said: elsewhere
 * NULL is FR_USAGE (a tokenizer FR_INPUT: the model has none), and of a function that gives no status the answer is 0,
 * NULL, false, -1 or NaN.
 *
 * Processes. After fork() a child may use models, drafters and tokenizers of its parent, and open sessions of them; a
 * session or engine that its parent opened has no threads there: calls that would run something are FR_USAGE, and
 * closing it only gives its memory back. Close everything before the library is unloaded (dlclose): sessions have
 * threads in it. A weights file may be replaced by another of its name while it is open (rename), but not written to:
 * answers would change, or the program end (see fr_mapped_file).
 *
 * Floating point. The answer does not depend on the caller's rounding mode, flush-to-zero or exception masks: every
 * call sets the default environment and gives the caller's back. */
#ifndef FORERUN_H
#define FORERUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shared library shows what is declared here, and nothing else. */
#pragma GCC visibility push(default)

#define FR_VERSION_MAJOR 0
#define FR_VERSION_MINOR 2
#define FR_VERSION_PATCH 0

/* Raised whenever a logit or an id of some model may differ from what it was: hashes of answers can be compared between
 * machines and versions while this number is the same (quant/NUMERICS.md, tests/data/answers). */
#define FR_NUMERICS_VERSION 4

/* The header that was compiled, as a text: "0.2.0". */
#define FR_VERSION_TEXT(number) #number
#define FR_VERSION_OF(major, minor, patch) FR_VERSION_TEXT(major) "." FR_VERSION_TEXT(minor) "." FR_VERSION_TEXT(patch)
#define FR_VERSION FR_VERSION_OF(FR_VERSION_MAJOR, FR_VERSION_MINOR, FR_VERSION_PATCH)

/* The library that is linked. A program that finds it by other means than its soname (dlopen, an archive of its own)
 * asks for the same text as FR_VERSION, up to the last point. */
const char *fr_version(void);

/* ------------------------------------------------------------------------------------------------ status and errors */

typedef enum fr_status {
    FR_OK = 0,
    FR_INPUT = 1,   /* a file, model, prompt or id that can't be used */
    FR_USAGE = 2,   /* an argument or option value that means nothing */
    FR_MEMORY = 3,  /* the system gave no memory */
    FR_NUMERIC = 4, /* the weights gave a logit that is not finite */
    FR_MACHINE = 5, /* this machine lacks what was asked for (an instruction set, say) */
    FR_UNBUILT = 6, /* a known part of the design that is not built yet: a family, a drafter, a conversion */
    FR_ABORTED = 7, /* an abort callback said so */
    FR_LOST = 8,    /* a file that weights are mapped from was cut or written to meanwhile: open the model anew */
} fr_status;

/* "input", "usage", ...; static storage. */
const char *fr_status_name(fr_status status);

/* The line of this thread's last failure, "" before any. Valid until the thread's next failing call. */
const char *fr_last_error(void);

/* Frees what a function above allocated for its caller. */
void fr_free(void *memory);

/* A weights file that gets shorter while it is open, or whose disk fails, ends the program by SIGBUS as soon as a byte
 * is read that is gone (one that is written to, or cut by less than a page, is FR_INPUT). The library handles no
 * signals; a handler can tell by this what happened: the path of the mapped file that the address (si_addr) lies in,
 * as it was opened; NULL: in none. Async-signal-safe. The path lasts as long as what it was opened for. */
const char *fr_mapped_file(const void *address);

/* ------------------------------------------------------------------------------------------------------------ ranks */

/* One model run by several processes, on one machine or more: ranks of an MPI job (builds with RANKS=mpi; others give
 * FR_UNBUILT). Each makes the same calls with the same arguments, and gets the answers of one process; models that it
 * opens from then on are run together. Call it before, once, while there is one thread: of cores that several ranks may
 * use each takes its part. A rank that is silent for so many seconds, has gone or does something else is FR_MACHINE
 * from then on, on all. A job of one process is none. A draft model is run together as well; drafters that
 * read the target's rows, and a vision tower, each rank runs for itself. */
fr_status fr_ranks_join(int timeout_seconds);

/* This process among them, and how many there are: 0 and 1 without a job. */
size_t fr_rank(void);
size_t fr_rank_count(void);

/* Leaves the job: before the process ends with that exit status, with its last line of errors, "" for none. Where
 * others don't end too the job is ended as a whole; rank 0 is told the line, which it then fails with. say(line), or
 * NULL: on rank 0 how another rank failed when this one was done already, on rank 1 how rank 0 has gone. Gives the exit
 * status, which is not 0 if it was not 0 or another rank failed; where the job is ended it does not return. */
int fr_ranks_part(int code, const char *line, void (*say)(const char *line));

/* ---------------------------------------------------------------------------------------------------------- options */

/* A bag of settings, read while something is opened and not kept: it may be freed or changed right after. Each call
 * reads what concerns it and passes the rest by:
 *
 *     fr_model_open       THREADS PIN NUMA ISA MMAP MLOCK MMPROJ CHAT_TEMPLATE TOKENIZER_PRE MEMORY, progress, log
 *     fr_drafter_open     THREADS PIN NUMA MMAP MLOCK MEMORY, progress, log; kernels are the model's
 *     fr_tokenizer_open   CHAT_TEMPLATE TOKENIZER_PRE
 *     fr_engine_open      CONTEXT to MEMORY, SPEC_TYPE, DRAFT_MAX
 *     fr_engine_session   SPEC_TYPE to SAMPLERS, PROMPT_REUSE, log
 *     fr_session_open     what those two read */
typedef struct fr_options fr_options;

typedef enum fr_option {
    /* -- Machine and files. */

    /* 1 to 1024; default: the cores this process may use (affinity and CPU quota) */
    FR_OPT_THREADS,
    /* Pin threads to cores, a session's to those that others leave: 0, 1, or -1 (default): 1 where threads are
     * spread over several NUMA nodes. One node's are left to the system, which takes them out of other programs' way */
    FR_OPT_PIN,
    /* 0 or 1 (default): spread threads over NUMA nodes and place memory by first touch */
    FR_OPT_NUMA,
    /* Text: scalar avx2 avxvnni avx512 avx512vnni neon dotprod i8mm; default: the best */
    FR_OPT_ISA,
    /* 0 or 1 (default): use weights as they lie in the file, or read them into memory */
    FR_OPT_MMAP,
    /* 0 (default) or 1: lock weights in memory; a system that refuses is FR_MACHINE */
    FR_OPT_MLOCK,
    /* Text: path of a GGUF text model's vision tower, llama.cpp's mmproj file; default: none */
    FR_OPT_MMPROJ,
    /* Text: path of a chat template, Jinja, to be used instead of the model's own */
    FR_OPT_CHAT_TEMPLATE,

    /* -- What a session has room for. */

    /* Positions a session can hold, 1 to 2^24; default 4096 or the model's own limit if less */
    FR_OPT_CONTEXT,
    /* Prompt rows a forward, 1 to 4096; default 64, of a mixture of experts 256 in a session that has its engine for
     * itself. An abort, a cancellation and what fr_session_set_progress is told are as fine as a forward: fewer rows
     * are finer, and slower */
    FR_OPT_CHUNK,
    /* Text: what keys are cached as, f32 f16 bf16 q8_0 q4_0; q8_0 and q4_0 need heads that are multiples of 32 wide;
     * default f32, or f16 where the weights are quantized */
    FR_OPT_KV_K,
    /* Text: what values are cached as, the same words; of latents, which are keys and values in one, the keys' alone */
    FR_OPT_KV_V,
    /* Bytes of the target's keys and values in an engine, shared by its sessions as they need it; default 0: as much as
     * all sessions may need. Pages that no session needs keep earlier prompts. When all pages are in use, a call that
     * needs more is FR_MEMORY and loses nothing: a prompt that it ran in part continues, as after an abort, once pages
     * are free. Drafts without room are left out. A drafter's own cache comes beside this one; a session that gets no
     * page of it drafts nothing. With ranks: the bytes of all heads in one process, of which each rank takes its
     * part */
    FR_OPT_KV_MEMORY,
    /* Checkpoints of sliding layers' caches, or of recurrent layers' states, that a session may keep, 0 to 1024,
     * default 8: what fr_session_truncate goes back to where those hold too little to go on */
    FR_OPT_CTX_CHECKPOINTS,
    /* 0 (default) or 1: sliding layers keep every position, and need no checkpoints */
    FR_OPT_SWA_FULL,
    /* Bytes that a model, its drafter and one engine (or a session with its own) may have in memory together, all that
     * must stay there; default 0: what the system has. What would not fit is FR_MEMORY before it is taken; of several
     * sessions the engine's keys and values are given less first, as by FR_OPT_KV_MEMORY. fr_model_estimate tells */
    FR_OPT_MEMORY,

    /* -- Drafting. The text doesn't depend on it. */

    /* Text: who drafts, none mtp eagle eagle3 draft ngram, or several with commas between: the first with a proposal
     * wins, ngram under FR_DRAFT_AUTO only where it gains more; all but none and ngram are the session's drafter, of
     * that kind; default: the drafter, of whatever kind, else none */
    FR_OPT_SPEC_TYPE,
    /* Drafts a step, 0 (none) to 15, or FR_DRAFT_AUTO (default): as many as pay */
    FR_OPT_DRAFT_MAX,
    /* Fewer drafts than this are none, 0 to 15, default 0; at most FR_OPT_DRAFT_MAX. Not with rejection, whose law
     * it would break */
    FR_OPT_DRAFT_MIN,
    /* Number 0 to 1: a draft that the drafter gives less of all chance, before temperature and filters, is not
     * proposed, nor what would follow it; under rejection the best draft's chance counts. ngram gives none a chance.
     * FR_DRAFT_P_AUTO (default): where FR_OPT_DRAFT_MAX is FR_DRAFT_AUTO, a chain ends where a next draft, by its
     * chance and by how many of such a chance have stood, is not worth its time; of a fixed number of drafts as 0 */
    FR_OPT_DRAFT_P_MIN,
    /* Text, of fr_drafter_open: which ids a drafter whose head scores them all does score, the rest are never drafted:
     * whole (default), all; N, the first N ids; or the path of a list that `forerun trim-head` wrote. Drafters with a
     * list of their own keep that */
    FR_OPT_DRAFT_HEAD,

    /* -- How a token is drawn from the target's logits; the order is that of FR_OPT_SAMPLERS. Penalties see the tokens
     * of the timeline, the prompt's too. Whatever is set, the text is the same with and without drafting (but see
     * FR_OPT_ACCEPT). */

    /* Number 0.01 to 100, default 1: a token that occurred has its logit divided by it, or multiplied where it is
     * negative */
    FR_OPT_REPEAT_PENALTY,
    /* Number -1000 to 1000, default 0: taken off for each occurrence */
    FR_OPT_FREQUENCY_PENALTY,
    /* Number -1000 to 1000, default 0: taken off once */
    FR_OPT_PRESENCE_PENALTY,
    /* Tokens that the penalties look back over, default 64; -1: all */
    FR_OPT_REPEAT_LAST_N,
    /* Text: "id+x,id-x,id:x", what to add to ids' logits; -inf bans an id, as ids of fr_model_suppressed are
     * whatever is set. Adds to what is set already, up to 256 ids */
    FR_OPT_LOGIT_BIAS,
    /* Number 0 to 100; default 0: greedy, the largest logit, the lowest id of equals */
    FR_OPT_TEMPERATURE,
    /* Keep the k largest and what equals the last of them; default 0: all */
    FR_OPT_TOP_K,
    /* Number 0 to 1: keep the fewest, best first, that have this much; default 1: all */
    FR_OPT_TOP_P,
    /* Number 0 to 1: keep what has this much of the best one's chance; default 0: all */
    FR_OPT_MIN_P,
    /* Of the noise, 0 to 2^63 - 1, default 0; the same seed gives the same text */
    FR_OPT_SEED,
    /* Text: gumbel (default), a draft stands where it is the target's own draw; rejection, it stands with
     * probability min(1, p / q): the distribution is the target's, but the text depends on drafter and depth */
    FR_OPT_ACCEPT,

    /* -- What ends a text, and what comes with its ids. */

    /* 0 (default) or 1: go on past an end of sequence, but that of a grammar's text */
    FR_OPT_IGNORE_EOS,
    /* Log-probabilities of the tokens a step gives and of this many best, 0 to 100; default -1: none */
    FR_OPT_LOGPROBS,

    /* -- More ways to draw, llama.cpp's by its names. */

    /* Number 0 to 1000, default 0: no DRY. A token that would go on a repetition of n tokens, n at least the allowed
     * length, has multiplier * base^(n - allowed length) taken off its logit */
    FR_OPT_DRY_MULTIPLIER,
    /* Number 1 to 1000, default 1.75 */
    FR_OPT_DRY_BASE,
    /* Default 2 */
    FR_OPT_DRY_ALLOWED_LENGTH,
    /* Tokens that DRY looks back over, default 64; -1: all */
    FR_OPT_DRY_PENALTY_LAST_N,
    /* Text, up to 40 bytes, that no repetition reaches across; adds to those set before, up to 16; "none": none.
     * Default: line break, colon, double quote, asterisk, where the model has a tokenizer */
    FR_OPT_DRY_SEQUENCE_BREAKER,
    /* Number -1 to 1000: keep logits at most that many standard deviations below the largest; default -1, as 0: all */
    FR_OPT_TOP_N_SIGMA,
    /* Number 0 to 1: keep the fewest, whose surprise is nearest to the entropy first, that have more than this; default
     * 1: all */
    FR_OPT_TYPICAL_P,
    /* Number 0 to 1, default 0: how often, drawn for each position, of the tokens that have the threshold's chance all
     * but the last are left out */
    FR_OPT_XTC_PROBABILITY,
    /* Number 0 to 1, default 0.1; above 0.5: nothing is left out */
    FR_OPT_XTC_THRESHOLD,
    /* Number 0 to 100, default 0: off. The temperature is between itself less this and itself plus this, by (entropy /
     * largest possible)^exponent of what is left */
    FR_OPT_DYNATEMP_RANGE,
    /* Number 0 to 100, default 1 */
    FR_OPT_DYNATEMP_EXPONENT,
    /* 2: mirostat 2, alone behind the temperature: no penalties, no other filters. Its bound begins anew with each
     * prompt; a fork and a restored session go on with theirs. 0 (default): none; 1 is FR_UNBUILT */
    FR_OPT_MIROSTAT,
    /* Number 0 to 100, default 0.1: learning rate, eta */
    FR_OPT_MIROSTAT_LR,
    /* Number 0 to 100, default 5: surprise aimed at in bits, tau */
    FR_OPT_MIROSTAT_ENT,
    /* Text: the filters to run, in this order: penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature, or
     * letters, edskypmxt. The first two stand in front. Default: all, in the order that stands here, llama.cpp's */
    FR_OPT_SAMPLERS,

    /* -- Of the tokenizer. */

    /* Text: how texts are cut before tokens are merged, by llama.cpp's names: llama-bpe qwen2 gpt-2 ...; instead of a
     * GGUF file's tokenizer.ggml.pre. Heeded for the model and a model that drafts for it; a folder's tokenizer.json
     * says it itself. Default: as the file says */
    FR_OPT_TOKENIZER_PRE,

    /* -- Added later: numbers of options stay as they are. */

    /* 0 (default) or 1: a step's log-probabilities are those of its draws, after masks, penalties, bias, filters and
     * temperature. Tokens that these exclude have -INFINITY, and are ordered by the model's own logits */
    FR_OPT_LOGPROBS_DRAWN,

    /* 0 or 1 (default): a session skips the leading tokens of a prompt that its engine has run before, in any session.
     * With 0 it runs the whole prompt; other sessions may still reuse what it ran */
    FR_OPT_PROMPT_REUSE,

    FR_OPT_COUNT
} fr_option;

/* Each step drafts as many tokens as the time of forwards and drafts, measured as the session runs, and the share of
 * drafts that stood make worthwhile; none at all where that is faster. */
#define FR_DRAFT_AUTO (-1)

/* Each chain of drafts ends by what such drafts have become: FR_OPT_DRAFT_P_MIN. */
#define FR_DRAFT_P_AUTO (-1.0)

/* NULL when out of memory. */
fr_options *fr_options_new(void);
fr_options *fr_options_copy(const fr_options *options);
void fr_options_free(fr_options *options);
fr_status fr_options_set(fr_options *options, fr_option option, int64_t value);
fr_status fr_options_set_number(fr_options *options, fr_option option, double value);
fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value);

/* What is set, or the default; options NULL: the defaults. -1 of a whole number whose default is the model's or the
 * machine's to say. FR_USAGE for an option that takes another kind of value. */
fr_status fr_options_get(const fr_options *options, fr_option option, int64_t *value);
fr_status fr_options_get_number(const fr_options *options, fr_option option, double *value);

/* The same of a text, into room for `size` bytes, its NUL included; "" where the default is the model's or the
 * machine's to say. *length: of the whole text; what has no room is FR_USAGE, so text NULL with size 0 asks how long it
 * is. It sets the option again, but for several of FR_OPT_DRY_SEQUENCE_BREAKER: a NUL stands between those. */
fr_status fr_options_get_text(const fr_options *options, fr_option option, char *text, size_t size, size_t *length);

/* The option that this thread's last failure is about, as a higher or another value of it would do: FR_OPT_CONTEXT
 * where a prompt is too long, say. FR_OPT_COUNT: none. */
fr_option fr_last_error_option(void);

/* "temperature", "top-k", ...: as error lines name an option; NULL for none. */
const char *fr_option_name(fr_option option);

/* What an option takes, and of a number from where to where (as doubles, whole ones beyond 2^53 rounded; NULL: not
 * asked). Of texts the range is empty. */
typedef enum fr_option_kind { FR_OPTION_WHOLE, FR_OPTION_NUMBER, FR_OPTION_TEXT } fr_option_kind;
fr_status fr_option_range(fr_option option, fr_option_kind *kind, double *low, double *high);

/* Called while weights are loaded, with done of total bytes, from the thread that called fr_model_open
 * (fr_drafter_open): true goes on, false ends the call with FR_ABORTED. */
typedef bool fr_progress_fn(void *context, uint64_t done, uint64_t total);
void fr_options_set_progress(fr_options *options, fr_progress_fn *progress, void *context);

/* What the library has to say, a line without its newline each, called by the thread that called into the library:
 * what was opened, what could be faster (FR_LOG_WARN: the lines of fr_model_note), what was restored or will be run
 * again. A model, drafter or session keeps the function that the options had when it was opened. The line is the
 * function's until it returns; it must not call into what it was called from. Failures are no lines here: they are
 * fr_last_error(). */
typedef enum fr_log_level { FR_LOG_DEBUG = 0, FR_LOG_INFO = 1, FR_LOG_WARN = 2 } fr_log_level;
typedef void fr_log_fn(void *context, fr_log_level level, const char *line);
void fr_options_set_log(fr_options *options, fr_log_fn *log, void *context);

/* ------------------------------------------------------------------------------------------------------------ model */

/* An opened target model: weights, configuration, tokenizer. Immutable, shareable between threads; must outlive the
 * drafters and sessions opened on it. */
typedef struct fr_model fr_model;

/* path: a folder with config.json, *.safetensors (or shards with their index) and tokenizer.json, as published; or a
 * GGUF file, any of its shards. The tokenizer may be missing where only ids are used. */
fr_status fr_model_open(const char *path, const fr_options *options, fr_model **model);
void fr_model_close(fr_model *model);

/* The same of a GGUF file's bytes, which are used as they lie and must outlive the model, unchanged; name: what error
 * lines call it. Begins at a multiple of 32 bytes, or FR_USAGE. (A descriptor has a path: "/proc/self/fd/N".) */
fr_status fr_model_open_bytes(const void *bytes, size_t size, const char *name, const fr_options *options,
                              fr_model **model);

/* Estimates the bytes that opening a model, perhaps its drafter, and an engine of so many sessions would take, without
 * loading any of it: bytes[FR_ESTIMATE_COUNT] out. One session without FR_OPT_KV_MEMORY is one that is opened alone; an
 * engine of one takes a few bytes more for each position, to find prompts again. drafter: a path, "" for the MTP layer
 * in the model's own checkpoint, NULL for none. Files that could not be opened fail as they would; an estimate that
 * exceeds memory or FR_OPT_MEMORY is given all the same. */
typedef enum fr_estimate {
    FR_ESTIMATE_RESIDENT,    /* weights that must stay in memory: copies, and what every token reads */
    FR_ESTIMATE_MAPPED,      /* weights that are used in files as they lie: they come and go as they are read */
    FR_ESTIMATE_KV,          /* the target's keys and values, of all sessions */
    FR_ESTIMATE_KV_LEAST,    /* the least value of FR_OPT_KV_MEMORY that this engine can be opened with; 0: of no use */
    FR_ESTIMATE_STATES,      /* what recurrent layers keep of all timelines */
    FR_ESTIMATE_CHECKPOINTS, /* of sliding layers' caches and of states */
    FR_ESTIMATE_DRAFTING,    /* a drafter's own keys and values, and what drafting works in */
    FR_ESTIMATE_SCRATCH,     /* what forwards work in, logits, and what else sessions hold */
    FR_ESTIMATE_TOTAL,       /* of these, all but MAPPED and KV_LEAST: what FR_OPT_MEMORY limits */
    FR_ESTIMATE_AVAILABLE,   /* what the system has for this process now */
    FR_ESTIMATE_COUNT
} fr_estimate;
fr_status fr_model_estimate(const char *path, const char *drafter, const fr_options *options, size_t sessions,
                            uint64_t *bytes);

/* Finds the path of a model that another program has downloaded, by its name; nothing is fetched. environment:
 * NAME=VALUE texts and a NULL, as POSIX's environ, which say where those programs' stores are; NULL: none. Names:
 *
 *     ORG/NAME          a repository in Hugging Face's cache (HF_HUB_CACHE, HF_HOME), llama.cpp's (LLAMA_CACHE) or LM
 *                       Studio's folder: as published, or its GGUF file, Q4_K_M, Q8_0, else the first
 *     ORG/NAME:TYPE     its first GGUF file of that type: Q5_K_M
 *     ORG/NAME:FILE     its GGUF file of that name
 *     ollama:NAME:TAG   in ollama's store (OLLAMA_MODELS)
 *
 * Letters may be of another case, and ORG/ and ollama: may be left out, if that names one model only. A path of an
 * existing file, or a text that is no name, is given back as it is; an address is FR_INPUT. *path: allocated; free it
 * with fr_free. FR_INPUT: no model has that name, and the line has the command that would download it. */
fr_status fr_model_find(const char *name, const char *const *environment, char **path);

/* All that there are, one after the other, until `told` gives false (FR_ABORTED). What it is given is the library's and
 * valid until it returns; it may open the model. */
typedef struct fr_found {
    const char *name;    /* that fr_model_find takes, or a path */
    const char *path;    /* where it lies: what fr_model_open takes, but where there is a problem */
    const char *tower;   /* a vision tower beside it, or NULL */
    const char *store;   /* whose it is: "Hugging Face", "llama.cpp", "LM Studio", "ollama" */
    const char *problem; /* why it can't be opened, as far as that is known; NULL: it isn't */
    uint64_t bytes;      /* of its files */
} fr_found;
typedef bool fr_found_fn(void *context, const fr_found *found);
fr_status fr_model_list(const char *const *environment, fr_found_fn *told, void *context);

/* How the rows of a text become one: sentence-transformers' 1_Pooling/config.json, GGUF's .pooling_type, whose numbers
 * these are. The rows' mean, the first one, the last one; RANK, which a classifier follows, is not built. */
typedef enum fr_pooling {
    FR_POOLING_NONE = 0,
    FR_POOLING_MEAN = 1,
    FR_POOLING_CLS = 2,
    FR_POOLING_LAST = 3,
    FR_POOLING_RANK = 4,
} fr_pooling;

typedef enum fr_fact {
    FR_FACT_VOCAB,         /* rows of the LM head: one logit each */
    FR_FACT_HIDDEN,        /* width of a hidden row */
    FR_FACT_LAYERS,
    FR_FACT_MTP_LAYERS,    /* that draft for it, in its own checkpoint: fr_drafter_open with path NULL */
    FR_FACT_IMAGE_TOKEN,   /* the id that stands for a row of a picture; -1: the model sees none */
    FR_FACT_WINDOW,        /* positions that its sliding layers look back over; 0: none slides */
    FR_FACT_CONTEXT_LIMIT, /* positions the model was made for */
    FR_FACT_WEIGHT_BYTES,  /* of the tensors that are used */
    FR_FACT_POOLING,       /* fr_pooling: what its makers embed texts by; FR_POOLING_NONE: they say nothing */
    FR_FACT_COUNT
} fr_fact;
int64_t fr_model_fact(const fr_model *model, fr_fact fact);

/* End-of-sequence ids: the union of generation_config.json's and config.json's, or what GGUF's metadata name. *ids
 * belongs to the model. */
size_t fr_model_eos(const fr_model *model, const int32_t **ids);

/* Sets an option of sampling to the value that the model's makers recommend: temperature, top_k, top_p, min_p,
 * typical_p and repetition_penalty of generation_config.json, where do_sample false is temperature 0, or a GGUF file's
 * general.sampling keys. *found is false, and the option is unchanged, if they recommend no value or one that the
 * option does not take. One thread at a time for the same options. */
fr_status fr_options_recommend(fr_options *options, const fr_model *model, fr_option option, bool *found);

/* Ids that the model's makers keep out of its texts: suppress_tokens of generation_config.json, or GGUF's
 * tokenizer.ggml.suppress_tokens; what is no id of its vocabulary is left out. Sessions never give them. *ids belongs
 * to the model. */
size_t fr_model_suppressed(const fr_model *model, const int32_t **ids);

/* The instruction-set word that the model's kernels run at ("avx512", "neon", ...). */
const char *fr_model_isa(const fr_model *model);

/* What is worth saying about an opened model, a line each: weights of a slow type, say. NULL past the last one. The
 * lines belong to the model. */
const char *fr_model_note(const fr_model *model, size_t index);

/* -------------------------------------------------------------------------------------------------------- tokenizer */

typedef struct fr_tokenizer fr_tokenizer;

/* path: a folder with tokenizer.json (and tokenizer_config.json, chat_template.jinja, if any), or a GGUF file. options:
 * FR_OPT_CHAT_TEMPLATE and FR_OPT_TOKENIZER_PRE are heeded. Immutable, shareable. */
fr_status fr_tokenizer_open(const char *path, const fr_options *options, fr_tokenizer **tokenizer);
void fr_tokenizer_close(fr_tokenizer *tokenizer);

/* What is worth saying about an opened tokenizer, a line each: what its file leaves out and was assumed, say. NULL past
 * the last one. The lines belong to the tokenizer; those of a model's own are among the model's too. */
const char *fr_tokenizer_note(const fr_tokenizer *tokenizer, size_t index);

/* The model's own tokenizer, NULL if it has none. Belongs to the model. */
const fr_tokenizer *fr_model_tokenizer(const fr_model *model);

/* Ids: one more than the largest; those that stand for something, -1 where the tokenizer has none. */
size_t fr_tokenizer_count(const fr_tokenizer *tokenizer);
int32_t fr_tokenizer_bos(const fr_tokenizer *tokenizer);
int32_t fr_tokenizer_eos(const fr_tokenizer *tokenizer);
int32_t fr_tokenizer_unk(const fr_tokenizer *tokenizer);

/* What a token is. Those of the second and third kind are looked for in texts before anything else is. */
typedef enum fr_token_kind {
    FR_TOKEN_NONE,    /* no token has this id */
    FR_TOKEN_TEXT,    /* of the model's own vocabulary */
    FR_TOKEN_ADDED,   /* added to it, and stands for text: a run of line breaks, say */
    FR_TOKEN_CONTROL, /* opens or closes what is not text: see below */
    FR_TOKEN_BYTE,    /* one byte, of characters that the vocabulary lacks */
    FR_TOKEN_UNKNOWN, /* for what it lacks otherwise */
} fr_token_kind;
fr_token_kind fr_token_kind_of(const fr_tokenizer *tokenizer, int32_t id);

/* A token's own text as the vocabulary has it ("<0x0A>", "<bos>"), and the bytes that it prints as (a line feed,
 * "<bos>"), which may be a part of a character; NULL and a length of 0 for no token. They belong to the tokenizer, and
 * the second has no NUL. */
const char *fr_token_text(const fr_tokenizer *tokenizer, int32_t id, size_t *length);
const char *fr_token_bytes(const fr_tokenizer *tokenizer, int32_t id, size_t *length);

/* Control tokens are those that open and close what is not text: tokens marked special (tokenizer.json) or CONTROL
 * (GGUF), and other added tokens that the chat template names (Qwen's <think>). Whose text they are in decides whether
 * they mean anything: of a prompt for a base model they do, of what somebody says in a chat they don't. Added tokens
 * that only abbreviate text, such as a run of line breaks, are found everywhere. */

/* Bytes to ids; any bytes are accepted. add_special: also what the post-processor adds (<bos>). parse_special: control
 * tokens in the text become their ids; otherwise no text whatever gives the id of one, but for that of <unk> where the
 * vocabulary has nothing else for a character. *ids is allocated; free it with fr_free. */
fr_status fr_tokenize(const fr_tokenizer *tokenizer, const char *text, size_t length, bool add_special,
                      bool parse_special, int32_t **ids, size_t *count);

/* Ids to bytes, special tokens printed. *text is allocated (NUL-terminated; length excludes the NUL); fr_free it.
 * An id outside the vocabulary is FR_INPUT. */
fr_status fr_detokenize(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, char **text, size_t *length);

/* Ids to text as they come. A decoder holds back the bytes of a character that is not complete yet, so that what it
 * hands out never ends inside one. One thread at a time. */
typedef struct fr_decoder fr_decoder;
fr_status fr_decoder_new(const fr_tokenizer *tokenizer, bool print_special, fr_decoder **decoder);
void fr_decoder_free(fr_decoder *decoder);

/* *text belongs to the decoder until its next call; *length may be 0. */
fr_status fr_decoder_feed(fr_decoder *decoder, int32_t id, const char **text, size_t *length);

/* What is still held back, at the end of a text: an incomplete character, its bytes as they are. */
fr_status fr_decoder_finish(fr_decoder *decoder, const char **text, size_t *length);

/* Bytes begin to end - 1 of a text. */
typedef struct fr_span {
    size_t begin, end;
} fr_span;

/* A text of two hands. What a chat template wrote itself is trusted: spans that ascend and lie apart from each other.
 * Everything else came from messages, tools or variables, where no special token is meant. */
typedef struct fr_marked_text {
    char *text; /* NUL-terminated; length excludes the NUL */
    size_t length;
    fr_span *trusted;
    size_t trusted_count;
} fr_marked_text;

/* Frees what it holds and leaves it empty. */
void fr_marked_text_free(fr_marked_text *text);

/* Bytes to ids, control tokens found in trusted bytes alone: every byte of a token must be, and which ones are found
 * there does not depend on the foreign bytes around them. Everything else is as for a whole text without
 * parse_special: it is not cut where trust begins or ends. Nothing is added (the template has written <bos>). Spans
 * that overlap, or end behind the text, are FR_USAGE. *ids is allocated; free it with fr_free. */
fr_status fr_tokenize_marked(const fr_tokenizer *tokenizer, const fr_marked_text *text, int32_t **ids, size_t *count);

/* ------------------------------------------------------------------------------------------------------------- chat */

/* A conversation as the prompt that the model was made for: its chat template over messages in the OpenAI form.
 *
 * The template is the checkpoint's own: chat_template.jinja, or "chat_template" in chat_template.json,
 * tokenizer_config.json or processor_config.json, or GGUF's tokenizer.chat_template; where tools are given, the one
 * named "tool_use" among them, or in additional_chat_templates, if there is one; or FR_OPT_CHAT_TEMPLATE's file. It is
 * Jinja, rendered byte for byte as transformers does. A checkpoint without one is given one of the library's own if its
 * tokens tell of a family that has one. A template that can't be read is FR_INPUT here, and no other function minds it.
 *
 * messages_json: JSON text of an array of {"role", "content", ...}, at least one, in whichever form clients send them:
 * arguments of calls are JSON text or objects, contents texts or lists of text parts (joined by line breaks), thoughts
 * `reasoning_content` or `reasoning`. The template gets the form that it takes, which it is asked for beforehand;
 * fr_chat_change tells what was changed more than that.
 * options_json: NULL, or JSON text of an object with variables of the template:
 *
 *     add_generation_prompt   true (default): the text ends where the model begins to answer
 *     enable_thinking         default: the template's own
 *     tools                   what the model may call, in the OpenAI form; default null
 *     pictures                true: the messages have parts {"type": "image"}, and the model sees. A template without a
 *                             token for pictures then gives way to one of the library's own; default false
 *     continue_final_message  true: the last message is the assistant's, and the text ends within it, after its content
 *                             or, if it only has a thought, after that: the model continues it; default false
 *     late_systems            false: a system message after other turns is left to the template, whose own error it
 *                             may be; default true: it is moved to where the template takes it
 *     rearrange               false: what the template has no place for (tools, calls, system messages, two turns of
 *                             one role in a row) is left to it; default true: it is put where the template takes it
 *     strict_roles            true: a role that neither OpenAI's API nor the template knows is FR_INPUT; default
 *                             false: a template that prints any role prints it
 *     ...                     whatever else the template knows. Each goes before the model's own variable of that name
 *                             (bos_token, eos_token), and is as foreign as a message unless it says the same
 *
 * The text has the template's own <bos>, NULs as messages do, and tells the template's bytes from all others: tokenize
 * it with fr_tokenize_marked, so that nothing in a message can end its turn. Free it with fr_marked_text_free; after a
 * failure it is empty. Templates are limited in steps, depth and memory. */
fr_status fr_chat_render(const fr_tokenizer *tokenizer, const char *messages_json, const char *options_json,
                         fr_marked_text *text);

/* The source of the template that a conversation without tools and pictures is rendered by, as it was given, NUL behind
 * it; NULL: there is none, or none that can be used. It belongs to the tokenizer. */
const char *fr_chat_template_text(const fr_tokenizer *tokenizer, size_t *length);

/* Gives a line about a change that fr_chat_render made to messages because the template would have refused them or left
 * them out. Each kind of change has one line for a tokenizer, given once, to the thread that asks first. NULL: there is
 * no new one. The line belongs to the library. */
const char *fr_chat_change(const fr_tokenizer *tokenizer);

/* What is worth saying to somebody who chats with this model, with pictures or without: that its chat template is the
 * library's own, say. NULL: nothing. It belongs to the tokenizer. */
const char *fr_chat_note(const fr_tokenizer *tokenizer, bool pictures);

/* ---------------------------------------------------------------------------------------------------------- replies */

/* What a reply is made of. Parts come in their order, each of the first two and arguments in any number of pieces. */
typedef enum fr_reply_part {
    FR_REPLY_CONTENT,   /* what is said */
    FR_REPLY_REASONING, /* what is thought before that, without the marks around it */
    FR_REPLY_CALL,      /* a tool call begins: its id */
    FR_REPLY_NAME,      /* the function's name, whole */
    FR_REPLY_ARGUMENTS, /* JSON text of an object */
    FR_REPLY_CALL_END,
    FR_REPLY_CALL_VOID, /* instead of its end: it was none after all, and comes again, whole, as content */
} fr_reply_part;

typedef void fr_reply_fn(void *context, fr_reply_part part, const char *text, size_t length);

/* Tells reasoning and tool calls from content in a reply as it is generated, by the marks that the model's chat
 * template writes around past ones: tokens of their own where the vocabulary has them, and no text that looks like
 * those. Parts are the same however the reply comes in pieces; what only looks like a call is content, byte for byte;
 * what is held back is what could still become a mark. Line breaks next to a mark belong to it. For one thread. */
typedef struct fr_reply_parser fr_reply_parser;

/* tokenizer: the model's, which must outlive it. part: NULL where only the message is wanted. */
fr_status fr_reply_parser_new(const fr_tokenizer *tokenizer, fr_reply_fn *part, void *context,
                              fr_reply_parser **parser);
void fr_reply_parser_free(fr_reply_parser *parser);

/* A new reply. prompt: what it answers, as fr_chat_render gave it, which may have opened the reasoning; NULL: it has
 * not. options_json: what the prompt was rendered with, or NULL. Of that the tools decide, with the template, and their
 * schemas tell the types of arguments that a model writes as plain text. whole_calls: calls are told of once they are
 * whole, and none is void; otherwise arguments come as they are generated. seed: ids of calls are made from it where
 * the model gives none. */
fr_status fr_reply_parser_begin(fr_reply_parser *parser, const fr_marked_text *prompt, const char *options_json,
                                bool whole_calls, uint64_t seed);

/* The next id of the reply, or a piece of text that is no token; FR_USAGE before a reply has begun. Special tokens that
 * are no marks are left out, as a decoder leaves them out. */
fr_status fr_reply_parser_feed(fr_reply_parser *parser, int32_t id);
fr_status fr_reply_parser_feed_text(fr_reply_parser *parser, const char *text, size_t length);

/* The reply's end: tells of all that was held back. A parser that ran out of memory says so (FR_MEMORY) from then on,
 * until the next reply begins. */
fr_status fr_reply_parser_finish(fr_reply_parser *parser);

/* The reply so far as a message in the OpenAI form, JSON text: {"role": "assistant", "content", "reasoning_content" and
 * "tool_calls" where there are any}. Bytes that are no UTF-8 are U+FFFD there. fr_free it. */
fr_status fr_reply_parser_message(const fr_reply_parser *parser, char **json, size_t *length);

/* --------------------------------------------------------------------------------------------------------- pictures */

/* A PNG or JPEG picture, read for a model that sees, which must outlive it; immutable, shareable. */
typedef struct fr_picture fr_picture;
fr_status fr_picture_open(const char *path, const fr_model *model, fr_picture **picture);

/* The same of a file's bytes, which are not kept; name: what error lines call it. A file of a few bytes can claim any
 * size. pixels: NULL, or how many there may be, of which those of the picture are taken off: more are FR_INPUT, before
 * any memory is taken for them. */
fr_status fr_picture_open_bytes(const void *bytes, size_t size, const char *name, size_t *pixels, const fr_model *model,
                                fr_picture **picture);
void fr_picture_close(fr_picture *picture);

/* How many image tokens (FR_FACT_IMAGE_TOKEN), one after the other, stand for it in a prompt. */
size_t fr_picture_tokens(const fr_picture *picture);

/* ---------------------------------------------------------------------------------------------------------- drafter */

/* An opened drafter, checked against its target: architecture, widths, vocabulary, KV sources. A model of another
 * vocabulary drafts by its text. path NULL: the MTP layer in the target's own checkpoint. */
typedef struct fr_drafter fr_drafter;
fr_status fr_drafter_open(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_close(fr_drafter *drafter);

/* The same about an opened drafter: a head that could be faster, say. */
const char *fr_drafter_note(const fr_drafter *drafter, size_t index);

/* ---------------------------------------------------------------------------------------------------------- session */

/* One timeline over a model: tokens so far, their KV cache, the drafter's state, statistics, a thread pool. */
typedef struct fr_session fr_session;

/* The most ids one step can give: 15 drafts and the target's own token. */
#define FR_STEP_MAX 16

/* drafter may be NULL: plain decoding. All memory is taken here: nothing is allocated while generating. */
fr_status fr_session_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                          fr_session **session);
void fr_session_close(fr_session *session);

/* The pictures that the image tokens of the next prompt, or of the next call for logits, stand for, in their order:
 * runs the vision tower over them, and asks before each whether to abort. The pictures may be closed afterwards. A
 * prompt whose image tokens are not as many as its pictures need is FR_INPUT. */
fr_status fr_session_show(fr_session *session, const fr_picture *const *pictures, size_t count);

/* Appends ids to the timeline and runs them. count >= 1; ids outside the vocabulary or beyond the context are FR_INPUT
 * and change nothing. May be called again between steps: a token that the last step gave is part of the timeline, do
 * not append it again. */
fr_status fr_session_prompt(fr_session *session, const int32_t *ids, size_t count);

/* One round: drafts, one verify forward, acceptance. Gives 1 to FR_STEP_MAX ids, in order, and how many of them,
 * counted from the first, were accepted drafts (the rest, at most one, is the target's own). The first step after a
 * prompt gives the one id that the prompt's forward predicts. limit: at most this many ids (>= 1, the size of ids);
 * drafting is cut to fit. The ids stop at an end of sequence (included), which also ends the session's steps: then, and
 * when the context is full, *count is 0. accepted may be NULL. After a failure both are 0, and the timeline is what it
 * was: the next step goes on from there. */
fr_status fr_session_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);

/* Makes ids the whole timeline and runs what is new of them: the beginning that they share with the timeline as it is
 * stays, the rest of that is cut off. What a conversation is given each turn. Conditions as for fr_session_prompt. */
fr_status fr_session_set_prompt(fr_session *session, const int32_t *ids, size_t count);

/* Makes ids the whole timeline, as fr_session_set_prompt does, but runs nothing: rounds will, in pieces beside others'
 * rows, or the next step. */
fr_status fr_session_put(fr_session *session, const int32_t *ids, size_t count);

/* Ids that are still to be run before the session gives any; 0: none. */
size_t fr_session_waiting(const fr_session *session);

/* Cuts the timeline to its first `length` tokens, 0 to what it has now. Then all is as after a prompt of these tokens:
 * logits, ids, drafts. Nothing is run here. The next prompt or step runs again what it must: the last token; or, where
 * the cut is beyond what sliding layers' caches still hold, everything from the nearest checkpoint of them on
 * (FR_OPT_CTX_CHECKPOINTS). FR_STAT_RERUN_TOKENS counts these tokens. Cutting nothing changes nothing. */
fr_status fr_session_truncate(fr_session *session, size_t length);

/* Empties the timeline; memory, threads and the statistics' memory figures stay, and so do pictures that were shown for
 * a prompt which has not been run to its end. */
void fr_session_reset(fr_session *session);

/* Tokens on the timeline: prompts and steps. And how many there is room for. */
size_t fr_session_length(const fr_session *session);
size_t fr_session_context(const fr_session *session);

/* The timeline itself: gives its length. *ids belongs to the session, until its next call. */
size_t fr_session_ids(const fr_session *session, const int32_t **ids);

/* Raw logits of the token that comes next, [vocab] float32 after soft capping: behind a prompt those that it was chosen
 * from; behind a step the last id's row is run for them, and the next step gives the id that it predicts, without
 * drafts. *logits belongs to the engine, until the next call into one of its sessions. So a sampler of one's own is a
 * loop of this and fr_session_prompt with the id that it draws. The timeline stays as it is; empty, it is FR_USAGE. */
fr_status fr_session_next_logits(fr_session *session, const float **logits);

/* Changes the target's logits before a token is chosen from them: -INFINITY bans an id, as a grammar does. Called for
 * each position that a token is chosen for, with the ids before it, drafts among them that may not stand, and a copy of
 * the raw logits; penalties, bias, temperature and filters come afterwards. What it does must be a function of the ids
 * alone: then the text is the same with and without drafting, only that drafters don't see it and propose what they
 * would. Anything but FR_OK fails the round with that status, and the timeline is as before it. */
typedef fr_status fr_mask_fn(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab);

/* NULL: none, as of a new session. What a prompt predicted is chosen anew. A fork doesn't have it. */
fr_status fr_session_set_mask(fr_session *session, fr_mask_fn *mask, void *context);

/* Text is to be of a grammar. The masks are a function of the text's ids alone, so the text is the same with and
 * without drafting; drafts that the grammar forbids are not verified, and what has to follow is drafted without asking
 * a method. A session's text begins behind its prompt, at the token that comes next; an end of sequence is allowed
 * where a text of the grammar may end. Penalties, bias, temperature and filters come after the mask.
 *
 * A tree of a tokenizer's tokens; the tokenizer outlives it. Immutable, shareable. */
typedef struct fr_token_tree fr_token_tree;
fr_status fr_token_tree_open(const fr_tokenizer *tokenizer, fr_token_tree **tree);
void fr_token_tree_close(fr_token_tree *tree);

typedef enum fr_grammar_kind {
    FR_GRAMMAR_GBNF, /* llama.cpp's language, but for tokens as terminals; the text is one of the rule `root` */
    FR_GRAMMAR_REGEX, /* an expression that the whole text matches */
    /* JSON of a schema, drafts 4 to 2020-12: some of its values, with members in the order of `properties`. A keyword
     * that isn't built is FR_UNBUILT, and the line names its place (#/properties/a/not); keywords that JSON Schema
     * doesn't know are ignored. The formats of JSON Schema 2020-12 but `regex` are enforced, each as wide as its
     * standard; other formats are ignored. */
    FR_GRAMMAR_JSON_SCHEMA,
} fr_grammar_kind;

/* A text in one of these languages (UTF-8, at most 1 MiB). FR_INPUT, with the place, where it can't be read, is too
 * large, has a rule that begins with itself or allows no text; FR_UNBUILT for what is not built or would take seconds
 * to read. It remembers masks, at most some 100 MB, so it is one thread's at a time: sessions of one engine may share
 * one, others not. The tree outlives it. */
typedef struct fr_grammar fr_grammar;
fr_status fr_grammar_open(const fr_token_tree *tree, fr_grammar_kind kind, const char *text, size_t length,
                          fr_grammar **grammar);
void fr_grammar_close(fr_grammar *grammar);

/* What a whole reply of a chat is to be: behind what may come of reasoning, calls of tools, or a content of a grammar
 * of its own. Marks around calls and reasoning are the model's own tokens where it has them, and nothing that looks
 * like them; arguments are of the tools' schemas, in the form that the model's template has for calls. */
typedef enum fr_reply_calls { FR_REPLY_CALLS_NONE, FR_REPLY_CALLS_MAY, FR_REPLY_CALLS_MUST } fr_reply_calls;
typedef struct fr_reply_rule {
    const fr_marked_text *prompt; /* what it answers, as fr_chat_render gave it; NULL: none that opened the reasoning */
    const char *options_json;     /* what the prompt was rendered with: the tools */
    fr_reply_calls calls;
    const char *tool;     /* the only one that may be called; NULL: any */
    bool several;         /* calls in one reply, where the model writes several */
    fr_grammar_kind kind; /* of a content's grammar, */
    const char *text;     /* which it has unless it must call, and */
    size_t length;
} fr_reply_rule;
fr_status fr_grammar_open_reply(const fr_token_tree *tree, const fr_reply_rule *rule, fr_grammar **grammar);

/* What may follow some ids of a text: *bits has bit id % 64 of word id / 64 for each of fr_tokenizer_count ids, until
 * the next call for the grammar or a session that has it; *ends is whether the text may end there. For samplers of
 * one's own, and for tests. An id that is not allowed where it stands is FR_INPUT. */
fr_status fr_grammar_allowed(fr_grammar *grammar, const int32_t *ids, size_t count, const uint64_t **bits, bool *ends);

/* NULL: none, as of a new session. What a prompt predicted is chosen anew. A fork doesn't have it, nor does a saved
 * session. The grammar is of the model's own tokenizer, or FR_USAGE, and outlives the session or its next one. */
fr_status fr_session_set_grammar(fr_session *session, fr_grammar *grammar);

/* The text of the session's grammar begins at this position of the timeline, from 0: for one that was restored with
 * part of the text on it. */
fr_status fr_session_begin_grammar(fr_session *session, size_t position);

/* From the next token on draws by these options: those of how a token is drawn, and IGNORE_EOS, DRAFT_MIN and
 * DRAFT_P_MIN; the others are passed by. What a prompt predicted is chosen anew. A failure changes nothing. Between
 * gumbel and rejection there is no change in a session with a method of the caller's own (FR_USAGE). */
fr_status fr_session_set_options(fr_session *session, const fr_options *options);

/* Asked by the thread that called into the session, before each forward: inside a long prompt every FR_OPT_CHUNK
 * tokens. Once it returns true, that call returns FR_ABORTED, and the session stays usable: what is on the timeline
 * stays there, ids that have been given stand, and the next prompt or step goes on with what was not run yet (cut the
 * timeline to be rid of it). NULL: not asked. It must not call into the session, but for fr_session_waiting. */
typedef bool fr_abort_fn(void *context);
void fr_session_set_abort(fr_session *session, fr_abort_fn *abort, void *context);

/* Told after each forward over a part of a prompt: how many ids of the timeline have been run, of how many.
 * NULL: nobody is. */
typedef void fr_prompt_fn(void *context, size_t done, size_t total);
void fr_session_set_progress(fr_session *session, fr_prompt_fn *progress, void *context);

/* From any thread: the session's call under way, or its next one that would run something, returns FR_ABORTED before
 * its next forward, once. The session stays usable, as after an abort. */
void fr_session_cancel(fr_session *session);

/* Texts that end the session's steps as an end of sequence does: the ids stop at the one whose text completes the first
 * of them, in what is said since the last prompt, whichever drafts stood. count 0: none, as of a new session; at most
 * FR_STOPS_MAX, none of them empty. They stay until they are set again. A fork has them too. */
fr_status fr_session_set_stops(fr_session *session, const char *const *strings, size_t count);
#define FR_STOPS_MAX 16

/* Which of them ended the steps, -1: none has. *before: bytes of the text that stand before it; while none has, bytes
 * before any that may have begun: what can be shown. before may be NULL. */
int fr_session_stopped(const fr_session *session, size_t *before);

/* Where in a text, from `from` on, the first of the strings begins that is whole: *which is its index. Or else, *which
 * -1, where one may have begun whose rest is still to come: `length` if nowhere. Of those that begin there the first of
 * the list counts. */
size_t fr_stop_find(const char *const *strings, size_t count, const char *text, size_t length, size_t from, int *which);

/* Log-probabilities of the last step's id at `index` (below its *count): natural logarithms, of the target's own logits
 * before penalties, bias, temperature and filters; equal with and without drafting. Gives *own, that of the id itself,
 * and the best ids with theirs, best first, the lowest id first of equals: the result says how many, FR_OPT_LOGPROBS or
 * the vocabulary if that is less. *ids and *values belong to the session, until its next call. Without FR_OPT_LOGPROBS,
 * or for another index, *own is NaN and the result 0. */
size_t fr_session_logprobs(const fr_session *session, size_t index, float *own, const int32_t **ids,
                           const float **values);
#define FR_LOGPROBS_MAX 100

/* Raw logits of a prompt, [count, vocab] float32 after soft capping, handed to the sink rows at a time, in order.
 * Resets the timeline first. first_row: rows before it are run but not handed out (count - 1: the last row alone).
 * The sink may stop it by returning anything but FR_OK, which is then returned. */
typedef fr_status fr_logits_fn(void *context, const float *logits, size_t rows, size_t vocab);
fr_status fr_session_logits(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context);

/* Gives the log-probability of each id of a text after the ids before it, for index 1 to count - 1, in order, one id at
 * a time, with the best ids in its place, as fr_session_logprobs gives them. The sink's arguments are valid until it
 * returns. Resets the timeline first, on which the text stays; the sink may stop it as fr_session_logits' may.
 * FR_USAGE: a session without FR_OPT_LOGPROBS. */
typedef fr_status fr_score_fn(void *context, int32_t id, float own, const int32_t *ids, const float *values,
                              size_t best);
fr_status fr_session_score(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);

/* As fr_session_put, for a prompt that is scored while it runs: each of its pieces gives the sink what fr_session_score
 * would, and what follows is said as after any prompt. All of the timeline is run anew, nothing of it is reused. What
 * the sink gives but FR_OK is the status of the round, or of the step, and ends the scoring, not the prompt.
 * FR_USAGE: a session without FR_OPT_LOGPROBS. */
fr_status fr_session_put_scored(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink,
                                void *context);

/* What layers of the model are given for each id of a text, [count, layer_count, hidden] float32, handed to the sink
 * rows at a time, in order: what drafters are trained on. layers: up to FR_ROWS_LAYERS_MAX, each 0 to FR_FACT_LAYERS,
 * which is what the last layer gives, before the final norm; width: layer_count * hidden. The bits are those that a
 * drafter sees as the text is generated. Resets the timeline first. The sink may stop it as fr_session_logits' may. A
 * session that drafts with a drafter's weights is FR_USAGE: open one that does not. layers NULL: hidden rows as the
 * head reads them, after the final norm, [count, hidden]; of any session. */
#define FR_ROWS_LAYERS_MAX 8
typedef fr_status fr_rows_fn(void *context, const float *values, size_t rows, size_t width);
fr_status fr_session_rows(fr_session *session, const int32_t *ids, size_t count, const size_t *layers,
                          size_t layer_count, fr_rows_fn *sink, void *context);

/* A text as one row of FR_FACT_HIDDEN values of length 1: its hidden rows after the final norm, pooled. The ids are
 * what fr_tokenize gives with special tokens: models that embed by the last row end a text with one. Resets the
 * timeline first. FR_USAGE: by FR_POOLING_NONE or _RANK. */
fr_status fr_session_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values);

/* ----------------------------------------------------------------------------------------------------------- engine */

/* What sessions of one model share, so that their rows go through it in one forward, which costs hardly more than one
 * row's: threads, the pages of their caches, what a forward works in. What a session says never depends on its
 * neighbours. Prompts that begin as others of the same engine do, as long as it keeps their pages, have that beginning
 * from them; of several in one round one runs what they have in common. An engine and its sessions are used by one
 * thread at a time, but for fr_session_cancel.
 * tests/embed/engine.c is a whole program. */
typedef struct fr_engine fr_engine;

/* sessions: timelines that there is room for, 1 to FR_SESSIONS_MAX. drafter may be NULL. The engine takes the
 * options of context, chunk, caches and drafting; the model and the drafter must outlive it. */
fr_status fr_engine_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                         fr_engine **engine);
#define FR_SESSIONS_MAX 256

/* Its sessions must be closed. */
void fr_engine_close(fr_engine *engine);

/* A timeline in an engine, which must outlive it. It takes the options of sampling, drafts, log-probabilities and ends;
 * one more than there is room for is FR_USAGE. All that a session can do it can do here. */
fr_status fr_engine_session(fr_engine *engine, const fr_options *options, fr_session **session);

/* The same timeline once more in the same engine: with options of its own (NULL: those of the first), so that it may go
 * on otherwise. Nothing is copied but the page at the frontier, once it is written to. Of what was set in the first it
 * has the stops; no abort, progress, mask, trace, method of the caller's own or attached bytes, and statistics from 0.
 * Pictures of a prompt that is still to be run are FR_USAGE; FR_INPUT are those that the fork would have to run again,
 * as its last id is an image's, or as it drafts by a method that follows all rows and the first does not. */
fr_status fr_session_fork(const fr_session *session, const fr_options *options, fr_session **fork);

/* One session's part in a round. */
typedef struct fr_round {
    fr_session *session;
    int32_t *ids; /* room for `limit` ids, at least one; FR_STEP_MAX are enough */
    size_t limit;
    size_t count, accepted; /* out: as fr_session_step gives them; 0 also while a prompt is being run */
    fr_status status;       /* out: of this session, FR_ABORTED where it was stopped; those of the others go on */
    const char *error;      /* out: its line if it failed, until the session's next call */
} fr_round;

/* A round of sessions of this engine, no session twice: one forward with the next ids of all, pieces of prompts that
 * wait (those of the first sessions first), and drafts. Only what is wrong with the call itself is returned. */
fr_status fr_engine_step(fr_engine *engine, fr_round *rounds, size_t count);

/* From the next round on prompts give at most so many rows to a round, all of them together: fewer let those that step
 * beside them wait less. 0, or more than the engine's chunk (FR_OPT_CHUNK): as many as that. Gives how many it is. */
size_t fr_engine_set_piece(fr_engine *engine, size_t rows);

/* --------------------------------------------------------------------------------------------------------- drafting */

/* Asynchronous drafting: for the next step, while the caller writes out what the last one gave. fr_draft_submit starts
 * it in a thread of the session's own and returns at once; the next fr_session_step verifies those drafts, and waits
 * for them if it must. Ids never depend on it. At most one is under way: a second submit, or fr_draft_now meanwhile, is
 * FR_USAGE. Where there is nothing to draft from (before the first step after a prompt, after an end of sequence) no
 * drafts come. Whatever changes the timeline otherwise (a prompt, truncating, resetting, closing) waits for the drafts
 * and drops them, as fr_draft_cancel does; so does a later submit with drafts that no step took. A failure to draft is
 * reported by fr_draft_wait, or by the step. A draft model that ranks run together gives FR_UNBUILT. */
fr_status fr_draft_submit(fr_session *session);

/* Waits for the drafts and shows them: ids has room for FR_STEP_MAX - 1. FR_USAGE if none were submitted since the last
 * step. */
fr_status fr_draft_wait(fr_session *session, int32_t *ids, size_t *count);
void fr_draft_cancel(fr_session *session);

/* Drafts up to `steps` (1 to FR_STEP_MAX - 1) ids after the timeline as it is, in the calling thread; no step takes
 * them. Each is the drafter's best. logits: NULL, or room for [steps, vocab] float32 of the drafter, -infinity for ids
 * that it did not score. */
fr_status fr_draft_now(fr_session *session, size_t steps, int32_t *ids, size_t *count, float *logits);

/* A draft method of the caller's own: who knows what may come next (a grammar, a cache of answers, another model) says
 * so, and the target verifies it in the forward of the next token. Whatever is proposed, the text is the same; it only
 * comes faster where drafts are right. tests/embed/own_method.c is a whole one. What a method is shown: */
typedef struct fr_drafting {
    const int32_t *ids; /* the timeline */
    size_t length;
    size_t count; /* drafts that can be used, 1 to FR_STEP_MAX - 1: what the depth of drafting asks for */
    double least; /* FR_OPT_DRAFT_P_MIN, 0 where that is FR_DRAFT_P_AUTO */
    /* What the session would draft without the method, by its drafter or n-grams: to hand on, or to change. None where
     * it was opened without. */
    const int32_t *suggested;
    size_t suggestions;

    int32_t *drafts; /* [count] out: ids that may follow, in order */
    /* NULL: nobody asks. Under rejection sampling [count, vocab], all 0; out, optional: what each draft was drawn from,
     * any multiple of its chances. */
    float *chances;
    /* Out: whether it told those. A draft without is taken as certain; one that is handed on as it was suggested needs
     * none, but whether it is must not depend on which id it is. */
    bool tells_chances;
} fr_drafting;

typedef struct fr_proposer {
    size_t (*propose)(void *context, fr_drafting *drafting); /* gives how many drafts there are: 0 to count */
    /* After each round: the timeline with what was accepted, and of how many drafts that is. NULL: not told. */
    void (*commit)(void *context, const int32_t *ids, size_t length, size_t proposed, size_t accepted);
    void (*close)(void *context); /* when the session is closed, replaced or not; NULL: nothing is */
    void *context;
} fr_proposer;

/* Makes it the session's method; what drafted before it, a method of the caller's too, makes the suggestions, so that
 * it is closed with the session and not before. The struct is copied. Its functions are called by the thread that calls
 * the step, or after fr_draft_submit by the session's own, and must not call into the session. An id outside the
 * vocabulary, too many drafts, or chances that are none fail the round with FR_USAGE, and the session is as before it.
 * Forks of the session don't have the method. A failure leaves its context the caller's. */
fr_status fr_session_set_proposer(fr_session *session, const fr_proposer *method);

/* Whether the depth of drafting follows the clock (FR_DRAFT_AUTO and something to draft with): then how many drafts a
 * step has may differ from run to run, the ids don't. */
bool fr_session_adapts(const fr_session *session);

/* The drafter's logits, [steps, vocab], at each chained step after the ids (count >= 2: the target runs all but the
 * last). Ids that the drafter did not score are -infinity. In an engine whose pages for drafts are all held there are
 * no steps. Resets the timeline first. */
fr_status fr_session_draft_logits(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context);

/* ----------------------------------------------------------------------------------------------------------- saving */

/* Writes the session to a file: the timeline, and the caches of what has been run of it. The file gets its name when it
 * is complete, and replaces one of that name, or that a link of that name leads to; only its owner can read it, as it
 * holds the conversation. */
fr_status fr_session_save(const fr_session *session, const char *path);

/* Replaces the timeline by that of a saved session; then all is as after a prompt of its tokens, but for mirostat's
 * state, which goes on as it was. Nothing is run here, the next prompt or step runs the last token again. Number of
 * threads, instruction set, chunk, context and drafter may differ from those of the session that was saved. A file of
 * another model, of other cache types, too long for this context or damaged is FR_INPUT, one that an engine has no
 * pages for FR_MEMORY: it changes nothing. */
fr_status fr_session_restore(fr_session *session, const char *path);

/* The same to memory (*bytes: fr_free) and from it: what the file would hold. */
fr_status fr_session_save_bytes(const fr_session *session, void **bytes, size_t *size);
fr_status fr_session_restore_bytes(fr_session *session, const void *bytes, size_t size);

/* Bytes of the caller's own, which are copied, go into the session's file and come back with it: what its ids do not
 * tell, such as a conversation's messages. Size 0: none, as of a new session. Restoring replaces them, by none where
 * the file has none; nothing else does. */
fr_status fr_session_attach(fr_session *session, const void *bytes, size_t size);

/* What is attached, NULL and a size of 0 for nothing. It belongs to the session, until it is replaced. */
const void *fr_session_attached(const fr_session *session, size_t *size);

/* ---------------------------------------------------------------------------------------------------------- figures */

typedef enum fr_stat {
    FR_STAT_PROMPT_TOKENS, /* of prompts, run for the first time: what an abort left over counts once it is run */
    FR_STAT_REUSED_TOKENS, /* of fr_session_set_prompt, that the timeline began with already, run */
    FR_STAT_RERUN_TOKENS,  /* run again, because a truncation took their caches with it */
    FR_STAT_GENERATED_TOKENS,
    FR_STAT_TARGET_CALLS, /* decode and verify forwards; prompt forwards not counted */
    FR_STAT_DRAFT_CALLS,  /* rounds in which drafts were asked for, though none may have come: all too unlikely */
    FR_STAT_DRAFTED,
    FR_STAT_ACCEPTED,
    FR_STAT_REJECTED,
    FR_STAT_PREFILL_SECONDS,
    FR_STAT_DECODE_SECONDS, /* everything after the first token */
    FR_STAT_DRAFT_SECONDS,  /* of these: proposing */
    FR_STAT_VERIFY_SECONDS, /* the target's forwards, head included */
    FR_STAT_ACCEPT_SECONDS, /* comparing, committing, telling the drafter */
    FR_STAT_VISION_SECONDS, /* pictures through the vision tower */
    FR_STAT_TARGET_WEIGHT_BYTES,
    FR_STAT_DRAFT_WEIGHT_BYTES,
    FR_STAT_RESIDENT_BYTES, /* weights of both that must stay in memory: copies, and what every token reads */
    FR_STAT_MAPPED_BYTES,   /* weights of both that are used in files as they lie: they come and go as they are read */
    FR_STAT_TARGET_KV_BYTES,   /* room for keys and values of all sessions of the engine */
    FR_STAT_DRAFT_KV_BYTES,    /* room for a drafter's own */
    FR_STAT_STATE_BYTES,       /* of the target's: what recurrent layers keep of a timeline */
    FR_STAT_STATE_DRAFT_BYTES, /* of the target's: and of each position that is not certain, such as a draft's */
    FR_STAT_CHECKPOINT_BYTES,  /* room for checkpoints of sliding layers' caches and of states; in use as taken */
    FR_STAT_SCRATCH_BYTES,
    FR_STAT_KV_USED_BYTES,   /* the engine's pages, whole ones, that sessions hold, their checkpoints' too */
    FR_STAT_KV_SHARED_BYTES, /* those of them that more than one holds, a checkpoint counting too */
    FR_STAT_KV_CACHED_BYTES, /* pages that are kept for prompts that begin alike, until they are needed */
    FR_STAT_PEAK_BYTES,      /* of the whole process, as the system counts it */
    FR_STAT_COUNT
} fr_stat;

/* Counts and bytes are whole numbers below 2^53. Those of pages wait for drafts that are under way. */
double fr_session_stat(const fr_session *session, fr_stat stat);

/* Per verify forward that carried drafts: how many were accepted. *lengths belongs to the session, until its next
 * call. */
size_t fr_session_accepted_lengths(const fr_session *session, const uint8_t **lengths);

/* What became of drafts at a depth, 0 to FR_STEP_MAX - 2: the first draft of a round is at depth 0. */
typedef enum fr_depth_stat {
    FR_DEPTH_DRAFTED,
    FR_DEPTH_COMPARED, /* with the target's own id: every draft before it stood */
    FR_DEPTH_ACCEPTED,
    FR_DEPTH_REJECTED, /* drafted and not accepted, compared or not */
    FR_DEPTH_COUNT
} fr_depth_stat;
double fr_session_depth_stat(const fr_session *session, size_t depth, fr_depth_stat stat);

/* ------------------------------------------------------------------------------------------------------------ trace */

/* Told of what a session does, one JSON object a line, newline included; text belongs to the session. Called on the
 * thread that called into the session, which it must not call into itself.
 *
 *     {"event":"begin", "at", "trace":1, "version", "model", "drafter", "method", "draft_max", "threads", "isa",
 *      "context"}                                              once, from fr_session_set_trace
 *     {"event":"prompt", "at", "position", "ids", "seconds"}   a forward over a part of a prompt
 *     {"event":"draft", "at", "round", "position", "method", "ids"}      a proposal that is not empty
 *     {"event":"accept", "at", "round", "position", "rows", "accepted", "ids", "margins", "draft_seconds",
 *      "verify_seconds", "accept_seconds", "seconds"}          every step
 *
 * at: seconds since the trace began. position: of the first id on the timeline.
 * rows: of the target's forward, drafts + 1, or fewer where pages were missing for all; 0 where the id is the one that
 * a prompt's forward predicted. accepted: how many of the ids, the first ones, were drafts. margins: for each id, the
 * largest logit of the row it was chosen from minus the next, null where that is not finite. seconds: the whole step,
 * of which the three phases leave something.
 * Later versions may add keys and events. */
typedef void fr_trace_fn(void *context, const char *text, size_t length);

/* Starts a trace; line NULL ends it. Nothing is allocated. */
void fr_session_set_trace(fr_session *session, fr_trace_fn *line, void *context);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
