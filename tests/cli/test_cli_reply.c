/* Tests the replies of models that reason, in generate and chat. The model has random weights, so it never closes a
 * reasoning channel that the template has opened. The whole reply is then reasoning. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

/* The first template opens a reasoning channel at the end of the prompt, so the whole reply is reasoning. The second
 * template opens no channel, so the whole reply is content. */
static const char thinks[] = "{{ bos_token }}{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n"
                             "{% endfor %}<|turn>model\n<|channel>thought\n";
static const char talks[] = "{{ bos_token }}{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n"
                            "{% endfor %}<|turn>model\n{{ '<|chan' ~ 'nel>' }}thought\n";

static void write_template(fr_test_folder *folder, const char *template) {
    FILE *file = fr_folder_create(folder, "chat_template.jinja");
    fputs(template, file);
    fclose(file);
}

static json_t *generate_json(const fr_test_folder *folder) {
    fr_command run =
        fr_command_ok("generate " MODEL "--chat -p Hi -n 12 --output json --chat-template-file %s", folder->file);
    json_t *object = json_loads(run.out, 0, NULL);
    ck_assert_ptr_nonnull(object);
    fr_command_free(&run);
    return object;
}

static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(fr_json_get(object, key));
}

/* Returns a copy of the text without the line breaks at its ends. These line breaks belong to the marks of the
 * channel. */
static char *trimmed(const char *text) {
    while (*text == '\n') text++;
    char *copy = strdup(text);
    for (size_t length = strlen(copy); length > 0 && copy[length - 1] == '\n'; length--) copy[length - 1] = '\0';
    return copy;
}

/* A grammar must apply to the content of a reply, but not to the reasoning before it. */
START_TEST(grammar_of_the_content) {
    static const char line[] = "generate " MODEL "--chat -p Hi -n 12 --output json --chat-template-file %s --grammar "
                               "'root ::= \"aaa\"'";
    fr_test_folder folder;
    fr_folder_make(&folder);
    for (int i = 0; i < 2; i++) {
        write_template(&folder, i ? thinks : talks);
        fr_command run = fr_command_ok(line, folder.file);
        json_t *object = json_loads(run.out, 0, NULL);
        ck_assert_str_eq(text_of(object, "text"), i ? "" : "aaa");
        if (i) ck_assert_uint_gt(strlen(text_of(object, "reasoning_content")), 3);
        json_decref(object);
        fr_command_free(&run);
    }
    fr_folder_remove(&folder);
}
END_TEST

START_TEST(reasoning_apart) {
    fr_test_folder folder;
    char plain[512];
    fr_folder_make(&folder);
    write_template(&folder, talks);
    json_t *whole = generate_json(&folder);
    ck_assert_ptr_null(json_object_get(whole, "reasoning_content"));
    char *words = trimmed(text_of(whole, "text"));
    ck_assert_uint_gt(strlen(words), 0);
    fr_command bytes = fr_command_ok("generate " MODEL "--chat -p Hi -n 12 --chat-template-file %s", folder.file);
    char *bare = trimmed(bytes.out); /* This is taken from the raw output, because the reply may have bytes that JSON
                                      * can't hold */

    write_template(&folder, thinks);
    json_t *apart = generate_json(&folder);
    ck_assert_str_eq(text_of(apart, "text"), "");
    ck_assert_str_eq(text_of(apart, "reasoning_content"), words);
    ck_assert(json_equal(fr_json_get(apart, "ids"), fr_json_get(whole, "ids")));

    snprintf(plain, sizeof plain, "<think>\n%s\n</think>\n", bare);
    fr_command run = fr_command_ok("generate " MODEL "--chat -p Hi -n 12 --chat-template-file %s", folder.file);
    ck_assert_str_eq(run.out, plain);
    fr_command_free(&run);
    run = fr_command_feed("Hi\n", "chat " MODEL "--temp 0 -n 12 --chat-template-file %s", folder.file);
    ck_assert_str_eq(run.out, plain);
    fr_command_free(&run);
    fr_folder_remove(&folder);
    json_decref(whole);
    json_decref(apart);
    fr_command_free(&bytes);
    free(words);
    free(bare);
}
END_TEST

/* Reasoning is not part of the conversation. So the prompt of the next turn must not contain it. */
START_TEST(next_turn) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    write_template(&folder, thinks);
    fr_command two = fr_command_feed("Hi\nSo\n", "chat " MODEL "--temp 0 -n 12 --chat-template-file %s", folder.file);
    fr_command one = fr_command_feed("Hi\n", "chat " MODEL "--temp 0 -n 12 --chat-template-file %s", folder.file);
    ck_assert_msg(strncmp(two.out, one.out, one.out_length) == 0, "%s\nnot\n%s", two.out, one.out);
    FILE *file = fopen(folder.file, "w");
    fprintf(file, "%s",
            "{{ bos_token }}<|turn>user\nHi<turn|>\n<|turn>assistant\n<turn|>\n<|turn>user\nSo<turn|>\n"
            "<|turn>model\n<|channel>thought\n");
    fclose(file);
    fr_command next = fr_command_ok("generate " MODEL "--chat -p x -n 12 --chat-template-file %s", folder.file);
    ck_assert_str_eq(two.out + one.out_length, next.out);
    fr_command_free(&one);
    fr_command_free(&two);
    fr_command_free(&next);
    fr_folder_remove(&folder);
}
END_TEST

FR_SUITE("cli_reply") {
    TCase *tcase = tcase_create("cli_reply");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, reasoning_apart);
    tcase_add_test(tcase, grammar_of_the_content);
    tcase_add_test(tcase, next_turn);
    suite_add_tcase(suite, tcase);
}
