/* The engine stores the times that it has measured in a file. The next run of the model reads them, so that it drafts
 * from its first token on. A damaged file is ignored. The generated ids must not depend on the file. */
/* suite: hostile native */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "src/engine/session/draft_times.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { TIMES = FR_DRAFT_DEPTH_ROWS + 1, FILE_BYTES = 8 + 8 + 8 * TIMES + 8, IDS = 24 };

static char place[64], folder[96]; /* `folder` is a path inside `place`; at first it does not exist */

static void open_place(void) {
    snprintf(place, sizeof place, "/tmp/forerun-times-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
    snprintf(folder, sizeof folder, "%s/a/b", place);
}

static void close_place(void) {
    char command[192];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", place, place);
    ck_assert_int_eq(system(command), 0);
}

/* ------------------------------------------------------------------------------------------------------ controller */

/* Returns the time of a forward pass on a machine where each further row costs a tenth of the first row. */
static double forward(size_t rows) {
    return 0.01 * (1 + 0.1 * (double)(rows - 1));
}

/* Runs rounds in which every draft is right. If `finds` is true, the drafts are looked up in earlier text; otherwise a
 * drafter makes them. All times are multiplied by `slower`. Returns the number of tokens. */
static size_t run_rounds(fr_draft_depth *depth, size_t rounds, double slower, bool finds) {
    fr_draft_depth_timeline timeline;
    size_t tokens = 0;
    fr_draft_depth_join(depth, &timeline);
    for (size_t i = 0; i < rounds; i++) {
        fr_draft_depth_part part = {.timeline = &timeline, .limit = finds ? 0 : 15, .most_found = finds ? 15 : 0};
        fr_draft_depth_choose(depth, &part, 1, 15, 0);
        part.looked_up = finds;
        part.drafted = part.accepted = finds ? part.found : part.asked;
        double draft = finds ? 0 : 0.001 * (double)part.asked;
        fr_draft_depth_report(depth, &part, 1, 0, slower * draft, slower * forward(part.drafted + 1));
        tokens += 1 + part.accepted;
    }
    return tokens;
}

/* Gives a new controller the times that another controller has learned. */
static void inherit(fr_draft_depth *depth, const fr_draft_depth *from) {
    double verify[TIMES], draft[FR_STEP_MAX];
    fr_draft_depth_reset(depth);
    fr_draft_depth_verify_times(from, verify);
    fr_draft_depth_draft_times(from, 0, draft);
    fr_draft_depth_inherit(verify, depth->earlier, FR_DRAFT_DEPTH_ROWS);
    fr_draft_depth_inherit(draft, depth->by[0].earlier, FR_STEP_MAX - 1);
}

START_TEST(a_run_with_earlier_times_drafts_from_its_first_token) {
    fr_draft_depth first, second;
    fr_draft_depth_reset(&first);
    size_t cold = run_rounds(&first, 6, 1, _i);
    run_rounds(&first, 200, 1, _i);
    inherit(&second, &first);
    ck_assert_uint_ge(run_rounds(&second, 1, 1, _i), 3);
    inherit(&second, &first);
    size_t warm = run_rounds(&second, 6, 1, _i);
    ck_assert_msg(warm >= 2 * cold, "6 rounds gave %zu tokens, and %zu without earlier times", warm, cold);
}
END_TEST

/* On a machine of half the speed all times are twice as long. The choices must stay the same, and the doubled times
 * must be stored. */
START_TEST(earlier_times_are_scaled) {
    fr_draft_depth first, fast, slow;
    double seconds[TIMES];
    fr_draft_depth_reset(&first);
    run_rounds(&first, 200, 1, true);
    inherit(&fast, &first);
    inherit(&slow, &first);
    ck_assert_uint_eq(run_rounds(&fast, 40, 1, true), run_rounds(&slow, 40, 2, true));
    ck_assert(fr_draft_depth_verify_times(&slow, seconds));
    for (size_t rows = 1; rows < TIMES; rows++) {
        double least = slow.verify[rows].count ? 2 : 1.9; /* unmeasured times are scaled by 1.9 to 2 */
        if (slow.earlier[rows] <= 0) continue;
        ck_assert_double_le(seconds[rows], 2 * slow.earlier[rows] + 1e-9);
        ck_assert_double_ge(seconds[rows], least * slow.earlier[rows] - 1e-9);
    }
}
END_TEST

/* According to the stored times, rows and drafts are expensive, but on this machine they cost little. Such wrong times
 * must slow down a text only a little, because new measurements replace them. */
START_TEST(wrong_times_are_forgotten) {
    fr_draft_depth wrong, right;
    fr_draft_depth_reset(&right);
    run_rounds(&right, 200, 1, _i);
    fr_draft_depth_reset(&wrong);
    double verify[TIMES], draft[FR_STEP_MAX];
    for (size_t rows = 0; rows < TIMES; rows++) verify[rows] = 0.01 * (double)(rows * rows);
    for (size_t k = 0; k < FR_STEP_MAX; k++) draft[k] = (double)k;
    fr_draft_depth_inherit(verify, wrong.earlier, FR_DRAFT_DEPTH_ROWS);
    fr_draft_depth_inherit(draft, wrong.by[0].earlier, FR_STEP_MAX - 1);
    run_rounds(&wrong, 200, 1, _i);
    size_t after = run_rounds(&wrong, 100, 1, _i), expected = run_rounds(&right, 100, 1, _i);
    ck_assert_msg(10 * after >= 9 * expected, "%zu tokens instead of %zu", after, expected);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- files */

/* An engine with a small model, and a session whose drafts are looked up in its text. */
typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_engine *engine;
    fr_session *session;
} subject;

static subject open_subject(const char *times) {
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_THREADS, 1));
    require(fr_options_set(s.options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "ngram"));
    require(fr_options_set_text(s.options, FR_OPT_DRAFT_TIMES, times));
    require(fr_model_open(FR_TEST_MODELS "llama", s.options, &s.model));
    require(fr_engine_open(s.model, NULL, s.options, 1, &s.engine));
    require(fr_engine_session(s.engine, s.options, &s.session));
    return s;
}

