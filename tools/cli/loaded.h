/* What a command line names, opened: the prompt's ids, the model, its drafter, a session over them.
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
    _Atomic(fr_token_tree *) tokens; /* of grammars; NULL: nobody has asked for it yet */
    fr_grammar *grammar;
    const fr_marked_text *answers; /* the chat's prompt whose reply the grammar's text is the content of; NULL: none */
    fr_session *session;
    fr_progress progress;
    int threads; /* that the session computes with */
    fr_tracer trace;
} fr_loaded;

/* The library's options, as the command line has them. */
int fr_loaded_options(fr_options **options, const fr_arguments *args);

/* Sets the sampling that the model's makers recommend, or else that of llama.cpp's server: temperature 0.8, top-k 40,
 * top-p 0.95, min-p 0.05, the temperature last. Options on the command line win. */
int fr_loaded_sample(fr_loaded *loaded, const fr_arguments *args);

/* Says if the options sample at random. If they don't, the same prompt always gets the same reply. */
bool fr_loaded_draws(const fr_loaded *loaded);

/* The model, and pictures for it: its tokenizer and facts decide how large the session will be. */
int fr_loaded_open(fr_loaded *loaded, const fr_arguments *args);

/* One more picture; and only the first `count` of them. */
int fr_loaded_add_picture(fr_loaded *loaded, const char *path);
void fr_loaded_keep_pictures(fr_loaded *loaded, size_t count);

/* Without the first `count` of them. */
void fr_loaded_drop_pictures(fr_loaded *loaded, size_t count);

/* Shows the session all pictures, of which its timeline may have had others so far: that is emptied. */
int fr_loaded_show(fr_loaded *loaded);

/* The drafter, if it shall draft, and the session, for a prompt of so many ids and `more` after them (-1: no limit). It
 * begins as --prompt-cache's file left it, if there is one. With --trace its lines go to the trace from here on. */
int fr_loaded_start(fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* Of that, the drafter: that of -md, or the MTP layer in the model's own checkpoint; without either, plain decoding.
 * And the context: without -c that of a chat is the model's own where memory allows. Else it is the default, more where
 * prompt and limit together are more, and where there is no limit, doubled until the prompt leaves room. */
int fr_loaded_open_drafter(fr_loaded *loaded, const fr_arguments *args);
int64_t fr_loaded_context(const fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* Options that mean nothing to this model. */
void fr_loaded_note_unused(const fr_loaded *loaded, const fr_arguments *args);

/* Saves the session to --prompt-cache's file, if one was named. */
int fr_loaded_save(const fr_loaded *loaded, const fr_arguments *args);
void fr_loaded_close(fr_loaded *loaded);

/* The model's tokenizer; a folder without one is an error. And that of -m without its model. */
int fr_loaded_tokenizer(const fr_loaded *loaded, const fr_arguments *args, const fr_tokenizer **tokenizer);
int fr_loaded_tokenizer_alone(fr_tokenizer **tokenizer, const fr_arguments *args);

/* Reads the prompt that the command line names, before a model is opened. */
int fr_prompt_read(fr_prompt *prompt, const fr_arguments *args);

/* Gives the text of the token that the ids begin with twice, because the tokenizer adds it to a text that already has
 * it. NULL: not doubled. */
const char *fr_prompt_doubled(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count);

/* The note about that token; %s is its text. */
#define FR_DOUBLED_NOTE "the prompt begins with %s, which the tokenizer adds: it stands there twice, and replies may " \
                        "be worse; leave it out of the text"

/* --chat, or pictures: the prompt's bytes become the user's turn of a rendered conversation, with the pictures where
 * they say so themselves, or before them. Without --chat, bytes that say so are left alone. */
int fr_prompt_render(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* The same of a whole conversation, whose parts say where the pictures are if there are any. What it ends with is
 * answered next, unless that is a reply itself. */
int fr_prompt_converse(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args, const json_t *messages);

/* The tree of the model's tokens that grammars are over, made when it is first asked for. Any thread. */
fr_status fr_loaded_tokens(fr_loaded *loaded, const fr_token_tree **tree);

/* What there is worth saying about the model's chat template, as a note. */
void fr_loaded_note_chat(const fr_loaded *loaded, const fr_arguments *args);

/* To ids, each picture's token as often as the picture needs; nothing to do for a prompt of ids. What a template made
 * has its control tokens where that wrote them, with --parse-special everywhere, as bytes have. A prompt without any id
 * is an error. */
int fr_prompt_tokenize(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* The same of a prompt that is text, for a model that has a tokenizer, with these pictures. */
fr_status fr_prompt_ids(fr_prompt *prompt, const fr_model *model, fr_picture *const *pictures, size_t picture_count,
                        bool parse_special);

/* The id that the tokenizer puts in front of a text, -1: none. */
int fr_prompt_front(const fr_loaded *loaded, const fr_arguments *args, int32_t *front);

#endif
