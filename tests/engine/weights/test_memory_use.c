/* Tests how models use memory, on invented systems with different amounts of free memory. How much memory the weights
 * take depends on the form of their file. If there is too little memory, the user gets a note or a refusal. Also tests
 * that reading ahead changes no bit. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "forerun_lab.h"
#include "src/engine/draft/draft.h"
#include "src/engine/weights/memory_use.h"
#include "tests/support/made_root.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define MODEL FR_TEST_MODELS "glm4-moe-odd" /* a mixture of experts with an MTP layer */

/* ---------------------------------------------------------------------------------------------- the system's memory */

#define INFO(kilobytes) \
    { "proc/meminfo", "MemTotal:  9000 kB\nMemFree:  1 kB\nMemAvailable:  " kilobytes " kB\n" }
#define V2 "sys/fs/cgroup/"
#define V1 "sys/fs/cgroup/memory/"

static const struct {
    uint64_t bytes;
    struct {
        const char *path, *text;
    } files[5];
} systems[] = {
    {UINT64_MAX, {{0}}},
    {UINT64_MAX, {{"proc/meminfo", "MemTotal: 5 kB\nMemAvailable: some\n"}}},
    {UINT64_MAX, {INFO("99999999999999999999")}},
    {2048000, {INFO("2000")}},
    {2048000, {INFO("2000"), {"proc/self/cgroup", "0::/a\n"}, {V2 "a/memory.max", "max\n"}}},
    {7000, {INFO("2000"), {"proc/self/cgroup", "0::/a\n"}, {V2 "a/memory.max", "7000\n"}}},
    {6000,
     {INFO("2000"), {"proc/self/cgroup", "0::/a/b\n"}, {V2 "a/memory.max", "6000"}, {V2 "a/b/memory.max", "7000"}}},
    {4900,
     {INFO("2000"),
      {"proc/self/cgroup", "0::/a\n"},
      {V2 "a/memory.max", "7000"},
      {V2 "a/memory.stat", "file 500\nanon_thp 1\nanon 2100\n"}}},
    {1, {INFO("2000"), {"proc/self/cgroup", "0::/\n"}, {V2 "memory.max", "7000"}, {V2 "memory.stat", "anon 8000\n"}}},
    {5900,
     {INFO("2000"),
      {"proc/self/cgroup", "4:cpu:/\n3:hugetlb,memory:/a\n"},
      {V1 "a/memory.limit_in_bytes", "6000\n"},
      {V1 "memory.limit_in_bytes", "9223372036854771712\n"},
      {V1 "a/memory.stat", "rss 50\ntotal_rss 100\n"}}},
};

START_TEST(memory_is_what_machine_and_groups_leave) {
    for (size_t f = 0; f < 5 && systems[_i].files[f].path; f++)
        fr_made_root_put(systems[_i].files[f].path, systems[_i].files[f].text);
    ck_assert_uint_eq(fr_memory_available(fr_made_root), systems[_i].bytes);
}
END_TEST

START_TEST(this_machine_has_some) {
    uint64_t available = fr_memory_available("");
    ck_assert_uint_gt(available, 0);
    ck_assert_uint_lt(available, (uint64_t)1 << 60);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- notes and refusals */

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", fr_made_root, name);
    return path;
}

/* Writes the model quantized to q4_0 as a file, and a packed copy of this file. */
static void make_files(void) {
    fr_made_root_open();
    fr_lab_quantization how = {.type = "q4_0"};
    FILE *out = fopen(in_folder("model.gguf"), "wb");
    require(fr_lab_quantize(MODEL, &how, NULL, out));
    fclose(out);
    out = fopen(in_folder("packed.gguf"), "wb");
    require(fr_lab_pack(in_folder("model.gguf"), NULL, out));
    fclose(out);
}

static fr_model *opened(const char *name, bool mapped) {
    fr_model *model;
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_MMAP, mapped));
    require(fr_model_open(in_folder(name), options, &model));
    fr_options_free(options);
    return model;
}

