/* Tests trimmed draft heads. A trimmed head scores only the ids of a list. The scores of these ids must have the same
 * bits as those of the whole head, and no other id may be drafted. The text must be the target's own with every size of
 * head, greedy and sampled. A head that learns scores the likely ids (see draft_head.h) and the ids of the session's
 * own text. When the text is replaced, the head must forget the ids of the old text. A file that is not a list of ids
 * is refused with one line. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/engine/draft/draft_head.h"
#include "tests/support/brief.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { PROMPT = 30, TEXT = 60, DEPTH = 4, VOCAB_MAX = 1024 };

#define LIST "forerun draft head 1\n"

static const struct {
    /* if drafter is NULL, the target's own layer drafts */
    const char *target, *drafter;
} subjects[] = {{FR_TEST_MODELS "llama", "tests/data/llama/q4_0.gguf"}, /* this drafter's head is packed */
                {FR_TEST_MODELS "llama", FR_TEST_MODELS "llama"},
                {FR_TEST_MODELS "llama", "tests/data/llama/eagle"},
                {FR_TEST_MODELS "glm-ocr-odd", NULL},
                {"tests/data/dflash/qwen3", "tests/data/dflash/qwen3/drafter"},
                {"tests/data/dflash/v2-qwen3", "tests/data/dflash/v2-qwen3/drafter"}};
/* SCORERS: the number of drafters that score all ids; the last drafter returns only the scores of its best ids */
enum { SUBJECTS = sizeof subjects / sizeof *subjects, SCORERS = SUBJECTS - 1 };

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    size_t vocab;
    char list[64]; /* path of the file with the list of ids */
} subject;

static void write_file(char *path, size_t size, const char *text, size_t length) {
    snprintf(path, size, "%s/forerun-head-XXXXXX", P_tmpdir);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
}

/* Returns true if the test's list has this id. The list has every third id, in descending order. */
static bool is_listed(size_t id) {
    return id % 3 == 1;
}

static void write_list(subject *s) {
    char text[VOCAB_MAX * 8];
    size_t length = (size_t)snprintf(text, sizeof text, LIST);
    for (size_t id = s->vocab; id-- > 0;)
        if (is_listed(id)) length += (size_t)snprintf(text + length, sizeof text - length, "%zu\n", id);
    write_file(s->list, sizeof s->list, text, length);
}

static subject open_subject(int which) {
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(s.options, FR_OPT_THREADS, 2));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(subjects[which].target, s.options, &s.model));
    s.vocab = (size_t)fr_model_fact(s.model, FR_FACT_VOCAB);
    ck_assert_uint_le(s.vocab, VOCAB_MAX);
    write_list(&s);
    return s;
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
    unlink(s->list);
}

static void take_head(subject *s, int which, const char *head) {
    fr_drafter_close(s->drafter);
    require(fr_options_set_text(s->options, FR_OPT_DRAFT_HEAD, head));
    require(fr_drafter_open(subjects[which].drafter, s->model, s->options, &s->drafter));
}

static fr_session *open_session(const subject *s, int64_t depth) {
    int32_t prompt[PROMPT];
    fr_session *session;
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, depth));
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = 5 + i * 37 % ((int32_t)s->vocab - 20);
    require(fr_session_prompt(session, prompt, PROMPT));
    return session;
}

/* Gets the drafts after a prompt and two generated tokens, and the scores of these drafts. Returns the number of
 * drafts. */
static size_t drafts_of(const subject *s, int32_t *ids, float *logits, double *weights) {
    int32_t said[FR_STEP_MAX];
    size_t count, got, accepted;
    fr_session *session = open_session(s, 1);
    for (size_t made = 0; made < 2; made += got) require(fr_session_step(session, said, 1, &got, &accepted));
    require(fr_draft_now(session, DEPTH, ids, &count, logits));
    *weights = fr_session_stat(session, FR_STAT_DRAFT_WEIGHT_BYTES);
    fr_session_close(session);
    return count;
}

static bool ends(const subject *s, size_t id) {
    const int32_t *ids;
    size_t count = fr_model_eos(s->model, &ids);
    for (size_t i = 0; i < count; i++)
        if ((size_t)ids[i] == id) return true;
    return false;
}

