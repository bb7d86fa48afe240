/* Tests that quantize merges LoRA adapters into the matrices that it writes. Logits and texts must be those of peft.
 * Tensors must be those of peft's merge_and_unload (tests/references/adapters.py). Scaled adapters must be added
 * before the matrix is converted to its type. An adapter that can't be merged must be refused. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "forerun_lab.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define ADAPTERS "tests/data/adapters/"
#define MODELS   "tests/data/models/"
#define DENSE    "tests/data/dense/"

static const struct {
    const char *adapter, *model;
} cases[] = {{"llama", MODELS "llama"},           {"qwen3", MODELS "qwen3-odd"},
             {"qwen3", DENSE "qwen3-odd.gguf"},   {"mistral-nemo", DENSE "mistral-nemo.gguf"},
             {"phi3", MODELS "phi3-window"},      {"gemma4", MODELS "gemma4-e-odd"},
             {"experts", MODELS "qwen3-moe-odd"}, {"gpt-neox", MODELS "gpt-neox-odd"},
             {"falcon", DENSE "falcon-40b.gguf"}, {"gpt2", MODELS "gpt2-odd"},
             {"glm4", MODELS "glm4-dense"},       {"deltanet", MODELS "qwen35-odd"}};

static char path[] = "/tmp/forerun-merge-XXXXXX";

static fr_status write_merged(const char *model, const char *type, const char *const *adapters, const double *scales,
                              size_t count, const char *to) {
    const fr_lab_quantization how = {
        .type = type, .pure = true, .adapters = adapters, .adapter_scales = scales, .adapter_count = count};
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    fr_status status = fr_lab_quantize(model, &how, NULL, out);
    fclose(out);
    return status;
}

static void make_path(void) {
    memset(path + sizeof path - 7, 'X', 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static fr_rows run(const char *model_path, const int32_t *ids, size_t count, const char *adapter_path, double scale) {
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    fr_adapter *adapter = NULL;
    require(fr_options_set(options, FR_OPT_THREADS, 1));
    require(fr_model_open(model_path, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    if (adapter_path) require(fr_adapter_open(adapter_path, model, &adapter));
    if (adapter) require(fr_session_set_adapters(session, (const fr_adapter *const *)&adapter, &scale, 1));
    fr_rows rows = {.capacity = count * (size_t)fr_model_fact(model, FR_FACT_VOCAB)};
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    require(fr_session_logits(session, ids, count, 0, fr_rows_collect, &rows));
    fr_session_close(session);
    fr_adapter_close(adapter);
    fr_model_close(model);
    fr_options_free(options);
    return rows;
}

START_TEST(the_logits_are_pefts) {
    char folder[128], file[160];
    const char *adapter = folder;
    size_t count;
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    snprintf(folder, sizeof folder, ADAPTERS "%s", cases[_i].adapter);
    make_path();
    require(write_merged(cases[_i].model, "f32", &adapter, (const double[]){1}, 1, path));
    snprintf(file, sizeof file, "%s/reference.json", folder);
    json_t *info = json_load_file(file, 0, NULL);
    int32_t *ids = fr_json_ids_of(json_object_get(info, "ids"), &count);
    snprintf(file, sizeof file, "%s/reference.safetensors", folder);
    require(fr_map_open(&map, file, true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    const fr_tensor *logits = fr_tensors_find(&tensors, "logits");
    fr_rows rows = run(path, ids, count, NULL, 0);
    ck_assert_uint_eq(rows.count * sizeof(float), logits->bytes);
    fr_rows_compare(rows.values, logits->data, rows.count);
    unlink(path);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    free(rows.values);
    free(ids);
    json_decref(info);
}
END_TEST

/* Only matrices whose rows keep their order in GGUF are compared. */
START_TEST(the_tensors_are_pefts) {
    static const char *const names[][2] = {{"blk.0.attn_v.weight", "v_proj"}, {"blk.0.ffn_down.weight", "down_proj"}};
    static const char *const adapter = ADAPTERS "llama";
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    fr_checkpoint merged;
    make_path();
    require(write_merged(MODELS "llama", "f32", &adapter, (const double[]){1}, 1, path));
    require(fr_map_open(&map, ADAPTERS "llama/merged.safetensors", true));
    require(fr_safetensors_read(&map, 0, &tensors, &unread));
    require(fr_checkpoint_open(&merged, path, true));
    for (size_t i = 0; i < 2; i++) {
        const fr_tensor *ours, *theirs = fr_tensors_find(&tensors, names[i][1]);
        require(fr_checkpoint_tensor(&merged, names[i][0], &ours));
        ck_assert_ptr_nonnull(theirs);
        ck_assert_uint_eq(theirs->shape[0], 16);
        ck_assert_uint_eq(ours->shape[1], theirs->shape[1]);
        const float *a = ours->data, *b = theirs->data;
        for (size_t v = 0; v < theirs->bytes / sizeof *a; v++)
            ck_assert_msg(fabsf(a[v] - b[v]) <= 2e-7F * (1 + fabsf(b[v])), "%s[%zu]: %.9g, not %.9g", names[i][0], v,
                          (double)a[v], (double)b[v]);
    }
    fr_checkpoint_close(&merged);
    unlink(path);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
}
END_TEST

