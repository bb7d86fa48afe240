/* Tests the verbs tokenize and generate as users call them, on a reference model and on the demo model. */
/* suite: threads hosts-hour */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/brief.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

#define START "-p 'The function returns a' "

/* Runs generate with --output json. It must print exactly one object. Returns that object. */
__attribute__((format(printf, 1, 2))) static json_t *run_json(const char *format, ...) {
    char line[4096];
    va_list values;
    va_start(values, format);
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, values), (int)sizeof line);
    va_end(values);
    fr_command c = fr_command_ok("%s", line);
    json_error_t error;
    json_t *object = json_loadb(c.out, c.out_length, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(object != NULL, "%s in %s", error.text, c.out);
    ck_assert_ptr_eq(strchr(c.out, '\n'), c.out + c.out_length - 1);
    fr_command_free(&c);
    return object;
}

static double number(const json_t *object, const char *key) {
    ck_assert_msg(json_is_number(fr_json_get(object, key)), "%s is no number", key);
    return json_number_value(fr_json_get(object, key));
}

static const char *text_of(const json_t *object) {
    return json_string_value(fr_json_get(object, "text"));
}

/* Returns true if the first `count` ids of two lists are the same. */
static bool same_ids(const json_t *a, const json_t *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!json_equal(json_array_get(a, i), json_array_get(b, i))) return false;
    }
    return json_array_size(a) >= count && json_array_size(b) >= count;
}

/* --------------------------------------------------------------------------------------------------------- tokenize */

/* Texts, and the ids that the Python package tokenizers, version 0.22, gives for them with the tokenizer.json of
 * MODEL. */
static const struct {
    const char *text, *ids;
} tokenized[] = {
    {"Hello, world!", "2,316,509,458,288,438,405,352,344,277"},
    {"<|turn>user\nHi<turn|>\n", "2,5,361,401,358,276,316,349,6,276"},
    {"Grüße 😀", "2,315,358,214,207,214,178,345,385,392"},
    {"", "2"},
};

START_TEST(tokenize_and_back) {
    fr_command c = fr_command_ok("tokenize " MODEL "-p '%s'", tokenized[_i].text), bare, file, back;
    ck_assert_int_eq(strncmp(c.out, tokenized[_i].ids, strlen(tokenized[_i].ids)), 0);
    ck_assert_str_eq(c.out + strlen(tokenized[_i].ids), "\n");
    bare = fr_command_ok("tokenize " MODEL "--no-bos -p '%s'", tokenized[_i].text);
    ck_assert_str_eq(bare.out, tokenized[_i].text[0] ? c.out + strlen("2,") : "\n");
    file = fr_command_feed(tokenized[_i].text, "tokenize " MODEL "-f -");
    ck_assert_str_eq(file.out, c.out);
    c.out[c.out_length - 1] = '\0';
    back = fr_command_ok("tokenize " MODEL "--decode --ids %s", c.out);
    ck_assert_int_eq(strncmp(back.out, "<bos>", 5), 0);
    ck_assert_str_eq(back.out + 5, tokenized[_i].text);
    fr_command_free(&c);
    fr_command_free(&bare);
    fr_command_free(&file);
    fr_command_free(&back);
}
END_TEST

/* Writes the bytes that a quoted text means. The quoted text ends at `end`. Returns the number of bytes. */
static size_t unquote(const char *quoted, const char *end, char *bytes) {
    size_t length = 0;
    ck_assert(*quoted == '"' && end[-1] == '"' && end - quoted >= 2);
    for (const char *c = quoted + 1; c < end - 1; c++) {
        static const char letters[] = "\"\\nrt", plain[] = "\"\\\n\r\t";
        ck_assert((unsigned char)*c >= ' ' && *c != '"');
        if (*c != '\\')
            bytes[length++] = *c;
        else if (*++c != 'x')
            bytes[length++] = plain[strchr(letters, *c) - letters];
        else {
            char digits[3] = {c[1], c[2], 0};
            bytes[length++] = (char)strtol(digits, NULL, 16);
            c += 2;
        }
    }
    return length;
}

/* --pieces prints one line per id. If the pieces are joined, they must give the text again. Bytes that are only part of
 * a character are escaped. */