START_TEST(listed_ids_have_the_whole_heads_scores) {
    subject s = open_subject(_i);
    int32_t whole_ids[DEPTH], ids[DEPTH];
    double whole_bytes, bytes;
    float *whole = calloc(DEPTH * s.vocab, sizeof *whole), *few = calloc(DEPTH * s.vocab, sizeof *few);
    take_head(&s, _i, "whole");
    ck_assert_uint_eq(drafts_of(&s, whole_ids, whole, &whole_bytes), DEPTH);
    take_head(&s, _i, s.list);
    ck_assert_uint_eq(drafts_of(&s, ids, few, &bytes), DEPTH);
    ck_assert_double_gt(bytes, whole_bytes);
    size_t best = 1;
    for (size_t id = 0; id < s.vocab; id++) {
        bool scored = is_listed(id) || ends(&s, id);
        ck_assert_msg(scored ? few[id] == whole[id] : isinf(few[id]), "id %zu: %g, %g", id, few[id], whole[id]);
        if (scored && whole[id] > whole[best]) best = id;
    }
    ck_assert_int_eq(ids[0], best);
    for (size_t d = 0; d < DEPTH; d++) ck_assert(is_listed((size_t)ids[d]) || ends(&s, (size_t)ids[d]));
    free(whole);
    free(few);
    close_subject(&s);
}
END_TEST

static double write_text(const subject *s, int64_t depth, int32_t *text) {
    fr_session *session = open_session(s, depth);
    for (size_t made = 0, got, accepted; made < TEXT; made += got)
        require(fr_session_step(session, text + made, TEXT - made, &got, &accepted));
    double drafted = fr_session_stat(session, FR_STAT_DRAFTED);
    fr_session_close(session);
    return drafted;
}

