/* Maps each path to the function that answers it (routes.h). */
#include "tools/serve/routes.h"

#include <stdlib.h>
#include <string.h>

#include "forerun_lab_ranks.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/adapter_scales.h"
#include "tools/serve/answer.h"
#include "tools/serve/dialects/request_dialects.h"
#include "tools/serve/embeddings.h"
#include "tools/serve/fault.h"
#include "tools/jobs/infill.h"
#include "tools/serve/ollama.h"
#include "tools/serve/rerank.h"
#include "tools/serve/text_routes.h"
#include "tools/serve/web_page.h"

typedef void route_fn(const fr_routes *routes, fr_http_exchange *exchange);

/* ------------------------------------------------------------------------------------------------------- the server */

static void get_health(const fr_routes *routes, fr_http_exchange *exchange) {
    if (fr_models_lost(routes->models))
        fr_http_exchange_refuse(exchange, 503, "a model's file was changed while the server had it open");
    else if (fr_models_ready(routes->models))
        fr_http_exchange_answer_json(exchange, 200, json_pack("{s:s}", "status", "ok"));
    else
        fr_http_exchange_refuse(exchange, 503, "Loading model");
}

static void get_models(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_http_exchange_answer_json(exchange, 200, fr_models_list(routes->models));
}

/* Answers a question about one model. The path ends with the model's name, which may contain slashes. */
static void get_model(const fr_routes *routes, fr_http_exchange *exchange) {
    const char *path = fr_http_exchange_path(exchange), *name = path + (strncmp(path, "/v1/", 4) == 0 ? 11 : 8);
    json_t *list = fr_models_list(routes->models), *found = NULL, *one;
    size_t i;
    json_array_foreach (json_object_get(list, "data"), i, one)
        if (fr_job_is_word(json_object_get(one, "id"), name)) found = json_incref(one);
    json_decref(list);
    if (found)
        fr_http_exchange_answer_json(exchange, 200, found);
    else
        fr_http_exchange_refuse(exchange, 404, "there is no model \"%.100s\" here", name);
}

static void get_metrics(const fr_routes *routes, fr_http_exchange *exchange) {
    size_t length, running, waiting;
    if (!routes->args->given[FR_ARG_METRICS]) {
        fr_http_exchange_refuse(exchange, 501, "this server was started without --metrics");
        return;
    }
    fr_models_count(routes->models, &waiting, &running);
    char *page = fr_metrics_page(routes->metrics, running, waiting, &length), since[32];
    snprintf(since, sizeof since, "%lld", (long long)fr_metrics_since(routes->metrics));
    fr_http_exchange_set_header(exchange, "Process-Start-Time-Unix", since);
    fr_http_exchange_answer(exchange, 200, FR_METRICS_TYPE, page, length);
    free(page);
}

static void get_props(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), fr_text_routes_props);
}

static void get_tokenizer_info(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), fr_text_routes_tokenizer_info);
}

static void get_web_page(const fr_routes *routes, fr_http_exchange *exchange) {
    if (routes->args->given[FR_ARG_NO_UI])
        fr_http_exchange_refuse(exchange, 404, "this server was started with --no-ui");
    else
        fr_web_page_answer(exchange);
}

static void get_adapters(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), fr_adapter_scales_list);
}

static void post_adapters(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), fr_adapter_scales_set);
}

/* ------------------------------------------------------------------------------------------------------------ slots */

/* Refuses a request for text if the model generates no text. Returns true if the request was refused. */
static bool refuse_encoder(fr_http_exchange *exchange, const fr_model_instance *model) {
    if (model->jobs.engine) return false;
    fr_http_exchange_refuse(
        exchange, 501, "\"%.100s\" is a text encoder, which generates no text: it answers /v1/embeddings%s",
        model->name, fr_embedder_fact_of(model->embedder, FR_EMBEDDER_SCORES) ? " and /v1/rerank" : "");
    return true;
}

static void list_slots(fr_http_exchange *exchange, const fr_model_instance *model) {
    bool if_free = fr_http_exchange_query(exchange, "fail_on_no_slot") != NULL;
    if (if_free && fr_scheduler_full(model->scheduler))
        fr_http_exchange_refuse(exchange, 503, "no slot is free");
    else
        fr_http_exchange_answer_json(exchange, 200, fr_scheduler_slots(model->scheduler));
}

