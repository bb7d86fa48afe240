/* forerun: language models on the CPU, with speculative decoding that never changes the text.
 *
 * A program opens a model, opens a session on it, gives the session a prompt, and steps until the text ends:
 *
 *     #include <forerun.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     int main(int argc, char **argv) {
 *         fr_model *model = NULL;
 *         fr_session *session = NULL;
 *         fr_decoder *decoder = NULL;
 *         int32_t *prompt = NULL, id = 0;
 *         size_t count = 0, length = 0;
 *         const char *text = "";
 *         if (argc != 3) return FR_USAGE;
 *         fr_status status = fr_model_open(argv[1], NULL, &model);
 *         const fr_tokenizer *tokenizer = fr_model_tokenizer(model);
 *         if (status == FR_OK) status = fr_session_open(model, NULL, NULL, &session);
 *         if (status == FR_OK) status = fr_decoder_new(tokenizer, false, &decoder);
 *         if (status == FR_OK) status = fr_tokenize(tokenizer, argv[2], strlen(argv[2]), true, false, &prompt, &count);
 *         if (status == FR_OK) status = fr_session_prompt(session, prompt, count);
 *         while (status == FR_OK && (status = fr_session_step(session, &id, 1, &count, NULL)) == FR_OK && count == 1) {
 *             status = fr_decoder_feed(decoder, id, &text, &length);
 *             fwrite(text, 1, length, stdout);
 *         }
 *         if (status != FR_OK) fprintf(stderr, "%s\n", fr_last_error());
 *         fr_free(prompt);
 *         fr_decoder_free(decoder);
 *         fr_session_close(session);
 *         fr_model_close(model);
 *         return (int)status;
 *     }
 *
 * The examples that make install copies to share/doc/forerun/examples add a drafter (first.c), several texts at once
 * (engine.c) and a draft method of the program's own (own_method.c).
 *
 * The file goes from simple to advanced. Its first part has all that a chat program needs: errors, model, tokenizer,
 * drafter, session, options, chat, replies, pictures, engine. Its second part has grammars, samplers and draft methods
 * of the program's own, logits and embeddings, saving, figures, memory, and ranks. What is not declared here is not
 * API.
 *
 * Units. Ids are int32_t. Counts and lengths are in tokens, sizes in bytes, times in seconds.
 *
 * Threads. Models, drafters, adapters, tokenizers, token trees and pictures never change once they are open, and any
 * number of threads and sessions may share them. Options may be shared as long as nobody changes them. A session, an
 * engine with all its sessions, a decoder, a reply parser or a grammar may be used by only one thread at a time, which
 * need not always be the same thread. The library calls callbacks (progress, log, abort, mask and others) in the thread
 * that called it, before the call returns. A callback must not call into the object that called it, and must return
 * normally: no C++ exception and no longjmp may leave it. A call may use 300 KB of its thread's stack.
 *
 * Errors. A function that can fail returns a status, and fr_last_error gives the line that explains it. If a function
 * that opens something fails, it sets its result to NULL. Every other result of a failing call is 0, NULL or empty.
 * Every close and free function accepts NULL. A NULL for options means the defaults. Any other argument may be NULL
 * only where its function's comment says so. Elsewhere a NULL makes the call return FR_USAGE, or FR_INPUT if the NULL
 * is a tokenizer, because the model has none. A function without a status then returns 0, NULL, false, -1 or NaN.
 *
 * Floating point. Results do not depend on the caller's rounding mode, flush-to-zero mode or exception masks: every
 * call sets the default environment and restores the caller's before it returns.
 *
 * Processes. After fork() a child may use its parent's models, drafters and tokenizers, and open sessions on them. The
 * threads of its parent's sessions and engines do not exist in the child. So in the child, calls that would compute
 * with these sessions and engines return FR_USAGE, and closing them only frees memory. Close everything before
 * unloading the library with dlclose. A weights file that is open may be replaced by renaming another file to its name.
 * The open file must not be written to: answers would change, or the program would end (see fr_mapped_file).
 *
 * Versions. Until version 1.0 a new minor version may renumber enumerators and change the fields of the public structs.
 * The shared library's name and its symbols' version contain the minor version, so a program that is linked with it
 * runs only with the minor version that it was compiled for. A program that loads the library in another way compares
 * fr_version with FR_VERSION. */
#ifndef FORERUN_H
#define FORERUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shared library exports only what this file declares. */
#pragma GCC visibility push(default)

#define FR_VERSION_MAJOR 0
#define FR_VERSION_MINOR 2
#define FR_VERSION_PATCH 0

/* The version of the numerics. It is raised whenever a logit or an id of some model may differ from that of the
 * previous version. As long as it stays the same, hashes of generated texts can be compared between machines and
 * between versions of the library (quant/NUMERICS.md). */
#define FR_NUMERICS_VERSION 6

/* The version of this header as a text, such as "0.2.0". */
#define FR_VERSION_TEXT(number)            #number
#define FR_VERSION_OF(major, minor, patch) FR_VERSION_TEXT(major) "." FR_VERSION_TEXT(minor) "." FR_VERSION_TEXT(patch)
#define FR_VERSION                         FR_VERSION_OF(FR_VERSION_MAJOR, FR_VERSION_MINOR, FR_VERSION_PATCH)

/* Returns the version of the linked library as a text. If a program does not find the library by its soname (it uses
 * dlopen or the static archive), it checks that this text equals FR_VERSION up to the last point. */
const char *fr_version(void);

/* ================================================================================= PART ONE: from a model to a chat */

/* ---------------------------------------------------------------------------------------------------------- objects */

typedef struct fr_options fr_options;           /* settings, each with a name */
typedef struct fr_model fr_model;               /* the target: weights, configuration, tokenizer */
typedef struct fr_tokenizer fr_tokenizer;       /* converts text to ids and back; has the chat template */
typedef struct fr_decoder fr_decoder;           /* converts ids to text as they are generated */
typedef struct fr_drafter fr_drafter;           /* model or layers that propose ids for the target to verify */
typedef struct fr_adapter fr_adapter;           /* low-rank changes of a model's matrices (LoRA) */
typedef struct fr_session fr_session;           /* one text: its ids, keys and values, sampling, statistics */
typedef struct fr_engine fr_engine;             /* what sessions share, so that one forward computes the rows of all of
                                                 * them */
typedef struct fr_reply_parser fr_reply_parser; /* a chat's reply: content, reasoning, calls of tools */
typedef struct fr_picture fr_picture;           /* a picture that was prepared for one model */
typedef struct fr_embedder fr_embedder;         /* makes embeddings of texts and scores of pairs of texts */
typedef struct fr_token_tree fr_token_tree;     /* a tokenizer's tokens as a tree, in which grammars search */
typedef struct fr_grammar fr_grammar;           /* a language that a text has to follow */

/* ------------------------------------------------------------------------------------------------ status and errors */

typedef enum fr_status {
    FR_OK = 0,
    FR_INPUT = 1,   /* a file, model, prompt or id can't be used */
    FR_USAGE = 2,   /* an argument or an option's value makes no sense */
    FR_MEMORY = 3,  /* the system gave no memory */
    FR_NUMERIC = 4, /* the weights gave a logit that is not finite */
    FR_MACHINE = 5, /* this machine lacks something that was asked for, such as an instruction set */
    FR_UNBUILT = 6, /* the library knows of the feature (a family, a drafter, a conversion) but does not implement it
                     * yet */
    FR_ABORTED = 7, /* an abort callback or a cancellation ended the call */
    FR_LOST = 8,    /* a file from which weights are mapped was shortened or written to: open the model again */
} fr_status;

/* Returns "input", "usage" and so on. The text is static. */
const char *fr_status_name(fr_status status);

/* Returns the error line of the calling thread's last failure, or "" if it had none. The line names the file, tensor or
 * number at fault. A second line, after a line feed, may say what to do instead. The text stays valid until the same
 * thread's next failing call. If a call only passes on the status that a callback returned, there is no error line for
 * that failure. */
const char *fr_last_error(void);

/* Frees memory that a function of this file allocated for its caller. */
void fr_free(void *memory);

/* Finds the mapped weights file that contains this address. Returns the file's path as it was opened, or NULL if no
 * such file contains the address. The system sends SIGBUS if a mapped file is read after it has become shorter, or if
 * its disk fails. The library installs no handler for this signal; a program's own handler can call this function with
 * si_addr. (If a file was only written to, or became shorter by less than a page, there is no signal, and a call
 * returns FR_INPUT instead.) This function is async-signal-safe. The path is valid as long as the object that opened
 * the file. */
const char *fr_mapped_file(const void *address);

/* ------------------------------------------------------------------------------------------------------------ model */

/* Opens a model for reading.
 *
 * path: a folder as published, or a GGUF file (any one of its shards). The folder has config.json, tokenizer.json and
 * safetensors files, with their index if there are several. A model without a tokenizer can be opened too, for programs
 * that work with ids. options: the section "options" lists those that the call reads. *model must outlive the drafters
 * and sessions that are opened on it. */
fr_status fr_model_open(const char *path, const fr_options *options, fr_model **model);
void fr_model_close(fr_model *model);

/* Opens a GGUF file that is already in memory. The bytes are used in place: they must start at a multiple of 32
 * (otherwise the call returns FR_USAGE), and stay unchanged as long as the model is open. name: the model's name in
 * error lines. (To open a file descriptor, give fr_model_open its path, "/proc/self/fd/N".) */
fr_status fr_model_open_bytes(const void *bytes, size_t size, const char *name, const fr_options *options,
                              fr_model **model);

typedef enum fr_fact {
    FR_FACT_VOCAB,         /* rows of the LM head, each of which gives one logit */
    FR_FACT_HIDDEN,        /* width of a hidden row */
    FR_FACT_LAYERS,        /* layers of the model itself */
    FR_FACT_MTP_LAYERS,    /* layers in the model's checkpoint that draft for the model; fr_drafter_open with path NULL
                            * uses them */
    FR_FACT_IMAGE_TOKEN,   /* id that marks the place of one row of a picture; -1 if the model sees no pictures */
    FR_FACT_WINDOW,        /* positions that sliding layers look back over, 0 if no layer slides */
    FR_FACT_CONTEXT_LIMIT, /* positions that the model was trained for */
    FR_FACT_WEIGHT_BYTES,  /* bytes of the tensors that are used */
    FR_FACT_POOLING,       /* fr_pooling that the model's makers use for embeddings, FR_POOLING_NONE if they don't
                            * say */
    FR_FACT_ENCODER,       /* 1 if the model is a text encoder, which fr_embedder runs and no session; 0 if it generates
                            * text */
    FR_FACT_COUNT
} fr_fact;

/* Returns a fact about the model. */
int64_t fr_model_fact(const fr_model *model, fr_fact fact);

/* Returns the number of end-of-sequence ids: those of generation_config.json and config.json together, or those in the
 * GGUF file's metadata. *ids belongs to the model. */
size_t fr_model_eos(const fr_model *model, const int32_t **ids);

/* Returns the number of ids that the model's makers exclude from generation: suppress_tokens of generation_config.json,
 * or tokenizer.ggml.suppress_tokens of a GGUF file, without ids outside the vocabulary. Sessions never generate the
 * excluded ids. *ids belongs to the model. */
size_t fr_model_suppressed(const fr_model *model, const int32_t **ids);

/* Returns the instruction set that the model's kernels use: a word of FR_OPT_ISA such as "avx512" or "neon". */
const char *fr_model_isa(const fr_model *model);

/* Returns note `index` about an opened model, such as a weight type that is slow. A note is one line; after the last
 * note the result is NULL. Indices begin at 0. The lines belong to the model. */
