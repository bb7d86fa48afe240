/* Tests drafts between models with different vocabularies. The engine also keeps the target's text in the draft model's
 * ids. These ids must be the ones that the draft model's tokenizer gives for the whole text. The target's text must be
 * the same with any drafter.
 *
 * A draft model that is the target with renumbered ids must draft what the target generates. For this test the target
 * is the trained model of tools/demo. Its draft models are two copies of it: one has its ids in another order, the
 * other also has fewer merges in its tokenizer. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "forerun_lab.h"
#include "src/engine/draft/same_text.h"
#include "src/engine/model/model.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/changed_folder.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define DEMO  "tools/demo/target"
#define LLAMA FR_TEST_MODELS "llama"
#define GEMMA FR_TEST_MODELS "gemma4-e"

enum { FIRST_MOVED = 7, DEMO_VOCAB = 4096, TEXT = 72, CONTEXT = 512 };

/* --------------------------------------------------------------------------------------- the model with other ids */

static int32_t moved(int32_t id) {
    return id < FIRST_MOVED ? id : FIRST_MOVED + DEMO_VOCAB - 1 - id;
}

/* In the folder, replaces a link by a new file, and opens this file. */
static FILE *replace(const fr_changed_folder *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    ck_assert_int_eq(remove(path), 0);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    return file;
}

static void write_tokenizer(const fr_changed_folder *folder, bool fewer_merges) {
    json_t *file = fr_load_json(DEMO "/tokenizer.json"), *model = json_object_get(file, "model"), *id;
    json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    const char *token;
    json_object_foreach (vocab, token, id) json_integer_set(id, moved((int32_t)json_integer_value(id)));
    for (size_t i = json_array_size(merges); fewer_merges && i-- > 400;)
        if (i % 3) json_array_remove(merges, i);
    FILE *out = replace(folder, "tokenizer.json");
    ck_assert_int_eq(json_dumpf(file, out, 0), 0);
    fclose(out);
    json_decref(file);
}

/* Copies the rows of a tensor in another order: the row of an id is copied to the row of moved(id). `data` and `to`
 * point to the beginning of the tensors' data. */
static void move_rows(const json_t *header, const char *name, const char *data, char *to) {
    const json_t *offsets = json_object_get(json_object_get(header, name), "data_offsets");
    size_t begin = (size_t)json_integer_value(json_array_get(offsets, 0));
    size_t row = ((size_t)json_integer_value(json_array_get(offsets, 1)) - begin) / DEMO_VOCAB;
    ck_assert_uint_gt(row, 0);
    for (int32_t id = 0; id < DEMO_VOCAB; id++)
        memcpy(to + begin + (size_t)moved(id) * row, data + begin + (size_t)id * row, row);
}

static void write_weights(const fr_changed_folder *folder) {
    struct stat facts;
    uint64_t length;
    ck_assert_int_eq(stat(DEMO "/model.safetensors", &facts), 0);
    size_t size = (size_t)facts.st_size;
    char *from = malloc(size), *to = malloc(size);
    FILE *file = fopen(DEMO "/model.safetensors", "rb");
    ck_assert(from && to && file && fread(from, 1, size, file) == size);
    fclose(file);
    memcpy(&length, from, sizeof length);
    memcpy(to, from, size);
    json_t *header = json_loadb(from + sizeof length, length, 0, NULL);
    ck_assert_ptr_nonnull(header);
    size_t data = sizeof length + length;
    move_rows(header, "model.embed_tokens.weight", from + data, to + data);
    move_rows(header, "model.embed_tokens_per_layer.weight", from + data, to + data);
    file = replace(folder, "model.safetensors");
    ck_assert_uint_eq(fwrite(to, 1, size, file), size);
    fclose(file);
    json_decref(header);
    free(from);
    free(to);
}

static fr_changed_folder make_other(bool fewer_merges) {
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, DEMO, "{}");
    write_tokenizer(&folder, fewer_merges);
    write_weights(&folder);
    return folder;
}

/* ---------------------------------------------------------------------------------- the text in both vocabularies */