START_TEST(the_text_is_the_targets) {
    static const char *const heads[] = {"1", "15", "16", "17", "200", "", "whole", "99999999999", "auto:1", "auto:200"};
    static int32_t plain[TEXT], text[TEXT];
    subject s = open_subject(_i / 2);
    if (_i % 2) require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 1));
    write_text(&s, 0, plain);
    for (size_t h = 0; h <= sizeof heads / sizeof *heads; h++) {
        take_head(&s, _i / 2, h ? heads[h - 1] : s.list);
        for (int64_t depth = 1; depth < 6; depth += 2) {
            ck_assert_double_gt(write_text(&s, depth, text), 0);
            ck_assert_msg(memcmp(plain, text, sizeof plain) == 0, "head %zu, depth %d", h, (int)depth);
        }
    }
    close_subject(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- learned ids */

enum { LIKELY = 9 };

static bool is_likely(const subject *s, size_t id) {
    size_t length = 0;
    const fr_tokenizer *tokenizer = fr_model_tokenizer(s->model);
    if (tokenizer) fr_token_bytes(tokenizer, (int32_t)id, &length);
    return id < LIKELY || length == 1 || ends(s, id);
}

static bool has_id(const int32_t *text, size_t count, size_t id) {
    for (size_t i = 0; i < count; i++)
        if ((size_t)text[i] == id) return true;
    return false;
}

/* Compares the scores of the next draft after the session's text with the scores of the whole head. Only the likely ids
 * and the ids of the text may be scored, and their scores must have the same bits as with the whole head. */
static void check_scores(subject *s, int which, fr_session *session, const int32_t *text, size_t count) {
    fr_session *alone;
    size_t drafted, accepted, scored = 0;
    int32_t ids[DEPTH];
    float *few = calloc(DEPTH * s->vocab, sizeof *few), *whole = calloc(DEPTH * s->vocab, sizeof *whole);
    fr_drafter *learns = s->drafter;
    require(fr_draft_now(session, 1, ids, &drafted, few));
    ck_assert_uint_eq(drafted, 1);
    s->drafter = NULL;
    take_head(s, which, "whole");
    require(fr_session_open(s->model, s->drafter, s->options, &alone));
    /* the target generated the last id, and no forward pass has run it yet */
    require(fr_session_prompt(alone, text, count - 1));
    require(fr_session_step(alone, ids, 1, &drafted, &accepted));
    ck_assert_int_eq(ids[0], text[count - 1]);
    require(fr_draft_now(alone, 1, ids, &drafted, whole));
    fr_session_close(alone);
    fr_drafter_close(s->drafter);
    s->drafter = learns;
    for (size_t id = 0; id < s->vocab; id++) {
        bool expected = is_likely(s, id) || has_id(text, count, id);
        scored += expected;
        ck_assert_msg(isinf(few[id]) ? !expected : expected && few[id] == whole[id], "id %zu: %g, %g", id, few[id],
                      whole[id]);
    }
    ck_assert_uint_lt(scored, s->vocab);
    free(few);
    free(whole);
}

/* Gives a session a prompt of `count` ids and lets the target generate one token. The prompt and this token are written
 * to `text`. */
static void write_prompt(const subject *s, fr_session *session, int32_t step, int32_t *text, size_t count) {
    size_t got, accepted;
    for (size_t i = 0; i < count; i++) text[i] = 5 + (int32_t)i * step % ((int32_t)s->vocab - 20);
    require(fr_session_set_prompt(session, text, count));
    require(fr_session_step(session, text + count, 1, &got, &accepted));
    ck_assert_uint_eq(got, 1);
}

/* The ids that a session scores must depend on its own text alone. This must stay true after the text was replaced, and
 * while another session has other ids. */
START_TEST(ids_of_the_text_are_learned) {
    enum { TEXTS = 3 };
    static const int32_t steps[TEXTS] = {37, 41, 5};
    static const size_t counts[TEXTS] = {PROMPT, 17, 50};
    int32_t text[64], other[64];
    subject s = open_subject(_i);
    fr_engine *engine;
    fr_session *session, *beside;
    require(fr_options_set(s.options, FR_OPT_DRAFT_MAX, 1));
    take_head(&s, _i, "auto:9");
    require(fr_engine_open(s.model, s.drafter, s.options, 2, &engine));
    require(fr_engine_session(engine, s.options, &session));
    for (size_t i = 0; i < TEXTS; i++) {
        write_prompt(&s, session, steps[i], text, counts[i]);
        check_scores(&s, _i, session, text, counts[i] + 1);
        require(fr_engine_session(engine, s.options, &beside));
        write_prompt(&s, beside, 11, other, 20);
        check_scores(&s, _i, beside, other, 21);
        check_scores(&s, _i, session, text, counts[i] + 1);
        write_prompt(&s, session, 3, text, 9);
        check_scores(&s, _i, session, text, 10);
        fr_session_close(beside);
    }
    fr_session_close(session);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

static const struct {
    const char *text, *says;
    fr_status status;
} wrong[] = {
    {"", "is no list of a draft head", FR_INPUT},
    {"forerun draft head 2\n1\n", "is no list of a draft head", FR_INPUT},
    {"forerun draft head 1", "is no list of a draft head", FR_INPUT},
    {LIST, "has no id", FR_INPUT},
    {LIST "1\n2", "line 3 of a draft head's list is no id", FR_INPUT},
    {LIST "1\n\n", "line 3 of a draft head's list is no id", FR_INPUT},
    {LIST "-1\n", "line 2 of a draft head's list is no id", FR_INPUT},
    {LIST "1 \n", "line 2 of a draft head's list is no id", FR_INPUT},
    {LIST "5\n1\n5\n", "line 4 of a draft head's list has an id again", FR_INPUT},
    {LIST "70000\n", "line 2 of a draft head's list is no id of the vocabulary", FR_INPUT},
    {LIST "18446744073709551617\n", "line 2 of a draft head's list is no id of the vocabulary", FR_INPUT},
};

START_TEST(what_is_no_list_is_refused) {
    char path[64];
    subject s = open_subject(0);
    write_file(path, sizeof path, wrong[_i].text, strlen(wrong[_i].text));
    require(fr_options_set_text(s.options, FR_OPT_DRAFT_HEAD, path));
    ck_assert_int_eq(fr_drafter_open(subjects[0].drafter, s.model, s.options, &s.drafter), wrong[_i].status);
    ck_assert_ptr_null(s.drafter);
    ck_assert_msg(strstr(fr_last_error(), wrong[_i].says) && strstr(fr_last_error(), path), "%s", fr_last_error());
    unlink(path);
    close_subject(&s);
}
END_TEST

START_TEST(what_is_no_head_is_refused) {
    subject s = open_subject(0);
    static const char *const numbers[] = {"0", "auto:", "auto:0", "auto:9a", "auto:-9", "auto:99999999999999999999"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        require(fr_options_set_text(s.options, FR_OPT_DRAFT_HEAD, numbers[i]));
        ck_assert_int_eq(fr_drafter_open(subjects[0].drafter, s.model, s.options, &s.drafter), FR_USAGE);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "is no number of rows"));
    }
    require(fr_options_set_text(s.options, FR_OPT_DRAFT_HEAD, "no/such/list"));
    ck_assert_int_eq(fr_drafter_open(subjects[0].drafter, s.model, s.options, &s.drafter), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "no/such/list"));
    close_subject(&s);
}
END_TEST

