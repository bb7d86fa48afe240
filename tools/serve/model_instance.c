/* Loads a model of a server, and removes it from memory (model_instance.h). */
#include "tools/serve/model_instance.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "forerun_lab_ranks.h"
#include "tools/cli/interrupt.h"
#include "tools/serve/content.h"
#include "tools/serve/settings.h"

enum { USUAL_PLACES = 4, USUAL_QUEUE = 1024, USUAL_PING = 30 };

/* ------------------------------------------------------------------------------------------------------ fingerprint */

typedef struct hashing {
    const char *path;
    char hash[FR_CONTENT_SIZE], error[256];
    bool done;
} hashing;

static void *run_hash(void *context) {
    hashing *h = context;
    h->done = fr_content_hash(h->path, h->hash, h->error, fr_interrupt_came, NULL);
    return NULL;
}

/* Adds a text to a hash by FNV-1a. An attacker could make two texts with the same hash, but would gain nothing by it
 * here. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static uint64_t hash_adapter(uint64_t hash, const fr_adapter *adapter, double by) {
    char scale[40];
    uint8_t digest[32];
    if (by == 0) return hash;
    fr_lab_adapter_digest(adapter, digest);
    for (size_t b = 0; b < sizeof digest; b++) hash = (hash ^ digest[b]) * 0x100000001b3u;
    snprintf(scale, sizeof scale, "%a", by);
    return hash_text(hash, scale);
}

/* Adds the command line's adapters and control vectors, with their scales, to a hash. */
static uint64_t hash_adapters(uint64_t hash, const fr_loaded_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) hash = hash_adapter(hash, adapters->opened[i], adapters->scale[i]);
    for (size_t i = 0; i < adapters->vectors; i++)
        hash = hash_adapter(hash, adapters->vector[i], adapters->vector_scale[i]);
    return hash;
}

static void put_type(char *word, size_t size, const fr_options *options, fr_option option) {
    size_t length;
    if (fr_options_get_text(options, option, word, size, &length) != FR_OK || !*word) snprintf(word, size, "auto");
}

/* Makes the fingerprint. It is a hash of everything that decides the text of a request with a seed, except the request
 * itself. The defaults of settings are included. Two servers with the same fingerprint give the same texts. */
static void put_fingerprint(fr_model_instance *instance, const char *hash) {
    char k[16], v[16];
    put_type(k, sizeof k, instance->loaded.options, FR_OPT_KV_K);
    put_type(v, sizeof v, instance->loaded.options, FR_OPT_KV_V);
    json_t *settings = fr_settings_of_options(instance->loaded.options);
    json_object_del(settings, "seed");
    char *line = fr_json_line(settings);
    uint64_t rest = hash_text(0xcbf29ce484222325u, line);
    rest = hash_text(rest, fr_chat_template_text(fr_model_tokenizer(instance->loaded.model), NULL));
    free(line);
    json_decref(settings);
    rest = hash_adapters(rest, &instance->loaded.adapters);
    snprintf(instance->fingerprint, sizeof instance->fingerprint, "fr%d-%.32s-%s-%s-%016llx", FR_NUMERICS_VERSION, hash,
             k, v, (unsigned long long)rest);
}

/* --------------------------------------------------------------------------------------------------------- settings */

static size_t slots_of(const fr_arguments *args) {
    return args->given[FR_ARG_PARALLEL] ? (size_t)args->number[FR_ARG_PARALLEL] : USUAL_PLACES;
}

/* Gives the number of bytes of the longest token. */
static size_t longest_token(const fr_tokenizer *tokenizer) {
    size_t longest = 0, count = tokenizer ? fr_tokenizer_count(tokenizer) : 0;
    for (size_t id = 0; id < count; id++) {
        size_t length = 0;
        fr_token_bytes(tokenizer, (int32_t)id, &length);
        if (length > longest) longest = length;
    }
    return longest;
}

/* Opens the embedder. If the model is a text encoder, it has no engine, and the embedder runs it alone. Otherwise the
 * embedder uses the model that generates text in the engine. */
static fr_status open_embedder(fr_model_instance *instance) {
    static const char *const words[] = {
        [FR_POOLING_NONE] = "", [FR_POOLING_MEAN] = "mean", [FR_POOLING_CLS] = "cls", [FR_POOLING_LAST] = "last"};
    const char *word = instance->args->text[FR_ARG_POOLING];
    fr_pooling pooling = FR_POOLING_NONE;
    for (int i = FR_POOLING_MEAN; word && i <= FR_POOLING_LAST; i++)
        if (strcmp(words[i], word) == 0) pooling = (fr_pooling)i;
    return fr_embedder_open(instance->loaded.model, instance->jobs.engine, instance->loaded.options, pooling,
                            &instance->embedder);
}

