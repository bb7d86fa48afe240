/* Tests drafts that are looked up in the session's own text. The index of the text is compared with a plain search that
 * tries every suffix at every position. Other cases test how many steps an added id costs, what the method proposes
 * after prompts and rejections, and lists of several methods. */
/* suite: native */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/draft/draft_list.h"
#include "src/engine/draft/suffix_index.h"
#include "src/engine/session/state.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

/* ------------------------------------------------------------------------------------------------------------ index */

typedef struct indexed {
    fr_suffix_index index;
    fr_arena arena;
} indexed;

static void open_index(indexed *i, size_t capacity, size_t longest) {
    fr_arena measure = {0};
    fr_suffix_layout(&i->index, &measure, capacity, longest);
    i->arena = (fr_arena){0};
    require(fr_arena_open(&i->arena, measure.used, "index"));
    fr_suffix_layout(&i->index, &i->arena, capacity, longest);
    fr_suffix_reset(&i->index);
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Makes texts of six kinds: few or many different ids, repetitions with errors, a single id, and ids with bits that are
 * bad for hashing. */
enum { KINDS = 6 };
static void make_text(int32_t *text, size_t count, int kind, uint32_t seed) {
    static const uint32_t spread[KINDS] = {2, 4, 50, 3, 1, 1};
    for (size_t i = 0; i < count; i++) {
        text[i] = (int32_t)(next_random(&seed) % spread[kind]);
        if (kind == 3 && i >= 37 && next_random(&seed) % 16) text[i] = text[i - 37];
        if (kind == 5) text[i] = INT32_MIN + (int32_t)(i % 7 * (i % 11) << 20);
    }
}

/* Returns the length of the longest suffix of the first `count` ids that also occurs earlier, but at most `longest`.
 * Tries every suffix at every position. */
static size_t longest_by_trying(const int32_t *text, size_t count, size_t longest) {
    size_t best = 0;
    for (size_t end = 1; end < count; end++) {
        size_t length = 0;
        while (length < end && length < longest && text[end - 1 - length] == text[count - 1 - length]) length++;
        if (length > best) best = length;
    }
    return best;
}

START_TEST(the_match_is_the_longest_suffix_that_stood_before) {
    enum { COUNT = 400 };
    static const size_t longests[] = {1, 3, 8, 32, COUNT};
    int32_t text[COUNT];
    for (size_t l = 0; l < 5; l++)
        for (uint32_t seed = 1; seed <= 3; seed++) {
            indexed i;
            open_index(&i, COUNT, longests[l]);
            make_text(text, COUNT, _i, seed);
            for (size_t count = 1; count <= COUNT; count++) {
                fr_suffix_add(&i.index, text[count - 1]);
                size_t match = i.index.match, end = i.index.end;
                ck_assert_uint_eq(match, longest_by_trying(text, count, longests[l]));
                if (match == 0) continue;
                ck_assert(end >= match && end < count);
                ck_assert_mem_eq(text + end - match, text + count - match, match * sizeof *text);
            }
            fr_arena_close(&i.arena);
        }
}
END_TEST

START_TEST(of_equal_matches_the_latest_seen_counts) {
    const int32_t text[] = {5, 6, 1, 5, 6, 2, 5, 6, 3, 5, 6};
    indexed i;
    open_index(&i, 16, 8);
    for (size_t count = 0; count < 11; count++) fr_suffix_add(&i.index, text[count]);
    ck_assert_uint_eq(i.index.match, 2);
    ck_assert_uint_eq(i.index.end, 8); /* in the earlier match, the next id was 3 */
    fr_arena_close(&i.arena);
}
END_TEST

/* Counts the index's steps. A step is a look-up of an edge, a new edge, or a move along a link. */
START_TEST(an_id_costs_a_bounded_number_of_steps) {
    enum { COUNT = 50000 };
    int32_t *text = malloc(COUNT * sizeof *text);
    indexed i;
    open_index(&i, COUNT, 32);
    make_text(text, COUNT, _i, 1);
    for (size_t count = 1; count <= COUNT; count++) {
        fr_suffix_add(&i.index, text[count - 1]);
        ck_assert_uint_le(i.index.steps, 12 * count);
    }
    ck_assert_uint_le(i.index.state_count, 2 * COUNT);
    ck_assert_uint_le(i.index.edge_count, 3 * COUNT);
    fr_arena_close(&i.arena);
    free(text);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- method */

typedef struct opened {
    fr_draft *draft;
    fr_arena arena;
} opened;

static const fr_draft_sizes draft_sizes = {.threads = 1, .context = 256};

static opened open_ngram(const fr_draft_method *method) {
    opened o = {0};
    fr_arena measure = {0};
    ck_assert_ptr_null(method->open(NULL, &measure, &draft_sizes));
    require(fr_arena_open(&o.arena, measure.used, "ngram"));
    o.draft = method->open(NULL, &o.arena, &draft_sizes);
    ck_assert_ptr_nonnull(o.draft);
    return o;
}

static size_t propose(fr_draft *draft, const int32_t *ids, size_t length, size_t count, int32_t *drafts) {
    const fr_draft_view view = {.ids = ids, .length = length};
    fr_proposal proposal = {.draft = draft, .view = &view, .count = count, .ids = drafts};
    require(fr_draft_propose_one(&proposal));
    return proposal.proposed;
}

static void begin(fr_draft *draft, const int32_t *ids, size_t length) {
    draft->method->begin(draft, &(fr_draft_view){.ids = ids, .length = length});
}

START_TEST(drafts_are_what_followed_and_go_around_a_circle) {
    const int32_t text[] = {9, 1, 2, 3, 4, 7, 1, 2, 3};
    const int32_t circle[] = {8, 1, 2, 3, 1, 2, 3};
    int32_t drafts[15];
    opened o = open_ngram(&fr_draft_ngram);
    begin(o.draft, text, 8);
    ck_assert_uint_eq(propose(o.draft, text, 8, 4, drafts), 0); /* a match must be longer than two ids */
    ck_assert_uint_eq(propose(o.draft, text, 9, 4, drafts), 4);
    ck_assert_mem_eq(drafts, ((int32_t[]){4, 7, 1, 2}), 4 * sizeof *drafts);
    begin(o.draft, circle, 7);
    ck_assert_uint_eq(propose(o.draft, circle, 7, 8, drafts), 8);
    ck_assert_mem_eq(drafts, ((int32_t[]){1, 2, 3, 1, 2, 3, 1, 2}), 8 * sizeof *drafts);
    fr_arena_close(&o.arena);
}
END_TEST

START_TEST(it_follows_a_new_prompt_a_cut_text_and_a_rejection) {
    int32_t text[] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 0, 0, 0}, drafts[15];
    opened o = open_ngram(&fr_draft_ngram);
    begin(o.draft, text, 6);
    ck_assert_uint_eq(propose(o.draft, text, 9, 1, drafts), 1);
    ck_assert_int_eq(drafts[0], 4);
    text[9] = 8; /* the target's id is 8, so the draft (4) was wrong */
    o.draft->method->commit(o.draft, &(fr_draft_view){.ids = text, .length = 10}, 1, 0);
    ck_assert_uint_eq(propose(o.draft, text, 10, 1, drafts), 0);
    text[3] = 1, text[4] = 2, text[5] = 3; /* as if the text was truncated to three ids and a new prompt followed */
    begin(o.draft, text, 6);
    ck_assert_uint_eq(propose(o.draft, text, 6, 3, drafts), 3);
    ck_assert_mem_eq(drafts, ((int32_t[]){1, 2, 3}), 3 * sizeof *drafts);
    begin(o.draft, (int32_t[]){1, 2}, 2);
    ck_assert_uint_eq(propose(o.draft, (int32_t[]){1, 2}, 2, 3, drafts), 0);
    fr_arena_close(&o.arena);
}
END_TEST

START_TEST(before_another_method_only_a_long_match_counts) {
    int32_t text[32], drafts[15];
    for (size_t i = 0; i < 32; i++) text[i] = (int32_t)(i % 16);
    opened o = open_ngram(&fr_draft_ngram_first);
    begin(o.draft, text, 16);
    for (size_t length = 17; length <= 32; length++)
        ck_assert_uint_eq(propose(o.draft, text, length, 5, drafts), length < 24 ? 0 : 5);
    fr_arena_close(&o.arena);
}
END_TEST

/* Returns how many looked-up drafts the method proposes. The method proposes them only if they gain more than a
 * drafter's drafts would. Verifying one more row costs as much time as generating `row` tokens. A drafter could make up
 * to `made` drafts, and each would gain `gain` tokens. */
static size_t find(fr_draft *draft, const int32_t *ids, size_t length, double row, size_t made, double gain) {
    int32_t drafts[FR_STEP_MAX];
    fr_draft_gain gains = {0};
    for (size_t d = 0; d < FR_STEP_MAX; d++) {
        gains.found[d] = row;
        gains.next[d] = 1;
        gains.step[d] = 1 - gain;
    }
    const fr_draft_view view = {.ids = ids, .length = length};
    fr_proposal proposal = {
        .draft = draft, .view = &view, .count = made, .most_found = 6, .gains = &gains, .ids = drafts};
    require(fr_draft_propose_one(&proposal));
    ck_assert_int_eq(proposal.found, proposal.proposed > 0);
    return proposal.proposed;
}

START_TEST(as_many_are_found_as_are_worth_their_rows) {
    int32_t text[26];
    for (size_t i = 0; i < 26; i++) text[i] = (int32_t)(i % 16);
    opened o = open_ngram(&fr_draft_ngram_first);
    begin(o.draft, text, 18);
    ck_assert_uint_eq(find(o.draft, text, 18, 0, 0, 0), 0); /* a match must be longer than two ids */
    /* Five ids match. After such a match, and if all earlier drafts of the chain are accepted, the method expects these
     * probabilities that a draft is accepted: 0.5, 0.6, 0.6, 0.7, 0.7 and 0.7 at depths 1 to 6. */
    begin(o.draft, text, 21);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.51, 0, 0), 0);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.49, 0, 0), 1);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.29, 0, 0), 2);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.17, 0, 0), 3);
    ck_assert_uint_eq(find(o.draft, text, 21, 0, 0, 0), 6);
    fr_arena_close(&o.arena);
}
END_TEST