static void close_subject(subject *s) {
    fr_session_close(s->session);
    fr_engine_close(s->engine);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

static void generate(subject *s, int32_t *ids) {
    const int32_t prompt[] = {5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5, 6};
    size_t total = 0, count = 1;
    require(fr_session_prompt(s->session, prompt, sizeof prompt / sizeof *prompt));
    for (; total < IDS && count; total += count)
        require(fr_session_step(s->session, ids + total, IDS - total, &count, NULL));
    ck_assert_uint_eq(total, IDS);
}

/* Returns the path of the only file in `folder`. */
static const char *only_file(void) {
    static char path[512];
    DIR *entries = opendir(folder);
    size_t count = 0;
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.' && (!entry->d_name[1] || entry->d_name[1] == '.')) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count++;
    }
    closedir(entries);
    ck_assert_uint_eq(count, 1);
    return path;
}

/* Reads the file, which must have FILE_BYTES bytes. */
static void read_file(uint8_t bytes[FILE_BYTES]) {
    FILE *file = fopen(only_file(), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(bytes, 1, FILE_BYTES, file), FILE_BYTES);
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
}

static void write_file(const uint8_t *bytes, size_t size) {
    FILE *file = fopen(only_file(), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static bool has_times(const subject *s) {
    bool has = false;
    for (size_t rows = 1; rows < TIMES; rows++) has |= s->engine->draft_depth.earlier[rows] > 0;
    return has;
}

/* Lets a first run of the model write the file of times. */
static void store_times(int32_t *ids) {
    subject s = open_subject(folder);
    ck_assert(!has_times(&s));
    generate(&s, ids);
    close_subject(&s);
}

START_TEST(times_are_stored_and_read_and_no_id_depends_on_them) {
    int32_t first[IDS], second[IDS], without[IDS];
    struct stat info;
    subject s = open_subject("off");
    generate(&s, without);
    close_subject(&s);
    ck_assert_int_ne(stat(folder, &info), 0);
    store_times(first);
    ck_assert_int_eq(stat(folder, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(only_file(), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    s = open_subject(folder);
    ck_assert(has_times(&s));
    ck_assert_double_gt(s.engine->draft_depth.earlier[1], 0);
    generate(&s, second);
    close_subject(&s);
    ck_assert_mem_eq(first, without, sizeof without);
    ck_assert_mem_eq(second, without, sizeof without);
}
END_TEST

static const double no_times[] = {-1, 3601, 1e300, INFINITY, -INFINITY, NAN, -0.0001, 1e-300};

/* Changes the time of a forward pass of `rows` rows in the bytes of a file, and corrects the file's hash. */
static void set_time(uint8_t bytes[FILE_BYTES], size_t rows, double seconds) {
    memcpy(bytes + 16 + 8 * rows, &seconds, sizeof seconds);
    uint64_t hash = fr_hash(0, bytes, FILE_BYTES - 8);
    memcpy(bytes + FILE_BYTES - 8, &hash, sizeof hash);
}

static void expect_ignored(const uint8_t *bytes, size_t size) {
    write_file(bytes, size);
    subject s = open_subject(folder);
    ck_assert(!has_times(&s));
    close_subject(&s);
}

START_TEST(a_damaged_file_is_ignored) {
    uint8_t good[FILE_BYTES], bytes[FILE_BYTES + 1] = {0};
    int32_t ids[IDS], again[IDS];
    store_times(ids);
    read_file(good);
    for (size_t at = 0; at < FILE_BYTES; at += at < 32 || at > FILE_BYTES - 12 ? 1 : 37) {
        memcpy(bytes, good, FILE_BYTES);
        bytes[at] ^= 0x40;
        expect_ignored(bytes, FILE_BYTES);
    }
    expect_ignored(good, 0);
    expect_ignored(good, FILE_BYTES - 1);
    memcpy(bytes, good, FILE_BYTES);
    expect_ignored(bytes, FILE_BYTES + 1);
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        memcpy(bytes, good, FILE_BYTES);
        set_time(bytes, 3, no_times[i]);
        expect_ignored(bytes, FILE_BYTES);
    }
    /* Times that are valid but absurd are read. They must not change any generated id. */
    for (size_t form = 0; form < 3; form++) {
        memcpy(bytes, good, FILE_BYTES);
        for (size_t rows = 1; rows < TIMES; rows++)
            set_time(bytes, rows, form == 0 ? 1e-7 : form == 1 ? 3600 : rows % 2 ? 1e-7 : 3600);
        write_file(bytes, FILE_BYTES);
        subject s = open_subject(folder);
        ck_assert(has_times(&s));
        generate(&s, again);
        close_subject(&s);
        ck_assert_mem_eq(again, ids, sizeof ids);
    }
}
END_TEST

/* The path of the file of times may lead to a folder, a pipe or a device. The folder around the file may also lack
 * permissions. In none of these cases may a run fail. */
START_TEST(what_is_no_file_is_ignored) {
    int32_t ids[IDS], again[IDS];
    char path[512];
    store_times(ids);
    snprintf(path, sizeof path, "%s", only_file());
    for (size_t form = 0; form < 4; form++) {
        unlink(path);
        if (form == 0) ck_assert_int_eq(mkdir(path, 0700), 0);
        if (form == 1) ck_assert_int_eq(rmdir(path) | mkfifo(path, 0600), 0);
        if (form == 2) ck_assert_int_eq(symlink("/dev/zero", path), 0);
        if (form == 3) ck_assert_int_eq(chmod(folder, 0), 0);
        subject s = open_subject(folder);
        generate(&s, again);
        close_subject(&s);
        ck_assert_mem_eq(again, ids, sizeof ids);
    }
    static const char *const nowhere[] = {"/dev/null", "/dev/null/x", "/proc/self/x/y", "/", "no/such/folder/at/all"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        subject s = open_subject(nowhere[i]);
        generate(&s, again);
        close_subject(&s);
        ck_assert_mem_eq(again, ids, sizeof ids);
    }
}
END_TEST

/* Times that were measured with another model or another number of threads are stored in another file. */
START_TEST(each_number_of_threads_has_a_file) {
    int32_t ids[IDS];
    char first[512];
    store_times(ids);
    snprintf(first, sizeof first, "%s", only_file());
    unlink(first);
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_THREADS, 2));
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "ngram"));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_text(s.options, FR_OPT_DRAFT_TIMES, folder));
    require(fr_model_open(FR_TEST_MODELS "llama", s.options, &s.model));
    require(fr_engine_open(s.model, NULL, s.options, 1, &s.engine));
    require(fr_engine_session(s.engine, s.options, &s.session));
    generate(&s, ids);
    close_subject(&s);
    ck_assert_str_ne(only_file(), first);
}
END_TEST

