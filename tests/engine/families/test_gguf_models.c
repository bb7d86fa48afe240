/* Tests Gemma 4 from GGUF files that other programs wrote; tests/data/gguf/make_fixtures.py names the programs. Logits,
 * ids and drafts must be those of the published folders. If the weights are the same, all bits must be the same.
 *
 * Damaged files are made by changing bytes of good files. */
/* suite: hostile */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/safetensors.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define GGUF   "tests/data/gguf/"
#define MODELS "tests/data/models/"

static const int32_t prompt[] = {2, 13, 45, 34, 34, 50, 43, 42, 46, 45, 50, 34, 32, 5, 7, 9, 11, 60, 22};
#define PROMPT (sizeof prompt / sizeof *prompt)
#define STEPS  4

static fr_model *open_model(const char *path) {
    fr_model *model;
    ck_assert_msg(fr_model_open(path, NULL, &model) == FR_OK, "%s", fr_last_error());
    return model;
}

/* Returns the logits after these ids. With a drafter, returns the logits of `steps` draft steps after the ids instead.
 * The caller frees the values. */
static fr_rows logits_of(const fr_model *model, const fr_drafter *drafter, const int32_t *ids, size_t count,
                         size_t steps) {
    fr_session *session;
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB), capacity = (steps ? steps : count) * vocab;
    fr_rows all = {malloc(capacity * sizeof(float)), 0, capacity};
    ck_assert_msg(fr_session_open(model, drafter, NULL, &session) == FR_OK, "%s", fr_last_error());
    fr_status status = steps ? fr_session_draft_logits(session, ids, count, steps, fr_rows_collect, &all)
                             : fr_session_logits(session, ids, count, 0, fr_rows_collect, &all);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    ck_assert_uint_eq(all.count, capacity);
    fr_session_close(session);
    return all;
}

/* ------------------------------------------------------------------------------------------------------- the target */

/* The model has experts, keys that are also the values, heads of two widths, and heads in which only 2 of 9 pairs
 * rotate. */
START_TEST(same_logits_as_the_folder) {
    fr_model *folder = open_model(MODELS "gemma4-moe-odd"), *file = open_model(GGUF "moe-odd.gguf");
    fr_rows expected = logits_of(folder, NULL, prompt, PROMPT, 0), got = logits_of(file, NULL, prompt, PROMPT, 0);
    fr_rows_expect_same(&got, &expected);
    for (fr_fact fact = FR_FACT_VOCAB; fact < FR_FACT_WEIGHT_BYTES; fact++)
        ck_assert_int_eq(fr_model_fact(file, fact), fr_model_fact(folder, fact));
    ck_assert_ptr_null(fr_model_note(file, 0));
    free(expected.values);
    free(got.values);
    fr_model_close(folder);
    fr_model_close(file);
}
END_TEST

static const float *reference_rows(const fr_tensors *tensors, const fr_map *map, const char *name, size_t *count) {
    const fr_tensor *tensor = fr_tensors_find(tensors, name);
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(fr_map_fill(map, 0, map->size), FR_OK);
    *count = tensor->bytes / sizeof(float);
    return tensor->data;
}

static size_t argmax(const float *row, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* Returns the difference between the largest and the second largest logit, divided by the row's range. */
static double margin(const float *row, size_t n) {
    size_t best = argmax(row, n);
    double second = -INFINITY, lowest = INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (i != best && row[i] > second) second = row[i];
        if (row[i] < lowest) lowest = row[i];
    }
    return (row[best] - second) / (row[best] - lowest);
}

/* The file has Q4_0 weights and a Q6_K embedding. The reference was computed with float activations, but the engine
 * quantizes activations to 8 bits. The measured mean difference is 0.11, and the logits have a range of about 40. If
 * the reference's best logit exceeds the next by more than 5% of the range, the best id must be the same. */