const char *fr_model_note(const fr_model *model, size_t index);

/* -------------------------------------------------------------------------------------------------------- tokenizer */

/* Returns the model's own tokenizer, which belongs to the model; NULL if it has none. */
const fr_tokenizer *fr_model_tokenizer(const fr_model *model);

/* Opens a tokenizer without its model. path: a folder with tokenizer.json (and tokenizer_config.json and
 * chat_template.jinja if they exist), or a GGUF file. The call reads the options FR_OPT_CHAT_TEMPLATE and
 * FR_OPT_TOKENIZER_PRE. */
fr_status fr_tokenizer_open(const char *path, const fr_options *options, fr_tokenizer **tokenizer);
void fr_tokenizer_close(fr_tokenizer *tokenizer);

/* Converts bytes to ids; any bytes are accepted. add_special: adds the ids that the tokenizer's post-processor adds,
 * such as <bos>. parse_special: the name of a control token in the text, such as "<bos>", becomes the token's id.
 * Without parse_special such a name is ordinary text. The only control token in the result can then be <unk>, for a
 * character that the vocabulary can't write otherwise. *ids: free it with fr_free.
 *
 * Control tokens mark structure, not text. They are the tokens marked special in tokenizer.json or CONTROL in GGUF, and
 * other added tokens that the chat template writes, such as <think>. Set parse_special for a base model's prompt, in
 * which such names have their meaning. Leave it unset for a chat's message, which must not be able to write control
 * tokens. Added tokens that only abbreviate text, such as a run of line breaks, are recognized in any text. */
fr_status fr_tokenize(const fr_tokenizer *tokenizer, const char *text, size_t length, bool add_special,
                      bool parse_special, int32_t **ids, size_t *count);

/* Converts ids to bytes, with special tokens written out. *text ends with a NUL that *length does not count. Free *text
 * with fr_free. An id outside the vocabulary is FR_INPUT. */
fr_status fr_detokenize(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, char **text, size_t *length);

/* Makes a decoder, which converts ids to text one at a time. It holds back the bytes of an incomplete character, so the
 * text that it gives never ends inside one. print_special: special tokens are written out instead of left out. */
fr_status fr_decoder_new(const fr_tokenizer *tokenizer, bool print_special, fr_decoder **decoder);
void fr_decoder_free(fr_decoder *decoder);

/* Tells a new decoder that its ids continue a text, such as a prompt. Many tokenizers print the first token of a text
 * without its leading blank; in a continuation that blank must be printed. */
void fr_decoder_follow(fr_decoder *decoder);

/* Feeds one more id, and gives the text that it completes. *text belongs to the decoder until its next call; *length
 * may be 0. */
fr_status fr_decoder_feed(fr_decoder *decoder, int32_t id, const char **text, size_t *length);

/* At the end of a text, gives the bytes that the decoder still holds back: those of an incomplete character. */
fr_status fr_decoder_finish(fr_decoder *decoder, const char **text, size_t *length);

/* Returns one more than the largest id. */
size_t fr_tokenizer_count(const fr_tokenizer *tokenizer);

/* Return the id of a special token: beginning of sequence, end of sequence, or unknown text. -1: the tokenizer has no
 * such token. */
int32_t fr_tokenizer_bos(const fr_tokenizer *tokenizer);
int32_t fr_tokenizer_eos(const fr_tokenizer *tokenizer);
int32_t fr_tokenizer_unk(const fr_tokenizer *tokenizer);

typedef enum fr_token_kind {
    FR_TOKEN_NONE,    /* no token has this id */
    FR_TOKEN_TEXT,    /* is in the vocabulary that the tokenizer was trained with */
    FR_TOKEN_ADDED,   /* was added to the vocabulary and is ordinary text; found before the text is cut into pieces */
    FR_TOKEN_CONTROL, /* marks structure, see fr_tokenize; found before the text is cut into pieces */
    FR_TOKEN_BYTE,    /* is one byte, for characters that are not in the vocabulary */
    FR_TOKEN_UNKNOWN, /* is used for text that the vocabulary has no other way to write */
} fr_token_kind;

/* Returns the kind of token that has this id. */
fr_token_kind fr_token_kind_of(const fr_tokenizer *tokenizer, int32_t id);

/* fr_token_text returns a token's text as the vocabulary writes it ("<0x0A>", "<bos>"). fr_token_bytes returns the
 * bytes that the token prints (a line feed, "<bos>"), which may be a part of a character. If there is no such token,
 * both return NULL and a length of 0. The tokenizer owns both results; the bytes have no NUL after them. */
const char *fr_token_text(const fr_tokenizer *tokenizer, int32_t id, size_t *length);
const char *fr_token_bytes(const fr_tokenizer *tokenizer, int32_t id, size_t *length);

/* Returns note `index` about an opened tokenizer, such as what was assumed because its file does not say it. A note is
 * one line; after the last note the result is NULL. Indices begin at 0. The lines belong to the tokenizer.
 * fr_model_note includes the notes of a model's own tokenizer. */
const char *fr_tokenizer_note(const fr_tokenizer *tokenizer, size_t index);

/* ---------------------------------------------------------------------------------------------------------- drafter */

/* Opens a drafter for a target, and checks that the two fit: architecture, widths, vocabulary. A drafter proposes ids
 * cheaply; the target verifies them all in one forward. path: the folder or GGUF file of a drafter or a small model, or
 * NULL for the MTP layers in the target's own checkpoint. If the drafter is a small model with another vocabulary, its
 * drafts are printed as text, and this text is converted to ids of the target. */
fr_status fr_drafter_open(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_close(fr_drafter *drafter);

/* Returns a note about an opened drafter, such as a head that could be faster, in the same way as fr_model_note. */
const char *fr_drafter_note(const fr_drafter *drafter, size_t index);

/* ---------------------------------------------------------------------------------------------------------- adapter */

/* Opens an adapter (LoRA) for a model. For each matrix W that the adapter changes, it has two narrow matrices A and B:
 * the product W x becomes W x + scale * B(A x). The model's own weights stay as they are. path: a folder as peft writes
 * it, with adapter_config.json and adapter_model.safetensors; or a GGUF file as llama.cpp's convert_lora_to_gguf.py
 * writes it. Either kind of adapter fits a model of either kind of file. An adapter takes (rows + columns) * rank * 4
 * bytes for each matrix.
 *
 * FR_INPUT if a tensor fits no matrix of the model, has a wrong shape or rank, or has a value that is not finite.
 * FR_UNBUILT for what goes beyond LoRA (DoRA, biases, modules that were saved whole, changed embeddings) and for a
 * model that several ranks run. The error line names the tensor or the member of the configuration. The model must
 * outlive the adapter, and the adapter must outlive the sessions that use it. */
fr_status fr_adapter_open(const char *path, const fr_model *model, fr_adapter **adapter);
void fr_adapter_close(fr_adapter *adapter);

/* Opens a control vector as llama.cpp has it: a GGUF file of architecture controlvector with tensors direction.N. Each
 * tensor is a row that is added to the rows after layer N, counted from 0. Only layers `first` to `last` get their
 * rows; `first` may be 0, and `last` 0 means the model's last layer. A control vector is an adapter like any other, but
 * it changes no matrix. Give it to fr_session_set_adapters, alone or together with other adapters, with a scale that
 * multiplies its rows. Close it with fr_adapter_close. FR_INPUT for tensors of other names, types or sizes, and for
 * values that are not finite. */
fr_status fr_control_vector_open(const char *path, const fr_model *model, size_t first, size_t last,
                                 fr_adapter **adapter);

/* Return the adapter's largest rank, and the number of matrices that it changes. */
size_t fr_adapter_rank(const fr_adapter *adapter);
size_t fr_adapter_matrices(const fr_adapter *adapter);

/* Makes a session's target use these adapters from now on. If count is 0, the target uses none. Each adapter gets a
 * scale, which multiplies the scale in its file; an adapter with scale 0 is left out. The order of the adapters can
 * change only the last bits of a logit. If the adapters or scales change, the timeline is emptied as by
 * fr_session_reset, because its caches were computed with the old ones. A fork inherits the adapters. FR_USAGE if an
 * adapter is of another model or given twice, if there are more than FR_ADAPTERS_MAX, or if a scale is not finite.
 *
 * Sessions of one engine may use different adapters, and one forward still computes their rows. A session shares cached
 * prefixes only with sessions that use the same adapters. A saved session can only be restored with the same adapters.
 * Drafters do not use adapters: the adapted target verifies the drafts. */
fr_status fr_session_set_adapters(fr_session *session, const fr_adapter *const *adapters, const double *scales,
                                  size_t count);
#define FR_ADAPTERS_MAX 16

/* ---------------------------------------------------------------------------------------------------------- session */

/* The most ids that one step gives: 15 drafts and the target's own token. */
#define FR_STEP_MAX 16

/* Opens a session with threads and caches of its own. drafter: NULL for plain decoding. The session takes all its
 * memory now and allocates none while it generates. Its timeline, the ids of prompts and steps so far, is empty. */
fr_status fr_session_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                          fr_session **session);
void fr_session_close(fr_session *session);

/* Appends ids to the timeline and runs them. count: at least 1. Ids outside the vocabulary or beyond the context are
 * FR_INPUT and change nothing. A prompt may follow steps. The ids that the steps gave are already on the timeline, so
 * do not append them again. */
fr_status fr_session_prompt(fr_session *session, const int32_t *ids, size_t count);

/* Runs one round: draft, verify in one forward, accept. Gives 1 to FR_STEP_MAX ids in order.
 *
 * limit: the number of ids for which `ids` has room, at least 1. The round does not draft more than fits. *accepted:
 * how many of the first ids were drafts that the target accepted; the id after them, if there is one, is the target's
 * own choice. accepted may be NULL. The first step after a prompt gives the one id that the prompt's forward predicted.
 * *count is 0 once the text has ended. A text ends with an end of sequence, which is given as the last id, or when the
 * context is full. After a failure *count and *accepted are 0 and the timeline is as before the call, so that the next
 * step can try again. */
fr_status fr_session_step(fr_session *session, int32_t *ids, size_t limit, size_t *count, size_t *accepted);

/* Makes these ids the whole timeline, as each turn of a conversation needs it. The call keeps the beginning that the
 * ids share with the present timeline, removes the rest, and runs only the new ids. The conditions on ids are those of
 * fr_session_prompt. */
fr_status fr_session_set_prompt(fr_session *session, const int32_t *ids, size_t count);

/* Makes these ids the whole timeline as fr_session_set_prompt does, but runs nothing yet. The next step runs the ids.
 * In an engine, its rounds run them in pieces, together with the rows of other sessions. */
fr_status fr_session_put(fr_session *session, const int32_t *ids, size_t count);

/* Returns how many ids of the timeline must still be run before the session can generate. */
size_t fr_session_waiting(const fr_session *session);

/* Cuts the timeline to its first `length` tokens, 0 to its present length. Afterwards everything (logits, ids, drafts)
 * is as after a prompt of these tokens. So the text of a grammar begins after these tokens, too, unless
 * fr_session_begin_grammar has set where it begins. The call itself runs nothing. The next prompt or step runs some
 * tokens again, usually only the last one. If the caches of sliding or recurrent layers do not reach back to the cut,
 * it runs all tokens after the nearest checkpoint (FR_OPT_CTX_CHECKPOINTS). FR_STAT_RERUN_TOKENS counts the tokens that
 * were run again. */
fr_status fr_session_truncate(fr_session *session, size_t length);