static char *read_whole(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Compares the second halves of two files. These halves have only data of tensors. The keys are in the first halves,
 * and their order may differ. */
static void compare_tails(const char *first, const char *second) {
    size_t sizes[2];
    char *a = read_whole(first, &sizes[0]), *b = read_whole(second, &sizes[1]);
    size_t tail = sizes[0] / 2;
    ck_assert_int_eq(memcmp(a + sizes[0] - tail, b + sizes[1] - tail, tail), 0);
    free(a);
    free(b);
}

/* All adapters are added with their scales before the matrix is converted to its type. This is so even if the matrix
 * already has that type. */
START_TEST(the_type_comes_last) {
    static const char *const adapters[] = {ADAPTERS "llama", ADAPTERS "llama-other"};
    static const double scales[] = {0.5, -2};
    int32_t ids[40];
    char direct[64], again[64];
    for (int i = 0; i < 40; i++) ids[i] = (7 + 13 * i) % 150;
    make_path();
    require(write_merged(MODELS "llama", "f32", adapters, scales, 1, path));
    fr_rows merged = run(path, ids, 40, NULL, 0), added = run(MODELS "llama", ids, 40, adapters[0], scales[0]);
    fr_rows_compare(merged.values, added.values, merged.count);
    free(merged.values);
    require(write_merged(MODELS "llama", "f32", adapters, scales, 2, path));
    snprintf(direct, sizeof direct, "%s.q8_0", path);
    require(write_merged(MODELS "llama", "q8_0", adapters, scales, 2, direct));
    snprintf(again, sizeof again, "%s.again", path);
    require(write_merged(path, "q8_0", NULL, NULL, 0, again));
    compare_tails(direct, again);
    require(write_merged(MODELS "llama", "f32", NULL, NULL, 0, direct));
    require(write_merged(direct, "f32", adapters, scales, 2, again));
    merged = run(path, ids, 40, NULL, 0);
    fr_rows other = run(again, ids, 40, NULL, 0);
    fr_rows_compare(other.values, merged.values, merged.count);
    free(other.values);
    unlink(again);
    unlink(direct);
    unlink(path);
    free(merged.values);
    free(added.values);
}
END_TEST

START_TEST(what_can_not_be_merged_is_refused) {
    static const char *const llama = ADAPTERS "llama";
    make_path();
    ck_assert_int_eq(write_merged(MODELS "qwen3-odd", "f32", &llama, (const double[]){1}, 1, path), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "adapters/llama/adapter_model.safetensors: tensor"));
    ck_assert_int_eq(write_merged(MODELS "gemma4-e/assistant", "f32", &llama, (const double[]){1}, 1, path), FR_USAGE);
    /* If a model has no head of its own, it uses its embedding table as the head. Then an adapter of the head can't be
     * merged */
    char folder[] = "/tmp/forerun-adapter-XXXXXX", file[128], head[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    fr_checkpoint files;
    const fr_tensor *table;
    require(fr_checkpoint_open(&files, MODELS "qwen2-tied", true));
    require(fr_checkpoint_tensor(&files, "model.embed_tokens.weight", &table));
    size_t vocab = (size_t)table->shape[0], hidden = (size_t)table->shape[1];
    fr_checkpoint_close(&files);
    snprintf(head, sizeof head,
             "{\"lm_head.lora_A.weight\": {\"dtype\": \"F32\", \"shape\": [1, %zu], \"data_offsets\": [0, %zu]}, "
             "\"lm_head.lora_B.weight\": {\"dtype\": \"F32\", \"shape\": [%zu, 1], \"data_offsets\": [%zu, %zu]}}",
             hidden, 4 * hidden, vocab, 4 * hidden, 4 * (hidden + vocab));
    const char *const contents[][2] = {{"adapter_config.json", "{\"r\": 1}"}, {"adapter_model.safetensors", head}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t length = strlen(contents[i][1]);
        snprintf(file, sizeof file, "%s/%s", folder, contents[i][0]);
        FILE *out = fopen(file, "wb");
        if (i) fwrite(&length, sizeof length, 1, out);
        fputs(contents[i][1], out);
        for (size_t v = 0; i && v < hidden + vocab; v++) fwrite(&(float){1}, sizeof(float), 1, out);
        fclose(out);
    }
    const char *const tied = folder;
    ck_assert_int_eq(write_merged(MODELS "qwen2-tied", "f32", &tied, (const double[]){1}, 1, path), FR_UNBUILT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "embedding table"));
    require(write_merged(MODELS "qwen2-tied", "f32", &tied, (const double[]){0}, 1, path));
    for (size_t i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", folder, contents[i][0]);
        unlink(file);
    }
    rmdir(folder);
    unlink(path);
}
END_TEST

FR_SUITE("merge") {
    TCase *tests = tcase_create("merge");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_logits_are_pefts, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, the_tensors_are_pefts);
    tcase_add_test(tests, the_type_comes_last);
    tcase_add_test(tests, what_can_not_be_merged_is_refused);
    suite_add_tcase(suite, tests);
}