START_TEST(what_is_made_may_gain_more) {
    int32_t text[21];
    for (size_t i = 0; i < 21; i++) text[i] = (int32_t)(i % 16);
    opened o = open_ngram(&fr_draft_ngram);
    begin(o.draft, text, 21);
    /* the looked-up draft is accepted with probability 0.5 and costs 0.4 tokens, so its gain of 0.1 exceeds 0.09 */
    ck_assert_uint_eq(find(o.draft, text, 21, 0.4, 1, 0.09), 1);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.4, 1, 0.11), 0);
    /* the gain of 0.1 does not exceed 0.12, the gain of the drafter's two drafts */
    ck_assert_uint_eq(find(o.draft, text, 21, 0.4, 2, 0.06), 0);
    ck_assert_uint_eq(find(o.draft, text, 21, 0.4, 2, -0.5), 1);
    fr_arena_close(&o.arena);
}
END_TEST

/* A different id follows each "1 2 3". If the method drafts the id that followed the last "1 2 3", the draft is always
 * wrong. When the model generates this text, the method must learn that such drafts are rejected. */
START_TEST(an_answer_tells_how_often_they_stand) {
    int32_t text[200];
    for (size_t i = 0; i < 200; i++) text[i] = i % 4 < 3 ? (int32_t)(1 + i % 4) : (int32_t)(100 + i);
    opened o = open_ngram(&fr_draft_ngram), of_prompt = open_ngram(&fr_draft_ngram);
    begin(o.draft, text, 7);
    ck_assert_uint_eq(find(o.draft, text, 7, 0.25, 0, 0), 1);
    ck_assert_uint_eq(find(o.draft, text, 11, 0.25, 0, 0), 1);
    ck_assert_uint_eq(find(o.draft, text, 199, 0.25, 0, 0), 0);
    /* the method learns nothing from a prompt, because the model has not generated it */
    begin(of_prompt.draft, text, 199);
    ck_assert_uint_eq(find(of_prompt.draft, text, 199, 0.25, 0, 0), 1);
    fr_arena_close(&o.arena);
    fr_arena_close(&of_prompt.arena);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- sessions */

enum { COUNT = 300 };

typedef struct outcome {
    int32_t ids[COUNT];
    double drafted, accepted, calls;
} outcome;

static outcome generate(const char *words, int depth, bool with_drafter) {
    outcome out = {0};
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    int32_t *prompt;
    size_t count;
    fr_options *options = fr_options_new();
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, words));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, depth));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open("tools/demo/target", options, &model));
    if (with_drafter) require(fr_drafter_open("tools/demo/assistant", model, options, &drafter));
    require(fr_session_open(model, drafter, options, &session));
    ck_assert_int_eq(fr_session_adapts(session), depth == FR_DRAFT_AUTO && strcmp(words, "none") != 0);
    require(fr_tokenize(fr_model_tokenizer(model), "Return a new", 12, true, true, &prompt, &count));
    require(fr_session_prompt(session, prompt, count));
    fr_free(prompt);
    for (size_t made = 0, got, accepted; made < COUNT; made += got)
        require(fr_session_step(session, out.ids + made, COUNT - made, &got, &accepted));
    out.drafted = fr_session_stat(session, FR_STAT_DRAFTED);
    out.accepted = fr_session_stat(session, FR_STAT_ACCEPTED);
    out.calls = fr_session_stat(session, FR_STAT_TARGET_CALLS);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
    return out;
}