/* Empties the timeline. The call keeps memory, threads, the memory figures, and pictures that wait for their prompt. */
void fr_session_reset(fr_session *session);

/* Return the number of tokens on the timeline, and the number of tokens for which the timeline has room. */
size_t fr_session_length(const fr_session *session);
size_t fr_session_context(const fr_session *session);

/* Returns the timeline's length and the timeline itself, which belongs to the session until its next call. */
size_t fr_session_ids(const fr_session *session, const int32_t **ids);

/* The callback is called before each forward, which in a long prompt is every FR_OPT_CHUNK tokens. If it returns true,
 * the session's call ends and returns FR_ABORTED. The session stays usable. Its timeline and the ids already given are
 * kept, and the next prompt or step runs the rest (truncate the timeline to drop the rest). NULL removes the callback.
 * The callback may call fr_session_waiting, but no other function of the session. */
typedef bool fr_abort_fn(void *context);
void fr_session_set_abort(fr_session *session, fr_abort_fn *abort, void *context);

/* Makes one call of the session return FR_ABORTED before its next forward. That is the call that is running now; if
 * none is running, it is the next call that would run a forward. Any thread may call this function. The session stays
 * usable, as after an abort. */
void fr_session_cancel(fr_session *session);

/* After each forward over part of a prompt, the callback gets the number of prompt ids run so far and in total. NULL
 * removes it. */
typedef void fr_prompt_fn(void *context, size_t done, size_t total);
void fr_session_set_progress(fr_session *session, fr_prompt_fn *progress, void *context);

/* Sets texts that end the session's steps as an end of sequence does. The last id of the steps is the one that
 * completes any of these texts. Only text since the last prompt counts, and the result does not depend on which drafts
 * were accepted. count: up to FR_STOPS_MAX; 0 removes the texts. No text may be empty. A fork inherits the texts. */
fr_status fr_session_set_stops(fr_session *session, const char *const *strings, size_t count);
#define FR_STOPS_MAX 16

/* Returns the index of the stop text that ended the steps, or -1 if none did. *before (the pointer may be NULL): the
 * number of bytes of generated text before that stop. While no stop is complete, *before counts the bytes before the
 * first place where a stop may have begun; a program can show these bytes at once. */
int fr_session_stopped(const fr_session *session, size_t *before);

/* Finds the first complete stop text in text[from .. length). Returns where this stop begins, and gives its index in
 * *which. If no stop is complete, *which is -1, and the result is the place where an incomplete stop may have begun, or
 * `length`. If several stops begin at the same place, the first of `strings` is taken. */
size_t fr_stop_find(const char *const *strings, size_t count, const char *text, size_t length, size_t from, int *which);

/* Gives log-probabilities for the id at this index of the last step. They are natural logarithms of the target's
 * distribution before penalties, bias, temperature and filters (but see FR_OPT_LOGPROBS_DRAWN), and are the same with
 * and without drafting. *own: the log-probability of the step's id. *ids, *values: the ids that were most probable at
 * that place, and their log-probabilities. The most probable id comes first; equal ones are in ascending order. Returns
 * the number of these ids: FR_OPT_LOGPROBS, or the size of the vocabulary if that is less. *ids and *values belong to
 * the session until its next call. Without FR_OPT_LOGPROBS, or if the index is beyond the last step's ids, *own is NaN
 * and the result is 0. */
size_t fr_session_logprobs(const fr_session *session, size_t index, float *own, const int32_t **ids,
                           const float **values);
#define FR_LOGPROBS_MAX 100

/* Replaces some options of the session from the next token on: the sampling options (a group of the list below),
 * IGNORE_EOS, DRAFT_MIN and DRAFT_P_MIN. Other options are not read. If a prompt has already predicted an id, that id
 * is chosen again. A failure changes nothing. If the session has a draft method of the program's own, FR_OPT_ACCEPT
 * can't change between gumbel and rejection (FR_USAGE). */
fr_status fr_session_set_options(fr_session *session, const fr_options *options);

/* ---------------------------------------------------------------------------------------------------------- options */

/* The call that opens an object reads the options and does not keep them, so they may be freed or changed afterwards.
 * Each call reads the groups of the list that concern it and ignores the rest:
 *
 *     fr_model_open        threads, memory and files; FR_OPT_MEMORY; progress, log
 *     fr_drafter_open      THREADS PIN NUMA MMAP MLOCK MEMORY DRAFT_HEAD; progress, log; it uses the model's kernels
 *     fr_tokenizer_open    CHAT_TEMPLATE TOKENIZER_PRE
 *     fr_engine_open       room; SPEC_TYPE, DRAFT_MAX, DRAFT_TIMES
 *     fr_engine_session    drafting, sampling, ends; PROMPT_REUSE; log
 *     fr_session_open      the options that the last two read
 *
 * An enumerator keeps its number when others are added. The list below is ordered by subject. */
typedef enum fr_option {
    /* -- Threads, memory and files. */

    /* Threads, 1 to 1024. Default: the cores that the process may use, by affinity and CPU quota. */
    FR_OPT_THREADS = 0,
    /* 1 pins threads to cores; a session's threads get cores that other sessions leave free. 0 does not pin. Default
     * -1: pins if threads are spread over several NUMA nodes. On one node it is better if the system can move threads
     * away from other programs. */
    FR_OPT_PIN = 1,
    /* 1 (default) spreads threads over NUMA nodes, and each thread writes its memory first, so that the memory lies on
     * the thread's node. 0 does neither. */
    FR_OPT_NUMA = 2,
    /* Text, the instruction set: scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm. Default: the best set
     * that the machine has, except amx, which is not timed yet. */
    FR_OPT_ISA = 3,
    /* 1 (default) uses weights directly in the mapped file if their layout allows that; 0 reads them into memory. */
    FR_OPT_MMAP = 4,
    /* 1 locks weights in memory; FR_MACHINE if the system refuses. Default 0. */
    FR_OPT_MLOCK = 5,
    /* Text, the path of a GGUF model's vision tower (llama.cpp's mmproj file). Default: none. */
    FR_OPT_MMPROJ = 6,
    /* Limits on the size of a picture after it was resized for the vision tower: on its pixels, or on its tokens in a
     * prompt. Fewer pixels are faster and show less. Default 0: as the model's makers say. Opening the model returns
     * FR_INPUT if its tower resizes all pictures to one size, if both minima are given, or if both maxima are given. */
    FR_OPT_IMAGE_MIN_PIXELS = 52,
    FR_OPT_IMAGE_MAX_PIXELS = 53,
    FR_OPT_IMAGE_MIN_TOKENS = 54,
    FR_OPT_IMAGE_MAX_TOKENS = 55,
    /* Text, the path of a Jinja chat template that replaces the model's own. */
    FR_OPT_CHAT_TEMPLATE = 7,
    /* Text, the rule that cuts a text into pieces before tokens are merged within each piece. It has one of llama.cpp's
     * names (llama-bpe, qwen2, gpt-2 and so on). The option replaces tokenizer.ggml.pre in the GGUF files of the model
     * and of a draft model. A tokenizer.json has its own rules, which this option does not change. Default: the file's
     * rule. */
    FR_OPT_TOKENIZER_PRE = 49,

    /* -- Room. */

    /* Positions that a session can hold, 1 to 2^24. Default: 4096, or the model's own limit if that is less. */
    FR_OPT_CONTEXT = 8,
    /* Prompt rows in one forward, 1 to 4096. Default: 64; 256 if the model is a mixture of experts and the session has
     * its own engine. Aborts, cancellations and progress happen between forwards, so with fewer rows a session reacts
     * sooner but runs prompts slower. */
    FR_OPT_CHUNK = 9,
    /* Text, the type of cached keys: f32 f16 bf16 q8_0 q4_0; the last two need head widths that are multiples of 32.
     * Default: f32, or f16 if the weights are quantized. */
    FR_OPT_KV_K = 10,
    /* Text, the type of cached values: one of those of FR_OPT_KV_K. Latent attention caches one row as both key and
     * value, in the keys' type. */
    FR_OPT_KV_V = 11,
    /* Bytes for the target's keys and values in an engine, which its sessions share as they need them. Default 0: as
     * much as all sessions may need. Pages that no session needs keep earlier prompts for reuse. If all pages are in
     * use, a call that needs more returns FR_MEMORY and loses nothing: once pages are free, a prompt continues where it
     * stopped. Drafts for which there is no room are left out. The drafter's cache is not counted; a session that gets
     * no page of the drafter's cache drafts nothing. With ranks, the bytes are those of all heads together, and each
     * rank takes its share of them. */
    FR_OPT_KV_MEMORY = 12,
    /* Checkpoints of sliding layers' caches and recurrent layers' states that a session may keep, 0 to 1024, default
     * 8. If the caches do not reach back far enough, a session whose timeline is truncated returns to a checkpoint. */
    FR_OPT_CTX_CHECKPOINTS = 13,
    /* 1 keeps every position of sliding layers, so that they need no checkpoints. Default 0. */
    FR_OPT_SWA_FULL = 14,
    /* Bytes that a model, its drafter and one engine (or a session with its own engine) may together keep in memory.
     * Default 0: as much as the system has. If they need more, the call that opens one of them returns FR_MEMORY before
     * it takes any memory. An engine for several sessions first reduces its room for keys and values, as with
     * FR_OPT_KV_MEMORY. fr_model_estimate estimates how much is needed. */
    FR_OPT_MEMORY = 15,
    /* 1 (default): a session skips the leading tokens of a prompt that any session of its engine has run before. 0: the
     * session runs the whole prompt; other sessions may still reuse that prompt. */
    FR_OPT_PROMPT_REUSE = 51,

    /* -- Drafting, which never changes the text (but see FR_OPT_ACCEPT). */

    /* Text, the draft methods: none mtp eagle eagle3 dflash dflash2 dspark draft ngram, or several separated by commas.
     * Each step uses the first method that proposes something. Under FR_DRAFT_AUTO a step uses ngram only if ngram
     * gains more than the next method. Each method except none and ngram is a kind of drafter, and needs a drafter of
     * that kind. Default: the kind of the drafter that was given, or none if there is no drafter. */
    FR_OPT_SPEC_TYPE = 16,
    /* Drafts per step, 0 to 15. Default FR_DRAFT_AUTO. */
    FR_OPT_DRAFT_MAX = 17,
    /* If a step has fewer drafts than this number, it uses none. 0 to 15 and at most FR_OPT_DRAFT_MAX; default 0. Not
     * allowed if FR_OPT_ACCEPT is rejection, because the option would change the distribution of the text. */
    FR_OPT_DRAFT_MIN = 18,
    /* Number 0 to 1: drafting stops at a draft to which the drafter gives a smaller probability than this (before
     * temperature and filters). With rejection (FR_OPT_ACCEPT) the probability of the drafter's most probable id is
     * compared instead of the draft's. The method ngram has no probabilities, so it ignores this option. Default
     * FR_DRAFT_P_AUTO. */
    FR_OPT_DRAFT_P_MIN = 19,
    /* Text, read by fr_drafter_open: the ids that a drafter's head scores. Other ids are never drafted. whole
     * (default): every id. auto:N: the N most likely ids and each id that is in the session's text; auto: the same with
     * N = 32768. N: the first N ids. Any other text is the path of a list that `forerun trim-head` wrote. A session
     * adds at most 4096 ids of its text. Some drafters score ids of their own choice, such as EAGLE-3 with a list in
     * its files; they accept only whole. */
    FR_OPT_DRAFT_HEAD = 20,
    /* Text, a folder in which an engine stores the times that FR_DRAFT_AUTO measured. The next engine of the same model
     * on the same machine can then draft from its first token. The folder is made if it does not exist. The times are
     * read when the engine opens and written when it closes. If reading or writing the times fails, the engine is
     * opened or closed all the same. off or empty (default): nothing is read or written. Not used with ranks. */
    FR_OPT_DRAFT_TIMES = 56,

    /* -- Sampling: how a token is drawn from the target's logits, in the order of FR_OPT_SAMPLERS. Penalties count all
     * tokens of the timeline, including the prompt's. */

    /* Number 0 to 100. Default 0 means greedy: the largest logit is taken, and among equal logits the lowest id. */
    FR_OPT_TEMPERATURE = 26,
    /* Keeps the k largest logits, and all that equal the smallest of these. Default 0: all. */
    FR_OPT_TOP_K = 27,
    /* Number 0 to 1: keeps the most probable tokens, and as few of them as are needed for their probabilities to sum to
     * this. Default 1: all. */
    FR_OPT_TOP_P = 28,
    /* Number 0 to 1: keeps tokens whose probability is at least this number times that of the most probable token.
     * Default 0: all. */
    FR_OPT_MIN_P = 29,
    /* Number 0 to 1. A token's surprise is -log of its probability. This filter sorts tokens by how near their surprise
     * is to the entropy. Beginning with the nearest, it keeps as few as are needed for their probabilities to sum to
     * more than this number. Default 1: all. */
    FR_OPT_TYPICAL_P = 40,
    /* Number -1 to 1000: keeps logits at most this many standard deviations below the largest. Default -1, like 0:
     * all. */
    FR_OPT_TOP_N_SIGMA = 39,
    /* Number 0 to 1, default 0: the probability with which the filter XTC is applied, drawn anew at each position. XTC
     * leaves out the tokens whose probability reaches its threshold, except the least probable of them. */
    FR_OPT_XTC_PROBABILITY = 41,
    /* Number 0 to 1, default 0.1: XTC's threshold. Above 0.5 no token is left out. */
    FR_OPT_XTC_THRESHOLD = 42,
    /* Number 0 to 100, default 0: off. Each position gets its own temperature, from FR_OPT_TEMPERATURE minus this
     * number (at least 0) up to FR_OPT_TEMPERATURE plus this number. The temperature grows from the lowest to the
     * highest of these in proportion to (entropy / largest possible entropy) ^ exponent. The entropy is that of the
     * tokens that the earlier filters have left. */
    FR_OPT_DYNATEMP_RANGE = 43,
    /* Number 0 to 100, default 1: the exponent of FR_OPT_DYNATEMP_RANGE. */
    FR_OPT_DYNATEMP_EXPONENT = 44,
    /* Number 0.01 to 100, default 1. If a token occurred, its logit is divided by this number when positive, and
     * multiplied by it when negative. */
    FR_OPT_REPEAT_PENALTY = 21,
    /* Number -1000 to 1000, default 0: subtracted from a token's logit for each time that it occurred. */
    FR_OPT_FREQUENCY_PENALTY = 22,
    /* Number -1000 to 1000, default 0: subtracted once from the logit of a token that occurred. */
    FR_OPT_PRESENCE_PENALTY = 23,
    /* Number of tokens that the repeat, frequency and presence penalties look back over. Default 64; -1: all. */
    FR_OPT_REPEAT_LAST_N = 24,
    /* Text, "id+x,id-x,id:x": adds x to the logit of an id (id-x subtracts it, id:x is the same as id+x); -inf bans an
     * id. Each text adds to the biases that are already set, up to 256 ids. The ids of fr_model_suppressed stay
     * banned. */
    FR_OPT_LOGIT_BIAS = 25,
    /* Number 0 to 1000, default 0: off. DRY is a penalty on repetitions. If a token would continue a repetition of n
     * tokens, and n is at least the allowed length, DRY subtracts multiplier * base ^ (n - allowed length) from its
     * logit. */
    FR_OPT_DRY_MULTIPLIER = 34,
    /* Number 1 to 1000, default 1.75: DRY's base. */
    FR_OPT_DRY_BASE = 35,
    /* Default 2: DRY's allowed length. */
    FR_OPT_DRY_ALLOWED_LENGTH = 36,
    /* Number of tokens that DRY looks back over. Default 64; -1: all. */
    FR_OPT_DRY_PENALTY_LAST_N = 37,
    /* Text of up to 40 bytes that breaks DRY's repetitions: no repetition is counted across it. Each text is added to
     * the texts that were set before, up to 16; "none" removes them all. Default: line feed, colon, double quote and
     * asterisk, if the model has a tokenizer. */
    FR_OPT_DRY_SEQUENCE_BREAKER = 38,
    /* 2: mirostat 2 after the temperature, without penalties and other filters. Each prompt resets mirostat's bound on
     * the surprise; a fork and a restored session keep theirs. Default 0: off. 1 is FR_UNBUILT. */
    FR_OPT_MIROSTAT = 45,
    /* Number 0 to 100, default 0.1: mirostat's learning rate, eta. */
    FR_OPT_MIROSTAT_LR = 46,
    /* Number 0 to 100, default 5: mirostat's target surprise in bits, tau. */
    FR_OPT_MIROSTAT_ENT = 47,
    /* Text, the order of the filters: penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature, or the
     * letters edskypmxt. penalties and dry always run before all other filters. Default: all filters, in the order
     * above, which is llama.cpp's. */
    FR_OPT_SAMPLERS = 48,
    /* The seed of the random noise, 0 to 2^63 - 1, default 0. The same seed gives the same text. */
    FR_OPT_SEED = 30,
    /* Text. gumbel (default): a draft is accepted if it is the token that the target draws itself, so the text does not
     * depend on drafts. rejection: a draft is accepted with probability min(1, p / q), where p is its probability by
     * the target and q its probability by the drafter. This keeps the target's distribution, but the text depends on
     * the drafter and on the number of drafts. */
    FR_OPT_ACCEPT = 31,

    /* -- Ends of texts, and log-probabilities. */

    /* 1: generation goes on after an end of sequence, except after one that ends a grammar's text. Default 0. */
    FR_OPT_IGNORE_EOS = 32,
    /* A number n, 0 to 100: gives the log-probability of each generated id, and those of the n ids that were most
     * probable at its place. Default -1: gives none. */
    FR_OPT_LOGPROBS = 33,
    /* 1: log-probabilities are those of the distribution from which the id is drawn, after masks, penalties, bias,
     * filters and temperature. Tokens that these exclude have -INFINITY, and are sorted by the model's own logits.
     * Default 0: log-probabilities of the model's own logits. */
    FR_OPT_LOGPROBS_DRAWN = 50,

    FR_OPT_COUNT = 57
} fr_option;