START_TEST(pieces_are_the_ids_and_the_text) {
    char ids[512] = "", bytes[512];
    size_t length = 0, lines = 0;
    fr_command c = fr_command_ok("tokenize " MODEL "--pieces -p '%s'", tokenized[_i].text), decoded;
    for (char *line = c.out, *end; *line; line = end + 1, lines++) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        char *quoted = strchr(line, '\t') + 1;
        size_t used = strlen(ids);
        snprintf(ids + used, sizeof ids - used, "%s%.*s", lines ? "," : "", (int)(quoted - 1 - line), line);
        if (lines)
            length += unquote(quoted, end, bytes + length);
        else
            ck_assert_int_eq(strncmp(quoted, "\"<bos>\"\n", 8), 0);
    }
    ck_assert_str_eq(ids, tokenized[_i].ids);
    ck_assert_uint_eq(length, strlen(tokenized[_i].text));
    ck_assert_mem_eq(bytes, tokenized[_i].text, length);
    if (_i == 0) ck_assert_ptr_nonnull(strstr(c.out, "\n344\t\"d\"\n"));
    if (_i == 1) ck_assert_ptr_nonnull(strstr(c.out, "\n276\t\"\\n\"\n"));
    if (_i == 2) ck_assert_ptr_nonnull(strstr(c.out, "\n214\t\"\\xc3\"\n207\t"));
    decoded = fr_command_ok("tokenize " MODEL "--decode --pieces --ids %s", ids);
    ck_assert_str_eq(decoded.out, c.out);
    fr_command_free(&c);
    fr_command_free(&decoded);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- generate */

/* The ids must be those of transformers, with and without drafts. Every margin of the reference is far larger than
 * rounding errors. */
START_TEST(ids_are_the_references) {
    static const char *const ways[] = {"--spec-type none", DRAFTER, DRAFTER "--draft-max 15",
                                       DRAFTER "--draft-max 1 -t 1"};
    json_t *object = fr_reference_json(), *prompt = fr_reference_prompt(object), *tokens = fr_reference_greedy(object);
    char list[1024], expected[1024];
    size_t count = json_array_size(tokens);
    fr_json_join(tokens, count, expected, sizeof expected);
    fr_command c = fr_command_ok("generate " MODEL "--ids %s -n %zu --ignore-eos --output ids %s",
                                 fr_json_join(prompt, json_array_size(prompt), list, sizeof list), count, ways[_i]);
    c.out[c.out_length - 1] = '\0';
    ck_assert_str_eq(c.out, expected);
    fr_command_free(&c);
    json_decref(object);
}
END_TEST

static void check_types(const json_t *stats) {
    static const char *const counts[] = {"prompt_tokens", "reused_tokens", "rerun_tokens", "generated_tokens",
                                         "target_calls",  "draft_calls",   "drafted",      "accepted",
                                         "rejected",      "rows"};
    static const char *const reals[] = {"acceptance", "tokens_per_target_call", "prefill_seconds", "decode_seconds",
                                        "draft_seconds"};
    static const char *const bytes[] = {"target_weights", "draft_weights", "resident", "mapped", "target_kv",
                                        "draft_kv",       "snapshots",     "scratch",  "peak"};
    for (size_t i = 0; i < 10; i++) ck_assert_msg(json_is_integer(fr_json_get(stats, counts[i])), "%s", counts[i]);
    for (size_t i = 0; i < 5; i++) ck_assert_msg(json_is_real(fr_json_get(stats, reals[i])), "%s", reals[i]);
    const json_t *memory = fr_json_get(stats, "memory");
    for (size_t i = 0; i < 9; i++) ck_assert_msg(json_is_integer(fr_json_get(memory, bytes[i])), "%s", bytes[i]);
    ck_assert(json_is_array(fr_json_get(stats, "accepted_lengths")));
}

/* A call of the drafter must be counted even if all drafts of the call were dropped because they were too unlikely. */
START_TEST(cut_drafts_are_calls) {
    json_t *object =
        run_json("generate " DEMO START DEMO_DRAFTER "-n 30 --ignore-eos --draft-max 3 --draft-p-min 1 --output json");
    const json_t *stats = fr_json_get(object, "stats");
    ck_assert_double_eq(number(stats, "drafted"), 0);
    /* the last step has no room for drafts */
    ck_assert_double_eq(number(stats, "draft_calls"), number(stats, "target_calls") - 1);
    ck_assert_uint_eq(json_array_size(fr_json_get(stats, "accepted_lengths")), 0);
    json_decref(object);
    object = run_json("generate " DEMO START "-n 30 --ignore-eos --output json");
    ck_assert_double_eq(number(fr_json_get(object, "stats"), "draft_calls"), 0);
    json_decref(object);
}
END_TEST

