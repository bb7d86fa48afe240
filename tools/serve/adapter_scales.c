/* Chooses the scales of a model's adapters: see adapter_scales.h. */
#include "tools/serve/adapter_scales.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_field.h"

enum { ERROR = 160 };

/* Guards the scales of all models' adapters (fr_loaded_adapters.scale). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fr_adapter_scales_copy(const fr_loaded_adapters *adapters, double scales[FR_LOADED_ADAPTERS_MAX]) {
    pthread_mutex_lock(&lock);
    memcpy(scales, adapters->scale, sizeof adapters->scale);
    pthread_mutex_unlock(&lock);
}

static bool refuse(char error[ERROR], const char *format, size_t index, size_t number) {
    snprintf(error, ERROR, format, index, number);
    return false;
}

/* Reads a list of scales. Adapters that the list does not name get the scale 0. If the list names an adapter twice, the
 * last scale is used. The control vectors of the command line stay in use. If the list is refused, returns false, and
 * `error` has the part of the error line that follows the list's name. */
static bool read_list(const json_t *list, const fr_loaded_adapters *loaded, double scales[FR_LOADED_ADAPTERS_MAX],
                      char error[ERROR]) {
    size_t adapters = loaded->count;
    memset(scales, 0, FR_LOADED_ADAPTERS_MAX * sizeof *scales);
    if (!json_is_array(list)) return refuse(error, "must be an array of {\"id\", \"scale\"}", 0, 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i), *id = json_object_get(one, "id");
        const json_t *scale = json_object_get(one, "scale");
        double value = scale ? json_number_value(scale) : 0;
        if (!fr_job_whole(id, 0, INT32_MAX)) return refuse(error, "[%zu] has no \"id\" that is a whole number", i, 0);
        if ((size_t)json_integer_value(id) >= adapters)
            return refuse(error, "[%zu]: there is no such adapter, the model has %zu (--lora)", i, adapters);
        if ((scale && !json_is_number(scale)) || !(fabs(value) <= 1e9))
            return refuse(error, "[%zu]: \"scale\" must be a number from -1e9 to 1e9", i, 0);
        scales[json_integer_value(id)] = value;
    }
    size_t used = fr_adapters_count_used(loaded, scales);
    return used <= FR_ADAPTERS_MAX ||
           refuse(error, "uses %zu adapters and control vectors, and a text can have %zu", used, FR_ADAPTERS_MAX);
}

bool fr_adapter_scales_take(fr_job *job, const char *key, const json_t *value) {
    char error[ERROR];
    double scales[FR_LOADED_ADAPTERS_MAX];
    if (!read_list(value, &job->setting->loaded->adapters, scales, error))
        return fr_job_refuse(job, FR_USAGE, "%s%s%s", key, *error == '[' ? "" : " ", error);
    if (json_array_size(value)) memcpy(job->adapter_scales, scales, sizeof scales);
    return true;
}

void fr_adapter_scales_list(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_loaded_adapters *adapters = &model->loaded.adapters;
    double scales[FR_LOADED_ADAPTERS_MAX];
    json_t *list = json_array();
    fr_adapter_scales_copy(adapters, scales);
    for (size_t i = 0; i < adapters->count; i++)
        json_array_append_new(list, json_pack("{s:I, s:o, s:f, s:s, s:s}", "id", (json_int_t)i, "path",
                                              fr_json_bytes(adapters->path[i], strlen(adapters->path[i])), "scale",
                                              scales[i], "task_name", "", "prompt_prefix", ""));
    fr_http_exchange_answer_json(exchange, 200, list);
}

void fr_adapter_scales_set(fr_http_exchange *exchange, const fr_model_instance *model) {
    fr_loaded_adapters *adapters = &model->jobs.loaded->adapters;
    double scales[FR_LOADED_ADAPTERS_MAX];
    char error[ERROR];
    size_t length;
    json_error_t parsed = {.text = ""};
    const char *bytes = fr_http_exchange_body(exchange, &length);
    json_t *body = fr_json_load(bytes, length, &parsed);
    if (!body) {
        fr_http_exchange_refuse(exchange, 400, "the body is no JSON: %.120s", parsed.text);
    } else if (!read_list(body, adapters, scales, error)) {
        fr_http_exchange_refuse(exchange, 400, "the body%s%s", *error == '[' ? "" : " ", error);
    } else {
        pthread_mutex_lock(&lock);
        memcpy(adapters->scale, scales, sizeof scales);
        pthread_mutex_unlock(&lock);
        fr_http_exchange_answer_json(exchange, 200, json_pack("{s:b}", "success", 1));
    }
    json_decref(body);
}