/* The default of FR_OPT_DRAFT_MAX: each step drafts the number of tokens that saves the most time. The session computes
 * that number from the measured times of forwards and drafts, and from the share of drafts that were accepted. If
 * drafting saves no time, the step drafts none. */
#define FR_DRAFT_AUTO (-1)

/* The default of FR_OPT_DRAFT_P_MIN. If FR_OPT_DRAFT_MAX is FR_DRAFT_AUTO, drafting stops as soon as one more draft
 * would cost more time than it saves. The session judges that by the draft's probability and by how often such drafts
 * were accepted. With a fixed FR_OPT_DRAFT_MAX, this default means 0. */
#define FR_DRAFT_P_AUTO (-1.0)

/* fr_options_new returns options with their defaults, fr_options_copy returns a copy. Both return NULL if the system
 * has no memory. */
fr_options *fr_options_new(void);
fr_options *fr_options_copy(const fr_options *options);
void fr_options_free(fr_options *options);

/* Each function sets an option of one kind: a whole number, a number or a text. A value out of range is FR_USAGE and
 * changes nothing. */
fr_status fr_options_set(fr_options *options, fr_option option, int64_t value);
fr_status fr_options_set_number(fr_options *options, fr_option option, double value);
fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value);

/* Sets a sampling option to the value that the model's makers recommend. A folder recommends temperature, top_k, top_p,
 * min_p, typical_p and repetition_penalty in generation_config.json, where do_sample false means temperature 0. A GGUF
 * file has general.sampling keys. If the makers recommend nothing, or a value that the option does not accept, *found
 * is false and the option is unchanged. */
fr_status fr_options_recommend(fr_options *options, const fr_model *model, fr_option option, bool *found);

/* Each function gives the value of an option of its kind, or the default if no value was set. If a whole number's
 * default depends on model or machine, the value is -1. FR_USAGE for an option of another kind. options may be NULL. */
fr_status fr_options_get(const fr_options *options, fr_option option, int64_t *value);
fr_status fr_options_get_number(const fr_options *options, fr_option option, double *value);

/* Gives the value of a text option, or "" if the default depends on model or machine. text: room for `size` bytes,
 * including the NUL. *length: the length of the whole text, without the NUL. A text that does not fit is FR_USAGE, so a
 * call with text NULL and size 0 asks only for the length. If the option is set to this text again, it gets the same
 * value. FR_OPT_DRY_SEQUENCE_BREAKER is the exception: its texts are separated by NULs here. */
fr_status fr_options_get_text(const fr_options *options, fr_option option, char *text, size_t size, size_t *length);

typedef enum fr_option_kind { FR_OPTION_WHOLE, FR_OPTION_NUMBER, FR_OPTION_TEXT } fr_option_kind;

/* Gives an option's kind and range, as doubles (whole numbers beyond 2^53 are rounded). kind, low and high may be
 * NULL. A text has an empty range. */
fr_status fr_option_range(fr_option option, fr_option_kind *kind, double *low, double *high);

/* Returns an option's name in error lines ("temperature", "top-k"), or NULL if there is no such option. */
const char *fr_option_name(fr_option option);

/* Returns the option that the calling thread's last failure is about, if another value of that option would help. An
 * example is FR_OPT_CONTEXT if a prompt is too long. FR_OPT_COUNT: there is no such option. */
fr_option fr_last_error_option(void);

/* While weights are loaded, the callback gets the number of bytes loaded so far and in total. It returns true to go
 * on; false ends fr_model_open or fr_drafter_open with FR_ABORTED. */
typedef bool fr_progress_fn(void *context, uint64_t done, uint64_t total);
void fr_options_set_progress(fr_options *options, fr_progress_fn *progress, void *context);

/* The callback gets lines, without a line feed, about what the library did (opened, restored, tokens to run again).
 * Lines with FR_LOG_WARN name something that makes the work slower than it could be (fr_model_note). A line is valid
 * until the callback returns. Models, drafters and sessions keep the callback that the options had when they were
 * opened. Failures are not logged: fr_last_error has them. */
typedef enum fr_log_level { FR_LOG_DEBUG = 0, FR_LOG_INFO = 1, FR_LOG_WARN = 2 } fr_log_level;
typedef void fr_log_fn(void *context, fr_log_level level, const char *line);
void fr_options_set_log(fr_options *options, fr_log_fn *log, void *context);

/* ------------------------------------------------------------------------------------------------------------- chat */

/* A range of a text's bytes, from `begin` up to but not including `end`. */
typedef struct fr_span {
    size_t begin, end;
} fr_span;

/* A text, some spans of which are trusted: a chat template wrote these spans itself. All other bytes come from
 * messages, tools or variables, and nothing in them is a control token. The spans ascend and do not touch each
 * other. */
typedef struct fr_marked_text {
    char *text; /* ends with a NUL that length does not count */
    size_t length;
    fr_span *trusted;
    size_t trusted_count;
} fr_marked_text;

/* Frees the memory of the text and makes it empty. */
void fr_marked_text_free(fr_marked_text *text);

