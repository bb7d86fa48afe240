/* Tests that packed files give the same logits as unpacked files. The number of rows of the targets' matrices is not a
 * multiple of the number of rows of a tile. The assistants have a head that is packed in the order of its clusters.
 *
 * The library's own quantizer and packer make the models. The draft logits of an assistant with clusters are compared
 * with the logits of the same weights in a file that declares no clusters. */
/* suite: quick hostile threads */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "formats/checkpoint.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define TARGET    FR_TEST_MODELS "gemma4-e"
#define ASSISTANT TARGET "/assistant"
#define CLUSTERED "gemma4_assistant.use_ordered_embeddings"
#define SORTED    "forerun.sorted_tensor"
#define STEPS     4

static const char *const types[] = {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl"};
static const int32_t prompt[] = {2, 13, 45, 34, 34, 50, 43, 42, 46, 45, 50, 34, 32, 5, 7, 9, 11, 60, 22};
#define PROMPT (sizeof prompt / sizeof *prompt)

static char folder[64], plain[128], packed[128], whole[128];

static void setup(void) {
    snprintf(folder, sizeof folder, "/tmp/test_packed_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(plain, sizeof plain, "%s/plain.gguf", folder);
    snprintf(packed, sizeof packed, "%s/packed.gguf", folder);
    snprintf(whole, sizeof whole, "%s/whole.gguf", folder);
}

static void teardown(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static uint8_t *read_bytes(const char *path, size_t *size) {
    char *bytes;
    ck_assert_msg(fr_read_text(path, (size_t)1 << 28, &bytes, size) == FR_OK, "%s", fr_last_error());
    return (uint8_t *)bytes;
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *out = fopen(path, "wb");
    ck_assert(out && fwrite(bytes, 1, size, out) == size && fclose(out) == 0);
}

/* Returns the address of the byte that is `distance` bytes after the end of `text` in the file. The file must contain
 * the text exactly once. */
static uint8_t *behind(uint8_t *bytes, size_t size, const char *text, size_t distance) {
    uint8_t *at = memmem(bytes, size, text, strlen(text));
    ck_assert_ptr_nonnull(at);
    return at + strlen(text) + distance;
}

/* Copies the drafter to a file that declares no clusters. Then the drafter's head scores every id. */
static void write_whole(const char *from, const char *to) {
    size_t size;
    uint8_t *bytes = read_bytes(from, &size), *flag = behind(bytes, size, CLUSTERED, 4);
    ck_assert_int_eq(*flag, 1);
    *flag = 0;
    write_bytes(to, bytes, size);
    free(bytes);
}

static size_t offset_of(const json_t *tensor, size_t i) {
    return (size_t)json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), i));
}

/* Writes the assistant with twice as many clusters. Each centroid occurs twice, so a cluster has 8 ids, which is half a
 * tile. */
static void write_finer(const char *to) {
    char path[192], command[512];
    size_t size;
    snprintf(command, sizeof command, "cp -r %s/. '%s'", ASSISTANT, to);
    ck_assert_int_eq(system(command), 0);
    snprintf(path, sizeof path, "%s/config.json", to);
    json_t *config = json_load_file(path, 0, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(config, "num_centroids")), 32);
    json_object_set_new(config, "num_centroids", json_integer(64));
    ck_assert_int_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(path, sizeof path, "%s/model.safetensors", to);
    uint8_t *bytes = read_bytes(path, &size);
    uint64_t length;
    memcpy(&length, bytes, sizeof length);
    json_t *header = json_loadb((char *)bytes + 8, length, 0, NULL);
    json_t *table = json_object_get(header, "masked_embedding.centroids.weight"), *tensor;
    size_t begin = offset_of(table, 0), end = offset_of(table, 1), row = (end - begin) / 32;
    const char *name;
    json_object_foreach (header, name, tensor)
        for (size_t i = 0; i < 2; i++)
            if (offset_of(tensor, i) > begin)
                json_array_set_new(json_object_get(tensor, "data_offsets"), i,
                                   json_integer((json_int_t)(offset_of(tensor, i) + end - begin)));
    json_array_set_new(json_object_get(table, "shape"), 0, json_integer(64));
    char *text = json_dumps(header, JSON_COMPACT);
    FILE *out = fopen(path, "wb");
    uint64_t text_length = strlen(text);
    const uint8_t *data = bytes + 8 + length;
    ck_assert(out && fwrite(&text_length, 8, 1, out) == 1 && fwrite(text, 1, text_length, out) == text_length);
    ck_assert_uint_eq(fwrite(data, 1, begin, out), begin);
    for (size_t r = 0; r < 64; r++) ck_assert_uint_eq(fwrite(data + begin + r / 2 * row, 1, row, out), row);
    size_t rest = size - 8 - length - end;
    ck_assert_uint_eq(fwrite(data + end, 1, rest, out), rest);
    ck_assert_int_eq(fclose(out), 0);
    json_decref(header);
    free(text);
    free(bytes);
}