START_TEST(quantized_logits) {
    static const char *const names[] = {"prompt.0.logits", "prompt.2.logits", "prompt.3.logits"};
    fr_model *model = open_model(GGUF "e-q4_0.gguf");
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    json_t *info = fr_load_json(MODELS "gemma4-e/reference.json"), *prompts = json_object_get(info, "prompts");
    ck_assert_int_eq(fr_map_open(&map, GGUF "e-q4_0.reference.safetensors", true), FR_OK);
    ck_assert_int_eq(fr_safetensors_read(&map, 0, &tensors, &unread), FR_OK);
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB), values = 0;
    double sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t count, expected_count;
        int32_t *ids = fr_ids_of(json_array_get(prompts, (size_t)(names[i][7] - '0')), &count);
        const float *expected = reference_rows(&tensors, &map, names[i], &expected_count);
        fr_rows got = logits_of(model, NULL, ids, count, 0);
        ck_assert_uint_eq(got.count, expected_count);
        for (size_t v = 0; v < got.count; v++) sum += fabs((double)got.values[v] - (double)expected[v]);
        for (size_t r = 0; r < count; r++)
            if (margin(expected + r * vocab, vocab) > 0.05)
                ck_assert_uint_eq(argmax(got.values + r * vocab, vocab), argmax(expected + r * vocab, vocab));
        values += got.count;
        free(got.values);
        free(ids);
    }
    ck_assert_msg(sum / (double)values < 0.15, "mean difference %g", sum / (double)values);
    json_decref(info);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_model_close(model);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- the drafters */

static fr_drafter *open_drafter(const char *path, const fr_model *model) {
    fr_drafter *drafter;
    ck_assert_msg(fr_drafter_open(path, model, NULL, &drafter) == FR_OK, "%s", fr_last_error());
    return drafter;
}

/* The drafter scores only the ids of some clusters, which it finds with centroids. Two llama.cpp forks keep the
 * centroids in their files. One fork stores the ids in the order of their clusters. The other stores the inverse, a map
 * of ids to centroids. */
START_TEST(same_drafts_as_the_folder) {
    static const char *const names[] = {GGUF "atomic.gguf", GGUF "ik.gguf"};
    fr_model *model = open_model(GGUF "moe-odd.gguf");
    fr_drafter *folder = open_drafter(MODELS "gemma4-moe-odd/assistant", model), *file = open_drafter(names[_i], model);
    fr_rows expected = logits_of(model, folder, prompt, PROMPT, STEPS),
            got = logits_of(model, file, prompt, PROMPT, STEPS);
    fr_rows_expect_same(&got, &expected);
    if (_i == 0) {
        ck_assert_ptr_null(fr_drafter_note(file, 0));
    } else {
        ck_assert_ptr_nonnull(strstr(fr_drafter_note(file, 0), "has no rope_freqs.weight"));
        ck_assert_ptr_nonnull(strstr(fr_drafter_note(file, 1), "map of ids to centroids: inverted"));
        ck_assert_ptr_null(fr_drafter_note(file, 2));
    }
    free(expected.values);
    free(got.values);
    fr_drafter_close(folder);
    fr_drafter_close(file);
    fr_model_close(model);
}
END_TEST

/* llama.cpp's converter drops the centroids of the drafter's clusters, so every id is scored. The ids of the best
 * clusters must have the same scores as with centroids. */
