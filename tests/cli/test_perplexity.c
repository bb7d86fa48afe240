/* Tests tools/cli/verb_perplexity.c and tools/cli/tasks.c. Their numbers must be those that were computed from
 * transformers' logits (tests/data/perplexity, tests/data/tasks). Files that can't be scored must be refused. */
/* suite: native */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define DATA "tests/data/perplexity"
#define TEXT "-f " DATA "/text.txt "

static char folder[256]; /* the test's files are here */

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-perplexity-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    char line[300];
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
}

static json_t *expected(void) {
    json_t *object = json_load_file(DATA "/expected.json", 0, NULL);
    ck_assert_ptr_nonnull(object);
    return object;
}

static double number(const json_t *object, const char *key) {
    return json_number_value(fr_json_get(object, key));
}

/* Returns the number after this word. The word must be at the beginning of a line of the output. */
static double printed(const fr_command *c, const char *word) {
    const char *at = strstr(c->out, word);
    ck_assert_msg(at != NULL && (at == c->out || at[-1] == '\n'), "no %s in: %s", word, c->out);
    return strtod(at + strlen(word), NULL);
}

static void check_near(double value, double reference, double share) {
    ck_assert_msg(fabs(value - reference) <= share * reference, "%.9g, the reference is %.9g", value, reference);
}

START_TEST(perplexity_is_the_references) {
    json_t *object = expected();
    const json_t *one = json_array_get(fr_json_get(object, "demo"), (size_t)_i);
    char stride[32] = "";
    if (number(one, "stride") > 0) snprintf(stride, sizeof stride, "--ppl-stride %.0f", number(one, "stride"));
    double chunk = number(one, "chunk"); /* 512 is the default, so for this number the test leaves -c out */
    fr_command c = chunk == 512 ? fr_command_ok("perplexity " DEMO TEXT)
                                : fr_command_ok("perplexity " DEMO TEXT "-c %.0f %s -t 1 --chunk 7", chunk, stride);
    ck_assert_double_eq(printed(&c, "scored "), number(one, "scored"));
    check_near(printed(&c, "perplexity "), number(one, "perplexity"), 1e-6);
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
    json_decref(object);
}
END_TEST

/* Writes a copy of the demo model in which the last 4 bits of each BF16 weight are 0, as in make_expected.py. */
static void write_blunt_model(const char *path) {
    static const char *const others[] = {"config.json", "tokenizer.json", "tokenizer_config.json"};
    char line[1024];
    ck_assert_int_eq(mkdir(path, 0777), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(line, sizeof line, "cp tools/demo/target/%s %s", others[i], path);
        ck_assert_int_eq(system(line), 0);
    }
    FILE *in = fopen("tools/demo/target/model.safetensors", "rb");
    snprintf(line, sizeof line, "%s/model.safetensors", path);
    FILE *out = fopen(line, "wb");
    uint64_t header;
    ck_assert(in && out && fread(&header, sizeof header, 1, in) == 1);
    fwrite(&header, sizeof header, 1, out);
    for (int byte; header > 0 && (byte = getc(in)) != EOF; header--) putc(byte, out);
    for (int low; (low = getc(in)) != EOF;) {
        putc(low & 0xf0, out);
        putc(getc(in), out);
    }
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(divergence_is_the_references) {
    json_t *object = expected();
    const json_t *blunt = fr_json_get(object, "blunt"), *divergence = fr_json_get(object, "divergence");
    char model[300];
    make_folder();
    snprintf(model, sizeof model, "%s/blunt", folder);
    write_blunt_model(model);
    fr_command base, other, same;
    base = fr_command_ok("perplexity " DEMO TEXT "-c 128 --kl-divergence-base %s/base", folder);
    other = fr_command_ok("perplexity -m %s --kl-divergence --kl-divergence-base %s/base", model, folder);
    check_near(printed(&other, "perplexity "), number(blunt, "perplexity"), 1e-6);
    check_near(printed(&other, "base-perplexity "), printed(&base, "perplexity "), 1e-4);
    /* The bounds are wide, because the file stores log-probabilities in 16 bits, and none below -16. */
    check_near(printed(&other, "kl-divergence "), number(divergence, "mean"), 2e-3);
    check_near(printed(&other, "kl-largest "), number(divergence, "largest"), 2e-3);
    check_near(printed(&other, "same-top "), 100 * number(divergence, "same_top"), 1e-5);

    same = fr_command_ok("perplexity " DEMO TEXT "--kl-divergence --kl-divergence-base %s/base", folder);
    ck_assert_double_eq(printed(&same, "same-top "), 100);
    ck_assert_double_lt(fabs(printed(&same, "kl-divergence ")), 1e-4);
    fr_command_free(&base);
    fr_command_free(&other);
    fr_command_free(&same);
    remove_folder();
    json_decref(object);
}
END_TEST

/* Runs the command, which must end with this exit status and one error line with this text. */
static void check_refused(const char *line, int status, const char *says) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d: %s", line, c.status, c.err);
    ck_assert_msg(strstr(c.err, says) != NULL, "%s: no \"%s\" in: %s", line, says, c.err);
    ck_assert_msg(strchr(c.err, '\n') == c.err + c.err_length - 1, "%s: not one line: %s", line, c.err);
    ck_assert_str_eq(c.out, "");
    fr_command_free(&c);
}