static uint64_t bytes_named(const fr_weights *weights, const char *part) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < weights->count; i++)
        if (strstr(weights->bound[i].tensor->name, part)) bytes += weights->bound[i].tensor->bytes;
    return bytes;
}

/* The weights of a packed file are used in place, except for small vectors, which are copied. From other files the
 * loader copies everything that kernels need in another layout. Without memory mapping the whole file is copied. */
START_TEST(copies_depend_on_the_files_form) {
    fr_model *packed = opened("packed.gguf", true), *plain = opened("model.gguf", true);
    fr_model *read = opened("packed.gguf", false);
    fr_memory_use of_packed = packed->weights.memory_use, of_plain = plain->weights.memory_use;
    fr_memory_use of_read = read->weights.memory_use;
    const fr_weights *w = &packed->weights;
    ck_assert_uint_eq(of_packed.own, w->vectors.used);
    ck_assert_uint_eq(of_packed.mapped, w->bytes);
    ck_assert_uint_eq(of_packed.experts, bytes_named(w, "_exps."));
    ck_assert_uint_gt(of_packed.experts, 0);
    fr_mixture_size experts = fr_spec_mixture_size(&packed->trunk.spec);
    ck_assert_uint_eq(of_packed.token, of_packed.experts / experts.count * experts.chosen);
    ck_assert_uint_eq(of_packed.every + of_packed.experts + bytes_named(w, "token_embd."), w->bytes);
    ck_assert_uint_eq(of_packed.stays, of_packed.every + of_packed.own);
    ck_assert_uint_ge(of_plain.own, of_packed.own + of_packed.experts);
    ck_assert_uint_eq(of_read.own, of_packed.own + w->bytes);
    ck_assert_uint_eq(of_read.mapped, 0);
    fr_model_close(packed);
    fr_model_close(plain);
    fr_model_close(read);
}
END_TEST

/* In tiles, weights of low-bit types are larger than in the file's blocks. Each token reads the tiles, so the tiles'
 * size must be counted. */
START_TEST(copies_count_as_large_as_they_are) {
    fr_model *model;
    require(fr_model_open("tests/data/gguf/low-bits.gguf", NULL, &model));
    const fr_weights *w = &model->weights;
    uint64_t copied = 0;
    for (size_t i = 0; i < w->count; i++) copied += w->bound[i].packed ? w->bound[i].tensor->bytes : 0;
    ck_assert_uint_gt(w->packed.used, copied + copied / 8);
    ck_assert_uint_eq(w->memory_use.experts, 0);
    ck_assert_uint_ge(w->memory_use.every + w->count * 64, w->packed.used);
    fr_model_close(model);
}
END_TEST

/* In a packed file the MTP layer is packed too, so only this layer's vectors are copied. */
START_TEST(an_mtp_layer_is_packed_too) {
    fr_drafter *own;
    fr_model *packed = opened("packed.gguf", true);
    require(fr_drafter_open(NULL, packed, NULL, &own));
    ck_assert_uint_gt(own->weights.count, 0);
    ck_assert_uint_eq(own->weights.packed.used, 0);
    ck_assert(own->weights.has_packed);
    fr_drafter_close(own);
    fr_model_close(packed);
}
END_TEST

/* The engine considers weights to fit in memory if a sixteenth of the memory remains free. */
START_TEST(weights_fit_below_a_limit) {
    static const struct {
        uint64_t available;
        bool fits;
    } cases[] = {{0, false}, {1, false}, {UINT64_MAX, true}};
    fr_model *model = opened("model.gguf", true);
    fr_weights *weights = &model->weights;
    uint64_t all = weights->memory_use.own + weights->memory_use.mapped, least = all + (all + 14) / 15;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_weights_compare(weights, (fr_mixture_size){0}, NULL, cases[i].available);
        ck_assert_int_ne(weights->exceed, cases[i].fits);
    }
    fr_weights_compare(weights, (fr_mixture_size){0}, NULL, least);
    ck_assert(!weights->exceed);
    fr_weights_compare(weights, (fr_mixture_size){0}, NULL, least - 2);
    ck_assert(weights->exceed);
    fr_model_close(model);
}
END_TEST

