/* Opens what a command line names: the model, its drafter, a session, and the prompt's ids.
 *
 * Every function gives an exit status: 0, or 1 or 2 after its line on standard error. */
#ifndef FR_TOOLS_CLI_LOADED_H
#define FR_TOOLS_CLI_LOADED_H

#include <jansson.h>
#include <stdatomic.h>

#include "forerun.h"
#include "tools/cli/options.h"
#include "tools/cli/prompt_file.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/trace.h"

typedef struct fr_loaded {
    fr_options *options;
    fr_model *model;
    fr_picture *pictures[FR_IMAGES_MAX]; /* of each --image, and of a chat */
    size_t picture_count;
    json_t *tools; /* of --tools; NULL: none */
    fr_drafter *drafter;
    _Atomic(fr_token_tree *) tokens; /* of grammars; NULL: not made yet */
    fr_grammar *grammar;
    const fr_marked_text *answers; /* the chat's prompt whose reply the grammar's text is the content of; NULL: none */
    fr_session *session;
    fr_progress progress;
    int threads; /* that the session computes with */
    fr_tracer trace;
} fr_loaded;

/* Makes the library's options from the command line. */
int fr_loaded_options(fr_options **options, const fr_arguments *args);

/* Sets the sampling that the model's makers recommend, or else that of llama.cpp's server: temperature 0.8, top-k 40,
 * top-p 0.95, min-p 0.05, the temperature last. Options on the command line win. */
int fr_loaded_sample(fr_loaded *loaded, const fr_arguments *args);

/* Returns true if the options sample at random. Otherwise the same prompt always gets the same reply. */
bool fr_loaded_draws(const fr_loaded *loaded);

/* Opens the model and its pictures. The size of the session depends on its tokenizer and facts, so that it is opened
 * later. */
int fr_loaded_open(fr_loaded *loaded, const fr_arguments *args);

/* Add one more picture; keep only the first `count` pictures. */
int fr_loaded_add_picture(fr_loaded *loaded, const char *path);
void fr_loaded_keep_pictures(fr_loaded *loaded, size_t count);

/* Drops the first `count` pictures. */
void fr_loaded_drop_pictures(fr_loaded *loaded, size_t count);

/* Shows the session all pictures. If its timeline had other pictures so far, it is emptied. */
int fr_loaded_show(fr_loaded *loaded);

/* Opens the drafter, unless nothing is to be drafted, and the session, for a prompt of so many ids and `more` after
 * them (-1: no limit). The session continues the one in --prompt-cache's file, if there is one. With --trace its lines
 * go to the trace from then on. */
int fr_loaded_start(fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* Two parts of fr_loaded_start. The first opens the drafter: that of -md, or the MTP layer in the model's own
 * checkpoint; without either, decoding is plain. The second gives the context. Without -c a chat gets the model's own
 * context if memory allows. Any other text gets the default, or more if prompt and limit together need more; if there
 * is no limit, it is doubled until the prompt leaves room. */
int fr_loaded_open_drafter(fr_loaded *loaded, const fr_arguments *args);
int64_t fr_loaded_context(const fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* Notes options that have no effect on this model. */
void fr_loaded_note_unused(const fr_loaded *loaded, const fr_arguments *args);

/* Saves the session to --prompt-cache's file, if one was named. */
int fr_loaded_save(const fr_loaded *loaded, const fr_arguments *args);
void fr_loaded_close(fr_loaded *loaded);

/* The first function gives the model's tokenizer; a folder without one is an error. The second opens the tokenizer of
 * -m without its model. */
int fr_loaded_tokenizer(const fr_loaded *loaded, const fr_arguments *args, const fr_tokenizer **tokenizer);
int fr_loaded_tokenizer_alone(fr_tokenizer **tokenizer, const fr_arguments *args);

/* Reads the prompt that the command line names, before a model is opened. */
int fr_prompt_read(fr_prompt *prompt, const fr_arguments *args);

/* Gives the text of the token that the ids begin with twice, because the tokenizer adds it to a text that already has
 * it. NULL: not doubled. */
const char *fr_prompt_doubled(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count);

/* The note about that token; %s is its text. */
#define FR_DOUBLED_NOTE                                                                            \
    "the prompt begins with %s, which the tokenizer adds: it stands there twice, and replies may " \
    "be worse; leave it out of the text"

/* Renders the prompt with --chat or with pictures: its bytes become the user's turn of a conversation. The pictures
 * stand where the bytes have marks for them, or else before them. Without --chat, bytes with marks are left
 * unchanged. */
int fr_prompt_render(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* Renders a whole conversation, whose parts say where the pictures are if there are any. Its last message is answered
 * next, or continued if it is a reply. */
int fr_prompt_converse(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args, const json_t *messages);

/* Gives the tree of the model's tokens that grammars use. It is made at the first call. Any thread. */
fr_status fr_loaded_tokens(fr_loaded *loaded, const fr_token_tree **tree);

/* Prints a note about the model's chat template if there is a reason for one. */
void fr_loaded_note_chat(const fr_loaded *loaded, const fr_arguments *args);

/* Tokenizes a prompt, unless it is ids already, and repeats each picture's token as often as the picture needs.
 * Control tokens are recognized where the template wrote them; with --parse-special everywhere, as in a prompt of
 * bytes. A prompt without any id is an error. */
int fr_prompt_tokenize(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* Does the same for a prompt that is text, with these pictures. The model must have a tokenizer. */
fr_status fr_prompt_ids(fr_prompt *prompt, const fr_model *model, fr_picture *const *pictures, size_t picture_count,
                        bool parse_special);

/* Gives the id that the tokenizer puts before a text; -1 if there is none. */
int fr_prompt_front(const fr_loaded *loaded, const fr_arguments *args, int32_t *front);

#endif