START_TEST(full_head_without_centroids) {
    fr_model *model = open_model(MODELS "gemma4-moe-odd");
    fr_drafter *folder = open_drafter(MODELS "gemma4-moe-odd/assistant", model),
               *file = open_drafter(GGUF "moe-odd-assistant.gguf", model);
    fr_rows expected = logits_of(model, folder, prompt, PROMPT, 1), got = logits_of(model, file, prompt, PROMPT, 1);
    size_t scored = 0;
    for (size_t i = 0; i < got.count; i++) {
        ck_assert(isfinite(got.values[i]));
        if (!isfinite(expected.values[i])) continue;
        ck_assert(got.values[i] == expected.values[i]);
        scored++;
    }
    ck_assert_uint_gt(scored, 0);
    ck_assert_uint_lt(scored, got.count);
    ck_assert_ptr_nonnull(strstr(fr_drafter_note(file, 0), "has no centroid tensors"));
    free(expected.values);
    free(got.values);
    fr_drafter_close(folder);
    fr_drafter_close(file);
    fr_model_close(model);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- the tokenizer */

START_TEST(same_ids_as_the_reference) {
    static const char *const files[] = {"gemma/tokenizer_cases.json", "gemma/random_cases.json"};
    char path[96];
    fr_tokenizer *tokenizer;
    snprintf(path, sizeof path, TOKENIZERS "%s", files[_i]);
    ck_assert_msg(fr_tokenizer_open(GGUF "gemma-tokenizer.gguf", NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    json_t *root = fr_load_json(path);
    fr_check_encoding(tokenizer, json_object_get(root, "encode"), path);
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Three tokens end a text: the file's eos token, and two tokens that are recognized by their text. The chat template
 * must be the folder's. */
START_TEST(ends_and_chat) {
    const int32_t *ids;
    fr_marked_text text, expected;
    static const char messages[] = "[{\"role\": \"user\", \"content\": \"Hello\"}]";
    fr_model *file = open_model(GGUF "e-q4_0.gguf"), *folder = open_model(MODELS "gemma4-e");
    ck_assert_uint_eq(fr_model_eos(file, &ids), 3);
    ck_assert(ids[0] == 1 && ids[1] == 6 && ids[2] == 14);
    ck_assert_int_eq(fr_chat_render(fr_model_tokenizer(file), messages, NULL, &text), FR_OK);
    ck_assert_int_eq(fr_chat_render(fr_model_tokenizer(folder), messages, NULL, &expected), FR_OK);
    ck_assert_str_eq(text.text, expected.text);
    ck_assert_ptr_null(fr_chat_note(fr_model_tokenizer(file), true));
    fr_marked_text_free(&text);
    fr_marked_text_free(&expected);
    fr_model_close(file);
    fr_model_close(folder);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ wrong files */

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    uint8_t *bytes = malloc(*size + 1);
    ck_assert_ptr_nonnull(bytes);
    rewind(file);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

/* Overwrites bytes of the file. They begin `skip` bytes after the end of a text that occurs once. */
static void patch(uint8_t *bytes, size_t size, const char *text, size_t skip, const void *value, size_t length) {
    uint8_t *found = memmem(bytes, size, text, strlen(text));
    ck_assert_msg(found != NULL, "%s", text);
    memcpy(found + strlen(text) + skip, value, length);
}

typedef struct damage {
    /* text: what stands before the changed bytes, often a key; a key's type (4 bytes) follows it */
    const char *file, *text;
    size_t skip;
    const void *value;
    size_t length;
    const char *words;
} damage;

static const damage damages[] = {
    {"moe-odd.gguf", "gemma4.block_count", 4, &(uint32_t){0}, 4, "key gemma4.block_count is 0, not in 1 to 1024"},
    {"moe-odd.gguf", "gemma4.block_count", 4, &(uint32_t){6}, 4, "has 5 elements, expected 6"},
    {"moe-odd.gguf", "gemma4.block_coun", 0, "x", 1, "key gemma4.block_count is missing"},
    {"moe-odd.gguf", "gemma4.embedding_length", 4, &(uint32_t){81}, 4, "no table of 1 to 2^24 ids by 81 values"},
    {"moe-odd.gguf", "gemma4.expert_count", 4, &(uint32_t){4}, 4, "the configuration asks for [4, 80]"},
    {"moe-odd.gguf", "gemma4.expert_used_count", 4, &(uint32_t){9}, 4, "9 experts are chosen of 5"},
    {"moe-odd.gguf", "gemma4.attention.key_length", 4, &(uint32_t){20}, 4, "value_length: 18 is not built"},
    {"moe-odd.gguf", "gemma4.attention.layer_norm_rms_epsilon", 4, "\0\0\xc0\x7f", 4, "is nan, not in 0 to 1"},
    {"moe-odd.gguf", "gemma4.attention.sliding_window", 0, &(uint32_t){FR_GGUF_F32}, 4, "expected an integer"},
    {"moe-odd.gguf", "gemma4.attention.shared_kv_layers", 4, &(uint32_t){5}, 4, "this is a drafter"},
    {"moe-odd.gguf", "general.architecture", 12, "gemmaX", 6, "architecture \"gemmaX\" is not known"},
    {"moe-odd.gguf", "tokenizer.ggml.mode", 0, "x", 1, "key tokenizer.ggml.model is missing"},
    {"moe-odd.gguf", "tokenizer.ggml.model", 12, "gemma5", 6, "tokenizer.ggml.model \"gemma5\" is not built yet"},
    {"moe-odd.gguf", "tokenizer.ggml.add_space_prefix", 4, "\1", 1, "add_space_prefix is not built yet"},
    {"moe-odd.gguf", "blk.2.attn_q.weigh", 0, "x", 1, "tensor blk.2.attn_q.weight is missing"},
    {"moe-odd.gguf", "rope_freqs.weight", 12, &(uint32_t){26}, 4, "expected F32, F16 or BF16"},
    {"atomic.gguf", "gemma4_assistant.n_embd_backbone", 4, &(uint32_t){81}, 4, "it drafts for another model"},
    {"atomic.gguf", "gemma4_assistant.n_embd_backbon", 0, "x", 1,
     "key gemma4_assistant.embedding_length_out is missing"},
    {"atomic.gguf", "gemma4_assistant.centroid_top_k", 4, &(uint32_t){32}, 4, "is 32, not in 1 to 31"},
    {"atomic.gguf", "mtp.pre_projection.weigh", 0, "x", 1, "tensor nextn.pre_projection.weight is missing"},
    {"atomic.gguf", "mtp.token_ordering.weigh", 0, "x", 1, "tensor masked_embd_ordering is missing"},
    {"atomic.gguf", "tokenizer.ggml.bos_token_id", 4, &(uint32_t){3}, 4, "bos_token_id is 3, not the target's"},
    {"atomic.gguf", "tokenizer.ggml.eos_token_id", 4, &(uint32_t){3}, 4, "eos_token_id is 3, not the target's"},
    {"atomic.gguf", "general.architecture", 12, "gemma4_assistanT", 16, "is no drafter's that is known"},
};

/* Opens a damaged target alone, or a damaged drafter with a good target. Opening must fail, and the error line must
 * contain the expected words. */
START_TEST(wrong_files) {
    const damage *d = &damages[_i];
    char path[64] = "/tmp/test_gguf_models_XXXXXX", source[64];
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    size_t size;
    snprintf(source, sizeof source, GGUF "%s", d->file);
    uint8_t *bytes = read_file(source, &size);
    patch(bytes, size, d->text, d->skip, d->value, d->length);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    free(bytes);
    bool target = strcmp(d->file, "moe-odd.gguf") == 0;
    fr_model *model = target ? NULL : open_model(GGUF "moe-odd.gguf");
    fr_drafter *drafter = NULL;
    bool advice = !target && strcmp(d->text, "general.architecture") != 0;
    fr_status status = target ? fr_model_open(path, NULL, &model) : fr_drafter_open(path, model, NULL, &drafter);
    unlink(path);
    fr_status wanted = strstr(fr_last_error(), "not built") ? FR_UNBUILT : FR_INPUT;
    ck_assert_msg(status == wanted, "status %d where \"%s\" was expected", status, d->words);
    ck_assert_msg(strstr(fr_last_error(), d->words), "\"%s\" is not in \"%s\"", d->words, fr_last_error());
    ck_assert(!advice || strstr(fr_last_error(), "Take the assistant published for this target"));
    fr_model_close(model);
}
END_TEST

/* A special token of a drafter may have no id. The drafter's vocabulary must still be accepted as the target's. */
START_TEST(drafter_without_begin) {
    char path[64] = "/tmp/test_gguf_models_XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    size_t size;
    uint8_t *bytes = read_file(GGUF "atomic.gguf", &size);
    patch(bytes, size, "tokenizer.ggml.bos_token_id", 4, &(uint32_t){UINT32_MAX}, 4);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    free(bytes);
    fr_model *model = open_model(GGUF "moe-odd.gguf");
    fr_drafter *drafter;
    fr_status status = fr_drafter_open(path, model, NULL, &drafter);
    unlink(path);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    ck_assert_ptr_nonnull(fr_drafter_note(drafter, 0));
    ck_assert_ptr_nonnull(strstr(fr_drafter_note(drafter, 0), "bos_token_id is 4294967295, which no token has"));
    fr_drafter_close(drafter);
    fr_model_close(model);
}
END_TEST

/* Three mistakes are refused: a drafter with another vocabulary, a drafter given as a target, and a target given as a
 * drafter. */
START_TEST(wrong_roles) {
    fr_model *model = open_model(MODELS "gemma4-e"), *none;
    fr_drafter *drafter;
    ck_assert_int_eq(fr_drafter_open(GGUF "atomic.gguf", model, NULL, &drafter), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "it drafts for another model"));
    ck_assert_int_eq(fr_model_open(GGUF "ik.gguf", NULL, &none), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "is a drafter (gemma4_mtp), which is opened for its target"));
    fr_model_close(model);
}
END_TEST

/* Damages the table that assigns a drafter's ids to clusters. In one file the table is no longer a permutation of the
 * ids, in the other no longer a map from ids to centroids. Both must be refused. */
START_TEST(wrong_orderings) {
    static const char *const names[] = {"mtp.token_ordering.weight", "mtp_token_ordering.weight"};
    static const char *const files[] = {GGUF "atomic.gguf", GGUF "ik.gguf"};
    fr_checkpoint checkpoint;
    const fr_tensor *ordering;
    char path[64] = "/tmp/test_gguf_models_XXXXXX";
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, files[_i], true), FR_OK);
    ck_assert_int_eq(fr_checkpoint_tensor(&checkpoint, names[_i], &ordering), FR_OK);
    size_t at = (size_t)((const uint8_t *)ordering->data - checkpoint.files[0].bytes), size;
    fr_checkpoint_close(&checkpoint);
    uint8_t *bytes = read_file(files[_i], &size);
    int32_t first, last;
    memcpy(&first, bytes + at, sizeof first);
    memcpy(&last, bytes + at + 4 * 402, sizeof last);
    ck_assert_int_ne(first, last);
    memcpy(bytes + at, &last, sizeof last); /* now one id occurs twice, or one centroid has too many ids */
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    free(bytes);
    fr_model *model = open_model(GGUF "moe-odd.gguf");
    fr_drafter *drafter;
    ck_assert_int_eq(fr_drafter_open(path, model, NULL, &drafter), FR_INPUT);
    unlink(path);
    ck_assert_msg(strstr(fr_last_error(), "is no permutation of the 403 ids, and no map of them to their centroids"),
                  "%s", fr_last_error());
    fr_model_close(model);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- descriptions */

static void expect_description(const char *path, const char *target, const char *words) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fr_lab_inspection how = {.target = target};
    ck_assert_msg(fr_lab_inspect(path, &how, NULL, out) == FR_OK, "%s", fr_last_error());
    fclose(out);
    ck_assert_msg(strstr(text, words), "\"%s\" is not in\n%s", words, text);
    free(text);
}

START_TEST(descriptions) {
    expect_description(GGUF "moe-odd.gguf", NULL, "architecture   gemma4\n");
    expect_description(GGUF "e-q4_0.gguf", NULL, "32 Q4_0, 2 Q6_K");
    expect_description(GGUF "moe-odd-assistant.gguf", NULL,
                       "note           " GGUF "moe-odd-assistant.gguf has no centroid");
    expect_description(GGUF "atomic.gguf", MODELS "gemma4-moe-odd", "31 centroids of 13 ids, the best 3 scored");
}
END_TEST

/* Four models in types of few bits. tests/references/low_bits.py wrote two of the files: one with every type of up to 3
 * bits and with NVFP4 tensors that have a scale, and one with NVFP4 experts that have a scale each. rotated.py wrote a
 * file with rotated weights, some in PrismML's types, and a folder in MLX's form. The references were computed with
 * float activations, but the engine quantizes activations to 8 bits. */
static const struct {
    const char *model, *reference;
    double apart; /* the largest allowed mean difference, divided by the row's range */
} low_bits[] = {
    {GGUF "low-bits.gguf", GGUF "low-bits.reference.safetensors", 0.01},
    {GGUF "rotated.gguf", GGUF "rotated.reference.safetensors", 0.01},
    {"tests/data/rotated-mlx", "tests/data/rotated-mlx/reference.safetensors", 0.01},
    {GGUF "nvfp4-experts.gguf", GGUF "nvfp4-experts.reference.safetensors", 0.01},
};

START_TEST(logits_of_low_bits) {
    fr_model *model = open_model(low_bits[_i].model);
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    ck_assert_int_eq(fr_map_open(&map, low_bits[_i].reference, true), FR_OK);
    ck_assert_int_eq(fr_safetensors_read(&map, 0, &tensors, &unread), FR_OK);
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB), ids, values;
    const int32_t *prompt_ids = (const int32_t *)(const void *)reference_rows(&tensors, &map, "ids", &ids);
    const float *expected = reference_rows(&tensors, &map, "logits", &values);
    fr_rows got = logits_of(model, NULL, prompt_ids, ids, 0);
    double sum = 0, spread = 0;
    ck_assert_uint_eq(got.count, values);
    for (size_t v = 0; v < values; v++) sum += fabs((double)got.values[v] - (double)expected[v]);
    for (size_t r = 0; r < ids; r++) {
        const float *row = expected + r * vocab;
        size_t best = argmax(row, vocab);
        float lowest = row[0];
        for (size_t v = 0; v < vocab; v++) lowest = row[v] < lowest ? row[v] : lowest;
        spread += (double)(row[best] - lowest) / (double)ids;
        if (margin(row, vocab) > 0.05) ck_assert_uint_eq(argmax(got.values + r * vocab, vocab), best);
    }
    ck_assert_msg(sum / (double)values < low_bits[_i].apart * spread, "%g of %g", sum / (double)values, spread);
    free(got.values);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_model_close(model);
}
END_TEST