/* A drafter is opened after its target. By then the target's copies are already in memory, so they are not part of the
 * available memory any more. But the target's mapped weights have not been read yet, and they must stay in memory
 * later. So they are counted together with the drafter's weights. */
START_TEST(a_drafter_is_compared_beside_its_target) {
    fr_model *model = opened("model.gguf", true);
    fr_drafter *own;
    require(fr_drafter_open(NULL, model, NULL, &own));
    fr_weights *target = &model->weights, *weights = &own->weights;
    uint64_t needed = weights->memory_use.own + weights->memory_use.mapped + target->memory_use.mapped;
    uint64_t least = needed + (needed + 14) / 15;
    ck_assert(target->placed);
    ck_assert_uint_gt(target->memory_use.mapped, 0);
    fr_weights_compare(weights, (fr_mixture_size){0}, target, least);
    ck_assert(!weights->exceed);
    ck_assert_ptr_null(fr_drafter_note(own, 0));
    fr_weights_compare(weights, (fr_mixture_size){0}, target, least - 2);
    ck_assert(weights->exceed);
    ck_assert_ptr_nonnull(strstr(fr_drafter_note(own, 0), "that are in use, and memory has"));
    target->placed = false; /* makes the target look as if its weights had not been loaded yet */
    fr_weights_compare(weights, (fr_mixture_size){0}, target, least + target->memory_use.own);
    ck_assert(!weights->exceed);
    fr_weights_compare(weights, (fr_mixture_size){0}, target, least + target->memory_use.own - 2);
    ck_assert(weights->exceed);
    fr_drafter_close(own);
    fr_model_close(model);
}
END_TEST

START_TEST(memory_uses_add_up) {
    const fr_memory_use a = {1, 2, 3, 4, 5, 6}, b = {10, 20, 30, 40, 50, 60};
    const fr_memory_use both = {11, 22, 33, 44, 55, 66};
    fr_memory_use sum = fr_memory_use_sum(&a, &b);
    ck_assert_mem_eq(&sum, &both, sizeof sum);
}
END_TEST

static void expect_line(fr_weights *weights, uint64_t own, const char *const *parts) {
    weights->memory_use.own = own;
    weights->available = 2000000;
    ck_assert_int_eq(fr_weights_check_memory(weights), FR_MEMORY);
    for (size_t i = 0; parts[i]; i++) ck_assert_msg(strstr(fr_last_error(), parts[i]), "%s", fr_last_error());
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
}