/* Renders a conversation into the prompt form that the model was trained on: applies its chat template to messages in
 * OpenAI's form.
 *
 * The template is that of FR_OPT_CHAT_TEMPLATE, if it is set. Otherwise it is the checkpoint's: chat_template.jinja,
 * "chat_template" in chat_template.json, tokenizer_config.json or processor_config.json, or tokenizer.chat_template of
 * a GGUF file. If tools are given, a template named "tool_use" is preferred, in one of these places or in the folder
 * additional_chat_templates. If the checkpoint has no template, but its tokens show a known family, the library's
 * template for that family is used. Templates are Jinja, rendered byte for byte as transformers renders them, and
 * limited in steps, depth and memory. A template that can't be parsed is FR_INPUT here and nowhere else.
 *
 * messages_json: a JSON array of at least one {"role", "content", ...}, in any form that clients send. The arguments of
 * a call may be JSON text or an object. A content may be a text or a list of text parts, which are joined by line
 * breaks. A thought may be named reasoning_content or reasoning. The library finds out which form the template accepts
 * and converts the messages to it; fr_chat_change reports larger changes.
 *
 * options_json: NULL, or a JSON object with variables of the template:
 *
 *     add_generation_prompt   true (default): the text ends where the model begins to answer
 *     enable_thinking         default: the template's own
 *     tools                   functions that the model may call, in OpenAI's form; default null
 *     pictures                true: messages have parts {"type": "image"}, and the model sees them; if the template has
 *                             no token for pictures, one of the library's own is used instead; default false
 *     continue_final_message  true: the last message is the assistant's, and the text ends inside it so that the model
 *                             continues it: after its content, or after its thought if it has no content; default false
 *     late_systems            true (default): a system message after other turns is moved to a place that the template
 *                             accepts; false: the template gets it as it is, and may refuse it
 *     rearrange               true (default): parts that the template does not support where they are (tools, calls,
 *                             system messages, two turns of one role in a row) are moved to where it does; false: the
 *                             template gets them as they are
 *     strict_roles            true: a role that neither OpenAI's API nor the template knows is FR_INPUT; default
 *                             false: a template that prints any role prints it
 *     ...                     other names reach the template as variables and replace the model's own of that name
 *                             (bos_token, eos_token); their text is not trusted unless it equals the model's own
 *
 * *text includes the <bos> that the template writes. Convert the text with fr_tokenize_marked, so that no message can
 * write the token that ends its turn. Free the text with fr_marked_text_free; after a failure it is empty. */
fr_status fr_chat_render(const fr_tokenizer *tokenizer, const char *messages_json, const char *options_json,
                         fr_marked_text *text);

/* Converts a marked text to ids. A control token is found only if all of its bytes are trusted. Bytes that are not
 * trusted have no influence on which control tokens are found. All other text is converted as by fr_tokenize without
 * parse_special, so an ordinary token may reach beyond the end of a trusted span. No special ids are added, because the
 * template has written <bos>. Spans that overlap or reach beyond the text are FR_USAGE. *ids: free it with fr_free. */
fr_status fr_tokenize_marked(const fr_tokenizer *tokenizer, const fr_marked_text *text, int32_t **ids, size_t *count);

/* Returns the source of the template that renders a conversation without tools and pictures, with a NUL after it; NULL
 * if there is no template, or if it can't be used. The text belongs to the tokenizer. */
const char *fr_chat_template_text(const fr_tokenizer *tokenizer, size_t *length);

/* Returns a line about a change that fr_chat_render made to messages because the template would have refused them or
 * left them out. NULL: there is no new line. Each kind of change gives its line only once for a tokenizer, to the
 * thread that asks first. The lines belong to the library. */
const char *fr_chat_change(const fr_tokenizer *tokenizer);

/* Returns a note for the user of a chat with this model, with pictures or without, for example that the template is the
 * library's. NULL: there is no note. The note belongs to the tokenizer. */
const char *fr_chat_note(const fr_tokenizer *tokenizer, bool pictures);

/* ---------------------------------------------------------------------------------------------------------- replies */

/* The parts of a reply, in their order. Content, reasoning and arguments may come in several pieces. */
typedef enum fr_reply_part {
    FR_REPLY_CONTENT,   /* the answer */
    FR_REPLY_REASONING, /* the thought before the answer, without the tokens that mark it */
    FR_REPLY_CALL,      /* a call of a tool begins; the text is its id */
    FR_REPLY_NAME,      /* the function's name, in one piece */
    FR_REPLY_ARGUMENTS, /* JSON text of an object */
    FR_REPLY_CALL_END,  /* the call is complete */
    FR_REPLY_CALL_VOID, /* instead of FR_REPLY_CALL_END: the text since FR_REPLY_CALL was no call, and all of it comes
                         * again as content */
} fr_reply_part;

typedef void fr_reply_fn(void *context, fr_reply_part part, const char *text, size_t length);

/* Makes a parser, which separates reasoning and calls of tools from the content of a reply while it is generated. It
 * recognizes the marks that the model's chat template writes around them in past replies. If a mark is a token of the
 * vocabulary, only that token counts, and text that looks like the mark is content. The parts do not depend on how the
 * reply is split into pieces. Text that only looks like a call is content, byte for byte. Text that could still become
 * a mark is held back. Line breaks next to a mark belong to the mark. tokenizer: the model's, which must outlive the
 * parser. part: NULL if only the message is wanted. */
fr_status fr_reply_parser_new(const fr_tokenizer *tokenizer, fr_reply_fn *part, void *context,
                              fr_reply_parser **parser);
void fr_reply_parser_free(fr_reply_parser *parser);

/* Begins a reply. prompt: the text from fr_chat_render that the reply answers. The parser needs it because it may end
 * with the mark that opens the reasoning; NULL: it does not. options_json: the options that the prompt was rendered
 * with, or NULL. Only "tools" is read. The list of tools and the template together select the form of calls. The tools'
 * schemas give the types of arguments that the model writes as plain text. whole_calls: true reports a call when it is
 * complete, so none becomes void; false reports arguments while they are generated. seed: if the model writes no ids
 * for its calls, the parser makes them from this number. */
fr_status fr_reply_parser_begin(fr_reply_parser *parser, const fr_marked_text *prompt, const char *options_json,
                                bool whole_calls, uint64_t seed);

/* fr_reply_parser_feed gives the parser the next id of the reply; fr_reply_parser_feed_text gives it a piece of text
 * that has no token. FR_USAGE before a reply has begun. Special tokens that are not marks are left out. */
fr_status fr_reply_parser_feed(fr_reply_parser *parser, int32_t id);
fr_status fr_reply_parser_feed_text(fr_reply_parser *parser, const char *text, size_t length);

/* Ends the reply: reports everything that was held back. A parser that ran out of memory returns FR_MEMORY from then
 * on, until the next reply begins. */
fr_status fr_reply_parser_finish(fr_reply_parser *parser);

/* Ends a reply that was cut off at a limit; it is called instead of fr_reply_parser_finish. An unfinished call of one
 * of the tools is reported with its arguments so far, which may be incomplete JSON; fr_reply_parser_finish would
 * report it as content. */
fr_status fr_reply_parser_cut(fr_reply_parser *parser);

/* Gives the reply so far as a message in OpenAI's form, JSON text: {"role": "assistant", "content"}, with
 * "reasoning_content" and "tool_calls" if the reply has any. Bytes that are not UTF-8 become U+FFFD. *json: free it
 * with fr_free. */
fr_status fr_reply_parser_message(const fr_reply_parser *parser, char **json, size_t *length);

/* --------------------------------------------------------------------------------------------------------- pictures */

/* Opens a PNG, JPEG, WebP or GIF file and prepares it for a model that sees; the model must outlive the picture. */
fr_status fr_picture_open(const char *path, const fr_model *model, fr_picture **picture);

/* Opens a picture from a file's bytes, which are not kept. name: the picture's name in error lines. pixels: the number
 * of pixels that may still be decoded, or NULL for no limit. A file of a few bytes can claim any size, so a picture
 * with more pixels than this is FR_INPUT before any memory is taken for them. Otherwise the picture's pixels are
 * subtracted from the number. */
fr_status fr_picture_open_bytes(const void *bytes, size_t size, const char *name, size_t *pixels, const fr_model *model,
                                fr_picture **picture);
void fr_picture_close(fr_picture *picture);

/* Returns the number of image tokens (FR_FACT_IMAGE_TOKEN) that a prompt has for the picture. */
size_t fr_picture_tokens(const fr_picture *picture);

/* Returns the text by which the model's chat template marks a picture's place, such as "<|image_pad|>"; NULL if the
 * model sees no pictures or has no tokenizer. The text belongs to the model. */
const char *fr_model_image_mark(const fr_model *model);

/* Puts pictures into a prompt's text before the text is tokenized. Each of the first `count` marks whose bytes are all
 * trusted is replaced by its picture's image tokens. The tokens that the model was trained to see around image tokens
 * are inserted, too. The inserted text is trusted. If the text has fewer marks than there are pictures, this call
 * succeeds, but the prompt will fail. */
fr_status fr_pictures_spell(const fr_model *model, const fr_picture *const *pictures, size_t count,
                            fr_marked_text *text);

/* Runs the vision tower over pictures. Their rows take the places of the image tokens in the session's next prompt (or
 * its next call for logits), in order. The engine keeps the rows of the pictures that were shown last, so the same
 * pixels are not run again. The abort callback is called before each picture and between slices of the tower's run; it
 * may run other sessions of the engine then. The pictures may be closed afterwards. If the prompt has more or fewer
 * image tokens than its pictures need, the prompt is FR_INPUT. */
fr_status fr_session_show(fr_session *session, const fr_picture *const *pictures, size_t count);

/* ----------------------------------------------------------------------------------------------------------- engine */

/* Opens an engine: threads, cache pages and working memory that sessions of one model share. One forward computes the
 * rows of all sessions, which costs hardly more than the row of one session. The text of a session never depends on its
 * neighbours. A prompt that begins like an earlier one of the same engine reuses the pages of that beginning as long as
 * the engine keeps them. If several such prompts are in one round, one of them runs the common beginning for all.
 *
 * sessions: the number of sessions for which the engine has room, 1 to FR_SESSIONS_MAX. drafter: may be NULL. Model and
 * drafter must outlive the engine. The example engine.c is a whole program. */
fr_status fr_engine_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                         fr_engine **engine);
#define FR_SESSIONS_MAX 256

/* Closes an engine. All its sessions must be closed before. */
void fr_engine_close(fr_engine *engine);

/* Opens a session of an engine; the engine must outlive the session. All functions of sessions work with it. FR_USAGE
 * if the engine has no room for one more. */
fr_status fr_engine_session(fr_engine *engine, const fr_options *options, fr_session **session);

/* Opens a session with the same timeline in the same engine, so that the text can go on in two ways. options: NULL for
 * the first session's options. The two sessions share all pages of the cache. Only the page at the timeline's end is
 * copied, when one of the two writes to it. The fork inherits the stops. It does not inherit abort, progress, mask,
 * grammar, trace, a draft method of the program's own or attached bytes, and its statistics begin at 0. FR_USAGE while
 * pictures of the first session wait for their prompt. FR_INPUT if the fork would have to run pictures again. That is
 * so if the timeline's last id is an image token, or if the fork drafts by a method that needs all rows and the first
 * session does not. */
fr_status fr_session_fork(const fr_session *session, const fr_options *options, fr_session **fork);

