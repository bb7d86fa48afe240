/* Tests --prompt-cache and the options for the memory of a session, as users call them. With a cache the text must be
 * the same as without, and fewer tokens must be run. */
/* suite: native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define START "-p 'The cat sat on the mat, and the dog' "

static char folder[32], file[64];

static json_t *run_json(const char *options) {
    fr_command c =
        fr_command_ok("generate " DEMO "-n 40 --ignore-eos --output json %s --prompt-cache %s", options, file);
    json_t *object = json_loads(c.out, 0, NULL);
    ck_assert_ptr_nonnull(object);
    fr_command_free(&c);
    return object;
}

static json_int_t stat_of(const json_t *object, const char *name) {
    return json_integer_value(fr_json_get(fr_json_get(object, "stats"), name));
}

START_TEST(a_cached_prompt_is_not_run_again) {
    json_t *plain = run_json(START), *again = run_json(START DEMO_DRAFTER "-t 1 --isa scalar --chunk 7 -c 300"),
           *longer = run_json("-p 'The cat sat on the mat, and the dog was not amused' ");
    ck_assert(json_equal(fr_json_get(plain, "ids"), fr_json_get(again, "ids")));
    json_int_t prompt = stat_of(plain, "prompt_tokens");
    ck_assert_int_eq(stat_of(plain, "reused_tokens"), 0);
    ck_assert_int_eq(stat_of(again, "reused_tokens"), prompt);
    ck_assert_int_eq(stat_of(again, "prompt_tokens"), 0);
    ck_assert_int_le(stat_of(again, "rerun_tokens"), 1);
    ck_assert_int_ge(stat_of(longer, "reused_tokens"), prompt);
    unlink(file);
    json_t *fresh = run_json("-p 'The cat sat on the mat, and the dog was not amused' ");
    ck_assert(json_equal(fr_json_get(longer, "ids"), fr_json_get(fresh, "ids")));
    json_decref(plain);
    json_decref(again);
    json_decref(longer);
    json_decref(fresh);
}
END_TEST

/* The statistics must give a rate for the prompt's tokens that were run. If all of them were in the cache, there must
 * be no rate. */
START_TEST(figures_tell_what_was_cached) {
    static const char *const options[] = {START, START, "-p 'The cat sat on the mat, and the dog was not amused'"};
    static const char *const rates[] = {" tokens/s\ngenerated", NULL, " that were run\nreused"};
    for (size_t i = 0; i < 3; i++) {
        fr_command c = fr_command_ok("generate " DEMO "-no-cnv -n 1 --stats %s --prompt-cache %s", options[i], file);
        const char *reused = strstr(c.err, "\nreused ");
        ck_assert_msg(strncmp(c.err, "prompt ", 7) == 0 && !reused == (i == 0), "%s", c.err);
        const char *rate = strstr(c.err, " tokens/s");
        if (rates[i])
            ck_assert_msg(strstr(c.err, rates[i]) != NULL, "%s", c.err);
        else
            ck_assert_msg(rate > reused, "%s", c.err);
        fr_command_free(&c);
    }
}
END_TEST

/* With -n 0, generate must run the prompt and generate nothing. The next run must find the prompt in the cache. */
START_TEST(a_cache_is_filled_without_generating) {
    fr_command c = fr_command_ok("generate " DEMO START "-n 0 --prompt-cache %s", file);
    ck_assert_str_eq(c.out, "");
    ck_assert_int_eq(access(file, F_OK), 0);
    fr_command_free(&c);
    json_t *filled = run_json(START);
    ck_assert_int_gt(stat_of(filled, "reused_tokens"), 0);
    ck_assert_int_eq(stat_of(filled, "prompt_tokens"), 0);
    ck_assert_int_le(stat_of(filled, "rerun_tokens"), 1);
    unlink(file);
    json_t *fresh = run_json(START);
    ck_assert(json_equal(fr_json_get(filled, "ids"), fr_json_get(fresh, "ids")));
    json_int_t prompt = stat_of(fresh, "prompt_tokens");
    ck_assert_int_eq(stat_of(filled, "reused_tokens"), prompt);
    c = fr_command_ok("generate " DEMO START "-n 0 --output json");
    json_t *nothing = json_loads(c.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(fr_json_get(nothing, "ids")), 0);
    ck_assert_str_eq(json_string_value(fr_json_get(nothing, "text")), "");
    ck_assert_str_eq(json_string_value(fr_json_get(nothing, "stop")), "length");
    ck_assert_int_eq(stat_of(nothing, "prompt_tokens"), prompt);
    ck_assert_int_eq(stat_of(nothing, "generated_tokens"), 0);
    fr_command_free(&c);
    json_decref(filled);
    json_decref(fresh);
    json_decref(nothing);
}
END_TEST