/* This file stores rotated float16 weights, also in the embedding table. It also groups the heads of DeltaNet's
 * outputs. transformers computed the expected logits from the folder, whose weights are not rotated. */
START_TEST(logits_of_a_rotated_hybrid) {
    fr_model *model = open_model(GGUF "rotated-qwen35.gguf");
    fr_map map;
    fr_tensors tensors = {0}, unread = {0};
    json_t *info = fr_load_json(MODELS "qwen35-odd/reference.json"), *prompts = json_object_get(info, "prompts");
    ck_assert_int_eq(fr_map_open(&map, MODELS "qwen35-odd/reference.safetensors", true), FR_OK);
    ck_assert_int_eq(fr_safetensors_read(&map, 0, &tensors, &unread), FR_OK);
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB), count, expected_count;
    int32_t *ids = fr_ids_of(json_array_get(prompts, 3), &count);
    const float *expected = reference_rows(&tensors, &map, "prompt.3.logits", &expected_count);
    fr_rows got = logits_of(model, NULL, ids, count, 0);
    double sum = 0, spread = 0;
    ck_assert_uint_eq(got.count, expected_count);
    for (size_t v = 0; v < got.count; v++) {
        sum += fabs((double)got.values[v] - (double)expected[v]);
        spread = fmax(spread, fabs((double)expected[v]));
    }
    ck_assert_msg(sum / (double)got.count < 0.001 * spread, "%g of %g", sum / (double)got.count, spread);
    for (size_t r = 0; r < count; r++)
        if (margin(expected + r * vocab, vocab) > 0.01)
            ck_assert_uint_eq(argmax(got.values + r * vocab, vocab), argmax(expected + r * vocab, vocab));
    free(got.values);
    free(ids);
    json_decref(info);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    fr_model_close(model);
}
END_TEST