/* Answers a request about the slots. Such requests are allowed only with --slots. */
static void show(const fr_routes *routes, fr_http_exchange *exchange, fr_models_fn *then) {
    if (routes->args->given[FR_ARG_SLOTS])
        fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), then);
    else
        fr_http_exchange_refuse(exchange, 501, "this server was started without --slots");
}

static void get_slots(const fr_routes *routes, fr_http_exchange *exchange) {
    show(routes, exchange, list_slots);
}

static void list_rounds(fr_http_exchange *exchange, const fr_model_instance *model) {
    const char *after = fr_http_exchange_query(exchange, "after");
    fr_http_exchange_answer_json(exchange, 200,
                                 fr_scheduler_rounds(model->scheduler, after ? strtoull(after, NULL, 10) : 0));
}

static void get_rounds(const fr_routes *routes, fr_http_exchange *exchange) {
    show(routes, exchange, list_rounds);
}

/* Returns true if the text is a plain file name. A plain name can't lead out of the folder. */
static bool is_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length = strlen(name);
    return length && length < 128 && strspn(name, letters) == length && name[0] != '.' && name[0] != '-';
}

static bool slot_number(const char *path, size_t slots, size_t *slot) {
    const char *digits = path + strlen("/slots/");
    if (!*digits || strlen(digits) > 4 || digits[strspn(digits, "0123456789")]) return false;
    *slot = (size_t)strtoul(digits, NULL, 10);
    return *slot < slots;
}

/* Gives the path of a session's file in the folder of --slot-save-path. The body has the file's name. The caller frees
 * the path. NULL: the exchange was refused. */
static char *file_of(fr_http_exchange *exchange, const fr_model_instance *model) {
    const char *folder = model->args->text[FR_ARG_SLOT_SAVE_PATH];
    json_t *body = fr_json_body(exchange);
    const char *name = fr_job_plain_text(json_object_get(body, "filename"));
    char *path = NULL;
    if (!body) return NULL;
    if (!name || !is_name(name)) {
        fr_http_exchange_refuse(exchange, 400, "\"filename\" must be a name of letters, digits, '-', '_' and '.'");
    } else {
        size_t size = strlen(folder) + strlen(name) + 2;
        path = fr_resize(NULL, size, 1);
        snprintf(path, size, "%s/%s", folder, name);
    }
    json_decref(body);
    return path;
}

static void change_slot(fr_http_exchange *exchange, const fr_model_instance *model) {
    static const char *const actions[] = {"save", "restore", "erase"};
    const char *action = fr_http_exchange_query(exchange, "action");
    size_t slot, what = 0;
    if (refuse_encoder(exchange, model)) return;
    while (action && what < 3 && strcmp(actions[what], action) != 0) what++;
    if (!slot_number(fr_http_exchange_path(exchange), model->slots, &slot)) {
        fr_http_exchange_refuse(exchange, 400, "there are slots 0 to %zu", model->slots - 1);
    } else if (!action || what == 3) {
        fr_http_exchange_refuse(exchange, 400, "?action= must be save, restore or erase");
    } else if (what == FR_SLOT_ERASE) {
        fr_scheduler_add_errand(model->scheduler, exchange, FR_SLOT_ERASE, slot, NULL);
    } else {
        char *path = file_of(exchange, model);
        if (path) fr_scheduler_add_errand(model->scheduler, exchange, (fr_slot_errand)what, slot, path);
        free(path);
    }
}

static void post_slot(const fr_routes *routes, fr_http_exchange *exchange) {
    if (routes->args->given[FR_ARG_SLOT_SAVE_PATH])
        fr_models_with(routes->models, exchange, fr_http_exchange_query(exchange, "model"), change_slot);
    else
        fr_http_exchange_refuse(exchange, 501, "this server was started without --slot-save-path");
}

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Calls `then` with the model that the body names. If the server has only one model, the body is not parsed here. */
static void with_body(const fr_routes *routes, fr_http_exchange *exchange, fr_models_fn *then) {
    if (!routes->args->given[FR_ARG_MODELS]) {
        fr_models_with(routes->models, exchange, NULL, then);
        return;
    }
    json_t *body = fr_json_body(exchange);
    json_t *name = json_incref(json_object_get(body, "model"));
    if (body) fr_http_exchange_keep(exchange, body);
    if (name && !json_is_string(name))
        fr_http_exchange_refuse(exchange, 400, "\"model\" must be a text");
    else if (body)
        fr_models_with(routes->models, exchange, json_string_value(name), then);
    json_decref(name);
}