/* One session's share of a round. */
typedef struct fr_round {
    fr_session *session;
    int32_t *ids;           /* room for `limit` ids */
    size_t limit;           /* FR_STEP_MAX is always enough; 0 only runs a waiting prompt, and no id is given */
    size_t count, accepted; /* out: as in fr_session_step; both are 0 while a prompt is still being run */
    fr_status status;       /* out: this session's result; FR_ABORTED if the abort was only for this session */
    const char *error;      /* out: the session's error line if it failed, valid until its next call */
} fr_round;

/* Runs one round for some sessions of this engine; a session may be listed only once. One forward runs the next ids of
 * all these sessions, pieces of waiting prompts, and drafts. The waiting prompts of sessions that come earlier in the
 * list are run first. The result is a failure of the call itself; each session's own failure is in its fr_round. */
fr_status fr_engine_step(fr_engine *engine, fr_round *rounds, size_t count);

/* Limits the prompt rows of a round, over all sessions, from the next round on. With fewer prompt rows, sessions that
 * generate in the same round wait less. 0, or more than FR_OPT_CHUNK, means FR_OPT_CHUNK. Returns the limit that is now
 * in force. */
size_t fr_engine_set_piece(fr_engine *engine, size_t rows);

/* =============================================================================================== PART TWO: advanced */

/* --------------------------------------------------------------------------------------------------------- grammars */

/* A grammar restricts a session's text to a language. At each position it gives a mask of the ids that it allows. The
 * mask depends only on the ids before, so the text is the same with and without drafting. Drafts that the grammar
 * forbids are not verified. Where the grammar allows only one id, that id is drafted without calling a draft method.
 * The restricted text begins after the prompt, at the next token; an end of sequence is allowed where a text of the
 * grammar may end. Penalties, bias, temperature and filters apply after the mask.
 *
 * Opens the tree of a tokenizer's tokens in which grammars search; the tokenizer must outlive it. */
fr_status fr_token_tree_open(const fr_tokenizer *tokenizer, fr_token_tree **tree);
void fr_token_tree_close(fr_token_tree *tree);

typedef enum fr_grammar_kind {
    /* llama.cpp's grammar language, but tokens as terminals are not supported; the text must match the rule `root` */
    FR_GRAMMAR_GBNF,
    FR_GRAMMAR_REGEX, /* a regular expression that matches the whole text */
    /* A JSON schema, drafts 4 to 2020-12. The text is a JSON value that the schema allows, with members in the order of
     * `properties`. An unsupported keyword is FR_UNBUILT, and the error line names its place (#/properties/a/not);
     * keywords that JSON Schema does not know are ignored. Except for `regex`, the formats of draft 2020-12 are
     * enforced exactly as their standards define them. Other formats are ignored. */
    FR_GRAMMAR_JSON_SCHEMA,
} fr_grammar_kind;

/* Opens a grammar, UTF-8 text of at most 1 MiB. FR_INPUT if the text can't be parsed, is too large, has a rule that
 * begins with itself, or allows no text; the error line names the place. FR_UNBUILT if the grammar uses unsupported
 * features or would take seconds to prepare. A grammar caches masks, up to about 100 MB. Sessions of one engine may
 * share a grammar. The tree must outlive the grammar. */
fr_status fr_grammar_open(const fr_token_tree *tree, fr_grammar_kind kind, const char *text, size_t length,
                          fr_grammar **grammar);
void fr_grammar_close(fr_grammar *grammar);

typedef enum fr_reply_calls { FR_REPLY_CALLS_NONE, FR_REPLY_CALLS_MAY, FR_REPLY_CALLS_MUST } fr_reply_calls;

/* Describes a chat's whole reply: optional reasoning, then either calls of tools or a content with a grammar of its
 * own. If the model has tokens that mark calls and reasoning, only these tokens count as marks, and text that looks
 * like them does not. Arguments follow the tools' schemas. Calls have the form in which the model's template writes
 * calls. */
typedef struct fr_reply_rule {
    /* the text from fr_chat_render that the reply answers; NULL: it does not end with the mark that opens reasoning */
    const fr_marked_text *prompt;
    const char *options_json; /* the options with which the prompt was rendered; its "tools" are read */
    fr_reply_calls calls;     /* says whether the reply may call tools, or must */
    const char *tool;         /* the only tool that may be called; NULL: any */
    bool several;             /* a reply may have several calls, if the model's form of calls allows several */
    fr_grammar_kind kind;     /* kind of the content's grammar */
    const char *text;         /* the content's grammar; not read if the reply must call a tool */
    size_t length;            /* length of `text` in bytes */
} fr_reply_rule;

/* Opens a grammar of whole replies. Everything else is as in fr_grammar_open. */
fr_status fr_grammar_open_reply(const fr_token_tree *tree, const fr_reply_rule *rule, fr_grammar **grammar);

/* Gives the ids that may follow these ids of a text, for samplers of the program's own and for tests. *bits: one bit
 * for each of fr_tokenizer_count ids, which is bit id % 64 of word id / 64. The bits are valid until the next call for
 * the grammar or for a session that uses it. *ends: true if the text may end here. FR_INPUT if one of the given ids is
 * not allowed at its place. */
fr_status fr_grammar_allowed(fr_grammar *grammar, const int32_t *ids, size_t count, const uint64_t **bits, bool *ends);

/* Gives a session a grammar; NULL takes it away, and a new session has none. If a prompt has already predicted an id,
 * that id is chosen again. The grammar must have been made for the model's own tokenizer (otherwise FR_USAGE). It must
 * stay open until the session is closed or gets another grammar. Forks and saved sessions do not have the grammar. */
fr_status fr_session_set_grammar(fr_session *session, fr_grammar *grammar);

/* Sets the position on the timeline, from 0, at which the text of the session's grammar begins. This call is needed if
 * a session was restored with part of that text on its timeline. It is also needed if fr_session_truncate or
 * fr_session_set_prompt cut the timeline within that text. Without the call, the grammar's text begins after the ids
 * that are on the timeline. */
fr_status fr_session_begin_grammar(fr_session *session, size_t position);

/* ------------------------------------------------------------------------------------ samplers of the program's own */

/* Gives the raw logits of the next token, [vocab] float32 after soft capping. After a prompt, these are the logits from
 * which the predicted id is chosen. After a step, this call runs the row of the last id, and the next step gives the id
 * that this row predicts, without drafts. *logits belongs to the engine until the next call for any of its sessions. A
 * program with its own sampler calls this function in a loop, and after it fr_session_prompt with the id that the
 * sampler chose. This call does not change the timeline. FR_USAGE if the timeline is empty. */
fr_status fr_session_next_logits(fr_session *session, const float **logits);

/* The callback changes logits before a token is chosen from them, for example to -INFINITY to ban an id. It is called
 * for each position at which a token is chosen. It gets the ids before the position, including drafts that may be
 * rejected, and a copy of the raw logits. Penalties, bias, temperature and filters apply afterwards. What the callback
 * does must depend only on the ids; then the text is the same with and without drafting, although drafters do not see
 * the mask. If the callback returns a status other than FR_OK, the round fails with that status, and the timeline stays
 * as it was before the round. */
typedef fr_status fr_mask_fn(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab);

/* Gives a session a mask; NULL takes it away, and a new session has none. If a prompt has already predicted an id, that
 * id is chosen again. A fork does not have the mask. */
fr_status fr_session_set_mask(fr_session *session, fr_mask_fn *mask, void *context);

/* ---------------------------------------------------------------------------------- logits, hidden rows, embeddings */

/* Runs a text and gives its raw logits, [count, vocab] float32 after soft capping, to the sink, some rows at a time
 * and in order. first_row: rows before it are run but not given (count - 1 gives only the last row). Resets the
 * timeline first. If the sink returns anything but FR_OK, the call ends with that status. */
typedef fr_status fr_logits_fn(void *context, const float *logits, size_t rows, size_t vocab);
fr_status fr_session_logits(fr_session *session, const int32_t *ids, size_t count, size_t first_row, fr_logits_fn *sink,
                            void *context);

/* Runs a text, and calls the sink for each id at index 1 to count - 1, in order. The sink gets the log-probability of
 * the id, given the ids before it. It also gets the best ids at that place, as fr_session_logprobs gives them. Its
 * arguments are valid until it returns. The call resets the timeline first, and the text stays on the timeline
 * afterwards. The sink can end the call, as in fr_session_logits. FR_USAGE without FR_OPT_LOGPROBS. */
typedef fr_status fr_score_fn(void *context, int32_t id, float own, const int32_t *ids, const float *values,
                              size_t best);
fr_status fr_session_score(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink, void *context);

/* Makes these ids the whole timeline as fr_session_put does. While rounds or steps run the ids, piece by piece, the
 * sink gets the same values as from fr_session_score. No cached prefix is reused: all of the ids are run. After these
 * ids, steps generate as after any prompt. If the sink returns anything but FR_OK, the round or step fails with that
 * status. The scoring ends then, but the rest of the prompt can still be run. FR_USAGE without FR_OPT_LOGPROBS. */
fr_status fr_session_put_scored(fr_session *session, const int32_t *ids, size_t count, fr_score_fn *sink,
                                void *context);

/* Runs a text and gives hidden rows, on which drafters are trained, some at a time and in order. layers: up to
 * FR_ROWS_LAYERS_MAX numbers from 0 to FR_FACT_LAYERS. Each row has width = layer_count * hidden float32: the inputs of
 * these layers, one after the other. The number FR_FACT_LAYERS means the last layer's output before the final norm. The
 * values have the same bits as those that a drafter reads while the text is generated. If layers is NULL, each row has
 * `hidden` float32: the row after the final norm, which the head reads. Resets the timeline first. The sink can end the
 * call, as in fr_session_logits. FR_USAGE if layers are given and the session drafts with weights. */
#define FR_ROWS_LAYERS_MAX 8
typedef fr_status fr_rows_fn(void *context, const float *values, size_t rows, size_t width);
fr_status fr_session_rows(fr_session *session, const int32_t *ids, size_t count, const size_t *layers,
                          size_t layer_count, fr_rows_fn *sink, void *context);

/* The ways to combine all rows of a text into one. The numbers are those of .pooling_type in a GGUF file. A published
 * folder names its way in 1_Pooling/config.json, a file of sentence-transformers. */
typedef enum fr_pooling {
    FR_POOLING_NONE = 0,
    FR_POOLING_MEAN = 1, /* the mean of all rows */
    FR_POOLING_CLS = 2,  /* the first row */
    FR_POOLING_LAST = 3, /* the last row */
    FR_POOLING_RANK = 4, /* the model gives a classifier's score instead of an embedding; not supported */
} fr_pooling;

/* Runs a text, combines its rows after the final norm into one row of FR_FACT_HIDDEN float32 by the pooling, and scales
 * that row to length 1. ids: from fr_tokenize with add_special, because models that pool the last row end a text with a
 * special token. Resets the timeline first. FR_USAGE for FR_POOLING_NONE and FR_POOLING_RANK. */
fr_status fr_session_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling, float *values);

/* ------------------------------------------------------------------------------------------------------- embeddings */

/* An embedder makes an embedding (a row of numbers) of each text, or a score of each pair of a query and a document. It
 * works as the model's makers intend: with the pooling, dense layers, norm, prompts and limit that
 * sentence-transformers' files in the model's folder give. The model may be a text encoder (BERT and its kin) or a
 * model that generates text. One forward runs several texts. No bit of a text's embedding depends on the other
 * texts. */

/* Opens an embedder. pooling: FR_POOLING_NONE means the makers' own. engine: an engine of a model that generates text,
 * with room for one more session. While the embedder runs several texts, it also uses the room of the engine's sessions
 * that are not open. engine NULL: the embedder has threads of its own. Close the embedder before the model and the
 * engine. */