START_TEST(a_text_that_repeats_itself_takes_fewer_calls) {
    outcome none = generate("none", 4, false), ngram = generate("ngram", 4, false);
    ck_assert_mem_eq(ngram.ids, none.ids, sizeof none.ids);
    ck_assert(none.calls == COUNT - 1 && none.drafted == 0);
    ck_assert_msg(ngram.calls < 0.7 * none.calls, "%g calls of %g", ngram.calls, none.calls);
}
END_TEST

START_TEST(combinations_say_the_same) {
    outcome none = generate("none", 3, true), mtp = generate("mtp", 3, true), both = generate("ngram,mtp", 3, true),
            turned = generate("mtp,ngram", FR_DRAFT_AUTO, true);
    ck_assert_mem_eq(mtp.ids, none.ids, sizeof none.ids);
    ck_assert_mem_eq(both.ids, none.ids, sizeof none.ids);
    ck_assert_mem_eq(turned.ids, none.ids, sizeof none.ids);
    ck_assert(both.accepted > 0 && both.calls < none.calls);
}
END_TEST

START_TEST(so_do_those_that_are_found_where_they_pay) {
    outcome none = generate("none", 3, true), found = generate("ngram", FR_DRAFT_AUTO, false),
            both = generate("ngram,mtp", FR_DRAFT_AUTO, true);
    ck_assert_mem_eq(found.ids, none.ids, sizeof none.ids);
    ck_assert_mem_eq(both.ids, none.ids, sizeof none.ids);
    ck_assert(found.drafted > 0 && both.drafted > 0);
}
END_TEST