static void quantize(const char *from, const char *type, const char *to) {
    fr_lab_quantization how = {.type = type, .pure = true};
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(fr_lab_quantize(from, &how, NULL, out) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fclose(out), 0);
}

static void pack(const char *from, const char *to) {
    FILE *out = fopen(to, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_msg(fr_lab_pack(from, NULL, out) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fclose(out), 0);
}

static fr_options *options_of(bool mapped, int threads) {
    fr_options *options = fr_options_new();
    fr_options_set(options, FR_OPT_THREADS, threads);
    fr_options_set(options, FR_OPT_MMAP, mapped);
    return options;
}

/* Returns the logits of STEPS drafts after the prompt. Without a drafter, returns the logits of the prompt. */
static fr_rows logits_of(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    fr_session *session;
    size_t count = (drafter ? STEPS : PROMPT) * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows all = {malloc(count * sizeof(float)), 0, count};
    ck_assert_msg(fr_session_open(model, drafter, options, &session) == FR_OK, "%s", fr_last_error());
    fr_status status = drafter ? fr_session_draft_logits(session, prompt, PROMPT, STEPS, fr_rows_collect, &all)
                               : fr_session_logits(session, prompt, PROMPT, 0, fr_rows_collect, &all);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    ck_assert_uint_eq(all.count, all.capacity);
    fr_session_close(session);
    return all;
}

static fr_rows draft_logits(const fr_model *model, const char *path, bool mapped, int threads) {
    fr_options *options = options_of(mapped, threads);
    fr_drafter *drafter;
    ck_assert_msg(fr_drafter_open(path, model, options, &drafter) == FR_OK, "%s", fr_last_error());
    fr_rows all = logits_of(model, drafter, options);
    fr_drafter_close(drafter);
    fr_options_free(options);
    return all;
}

static fr_rows target_logits(const char *path, bool mapped, int threads) {
    fr_options *options = options_of(mapped, threads);
    fr_model *model;
    ck_assert_msg(fr_model_open(path, options, &model) == FR_OK, "%s", fr_last_error());
    fr_rows all = logits_of(model, NULL, options);
    fr_model_close(model);
    fr_options_free(options);
    return all;
}

/* Compares only the first draft. The whole head may choose a draft that is in none of the best clusters. All later
 * logits depend on that draft. */
static void expect_scores_of_whole_head(const fr_rows *got, const fr_rows *all, size_t vocab, size_t candidates) {
    size_t scored = 0;
    for (size_t id = 0; id < vocab; id++) {
        if (isinf(got->values[id])) continue;
        ck_assert_msg(memcmp(&got->values[id], &all->values[id], sizeof(float)) == 0, "id %zu: %a, not %a", id,
                      (double)got->values[id], (double)all->values[id]);
        scored++;
    }
    ck_assert_uint_eq(scored, candidates);
}

static void compare(const char *assistant, const char *type, size_t candidates) {
    fr_model *model;
    ck_assert_msg(fr_model_open(TARGET, NULL, &model) == FR_OK, "%s", fr_last_error());
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    quantize(assistant, type, plain);
    pack(plain, packed);
    write_whole(plain, whole);
    fr_rows here = draft_logits(model, plain, true, 2), all = draft_logits(model, whole, true, 1);
    expect_scores_of_whole_head(&here, &all, vocab, candidates);
    for (int way = 0; way < 4; way++) {
        fr_rows there = draft_logits(model, packed, way & 1, 1 + (way >> 1));
        ck_assert_msg(memcmp(here.values, there.values, here.count * sizeof(float)) == 0, "%s: packed, way %d", type,
                      way);
        free(there.values);
    }
    free(here.values);
    free(all.values);
    fr_model_close(model);
}

/* Moves the head's rows far away from the beginning of the file. The beginning is read together with the header. Rows
 * there would already be in memory. */
static void move_head_away(const char *path) {
    enum { AWAY = 4 << 20 };
    fr_checkpoint files;
    const fr_tensor *head;
    size_t size;
    uint8_t *bytes = read_bytes(path, &size), *moved = calloc(1, AWAY + size);
    ck_assert_msg(fr_checkpoint_open(&files, path, true) == FR_OK, "%s", fr_last_error());
    ck_assert_msg(fr_checkpoint_tensor(&files, "token_embd.weight", &head) == FR_OK && head->packed, "%s", path);
    size_t at = (size_t)((const uint8_t *)head->data - files.files[0].bytes), length = head->bytes;
    uint64_t offset;
    memcpy(moved, bytes, size);
    memcpy(moved + AWAY + at, bytes + at, length);
    memset(moved + at, 0, length);
    /* The \0 is the last byte of the name's length, which comes before the name. Without it, longer names with this
     * ending would be found too */
    static const char name[] = "\0token_embd.weight";
    uint8_t *entry = memmem(moved, size, name, sizeof name - 1);
    ck_assert_ptr_nonnull(entry);
    entry += sizeof name - 1 + 4 + 2 * 8 + 4;
    memcpy(&offset, entry, sizeof offset);
    offset += AWAY;
    memcpy(entry, &offset, sizeof offset);
    write_bytes(path, moved, AWAY + at + length);
    fr_checkpoint_close(&files);
    free(moved);
    free(bytes);
}

/* The matrices have 10, 24, 72 and 405 rows, so the last tile of each is padded. */
START_TEST(rows_that_fill_no_whole_tiles) {
    quantize(FR_TEST_MODELS "gemma4-e-odd", types[_i], plain);
    pack(plain, packed);
    move_head_away(packed);
    fr_rows expected = target_logits(plain, true, 1);
    for (int way = 0; way < 4; way++) {
        fr_rows got = target_logits(packed, way & 1, 1 + (way >> 1));
        ck_assert_uint_eq(got.count, expected.count);
        ck_assert_msg(memcmp(got.values, expected.values, got.count * sizeof(float)) == 0, "way %d", way);
        free(got.values);
    }
    free(expected.values);
}
END_TEST

/* The head has 32 clusters of 16 ids each, and scores the ids of the best 6 clusters. */
START_TEST(clusters_of_whole_tiles) {
    compare(ASSISTANT, types[_i], 6 * 16);
}
END_TEST

START_TEST(clusters_of_half_tiles) {
    char finer[128];
    snprintf(finer, sizeof finer, "%s/finer", folder);
    write_finer(finer);
    compare(finer, types[_i], 6 * 8);
}
END_TEST

/* A packed drafter has a key with the name of the tensor that is sorted by clusters. The drafter must be refused in
 * three cases: if the key is missing, if it names another tensor, or if it contradicts the configuration. */
START_TEST(wrong_marks) {
    static const struct {
        const char *text;
        size_t distance;
        char byte;
        const char *words;
    } damages[] = {
        {SORTED, 0, 9, NULL}, /* this gives the key's value another type, so the rest of the header can't be read */
        {"forerun.sorted_tenso", 0, 'x', "nothing says in which order: pack the drafter again"},
        {SORTED, 12, 'x', "nothing says in which order: pack the drafter again"},
        {CLUSTERED, 4, 0, "is packed in the order of clusters, which the configuration doesn't have"},
    };
    size_t size;
    fr_model *model;
    fr_drafter *drafter;
    quantize(ASSISTANT, "q8_0", plain);
    pack(plain, packed);
    uint8_t *bytes = read_bytes(packed, &size);
    *behind(bytes, size, damages[_i].text, damages[_i].distance) = (uint8_t)damages[_i].byte;
    write_bytes(packed, bytes, size);
    free(bytes);
    ck_assert_msg(fr_model_open(TARGET, NULL, &model) == FR_OK, "%s", fr_last_error());
    ck_assert_int_eq(fr_drafter_open(packed, model, NULL, &drafter), FR_INPUT);
    ck_assert_msg(!damages[_i].words || strstr(fr_last_error(), damages[_i].words), "%s", fr_last_error());
    fr_model_close(model);
}
END_TEST

FR_SUITE("packed") {
    TCase *tests = tcase_create("packed");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, rows_that_fill_no_whole_tiles, 0, 6);
    tcase_add_loop_test(tests, clusters_of_whole_tiles, 0, 6);
    tcase_add_loop_test(tests, clusters_of_half_tiles, 0, 6);
    tcase_add_loop_test(tests, wrong_marks, 0, 4);
    suite_add_tcase(suite, tests);
}