fr_status fr_embedder_open(const fr_model *model, fr_engine *engine, const fr_options *options, fr_pooling pooling,
                           fr_embedder **embedder);
void fr_embedder_close(fr_embedder *embedder);

typedef enum fr_embedder_fact {
    FR_EMBEDDER_WIDTH,      /* length of an embedding; 0 if the model's files do not say how rows are pooled */
    FR_EMBEDDER_LIMIT,      /* the most tokens of a text or a pair; longer ones are cut at the end */
    FR_EMBEDDER_SCORES,     /* 1 if the model gives scores of pairs */
    FR_EMBEDDER_NORMALIZES, /* 1 if the makers scale embeddings to length 1 */
    FR_EMBEDDER_FACT_COUNT
} fr_embedder_fact;
int64_t fr_embedder_fact_of(const fr_embedder *embedder, fr_embedder_fact fact);

/* Return the texts that the makers put before a text, depending on its purpose. name: a purpose such as "query"; NULL:
 * the purpose that is used by default. fr_embedder_prompt returns NULL if there is no such text.
 * fr_embedder_prompt_name returns the names of the purposes in the order of the file, and NULL after the last. */
const char *fr_embedder_prompt(const fr_embedder *embedder, const char *name);
const char *fr_embedder_prompt_name(const fr_embedder *embedder, size_t index);

/* A text or a pair, converted to ids. */
typedef struct fr_embedder_text {
    int32_t *ids;
    uint8_t *types; /* [count] token types */
    size_t count;
    size_t whole;  /* number of tokens of the text before it was cut to the limit */
    size_t prompt; /* number of leading tokens that belong to the prompt or that the tokenizer puts before it */
} fr_embedder_text;

/* Prepare the input of an embedder as ids. fr_embedder_encode converts a text with `prompt` before it (NULL: none).
 * fr_embedder_encode_pair converts a pair of a query and a document. fr_embedder_encode_ids copies ids, and returns
 * FR_INPUT if an id is outside the vocabulary. The name of a control token in a text becomes that token, as in
 * sentence-transformers. instruction: the question by which a model that generates text judges the pair; NULL: its
 * makers' own words. Free the result with fr_embedder_text_free. */
fr_status fr_embedder_encode(const fr_embedder *embedder, const char *prompt, const char *text, size_t length,
                             fr_embedder_text *encoded);
fr_status fr_embedder_encode_pair(const fr_embedder *embedder, const char *instruction, const char *query,
                                  size_t query_length, const char *document, size_t document_length,
                                  fr_embedder_text *encoded);
fr_status fr_embedder_encode_ids(const fr_embedder *embedder, const int32_t *ids, size_t count,
                                 fr_embedder_text *encoded);
void fr_embedder_text_free(fr_embedder_text *encoded);

/* Makes an embedding of each text, [count, FR_EMBEDDER_WIDTH], as the makers do. dimensions: how many of the first
 * numbers are kept, so that the result is [count, dimensions]; 0 keeps all. normalize: 1 scales embeddings to length 1,
 * 0 does not, -1 does what the makers do. There may be any number of texts; each must have at least one token. */
fr_status fr_embedder_rows(fr_embedder *embedder, const fr_embedder_text *texts, size_t count, size_t dimensions,
                           int normalize, float *rows);

/* Gives the score of each pair, [count]. raw: the score before the last function that the makers apply to it, which is
 * usually a sigmoid. FR_INPUT if the model gives no scores. */
fr_status fr_embedder_scores(fr_embedder *embedder, const fr_embedder_text *pairs, size_t count, bool raw,
                             float *scores);

/* --------------------------------------------------------------------------------------------------------- drafting */

/* Starts drafting for the next step in a thread of the session's own and returns at once. Meanwhile the caller can
 * write out the last ids. The next fr_session_step waits for these drafts and verifies them. The generated ids never
 * depend on this call. A session can have only one submission at a time: a second one, or fr_draft_now, is FR_USAGE
 * until the drafts of the first are used. If there is nothing to draft from (before the first step after a prompt,
 * after an end of sequence), there are no drafts. Calls that change the timeline in another way wait for the drafts and
 * drop them, as fr_draft_cancel does. fr_draft_wait or the step reports a failure to draft. FR_UNBUILT for a draft
 * model that ranks run together. */
fr_status fr_draft_submit(fr_session *session);

/* Waits for submitted drafts and gives them. ids: room for FR_STEP_MAX - 1. FR_USAGE if none were submitted since the
 * last step. */
fr_status fr_draft_wait(fr_session *session, int32_t *ids, size_t *count);

/* Waits for submitted drafts and discards them. */
void fr_draft_cancel(fr_session *session);

/* Drafts up to `steps` ids, 1 to FR_STEP_MAX - 1, after the timeline, in the calling thread. Each draft is the id to
 * which the drafter gives the largest logit. The session's steps do not use these drafts. logits: NULL, or room for the
 * drafter's logits, [steps, vocab] float32; ids that the drafter did not score have -infinity. */
fr_status fr_draft_now(fr_session *session, size_t steps, int32_t *ids, size_t *count, float *logits);

/* Runs ids (at least 2; the target runs all but the last), then drafts `steps` ids, each after the one before. The sink
 * gets the drafter's logits for each draft, [steps, vocab] float32; ids that the drafter did not score have -infinity.
 * If all of the engine's pages for drafts are in use, the sink gets nothing. Resets the timeline first. */
fr_status fr_session_draft_logits(fr_session *session, const int32_t *ids, size_t count, size_t steps,
                                  fr_logits_fn *sink, void *context);

/* Returns true if the number of drafts in a step depends on measured times. That is so with FR_DRAFT_AUTO, if there is
 * something to draft with. The number of drafts may then differ between runs; the generated ids do not. */
bool fr_session_adapts(const fr_session *session);

/* Shows a draft method of the program's own the timeline, and takes its drafts. */
typedef struct fr_drafting {
    const int32_t *ids; /* the timeline */
    size_t length;      /* length of the timeline */
    size_t count;       /* out can have at most this many drafts, 1 to FR_STEP_MAX - 1 */
    double least;       /* FR_OPT_DRAFT_P_MIN; 0 if that is FR_DRAFT_P_AUTO */
    /* Drafts of the session's drafter or n-grams, which the method may propose unchanged or changed. There are none if
     * the session has no drafter and no n-grams. */
    const int32_t *suggested;
    size_t suggestions;

    int32_t *drafts; /* out: room for `count` ids that may follow, in order */
    /* Out, optional: the distribution from which each draft was drawn, which need not be normalized. With rejection
     * sampling, it is room for [count, vocab] numbers, all 0; otherwise NULL. */
    float *chances;
    /* Out: true if `chances` was filled in. If it was not, each draft counts as drawn with probability 1. A suggestion
     * that the method proposes unchanged needs no distribution, but the decision to propose it must not depend on its
     * id. */
    bool tells_chances;
    /* Out, optional: the probability that each draft is right if all drafts before it are right. With FR_DRAFT_AUTO, it
     * is room for `count` numbers; otherwise NULL. From these numbers the round chooses, over all its sessions, the
     * drafts that save more time than they cost. */
    float *odds;
    bool tells_odds; /* out: true if `odds` was filled in */
} fr_drafting;

/* A draft method of the program's own, for a program that knows which ids are likely next: from a grammar, a cache of
 * answers, another model. The target verifies the method's drafts. So the text is the same whatever the method
 * proposes; it comes faster if the drafts are right. The example own_method.c is a complete method. */
typedef struct fr_proposer {
    /* Returns how many drafts it wrote, 0 to count. */
    size_t (*propose)(void *context, fr_drafting *drafting);
    /* Called after each round with the timeline, the number of drafts proposed and the number accepted. May be
     * NULL. */
    void (*commit)(void *context, const int32_t *ids, size_t length, size_t proposed, size_t accepted);
    /* Called when the session is closed, even if another method has replaced this one. May be NULL. */
    void (*close)(void *context);
    void *context;
} fr_proposer;

/* Makes `method` the session's draft method. The drafts of the previous method, which may also be the program's own,
 * become this method's suggestions. The struct is copied. Its functions are called in the thread that calls the step,
 * or after fr_draft_submit in the session's own thread. The functions must not call into the session. An id outside the
 * vocabulary, too many drafts or an impossible distribution make the round fail with FR_USAGE and change nothing. Forks
 * do not have the method. If this call fails, the context still belongs to the caller. */
fr_status fr_session_set_proposer(fr_session *session, const fr_proposer *method);

/* ----------------------------------------------------------------------------------------------------------- saving */

/* Writes the session to a file: its timeline, and the caches of the ids that have been run. The file gets its name once
 * it is complete. If a file has that name already, it is replaced; if the name is a link, the file to which the link
 * leads is replaced. Only the file's owner may read it, because it holds the conversation. */
fr_status fr_session_save(const fr_session *session, const char *path);

/* Replaces the timeline by a saved session's. Everything is then as after a prompt of its tokens, except that
 * mirostat's state continues. Nothing is run; the next prompt or step runs the last token again. Threads, instruction
 * set, chunk, context and drafter may differ from those of the session that was saved. FR_INPUT if the file is damaged,
 * is of another model, has other cache types, or has more tokens than the context holds. FR_MEMORY if the engine has no
 * pages for the tokens. A failure changes nothing. */
fr_status fr_session_restore(fr_session *session, const char *path);

/* fr_session_save_bytes saves to memory (*bytes: free it with fr_free), and fr_session_restore_bytes restores from it.
 * The bytes are the same as in the file. */
fr_status fr_session_save_bytes(const fr_session *session, void **bytes, size_t *size);
fr_status fr_session_restore_bytes(fr_session *session, const void *bytes, size_t size);

/* Attaches a copy of the caller's bytes to the session. They are saved in the session's file and restored from it.
 * Attach what ids cannot express, such as a conversation's messages. Size 0 removes the bytes. When a session is
 * restored, the file's bytes replace those of the session. */
fr_status fr_session_attach(fr_session *session, const void *bytes, size_t size);

/* Returns the attached bytes, which belong to the session until they are replaced; NULL and a size of 0 if there are
 * none. */
const void *fr_session_attached(const fr_session *session, size_t *size);

/* ---------------------------------------------------------------------------------------------------------- figures */