static const char text[] =
    "def read_lines(path, encoding='utf-8'):\n    \"\"\"Read a file: grüße, 日本語 and 🙂🙂.\"\"\"\n"
    "    with open(path) as file:\n        return [line.strip() for line in file]\n\n\n"
    "print(len('antidisestablishmentarianism'), 3.14159, x[0:17])    # The end, and no more.\n";

typedef struct vocabularies {
    fr_model *models[2];
    fr_same_text text;
    fr_arena arena;
} vocabularies;

static vocabularies open_vocabularies(const char *from, const char *to) {
    vocabularies v = {0};
    require(fr_model_open(from, NULL, &v.models[0]));
    require(fr_model_open(to, NULL, &v.models[1]));
    for (int real = 0; real < 2; real++) {
        fr_same_text_layout(&v.text, &v.arena, fr_model_tokenizer(v.models[0]), fr_model_tokenizer(v.models[1]),
                            CONTEXT);
        size_t size = v.arena.used;
        if (!real) v.arena = (fr_arena){0};
        if (!real) require(fr_arena_open(&v.arena, size, "a text"));
    }
    return v;
}

static void close_vocabularies(vocabularies *v) {
    fr_arena_close(&v->arena);
    fr_model_close(v->models[0]);
    fr_model_close(v->models[1]);
}

/* Checks that the ids of both vocabularies decode to the same text. */
static void check_same(const vocabularies *v, const int32_t *ids, size_t count) {
    char *texts[2];
    size_t lengths[2];
    require(fr_detokenize(fr_model_tokenizer(v->models[0]), ids, count, &texts[0], &lengths[0]));
    require(fr_detokenize(fr_model_tokenizer(v->models[1]), v->text.ids + v->text.begin, v->text.count - v->text.begin,
                          &texts[1], &lengths[1]));
    ck_assert_uint_eq(lengths[0], lengths[1]);
    ck_assert_mem_eq(texts[0], texts[1], lengths[0]);
    fr_free(texts[0]);
    fr_free(texts[1]);
}

static const struct {
    const char *from, *to;
} pairs[] = {{GEMMA, LLAMA}, {LLAMA, GEMMA}, {DEMO, LLAMA}, {LLAMA, DEMO}, {GEMMA, DEMO}};

/* The text grows by single ids and is truncated now and then. At the end, its ids in the draft model's vocabulary must
 * be those that the tokenizer gives for the whole text. */
START_TEST(a_text_is_the_same_in_other_ids) {
    vocabularies v = open_vocabularies(pairs[_i].from, pairs[_i].to);
    int32_t *ids, *whole;
    size_t count, expected, told = 0;
    require(fr_tokenize(fr_model_tokenizer(v.models[0]), text, strlen(text), false, false, &ids, &count));
    require(fr_tokenize(fr_model_tokenizer(v.models[1]), text, strlen(text), true, false, &whole, &expected));
    for (size_t length = 1, cuts = 0; length <= count; length++) {
        ck_assert(fr_same_text_follow(&v.text, ids, length, told));
        check_same(&v, ids, length);
        told = length;
        v.text.stands = v.text.count;
        if (length % 17 || cuts == length) continue;
        cuts = length;
        fr_same_text_cut(&v.text, told = length -= 13);
        ck_assert_uint_le(v.text.stands, v.text.count);
    }
    ck_assert_uint_eq(v.text.count, expected);
    ck_assert_mem_eq(v.text.ids, whole, expected * sizeof *whole);
    fr_free(ids);
    fr_free(whole);
    close_vocabularies(&v);
}
END_TEST

/* `stands` is the number of ids at the beginning that the last change of the text has kept. These ids must be the same
 * before and after the change. */
START_TEST(what_stands_has_not_changed) {
    static int32_t before[2 * CONTEXT];
    vocabularies v = open_vocabularies(pairs[_i].from, pairs[_i].to);
    int32_t *ids;
    size_t count, kept = 0, all = 0;
    require(fr_tokenize(fr_model_tokenizer(v.models[0]), text, strlen(text), false, false, &ids, &count));
    for (size_t length = 1; length <= count; length++) {
        ck_assert(fr_same_text_follow(&v.text, ids, length, length - 1));
        ck_assert_mem_eq(v.text.ids, before, v.text.stands * sizeof *before);
        kept += v.text.stands;
        all += v.text.count;
        memcpy(before, v.text.ids, v.text.count * sizeof *before);
        v.text.stands = v.text.count;
    }
    ck_assert_uint_gt(kept * 10, all * 9);
    fr_free(ids);
    close_vocabularies(&v);
}
END_TEST