/* The draft method `always` below drafts one id, 77, each time. These variables count what the session reports to the
 * method about its drafts. */
static size_t told_proposed, told_accepted, told_begins, told_rows;

static fr_draft *always_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);
static void always_propose(fr_proposal *first) {
    for (fr_proposal *p = first; p; p = p->next) {
        p->ids[0] = 77;
        p->proposed = 1;
    }
}
static void always_begin(fr_draft *draft, const fr_draft_view *view) {
    (void)draft;
    (void)view;
    told_begins++;
}
static void always_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    (void)draft;
    (void)view;
    told_proposed = proposed;
    told_accepted = accepted;
}
static fr_status always_follow(fr_draft *draft, const fr_draft_view *view) {
    (void)draft;
    (void)view;
    told_rows++;
    return FR_OK;
}
static const fr_draft_method always = {.name = "always",
                                       .open = always_open,
                                       .propose = always_propose,
                                       .begin = always_begin,
                                       .follow = always_follow,
                                       .commit = always_commit};
static fr_draft *always_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    (void)drafter;
    (void)sizes;
    fr_draft *draft = fr_arena_take(arena, 1, sizeof *draft);
    if (draft) *draft = (fr_draft){.method = &always, .follows = true};
    return draft;
}

START_TEST(in_a_combination_the_first_that_has_a_proposal_wins) {
    const fr_draft_list list = {.methods = {&fr_draft_ngram_first, &always}, .count = 2};
    int32_t text[32], drafts[15];
    for (size_t i = 0; i < 32; i++) text[i] = (int32_t)(i % 16);
    fr_arena arena = {0};
    void *const none[FR_DRAFTERS_MAX] = {NULL};
    ck_assert_ptr_null(fr_draft_list_open(&list, NULL, &arena, &draft_sizes, none));
    require(fr_arena_open(&arena, arena.used, "list"));
    fr_draft *draft = fr_draft_list_open(&list, NULL, &arena, &draft_sizes, none);
    begin(draft, text, 16);
    ck_assert_uint_eq(told_begins, 1);
    ck_assert_uint_eq(propose(draft, text, 23, 4, drafts), 1); /* seven ids match */
    ck_assert_int_eq(drafts[0], 77);
    draft->method->commit(draft, &(fr_draft_view){.ids = text, .length = 24}, 1, 1);
    ck_assert(told_proposed == 1 && told_accepted == 1);
    ck_assert_uint_eq(propose(draft, text, 24, 4, drafts), 4); /* eight ids match */
    ck_assert_mem_eq(drafts, text + 8, 4 * sizeof *drafts);
    draft->method->commit(draft, &(fr_draft_view){.ids = text, .length = 29}, 4, 4);
    ck_assert(told_proposed == 0 && told_accepted == 0);
    ck_assert_uint_eq(told_rows, 1); /* `always` was also given the rows of the round in which the lookup drafted */
    ck_assert(draft->finds && !draft->only_finds);
    ck_assert_uint_eq(find(draft, text, 29, 2, 0, 0), 0); /* each draft costs more than it gains, so there are none */
    ck_assert_uint_eq(told_rows, 2);
    ck_assert_uint_eq(find(draft, text, 29, 0, 0, 0), 6);
    fr_arena_close(&arena);
}
END_TEST