/* The numbers in the JSON output must agree with each other. */
START_TEST(json_has_everything) {
    bool drafting = _i > 0;
    const char *drafter = drafting ? DEMO_DRAFTER "--draft-max 3" : "";
    json_t *object = run_json("generate " DEMO START "-n 60 --ignore-eos --output json %s", drafter);
    const json_t *stats = fr_json_get(object, "stats"), *memory = fr_json_get(stats, "memory");
    const json_t *lengths = fr_json_get(stats, "accepted_lengths");
    check_types(stats);
    ck_assert_uint_eq(json_array_size(fr_json_get(object, "ids")), 60);
    ck_assert_str_eq(json_string_value(fr_json_get(object, "stop")), "length");
    ck_assert_uint_gt(strlen(text_of(object)), 60);

    double calls = number(stats, "target_calls"), drafted = number(stats, "drafted");
    double accepted = number(stats, "accepted");
    ck_assert_double_eq(number(stats, "generated_tokens"), 60);
    ck_assert_double_eq(number(stats, "tokens_per_target_call"), 59 / calls);
    ck_assert_double_eq(accepted + calls, 59);
    ck_assert_double_eq(number(stats, "rejected"), drafted - accepted);
    /* each forward also has one row for the last accepted id */
    ck_assert_double_eq(number(stats, "rows"), drafted + (double)json_array_size(lengths));
    ck_assert_double_eq(number(stats, "acceptance"), drafted > 0 ? accepted / drafted : 0);
    double sum = 0;
    for (size_t i = 0; i < json_array_size(lengths); i++) sum += json_number_value(json_array_get(lengths, i));
    ck_assert_double_eq(sum, accepted);
    ck_assert_uint_eq(json_array_size(lengths), (size_t)number(stats, "draft_calls"));
    ck_assert_int_eq(drafted > 0, drafting);
    ck_assert_int_eq(number(memory, "draft_weights") > 0, drafting);
    ck_assert_double_gt(number(memory, "target_weights"), 1e6);
    ck_assert_double_gt(number(memory, "target_kv"), 0);
    ck_assert_double_gt(number(memory, "peak"), number(memory, "scratch"));
    json_decref(object);
}
END_TEST

/* The numbers must be those that inspect gives for the same files. If files are read into memory instead of being
 * mapped, the number of mapped bytes must be 0. */
START_TEST(json_says_what_must_stay_in_memory) {
    static const char *const ways[] = {"", "--no-mmap "};
    for (size_t i = 0; i < 2; i++) {
        json_t *object = run_json("generate " DEMO START "-n 2 --output json %s", ways[i]);
        json_t *inspected = run_json("inspect " DEMO "-o json %s", ways[i]);
        const json_t *memory = fr_json_get(fr_json_get(object, "stats"), "memory");
        const json_t *resident = fr_json_get(inspected, "resident");
        ck_assert_double_gt(number(memory, "resident"), 0);
        ck_assert_double_eq(number(memory, "resident"), number(resident, "weights"));
        ck_assert_double_eq(number(memory, "mapped"), number(resident, "mapped"));
        ck_assert_int_eq(number(memory, "mapped") > 0, i == 0);
        json_decref(object);
        json_decref(inspected);
    }
}
END_TEST

#define DRAWN "-n 40 --temp 0.9 --top-p 0.9 --repeat-penalty 1.1 --seed 5 "

/* Each id of a sampled text must have an object with log-probabilities. The text must be the same with drafts, and a
 * different one with another seed. */
START_TEST(logprobs_of_drawn_text_are_in_json) {
    json_t *plain = run_json("generate " DEMO START DRAWN "--output json --logprobs 2");
    json_t *drafted = run_json("generate " DEMO DEMO_DRAFTER START DRAWN "--output json --logprobs 2");
    json_t *other = run_json("generate " DEMO START DRAWN "--seed 6 --output json");
    const json_t *ids = fr_json_get(plain, "ids"), *logprobs = fr_json_get(plain, "logprobs"), *one;
    size_t i;
    ck_assert(json_equal(ids, fr_json_get(drafted, "ids")));
    ck_assert(json_equal(logprobs, fr_json_get(drafted, "logprobs")));
    ck_assert(!json_equal(ids, fr_json_get(other, "ids")));
    ck_assert_ptr_null(json_object_get(other, "logprobs"));
    ck_assert_uint_eq(json_array_size(logprobs), json_array_size(ids));
    json_array_foreach (logprobs, i, one) {
        const json_t *best = fr_json_get(one, "top_logprobs"), *first = json_array_get(best, 0);
        ck_assert(json_equal(fr_json_get(one, "id"), json_array_get(ids, i)));
        ck_assert_uint_eq(json_array_size(best), 2);
        ck_assert_double_le(number(one, "logprob"), number(first, "logprob"));
        ck_assert_double_le(number(first, "logprob"), 0);
    }
    json_decref(plain);
    json_decref(drafted);
    json_decref(other);
}
END_TEST

START_TEST(three_forms_of_one_answer) {
    json_t *object = run_json("generate " DEMO START "-n 50 --output json");
    fr_command text = fr_command_ok("generate " DEMO START "-n 50 " DEMO_DRAFTER);
    fr_command ids = fr_command_ok("generate " DEMO START "-n 50 --output ids");
    char list[1024];
    ck_assert_uint_eq(text.out_length, strlen(text_of(object)) + 1);
    ck_assert_int_eq(strncmp(text.out, text_of(object), text.out_length - 1), 0);
    ck_assert_int_eq(text.out[text.out_length - 1], '\n');
    fr_json_join(fr_json_get(object, "ids"), json_array_size(fr_json_get(object, "ids")), list, sizeof list);
    ids.out[ids.out_length - 1] = '\0';
    ck_assert_str_eq(ids.out, list);
    fr_command_free(&text);
    fr_command_free(&ids);
    json_decref(object);
}
END_TEST