/* Adds the request to the scheduler's queue. If the request can't be run, answers with the reason. */
static void queue_request(fr_http_exchange *exchange, const fr_model_instance *model, fr_generation_request *request) {
    if (request->error[0]) {
        fr_answer_refuse(request);
        fr_generation_request_free(request);
    } else if (!fr_scheduler_add(model->scheduler, request)) {
        fr_http_exchange_set_header(exchange, "Retry-After", "1");
        fr_http_exchange_refuse(exchange, 503, "too many requests wait already");
        fr_generation_request_free(request);
    }
}

static void generate(fr_http_exchange *exchange, const fr_model_instance *model, fr_job_form form) {
    if (refuse_encoder(exchange, model)) return;
    json_t *body = fr_json_body(exchange);
    if (body) queue_request(exchange, model, fr_generation_request_read(exchange, &model->jobs, form, body));
}

static void answer_chat(fr_http_exchange *exchange, const fr_model_instance *model) {
    generate(exchange, model, FR_JOB_CHAT);
}

static void answer_completion(fr_http_exchange *exchange, const fr_model_instance *model) {
    generate(exchange, model, FR_JOB_COMPLETION);
}

static void answer_native(fr_http_exchange *exchange, const fr_model_instance *model) {
    generate(exchange, model, FR_JOB_NATIVE);
}

static void answer_infill(fr_http_exchange *exchange, const fr_model_instance *model) {
    char error[FR_INFILL_ERROR];
    if (refuse_encoder(exchange, model)) return;
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    if (fr_infill_read(fr_model_tokenizer(model->loaded.model), body, error)) {
        queue_request(exchange, model, fr_generation_request_read(exchange, &model->jobs, FR_JOB_NATIVE, body));
        return;
    }
    fr_http_exchange_refuse(exchange, 400, "%s", error);
    json_decref(body);
}

/* --------------------------------------------------------------------------------------------------------- dialects */

typedef json_t *read_fn(json_t *body, char error[FR_DIALECT_ERROR]);

/* Converts the exchange's body to the body of a chat. *body: the original body. NULL: the body can't be converted, and
 * the exchange was refused. */
static json_t *read_chat(fr_http_exchange *exchange, read_fn *read, json_t **body) {
    char error[FR_DIALECT_ERROR];
    *body = fr_json_body(exchange);
    json_t *chat = *body ? read(*body, error) : NULL;
    if (*body && !chat) {
        fr_http_exchange_refuse(exchange, 400, "%s", error);
        json_decref(*body);
    }
    return chat;
}

/* Starts a chat. If the converted body has no messages, starts a completion. Takes ownership of both bodies. */
static void queue_in_dialect(fr_http_exchange *exchange, const fr_model_instance *model, const fr_dialect *dialect,
                             json_t *body, json_t *chat) {
    fr_job_form form = json_object_get(chat, "messages") ? FR_JOB_CHAT : FR_JOB_COMPLETION;
    fr_generation_request *request = fr_generation_request_read(exchange, &model->jobs, form, chat);
    fr_answer_in(request, dialect, body);
    queue_request(exchange, model, request);
}

static void answer_in_dialect(fr_http_exchange *exchange, const fr_model_instance *model, const fr_dialect *dialect,
                              read_fn *read) {
    if (refuse_encoder(exchange, model)) return;
    json_t *body, *chat = read_chat(exchange, read, &body);
    if (chat) queue_in_dialect(exchange, model, dialect, body, chat);
}

/* Answers with the number of tokens of a request's prompt, {"input_tokens": N}. The number may be larger than the
 * context. object: the value of a member "object" of the answer; NULL: the answer has no such member. */
static void count_in(fr_http_exchange *exchange, const fr_model_instance *model, read_fn *read, const char *object) {
    fr_job_setting setting = model->jobs;
    if (refuse_encoder(exchange, model)) return;
    json_t *body, *chat = read_chat(exchange, read, &body);
    if (!chat) return;
    setting.context = 0;
    fr_generation_request *request = fr_generation_request_read(exchange, &setting, FR_JOB_CHAT, chat);
    if (request->error[0])
        fr_http_exchange_refuse(exchange, fr_fault_http(request->why), "%s", request->error);
    else
        fr_http_exchange_answer_json(exchange, 200,
                                     json_pack("{s:I, s:s*}", "input_tokens",
                                               (json_int_t)request->choices[0].job.prompt.count, "object", object));
    fr_generation_request_free(request);
    json_decref(body);
}