#define FIRST_TURNS  "The function returns a list.\nWhat is a dictionary of bytes?\n"
#define SECOND_TURNS "And more?\nA \"quoted\" word, \xff and caf\xc3\xa9.\n"

/* Reads the statistics of the turn with number `turn`, counted from 0. `figures` gets three numbers of tokens of that
 * turn's prompt: new tokens, cached tokens, and cached tokens that were run again. */
static void prompt_figures(const char *stats, size_t turn, int figures[3]) {
    for (size_t i = 0; i <= turn; i++) {
        stats = strstr(stats, "prompt  ");
        ck_assert_msg(stats++ != NULL, "no turn %zu", turn);
    }
    memset(figures, 0, 3 * sizeof *figures);
    ck_assert_int_ge(sscanf(stats, "rompt %d%*[^\n] reused %d tokens %d", &figures[0], &figures[1], &figures[2]), 2);
}

static char *read_file(const char *path, size_t *length) {
    FILE *open = fopen(path, "rb");
    ck_assert_ptr_nonnull(open);
    fseek(open, 0, SEEK_END);
    *length = (size_t)ftell(open);
    rewind(open);
    char *bytes = malloc(*length);
    ck_assert_uint_eq(fread(bytes, 1, *length, open), *length);
    fclose(open);
    return bytes;
}

/* If a second chat continues the first, both together must be like one chat. They must give the same answers and write
 * the same file at the end. They must not run more tokens for the last turn. */
START_TEST(a_second_chat_goes_on_where_the_first_ended) {
    static const char *const manners[] = {"-n 30", "-n 30 --temp 1 --seed 7 --system Briefly.",
                                          ("-n 30 --stop ~ --draft-max 3 " DEMO_DRAFTER)};
    const char *options = manners[_i];
    size_t lengths[2];
    char *files[2];
    fr_command one = fr_command_feed(FIRST_TURNS SECOND_TURNS, TALK "%s --stats --prompt-cache %s", options, file);
    files[0] = read_file(file, &lengths[0]);
    unlink(file);
    fr_command first, second;
    first = fr_command_feed(FIRST_TURNS, TALK "%s --prompt-cache %s", options, file);
    second = fr_command_feed(SECOND_TURNS, TALK "%s --stats --prompt-cache %s", options, file);
    files[1] = read_file(file, &lengths[1]);
    ck_assert_uint_eq(one.out_length, first.out_length + second.out_length);
    ck_assert_mem_eq(one.out, first.out, first.out_length);
    ck_assert_str_eq(one.out + first.out_length, second.out);
    ck_assert_uint_eq(lengths[0], lengths[1]);
    ck_assert_mem_eq(files[0], files[1], lengths[0]);
    for (size_t turn = 0; turn < 2; turn++) {
        int there[3], here[3];
        prompt_figures(one.err, 2 + turn, there);
        prompt_figures(second.err, turn, here);
        ck_assert_int_eq(here[0], there[0]);
        ck_assert_int_eq(here[1], there[1]);
        ck_assert_int_le(here[2], there[2] + 1);
    }
    ck_assert_ptr_nonnull(strstr(second.err, "goes on after 2 turns"));
    for (size_t i = 0; i < 2; i++) free(files[i]);
    fr_command_free(&one);
    fr_command_free(&first);
    fr_command_free(&second);
}
END_TEST

/* If a chat has no turn, the conversation in the file must stay. generate must keep it too. If a new system turn is
 * given, it must replace the old one. */
START_TEST(a_kept_conversation_stays) {
    fr_command first, nothing, again, one;
    one = fr_command_feed("Hello.\nAnd more?\n", TALK "-n 30 --system Briefly.");
    first = fr_command_feed("Hello.\n", TALK "-n 30 --system Briefly. --prompt-cache %s", file);
    nothing = fr_command_feed("", TALK "-n 30 --quiet --prompt-cache %s", file);
    ck_assert_str_eq(nothing.err, "");
    fr_command_free(&nothing);
    nothing = fr_command_ok("generate " DEMO "-n 3 -p Other --prompt-cache %s", file);
    again = fr_command_feed("And more?\n", TALK "-n 30 --prompt-cache %s", file);
    ck_assert_str_eq(one.out + first.out_length, again.out);
    fr_command_free(&again);
    again = fr_command_feed("/exit\n", TALK "-n 30 --system Otherwise --prompt-cache %s", file);
    size_t length;
    char *bytes = read_file(file, &length);
    static const char begin[] = "[{\"role\":\"system\",\"content\":\"Otherwise\"},{\"role\":\"user\"";
    ck_assert_ptr_nonnull(memmem(bytes, length, begin, strlen(begin)));
    ck_assert_ptr_null(memmem(bytes, length, "Briefly", 7));
    free(bytes);
    fr_command_free(&one);
    fr_command_free(&first);
    fr_command_free(&nothing);
    fr_command_free(&again);
}
END_TEST