/* The draft model has room for a limited number of ids. If the text has more ids than that, only its newer half is
 * kept. `origin` is then the number of the target's ids before the kept half. */
START_TEST(a_text_too_long_loses_its_first_half) {
    int32_t ids[CONTEXT];
    vocabularies v = open_vocabularies(DEMO, LLAMA);
    int32_t longest = 0, id = 0;
    size_t length = 0, most = 0;
    while (id < DEMO_VOCAB) {
        fr_tokenizer_printed(fr_model_tokenizer(v.models[0]), id, &length);
        if (length > most && fr_token_kind_of(fr_model_tokenizer(v.models[0]), id) == FR_TOKEN_TEXT) longest = id;
        if (longest == id) most = length;
        id++;
    }
    for (size_t i = 0; i < CONTEXT; i++) ids[i] = longest;
    ck_assert(fr_same_text_follow(&v.text, ids, CONTEXT, 0));
    ck_assert_uint_gt(v.text.origin, 0);
    ck_assert_uint_lt(v.text.origin, CONTEXT);
    check_same(&v, ids + v.text.origin, CONTEXT - v.text.origin);
    ck_assert(fr_same_text_follow(&v.text, ids, 3, 3));
    ck_assert_uint_eq(v.text.origin, 0);
    check_same(&v, ids, 3);
    close_vocabularies(&v);
}
END_TEST

/* Drafts are converted back to the target's ids. The conversion ends before the first control token, because it has no
 * text. */
START_TEST(control_tokens_do_not_go_back) {
    vocabularies v = open_vocabularies(DEMO, LLAMA);
    const fr_tokenizer *demo = fr_model_tokenizer(v.models[0]), *llama = fr_model_tokenizer(v.models[1]);
    int32_t *said, back[16];
    size_t count, taken, length, bytes = 0;
    require(fr_tokenize(llama, "return None", 11, false, false, &said, &count));
    taken = fr_same_text_back(&v.text, said, count, back, 16);
    for (size_t i = 0; i < taken; i++, bytes += length) fr_tokenizer_printed(demo, back[i], &length);
    ck_assert_uint_eq(bytes, 11);
    ck_assert_uint_eq(fr_same_text_back(&v.text, said, count, back, 1), 1);
    said[0] = fr_tokenizer_eos(llama);
    ck_assert_uint_eq(fr_same_text_back(&v.text, said, count, back, 16), 0);
    fr_free(said);
    close_vocabularies(&v);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- drafting */

typedef struct subject {
    fr_options *options;
    fr_model *target;
    fr_drafter *drafter;
    int32_t *prompt;
    size_t count;
} subject;

static void set(const subject *s, fr_option option, int64_t value) {
    require(fr_options_set(s->options, option, value));
}

static subject open_subject(const char *target, const char *drafter) {
    static const char prompt[] = "class Parser:\n    def read(self, path):\n        with open(path) as file:\n";
    subject s = {.options = fr_options_new()};
    set(&s, FR_OPT_CONTEXT, 256);
    set(&s, FR_OPT_THREADS, 2);
    set(&s, FR_OPT_IGNORE_EOS, 1);
    require(fr_model_open(target, s.options, &s.target));
    require(fr_drafter_open(drafter, s.target, s.options, &s.drafter));
    ck_assert_ptr_eq(s.drafter->method, &fr_draft_text);
    require(fr_tokenize(fr_model_tokenizer(s.target), prompt, strlen(prompt), true, false, &s.prompt, &s.count));
    return s;
}

static void close_subject(subject *s) {
    fr_free(s->prompt);
    fr_drafter_close(s->drafter);
    fr_model_close(s->target);
    fr_options_free(s->options);
}

static fr_session *open_session(const subject *s, bool drafts, int64_t depth) {
    fr_session *session;
    set(s, FR_OPT_DRAFT_MAX, depth);
    require(fr_session_open(s->target, drafts ? s->drafter : NULL, s->options, &session));
    require(fr_session_prompt(session, s->prompt, s->count));
    return session;
}

static void write_on(fr_session *session, int32_t *ids, size_t wanted) {
    for (size_t made = 0, got, accepted; made < wanted; made += got)
        require(fr_session_step(session, ids + made, wanted - made, &got, &accepted));
}

static void draw(const subject *s) {
    require(fr_options_set_number(s->options, FR_OPT_TEMPERATURE, 0.9));
    set(s, FR_OPT_SEED, 5);
}

/* Tests greedy and sampled text at several draft depths. The draft models were not made for the target. */
START_TEST(the_text_is_the_targets) {
    static const int64_t depths[] = {1, 4, FR_STEP_MAX - 1};
    int32_t plain[TEXT], drafted[TEXT];
    subject s = open_subject(pairs[_i / 2].from, pairs[_i / 2].to);
    if (_i % 2) draw(&s);
    fr_session *session = open_session(&s, false, 0);
    write_on(session, plain, TEXT);
    fr_session_close(session);
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        session = open_session(&s, true, depths[i]);
        write_on(session, drafted, TEXT);
        ck_assert_double_gt(fr_session_stat(session, FR_STAT_DRAFTED), 0);
        fr_session_close(session);
        ck_assert_mem_eq(plain, drafted, sizeof plain);
    }
    close_subject(&s);
}
END_TEST

