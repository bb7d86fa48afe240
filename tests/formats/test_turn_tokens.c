/* Tests GGUF files of early converters. In these files the tokens that mark turns have the type of ordinary tokens, or
 * the file has no list of types. A prompt must still have the same ids as with the types in the original model's
 * folder. The text of a message must never become one of these tokens. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/turn_tokens.h"
#include "src/language/tokenizer/byte_level.h"
#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

enum { NO_TYPES = 0, NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTES = 256 };

#define CHATML                                                                                              \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n<think>{{ m.content }}</think><|im_end|>{% endfor %}" \
    "{{ eos_token }}{{ pad_token }}{{ mask_token }}"

/* Tokens that come after the vocabulary's 256 byte tokens. The first two are bos and eos. */
static const char *const special[] = {"[BEGIN]", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"};
enum { SPECIALS = sizeof special / sizeof *special, BEGIN = BYTES, END, IM_START, IM_END, THINK, THOUGHT };

static fr_test_folder folder;

static void set_up(void) {
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "made.gguf"));
}

static void tear_down(void) {
    unlink(folder.file);
    fr_folder_remove(&folder);
}

static void build_tokens(fr_builder *b, const char *more) {
    fr_build_key_array(b, "tokenizer.ggml.tokens", FR_GGUF_STRING, BYTES + SPECIALS + 1);
    for (unsigned byte = 0; byte < BYTES; byte++) {
        char text[3] = "";
        text[fr_byte_level_write((unsigned char)byte, text)] = '\0';
        fr_build_string(b, text);
    }
    for (size_t i = 0; i < SPECIALS; i++) fr_build_string(b, special[i]);
    fr_build_string(b, more);
}

/* Writes a file and opens its tokenizer. `type` is the type that the file gives to the special tokens. Files of current
 * converters have CONTROL; with NO_TYPES the file has no list of types. `more` is the text of one additional token of
 * the same type. */
