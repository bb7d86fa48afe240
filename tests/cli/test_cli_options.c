/* Tests the options of llama.cpp's programs. Each option must be supported, or accepted with a note, or refused with an
 * error line that names forerun's own option.
 *
 * The names come from llama.cpp itself (tests/data/options/make_names.py). */
/* suite: links=command */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"
#include "tools/cli/options.h"

/* The programs of llama.cpp, each with the verb that replaces it. */
static const struct {
    const char *program;
    fr_verb verb;
} programs[] = {
    {"cli", {.name = "generate", .bit = FR_VERB_GENERATE}},
    {"cli", {.name = "chat", .bit = FR_VERB_CHAT}},
    {"server", {.name = "serve", .bit = FR_VERB_SERVE}},
    {"perplexity", {.name = "perplexity", .bit = FR_VERB_PERPLEXITY}},
    {"imatrix", {.name = "imatrix", .bit = FR_VERB_IMATRIX}},
    {"bench", {.name = "bench", .bit = FR_VERB_BENCH}},
    {"quantize", {.name = "quantize", .bit = FR_VERB_QUANTIZE}},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* Parses `verb name 1 --help`. If the option takes no value, the 1 is left out. Returns the exit status. `said` gets
 * what was written to standard error. */
static int parse(const fr_verb *verb, char *name, bool value, char *said, size_t size) {
    char one[] = "1", help[] = "--help", *words[] = {name, value ? one : help, help};
    fr_arguments args;
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    ck_assert(file && before >= 0);
    dup2(fileno(file), STDERR_FILENO);
    int code = fr_arguments_parse(&args, verb, value ? 3 : 2, words);
    fr_arguments_free(&args);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    said[fread(said, 1, size - 1, file)] = '\0';
    fclose(file);
    return code;
}

/* Checks that the parser knows the name of an option. The parser may refuse the value. It may also refuse the option.
 * Then the error line must have a semicolon, followed by what to use instead. */
static void check_name(const fr_verb *verb, char *name, bool value) {
    char said[1024];
    int code = parse(verb, name, value, said, sizeof said);
    ck_assert_msg(code == 0 || code == 2, "%s %s: exit %d: %s", verb->name, name, code, said);
    ck_assert_msg(!strstr(said, "unknown option") && !strstr(said, "what is this word for"), "%s: %s", name, said);
    ck_assert_msg(code == 0 || strchr(said, '\n') == said + strlen(said) - 1, "%s: %s", name, said);
    const char *takes = strstr(said, " takes no ");
    ck_assert_msg(!takes || strstr(takes, "; "), "%s %s: %s", verb->name, name, said);
}

START_TEST(every_name_is_known) {
    char line[256], name[64], kind[16], list[128];
    size_t known = 0;
    fr_verb verbs[PROGRAMS];
    FILE *names = fopen("tests/data/options/names.txt", "r");
    ck_assert_ptr_nonnull(names);
    for (size_t i = 0; i < PROGRAMS; i++) verbs[i] = programs[i].verb;
    fr_arguments_know(verbs, PROGRAMS);
    while (fgets(line, sizeof line, names)) {
        ck_assert_int_eq(sscanf(line, "%63s %15s %127s", name, kind, list), 3);
        if (!strstr(list, programs[_i].program)) continue;
        check_name(&programs[_i].verb, name, strcmp(kind, "value") == 0);
        known++;
    }
    fclose(names);
    ck_assert_uint_ge(known, 15);
}
END_TEST

/* docs/options.md must contain the table that the command prints. */
START_TEST(the_page_has_the_table) {
    fr_command c = fr_command_ok("help --llama.cpp");
    FILE *page = fopen("docs/options.md", "r");
    ck_assert_ptr_nonnull(page);
    char *text = calloc(1, 1 << 17);
    ck_assert_uint_gt(fread(text, 1, (1 << 17) - 1, page), 0);
    ck_assert_msg(strstr(text, c.out) != NULL, "docs/options.md: make it anew from `forerun help --llama.cpp`");
    free(text);
    fclose(page);
    fr_command_free(&c);
}
END_TEST

static void expect(const char *line, int status, const char *says) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status && strstr(c.err, says), "%s: exit %d: %s", line, c.status, c.err);
    fr_command_free(&c);
}

