/* Opens the objects that a command line names: the model, its drafter, a session, and the prompt's ids.
 *
 * Every function gives an exit status. It is 0 for success. After an error line on standard error it is 1 or 2. */
#ifndef FR_TOOLS_CLI_LOADED_H
#define FR_TOOLS_CLI_LOADED_H

#include <jansson.h>
#include <stdatomic.h>

#include "forerun.h"
#include "tools/cli/adapters.h"
#include "tools/cli/options.h"
#include "tools/cli/prompt_file.h"
#include "tools/cli/terminal/progress.h"
#include "tools/cli/trace.h"

typedef struct fr_loaded {
    fr_options *options;
    fr_model *model;
    fr_picture *pictures[FR_IMAGES_MAX]; /* pictures of --image options, and those that a chat has added */
    size_t picture_count;
    json_t *tools; /* the tools of --tools; NULL: none */
    fr_drafter *drafter;
    fr_loaded_adapters adapters;
    _Atomic(fr_token_tree *) tokens; /* tree of the tokens' texts, for grammars; NULL: not made yet */
    fr_grammar *grammar;
    /* the text of a chat's prompt. If it is set, only the content of the reply must follow the grammar. NULL: the whole
     * text must follow the grammar */
    const fr_marked_text *answers;
    fr_session *session;
    fr_progress progress;
    int threads; /* number of threads with which the session computes */
    fr_tracer trace;
} fr_loaded;

/* Makes the library's options from the command line. */
int fr_loaded_options(fr_options **options, const fr_arguments *args);

/* Sets the sampling that the model's makers recommend. If they recommend none, the sampling is that of llama.cpp's
 * server: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, with the temperature applied last. Options on the command
 * line take precedence. */
int fr_loaded_sample(fr_loaded *loaded, const fr_arguments *args);

/* Returns true if the options sample at random. If they don't, the same prompt always gets the same reply. */
bool fr_loaded_draws(const fr_loaded *loaded);

/* Opens the model and its pictures. The session is opened later, because its size depends on the tokenizer and on
 * facts about the model. */
int fr_loaded_open(fr_loaded *loaded, const fr_arguments *args);

/* fr_loaded_add_picture adds one more picture. fr_loaded_keep_pictures keeps the first `count` pictures and drops the
 * others. */
int fr_loaded_add_picture(fr_loaded *loaded, const char *path);
void fr_loaded_keep_pictures(fr_loaded *loaded, size_t count);

/* Drops the first `count` pictures. */
void fr_loaded_drop_pictures(fr_loaded *loaded, size_t count);

/* Gives the session all pictures. The session's timeline is emptied, because pictures come before all text. */
int fr_loaded_show(fr_loaded *loaded);

/* Opens the drafter if drafts are wanted, and then the session. The session has room for a prompt of `prompt` ids and
 * `more` ids after the prompt (-1: no limit). If the file of --prompt-cache exists, the session is restored from it.
 * With --trace, the session writes to the trace from then on. */
int fr_loaded_start(fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* These two functions are parts of fr_loaded_start. fr_loaded_open_drafter opens the drafter of -md, or the MTP layer
 * in the model's own checkpoint. If there is neither, no drafter is opened. fr_loaded_context chooses the context if -c
 * does not give it. A chat gets the model's own context if memory allows. Any other run gets the default context, or
 * more if the prompt and the limit of the reply need it. If the reply has no limit, the default is doubled until there
 * is room after the prompt. */
int fr_loaded_open_drafter(fr_loaded *loaded, const fr_arguments *args);
int64_t fr_loaded_context(const fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more);

/* Notes options that have no effect on this model. */
void fr_loaded_note_unused(const fr_loaded *loaded, const fr_arguments *args);

/* Saves the session to the file of --prompt-cache, if the option was given. */
int fr_loaded_save(const fr_loaded *loaded, const fr_arguments *args);
void fr_loaded_close(fr_loaded *loaded);

/* fr_loaded_tokenizer gives the opened model's tokenizer; if the model has none, that is an error.
 * fr_loaded_tokenizer_alone opens only the tokenizer of -m, without loading the model. */
int fr_loaded_tokenizer(const fr_loaded *loaded, const fr_arguments *args, const fr_tokenizer **tokenizer);
int fr_loaded_tokenizer_alone(fr_tokenizer **tokenizer, const fr_arguments *args);

/* Reads the prompt that the command line names. Call it before a model is opened: opening a model takes time, and the
 * user should learn earlier that the prompt's file is missing. */
int fr_prompt_read(fr_prompt *prompt, const fr_arguments *args);

/* Returns the text of a special token that occurs twice at the beginning of a prompt. This happens if the prompt's text
 * contains the token and the tokenizer adds it too. NULL: there is no such token. */
const char *fr_prompt_doubled(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count);

/* The note about a special token that occurs twice at the beginning of a prompt; %s is the token's text. */
#define FR_DOUBLED_NOTE                                                                            \
    "the prompt begins with %s, which the tokenizer adds: it stands there twice, and replies may " \
    "be worse; leave it out of the text"

/* If --chat is given or the prompt has pictures, renders the prompt as a user's turn with the chat template. Pictures
 * are placed at their marks in the bytes, or before the text if there are no marks. If the bytes have marks and --chat
 * is not given, they stay a raw prompt. Then each "{image}" is replaced by the text that the template writes for a
 * picture. */
int fr_prompt_render(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* Renders a whole conversation, whose messages have marks for the pictures. If the last message is the assistant's, the
 * reply continues that message. Otherwise the reply answers the last message. */
int fr_prompt_converse(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args, const json_t *messages);

/* Gives the tree of the tokens' texts that grammars use. The first call makes the tree. The function may be called from
 * any thread. */
fr_status fr_loaded_tokens(fr_loaded *loaded, const fr_token_tree **tree);

/* If there is a note about the model's chat template, prints it. */
void fr_loaded_note_chat(const fr_loaded *loaded, const fr_arguments *args);

/* Tokenizes a prompt, and replaces marks of pictures by image tokens. A prompt that is given as ids is not tokenized.
 * Control tokens are recognized only where the template wrote them. In a raw prompt, or with --parse-special, they are
 * recognized everywhere. A prompt without any id is an error. */
int fr_prompt_tokenize(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args);

/* Tokenizes a prompt that is a text, with the given pictures, as fr_prompt_tokenize does. The model must have a
 * tokenizer. */
fr_status fr_prompt_ids(fr_prompt *prompt, const fr_model *model, fr_picture *const *pictures, size_t picture_count,
                        bool parse_special);

/* Sets *front to the id that the tokenizer puts before a text; -1: it puts none there. */
int fr_prompt_front(const fr_loaded *loaded, const fr_arguments *args, int32_t *front);

#endif
