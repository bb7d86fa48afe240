/* Tests two things that users know from llama.cpp. The first is its escape sequences in texts. The second is its
 * options that have no effect here: they must be accepted, and one line must say that they have no effect. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

/* Escapes must be read as llama.cpp's string_process_escapes does. An unknown escape stays as it is, including its
 * backslash. */
static const struct {
    const char *escaped, *bytes;
} texts[] = {
    {"a\\nb", "a\nb"},
    {"\\t\\r\\n", "\t\r\n"},
    {"\\\"\\\\n", "\"\\n"},
    {"\\x41\\x4a\\x4A", "AJJ"},
    {"\\xe2\\x98\\x83", "\xe2\x98\x83"},
    {"\\x4", "\\x4"},
    {"\\x4g", "\\x4g"},
    {"\\q\\", "\\q\\"},
    {"\\xg1", "\\xg1"},
    {"plain", "plain"},
    {"\\", "\\"},
    {"\\\\\\\\", "\\\\"},
};

START_TEST(escapes_are_read) {
    fr_command read = fr_command_ok("tokenize " DEMO "-e -p '%s'", texts[_i].escaped);
    fr_command file = fr_command_feed(texts[_i].escaped, "tokenize " DEMO "--escape -f -");
    fr_command bytes = fr_command_feed(texts[_i].bytes, "tokenize " DEMO "-f -");
    fr_command plain = fr_command_ok("tokenize " DEMO "--no-escape -p '%s'", texts[_i].escaped);
    fr_command as_it_is = fr_command_feed(texts[_i].escaped, "tokenize " DEMO "-f -");
    ck_assert_str_eq(read.out, bytes.out);
    ck_assert_str_eq(file.out, bytes.out);
    ck_assert_str_eq(plain.out, as_it_is.out);
    fr_command_free(&read);
    fr_command_free(&file);
    fr_command_free(&bytes);
    fr_command_free(&plain);
    fr_command_free(&as_it_is);
}
END_TEST

/* An argument on the command line can't contain a NUL byte. So an escape sequence puts a NUL into the prompt. */
START_TEST(a_nul_is_a_byte_of_a_prompt) {
    fr_command read = fr_command_ok("tokenize " DEMO "-e -p 'a\\x00b'");
    fr_command bytes = fr_command_run_bytes("tokenize " DEMO "-f -", "a\0b", 3);
    ck_assert_str_eq(read.out, bytes.out);
    fr_command_free(&read);
    fr_command_free(&bytes);
}
END_TEST

START_TEST(stops_and_system_turns_have_escapes_too) {
    fr_command read = fr_command_ok("generate " DEMO "-e -p 'def f(x):' -n 60 --stop '\\n'");
    fr_command same = fr_command_ok("generate " DEMO "-p 'def f(x):' -n 60 --stop '\n'");
    ck_assert_str_eq(read.out, same.out);
    fr_command_free(&read);
    fr_command_free(&same);
    read = fr_command_ok("generate " DEMO "-e --chat -p Hi -sys 'a\\nb' -n 9 --output ids");
    same = fr_command_ok("generate " DEMO "--chat -p Hi -sys 'a\nb' -n 9 --output ids");
    ck_assert_str_eq(read.out, same.out);
    fr_command_free(&read);
    fr_command_free(&same);
}
END_TEST

static const struct {
    const char *line, *says;
} wrong[] = {
    {"generate " DEMO "--ids 2 -n 1 -e", "--escape is for a prompt"},
    {"tokenize " DEMO "--decode --ids 2 -e", "--escape is for a prompt"},
    {"generate " DEMO "-p x -e --no-escape", "which of them?"},
    {"generate " DEMO "-p x -e --stop '\\x00'", "\\x00 can't be in"},
    {"inspect " DEMO "-e", "inspect takes no -e"},
    {"generate " DEMO "-p x --flash-attn=maybe", "known: on off auto 0 1"},
    {"generate " DEMO "-p x -fa maybe", "maybe: what is this word for?"},
    {"generate " DEMO "-p x --jinja=1", "takes no value"},
    {"generate " DEMO "-p x -ngl", "needs a value"},
    {"inspect " DEMO "-ngl 9", "inspect takes no -ngl"},
    {"bench machine -ngl 9", "bench machine takes no -ngl"},
};