/* Several processes store times at the same moment. They must leave one whole file and no temporary file. */
START_TEST(processes_store_at_once) {
    enum { PROCESSES = 4, TIMES_EACH = 25 };
    subject s = open_subject("off");
    mkdir(place, 0700);
    pid_t children[PROCESSES];
    for (size_t p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        for (size_t i = 0; children[p] == 0 && i < TIMES_EACH; i++) {
            run_rounds(&s.engine->draft_depth, 20, (double)(p + 1), true);
            fr_draft_times_store(s.engine, folder);
        }
        if (children[p] == 0) _exit(0);
    }
    for (size_t p = 0; p < PROCESSES; p++) {
        int status;
        ck_assert_int_eq(waitpid(children[p], &status, 0), children[p]);
        ck_assert_int_eq(status, 0);
    }
    close_subject(&s);
    uint8_t bytes[FILE_BYTES];
    read_file(bytes);
    s = open_subject(folder);
    ck_assert(has_times(&s));
    close_subject(&s);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- command */

#define RUN \
    "generate " DEMO "-p 'The cat sat. The cat sat. The cat' -n 24 --ignore-eos --temp 0 --spec-type ngram -t 1 "

static size_t count_files(const char *below) {
    char command[256], text[32] = "";
    snprintf(command, sizeof command, "find %s -name 'draft-times-*' 2>/dev/null | wc -l", below);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, pipe));
    pclose(pipe);
    return (size_t)strtoul(text, NULL, 10);
}

