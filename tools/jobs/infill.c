/* Builds the prompt for filling in code (infill.h). It has the other files first, and then
 *
 *     PREFIX input_prefix prompt SUFFIX input_suffix MIDDLE
 *
 * The words in capitals are control tokens, which are found by their texts. The other files have the form that
 * Qwen2.5-Coder's report (arXiv 2409.12186) gives to a repository. It begins with REPOSITORY and the repository's name.
 * Then each file has SEPARATOR, the file's name and the file's text. When a request's texts are tokenized, control
 * tokens are not recognized in them. */
#include "tools/jobs/infill.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"

#define BAR   "\xef\xbd\x9c" /* the bar in the texts of DeepSeek's control tokens */
#define BLANK "\xe2\x96\x81"

enum { PREFIX, SUFFIX, MIDDLE, REPOSITORY, SEPARATOR, TOKENS };

/* The texts of the control tokens, one line for each family of models. NULL: the family has no such token. */
static const char *const spellings[][TOKENS] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"},
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", NULL, "<|file_separator|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", NULL},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", NULL, NULL},
    {"<" BAR "fim" BLANK "begin" BAR ">", "<" BAR "fim" BLANK "hole" BAR ">", "<" BAR "fim" BLANK "end" BAR ">", NULL,
     NULL},
};

typedef struct infill {
    const fr_tokenizer *tokenizer;
    int32_t ids[TOKENS]; /* -1: the model has no such token */
    json_t *prompt;
    char *error;
} infill;