/* EAGLE-3's head has its own list of ids, so the option that trims heads is refused. */
START_TEST(a_list_of_its_own_stays) {
    subject s = open_subject(0);
    for (int i = 0; i < 2; i++) {
        require(fr_options_set_text(s.options, FR_OPT_DRAFT_HEAD, i ? "auto" : "50"));
        ck_assert_int_eq(fr_drafter_open("tests/data/llama/eagle3", s.model, s.options, &s.drafter), FR_USAGE);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "can't be trimmed"));
    }
    require(fr_options_set_text(s.options, FR_OPT_DRAFT_HEAD, "whole"));
    require(fr_drafter_open("tests/data/llama/eagle3", s.model, s.options, &s.drafter));
    close_subject(&s);
}
END_TEST

/* The list that is made from a text begins with the text's most frequent ids. Equally frequent ids are in ascending
 * order. */
START_TEST(a_text_makes_a_list) {
    char folder[64], line[256];
    snprintf(folder, sizeof folder, "%s/forerun-head-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    fr_command list = fr_command_ok("trim-head " DEMO "-p 'a a a b' -o -");
    fr_command one = fr_command_ok("trim-head " DEMO "-p 'a a a b' --most-ids 1 -o %s/one", folder);
    ck_assert_msg(strncmp(list.out, LIST, strlen(LIST)) == 0, "%s", list.out);
    size_t lines = 0;
    for (const char *at = list.out; *at; at++) lines += *at == '\n';
    ck_assert_uint_ge(lines, 3);
    ck_assert_ptr_nonnull(strstr(one.err, "1 of "));
    fr_command drafted = fr_command_ok("generate " DEMO "-md tools/demo/target -p a -n 8 --draft-head %s/one", folder);
    fr_command plain = fr_command_ok("generate " DEMO "-p a -n 8");
    ck_assert_str_eq(drafted.out, plain.out);
    fr_command_free(&drafted);
    fr_command_free(&plain);
    fr_command_free(&list);
    fr_command_free(&one);
    snprintf(line, sizeof line, "%s/one", folder);
    unlink(line);
    rmdir(folder);
}
END_TEST

/* A head in FP8 has one scale for each 128 neighbouring rows, so it can't be trimmed. Only a list of all ids is
 * accepted. */
START_TEST(a_head_of_fp8_is_not_trimmed) {
    const float scales[1] = {1};
    const fr_matrix whole = {.type = FR_F8_E4M3, .features = 128, .cols = 128, .scales = scales};
    fr_draft_head head = {0};
    ck_assert_int_eq(fr_draft_head_choose(&head, "8", NULL, &whole), FR_UNBUILT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "draft-head 8: the drafter's head is of FP8"));
    ck_assert_int_eq(fr_draft_head_choose(&head, "auto", NULL, &whole), FR_UNBUILT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "draft-head auto: the drafter's head is of FP8"));
    ck_assert_int_eq(fr_draft_head_choose(&head, "whole", NULL, &whole), FR_OK);
    ck_assert_ptr_null(head.ids);
}
END_TEST

FR_SUITE("draft_head") {
    TCase *tests = tcase_create("tests");
    tcase_set_timeout(tests, 120);
    fr_test_add_loop(tests, listed_ids_have_the_whole_heads_scores, SCORERS, 1);
    tcase_add_loop_test(tests, the_text_is_the_targets, 0, 2 * SUBJECTS);
    tcase_add_loop_test(tests, what_is_no_list_is_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tests, what_is_no_head_is_refused);
    tcase_add_test(tests, a_list_of_its_own_stays);
    tcase_add_test(tests, a_text_makes_a_list);
    tcase_add_test(tests, a_head_of_fp8_is_not_trimmed);
    suite_add_tcase(suite, tests);
    TCase *learned = tcase_create("learned");
    tcase_set_timeout(learned, 120);
    fr_test_add_loop(learned, ids_of_the_text_are_learned, SCORERS, 1);
    suite_add_tcase(suite, learned);
}