static int open_engine(fr_model_instance *instance) {
    fr_loaded *loaded = &instance->loaded;
    const fr_arguments *args = instance->args;
    instance->jobs =
        (fr_job_setting){.args = args, .loaded = loaded, .model = instance->name, .fingerprint = instance->fingerprint};
    if (fr_model_fact(loaded->model, FR_FACT_ENCODER) == 1) {
        fr_status opened = open_embedder(instance);
        instance->jobs.context = fr_embedder_fact_of(instance->embedder, FR_EMBEDDER_LIMIT);
        return fr_exit_status(opened);
    }
    int code = fr_loaded_open_drafter(loaded, args);
    if (code) return code;
    code = fr_loaded_sample(loaded, args);
    if (code) return code;
    fr_loaded_note_unused(loaded, args);
    instance->jobs.longest = longest_token(fr_model_tokenizer(loaded->model));
    instance->jobs.context = fr_loaded_context(loaded, args, 0, 0);
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, instance->jobs.context);
    if (status == FR_OK)
        status = fr_engine_open(loaded->model, loaded->drafter, loaded->options,
                                instance->slots + args->given[FR_ARG_EMBEDDINGS], &instance->jobs.engine);
    if (status == FR_OK && fr_rank_count() > 1 && fr_rank() == 0) status = fr_lab_engine_lead(instance->jobs.engine);
    if (status == FR_OK && args->given[FR_ARG_EMBEDDINGS]) status = open_embedder(instance);
    return fr_exit_status(status);
}

static void open_scheduler(fr_model_instance *instance, fr_metrics *metrics, void (*wake)(void *), void *context) {
    const fr_arguments *args = instance->args;
    const fr_scheduler_setting scheduler = {
        .slots = instance->slots,
        .queue = args->given[FR_ARG_MAX_QUEUE] ? (size_t)args->number[FR_ARG_MAX_QUEUE] : USUAL_QUEUE,
        .ping = args->given[FR_ARG_PING] ? (double)args->number[FR_ARG_PING] : USUAL_PING,
        .jobs = &instance->jobs,
        .metrics = metrics,
        .wake = wake,
        .context = context};
    instance->scheduler = fr_scheduler_open(&scheduler);
}

int fr_model_instance_load(fr_model_instance *instance, fr_metrics *metrics, void (*wake)(void *), void *context) {
    hashing hash = {.path = instance->path};
    pthread_t thread;
    const fr_arguments *args = instance->args;
    instance->slots = slots_of(args);
    bool apart = pthread_create(&thread, NULL, run_hash, &hash) == 0;
    int code = fr_loaded_open(&instance->loaded, args);
    if (!code) code = open_engine(instance);
    if (apart)
        pthread_join(thread, NULL);
    else
        run_hash(&hash);
    /* If hash.error is empty, hashing was stopped because the server was told to end. Then no error line is written. */
    if (!code && !hash.done) code = hash.error[0] ? fr_bad_input("%s", hash.error) : 1;
    if (code) {
        fr_model_instance_unload(instance);
        return code;
    }
    put_fingerprint(instance, hash.hash);
    instance->created = time(NULL);
    open_scheduler(instance, metrics, wake, context);
    return 0;
}

int fr_model_instance_follow(fr_model_instance *instance) {
    instance->slots = slots_of(instance->args);
    int code = fr_loaded_open(&instance->loaded, instance->args);
    if (!code) code = open_engine(instance);
    if (!code) code = fr_exit_status(fr_lab_engine_follow(instance->jobs.engine));
    fr_model_instance_unload(instance);
    return code;
}

void fr_model_instance_unload(fr_model_instance *instance) {
    fr_scheduler_close(instance->scheduler);
    fr_embedder_close(instance->embedder);
    fr_engine_close(instance->jobs.engine);
    fr_loaded_close(&instance->loaded);
    instance->scheduler = NULL;
    instance->embedder = NULL;
    instance->jobs = (fr_job_setting){0};
}

bool fr_model_instance_fits(const fr_model_instance *instance) {
    uint64_t bytes[FR_ESTIMATE_COUNT];
    fr_options *options = NULL;
    const fr_arguments *args = instance->args;
    if (fr_loaded_options(&options, args) != 0) return true;
    fr_status status = fr_model_estimate(instance->path, NULL, options, slots_of(args), bytes);
    fr_options_free(options);
    return status != FR_OK || bytes[FR_ESTIMATE_TOTAL] <= bytes[FR_ESTIMATE_AVAILABLE];
}
