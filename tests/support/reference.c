/* Implements reference.h: opens reference fixtures for suites. */
#include "tests/support/reference.h"

#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_place.h"
#include "formats/safetensors.h"

static const char *const names[] = {"gemma4-e",          "gemma4-dense",     "gemma4-moe",
                                    "gemma4-e-odd",      "gemma4-e-layers",  "gemma4-dense-odd",
                                    "gemma4-moe-odd",    "../glm-ocr",       "glm-ocr-odd",
                                    "../deepseek-v3",    "glm4-moe-odd",     "glm4-moe-own",
                                    "glm4-moe-fp8",      "qwen35-odd",       "qwen35-tied",
                                    "qwen35-moe-odd",    "qwen35-moe-tied",  "qwen35-fp8",
                                    "deepseek-v3-odd",   "deepseek-v3-own",  "deepseek-v3-fp8",
                                    "glm-4.7-flash-odd", "glm4-moe-dense",   "qwen3-next-odd",
                                    "ling-odd",          "ling3-odd",        "nemotron-3-mtp",
                                    "deepseek-v3.2-mtp", "exaone-moe-mtp",   "mellum-mtp",
                                    "mellum-mtp-dense",  "ernie4.5-moe-mtp", NULL};

static const char *const alone[] = {"llama",         "llama-odd",       "llama-fp8",        "qwen3-moe-odd",
                                    "qwen3-moe-raw", "qwen3-moe-dense", "qwen3-next-dense", NULL};

/* Models of test_dense.c that have a feature which other models lack: windows, one norm for both parts of a layer, or a
 * convolution. */
static const char *const dense[] = {"olmo3-yarn", "exaone4-window", "cohere2-window", "lfm2-long", NULL};

const char *fr_reference_name(size_t index) {
    return names[index];
}

const char *fr_reference_long(size_t index) {
    size_t drafted = sizeof names / sizeof *names - 1;
    return index < drafted ? names[index] : dense[index - drafted];
}

const char *fr_reference_alone(size_t index) {
    return alone[index];
}

void fr_reference_open(fr_reference *r, const char *name, const fr_options *options) {
    char path[320];
    *r = (fr_reference){0};
    snprintf(r->folder, sizeof r->folder, FR_TEST_MODELS "%s", name);
    snprintf(r->assistant, sizeof r->assistant, FR_TEST_MODELS "%s/assistant", name);
    snprintf(path, sizeof path, "%s/reference.json", r->folder);
    ck_assert_msg(fr_json_read(path, 1 << 24, &r->info) == FR_OK, "%s", fr_last_error());
    snprintf(path, sizeof path, "%s/reference.safetensors", r->folder);
    ck_assert_msg(fr_map_open(&r->map, path, true) == FR_OK, "%s", fr_last_error());
    fr_tensors unread = {0};
    ck_assert_msg(fr_safetensors_read(&r->map, 0, &r->tensors, &unread) == FR_OK, "%s", fr_last_error());
    fr_tensors_free(&unread);
    ck_assert_msg(fr_model_open(r->folder, options, &r->model) == FR_OK, "%s", fr_last_error());
    bool own = fr_model_fact(r->model, FR_FACT_MTP_LAYERS) > 0;
    const char *drafter = own ? NULL : r->assistant;
    if (!own && !fr_file_exists(drafter)) return;
    ck_assert_msg(fr_drafter_open(drafter, r->model, options, &r->drafter) == FR_OK, "%s", fr_last_error());
}

void fr_reference_close(fr_reference *r) {
    fr_drafter_close(r->drafter);
    fr_model_close(r->model);
    fr_tensors_free(&r->tensors);
    fr_map_close(&r->map);
    json_decref(r->info);
}

bool fr_reference_sees(const fr_reference *r, size_t prompt) {
    const json_t *image = json_object_get(r->info, "image");
    return image && (size_t)json_integer_value(json_object_get(image, "prompt")) == prompt;
}

const float *fr_reference_floats(const fr_reference *r, size_t *count, const char *format, ...) {
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const fr_tensor *tensor = fr_tensors_find(&r->tensors, name);
    ck_assert_msg(tensor && tensor->type == FR_F32, "%s has no float32 tensor %s", r->folder, name);
    *count = tensor->bytes / sizeof(float);
    return tensor->data;
}

/* Returns the config.json of a fixture with some members changed. */
static json_t *changed_config(const char *name, const char *changes) {
    char path[320];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/config.json", name);
    json_t *config = json_load_file(path, 0, NULL), *change = json_loads(changes, 0, NULL), *value;
    const char *key;
    void *next;
    ck_assert(config && change);
    json_object_foreach_safe(change, next, key, value) {
        if (json_is_null(value))
            json_object_del(config, key);
        else
            json_object_set(config, key, value);
    }
    json_decref(change);
    return config;
}

fr_status fr_reference_open_changed(const char *name, const char *changes, const char *folder) {
    char path[320], whole[PATH_MAX];
    fr_model *model;
    json_t *config = changed_config(name, changes);
    snprintf(path, sizeof path, "%s/config.json", folder);
    ck_assert_int_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/model.safetensors", name);
    ck_assert_ptr_nonnull(realpath(path, whole));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    ck_assert_int_eq(symlink(whole, path), 0);
    fr_status status = fr_model_open(folder, NULL, &model);
    if (status == FR_OK) fr_model_close(model);
    return status;
}

int32_t *fr_json_ids_of(const json_t *array, size_t *count) {
    *count = json_array_size(array);
    int32_t *ids = malloc((*count + 1) * sizeof *ids);
    for (size_t i = 0; i < *count; i++) ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

fr_status fr_rows_collect(void *rows, const float *logits, size_t count, size_t vocab) {
    fr_rows *all = rows;
    ck_assert_uint_le(all->count + count * vocab, all->capacity);
    memcpy(all->values + all->count, logits, count * vocab * sizeof *logits);
    all->count += count * vocab;
    return FR_OK;
}

void fr_rows_expect_same(const fr_rows *got, const fr_rows *expected) {
    ck_assert_uint_eq(got->count, expected->count);
    ck_assert_mem_eq(got->values, expected->values, expected->count * sizeof(float));
}

void fr_rows_compare(const float *got, const float *expected, size_t count) {
    float scale = 0;
    for (size_t i = 0; i < count; i++) scale = fmaxf(scale, fabsf(expected[i]));
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(fabsf(got[i] - expected[i]) <= 5e-5f * scale, "logit %zu is %g, not %g", i, (double)got[i],
                      (double)expected[i]);
}
