/* Tests the completion of command lines in bash. It must offer every option in the help of a verb, and the words that a
 * value may be. Where a file name is expected, it must offer no words. The width of the manual page's lines is tested
 * too. */
/* suite: native */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

static char script[] = "/tmp/forerun-completion-XXXXXX";

static void write_script(void) {
    memcpy(script + sizeof script - 7, "XXXXXX", 6);
    int file = mkstemp(script);
    fr_command c = fr_command_ok("completion bash");
    ck_assert_int_eq(write(file, c.out, c.out_length), (ssize_t)c.out_length);
    close(file);
    fr_command_free(&c);
}

static void remove_script(void) {
    unlink(script);
}

/* Returns bash's completions of the last word of a line, with blanks between them. The last word may be empty. The
 * caller frees the text. */
static char *complete(const char *words) {
    char line[4096], *found = NULL;
    size_t size = 0;
    snprintf(line, sizeof line,
             "bash --norc -c '. %s; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _forerun; "
             "echo \"${COMPREPLY[*]}\"'",
             script, words);
    FILE *from = popen(line, "r");
    ck_assert_ptr_nonnull(from);
    ck_assert_int_gt(getline(&found, &size, from), 0);
    ck_assert_int_eq(pclose(from), 0);
    found[strcspn(found, "\n")] = '\0';
    return found;
}

static const struct {
    const char *words, *offers;
} cases[] = {
    {"forerun gen", "generate"},
    {"forerun --v", "--version"},
    {"forerun help ba", "batch"},
    {"forerun generate --outp", "--output"},
    {"forerun generate --output \"\"", "text ids json"},
    {"forerun generate --output = i", "ids"},
    {"forerun template --output \"\"", "text ids"},
    {"forerun inspect -o \"\"", "text json"},
    {"forerun generate -ctk q", "q8_0 q4_0"},
    {"forerun generate --draft-max \"\"", "auto"},
    {"forerun generate --isa sca", "scalar"},
    {"forerun bench ker", "kernels"},
    {"forerun bench model -o md -o js", "json jsonl"},
    {"forerun completion \"\"", NULL},
    {"forerun generate -m \"\"", ""},
    {"forerun generate -f tests/", ""},
    {"forerun tokenize --pure", ""},
    {"forerun generate --help extra", ""},
};

START_TEST(words_are_offered) {
    char *found = complete(cases[_i].words);
    if (cases[_i].offers)
        ck_assert_msg(strcmp(found, cases[_i].offers) == 0, "%s: %s", cases[_i].words, found);
    else
        ck_assert_int_eq(strncmp(found, "bash zsh fish --", 16), 0);
    free(found);
}
END_TEST

static const char *const verbs[] = {"generate", "chat",     "logits",     "perplexity", "tokenize", "inspect",
                                    "verify",   "batch",    "quantize",   "pack",       "synth",    "bench",
                                    "report",   "template", "completion", "models",     "trim-head"};

/* After the name of a part of bench, the options that this part refuses must not be offered. */
START_TEST(a_part_has_its_own_options) {
    static const char *const begins[] = {"forerun bench neighbours -", "forerun bench --part neighbours -"};
    char *found = complete(begins[_i]);
    ck_assert_msg(strstr(found, "-m --model") && strstr(found, "-t --threads"), "%s", found);
    ck_assert_msg(!strstr(found, "--pin") && !strstr(found, "--rows") && !strstr(found, "-ctk"), "%s", found);
    free(found);
    found = complete("forerun bench model -");
    ck_assert_msg(strstr(found, "--rows") && strstr(found, "-ctk") && !strstr(found, "--filter"), "%s", found);
    free(found);
    fr_command fish = fr_command_ok("completion fish"), zsh = fr_command_ok("completion zsh");
    const char *filter = strstr(fish.out, " -l filter ");
    while (*filter != '\n') filter--;
    ck_assert_int_eq(strncmp(filter + 1,
                             "complete -c forerun -n '__fish_seen_subcommand_from bench; and not "
                             "__fish_seen_subcommand_from machine model neighbours' ",
                             117),
                     0);
    ck_assert_ptr_nonnull(strstr(zsh.out, "            neighbours) _forerun_words -m"));
    fr_command_free(&fish);
    fr_command_free(&zsh);
}
END_TEST

