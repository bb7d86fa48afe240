/* Lists, shows and loads models in ollama's form (ollama.h). */
#include "tools/serve/ollama.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "forerun_lab.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/caps.h"
#include "tools/serve/content_file.h"
#include "tools/jobs/infill.h"
#include "tools/serve/text_routes.h"

/* The first version of ollama that gives log-probabilities. This server gives them too */
#define OLLAMA_VERSION "0.12.11"

/* ------------------------------------------------------------------------------------------------------------ files */

typedef struct files {
    uint64_t bytes;
    struct timespec changed;
} files;

static void add_file(files *f, const struct stat *file) {
    bool later = file->st_mtim.tv_sec > f->changed.tv_sec ||
                 (file->st_mtim.tv_sec == f->changed.tv_sec && file->st_mtim.tv_nsec > f->changed.tv_nsec);
    f->bytes += (uint64_t)file->st_size;
    if (later) f->changed = file->st_mtim;
}

/* Gives the size of a file and the time of its last change. A folder has the total size of its files, and the time of
 * their latest change. */
static files files_of(const char *path) {
    files f = {0};
    struct stat file;
    DIR *names = opendir(path);
    if (!names && stat(path, &file) == 0) add_file(&f, &file);
    for (struct dirent *one; names && (one = readdir(names));) {
        char inner[PATH_MAX];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, one->d_name);
        if (length < (int)sizeof inner && stat(inner, &file) == 0 && S_ISREG(file.st_mode)) add_file(&f, &file);
    }
    if (names) closedir(names);
    return f;
}

static json_t *digest_of(const char *path, const files *f) {
    char error[FR_CONTENT_ERROR] = "", hash[FR_CONTENT_SIZE] = "";
    const fr_content_run run = {NULL, NULL, error};
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin && path[begin - 1] != '/';) begin--;
    json_t *lines = json_sprintf("%.*s\n%llu\n%lld%09ld\n", (int)(end - begin), path + begin,
                                 (unsigned long long)f->bytes, (long long)f->changed.tv_sec, f->changed.tv_nsec);
    if (lines) fr_content_bytes(&run, json_string_value(lines), json_string_length(lines), hash);
    json_decref(lines);
    return json_string(hash);
}

static json_t *time_of(time_t seconds) {
    char text[32];
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    return json_string(text);
}

/* ----------------------------------------------------------------------------------------------------------- models */

/* Writes a number of parameters in short form, such as "494.0M" or "1.5B". If the number is not known yet, writes
 * "". */
static json_t *size_word(json_int_t parameters) {
    double millions = (double)parameters / 1e6;
    if (parameters == 0) return json_string("");
    return millions < 1000 ? json_sprintf("%.1fM", millions) : json_sprintf("%.1fB", millions / 1000);
}

/* Gives the details of a model. Its type and its number of parameters are known only after it has been loaded once. */
static json_t *details_of(const char *path, const json_t *meta) {
    const json_t *type = json_object_get(meta, "ftype");
    size_t length = strlen(path);
    bool gguf = length > 5 && strcmp(path + length - 5, ".gguf") == 0;
    return json_pack("{s:s, s:s, s:s, s:[s], s:o, s:s}", "parent_model", "", "format", gguf ? "gguf" : "safetensors",
                     "family", "forerun", "families", "forerun", "parameter_size",
                     size_word(json_integer_value(json_object_get(meta, "n_params"))), "quantization_level",
                     json_is_string(type) ? json_string_value(type) : "");
}

/* Makes a model's entry in a list. told: the entry that fr_models_files gives for the model. */
static json_t *model_of(const json_t *told) {
    const char *path = json_string_value(json_object_get(told, "path"));
    files f = files_of(path);
    json_t *name = json_object_get(told, "name");
    return json_pack("{s:O, s:O, s:o, s:I, s:o, s:o}", "name", name, "model", name, "modified_at",
                     time_of(f.changed.tv_sec), "size", (json_int_t)f.bytes, "digest", digest_of(path, &f), "details",
                     details_of(path, json_object_get(told, "meta")));
}

/* Lists the models. If `loaded` is true, lists only the models in memory. ollama says when each of them will be
 * removed. Here this time is not known, so a date in the far future is given. */
static void list(fr_http_exchange *exchange, fr_models *models, bool loaded) {
    json_t *all = fr_models_files(models), *listed = json_array(), *told;
    size_t i;
    json_array_foreach (all, i, told) {
        const json_t *meta = json_object_get(told, "meta");
        if (loaded && !meta) continue;
        json_t *model = model_of(told);
        if (loaded) {
            fr_json_put(model, "expires_at", json_string("9999-12-31T23:59:59Z"));
            fr_json_put(model, "size_vram", json_integer(0));
            fr_json_put(model, "context_length", json_incref(json_object_get(told, "context")));
        }
        json_array_append_new(listed, model);
    }
    json_decref(all);
    fr_http_exchange_answer_json(exchange, 200, json_pack("{s:o}", "models", listed));
}

void fr_ollama_tags(fr_http_exchange *exchange, fr_models *models) {
    list(exchange, models, false);
}

void fr_ollama_loaded(fr_http_exchange *exchange, fr_models *models) {
    list(exchange, models, true);
}

void fr_ollama_version(fr_http_exchange *exchange) {
    fr_http_exchange_answer_json(exchange, 200,
                                 json_pack("{s:s, s:s}", "version", OLLAMA_VERSION, "forerun", fr_version()));
}