/* If no other prompt is given, piped input is the prompt. If both -f and -p are given, the text of -p follows that of
 * -f. */
START_TEST(prompts_come_by_pipes_and_in_two_parts) {
    fr_command whole = fr_command_ok("generate " DEMO START "-n 20"), piped, parts;
    piped = fr_command_feed("The function returns a", "generate " DEMO "-n 20");
    ck_assert_str_eq(piped.out, whole.out);
    parts = fr_command_feed("The function", "generate " DEMO "-p ' returns a' -f - -n 20");
    ck_assert_str_eq(parts.out, whole.out);
    fr_command_free(&piped);
    fr_command_free(&parts);
    piped = fr_command_feed("Hello", "tokenize " DEMO);
    parts = fr_command_ok("tokenize " DEMO "-p Hello");
    ck_assert_str_eq(piped.out, parts.out);
    fr_command_free(&piped);
    piped = fr_command_run("generate " DEMO "-n 20", "");
    ck_assert_int_eq(piped.status, 2);
    ck_assert_msg(strstr(piped.err, "needs a prompt") != NULL, "%s", piped.err);
    fr_command_free(&whole);
    fr_command_free(&piped);
    fr_command_free(&parts);
}
END_TEST

/* A text and its ids must be the same prompt. An empty text is the prompt <bos>. */
START_TEST(prompts_are_their_ids) {
    fr_command tokens = fr_command_ok("tokenize " DEMO START), text, file, ids, empty, bos;
    tokens.out[tokens.out_length - 1] = '\0';
    text = fr_command_ok("generate " DEMO START "-n 20 --output ids");
    file = fr_command_feed("The function returns a", "generate " DEMO "-f - -n 20 --output ids");
    ids = fr_command_ok("generate " DEMO "--ids %s -n 20 --output ids", tokens.out);
    ck_assert_str_eq(text.out, ids.out);
    ck_assert_str_eq(file.out, ids.out);
    empty = fr_command_ok("generate " DEMO "-p '' -n 20 --output ids");
    bos = fr_command_ok("generate " DEMO "--ids 2 -n 20 --output ids");
    ck_assert_str_eq(empty.out, bos.out);
    ck_assert_str_ne(empty.out, ids.out);
    fr_command_free(&tokens);
    fr_command_free(&text);
    fr_command_free(&file);
    fr_command_free(&ids);
    fr_command_free(&empty);
    fr_command_free(&bos);
}
END_TEST

/* A stop string from the middle of the text must end the text before that string. With and without drafts it must end
 * at the same token. */
START_TEST(stop_ends_before_the_text) {
    json_t *whole = run_json("generate " DEMO START "-n 60 --output json");
    char stop[12] = "", before[1024] = "";
    const char *text = text_of(whole);
    ck_assert_uint_gt(strlen(text), 60);
    snprintf(stop, sizeof stop, "%.7s", text + 40);
    ck_assert_ptr_null(strchr(stop, '\''));
    snprintf(before, sizeof before, "%.*s", (int)(strstr(text, stop) - text), text);

    json_t *plain = run_json("generate " DEMO START "-n 60 --output json --stop never --stop '%s'", stop);
    json_t *drafted =
        run_json("generate " DEMO DEMO_DRAFTER START "-n 60 --output json --draft-max 7 --stop '%s'", stop);
    fr_command streamed = fr_command_ok("generate " DEMO START "-n 60 --stop '%s' " DEMO_DRAFTER, stop);
    ck_assert_str_eq(text_of(plain), before);
    ck_assert_str_eq(text_of(drafted), before);
    ck_assert_uint_eq(streamed.out_length, strlen(before) + 1);
    ck_assert_int_eq(strncmp(streamed.out, before, strlen(before)), 0);
    ck_assert_str_eq(json_string_value(fr_json_get(plain, "stop")), "stop");
    size_t kept = json_array_size(fr_json_get(plain, "ids"));
    ck_assert_uint_lt(kept, 60);
    ck_assert(json_equal(fr_json_get(plain, "ids"), fr_json_get(drafted, "ids")));
    ck_assert(same_ids(fr_json_get(plain, "ids"), fr_json_get(whole, "ids"), kept));
    ck_assert_double_eq(number(fr_json_get(drafted, "stats"), "generated_tokens"), (double)kept);
    fr_command_free(&streamed);
    json_decref(whole);
    json_decref(plain);
    json_decref(drafted);
}
END_TEST

/* Text that may be the beginning of a stop string is held back. If the stop string is never completed, this text must
 * be printed, even at the very end. */