/* Invalid scales of NVFP4 weights. Some are scales of a stack of 5 experts, the others of a single matrix. */
static const struct {
    const char *file, *tensor;
    uint64_t shape; /* 0: not changed */
    uint32_t type;  /* 0: F32 */
    size_t at;      /* index of the value to change */
    float value;    /* 0: not changed */
    const char *words;
} wrong_scales[] = {
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_up_exps.scale", 4, 0, 0, 0,
     "tensor blk.0.ffn_up_exps.scale has shape [4], the configuration asks for [5]"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_up_exps.scale", 1, 0, 0, 0, "has shape [1], the configuration asks for [5]"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_gate_exps.input_scale", 3, 0, 0, 0,
     "tensor blk.0.ffn_gate_exps.input_scale has shape [3], the configuration asks for [5]"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_up_exps.scale", 0, 26, 0, 0,
     "tensor blk.0.ffn_up_exps.scale has type I32, expected F32, F16 or BF16"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_up_exps.scale", 0, 0, 4, -1.0f,
     "tensor blk.0.ffn_up_exps.scale is -1, which is no scale"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_gate_exps.scale", 0, 0, 3, INFINITY,
     "tensor blk.0.ffn_gate_exps.scale is inf, which is no scale"},
    {GGUF "nvfp4-experts.gguf", "blk.0.ffn_gate_exps.scale", 0, 0, 0, NAN,
     "tensor blk.0.ffn_gate_exps.scale is nan, which is no scale"},
    {GGUF "low-bits.gguf", "blk.1.ffn_down.scale", 2, 0, 0, 0,
     "tensor blk.1.ffn_down.scale has shape [2], the configuration asks for [1]"},
    {GGUF "low-bits.gguf", "blk.1.ffn_down.scale", 0, 0, 0, -0.5f,
     "tensor blk.1.ffn_down.scale is -0.5, which is no scale"},
};