static void answer_response(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer_in_dialect(exchange, model, &fr_dialect_responses, fr_responses_read);
}

/* Gives the body unchanged, because it is the body of a chat already. */
static json_t *read_itself(json_t *body, char error[FR_DIALECT_ERROR]) {
    error[0] = '\0';
    return json_incref(body);
}

static void count_chat(fr_http_exchange *exchange, const fr_model_instance *model) {
    count_in(exchange, model, read_itself, "response.input_tokens");
}

static void count_response(fr_http_exchange *exchange, const fr_model_instance *model) {
    count_in(exchange, model, fr_responses_read, "response.input_tokens");
}

static void answer_message(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer_in_dialect(exchange, model, &fr_dialect_messages, fr_messages_read);
}

static void count_message(fr_http_exchange *exchange, const fr_model_instance *model) {
    count_in(exchange, model, fr_messages_read, NULL);
}

/* ----------------------------------------------------------------------------------------------------------- ollama */

static void answer_ollama_chat(fr_http_exchange *exchange, const fr_model_instance *model) {
    answer_in_dialect(exchange, model, &fr_dialect_ollama_chat, fr_ollama_read_chat);
}

/* Starts ollama's /api/generate. If the body has a suffix, the request asks to fill in code. */
static void answer_ollama_generate(fr_http_exchange *exchange, const fr_model_instance *model) {
    char error[FR_INFILL_ERROR];
    if (refuse_encoder(exchange, model)) return;
    json_t *body, *chat = read_chat(exchange, fr_ollama_read_generate, &body);
    bool fills = json_object_get(chat, "input_suffix") != NULL;
    if (fills && !fr_infill_read(fr_model_tokenizer(model->loaded.model), chat, error)) {
        fr_http_exchange_refuse(exchange, 400, "%s", error);
        json_decref(chat);
        json_decref(body);
    } else if (chat) {
        queue_in_dialect(exchange, model, &fr_dialect_ollama_generate, body, chat);
    }
}

static void get_ollama_version(const fr_routes *routes, fr_http_exchange *exchange) {
    (void)routes;
    fr_ollama_version(exchange);
}

static void get_ollama_tags(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_ollama_tags(exchange, routes->models);
}

static void get_ollama_loaded(const fr_routes *routes, fr_http_exchange *exchange) {
    fr_ollama_loaded(exchange, routes->models);
}

/* If a request has a prompt, calls `then`. A request without a prompt loads the model or removes it from memory. */
static void route_ollama(const fr_routes *routes, fr_http_exchange *exchange, fr_models_fn *then) {
    bool leaves;
    json_t *body = fr_json_body(exchange);
    if (!body) return;
    bool silent = fr_ollama_is_silent(fr_http_exchange_path(exchange), body, &leaves);
    if (silent && leaves) {
        fr_ollama_unload(exchange, routes->models, body);
        json_decref(body);
        return;
    }
    fr_http_exchange_keep(exchange, body);
    with_body(routes, exchange, silent ? fr_ollama_load : then);
}

static void post_ollama_chat(const fr_routes *routes, fr_http_exchange *exchange) {
    route_ollama(routes, exchange, answer_ollama_chat);
}

static void post_ollama_generate(const fr_routes *routes, fr_http_exchange *exchange) {
    route_ollama(routes, exchange, answer_ollama_generate);
}

/* ----------------------------------------------------------------------------------------------------------- routes */