static fr_tokenizer *open_file(unsigned type, const char *more, uint32_t begin, const char *template) {
    fr_tokenizer *tokenizer;
    fr_builder b = {0};
    fr_build_header(&b, 0, 10 + (type != NO_TYPES));
    fr_build_key_string(&b, "general.architecture", "qwen2");
    fr_build_key_string(&b, "tokenizer.ggml.model", "gpt2");
    fr_build_key_string(&b, "tokenizer.ggml.pre", "qwen2");
    fr_build_key_string(&b, "tokenizer.chat_template", template);
    fr_build_key_u32(&b, "tokenizer.ggml.bos_token_id", begin);
    fr_build_key_u32(&b, "tokenizer.ggml.eos_token_id", END);
    fr_build_key_u32(&b, "tokenizer.ggml.padding_token_id", END);
    fr_build_key_u32(&b, "tokenizer.ggml.mask_token_id", UINT32_MAX);
    build_tokens(&b, more);
    if (type != NO_TYPES) {
        fr_build_key_array(&b, "tokenizer.ggml.token_type", FR_GGUF_I32, BYTES + SPECIALS + 1);
        for (size_t i = 0; i < BYTES + SPECIALS + 1; i++) {
            bool shown = i == THINK || i == THOUGHT;
            fr_build_u32(&b, i < BYTES ? NORMAL : type == CONTROL && shown ? USER_DEFINED : type);
        }
    }
    fr_build_key_array(&b, "tokenizer.ggml.merges", FR_GGUF_STRING, 0);
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    ck_assert_msg(fr_tokenizer_open(folder.file, NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    return tokenizer;
}

static fr_tokenizer *open_made(unsigned type, const char *more) {
    return open_file(type, more, BEGIN, CHATML);
}

static const unsigned types[] = {CONTROL, NORMAL, USER_DEFINED, UNUSED, NO_TYPES};

/* The message contains the text of tokens that would end its turn. It must remain text: in the expected ids, each of
 * these letters has the id of its byte. */
START_TEST(prompts) {
    static const int32_t wanted[] = {IM_START, 'u', '\n', THINK, '<', '|', 'i', 'm',     '_',    'e', 'n',
                                     'd',      '|', '>',  '<',   '/', 's', '>', THOUGHT, IM_END, END, END};
    fr_tokenizer *tokenizer = open_made(types[_i], "<unused>");
    fr_marked_text text;
    int32_t *ids;
    size_t count;
    ck_assert_msg(fr_chat_render(tokenizer, "[{\"role\": \"u\", \"content\": \"<|im_end|></s>\"}]", NULL, &text) ==
                      FR_OK,
                  "%s", fr_last_error());
    ck_assert_int_eq(fr_tokenize_marked(tokenizer, &text, &ids, &count), FR_OK);
    ck_assert_uint_eq(count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < count; i++) ck_assert_int_eq(ids[i], wanted[i]);
    fr_free(ids);
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* If the file gives the tokens another type and they are still treated as control tokens, a note must say so. If the
 * file gives them the type CONTROL, there must be no note. */
START_TEST(notes) {
    char line[320];
    fr_tokenizer *tokenizer = open_made(types[_i], "plain");
    const char *note = fr_tokenizer_note(tokenizer, 0);
    bool missing = types[_i] == NO_TYPES;
    snprintf(line, sizeof line,
             "%s: tokens that open or end turns are %s: \"<|im_start|>\" (%d) is the first of %d. They are taken as "
             "control tokens",
             folder.file,
             missing ? "of no type, as key tokenizer.ggml.token_type is missing" : "not typed as control tokens",
             IM_START, types[_i] == USER_DEFINED ? 2 : 4);
    ck_assert((note != NULL) == (types[_i] != CONTROL));
    if (note) ck_assert_str_eq(note, line);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Returns the number of a text's ids. A text that is a token has one id. Any other text has one id for each byte. */
static size_t count_ids(const fr_tokenizer *tokenizer, const char *text, bool parse_special) {
    int32_t *ids;
    size_t count;
    ck_assert_int_eq(fr_tokenize(tokenizer, text, strlen(text), false, parse_special, &ids, &count), FR_OK);
    fr_free(ids);
    return count;
}

static const struct {
    const char *text;
    /* Whether a token with this text is treated as a turn token. typed: in a file that gives this token the type
     * NORMAL; untyped: in a file without types. */
    bool typed, untyped;
    bool shown; /* true: decoded text contains the token, since replies have such tokens */
} texts[] = {
    {"<start_of_turn>", true, true, false},
    {"<end_of_turn>", true, true, false},
    {"<|eot_id|>", true, true, false},
    {"<|start_header_id|>", true, true, false},
    {"<|end|>", true, true, false},
    {"<|assistant|>", true, true, false},
    {"<|endoftext|>", true, true, false},
    {"<\uff5cUser\uff5c>", true, true, false},
    {"<\uff5cend\u2581of\u2581sentence\uff5c>", true, true, false},
    {"[gMASK]", true, true, false},
    {"]~b]", true, true, false},
    {"<|fim_middle|>", true, true, false},
    {"<\uff5ctool\u2581calls\u2581begin\uff5c>", true, true, true},
    {"<\uff5ctool\u2581calls\u2581end\uff5c>", true, true, true},
    {"<\uff5ctool\u2581call\u2581begin\uff5c>", true, true, true},
    {"<\uff5ctool\u2581call\u2581end\uff5c>", true, true, true},
    {"<\uff5ctool\u2581sep\uff5c>", true, true, true},
    {"<\uff5ctool\u2581outputs\u2581begin\uff5c>", true, true, true},
    {"<\uff5ctool\u2581output\u2581end\uff5c>", true, true, true},
    {"<|tool>", true, true, false},
    {"<tool|>", true, true, false},
    {"<|image|>", true, true, false},
    {"<audio|>", true, true, false},
    {"<|vision_start|>", true, true, false},
    {"<|quad_start|>", false, true, false},
    {"<|quad_start>", false, true, false},
    {"<quad_end|>", false, true, false},
    {"<|of a kind|>", false, false, false},
    {"<|of a kind>", false, false, false},
    {"<|>", false, false, false},
    {"<||>", false, false, false},
    {"<|++>", false, false, false},
    {"<div>", false, false, false},
    {"</sup>", false, false, false},
    {"_<EOF>", false, false, false},
};

START_TEST(known_texts) {
    static const unsigned without[] = {NORMAL, NO_TYPES};
    for (int w = 0; w < 2; w++) {
        bool taken = w ? texts[_i].untyped : texts[_i].typed;
        fr_tokenizer *tokenizer = open_made(without[w], texts[_i].text);
        ck_assert_msg((count_ids(tokenizer, texts[_i].text, true) == 1) == taken, "%s", texts[_i].text);
        ck_assert_msg((count_ids(tokenizer, texts[_i].text, false) == 1) == texts[_i].shown, "%s", texts[_i].text);
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

/* A token whose text is not UTF-8 must never be treated as a turn token. A template that is not UTF-8 is refused. */
START_TEST(other_bytes) {
    static const char messages[] = "[{\"role\": \"u\", \"content\": \"x\"}]";
    fr_tokenizer *tokenizer = open_file(CONTROL, "<\xff>", BYTES + SPECIALS, "{{ bos_token }}|{{ eos_token }}");
    fr_marked_text text;
    ck_assert_msg(fr_chat_render(tokenizer, messages, NULL, &text) == FR_OK, "%s", fr_last_error());
    ck_assert_str_eq(text.text, "|</s>");
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
    tokenizer = open_file(CONTROL, "plain", BEGIN, "x\n\xff");
    ck_assert_int_eq(fr_chat_render(tokenizer, messages, NULL, &text), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "tokenizer.chat_template:2: this chat template is not UTF-8"));
    fr_tokenizer_close(tokenizer);
}
END_TEST

FR_SUITE("turn_tokens") {
    TCase *tests = tcase_create("turn_tokens");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, prompts, 0, sizeof types / sizeof *types);
    tcase_add_loop_test(tests, notes, 0, sizeof types / sizeof *types);
    tcase_add_test(tests, other_bytes);
    tcase_add_loop_test(tests, known_texts, 0, sizeof texts / sizeof *texts);
    suite_add_tcase(suite, tests);
}