/* ------------------------------------------------------------------------------------------ the answer to /api/show */

static json_t *abilities_of(const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model->loaded.model);
    bool chats = tokenizer && fr_chat_template_text(tokenizer, NULL);
    json_t *caps = chats ? fr_caps_of(tokenizer) : json_object();
    const struct {
        const char *word;
        bool has;
    } abilities[] = {{"completion", model->jobs.engine != NULL},
                     {"tools", json_is_true(json_object_get(caps, "supports_tools"))},
                     {"vision", fr_model_fact(model->loaded.model, FR_FACT_IMAGE_TOKEN) >= 0},
                     {"thinking", chats && fr_caps_reasons(tokenizer)},
                     {"insert", fr_infill_can(tokenizer)},
                     {"embedding", model->embedder != NULL}};
    json_t *can = json_array();
    for (size_t i = 0; i < sizeof abilities / sizeof *abilities; i++)
        if (abilities[i].has) json_array_append_new(can, json_string(abilities[i].word));
    json_decref(caps);
    return can;
}

/* Answers with the model's features and its context. Clients look for the context in ARCHITECTURE.context_length, so
 * the answer names an architecture. */
static void answer_shown(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_model *weights = model->loaded.model;
    size_t length = 0;
    const char *template = fr_chat_template_text(fr_model_tokenizer(weights), &length);
    json_int_t parameters = (json_int_t)fr_lab_model_parameters(weights);
    json_t *meta = json_pack("{s:s, s:I}", "ftype", fr_lab_model_type(weights), "n_params", parameters);
    json_t *info = json_pack("{s:s, s:o, s:I, s:I, s:I}", "general.architecture", "forerun", "general.basename",
                             fr_json_bytes(model->name, strlen(model->name)), "general.parameter_count", parameters,
                             "forerun.context_length", (json_int_t)fr_model_fact(weights, FR_FACT_CONTEXT_LIMIT),
                             "forerun.embedding_length", (json_int_t)fr_model_fact(weights, FR_FACT_HIDDEN));
    files f = files_of(model->path);
    json_t *shown = json_pack("{s:o, s:o, s:o, s:o}", "capabilities", abilities_of(model), "model_info", info,
                              "details", details_of(model->path, meta), "modified_at", time_of(f.changed.tv_sec));
    fr_json_put(shown, "template", template ? fr_json_bytes(template, length) : json_string(""));
    json_decref(meta);
    fr_http_exchange_answer_json(exchange, 200, shown);
}

/* Gives the name of the model. It is in "model", or in "name", which older clients send. NULL: the body has neither. */
static const char *name_in(const json_t *body) {
    const json_t *named = json_object_get(body, "model"), *older = json_object_get(body, "name");
    return fr_job_plain_text(named && !json_is_null(named) ? named : older);
}

void fr_ollama_show(fr_http_exchange *exchange, const fr_model_instance *model) {
    json_t *body = fr_json_body(exchange);
    const char *name = name_in(body);
    if (body && (!name || !*name))
        fr_http_exchange_refuse(exchange, 400, "\"model\" must be the name of a model");
    else if (body && !fr_model_is_called(model->name, name))
        fr_http_exchange_refuse(exchange, 404, "there is no model \"%.100s\" here", name);
    else if (body)
        answer_shown(exchange, model);
    json_decref(body);
}

/* -------------------------------------------------------------------------------------- loading and removing models */

/* Returns true if "keep_alive" asks to remove the model at once. Its value is then 0, "0" or "0s". */
static bool is_nothing(const json_t *keep) {
    const char *text = json_is_string(keep) ? json_string_value(keep) : NULL;
    if (json_is_number(keep)) return json_number_value(keep) == 0;
    return text && *text == '0' && text[strspn(text, "0hms")] == '\0';
}

bool fr_ollama_is_silent(const char *path, const json_t *body, bool *leaves) {
    const json_t *said = json_object_get(body, strcmp(path, "/api/chat") == 0 ? "messages" : "prompt");
    *leaves = is_nothing(json_object_get(body, "keep_alive"));
    if (!json_is_object(body)) return false;
    return !said || json_is_null(said) ||
           (json_is_string(said) ? json_string_length(said) == 0 : json_is_array(said) && json_array_size(said) == 0);
}

/* Answers a request that has no prompt. */
static void answer_silence(fr_http_exchange *exchange, const char *name, const char *reason) {
    bool chat = strcmp(fr_http_exchange_path(exchange), "/api/chat") == 0;
    json_t *line = json_pack("{s:o, s:o, s:b, s:s}", "model", fr_json_bytes(name, strlen(name)), "created_at",
                             time_of(time(NULL)), "done", 1, "done_reason", reason);
    if (chat)
        fr_json_put(line, "message", json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
    else
        fr_json_put(line, "response", json_string(""));
    fr_http_exchange_answer_json(exchange, 200, line);
}

void fr_ollama_load(fr_http_exchange *exchange, const fr_model_instance *model) {
    json_decref(fr_http_exchange_kept(exchange));
    answer_silence(exchange, model->name, "load");
}

void fr_ollama_unload(fr_http_exchange *exchange, fr_models *models, const json_t *body) {
    const char *name = name_in(body), *own = fr_models_release(models, name);
    if (own)
        answer_silence(exchange, own, "unload");
    else
        fr_http_exchange_refuse(exchange, 404, "there is no model \"%.100s\" here", name ? name : "");
}