static const struct route {
    const char *method, *path;
    route_fn *answer;   /* answers without a model; NULL: the member `then` answers */
    fr_models_fn *then; /* answers with the model that the request's body names */
} routes_table[] = {
    {"GET", "/", get_web_page, NULL},
    {"GET", FR_WEB_PAGE_FOLDER, get_web_page, NULL},
    {"GET", "/health", get_health, NULL},
    {"GET", "/v1/health", get_health, NULL},
    {"GET", "/v1/models", get_models, NULL},
    {"GET", "/models", get_models, NULL},
    {"GET", "/v1/models/", get_model, NULL},
    {"GET", "/models/", get_model, NULL},
    {"GET", "/metrics", get_metrics, NULL},
    {"GET", "/props", get_props, NULL},
    {"GET", "/tokenizer_info", get_tokenizer_info, NULL},
    {"GET", "/lora-adapters", get_adapters, NULL},
    {"POST", "/lora-adapters", post_adapters, NULL},
    {"GET", "/slots", get_slots, NULL},
    {"GET", "/rounds", get_rounds, NULL},
    {"POST", "/slots/", post_slot, NULL},
    {"POST", "/v1/chat/completions", NULL, answer_chat},
    {"POST", "/chat/completions", NULL, answer_chat},
    {"POST", "/v1/chat/completions/input_tokens", NULL, count_chat},
    {"POST", "/chat/completions/input_tokens", NULL, count_chat},
    {"POST", "/v1/completions", NULL, answer_completion},
    {"POST", "/completion", NULL, answer_native},
    {"POST", "/completions", NULL, answer_native},
    {"POST", "/api/chat", post_ollama_chat, NULL},
    {"POST", "/api/generate", post_ollama_generate, NULL},
    {"POST", "/api/embed", NULL, fr_embeddings_answer_ollama},
    {"POST", "/api/embeddings", NULL, fr_embeddings_answer_ollama_older},
    {"POST", "/api/show", NULL, fr_ollama_show},
    {"GET", "/api/tags", get_ollama_tags, NULL},
    {"GET", "/api/ps", get_ollama_loaded, NULL},
    {"GET", "/api/version", get_ollama_version, NULL},
    {"POST", "/tokenize", NULL, fr_text_routes_tokenize},
    {"POST", "/detokenize", NULL, fr_text_routes_detokenize},
    {"POST", "/apply-template", NULL, fr_text_routes_apply_template},
    {"POST", "/v1/responses", NULL, answer_response},
    {"POST", "/responses", NULL, answer_response},
    {"POST", "/v1/responses/input_tokens", NULL, count_response},
    {"POST", "/responses/input_tokens", NULL, count_response},
    {"POST", "/v1/messages", NULL, answer_message},
    {"POST", "/v1/messages/count_tokens", NULL, count_message},
    {"POST", "/v1/embeddings", NULL, fr_embeddings_answer},
    {"POST", "/embeddings", NULL, fr_embeddings_answer},
    {"POST", "/v1/rerank", NULL, fr_rerank_answer},
    {"POST", "/rerank", NULL, fr_rerank_answer},
    {"POST", "/v1/reranking", NULL, fr_rerank_answer},
    {"POST", "/reranking", NULL, fr_rerank_answer},
    {"POST", "/infill", NULL, answer_infill},
};

static bool fits(const struct route *route, const char *path) {
    size_t length = strlen(route->path);
    bool prefix = length > 1 && route->path[length - 1] == '/';
    return prefix ? strncmp(route->path, path, length) == 0 : strcmp(route->path, path) == 0;
}

void fr_routes_answer(void *context, fr_http_exchange *exchange) {
    const fr_routes *routes = context;
    const char *path = fr_http_exchange_path(exchange), *allowed = NULL;
    if (fr_lab_ranks_check() != FR_OK) { /* another rank has failed, so the server will end soon */
        fr_http_exchange_refuse(exchange, 503, "%s", fr_last_error());
        return;
    }
    for (size_t i = 0; i < sizeof routes_table / sizeof *routes_table; i++) {
        const struct route *route = &routes_table[i];
        if (!fits(route, path)) continue;
        allowed = route->method;
        if (strcmp(route->method, fr_http_exchange_method(exchange)) != 0) continue;
        if (route->answer)
            route->answer(routes, exchange);
        else
            with_body(routes, exchange, route->then);
        return;
    }
    if (allowed) fr_http_exchange_set_header(exchange, "Allow", allowed);
    if (allowed)
        fr_http_exchange_refuse(exchange, 405, "%.100s takes %s alone", path, allowed);
    else
        fr_http_exchange_refuse(exchange, 404, "there is nothing at %.100s", path);
}

bool fr_routes_open(const char *path) {
    return strcmp(path, "/health") == 0 || strcmp(path, "/v1/health") == 0 || fr_web_page_has(path);
}

/* Searches the body for these words without parsing it. If a word occurs in it by chance, a helper thread reads the
 * request, which does no harm. "\\u" is searched too, because an escaped letter could hide one of the words. */
bool fr_routes_slow(const char *body, size_t length) {
    static const char *const words[] = {
        "grammar", "schema", "regex", "format", "tool_choice", "guided_", "structured_outputs", "\\u"};
    for (size_t i = 0; body && i < sizeof words / sizeof *words; i++)
        if (memmem(body, length, words[i], strlen(words[i]))) return true;
    return false;
}
