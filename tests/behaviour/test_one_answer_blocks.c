/* Tests the same as test_one_answer.c with block-quantized weights, for every type that has a kernel.
 *
 * The models are tiny models of tests/data. The suite itself quantizes target and drafter, so that all matrices have
 * one type. forerun is compared only with itself here. test_gguf_models.c tests how accurate the numbers are.
 *
 * The base run decodes without drafts on one thread with the best instruction set. It is compared with one run for each
 * instruction set, in which threads, chunk, draft method and depth differ too. It is also compared with runs that
 * reject drafts at several depths, and with a run of the packed file. Each run generates 48 ids. With FULL in the
 * environment each run generates 400 ids, and the low-bit types run at four depths for each instruction set. */
/* suite: alone no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/answer.h"
#include "tests/support/brief.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"

#define COUNT 400

typedef struct subject {
    const char *folder, *type;
} subject;

#define GGUF  "tests/data/gguf/"
#define E     "tests/data/models/gemma4-e"
#define DENSE "tests/data/models/gemma4-dense"
#define MOE   "tests/data/models/gemma4-moe"

static const subject subjects[] = {
    {E, "q4_0"}, {E, "q4_k"},   {E, "q8_0"},     {E, "q6_k"},   {E, "q5_k"},   {E, "q5_0"}, {E, "q4_1"},
    {E, "q5_1"}, {E, "iq4_nl"}, {DENSE, "q4_0"}, {MOE, "q8_0"}, {MOE, "q4_1"}, {E, "q2_k"}, {E, "q3_k"},
};

static char target[64], assistant[64], packed[64];

static size_t text_length(void) {
    if (fr_test_emulated()) return 24;
    return fr_test_full() ? COUNT : 48;
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

static void make_models(const subject *who) {
    char from[128];
    snprintf(from, sizeof from, "%s/assistant", who->folder);
    quantize(who->folder, who->type, target);
    quantize(from, who->type, assistant);
    pack(target, packed);
}

static void remove_models(void) {
    unlink(target);
    unlink(assistant);
    unlink(packed);
}

static void compare(const subject *who, const fr_answer *base, const int32_t *text, const char *model,
                    const fr_manner *manner) {
    fr_answer got = fr_answer_of(model, assistant, manner, text_length(), text, NULL, false);
    ck_assert_msg(got.ids == base->ids && got.logits == base->logits,
                  "%s as %s%s: isa %s, %d threads, chunk %d, method %d, depth %d gives other %s", who->folder,
                  who->type, model == packed ? ", packed" : "", manner->isa, manner->threads, manner->chunk,
                  manner->method, manner->depth, got.ids == base->ids ? "logits" : "ids");
}

/* Each type runs with every second instruction set. With FULL in the environment it runs with all of them. */
START_TEST(every_type_gives_one_answer) {
    static const int threads[] = {3, 2, 1}, chunks[] = {1, 7, 512, 64}, depths[] = {3, 1, 15, 7, 2};
    const subject *who = &subjects[_i];
    int32_t text[COUNT];
    const char *best = NULL;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) best = fr_lab_word(FR_LAB_ISA, i);
    make_models(who);
    fr_manner plain = {.isa = best, .threads = 1, .chunk = 64, .depth = 1, .method = FR_TEST_NONE};
    fr_answer base = fr_answer_of(target, assistant, &plain, text_length(), NULL, text, false);
    for (size_t i = 0, here = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        size_t now = here++;
        if (!fr_test_full() && (now + (size_t)_i) % 2) continue;
        fr_manner manner = {.isa = fr_lab_word(FR_LAB_ISA, i),
                            .threads = threads[now % 3],
                            .chunk = chunks[now % 4],
                            .depth = depths[now % 5],
                            .method = FR_TEST_MTP};
        compare(who, &base, text, (now + (size_t)_i) / 2 % 2 ? packed : target, &manner);
    }
    for (int depth = 1; depth <= 15; depth += 14) {
        fr_manner manner = {.isa = best, .threads = 2, .chunk = 64, .depth = depth, .method = FR_TEST_SCRIPTED};
        compare(who, &base, text, packed, &manner);
    }
    remove_models();
}
END_TEST

/* These files have types that no quantizer here writes. These are all types of up to 3 bits, rotated weights in
 * PrismML's types, and experts in NVFP4. The files have no drafter, so scripted drafts force rejection. */
static const char *const written[] = {GGUF "low-bits.gguf", GGUF "rotated.gguf", GGUF "nvfp4-experts.gguf"};

START_TEST(low_bits_give_one_answer) {
    static const int threads[] = {2, 3, 1}, chunks[] = {7, 1, 64}, depths[] = {1, 3, 7, 2};
    const subject who = {written[_i], "it is"};
    int32_t text[COUNT];
    const char *best = NULL;
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) best = fr_lab_word(FR_LAB_ISA, i);
    fr_manner plain = {.isa = best, .threads = 1, .chunk = 64, .depth = 1, .method = FR_TEST_NONE};
    fr_answer base = fr_answer_of(who.folder, NULL, &plain, text_length(), NULL, text, false);
    for (size_t i = 0, here = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        for (size_t way = 0; way < 4; way++, here++) {
            if (!fr_test_full() && way != here / 4 % 4) continue;
            fr_manner manner = {.isa = fr_lab_word(FR_LAB_ISA, i),
                                .threads = threads[here % 3],
                                .chunk = chunks[here / 4 % 3],
                                .depth = depths[way],
                                .method = FR_TEST_SCRIPTED};
            compare(&who, &base, text, who.folder, &manner);
        }
    }
    if (_i == 2) return; /* the packed format can't hold experts of 64 columns */
    pack(who.folder, packed);
    fr_manner manner = {.isa = best, .threads = 2, .chunk = 64, .depth = 3, .method = FR_TEST_SCRIPTED};
    compare(&who, &base, text, packed, &manner);
    remove_models();
}
END_TEST

static void add_cases(Suite *suite) {
    int count = fr_test_emulated() ? 2 : sizeof subjects / sizeof *subjects;
    TCase *matrix = tcase_create("matrix");
    tcase_set_timeout(matrix, 0);
    tcase_add_loop_test(matrix, every_type_gives_one_answer, 0, count);
    TCase *files = tcase_create("files");
    tcase_set_timeout(files, 0);
    tcase_add_loop_test(files, low_bits_give_one_answer, 0, sizeof written / sizeof *written);
    suite_add_tcase(suite, matrix);
    suite_add_tcase(suite, files);
}

int main(void) {
    snprintf(target, sizeof target, "/tmp/forerun-blocks-%d.gguf", (int)getpid());
    snprintf(assistant, sizeof assistant, "/tmp/forerun-blocks-%d-assistant.gguf", (int)getpid());
    snprintf(packed, sizeof packed, "/tmp/forerun-blocks-%d-packed.gguf", (int)getpid());
    int status = fr_suite_run("one answer, blocks", add_cases);
    remove_models();
    return status;
}