START_TEST(wrong_usage_is_exit_2) {
    fr_command c = fr_command_run(wrong[_i].line, NULL);
    ck_assert_msg(c.status == 2, "%s: exit %d: %s", wrong[_i].line, c.status, c.err);
    ck_assert_msg(strstr(c.err, wrong[_i].says), "%s: %s", wrong[_i].line, c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
}
END_TEST

#define LLAMA  "for llama.cpp; nothing here depends on it\n"
#define GREEDY "nothing is drawn without --temp above 0, so that this changes nothing\n"

#define WITHOUT "this changes nothing without "

/* Options, each with the one note that it must give. */
static const struct {
    const char *options, *says;
} notes[] = {
    {"-ngl 99", "forerun: -ngl: " LLAMA},
    {"-fa", "forerun: -fa: " LLAMA},
    {"-fa on --jinja", "forerun: -fa, --jinja: " LLAMA},
    {"--flash-attn=auto --n-gpu-layers=-1", "forerun: --flash-attn, --n-gpu-layers: " LLAMA},
    {"--warmup --no-warmup", "forerun: --warmup, --no-warmup: " LLAMA},
    {"-b 2048 --batch-size 512 -ub 64", "forerun: -b, --batch-size: " LLAMA},
    {"--prio 2 -mg 0 --main-gpu 1 -sm none --split-mode row", "forerun: --prio, -mg, --main-gpu, -sm, "
                                                              "--split-mode: " LLAMA},
    {"-ts 3,1 --tensor-split 1 -dev none --device none", "forerun: -ts, --tensor-split, -dev, --device: " LLAMA},
    {"-nkvo --no-kv-offload --gpu-layers 3", "forerun: -nkvo, --no-kv-offload, --gpu-layers: " LLAMA},
    {"--top-k 40", "forerun: --top-k: " GREEDY},
    {"--seed 3 --top-p 0.9 --min-p 0.1", "forerun: --top-p, --min-p, --seed: " GREEDY},
    {"-ngl 0 -s 3", "forerun: -ngl: " LLAMA "forerun: -s: " GREEDY},
    {"--top-k 40 --temp 0", ""},
    {"--top-k 40 --temp 0.8", ""},
    {"--top-k 40 -ngl 9 --quiet", ""},
    {"--presence-penalty 0.5", ""},
    {"--dry-base 2 --dry-allowed-length=3",
     "forerun: --dry-base, --dry-allowed-length: " WITHOUT "--dry-multiplier above 0\n"},
    {"--dry-sequence-breaker x --dry-multiplier 0",
     "forerun: --dry-sequence-breaker: " WITHOUT "--dry-multiplier above 0\n"},
    {"--xtc-threshold 0.2", "forerun: --xtc-threshold: " WITHOUT "--xtc-probability above 0\n"},
    {"--dynatemp-exp 2 --temp 0.8", "forerun: --dynatemp-exp: " WITHOUT "--dynatemp-range above 0\n"},
    {"--mirostat-lr 0.2 --temp 0.8", "forerun: --mirostat-lr: " WITHOUT "--mirostat 2\n"},
    {"--mirostat-lr 0.2", "forerun: --mirostat-lr: " GREEDY},
    {"--repeat-last-n 10", "forerun: --repeat-last-n: " WITHOUT "a penalty\n"},
    {"--repeat-last-n 10 --frequency-penalty 0.1", ""},
    {"--dry-base 2 --dry-multiplier 0.5", ""},
    {"--xtc-threshold 0.2 --quiet", ""},
    {"--temp 0.8 --mirostat 2 --top-k 40 --repeat-penalty 1.1",
     "forerun: --top-k, --repeat-penalty: this changes nothing beside --mirostat 2, which is in its place\n"},
};

START_TEST(what_means_nothing_is_said_once) {
    fr_command c = fr_command_ok("generate " DEMO "-no-cnv -p x -n 1 %s", notes[_i].options);
    fr_command plain = fr_command_ok("generate " DEMO "-no-cnv -p x -n 1 %s",
                                     strstr(notes[_i].options, "--temp 0.8") ? notes[_i].options : "");
    ck_assert_str_eq(c.err, notes[_i].says);
    if (!strstr(notes[_i].options, "penalty")) ck_assert_str_eq(c.out, plain.out);
    fr_command_free(&c);
    fr_command_free(&plain);
}
END_TEST

/* A batch with --seed but without sampling options must get no note, because its lines may ask for sampling. */
START_TEST(a_batch_may_have_a_seed) {
    fr_command c = fr_command_feed("{\"prompt\": \"x\", \"n\": 2, \"temp\": 1}\n", "batch " DEMO "-f - -o - --seed 3");
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
}
END_TEST

/* The manual page must list llama.cpp's options that have no effect here. The help text must not list them. */
START_TEST(help_is_not_filled_with_them) {
    fr_command help = fr_command_ok("generate --help"), manual = fr_command_ok("help --man");
    ck_assert_ptr_null(strstr(help.out, "-ngl"));
    ck_assert_ptr_nonnull(strstr(help.out, "-e, --escape"));
    ck_assert_ptr_nonnull(strstr(manual.out, "\\-ngl"));
    fr_command_free(&help);
    fr_command_free(&manual);
}
END_TEST

#define COUNT(list) (int)(sizeof list / sizeof *list)

#define TWICE "the prompt begins with <bos>, which the tokenizer adds: it stands there twice"

/* The tokenizer puts <bos> before a prompt. A prompt from another program may already begin with <bos>. Then a note
 * must say so. A batch must give one such note for all its lines. */
START_TEST(a_first_token_that_is_there_twice) {
    fr_command c = fr_command_ok("generate " DEMO "-no-cnv -p '<bos>hi' -n 1 --seed 1");
    ck_assert_msg(strstr(c.err, TWICE), "%s", c.err);
    fr_command_free(&c);
    c = fr_command_ok("generate " DEMO "-no-cnv -p '<bos>hi' -n 1 --quiet");
    ck_assert_ptr_null(strstr(c.err, TWICE));
    fr_command_free(&c);
    c = fr_command_ok("generate " DEMO "-no-cnv -p 'hi<bos>' -n 1 --seed 1");
    ck_assert_ptr_null(strstr(c.err, TWICE));
    fr_command_free(&c);
    c = fr_command_ok("generate " DEMO "--chat -p '<bos>hi' -n 1 --seed 1");
    ck_assert_ptr_null(strstr(c.err, TWICE));
    fr_command_free(&c);
    c = fr_command_feed("{\"prompt\": \"hi\", \"n\": 1}\n{\"prompt\": \"<bos>hi\", \"n\": 1}\n{\"prompt\": \"<bos>a\", "
                        "\"n\": 1}\n",
                        "batch " DEMO "-f - -o -");
    const char *said = strstr(c.err, TWICE);
    ck_assert_msg(said && !strstr(said + 1, TWICE) && strstr(c.err, ":2: " TWICE), "%s", c.err);
    fr_command_free(&c);
}
END_TEST

FR_SUITE("cli_notes") {
    TCase *cases = tcase_create("notes");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, escapes_are_read, 0, COUNT(texts));
    tcase_add_test(cases, a_nul_is_a_byte_of_a_prompt);
    tcase_add_test(cases, stops_and_system_turns_have_escapes_too);
    tcase_add_loop_test(cases, wrong_usage_is_exit_2, 0, COUNT(wrong));
    tcase_add_loop_test(cases, what_means_nothing_is_said_once, 0, COUNT(notes));
    tcase_add_test(cases, a_batch_may_have_a_seed);
    tcase_add_test(cases, a_first_token_that_is_there_twice);
    tcase_add_test(cases, help_is_not_filled_with_them);
    suite_add_tcase(suite, cases);
}