/* Reads the names of options from the help. A name begins after two blanks, or after a comma and a blank, and ends
 * before its value. */
START_TEST(every_option_is_offered) {
    char words[64], name[72];
    snprintf(words, sizeof words, "forerun %s -", verbs[_i]);
    char *offered = complete(words), all[8192];
    snprintf(all, sizeof all, " %s ", offered);
    fr_command help = fr_command_ok("%s --help", verbs[_i]);
    const char *line = strstr(help.out, "\noptions:\n");
    size_t count = 0;
    while ((line = strchr(line + 1, '\n')) && strncmp(line, "\n\nexamples", 10) != 0) {
        for (const char *at = line + 3; *at == '-'; at += strspn(at, ", ")) {
            size_t length = strcspn(at, ", \n");
            snprintf(name, sizeof name, " %.*s ", (int)length, at);
            ck_assert_msg(strstr(all, name), "%s: no%sin%s", verbs[_i], name, all);
            at += length;
            count++;
            if (strncmp(at, ", -", 3) != 0) break;
        }
    }
    ck_assert_uint_gt(count, 2);
    free(offered);
    fr_command_free(&help);
}
END_TEST

START_TEST(other_shells_have_theirs) {
    fr_command zsh = fr_command_ok("completion zsh"), fish = fr_command_ok("completion --shell fish");
    ck_assert_int_eq(strncmp(zsh.out, "#compdef forerun\n", 17), 0);
    ck_assert_ptr_nonnull(strstr(zsh.out, "--output) _forerun_words text ids json ;;"));
    ck_assert_ptr_nonnull(strstr(fish.out, "_subcommand_from generate' -s m -l model -o hf -o hfr -l hf-repo -r -d"));
    ck_assert_ptr_nonnull(strstr(fish.out, "-o ctk -l cache-type-k -x -a ' f32 f16 bf16 q8_0 q4_0 turbo4 turbo3'"));
    fr_command_free(&zsh);
    fr_command_free(&fish);
    fr_command c = fr_command_run("completion", NULL);
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "bash, zsh or fish"));
    fr_command_free(&c);
    c = fr_command_run("completion tcsh", NULL);
    ck_assert_int_eq(c.status, 2);
    fr_command_free(&c);
}
END_TEST

/* A page has 80 columns, and its margin takes 7 of them. roff breaks ordinary lines itself. So only lines that roff
 * leaves as they are must fit. */
START_TEST(manual_lines_fit_the_page) {
    fr_command c = fr_command_ok("help --man");
    bool filled = true;
    size_t seen = 0;
    for (char *line = c.out, *end; (end = strchr(line, '\n')); line = end + 1) {
        size_t width = 0;
        for (const char *at = line; at < end; at++, width++) {
            if (strncmp(at, "\\&", 2) == 0) width -= 1;
            if (*at == '\\') at++;
        }
        if (strncmp(line, ".nf", 3) == 0) filled = false;
        if (strncmp(line, ".fi", 3) == 0) filled = true;
        ck_assert_msg(filled || width <= 72, "%zu columns: %.*s", width, (int)(end - line), line);
        seen += !filled;
    }
    ck_assert_uint_gt(seen, 40);
    fr_command_free(&c);
}
END_TEST

#define COUNT(list) (int)(sizeof list / sizeof *list)

FR_SUITE("cli_completion") {
    TCase *all = tcase_create("completion");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, write_script, remove_script);
    tcase_add_loop_test(all, words_are_offered, 0, COUNT(cases));
    tcase_add_loop_test(all, every_option_is_offered, 0, COUNT(verbs));
    tcase_add_loop_test(all, a_part_has_its_own_options, 0, 2);
    tcase_add_test(all, other_shells_have_theirs);
    tcase_add_test(all, manual_lines_fit_the_page);
    suite_add_tcase(suite, all);
}
