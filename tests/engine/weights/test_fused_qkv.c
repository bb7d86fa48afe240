/* Tests files in which one tensor has the queries, keys and values, as llama.cpp's converter writes it with --fuse-qkv.
 * The logits must have the same bits as those of the file with separate tensors. This is tested for every family and
 * for every way of storing matrices. A tensor that can't be divided is refused.
 *
 * The converter wrote tests/data/qwen35/tied-fused.gguf. This suite makes the other files in the same way: it writes
 * the rows of the three tensors one after the other, and then their biases in the same order. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/gguf_copy.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

enum { IDS = 30, STEPS = 3 };

static char folder[64], apart[96], fused[96], packed[96];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-fused-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(apart, sizeof apart, "%s/apart.gguf", folder);
    snprintf(fused, sizeof fused, "%s/fused.gguf", folder);
    snprintf(packed, sizeof packed, "%s/packed.gguf", folder);
}

static void remove_folder(void) {
    unlink(apart);
    unlink(fused);
    unlink(packed);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void quantize(const char *name, const char *type) {
    char path[128];
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", name);
    FILE *out = fopen(apart, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &(fr_lab_quantization){.type = type, .pure = true}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
}

/* Returns another tensor of the same layer. To get its name, letter `is` after "attn_" in `name` is replaced by letter
 * `other`. Returns NULL if `name` has another letter at this place, or if there is no tensor of the new name. */
static const fr_tensor *beside(const fr_tensors *all, const char *name, char is, char other) {
    char changed[128];
    const char *at = strstr(name, ".attn_");
    if (!at || at[6] != is || at[7] != '.') return NULL;
    snprintf(changed, sizeof changed, "%.*s.attn_%c%s", (int)(at - name), name, other, at + 7);
    return fr_tensors_find(all, changed);
}

static void put_fused(fr_gguf_writer *w, const fr_tensor *q, const fr_tensor *k, const fr_tensor *v) {
    char name[128];
    const char *at = strstr(q->name, ".attn_q.");
    uint64_t shape[2] = {q->shape[0] + k->shape[0] + v->shape[0], q->dims > 1 ? q->shape[1] : 0};
    snprintf(name, sizeof name, "%.*s.attn_qkv%s", (int)(at - q->name), q->name, at + 7);
    fr_gguf_put_tensor(w, name, q->type, false, q->dims, shape);
}

static void copy_fused(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i], *k = beside(all, t->name, 'q', 'k'), *v = beside(all, t->name, 'q', 'v');
        bool whole = k && v && k->type == t->type && v->type == t->type;
        if (beside(all, t->name, 'k', 'q') || beside(all, t->name, 'v', 'q')) continue;
        if (!data && whole) put_fused(w, t, k, v);
        if (!data && !whole) fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
        if (data) require(fr_gguf_write_data(w, t->data, t->bytes));
        if (data && whole) require(fr_gguf_write_data(w, k->data, k->bytes));
        if (data && whole) require(fr_gguf_write_data(w, v->data, v->bytes));
    }
}

static void fuse(void) {
    fr_gguf_copy(apart, fused, copy_fused);
}

/* Returns the logits of every position of a text. If there is a drafter, the logits of a chain of drafts follow. The
 * caller frees the values. */
static fr_rows numbers_of(const char *path) {
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    int32_t ids[IDS];
    require(fr_model_open(path, NULL, &model));
    if (fr_model_fact(model, FR_FACT_MTP_LAYERS)) require(fr_drafter_open(NULL, model, NULL, &drafter));
    require(fr_session_open(model, drafter, NULL, &session));
    size_t vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB), capacity = (IDS + STEPS) * vocab;
    fr_rows all = {malloc(capacity * sizeof(float)), 0, capacity};
    for (int32_t i = 0; i < IDS; i++) ids[i] = 270 + i * i % 97;
    require(fr_session_logits(session, ids, IDS, 0, fr_rows_collect, &all));
    if (drafter) require(fr_session_draft_logits(session, ids, IDS, STEPS, fr_rows_collect, &all));
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return all;
}

static void compare(const char *one, const char *other) {
    fr_rows expected = numbers_of(one), got = numbers_of(other);
    fr_rows_expect_same(&got, &expected);
    free(expected.values);
    free(got.values);
}

START_TEST(the_converters_file_has_the_bits_of_the_one_apart) {
    compare("tests/data/qwen35/tied.gguf", "tests/data/qwen35/tied-fused.gguf");
}
END_TEST

static const struct {
    const char *name, *type;
} cases[] = {{"llama-odd", "bf16"},     {"glm4-moe-odd", "f16"},     {"qwen3-moe-odd", "f32"}, {"glm-ocr-odd", "bf16"},
             {"qwen35-moe-odd", "f16"}, {"gemma4-dense-odd", "f32"}, {"llama", "q8_0"},        {"llama", "q4_k"}};

START_TEST(one_tensor_has_the_bits_of_three) {
    quantize(cases[_i].name, cases[_i].type);
    fuse();
    compare(apart, fused);
}
END_TEST

START_TEST(a_packed_one_does_too) {
    quantize("llama", "q8_0");
    fuse();
    FILE *out = fopen(packed, "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_pack(fused, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    compare(apart, packed);
}
END_TEST

/* The queries have 6 heads of 22 rows, which do not fill whole tiles. So the keys would begin in the middle of a tile,
 * and the tensor can't be packed. */
START_TEST(parts_that_begin_amid_a_tile_are_refused) {
    fr_model *model;
    quantize("qwen3-moe-odd", "q8_0");
    fuse();
    ck_assert_int_eq(fr_model_open(fused, NULL, &model), FR_UNBUILT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "attn_qkv.weight is not built: its part 1 begins within a tile"));
}
END_TEST

FR_SUITE("fused_qkv") {
    TCase *tests = tcase_create("fused_qkv");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, the_converters_file_has_the_bits_of_the_one_apart);
    tcase_add_loop_test(tests, one_tensor_has_the_bits_of_three, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, a_packed_one_does_too);
    tcase_add_test(tests, parts_that_begin_amid_a_tile_are_refused);
    suite_add_tcase(suite, tests);
}