static const struct {
    int status;
    const char *line, *says;
} refused[] = {
    {2, DEMO, "needs a text"},
    {2, DEMO TEXT "--kl-divergence", "needs --kl-divergence-base"},
    {2, DEMO TEXT "-c 3", "4 ids or more"},
    {2, DEMO TEXT "-c 64 --ppl-stride 64", "must be longer"},
    {2, DEMO TEXT "--ppl-stride 8 --kl-divergence-base x", "no --ppl-stride"},
    {2, DEMO "--kl-divergence --kl-divergence-base x -c 64", "leave them out"},
    {2, DEMO TEXT "--ids 2", "takes no --ids"},
    {1, DEMO "-f /dev/null", "lower -c"},
    {1, DEMO TEXT "-c 1024", "991 ids, and a chunk takes 1024"},
    {1, DEMO TEXT "-c 1000000", "beyond the model's"},
    {1, DEMO "-f no/such/file", "no/such/file"},
    {1, DEMO "--kl-divergence --kl-divergence-base no/such/file", "no/such/file"},
    {1, DEMO "--kl-divergence --kl-divergence-base tools/demo/target/config.json",
     "not a file of a base model's logits"},
};

START_TEST(what_makes_no_sense_is_refused) {
    char line[512];
    snprintf(line, sizeof line, "perplexity %s", refused[_i].line);
    check_refused(line, refused[_i].status, refused[_i].says);
}
END_TEST

/* Damages a file of base logits in several ways. In each case there must be one error line and exit status 1. */
START_TEST(damaged_bases_are_refused) {
    static const struct {
        long at; /* where 4 bytes are overwritten; -1: instead, the last byte is cut off */
        int32_t value;
        const char *says;
    } damages[] = {
        {8, 3, "damaged header"},
        {8, 1 << 30, "damaged header"},
        {12, 4000, "not complete"},
        {16, 0, "damaged header"},
        {16, 2, "not complete"},
        {20, -5, "outside its vocabulary"},
        {24, 4096, "outside its vocabulary"},
        {24, 77, "another text"},
        {-1, 0, "not complete"},
    };
    char path[300], line[700];
    make_folder();
    snprintf(path, sizeof path, "%s/base", folder);
    fr_command c = fr_command_ok("perplexity " DEMO TEXT "-c 64 --chunks 1 --save-all-logits %s", path);
    fr_command_free(&c);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        snprintf(line, sizeof line, "cp %s %s.damaged", path, path);
        ck_assert_int_eq(system(line), 0);
        snprintf(line, sizeof line, "%s.damaged", path);
        FILE *file = fopen(line, "r+b");
        fseek(file, damages[i].at, damages[i].at < 0 ? SEEK_END : SEEK_SET);
        if (damages[i].at < 0)
            ck_assert_int_eq(ftruncate(fileno(file), ftell(file)), 0);
        else
            fwrite(&damages[i].value, 4, 1, file);
        fclose(file);
        snprintf(line, sizeof line, "perplexity " DEMO TEXT "--kl-divergence --kl-divergence-base %s.damaged", path);
        check_refused(line, 1, damages[i].says);
    }
    snprintf(line, sizeof line, "perplexity " MODEL "--kl-divergence --kl-divergence-base %s", path);
    check_refused(line, 1, "a vocabulary of 4096, the model's is 512");
    remove_folder();
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ tasks */

#define TASKS "tests/data/tasks"

static const struct {
    const char *name, *file;
} kinds[] = {{"hellaswag", "hellaswag.txt"}, {"winogrande", "winogrande.csv"}, {"multiple-choice", "answers.bin"}};

/* For each n, runs the first n tasks. If the run of n tasks has one right answer more than the run of n - 1 tasks, task
 * n was answered correctly. */
START_TEST(the_right_tasks_are_the_references) {
    json_t *object = json_load_file(TASKS "/expected.json", 0, NULL);
    const json_t *right = fr_json_get(object, kinds[_i].name);
    ck_assert_uint_gt(json_array_size(right), 5);
    long before = 0, tasks = 0;
    for (size_t n = 1; n <= json_array_size(right); n++) {
        const char *name = kinds[_i].name;
        char most[64] = ""; /* stays empty for the largest n, because without a limit all tasks are run */
        if (n < json_array_size(right)) snprintf(most, sizeof most, "--%s-tasks %zu", name, n);
        fr_command c = fr_command_ok("perplexity " DEMO "-t 1 --%s %s -f " TASKS "/%s", name, most, kinds[_i].file);
        long now = 0;
        ck_assert_msg(sscanf(c.out, "%*s %*s right, %ld of %ld tasks", &now, &tasks) == 2, "%s", c.out);
        ck_assert_int_eq(tasks, (long)n);
        ck_assert_msg(now - before == json_is_true(json_array_get(right, n - 1)), "task %zu of %s", n, name);
        ck_assert_double_eq_tol(printed(&c, name), 100.0 * (double)now / (double)n, 1e-4);
        before = now;
        fr_command_free(&c);
    }
    json_decref(object);
}
END_TEST