START_TEST(others_words_lead_to_ours) {
    expect("generate " DEMO "-p x --chat-template chatml", 2, "--chat-template-file FILE");
    expect("serve " DEMO "--rope-freq-base 10000", 2, "the model's own file says");
    expect("serve " DEMO "--tools all", 2, "requests to serve bring their tools");
    expect("chat " DEMO "-st", 2, "forerun generate --chat");
    expect("perplexity " DEMO "--temp 0", 2, "perplexity takes no --temp; generate, chat, batch, ");
    expect("quantize " DEMO "--keep-split", 2, "one file is written");
    expect("generate " DEMO "-p x -n 1 --keep 5 -ot 'exps=CPU' -cram=3", 2, "");
    expect("generate " DEMO "-p x -n 1 --keep 5 -ot 'exps=CPU' --cache-ram=3", 0,
           "forerun: --keep: for llama.cpp; --context-shift keeps the system turn\n"
           "forerun: --cache-ram: for llama.cpp; --kv-memory limits what texts keep\n"
           "forerun: -ot: for llama.cpp; nothing here depends on it\n");
    expect("generate " DEMO "-p x --keep", 2, "--keep needs a value");
}
END_TEST

START_TEST(a_switch_may_be_off) {
    fr_command plain = fr_command_ok("generate " DEMO "-p Return -n 30 --spec-type ngram");
    static const char *const off[] = {"--color off", "--color auto", "-co off", "--color=off"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        fr_command c = fr_command_ok("generate " DEMO "-p Return -n 30 --spec-type ngram %s", off[i]);
        ck_assert_str_eq(c.out, plain.out);
        fr_command_free(&c);
    }
    expect("generate " DEMO "-p Return -n 3 --color blue", 2, "blue: what is this word for?");
    fr_command_free(&plain);
}
END_TEST

/* Other names for options of forerun. --reverse-prompt (-r) means --stop. -sysf reads the system turn from a file. */
START_TEST(other_names_of_ours) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    FILE *file = fr_folder_create(&folder, "system.txt");
    fputs("Be brief.\n", file);
    fclose(file);
    fr_command one = fr_command_ok("generate " DEMO "--chat -sys 'Be brief.' -p Hi -n 20 --stop e"), other;
    other = fr_command_ok("generate " DEMO "-cnv -sysf %s -p Hi -n 20 -r e", folder.file);
    ck_assert_str_eq(one.out, other.out);
    fr_command_free(&other);
    other = fr_command_run("generate " DEMO "--chat -sysf no/such/file -p Hi", NULL);
    ck_assert(other.status == 1 && strstr(other.err, "no/such/file: No such file"));
    fr_command_free(&one);
    fr_command_free(&other);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

/* quantize must also accept its arguments in llama-quantize's order, with llama.cpp's names of types. */
START_TEST(quantize_takes_words_in_order) {
    static const char *const lines[] = {
        "quantize tools/demo/target %s q4_k_s", "quantize tools/demo/target %s Q4_K_S 1",
        "quantize -m tools/demo/target --type q4_k_s %s", "quantize --quiet tools/demo/target %s --type Q4_K_S"};
    static char bytes[4][1 << 20];
    fr_test_folder folder;
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "q.gguf"));
    for (size_t i = 0; i < 4; i++) {
        fr_command c = fr_command_ok(lines[i], folder.file);
        FILE *file = fopen(folder.file, "rb");
        ck_assert_uint_eq(fread(bytes[i], 1, sizeof *bytes, file), sizeof *bytes);
        ck_assert_mem_eq(bytes[i], bytes[0], sizeof *bytes);
        fclose(file);
        fr_command_free(&c);
    }
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

START_TEST(the_environment_is_not_read) {
    setenv("LLAMA_ARG_CTX_SIZE", "16", 1);
    expect("generate " DEMO "-no-cnv -p x -n 1", 0, "LLAMA_ARG_CTX_SIZE: environment of llama.cpp");
    fr_command quiet = fr_command_ok("generate " DEMO "-no-cnv -p x -n 1 --quiet");
    ck_assert_str_eq(quiet.err, "");
    fr_command_free(&quiet);
    unsetenv("LLAMA_ARG_CTX_SIZE");
}
END_TEST

/* Each command line has two mistakes: a wrong option and too many threads. Both must be reported. */
START_TEST(too_many_threads_are_told) {
    expect("generate " DEMO "-p x -t 1000 --wrong", 2, "forerun: -t 1000: this machine has ");
    expect("generate " DEMO "-p x -t 1000 --wrong", 2, "unknown option --wrong");
    expect("generate " DEMO "-p x --wrong --threads 1000", 2, "forerun: -t 1000: this machine has ");
    fr_command c = fr_command_ok("generate " DEMO "-no-cnv -p x -n 1 -t 1");
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
}
END_TEST

FR_SUITE("cli_options") {
    TCase *cases = tcase_create("cli_options");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, every_name_is_known, 0, PROGRAMS);
    tcase_add_test(cases, the_page_has_the_table);
    tcase_add_test(cases, others_words_lead_to_ours);
    tcase_add_test(cases, a_switch_may_be_off);
    tcase_add_test(cases, other_names_of_ours);
    tcase_add_test(cases, quantize_takes_words_in_order);
    tcase_add_test(cases, the_environment_is_not_read);
    tcase_add_test(cases, too_many_threads_are_told);
    suite_add_tcase(suite, cases);
}