/* Runs the command with this cache. It must end with exit status 1 and one error line. The line must contain this text
 * and name the file. The file must stay unchanged. */
static void expect_refused(const char *line, const char *says) {
    size_t before, after;
    char *bytes = read_file(file, &before), whole[256];
    snprintf(whole, sizeof whole, "%s --prompt-cache %s", line, file);
    fr_command c = fr_command_run(whole, "Hello.\n");
    ck_assert_int_eq(c.status, 1);
    ck_assert_str_eq(c.out, "");
    ck_assert_msg(strstr(c.err, says) && strstr(c.err, file), "%s", c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
    char *now = read_file(file, &after);
    ck_assert_uint_eq(before, after);
    ck_assert_mem_eq(bytes, now, before);
    free(bytes);
    free(now);
}

/* Saves a session of the demo model to the file. The bytes are attached to the session. */
static void attach(const char *bytes, size_t size) {
    fr_model *model;
    fr_session *session;
    fr_options *options = fr_options_new();
    require(fr_model_open("tools/demo/target", options, &model));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_attach(session, bytes, size));
    require(fr_session_save(session, file));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}

#define SAYS(role) "{\"role\":\"" role "\",\"content\":\"x\"}"

START_TEST(what_is_no_conversation_is_refused) {
    static const char *const others[] = {"\1\2",
                                         "[",
                                         "{}",
                                         "[1]",
                                         "[" SAYS("user") "]",
                                         "[" SAYS("assistant") "]",
                                         "[" SAYS("user") "," SAYS("user") "]",
                                         "[" SAYS("system") "," SAYS("system") "," SAYS("user") "]",
                                         "[{\"role\":\"user\",\"content\":[]}," SAYS("assistant") "]",
                                         "[{\"content\":\"x\"}," SAYS("assistant") "]"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        attach(others[i], strlen(others[i]));
        expect_refused(TALK, "no conversation");
    }
    static const char deep[1 << 16] = {[0 ... sizeof deep - 1] = '['};
    attach(deep, sizeof deep);
    expect_refused(TALK, "no conversation");
}
END_TEST

START_TEST(a_refused_file_stays_as_it_is) {
    fr_command c = fr_command_feed("Hello.\n", TALK "-n 5 --prompt-cache %s", file);
    fr_command_free(&c);
    expect_refused("chat -m tests/data/glm-ocr", "another model");
    expect_refused(TALK "-ctk q8_0", "other types");
    size_t length;
    char *bytes = read_file(file, &length);
    FILE *open = fopen(file, "wb");
    bytes[length / 2] ^= 1;
    ck_assert(open && fwrite(bytes, 1, length, open) == length && fclose(open) == 0);
    free(bytes);
    expect_refused(TALK, "damaged");
}
END_TEST

/* An empty file must be no error. mktemp makes such files, and a run that is killed before it saves its session leaves
 * one. The command must begin a new session and save it in the file. */
START_TEST(an_empty_file_begins_a_session) {
    fr_command plain = fr_command_ok("generate " DEMO START "-n 8 --ignore-eos --output ids --quiet"), saved, c;
    for (int chat = 0; chat < 2; chat++) {
        struct stat there;
        FILE *empty = fopen(file, "wb");
        ck_assert(empty && fclose(empty) == 0);
        if (chat) {
            c = fr_command_feed("Hello.\n", "chat " DEMO "-n 5 --prompt-cache %s", file);
            ck_assert_int_eq(c.status, 0);
            fr_command_free(&c);
        } else {
            saved =
                fr_command_ok("generate " DEMO START "-n 8 --ignore-eos --output ids --quiet --prompt-cache %s", file);
            ck_assert_str_eq(saved.out, plain.out);
            fr_command_free(&saved);
        }
        ck_assert(stat(file, &there) == 0 && there.st_size > 0);
    }
    fr_command_free(&plain);
}
END_TEST

START_TEST(a_file_that_is_no_cache_of_this_is_exit_1) {
    fr_command c;
    char line[256];
    json_decref(run_json(START));
    snprintf(line, sizeof line, "generate " MODEL "--ids 2,3 -n 4 --prompt-cache %s", file);
    c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "another model"));
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
    snprintf(line, sizeof line, "generate " DEMO START "-n 4 -ctk q8_0 --prompt-cache %s", file);
    c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "other types"));
    fr_command_free(&c);
    c = fr_command_run("generate " DEMO START "-n 4 --prompt-cache tests", NULL);
    ck_assert_int_eq(c.status, 1);
    fr_command_free(&c);
}
END_TEST

/* The cache can't be written in this folder. The error must come before the prompt is run, so that no text is
 * printed. */