START_TEST(copies_larger_than_memory_are_refused_in_a_line) {
    fr_model *plain = opened("model.gguf", true), *read = opened("packed.gguf", false);
    static const char *const pack[] = {"model.gguf: 1.9 MB", " 2.0 MB left", "`forerun pack`", NULL};
    static const char *const map[] = {"mapped files would be used", NULL};
    expect_line(&plain->weights, 1875001, pack);
    expect_line(&read->weights, 1875001, map);
    plain->weights.memory_use.own = 1875000;
    require(fr_weights_check_memory(&plain->weights));
    fr_model_close(plain);
    fr_model_close(read);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- larger than memory */

enum { PROMPT = 12 };

static fr_rows logits_of(const fr_model *model) {
    static const int32_t prompt[PROMPT] = {270, 301, 302, 303, 301, 302, 303, 301, 302, 290, 477, 301};
    size_t count = PROMPT * (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    fr_rows rows = {malloc(count * sizeof(float)), 0, count};
    fr_session *session;
    require(fr_session_open(model, NULL, NULL, &session));
    require(fr_session_logits(session, prompt, PROMPT, 0, fr_rows_collect, &rows));
    fr_session_close(session);
    return rows;
}

START_TEST(reading_ahead_changes_no_bit) {
    for (int packed = 0; packed < 2; packed++) {
        fr_model *model = opened(packed ? "packed.gguf" : "model.gguf", true);
        fr_rows held = logits_of(model);
        ck_assert(!model->weights.exceed);
        model->weights.exceed = true;
        fr_rows ahead = logits_of(model);
        ck_assert_uint_eq(held.count, held.capacity);
        fr_rows_expect_same(&ahead, &held);
        free(held.values);
        free(ahead.values);
        fr_model_close(model);
    }
}
END_TEST

static void expect_note(const fr_model *model, size_t index, const char *const *parts) {
    const char *note = fr_model_note(model, index);
    ck_assert_ptr_nonnull(note);
    for (size_t i = 0; parts[i]; i++) ck_assert_msg(strstr(note, parts[i]), "%s", note);
}

START_TEST(a_note_says_that_memory_is_too_small) {
    fr_model *model = opened("packed.gguf", true);
    fr_weights *weights = &model->weights;
    fr_mixture_size experts = fr_spec_mixture_size(&model->trunk.spec);
    uint64_t every = weights->memory_use.every;
    char all[64], left[64], token[64];
    snprintf(all, sizeof all, "packed.gguf: %.1f MB of weights,",
             (double)(weights->memory_use.own + weights->memory_use.mapped) / 1e6);
    snprintf(left, sizeof left, "memory has %.1f MB left", (double)(every * 16 / 15 + 16) / 1e6);
    snprintf(token, sizeof token, "every token reads %.1f MB", (double)(every + weights->memory_use.token) / 1e6);
    ck_assert_ptr_null(fr_model_note(model, 0));
    fr_weights_compare(weights, experts, NULL, every * 16 / 15 + 16);
    fr_weights_compare(weights, experts, NULL, every / 2);
    expect_note(model, 0, (const char *const[]){all, left, token, "experts are read", "but experts can stay", NULL});
    expect_note(model, 1, (const char *const[]){all, "experts are read", "not even the rest", NULL});
    fr_model_close(model);
}
END_TEST

/* This model is not a mixture of experts, so each token reads all its weights. */
START_TEST(weights_without_experts_are_read_again_and_again) {
    fr_model *model;
    require(fr_model_open(FR_TEST_MODELS "llama", NULL, &model));
    fr_weights_compare(&model->weights, (fr_mixture_size){0}, NULL, 1000);
    expect_note(model, 0, (const char *const[]){"read again and again; every token reads", NULL});
    fr_model_close(model);
}
END_TEST

FR_SUITE("memory_use") {
    TCase *systems_case = tcase_create("memory"), *models = tcase_create("models");
    tcase_add_checked_fixture(systems_case, fr_made_root_open, fr_made_root_close);
    tcase_add_loop_test(systems_case, memory_is_what_machine_and_groups_leave, 0, sizeof systems / sizeof *systems);
    tcase_add_test(systems_case, this_machine_has_some);
    tcase_set_timeout(models, 120);
    tcase_add_checked_fixture(models, make_files, fr_made_root_close);
    tcase_add_test(models, copies_depend_on_the_files_form);
    tcase_add_test(models, copies_count_as_large_as_they_are);
    tcase_add_test(models, an_mtp_layer_is_packed_too);
    tcase_add_test(models, weights_fit_below_a_limit);
    tcase_add_test(models, a_drafter_is_compared_beside_its_target);
    tcase_add_test(models, memory_uses_add_up);
    tcase_add_test(models, copies_larger_than_memory_are_refused_in_a_line);
    tcase_add_test(models, reading_ahead_changes_no_bit);
    tcase_add_test(models, a_note_says_that_memory_is_too_small);
    tcase_add_test(models, weights_without_experts_are_read_again_and_again);
    suite_add_tcase(suite, systems_case);
    suite_add_tcase(suite, models);
}