static bool refuse(infill *in, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(infill *in, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(in->error, FR_INFILL_ERROR, format, args);
    va_end(args);
    return false;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* Gives the id of the token with exactly this text. -1: there is no such token. */
static int32_t token_of(const fr_tokenizer *tokenizer, const char *text) {
    int32_t *ids = NULL, id;
    size_t count = 0, length = 0;
    if (!text || fr_tokenize(tokenizer, text, strlen(text), false, true, &ids, &count) != FR_OK) return -1;
    id = count == 1 ? ids[0] : -1;
    fr_free(ids);
    const char *own = id < 0 ? NULL : fr_token_text(tokenizer, id, &length);
    return own && length == strlen(text) && memcmp(own, text, length) == 0 ? id : -1;
}

/* Finds the family whose control tokens the model has. The model must have the family's first three tokens. If several
 * families fit, the family with the most tokens in the model is chosen. */
static bool find_tokens(infill *in) {
    size_t best = 0;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        int32_t ids[TOKENS];
        size_t found = 0;
        for (size_t t = 0; t < TOKENS; t++) found += (ids[t] = token_of(in->tokenizer, spellings[i][t])) >= 0;
        if (ids[PREFIX] < 0 || ids[SUFFIX] < 0 || ids[MIDDLE] < 0 || found <= best) continue;
        memcpy(in->ids, ids, sizeof ids);
        best = found;
    }
    return best > 0;
}

static void put(infill *in, int32_t id) {
    if (id >= 0) json_array_append_new(in->prompt, json_integer(id));
}

/* Adds the tokens of a text. add_special: the tokens that the tokenizer puts at the beginning of every text are added
 * too. */
static bool put_text(infill *in, const char *text, size_t length, bool add_special) {
    int32_t *ids;
    size_t count;
    if (fr_tokenize(in->tokenizer, text, length, add_special, false, &ids, &count) != FR_OK)
        return refuse(in, "%s", fr_last_error());
    for (size_t i = 0; i < count; i++) put(in, ids[i]);
    fr_free(ids);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ texts */

static bool put_member(infill *in, const json_t *body, const char *key) {
    const json_t *text = json_object_get(body, key);
    if (!text || json_is_null(text)) return true;
    if (!fr_is_json_text(text)) return refuse(in, "%s must be a text", key);
    return put_text(in, json_string_value(text), json_string_length(text), false);
}

/* Adds a line with a file's name. If the model has no separator token, the name is left out, and a line that is rare in
 * code is added instead. */
static bool put_name(infill *in, const char *name) {
    static const char cut[] = "\n\n--- snippet ---\n\n";
    if (in->ids[SEPARATOR] < 0) return put_text(in, cut, strlen(cut), false);
    put(in, in->ids[SEPARATOR]);
    json_t *line = json_sprintf("%s\n", name);
    bool done = put_text(in, json_string_value(line), json_string_length(line), false);
    json_decref(line);
    return done;
}

static bool put_file(infill *in, size_t at, const json_t *file) {
    const char *name = fr_job_plain_text(json_object_get(file, "filename"));
    if (!fr_is_json_text(json_object_get(file, "text")) || (json_object_get(file, "filename") && !name))
        return refuse(in, "input_extra[%zu] must be {\"filename\", \"text\"}, both texts", at);
    return put_name(in, name ? name : "tmp") && put_member(in, file, "text");
}

/* Adds the other files. A request gives no names for the repository and for the edited file. So both get the names that
 * llama.cpp uses. */
static bool put_files(infill *in, const json_t *files) {
    static const char repository[] = "myproject\n";
    if (files && !json_is_null(files) && !json_is_array(files)) return refuse(in, "input_extra must be an array");
    if (json_array_size(files) == 0) return true;
    put(in, in->ids[REPOSITORY]);
    if (in->ids[REPOSITORY] >= 0 && !put_text(in, repository, strlen(repository), false)) return false;
    for (size_t i = 0; i < json_array_size(files); i++)
        if (!put_file(in, i, json_array_get(files, i))) return false;
    return put_name(in, "filename");
}

static bool put_all(infill *in, const json_t *body) {
    if (!put_text(in, "", 0, true) || !put_files(in, json_object_get(body, "input_extra"))) return false;
    put(in, in->ids[PREFIX]);
    if (!put_member(in, body, "input_prefix") || !put_member(in, body, "prompt")) return false;
    put(in, in->ids[SUFFIX]);
    if (!put_member(in, body, "input_suffix")) return false;
    put(in, in->ids[MIDDLE]);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- body */

/* Removes members that editors send for llama.cpp and that are not implemented here. They are a sampler for infilling,
 * and limits of indentation and time. Without them, the reply is limited only by the remaining members, such as
 * n_predict. */
static void drop_hints(json_t *body) {
    static const char *const keys[] = {"input_prefix", "input_suffix", "input_extra", "n_indent", "t_max_prompt_ms"};
    json_t *samplers = json_object_get(body, "samplers");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) json_object_del(body, keys[i]);
    for (size_t i = json_array_size(samplers); i-- > 0;)
        if (fr_job_is_word(json_array_get(samplers, i), "infill")) json_array_remove(samplers, i);
}

bool fr_infill_can(const fr_tokenizer *tokenizer) {
    infill in = {.tokenizer = tokenizer};
    return tokenizer && find_tokens(&in);
}

bool fr_infill_read(const fr_tokenizer *tokenizer, json_t *body, char error[FR_INFILL_ERROR]) {
    infill in = {.tokenizer = tokenizer, .prompt = json_array(), .error = error};
    bool taken = tokenizer && find_tokens(&in);
    if (!taken) refuse(&in, "the model has no tokens for code that is filled in: /infill needs such a one");
    taken = taken && put_all(&in, body);
    drop_hints(body);
    fr_json_put(body, "prompt", in.prompt);
    return taken;
}

json_t *fr_infill_around(const fr_tokenizer *tokenizer, const json_t *prompt, const json_t *suffix,
                         char error[FR_INFILL_ERROR]) {
    infill in = {.tokenizer = tokenizer, .prompt = json_array(), .error = error};
    bool known = tokenizer && find_tokens(&in), text = fr_is_json_text(prompt), taken = false;
    if (!known)
        refuse(&in, "suffix: the model has no tokens for a text that is filled in");
    else if (!text && !json_is_array(prompt))
        refuse(&in, "prompt must be a text, or an array of ids");
    else
        taken = put_text(&in, "", 0, true);
    put(&in, in.ids[PREFIX]);
    if (taken && text)
        taken = put_text(&in, json_string_value(prompt), json_string_length(prompt), false);
    else
        json_array_extend(in.prompt, (json_t *)(uintptr_t)prompt);
    put(&in, in.ids[SUFFIX]);
    taken = taken && put_text(&in, json_string_value(suffix), json_string_length(suffix), false);
    put(&in, in.ids[MIDDLE]);
    if (taken) return in.prompt;
    json_decref(in.prompt);
    return NULL;
}