START_TEST(a_folder_that_takes_no_cache_is_found_at_once) {
    static const char *const verbs[] = {"generate " DEMO START "-n 4", TALK "-n 4"};
    char dangling[96], line[256];
    snprintf(dangling, sizeof dangling, "%s/dangling", folder);
    ck_assert_int_eq(symlink("nowhere/cache", dangling), 0);
    const char *const places[] = {"nowhere/cache", dangling, "tests", "tests/nowhere/"};
    for (size_t i = 0; i < 8; i++) {
        snprintf(line, sizeof line, "%s --prompt-cache %s", verbs[i % 2], places[i / 2]);
        fr_command c = fr_command_run(line, "Hi.\n");
        ck_assert_msg(c.status == 1, "%s: exit %d: %s", line, c.status, c.err);
        ck_assert_str_eq(c.out, "");
        ck_assert_ptr_nonnull(strstr(c.err, places[i / 2]));
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        fr_command_free(&c);
    }
    unlink(dangling);
}
END_TEST

/* If the cache is a symbolic link, the file to which it points must be written, even if that file doesn't exist yet. */
START_TEST(a_link_to_a_cache_stays_a_link) {
    char first[96], second[96], line[256];
    struct stat info;
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    ck_assert_int_eq(symlink("second", first), 0);
    ck_assert_int_eq(symlink(file, second), 0);
    for (int run = 0; run < 2; run++) {
        snprintf(line, sizeof line, "generate " DEMO START "-n 4 --prompt-cache %s", first);
        fr_command c = fr_command_ok("%s", line);
        fr_command_free(&c);
        ck_assert(lstat(first, &info) == 0 && S_ISLNK(info.st_mode));
        ck_assert(lstat(second, &info) == 0 && S_ISLNK(info.st_mode));
        ck_assert(lstat(file, &info) == 0 && S_ISREG(info.st_mode));
    }
    json_t *again = run_json(START);
    ck_assert_int_gt(stat_of(again, "reused_tokens"), 0);
    json_decref(again);
    unlink(file);
    unlink(second);
    ck_assert_int_eq(symlink("first", second), 0);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_str_eq(c.out, "");
    fr_command_free(&c);
    unlink(second);
    unlink(first);
}
END_TEST

START_TEST(what_is_kept_changes_no_text) {
    static const char *const options[] = {"--swa-full", "--ctx-checkpoints 0", "--swa-checkpoints 3"};
    const char *turns = "The function returns a list.\nWhat is a dictionary of bytes?\nAnd more?\n";
    fr_command usual = fr_command_feed(turns, TALK "-n 40"), other;
    for (size_t i = 0; i < 3; i++) {
        other = fr_command_feed(turns, TALK "-n 40 %s", options[i]);
        ck_assert_str_eq(usual.out, other.out);
        fr_command_free(&other);
    }
    fr_command_free(&usual);
}
END_TEST

/* --swa-full must change nothing for recurrent layers. It must also change nothing for layers that attend to all
 * positions. */
START_TEST(nothing_slides) {
    static const char recurs[] = "generate -m tests/data/models/qwen35-odd --ids 2,5 -n 2 --swa-full --output ids";
    fr_command c = fr_command_ok("%s", recurs),
               slides = fr_command_ok("generate " DEMO "-no-cnv -p Hi -n 2 --swa-full");
    ck_assert_str_eq(c.err, "forerun: --swa-full: no layer of this model slides\n");
    ck_assert_str_eq(slides.err, "");
    fr_command_free(&c);
    fr_command_free(&slides);
}
END_TEST

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/cache", folder);
}

static void remove_folder(void) {
    unlink(file);
    rmdir(folder);
}

FR_SUITE("cli_cache") {
    TCase *cases = tcase_create("cli_cache");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, a_cached_prompt_is_not_run_again);
    tcase_add_test(cases, figures_tell_what_was_cached);
    tcase_add_test(cases, a_cache_is_filled_without_generating);
    tcase_add_loop_test(cases, a_second_chat_goes_on_where_the_first_ended, 0, 3);
    tcase_add_test(cases, a_kept_conversation_stays);
    tcase_add_test(cases, what_is_no_conversation_is_refused);
    tcase_add_test(cases, a_refused_file_stays_as_it_is);
    tcase_add_test(cases, an_empty_file_begins_a_session);
    tcase_add_test(cases, a_file_that_is_no_cache_of_this_is_exit_1);
    tcase_add_test(cases, a_folder_that_takes_no_cache_is_found_at_once);
    tcase_add_test(cases, a_link_to_a_cache_stays_a_link);
    tcase_add_test(cases, what_is_kept_changes_no_text);
    tcase_add_test(cases, nothing_slides);
    suite_add_tcase(suite, cases);
}