static const struct {
    int status;
    const char *line, *says;
} tasks_refused[] = {
    {2, "--hellaswag", "needs its tasks"},
    {2, "--hellaswag --winogrande -f x", "choose one"},
    {2, "--hellaswag-tasks 2 -f x", "choose one"},
    {2, "--hellaswag --winogrande-tasks 2 -f x", "--winogrande-tasks does not go with --hellaswag"},
    {2, "--winogrande --ppl-stride 2 -f x", "--ppl-stride does not go with --winogrande"},
    {2, "--winogrande --winogrande-tasks 0 -f x", "--winogrande-tasks"},
    {1, "--winogrande -f no/such/file", "no/such/file"},
    {1, "--hellaswag -f /dev/null", "has no task"},
    {1, "--winogrande -f /dev/null", "has no task"},
    {1, "--multiple-choice -f /dev/null", "no file of questions"},
    {1, "--multiple-choice -f " TASKS "/winogrande.csv", "no file of questions"},
    {1, "--hellaswag -f " TASKS "/winogrande.csv", "task 1: its second line is no index"},
    {1, "--winogrande -f " TASKS "/hellaswag.txt", "task 1: not a line of"},
};

START_TEST(tasks_that_make_no_sense_are_refused) {
    char line[512];
    snprintf(line, sizeof line, "perplexity " DEMO "%s", tasks_refused[_i].line);
    check_refused(line, tasks_refused[_i].status, tasks_refused[_i].says);
}
END_TEST

static const struct {
    const char *kind;
    size_t length;
    const char *bytes, *says;
} damaged_tasks[] = {
#define BYTES(literal) sizeof literal - 1, literal
    {"hellaswag", BYTES("A man\n4\na\nb\nc\nd\n"), "task 1: its second line"},
    {"hellaswag", BYTES("A man\n0\na\nb\nc\n"), "task 1: four endings"},
    {"hellaswag", BYTES("A man\n0\na\nb\nc\nd\nA man"), "task 2: its second line"},
    {"winogrande", BYTES("0,A _ is,a,b,3\n"), "task 1: not a line of"},
    {"winogrande", BYTES("0,A _ is,a,b,1\n1,A _ is,a,b\n"), "task 2: not a line of"},
    {"winogrande", BYTES("0,A is,a,b,1\n"), "task 1: its sentence has no _"},
    {"winogrande", BYTES("0,\"A _ is,a,b,1\n"), "task 1: not a line of"},
    {"winogrande", BYTES("0,\"A _\" is,a,b,1\n"), "task 1: not a line of"},
    {"winogrande", BYTES("0,_,,,1\n"), "task 1: a choice of one token"},
    {"multiple-choice", BYTES("\xff\xff\xff\xff"), "no file of questions"},
    {"multiple-choice", BYTES("\0\0\0\0"), "has no task"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0"), "task 1: damaged"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0\xff\xff\xff\xff?"), "task 1: damaged"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0\1\0\0\0?\0\0\0\0\0\0\0\0"), "task 1: damaged"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0\1\0\0\0?\xff\0\0\0"), "task 1: damaged"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0\1\0\0\0?\1\0\0\0\1\0\0\0!\2\0\0\0\0\0\0\0"), "task 1: damaged"},
    {"multiple-choice", BYTES("\1\0\0\0\0\0\0\0\1\0\0\0?\1\0\0\0\1\0\0\0!\1\0\0\0"), "task 1: damaged"},
#undef BYTES
};

START_TEST(damaged_tasks_are_refused) {
    char line[512];
    make_folder();
    snprintf(line, sizeof line, "%s/tasks", folder);
    FILE *file = fopen(line, "wb");
    ck_assert_uint_eq(fwrite(damaged_tasks[_i].bytes, 1, damaged_tasks[_i].length, file), damaged_tasks[_i].length);
    fclose(file);
    snprintf(line, sizeof line, "perplexity " DEMO "--%s -f %s/tasks", damaged_tasks[_i].kind, folder);
    check_refused(line, 1, damaged_tasks[_i].says);
    remove_folder();
}
END_TEST

FR_SUITE("perplexity") {
    TCase *cases = tcase_create("perplexity");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, perplexity_is_the_references, 0, 4);
    tcase_add_test(cases, divergence_is_the_references);
    tcase_add_loop_test(cases, what_makes_no_sense_is_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_test(cases, damaged_bases_are_refused);
    tcase_add_loop_test(cases, the_right_tasks_are_the_references, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases, tasks_that_make_no_sense_are_refused, 0, sizeof tasks_refused / sizeof *tasks_refused);
    tcase_add_loop_test(cases, damaged_tasks_are_refused, 0, sizeof damaged_tasks / sizeof *damaged_tasks);
    suite_add_tcase(suite, cases);
}