START_TEST(wrong_scales_of_nvfp4) {
    char path[64] = "/tmp/test_gguf_models_XXXXXX";
    fr_checkpoint checkpoint;
    const fr_tensor *scale;
    fr_model *model;
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, wrong_scales[_i].file, true), FR_OK);
    ck_assert_int_eq(fr_checkpoint_tensor(&checkpoint, wrong_scales[_i].tensor, &scale), FR_OK);
    size_t at = (size_t)((const uint8_t *)scale->data - checkpoint.files[0].bytes), size;
    fr_checkpoint_close(&checkpoint);
    uint8_t *bytes = read_file(wrong_scales[_i].file, &size);
    if (wrong_scales[_i].shape) patch(bytes, size, wrong_scales[_i].tensor, 4, &wrong_scales[_i].shape, 8);
    if (wrong_scales[_i].type) patch(bytes, size, wrong_scales[_i].tensor, 12, &wrong_scales[_i].type, 4);
    if (wrong_scales[_i].value != 0)
        memcpy(bytes + at + wrong_scales[_i].at * sizeof(float), &wrong_scales[_i].value, sizeof(float));
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    close(file);
    free(bytes);
    ck_assert_int_eq(fr_model_open(path, NULL, &model), FR_INPUT);
    unlink(path);
    ck_assert_msg(strstr(fr_last_error(), wrong_scales[_i].words), "%s", fr_last_error());
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
}
END_TEST

FR_SUITE("gguf_models") {
    TCase *tests = tcase_create("gguf_models");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, same_logits_as_the_folder);
    tcase_add_test(tests, quantized_logits);
    tcase_add_loop_test(tests, same_drafts_as_the_folder, 0, 2);
    tcase_add_test(tests, full_head_without_centroids);
    tcase_add_loop_test(tests, same_ids_as_the_reference, 0, 2);
    tcase_add_test(tests, ends_and_chat);
    tcase_add_loop_test(tests, wrong_files, 0, sizeof damages / sizeof *damages);
    tcase_add_test(tests, drafter_without_begin);
    tcase_add_test(tests, wrong_roles);
    tcase_add_loop_test(tests, wrong_orderings, 0, 2);
    tcase_add_test(tests, descriptions);
    tcase_add_loop_test(tests, logits_of_low_bits, 0, sizeof low_bits / sizeof *low_bits);
    tcase_add_test(tests, logits_of_a_rotated_hybrid);
    tcase_add_loop_test(tests, wrong_scales_of_nvfp4, 0, sizeof wrong_scales / sizeof *wrong_scales);
    suite_add_tcase(suite, tests);
}
