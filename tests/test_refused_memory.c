/* Memory that is refused, piece by piece: each fr_arena_take of a model, a drafter, a session and a picture in turn
 * gives nothing, and what was being opened ends with FR_MEMORY and one line.
 *
 * The linker puts the function below in fr_arena_take's place (the Makefile's --wrap). Measuring is not refused. */
#include <check.h>
#include <string.h>

#include "forerun_lab.h"
#include "src/base/arena.h"

void *__real_fr_arena_take(fr_arena *arena, size_t count, size_t item);
void *__wrap_fr_arena_take(fr_arena *arena, size_t count, size_t item);

static size_t takes, refused_take;

void *__wrap_fr_arena_take(fr_arena *arena, size_t count, size_t item) {
    bool refuse = arena->base && ++takes == refused_take;
    return __real_fr_arena_take(arena, refuse ? SIZE_MAX : count, refuse ? 2 : item);
}

static const struct {
    const char *target, *drafter, *spec_type, *picture;
} subjects[] = {
    {"tests/data/models/gemma4-e", "tests/data/models/gemma4-e/assistant", "mtp", NULL},
    {"tests/data/models/gemma4-moe-odd", "tests/data/models/gemma4-moe-odd/assistant", "ngram,mtp", NULL},
    {"tests/data/gguf/e-q4_0.gguf", NULL, "none", NULL},
    {"tests/data/glm-ocr", NULL, "mtp", "tests/data/glm-ocr/image/digits.png"},
    {"tests/data/models/glm-ocr-odd", NULL, "mtp", "tests/data/models/glm-ocr-odd/image/digits.png"},
};

static fr_status look(fr_session *session, const fr_model *model, const char *path) {
    fr_picture *picture;
    fr_status status = fr_picture_open(path, model, &picture);
    if (status != FR_OK) return status;
    status = fr_session_show(session, (const fr_picture *const[]){picture}, 1);
    fr_picture_close(picture);
    return status;
}

/* Everything that takes memory from an arena. */
static fr_status open_all(size_t which, const fr_options *options) {
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_session *session = NULL;
    bool drafts = strcmp(subjects[which].spec_type, "none") != 0;
    fr_status status = fr_model_open(subjects[which].target, options, &model);
    if (status == FR_OK && drafts) status = fr_drafter_open(subjects[which].drafter, model, options, &drafter);
    if (status == FR_OK) status = fr_session_open(model, drafter, options, &session);
    if (status == FR_OK && subjects[which].picture) status = look(session, model, subjects[which].picture);
    if (session) fr_session_close(session);
    if (drafter) fr_drafter_close(drafter);
    if (model) fr_model_close(model);
    return status;
}

START_TEST(every_refusal_is_told) {
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set(options, FR_OPT_CONTEXT, 64), FR_OK);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_THREADS, 1), FR_OK);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.1), FR_OK);
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_SPEC_TYPE, subjects[_i].spec_type), FR_OK);
    refused_take = takes = 0;
    ck_assert_msg(open_all((size_t)_i, options) == FR_OK, "%s", fr_last_error());
    size_t all = takes;
    ck_assert_uint_gt(all, 40);
    for (refused_take = 1; refused_take <= all; refused_take++) {
        takes = 0;
        ck_assert_msg(open_all((size_t)_i, options) == FR_MEMORY, "piece %zu of %zu", refused_take, all);
        ck_assert_msg(strstr(fr_last_error(), "memory"), "%s", fr_last_error());
    }
    fr_options_free(options);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("refused_memory");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, every_refusal_is_told, 0, sizeof subjects / sizeof *subjects);
    Suite *suite = suite_create("refused_memory");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