START_TEST(words_choose_methods) {
    fr_drafter drafter = {.method = &fr_draft_assistant};
    fr_draft_list list;
    require(fr_draft_list_choose("", NULL, &list));
    ck_assert(list.count == 1 && list.methods[0] == &fr_draft_none);
    require(fr_draft_list_choose("", &drafter, &list));
    ck_assert(list.count == 1 && list.methods[0] == &fr_draft_assistant);
    require(fr_draft_list_choose("none", &drafter, &list));
    ck_assert(list.count == 1 && list.methods[0] == &fr_draft_none);
    require(fr_draft_list_choose("ngram-mod,none,ngram", NULL, &list));
    ck_assert(list.count == 1 && list.methods[0] == &fr_draft_ngram);
    require(fr_draft_list_choose("ngram,draft-mtp", &drafter, &list));
    ck_assert(list.count == 2 && list.methods[0] == &fr_draft_ngram_first && list.methods[1] == &fr_draft_assistant);
    ck_assert_int_eq(fr_draft_list_choose("mtp", NULL, &list), FR_USAGE);
    ck_assert_int_eq(fr_draft_list_choose("ngram,eagle", NULL, &list), FR_USAGE);
    ck_assert_int_eq(fr_draft_words_check("ngrams"), FR_USAGE);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "none mtp eagle eagle3 dflash dflash2 dspark draft ngram"));
    ck_assert_int_eq(fr_draft_words_check("ngram,"), FR_USAGE);
    ck_assert_int_eq(fr_draft_words_check("eagle2"), FR_USAGE);
}
END_TEST

FR_SUITE("ngram") {
    TCase *cases = tcase_create("ngram");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, the_match_is_the_longest_suffix_that_stood_before, 0, KINDS);
    tcase_add_test(cases, of_equal_matches_the_latest_seen_counts);
    tcase_add_loop_test(cases, an_id_costs_a_bounded_number_of_steps, 0, KINDS);
    tcase_add_test(cases, drafts_are_what_followed_and_go_around_a_circle);
    tcase_add_test(cases, it_follows_a_new_prompt_a_cut_text_and_a_rejection);
    tcase_add_test(cases, before_another_method_only_a_long_match_counts);
    tcase_add_test(cases, as_many_are_found_as_are_worth_their_rows);
    tcase_add_test(cases, what_is_made_may_gain_more);
    tcase_add_test(cases, an_answer_tells_how_often_they_stand);
    tcase_add_test(cases, a_text_that_repeats_itself_takes_fewer_calls);
    tcase_add_test(cases, combinations_say_the_same);
    tcase_add_test(cases, so_do_those_that_are_found_where_they_pay);
    tcase_add_test(cases, in_a_combination_the_first_that_has_a_proposal_wins);
    tcase_add_test(cases, words_choose_methods);
    suite_add_tcase(suite, cases);
}