START_TEST(the_command_stores_times_in_the_cache_folder) {
    char cache[128];
    snprintf(cache, sizeof cache, "%s/cache", place);
    setenv("XDG_CACHE_HOME", cache, 1);
    fr_command off = fr_command_ok(RUN "--draft-times off"), none = fr_command_ok(RUN "--draft-max 0");
    ck_assert_uint_eq(count_files(place), 0);
    fr_command first = fr_command_ok(RUN), second = fr_command_ok(RUN "--quiet");
    snprintf(cache, sizeof cache, "%s/cache/forerun", place);
    ck_assert_uint_eq(count_files(cache), 1);
    fr_command own = fr_command_ok(RUN "--draft-times %s", folder);
    ck_assert_uint_eq(count_files(folder), 1);
    fr_command lost = fr_command_ok(RUN "--draft-times /dev/null/x");
    const fr_command *const all[] = {&none, &first, &second, &own, &lost};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ck_assert_str_eq(all[i]->out, off.out);
    ck_assert_str_eq(second.err, "");
    ck_assert_str_eq(lost.err, off.err);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", place, 1);
    fr_command home = fr_command_ok(RUN);
    snprintf(cache, sizeof cache, "%s/.cache/forerun", place);
    ck_assert_uint_eq(count_files(cache), 1);
    unsetenv("HOME");
    fr_command homeless = fr_command_ok(RUN);
    ck_assert_str_eq(homeless.out, home.out);
    fr_command_free(&off);
    fr_command_free(&none);
    fr_command_free(&first);
    fr_command_free(&second);
    fr_command_free(&own);
    fr_command_free(&lost);
    fr_command_free(&home);
    fr_command_free(&homeless);
}
END_TEST

FR_SUITE("draft_times") {
    TCase *cases = tcase_create("draft_times"), *damaged = tcase_create("damaged"), *command = tcase_create("command");
    tcase_add_checked_fixture(cases, open_place, close_place);
    tcase_add_checked_fixture(damaged, open_place, close_place);
    tcase_add_checked_fixture(command, open_place, close_place);
    tcase_set_timeout(damaged, 60);
    tcase_set_timeout(command, 60);
    tcase_add_loop_test(cases, a_run_with_earlier_times_drafts_from_its_first_token, 0, 2);
    tcase_add_test(cases, earlier_times_are_scaled);
    tcase_add_loop_test(cases, wrong_times_are_forgotten, 0, 2);
    tcase_add_test(cases, times_are_stored_and_read_and_no_id_depends_on_them);
    tcase_add_test(cases, each_number_of_threads_has_a_file);
    tcase_add_test(cases, processes_store_at_once);
    tcase_add_test(damaged, a_damaged_file_is_ignored);
    tcase_add_test(damaged, what_is_no_file_is_ignored);
    tcase_add_test(command, the_command_stores_times_in_the_cache_folder);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, damaged);
    suite_add_tcase(suite, command);
}