typedef enum fr_stat {
    FR_STAT_PROMPT_TOKENS,       /* prompt tokens run for the first time; after an abort, the others count once they are
                               * run */
    FR_STAT_REUSED_TOKENS,       /* tokens given to fr_session_set_prompt that were already on the timeline and had been
                               * run */
    FR_STAT_RERUN_TOKENS,        /* tokens run again because a truncation dropped their caches */
    FR_STAT_GENERATED_TOKENS,    /* tokens that steps gave */
    FR_STAT_TARGET_CALLS,        /* decode and verify forwards, without forwards of prompts */
    FR_STAT_DRAFT_CALLS,         /* rounds that asked for drafts, including those whose drafts were all too unlikely */
    FR_STAT_DRAFTED,             /* drafts that were verified */
    FR_STAT_ACCEPTED,            /* drafts that the target accepted */
    FR_STAT_REJECTED,            /* drafts that the target rejected */
    FR_STAT_PREFILL_SECONDS,     /* time of prompts, including their first token */
    FR_STAT_DECODE_SECONDS,      /* time of everything after the first token */
    FR_STAT_DRAFT_SECONDS,       /* part of DECODE_SECONDS: proposing drafts */
    FR_STAT_VERIFY_SECONDS,      /* part of DECODE_SECONDS: the target's forwards, including the head */
    FR_STAT_ACCEPT_SECONDS,      /* part of DECODE_SECONDS: comparing drafts, committing ids, informing the drafter */
    FR_STAT_VISION_SECONDS,      /* running pictures through the vision tower */
    FR_STAT_TOWER_RUNS,          /* pictures that the tower was run for; the engine had kept the rows of all others */
    FR_STAT_TARGET_WEIGHT_BYTES, /* bytes of the target's tensors */
    FR_STAT_DRAFT_WEIGHT_BYTES,  /* bytes of the drafter's tensors */
    /* weights of model and drafter that must stay in memory: copies, and weights that are read for every token */
    FR_STAT_RESIDENT_BYTES,
    /* weights of model and drafter that are used in mapped files, whose pages the system may drop */
    FR_STAT_MAPPED_BYTES,
    FR_STAT_TARGET_KV_BYTES,   /* room for keys and values of all sessions of the engine */
    FR_STAT_DRAFT_KV_BYTES,    /* room for a drafter's keys and values */
    FR_STAT_STATE_BYTES,       /* part of TARGET_KV_BYTES: states of recurrent layers for a timeline */
    FR_STAT_STATE_DRAFT_BYTES, /* part of TARGET_KV_BYTES: states of positions that may still be rejected */
    /* room for checkpoints of sliding layers' caches and of states; a checkpoint takes memory when it is made */
    FR_STAT_CHECKPOINT_BYTES,
    FR_STAT_SCRATCH_BYTES, /* working memory of forwards */
    /* pages of the engine that sessions and their checkpoints use; each such page counts in full */
    FR_STAT_KV_USED_BYTES,
    FR_STAT_KV_SHARED_BYTES, /* the part of KV_USED_BYTES in pages that several sessions or checkpoints use */
    FR_STAT_KV_CACHED_BYTES, /* pages kept for later prompts that begin in the same way; they are freed when pages are
                                * needed */
    FR_STAT_PEAK_BYTES,      /* peak of the whole process, as the system counts it */
    FR_STAT_COUNT
} fr_stat;

/* Returns one figure of a session. Counts and bytes are whole numbers below 2^53. For a figure about pages, the call
 * first waits until drafts that are being made are complete. */
double fr_session_stat(const fr_session *session, fr_stat stat);

/* Gives, for each verify forward that had drafts, the number of drafts that it accepted. Returns how many such forwards
 * there were. *lengths belongs to the session until its next call. */
size_t fr_session_accepted_lengths(const fr_session *session, const uint8_t **lengths);

/* Counts of the drafts at one depth, which is a draft's place in its round. */
typedef enum fr_depth_stat {
    FR_DEPTH_DRAFTED,  /* drafts that were proposed */
    FR_DEPTH_COMPARED, /* drafts that were compared with the target's id, because all drafts before them were
                        * accepted */
    FR_DEPTH_ACCEPTED,
    FR_DEPTH_REJECTED, /* drafts that were not accepted, whether compared or not */
    FR_DEPTH_COUNT
} fr_depth_stat;

/* Returns a count of the drafts at a depth, from 0 (the first draft of a round) to FR_STEP_MAX - 2. */
double fr_session_depth_stat(const fr_session *session, size_t depth, fr_depth_stat stat);

/* The callback gets one JSON object on one line, including its line feed, for each event of a session. The text belongs
 * to the session.
 *
 *     {"event":"begin", "at", "trace":1, "version", "model", "drafter", "method", "draft_max", "threads", "isa",
 *      "context"}                                              once, from fr_session_set_trace
 *     {"event":"prompt", "at", "position", "ids", "seconds"}   a forward over part of a prompt
 *     {"event":"draft", "at", "round", "position", "method", "ids"}      a proposal that is not empty
 *     {"event":"accept", "at", "round", "position", "rows", "accepted", "ids", "margins", "draft_seconds",
 *      "verify_seconds", "accept_seconds", "seconds"}          every step
 *
 * at: seconds since the trace began. position: the position of the first of `ids` on the timeline. rows: the number of
 * rows in the target's forward, which is drafts + 1, or less if pages were missing. It is 0 if the id is the one that a
 * prompt's forward predicted. accepted: how many of the first ids were drafts. margins: for each id, the largest minus
 * the second largest logit of the row from which the id was chosen; null if the difference is not finite. seconds: the
 * whole step, which is more than the sum of its three phases. Later versions may add keys and events. */
typedef void fr_trace_fn(void *context, const char *text, size_t length);

/* Starts a trace; if `line` is NULL, ends it. Allocates nothing. */
void fr_session_set_trace(fr_session *session, fr_trace_fn *line, void *context);

/* ----------------------------------------------------------------------------- memory, and stores of other programs */

typedef enum fr_estimate {
    FR_ESTIMATE_RESIDENT, /* weights that must stay in memory: copies, and weights that are read for every token */
    FR_ESTIMATE_MAPPED,   /* weights that are used in mapped files, whose pages the system may drop */
    FR_ESTIMATE_KV,       /* the target's keys and values, of all sessions */
    /* the smallest FR_OPT_KV_MEMORY with which this engine can be opened; 0 if the engine has no keys and values */
    FR_ESTIMATE_KV_LEAST,
    FR_ESTIMATE_STATES,      /* states of recurrent layers, of all timelines */
    FR_ESTIMATE_CHECKPOINTS, /* checkpoints of sliding layers' caches and of states */
    FR_ESTIMATE_DRAFTING,    /* a drafter's keys and values, and working memory for drafting */
    FR_ESTIMATE_SCRATCH,     /* working memory of forwards, logits, and everything else that sessions hold */
    FR_ESTIMATE_TOTAL,       /* the bytes that FR_OPT_MEMORY limits: the sum of all above except MAPPED and KV_LEAST */
    FR_ESTIMATE_AVAILABLE,   /* memory that the system has for this process now */
    FR_ESTIMATE_COUNT
} fr_estimate;

/* Estimates the memory that a model, its drafter if any, and an engine for this number of sessions would take, without
 * loading them. drafter: a path, "" for the MTP layers in the model's own checkpoint, NULL for none. sessions: if it is
 * 1 and FR_OPT_KV_MEMORY is not set, the estimate is for a session that fr_session_open opens. (An engine for one
 * session takes a few bytes more for each position, to find earlier prompts.) bytes: room for FR_ESTIMATE_COUNT
 * numbers. If the files can't be opened, the call fails as fr_model_open does. If the estimate exceeds the memory or
 * FR_OPT_MEMORY, the call succeeds. */
fr_status fr_model_estimate(const char *path, const char *drafter, const fr_options *options, size_t sessions,
                            uint64_t *bytes);

/* Finds the path of a model that another program has downloaded, by its name. Nothing is downloaded. environment: texts
 * NAME=VALUE and a NULL, like POSIX's environ, which say where the stores are; NULL: none. Names:
 *
 *     ORG/NAME          a repository in the cache of Hugging Face (HF_HUB_CACHE, HF_HOME) or llama.cpp (LLAMA_CACHE),
 *                       or in LM Studio's folder. The path is that of the repository's folder, if it is a published
 *                       model; otherwise that of its GGUF file of type Q4_K_M or Q8_0, or of its first GGUF file
 *     ORG/NAME:TYPE     the repository's first GGUF file of a type, such as Q5_K_M
 *     ORG/NAME:FILE     the repository's GGUF file of that name
 *     ollama:NAME:TAG   a model in ollama's store (OLLAMA_MODELS)
 *
 * If only one model fits, upper and lower case may differ, and ORG/ and ollama: may be left out. If the name is the
 * path of an existing file, or does not have the form of a name, it is returned unchanged. A web address is FR_INPUT.
 * If no model has the name, the call returns FR_INPUT, and the error line has a command that would download the model.
 * *path: free it with fr_free. */
fr_status fr_model_find(const char *name, const char *const *environment, char **path);

/* A model that another program has downloaded and stored. */
typedef struct fr_found {
    const char *name;    /* a name that fr_model_find accepts, or a path */
    const char *path;    /* the model's path; fr_model_open accepts it if `problem` is NULL */
    const char *tower;   /* path of the vision tower in the model's folder, or NULL */
    const char *store;   /* "Hugging Face", "llama.cpp", "LM Studio" or "ollama" */
    const char *problem; /* the reason why the model can't be opened, if one is known; NULL if it can */
    uint64_t bytes;      /* size of the model's files */
} fr_found;

/* Calls the function `told` for each model that fr_model_find could find in the stores. This function may open the
 * model; its argument is valid until it returns. If it returns false, the call ends with FR_ABORTED. */
typedef bool fr_found_fn(void *context, const fr_found *found);
fr_status fr_model_list(const char *const *environment, fr_found_fn *told, void *context);

/* ------------------------------------------------------------------------------------------------------- quantizing */

/* Says how a model is quantized. */
typedef struct fr_quantization {
    /* The matrices' type, by a name that llama-quantize uses, in upper or lower case, such as "q4_k_m", "q8_0" or
     * "bf16". */
    const char *type;
    bool pure; /* every matrix has the type; otherwise each matrix has the type that llama-quantize would give it */
    /* Texts "PATTERN=TYPE". The first text whose regular expression PATTERN matches a tensor's name in GGUF decides
     * that tensor's type. */
    const char *const *overrides;
    size_t override_count;
    /* types of the head and of the embeddings; NULL: the type that llama-quantize would give them */
    const char *output_type, *embedding_type;
    const char *imatrix; /* path of a llama.cpp importance matrix; NULL: all columns have the same weight */
    const char *drafter; /* NULL, or the folder of a drafter for the model; then only the drafter is written */
} fr_quantization;

/* Writes a model or drafter (a published folder or a GGUF file) as a GGUF file. The file gets its name once it is
 * complete. If a file of that name exists, the new file replaces it and gets its permissions. Otherwise other users may
 * read the new file. A value that is not finite, or too large for its type, is FR_INPUT. A folder's vision tower is not
 * written. options: the call reads threads, pinning, progress and log. Warnings go to the log. */
fr_status fr_quantize(const char *path, const char *to, const fr_quantization *how, const fr_options *options);

/* ------------------------------------------------------------------------------------------------------------ ranks */

/* Joins the ranks of an MPI job: the processes, on one or more machines, that run one model together. Builds without
 * RANKS=mpi return FR_UNBUILT. Call it once, before any model is opened, while the process has one thread. From then on
 * each rank must make the same calls with the same arguments. Each rank gets the results that a single process would
 * get. If several ranks may use the same cores, each takes a part of these cores. Draft models run on all ranks
 * together; drafters that read the target's rows, and vision towers, run whole on each rank. If a rank sends nothing
 * for timeout_seconds, has ended or makes another call, then all later calls on all ranks return FR_MACHINE. A job of
 * one process counts as no job. */
fr_status fr_ranks_join(int timeout_seconds);

/* Return this process's rank and the number of ranks; without a job these are 0 and 1. */
size_t fr_rank(void);
size_t fr_rank_count(void);

/* Leaves the job, before the process ends with exit status `code`. line: this process's last error line, "" for none.
 * It is sent to rank 0, which then fails with that line. If the other ranks do not end too, this call ends the whole
 * job and does not return. say: a function that prints another rank's error line, or NULL. On rank 0, `say` is called
 * if another rank failed after rank 0 was done. On rank 1, `say` is called if rank 0 failed or has ended. Returns the
 * exit status to use, which is not 0 if `code` is not 0 or another rank failed. */
int fr_ranks_part(int code, const char *line, void (*say)(const char *line));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