START_TEST(what_was_held_back_comes) {
    json_t *whole = run_json("generate " DEMO START "-n 60 --output json");
    const char *text = text_of(whole);
    char stop[32];
    snprintf(stop, sizeof stop, "%s#", text + strlen(text) - 9);
    ck_assert_ptr_null(strchr(stop, '\''));
    fr_command c = fr_command_ok("generate " DEMO START "-n 60 --stop '%s' --stop '%.3s#'", stop, text + 10);
    ck_assert_uint_eq(c.out_length, strlen(text) + 1);
    ck_assert_int_eq(strncmp(c.out, text, strlen(text)), 0);
    fr_command_free(&c);
    json_decref(whole);
}
END_TEST

/* Makes a folder with a copy of the reference model. Its generation_config.json names another end of sequence. */
static void make_model(char *folder, size_t size, long long eos) {
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"};
    snprintf(folder, size, "%s/forerun-cli-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char from[PATH_MAX], to[PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(to, sizeof to, FOLDER "/%s", files[i]);
        ck_assert_ptr_nonnull(realpath(to, from));
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        ck_assert_int_eq(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/generation_config.json", folder);
    FILE *file = fopen(to, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "{\"eos_token_id\": %lld}\n", eos);
    fclose(file);
}

static void remove_folder(const char *folder) {
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}

/* The configuration names an id as the end of sequence that is not in the vocabulary. This id must be ignored. */
START_TEST(an_end_that_no_token_has_is_left_out) {
    char folder[256], line[512];
    make_model(folder, sizeof folder, 151645);
    snprintf(line, sizeof line, "generate -m %s --ids 2 -n 2 --output ids", folder);
    fr_command c = fr_command_run(line, NULL), plain = fr_command_ok("generate " MODEL "--ids 2 -n 2 --output ids");
    ck_assert_msg(c.status == 0, "%s", c.err);
    ck_assert_str_eq(c.out, plain.out);
    ck_assert_str_eq(c.err, "forerun: generation_config.json: \"eos_token_id\" holds 151645, which no token has: it is "
                            "left out\n");
    fr_command_free(&c);
    fr_command_free(&plain);
    remove_folder(folder);
}
END_TEST

/* An end of sequence is the last id, and prints no text. With --ignore-eos the text continues after it. */
START_TEST(end_of_sequence) {
    enum { AT = 5 };
    json_t *object = fr_reference_json(), *ids = fr_reference_prompt(object), *tokens = fr_reference_greedy(object);
    char folder[256], prompt[1024];
    make_model(folder, sizeof folder, json_integer_value(json_array_get(tokens, AT)));
    fr_json_join(ids, json_array_size(ids), prompt, sizeof prompt);
    json_t *ended = run_json("generate -m %s --ids %s -n 20 --output json %s", folder, prompt, _i ? DRAFTER : "");
    json_t *shorter = run_json("generate -m %s --ids %s -n %d --output json", folder, prompt, AT);
    json_t *went_on = run_json("generate -m %s --ids %s -n 20 --ignore-eos --output json", folder, prompt);
    ck_assert_uint_eq(json_array_size(fr_json_get(ended, "ids")), AT + 1);
    ck_assert(same_ids(fr_json_get(ended, "ids"), tokens, AT + 1));
    ck_assert_str_eq(json_string_value(fr_json_get(ended, "stop")), "eos");
    ck_assert_str_eq(text_of(ended), text_of(shorter));
    ck_assert_str_eq(json_string_value(fr_json_get(shorter, "stop")), "length");
    ck_assert_uint_eq(json_array_size(fr_json_get(went_on, "ids")), 20);
    ck_assert_str_eq(json_string_value(fr_json_get(went_on, "stop")), "length");
    remove_folder(folder);
    json_decref(object);
    json_decref(ended);
    json_decref(shorter);
    json_decref(went_on);
}
END_TEST

/* A model's head may have more rows than its vocabulary has tokens. Here the last token is removed from the vocabulary.
 * Its id is the only one that can be sampled. */
START_TEST(an_id_that_is_no_token) {
    json_t *tokenizer = json_load_file(FOLDER "/tokenizer.json", 0, NULL), *model = fr_json_get(tokenizer, "model");
    json_t *merges = fr_json_get(model, "merges");
    ck_assert_int_eq(json_object_del(fr_json_get(model, "vocab"), "()"), 0);
    ck_assert_int_eq(json_array_remove(merges, json_array_size(merges) - 1), 0);
    char folder[256], path[PATH_MAX];
    make_model(folder, sizeof folder, 1);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(json_dump_file(tokenizer, path, 0), 0);
    fr_command c = fr_command_ok("generate -m %s --ids 2,415 -n 3 -l 511+1000", folder);
    ck_assert_str_eq(c.out, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n");
    fr_command_free(&c);
    remove_folder(folder);
    json_decref(tokenizer);
}
END_TEST

/* Without -n, or with -n -1, the text continues until the context is full. */
START_TEST(until_the_context_is_full) {
    json_t *full = run_json("generate " MODEL "--ids 2,415,443 -c 40 --ignore-eos --output json");
    json_t *endless = run_json("generate " MODEL "--ids 2,415,443 -c 40 -n -1 --ignore-eos --output json " DRAFTER);
    ck_assert_uint_eq(json_array_size(fr_json_get(full, "ids")), 37);
    ck_assert_str_eq(json_string_value(fr_json_get(full, "stop")), "context");
    ck_assert_str_eq(json_string_value(fr_json_get(endless, "stop")), "context");
    ck_assert(json_equal(fr_json_get(full, "ids"), fr_json_get(endless, "ids")));
    json_t *limited = run_json("generate " MODEL "--ids 2,415,443 -c 40 -n 37 --ignore-eos --output json");
    ck_assert(json_equal(fr_json_get(full, "ids"), fr_json_get(limited, "ids")));
    ck_assert_str_eq(json_string_value(fr_json_get(limited, "stop")), "length");
    json_decref(full);
    json_decref(endless);
    json_decref(limited);
    fr_command c = fr_command_ok("generate " MODEL "--ids 2,415,443 -c 40 --ignore-eos"), quiet;
    quiet = fr_command_ok("generate " MODEL "--ids 2,415,443 -c 40 --ignore-eos --quiet");
    ck_assert_str_eq(c.err,
                     "forerun: the context is full: it holds 40 tokens (-c N; this model's own limit is 4096)\n");
    ck_assert_str_eq(quiet.err, "");
    fr_command_free(&c);
    fr_command_free(&quiet);
}
END_TEST

/* If -c is larger than the model's own context, the model's own context is used, and a note says so. --verbose prints
 * the context that is used. */
START_TEST(contexts) {
    fr_command large = fr_command_ok("generate " MODEL "--ids 2 -n 1 -c 5000"), quiet, all, small;
    ck_assert_ptr_nonnull(strstr(large.err, "4096"));
    quiet = fr_command_ok("generate " MODEL "--ids 2 -n 1 -c 5000 --quiet");
    ck_assert_str_eq(quiet.err, "");
    all = fr_command_ok("generate " MODEL "--ids 2 -n 1 -c 0 --verbose");
    ck_assert_ptr_nonnull(strstr(all.err, "context 4096"));
    small = fr_command_ok("generate " MODEL "--ids 2 -n 1 -c 32 --verbose --isa scalar -t 1");
    ck_assert_ptr_nonnull(strstr(small.err, "isa scalar, threads 1, context 32"));
    fr_command_free(&large);
    fr_command_free(&quiet);
    fr_command_free(&all);
    fr_command_free(&small);
}
END_TEST

/* Removes the escape sequences of colours from a text. Returns how often a colour was switched on. */
static size_t strip_colours(char *text) {
    size_t count = 0;
    char *to = text;
    for (const char *from = text; *from;) {
        if (*from != '\033') {
            *to++ = *from++;
            continue;
        }
        count += strncmp(from, "\033[32m", 5) == 0;
        from += strcspn(from, "m") + 1;
    }
    *to = '\0';
    return count;
}

START_TEST(colours_mark_accepted_drafts) {
    fr_command plain = fr_command_ok("generate " DEMO START "-n 60"), drafts, none;
    drafts = fr_command_ok("generate " DEMO START "-n 60 --color --draft-max 3 " DEMO_DRAFTER);
    none = fr_command_ok("generate " DEMO START "-n 60 --color --spec-type none " DEMO_DRAFTER);
    ck_assert_str_eq(none.out, plain.out);
    ck_assert_str_ne(drafts.out, plain.out);
    ck_assert_uint_gt(strip_colours(drafts.out), 5);
    ck_assert_str_eq(drafts.out, plain.out);
    fr_command_free(&plain);
    fr_command_free(&drafts);
    fr_command_free(&none);
}
END_TEST

START_TEST(stats_are_for_people) {
    fr_command plain = fr_command_ok("generate " DEMO START "-no-cnv -n 60");
    fr_command stats = fr_command_ok("generate " DEMO START "-n 60 --stats " DEMO_DRAFTER);
    ck_assert_str_eq(stats.out, plain.out);
    ck_assert_str_eq(plain.err, "");
    static const char *const words[] = {"prompt", "generated", "tokens a call", "acceptance", "tokens/s", "memory"};
    for (size_t i = 0; i < 6; i++) ck_assert_msg(strstr(stats.err, words[i]) != NULL, "%s: %s", words[i], stats.err);
    fr_command_free(&plain);
    fr_command_free(&stats);
}
END_TEST

/* Runs the command with `out` as its standard output. It must end with this status, and standard error must be exactly
 * `says`. */
static void expect_failed_write(const char *line, int out, int expected, const char *says) {
    char err[4096];
    FILE *in = tmpfile(), *file = tmpfile();
    fputs("Hello\nMore\n", in);
    rewind(in);
    int status = fr_command_wait(fr_command_start(line, fileno(in), out, fileno(file)));
    rewind(file);
    err[fread(err, 1, sizeof err - 1, file)] = '\0';
    ck_assert_msg(status == expected, "%s: exit %d: %s", line, status, err);
    ck_assert_msg(strcmp(err, says) == 0, "%s: not \"%s\", but: %s", line, says, err);
    fclose(in);
    fclose(file);
}

/* A command line for each verb that writes to standard output. The verb must end at the first write that fails. It must
 * not print statistics or a second error line. */
static const char *const writers[] = {
    "generate " DEMO START "-no-cnv -n 4000 --ignore-eos --stats",
    "generate " DEMO START "-no-cnv -n 300 --ignore-eos --output ids --stats",
    "generate " DEMO START "-no-cnv -n 300 --ignore-eos --output json --stats",
    TALK "-n 40 --stats --quiet",
    "tokenize " MODEL "-p x",
    "tokenize " DEMO "--decode --ids 300,400,500",
    "inspect " MODEL "--tensors",
    "verify " MODEL "--quiet",
    "perplexity " DEMO "-f tests/data/perplexity/text.txt -c 64 --chunks 2 --quiet",
    "logits " DEMO "-o - -f tests/data/perplexity/text.txt",
    "perplexity " DEMO "-f tests/data/perplexity/text.txt -c 64 --chunks 9 --quiet --kl-divergence-base /dev/stdout",
    "quantize " DEMO "--type q8_0 -o - --quiet",
    "synth --shape gemma4-1b --type q4_0 --layers 2 --vocab 4096 --quiet -",
    "bench machine --quiet",
    "--help",
    "generate --help",
};

START_TEST(the_first_write_that_fails_ends_the_command) {
    const char *line = writers[_i];
    int full = open("/dev/full", O_WRONLY), ends[2];
    bool named = strstr(line, "/dev/stdout");
    expect_failed_write(line, full, 1,
                        named ? "forerun: /dev/stdout: No space left on device\n"
                              : "forerun: standard output: No space left on device\n");
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    /* A write to a closed pipe must end the command by SIGPIPE. cat, yes and other programs end in the same way */
    expect_failed_write(line, ends[1], 128 + SIGPIPE, "");
    close(ends[1]);
    close(full);
}
END_TEST

/* A standard stream may already be closed when the command starts. The next opened file must not get the stream's
 * number. Otherwise the stream's output would go into that file. */
START_TEST(a_closed_stream_is_no_file) {
    char file[] = "/tmp/forerun-closed-XXXXXX", line[256], text[1 << 16] = "";
    int named = mkstemp(file), null = open("/dev/null", O_RDWR);
    snprintf(line, sizeof line, "generate " DEMO START "-no-cnv -n 20 --stats --trace %s", file);
    expect_failed_write(line, -1, 1, "forerun: standard output: Bad file descriptor\n");
    ck_assert_int_eq(fr_command_wait(fr_command_start(line, -1, null, -1)), 0);
    close(named);
    named = open(file, O_RDONLY);
    ck_assert_int_gt(read(named, text, sizeof text - 1), 0);
    ck_assert_msg(*text == '{' && !strstr(text, "\ngenerated "), "%s", text);
    unlink(file);
    close(named);
    close(null);
}
END_TEST

/* In this test files may not grow beyond a limit. The error line must name the file that could not be written, and no
 * part of that file may be left. */
START_TEST(a_file_that_can_not_be_written_is_named) {
    static const char *const lines[] = {
        "logits " DEMO "-f tests/data/perplexity/text.txt -o %s",
        "generate " DEMO START "-no-cnv -n 300 --ignore-eos --output ids --stats --trace %s",
        "quantize " DEMO "--type q8_0 --quiet -o %s",
        "generate " DEMO START "-no-cnv -n 3 --output ids --prompt-cache %s",
    };
    char folder[] = "/tmp/forerun-cli-XXXXXX", line[512], path[64], says[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    int null = open("/dev/null", O_WRONLY);
    struct rlimit small, before;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 8192, .rlim_max = before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(line, sizeof line, lines[i], path);
        snprintf(says, sizeof says, "forerun: %s: %sFile too large\n", path, i == 3 ? "can't be written: " : "");
        expect_failed_write(line, null, 1, says);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(rmdir(folder), 0);
    close(null);
}
END_TEST

/* The stack of 256 KB (ulimit -s 256) is smaller than a kernel needs. It is also smaller than a thread's default
 * stack. */
START_TEST(a_small_stack_is_enough) {
    static const char *const lines[] = {
        "generate " DEMO START "-n 30 --output ids",
        "generate " DEMO START "-n 30 --output ids -t 1 --isa scalar",
        "generate " DEMO DEMO_DRAFTER START "-n 30 --output ids --draft-max 3",
        "verify " DEMO DEMO_DRAFTER,
        "quantize " DEMO "--type q4_k --quiet -o -",
    };
    struct rlimit small, before;
    ck_assert_int_eq(getrlimit(RLIMIT_STACK, &before), 0);
    small = (struct rlimit){.rlim_cur = 256 << 10, .rlim_max = before.rlim_max};
    fr_command usual = fr_command_ok("%s", lines[_i]);
    ck_assert_int_eq(setrlimit(RLIMIT_STACK, &small), 0);
    fr_command c = fr_command_run(lines[_i], NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_STACK, &before), 0);
    ck_assert_msg(c.status == 0, "%s: exit %d: %s", lines[_i], c.status, c.err);
    ck_assert_uint_eq(c.out_length, usual.out_length);
    ck_assert_mem_eq(c.out, usual.out, c.out_length);
    fr_command_free(&c);
    fr_command_free(&usual);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- terminals */

/* Runs a command whose standard error is a terminal. `text` gets what the command writes there. */
static void run_on_terminal(const char *line, char *text, size_t size) {
    int terminal, end, null = open("/dev/null", O_RDWR);
    ck_assert_int_eq(openpty(&terminal, &end, NULL, NULL, NULL), 0);
    pid_t process = fr_command_start(line, null, null, end);
    close(end);
    size_t length = 0;
    for (ssize_t got; length < size - 1 && (got = read(terminal, text + length, size - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    text[length] = '\0';
    ck_assert_int_eq(fr_command_wait(process), 0);
    close(terminal);
    close(null);
}

START_TEST(loading_shows_on_a_terminal) {
    char text[65536];
    run_on_terminal("generate " DEMO "--ids 2 -n 1", text, sizeof text);
    ck_assert_msg(strstr(text, "loading") != NULL && strstr(text, "100%") != NULL, "%s", text);
    ck_assert_msg(strcmp(strrchr(text, '\r'), "\r\033[K") == 0, "not erased: %s", text);
    run_on_terminal("generate " DEMO "--ids 2 -n 1 --quiet", text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(scoring_shows_on_a_terminal) {
    static const char line[] = "perplexity " DEMO "-f tests/data/perplexity/text.txt -c 32 --chunks 3";
    char text[65536], quiet[256];
    run_on_terminal(line, text, sizeof text);
    ck_assert_msg(strstr(text, "scoring   0% of 3 chunks\r") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "scoring  66% of 3 chunks, perplexity ") != NULL, "%s", text);
    ck_assert_msg(strcmp(strrchr(text, '\r'), "\r\033[K") == 0, "not erased: %s", text);
    snprintf(quiet, sizeof quiet, "%s --quiet", line);
    run_on_terminal(quiet, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

FR_SUITE("cli") {
    TCase *cases = tcase_create("cli");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, tokenize_and_back, 0, 4);
    tcase_add_loop_test(cases, pieces_are_the_ids_and_the_text, 0, 4);
    tcase_add_loop_test(cases, ids_are_the_references, 0, 4);
    tcase_add_test(cases, cut_drafts_are_calls);
    tcase_add_loop_test(cases, json_has_everything, 0, 2);
    tcase_add_test(cases, json_says_what_must_stay_in_memory);
    tcase_add_loop_test(cases, a_small_stack_is_enough, 0, 5);
    tcase_add_test(cases, logprobs_of_drawn_text_are_in_json);
    tcase_add_test(cases, three_forms_of_one_answer);
    tcase_add_test(cases, prompts_come_by_pipes_and_in_two_parts);
    tcase_add_test(cases, prompts_are_their_ids);
    tcase_add_test(cases, stop_ends_before_the_text);
    tcase_add_test(cases, what_was_held_back_comes);
    tcase_add_test(cases, an_end_that_no_token_has_is_left_out);
    tcase_add_loop_test(cases, end_of_sequence, 0, 2);
    tcase_add_test(cases, an_id_that_is_no_token);
    tcase_add_test(cases, until_the_context_is_full);
    tcase_add_test(cases, contexts);
    tcase_add_test(cases, colours_mark_accepted_drafts);
    tcase_add_test(cases, stats_are_for_people);
    fr_test_add_loop(cases, the_first_write_that_fails_ends_the_command, sizeof writers / sizeof *writers, 2);
    tcase_add_test(cases, a_closed_stream_is_no_file);
    tcase_add_test(cases, a_file_that_can_not_be_written_is_named);
    tcase_add_test(cases, loading_shows_on_a_terminal);
    fr_test_add_long(cases, scoring_shows_on_a_terminal);
    suite_add_tcase(suite, cases);
}
