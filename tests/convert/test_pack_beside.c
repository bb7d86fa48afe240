/* Tests drafters that are packed together with their target. They are an MTP layer in a file of its own, and EAGLE-3.
 * The packed file must give the same drafts as the unpacked files, bit for bit.
 *
 * The MTP layer's file is cut out of a complete file. It has the tensors that llama.cpp's converter writes with --mtp:
 * the layer's block, the embedding table, the norm and the head. */
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

#define DEEPSEEK "tests/data/deepseek-v3"
#define LLAMA    FR_TEST_MODELS "llama"
#define EAGLE    "tests/data/llama/eagle3"

enum { IDS = 20, STEPS = 4 };

static char folder[64], target[96], drafter[96], packed[96];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-beside-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(target, sizeof target, "%s/target.gguf", folder);
    snprintf(drafter, sizeof drafter, "%s/drafter.gguf", folder);
    snprintf(packed, sizeof packed, "%s/packed.gguf", folder);
}

static void remove_folder(void) {
    unlink(target);
    unlink(drafter);
    unlink(packed);
    ck_assert_int_eq(rmdir(folder), 0);
}

static FILE *create(const char *path) {
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    return out;
}

/* Quantizes a model. beside: a drafter that is written into the same file; NULL: there is none. */
static void quantize(const char *path, const char *beside, const char *to) {
    FILE *out = create(to);
    require(fr_lab_quantize(path, &(fr_lab_quantization){.type = "q8_0", .pure = true, .drafter = beside}, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
}

static bool is_of_mtp(const char *name) {
    static const char *const also[] = {"token_embd.weight", "output_norm.weight", "output.weight"};
    bool is = strncmp(name, "blk.3.", 6) == 0;
    for (size_t i = 0; i < 3; i++) is |= strcmp(name, also[i]) == 0;
    return is;
}

static void copy_mtp(const fr_tensors *all, fr_gguf_writer *w, bool data) {
    for (size_t i = 0; i < all->count; i++) {
        const fr_tensor *t = &all->items[i];
        if (!is_of_mtp(t->name)) continue;
        if (data)
            require(fr_gguf_write_data(w, t->data, t->bytes));
        else
            fr_gguf_put_tensor(w, t->name, t->type, false, t->dims, t->shape);
    }
}

static void pack(const char *with) {
    FILE *out = create(packed);
    require(fr_lab_pack_beside(drafter, with, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
}

static size_t packed_tensors(const char *path) {
    fr_checkpoint files;
    size_t count = 0;
    require(fr_checkpoint_open(&files, path, true));
    for (size_t i = 0; i < files.tensors.count; i++) count += files.tensors.items[i].packed;
    fr_checkpoint_close(&files);
    return count;
}

/* Returns the logits of the first STEPS drafts of the drafter at `path`. The caller frees the values. */
static fr_rows drafts_of(const fr_model *model, const char *path) {
    fr_drafter *opened;
    fr_session *session;
    int32_t ids[IDS];
    size_t capacity = STEPS * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows all = {malloc(capacity * sizeof(float)), 0, capacity};
    for (int32_t i = 0; i < IDS; i++) ids[i] = 270 + i * i % 97;
    require(fr_drafter_open(path, model, NULL, &opened));
    require(fr_session_open(model, opened, NULL, &session));
    require(fr_session_draft_logits(session, ids, IDS, STEPS, fr_rows_collect, &all));
    fr_session_close(session);
    fr_drafter_close(opened);
    return all;
}

static void compare(const char *with) {
    fr_model *model;
    require(fr_model_open(with, NULL, &model));
    fr_rows expected = drafts_of(model, drafter), got = drafts_of(model, packed);
    fr_rows_expect_same(&got, &expected);
    free(expected.values);
    free(got.values);
    fr_model_close(model);
}

START_TEST(an_mtp_layer_alone_is_packed) {
    quantize(DEEPSEEK, NULL, target);
    fr_gguf_copy(target, drafter, copy_mtp);
    pack(target);
    ck_assert_uint_gt(packed_tensors(packed), 5);
    compare(target);
}
END_TEST

START_TEST(an_eagle_drafter_is_packed) {
    quantize(LLAMA, EAGLE, drafter);
    pack(LLAMA);
    ck_assert_uint_gt(packed_tensors(packed), 5);
    compare(LLAMA);
}
END_TEST

START_TEST(another_target_is_refused) {
    FILE *out = create(packed);
    quantize(DEEPSEEK, NULL, target);
    fr_gguf_copy(target, drafter, copy_mtp);
    ck_assert_int_eq(fr_lab_pack_beside(drafter, LLAMA, NULL, out), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "is an MTP layer of architecture \"deepseek2\""));
    ck_assert_int_eq(fr_lab_pack_beside(EAGLE, LLAMA, NULL, out), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "only a GGUF can be packed"));
    fclose(out);
}
END_TEST

FR_SUITE("pack_beside") {
    TCase *tests = tcase_create("pack_beside");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, an_mtp_layer_alone_is_packed);
    tcase_add_test(tests, an_eagle_drafter_is_packed);
    tcase_add_test(tests, another_target_is_refused);
    suite_add_tcase(suite, tests);
}