/* The draft model is the target with renumbered ids. If its tokenizer is otherwise the same, nearly all drafts are
 * accepted. If its tokenizer has fewer merges, some drafts are accepted. */
START_TEST(the_target_under_other_ids_drafts_what_it_says) {
    static const double least[] = {0.9, 0.2};
    int32_t plain[TEXT], drafted[TEXT];
    fr_changed_folder folder = make_other(_i);
    subject s = open_subject(DEMO, folder.path);
    fr_session *session = open_session(&s, false, 0);
    write_on(session, plain, TEXT);
    fr_session_close(session);
    session = open_session(&s, true, 4);
    write_on(session, drafted, TEXT);
    double accepted = fr_session_stat(session, FR_STAT_ACCEPTED), all = fr_session_stat(session, FR_STAT_DRAFTED);
    ck_assert_double_gt(all, 20);
    ck_assert_double_gt(accepted, least[_i] * all);
    ck_assert_mem_eq(plain, drafted, sizeof plain);
    fr_session_close(session);
    close_subject(&s);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Runs a round. Then compares the session's drafts with the drafts of a new session. The new session gets all ids of
 * the first session as its prompt. */
static void check_drafts(const subject *s, fr_session *session, int32_t *ids, size_t *count) {
    int32_t drafts[FR_STEP_MAX], expected[FR_STEP_MAX], id;
    size_t proposed, fresh, got, accepted;
    fr_session *alone;
    require(fr_session_step(session, ids + *count, FR_STEP_MAX, &got, &accepted));
    *count += got;
    require(fr_session_open(s->target, s->drafter, s->options, &alone));
    require(fr_session_prompt(alone, ids, *count - 1));
    require(fr_session_step(alone, &id, 1, &got, &accepted));
    ck_assert_int_eq(id, ids[*count - 1]);
    require(fr_draft_now(alone, 5, expected, &fresh, NULL));
    require(fr_draft_now(session, 5, drafts, &proposed, NULL));
    ck_assert_uint_ge(proposed, 1);
    ck_assert_uint_eq(proposed, fresh);
    ck_assert_mem_eq(drafts, expected, proposed * sizeof *drafts);
    fr_session_close(alone);
}

/* Checks drafts after a session was truncated, extended, forked, saved and restored. */
START_TEST(a_timeline_that_changes_is_followed) {
    int32_t ids[256];
    void *saved;
    size_t size, count, forks;
    fr_changed_folder folder = make_other(true);
    subject s = open_subject(DEMO, folder.path);
    fr_session *session, *fork, *other;
    fr_engine *engine;
    set(&s, FR_OPT_DRAFT_MAX, 3);
    require(fr_engine_open(s.target, s.drafter, s.options, 2, &engine));
    require(fr_engine_session(engine, s.options, &session));
    require(fr_session_prompt(session, s.prompt, s.count));
    memcpy(ids, s.prompt, (count = s.count) * sizeof *ids);
    for (int round = 0; round < 12; round++) check_drafts(&s, session, ids, &count);
    require(fr_session_truncate(session, count -= 11));
    require(fr_session_prompt(session, s.prompt + 1, 9));
    memcpy(ids + count, s.prompt + 1, 9 * sizeof *ids);
    count += 9;
    for (int round = 0; round < 3; round++) check_drafts(&s, session, ids, &count);
    require(fr_session_save_bytes(session, &saved, &size));
    require(fr_session_fork(session, NULL, &fork));
    forks = count;
    for (int round = 0; round < 3; round++) check_drafts(&s, fork, ids, &forks);
    fr_session_close(fork);
    require(fr_session_open(s.target, s.drafter, s.options, &other));
    require(fr_session_restore_bytes(other, saved, size));
    for (int round = 0; round < 3; round++) check_drafts(&s, other, ids, &count);
    fr_session_close(other);
    fr_free(saved);
    fr_session_close(session);
    fr_engine_close(engine);
    close_subject(&s);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* Sessions of an engine make their drafts in one batch, each for its own text. */
START_TEST(sessions_draft_together) {
    enum { SESSIONS = 3 };
    int32_t ids[SESSIONS][TEXT + FR_STEP_MAX], plain[SESSIONS][TEXT];
    size_t length[SESSIONS] = {0};
    fr_changed_folder folder = make_other(true);
    subject s = open_subject(DEMO, folder.path);
    fr_session *sessions[SESSIONS];
    fr_engine *engine;
    for (size_t i = 0; i < SESSIONS; i++, s.count -= 4) {
        fr_session *session = open_session(&s, false, 0);
        write_on(session, plain[i], TEXT);
        fr_session_close(session);
    }
    s.count += 4 * SESSIONS;
    set(&s, FR_OPT_DRAFT_MAX, 4);
    require(fr_engine_open(s.target, s.drafter, s.options, SESSIONS, &engine));
    for (size_t i = 0; i < SESSIONS; i++) {
        require(fr_engine_session(engine, s.options, &sessions[i]));
        require(fr_session_put(sessions[i], s.prompt, s.count - 4 * i));
    }
    for (size_t going = SESSIONS; going;) {
        fr_round rounds[SESSIONS];
        size_t which[SESSIONS];
        going = 0;
        for (size_t i = 0; i < SESSIONS; i++)
            if (length[i] < TEXT) {
                rounds[going] = (fr_round){.session = sessions[i], .ids = ids[i] + length[i], .limit = FR_STEP_MAX};
                which[going++] = i;
            }
        require(fr_engine_step(engine, rounds, going));
        for (size_t i = 0; i < going; i++) {
            require(rounds[i].status);
            length[which[i]] += rounds[i].count;
        }
    }
    for (size_t i = 0; i < SESSIONS; i++) {
        ck_assert_mem_eq(ids[i], plain[i], sizeof plain[i]);
        ck_assert_double_gt(fr_session_stat(sessions[i], FR_STAT_ACCEPTED), 0);
        fr_session_close(sessions[i]);
    }
    fr_engine_close(engine);
    close_subject(&s);
    fr_changed_folder_remove(&folder);
}
END_TEST

FR_SUITE("draft_text") {
    enum { PAIRS = sizeof pairs / sizeof *pairs };
    TCase *cases = tcase_create("draft_text");
    tcase_set_timeout(cases, 240);
    tcase_add_loop_test(cases, a_text_is_the_same_in_other_ids, 0, PAIRS);
    tcase_add_loop_test(cases, what_stands_has_not_changed, 0, PAIRS);
    tcase_add_test(cases, a_text_too_long_loses_its_first_half);
    tcase_add_test(cases, control_tokens_do_not_go_back);
    fr_test_add_loop(cases, the_text_is_the_targets, 2 * PAIRS, 2);
    tcase_add_loop_test(cases, the_target_under_other_ids_drafts_what_it_says, 0, 2);
    fr_test_add_long(cases, a_timeline_that_changes_is_followed);
    tcase_add_test(cases, sessions_draft_together);
    suite_add_tcase(suite, cases);
}
