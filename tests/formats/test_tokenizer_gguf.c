/* Tests tokenizers in GGUF metadata: files without some of the keys, and keys with meaningless values.
 *
 * The files are made from the tokenizer.json files of tests/data/tokenizers. Hugging Face's tokenizers computed the
 * expected ids of these. */
/* suite: hostile damaged */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/tokenizer_gguf.h"
#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/command.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, ENDS_MAX = 8 };

static fr_test_folder folder;

static void set_up(void) {
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "made.gguf"));
}

static void tear_down(void) {
    unlink(folder.file);
    fr_folder_remove(&folder);
}

/* ----------------------------------------------------------------------------------------------- writing the files */

/* A key that is added to a file. Exactly one of its possible values is not NULL. */
typedef struct extra {
    const char *key, *text;
    const uint32_t *number;
    const bool *flag;
} extra;

typedef struct lists {
    const char **tokens;
    uint8_t *types;
    size_t count;
} lists;

static void take(lists *l, const char *text, json_int_t id, uint8_t type) {
    ck_assert_int_lt(id, (json_int_t)l->count);
    l->tokens[id] = text;
    l->types[id] = type;
}

static lists read_lists(const json_t *root) {
    const json_t *vocabulary = json_object_get(json_object_get(root, "model"), "vocab"), *added;
    const json_t *all = json_object_get(root, "added_tokens");
    lists l = {.count = json_object_size(vocabulary) + json_array_size(all)};
    l.tokens = calloc(l.count, sizeof *l.tokens);
    l.types = calloc(l.count, sizeof *l.types);
    const char *text;
    json_t *id;
    json_object_foreach ((json_t *)vocabulary, text, id) take(&l, text, json_integer_value(id), NORMAL);
    size_t i;
    json_array_foreach (all, i, added)
        take(&l, json_string_value(json_object_get(added, "content")), json_integer_value(json_object_get(added, "id")),
             json_is_true(json_object_get(added, "special")) ? CONTROL : USER_DEFINED);
    return l;
}

static void build_lists(fr_builder *b, const json_t *root) {
    const json_t *merges = json_object_get(json_object_get(root, "model"), "merges"), *merge;
    lists l = read_lists(root);
    fr_build_key_array(b, "tokenizer.ggml.tokens", FR_GGUF_STRING, l.count);
    for (size_t id = 0; id < l.count; id++) fr_build_string(b, l.tokens[id]);
    fr_build_key_array(b, "tokenizer.ggml.token_type", FR_GGUF_I32, l.count);
    for (size_t id = 0; id < l.count; id++) fr_build_u32(b, l.types[id]);
    fr_build_key_array(b, "tokenizer.ggml.merges", FR_GGUF_STRING, json_array_size(merges));
    size_t i;
    json_array_foreach (merges, i, merge) {
        char both[512];
        snprintf(both, sizeof both, "%s %s", json_string_value(json_array_get(merge, 0)),
                 json_string_value(json_array_get(merge, 1)));
        fr_build_string(b, both);
    }
    free(l.tokens);
    free(l.types);
}

static void build_extra(fr_builder *b, const extra *e) {
    if (e->text) fr_build_key_string(b, e->key, e->text);
    if (e->number) fr_build_key_u32(b, e->key, *e->number);
    if (e->flag) fr_build_key_bool(b, e->key, *e->flag);
}

/* Writes a GGUF file with one of the tokenizers of tests/data/tokenizers and these additional keys. */
static void write_file(const char *name, const char *architecture, const extra *extras, size_t count) {
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer.json", name);
    json_t *root = fr_load_json(path);
    fr_builder b = {0};
    fr_build_header(&b, 0, 5 + count);
    fr_build_key_string(&b, "general.architecture", architecture);
    fr_build_key_string(&b, "tokenizer.ggml.model", "gpt2");
    build_lists(&b, root);
    for (size_t i = 0; i < count; i++) build_extra(&b, &extras[i]);
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    json_decref(root);
}

static fr_tokenizer *open_file(void) {
    fr_tokenizer *tokenizer;
    ck_assert_msg(fr_tokenizer_open(folder.file, NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    return tokenizer;
}

static void check_cases(const fr_tokenizer *tokenizer, const char *name) {
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer_cases.json", name);
    json_t *root = fr_load_json(path);
    fr_check_encoding(tokenizer, json_object_get(root, "encode"), path);
    json_decref(root);
}

/* Checks that exactly these tokens, in this order, end a text. The list `texts` ends with NULL. If `line` is not NULL,
 * it must be the only note about these tokens. */
static void check_ends(const fr_tokenizer *tokenizer, const char *const *texts, const char *line) {
    fr_checkpoint files;
    fr_notes notes = {0};
    int32_t ids[ENDS_MAX];
    size_t count = 0, wanted = 0;
    ck_assert_int_eq(fr_checkpoint_open(&files, folder.file, true), FR_OK);
    size_t vocab = fr_tokenizer_count(tokenizer);
    fr_status status = fr_tokenizer_gguf_ends(files.gguf, "", vocab, &notes, ids, ENDS_MAX, &count);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    for (; texts[wanted]; wanted++) {
        char *text;
        size_t length;
        ck_assert_uint_lt(wanted, count);
        ck_assert_int_eq(fr_detokenize(tokenizer, &ids[wanted], 1, &text, &length), FR_OK);
        ck_assert_str_eq(text, texts[wanted]);
        fr_free(text);
    }
    ck_assert_uint_eq(count, wanted);
    ck_assert_uint_eq(notes.count, line != NULL);
    if (line) ck_assert_str_eq(fr_notes_line(&notes, 0), line);
    fr_notes_free(&notes);
    fr_checkpoint_close(&files);
}

/* ------------------------------------------------------------------------------------------ missing pre-tokenizers */

static const extra bos_of_llama = {.key = "tokenizer.ggml.bos_token_id", .number = &(uint32_t){1508}};
static const extra bos_of_deepseek = {.key = "tokenizer.ggml.bos_token_id", .number = &(uint32_t){1554}};
static const extra add_bos = {.key = "tokenizer.ggml.add_bos_token", .flag = &(bool){true}};
static const extra empty_pre = {.key = "tokenizer.ggml.pre", .text = ""};

static const struct {
    const char *name, *architecture, *pre;
    const extra *extras[2];
    const char *ends[4];
} assumed[] = {
    {"glm4", "glm4moe", "glm4", {0}, {"<|endoftext|>", "<|user|>", "<|observation|>"}},
    {"glm4", "glm4", "glm4", {&empty_pre}, {"<|endoftext|>", "<|user|>", "<|observation|>"}},
    {"glm4", "deepseek2", "glm4", {0}, {"<|endoftext|>", "<|user|>", "<|observation|>"}},
    {"qwen35", "qwen35", "qwen35", {0}, {"<|endoftext|>", "<|im_end|>"}},
    {"qwen35", "qwen35moe", "qwen35", {0}, {"<|endoftext|>", "<|im_end|>"}},
    {"deepseek3", "deepseek2", "deepseek-v3", {&bos_of_deepseek, &add_bos}, {"<｜end▁of▁sentence｜>"}},
    {"llama3", "llama", "llama-bpe", {&bos_of_llama}, {"<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"}},
};

START_TEST(pre_by_family) {
    extra extras[2];
    size_t count = 0;
    char line[256];
    for (; count < 2 && assumed[_i].extras[count]; count++) extras[count] = *assumed[_i].extras[count];
    write_file(assumed[_i].name, assumed[_i].architecture, extras, count);
    fr_tokenizer *tokenizer = open_file();
    check_cases(tokenizer, assumed[_i].name);
    snprintf(line, sizeof line,
             "%s: key tokenizer.ggml.pre is missing: texts are cut as by \"%s\", since architecture \"%s\" and the "
             "tokens go with that",
             folder.file, assumed[_i].pre, assumed[_i].architecture);
    ck_assert_ptr_nonnull(fr_tokenizer_note(tokenizer, 0));
    ck_assert_str_eq(fr_tokenizer_note(tokenizer, 0), line);
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 1));
    check_ends(tokenizer, assumed[_i].ends, line);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* There are no reference ids for this pre-tokenizer. So the test only checks that the library selects it, and which
 * tokens end a text. */
START_TEST(pre_of_qwen3) {
    write_file("qwen35", "qwen3moe", NULL, 0);
    fr_tokenizer *tokenizer = open_file();
    ck_assert_ptr_nonnull(fr_tokenizer_note(tokenizer, 0));
    ck_assert_ptr_nonnull(strstr(fr_tokenizer_note(tokenizer, 0), "as by \"qwen2\""));
    check_ends(tokenizer, (const char *const[]){"<|endoftext|>", "<|im_end|>", NULL}, fr_tokenizer_note(tokenizer, 0));
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(pre_that_is_there) {
    write_file("glm4", "deepseek2", &(extra){.key = "tokenizer.ggml.pre", .text = "glm4"}, 1);
    fr_tokenizer *tokenizer = open_file();
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 0));
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Writes a copy of a complete model's file in which `count` bytes are replaced by the bytes of `other`. The replaced
 * bytes begin `skip` bytes after the end of `text`. */
static void write_model(const char *text, size_t skip, const void *other, size_t count) {
    size_t length;
    char *bytes;
    ck_assert_int_eq(fr_read_text("tests/data/deepseek-v3/model-bf16.gguf", 4 << 20, &bytes, &length), FR_OK);
    char *at = memmem(bytes, length, text, strlen(text));
    ck_assert_ptr_nonnull(at);
    memcpy(at + strlen(text) + skip, other, count);
    fr_builder b = {(uint8_t *)bytes, length};
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
}

/* Checks that the model has exactly one note. This is its tokenizer's note, and it must contain `words`. */
static void check_model_note(const char *words) {
    fr_model *model;
    ck_assert_msg(fr_model_open(folder.file, NULL, &model) == FR_OK, "%s", fr_last_error());
    ck_assert_ptr_nonnull(fr_model_note(model, 0));
    ck_assert_ptr_nonnull(strstr(fr_model_note(model, 0), words));
    ck_assert_ptr_null(fr_model_note(model, 1));
    fr_model_close(model);
}

START_TEST(note_of_a_model) {
    write_model("tokenizer.ggml.pr", 0, "x", 1);
    check_model_note("as by \"deepseek-v3\"");
}
END_TEST

START_TEST(note_on_standard_error) {
    write_file("llama3", "llama", &bos_of_llama, 1);
    fr_command told = fr_command_ok("tokenize -m %s -p a", folder.file);
    fr_command quiet = fr_command_ok("tokenize -m %s -p a --quiet", folder.file);
    ck_assert_ptr_nonnull(strstr(told.err, ": key tokenizer.ggml.pre is missing: texts are cut as by \"llama-bpe\""));
    ck_assert_str_eq(quiet.err, "");
    ck_assert_str_eq(quiet.out, told.out);
    fr_command_free(&told);
    fr_command_free(&quiet);
}
END_TEST

/* If the key tokenizer.ggml.pre is missing, the library concludes from the architecture and the tokens how to split
 * texts. Here one file has an unknown architecture. The others have tokens that don't fit their architecture. All are
 * refused. */
START_TEST(pre_that_nothing_tells) {
    static const char *const files[][2] = {{"glm4", "mamba"}, {"qwen35", "llama"}, {"llama3", "deepseek2"}};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char line[256];
        fr_tokenizer *tokenizer;
        write_file(files[i][0], files[i][1], NULL, 0);
        ck_assert_int_eq(fr_tokenizer_open(folder.file, NULL, &tokenizer), FR_INPUT);
        snprintf(line, sizeof line,
                 "%s: key tokenizer.ggml.pre is missing, and architecture \"%s\" with these tokens does not tell how "
                 "texts are cut",
                 folder.file, files[i][1]);
        ck_assert_str_eq(fr_last_error(), line);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------- ids that no token has */

static const char *const id_keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                      "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id",
                                      "tokenizer.ggml.eom_token_id"};
enum { BOS, EOS, UNKNOWN, EOT, EOM, ID_KEYS };

/* GLM-4 has 1532 tokens, with the ids 0 to 1531, so no token has one of these ids. */
static const uint32_t no_ids[] = {UINT32_MAX, 1532};

START_TEST(ids_of_no_token) {
    int key = _i % ID_KEYS;
    uint32_t id = no_ids[_i / ID_KEYS];
    const extra extras[] = {{.key = "tokenizer.ggml.pre", .text = "glm4"},
                            {.key = id_keys[key], .number = &id},
                            add_bos,
                            {.key = "tokenizer.ggml.add_eos_token", .flag = &(bool){true}}};
    char line[256];
    write_file("glm4", "glm4moe", extras, COUNT_OF(extras));
    fr_tokenizer *tokenizer = open_file();
    ck_assert_uint_eq(fr_tokenizer_count(tokenizer), no_ids[1]);
    check_cases(tokenizer, "glm4");
    snprintf(line, sizeof line, "%s: key %s is %u, which no token has: it is left out", folder.file, id_keys[key], id);
    if (key < EOT) {
        ck_assert_ptr_nonnull(fr_tokenizer_note(tokenizer, 0));
        ck_assert_str_eq(fr_tokenizer_note(tokenizer, 0), line);
    }
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, key < EOT));
    bool ends = key == EOS || key == EOT || key == EOM;
    check_ends(tokenizer, (const char *const[]){"<|endoftext|>", "<|user|>", "<|observation|>", NULL},
               ends ? line : NULL);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* An invalid id must be ignored, and the file's other ids must still be used. */
START_TEST(ids_beside_one_of_no_token) {
    const extra extras[] = {{.key = "tokenizer.ggml.pre", .text = "llama-bpe"},
                            bos_of_llama,
                            {.key = id_keys[EOS], .number = no_ids},
                            {.key = id_keys[EOT], .number = &(uint32_t){1513}}};
    char line[256];
    write_file("llama3", "llama", extras, COUNT_OF(extras));
    fr_tokenizer *tokenizer = open_file();
    check_cases(tokenizer, "llama3");
    snprintf(line, sizeof line, "%s: key %s is 4294967295, which no token has: it is left out", folder.file,
             id_keys[EOS]);
    check_ends(tokenizer, (const char *const[]){"<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", NULL}, line);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(id_of_no_token_in_a_model) {
    write_model(id_keys[EOS], 4, no_ids, 4);
    check_model_note("key tokenizer.ggml.eos_token_id is 4294967295, which no token has");
}
END_TEST

/* If the value of an id's key is not a number, this is an error. */
START_TEST(id_that_is_a_text) {
    fr_tokenizer *tokenizer;
    const extra extras[] = {{.key = "tokenizer.ggml.pre", .text = "glm4"}, {.key = id_keys[BOS], .text = "1"}};
    write_file("glm4", "glm4moe", extras, COUNT_OF(extras));
    ck_assert_int_eq(fr_tokenizer_open(folder.file, NULL, &tokenizer), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "tokenizer.ggml.bos_token_id is of type string"));
}
END_TEST

/* ---------------------------------------------------------------------------------------------- ends by their text */

static const struct {
    const char *tokens[6]; /* a "!" before a token means that it is a control token */
    const char *end, *end_of_turn, *fim_sep;
    const char *ends[5];
} by_text[] = {
    /* In gpt-oss and Solar, <|end|> ends only one part of a reply, and another part follows. In other models it ends
     * the reply. */
    {{"<|end|>", "<|return|>", "<|call|>", "a"}, "<|return|>", NULL, NULL, {"<|return|>", "<|call|>"}},
    {{"<|end|>", "<|flush|>", "<|calls|>", "a"}, "<|flush|>", NULL, NULL, {"<|flush|>", "<|calls|>"}},
    {{"<|end|>", "<|return|>", "a"}, "a", NULL, NULL, {"a", "<|return|>", "<|end|>"}},
    {{"<|end|>", "<|endoftext|>"}, "<|endoftext|>", NULL, NULL, {"<|endoftext|>", "<|end|>"}},
    /* If a token ends turns in chats, it must also end texts, even if the file names other end tokens. */
    {{"<|im_end|>", "<|end_of_text|>", "x"}, "<|end_of_text|>", NULL, NULL, {"<|end_of_text|>", "<|im_end|>"}},
    {{"x", "<|im_end|>", "<|eot_id|>"}, "<|im_end|>", "x", NULL, {"<|im_end|>", "x", "<|eot_id|>"}},
    /* A </s> that is not a control token may be HTML's end tag of struck-out text, so it does not end a text. */
    {{"</s>", "<|im_end|>"}, "<|im_end|>", NULL, NULL, {"<|im_end|>"}},
    {{"!</s>", "<|im_end|>"}, "<|im_end|>", NULL, NULL, {"<|im_end|>", "</s>"}},
    /* Models that fill in code have special tokens. Some of these end a text: the padding, and the tokens that begin
     * the next file or repository. The token before the middle part does not. */
    {{"<|fim_middle|>", "<|file_sep|>", "<|fim_pad|>", "<|repo_name|>"},
     NULL,
     NULL,
     NULL,
     {"<|file_sep|>", "<|fim_pad|>", "<|repo_name|>"}},
    {{"part", "<|fim_middle|>"}, NULL, NULL, "part", {"part"}},
    {{"<eos>", "<turn|>", "<|tool_response>", "[EOT]", "_<EOT>"},
     "<eos>",
     NULL,
     NULL,
     {"<eos>", "<turn|>", "<|tool_response>", "[EOT]", "_<EOT>"}},
};

static void build_id(fr_builder *b, const char *key, const char *text, size_t row) {
    uint32_t id = 0;
    if (!text) return;
    while (strcmp(by_text[row].tokens[id], text) != 0) id++;
    fr_build_key_u32(b, key, id);
}

/* The expected tokens follow llama.cpp's list of tokens that end a generation, with the exceptions that llama.cpp makes
 * (src/llama-vocab.cpp). */
START_TEST(ends_by_text) {
    size_t count = 0;
    const char *const *tokens = by_text[_i].tokens;
    fr_builder b = {0};
    while (count < 6 && tokens[count]) count++;
    size_t named = (by_text[_i].end != NULL) + (by_text[_i].end_of_turn != NULL) + (by_text[_i].fim_sep != NULL);
    fr_build_header(&b, 0, 6 + named);
    fr_build_key_string(&b, "general.architecture", "llama");
    fr_build_key_string(&b, "tokenizer.ggml.model", "gpt2");
    fr_build_key_string(&b, "tokenizer.ggml.pre", "llama-bpe");
    fr_build_key_array(&b, "tokenizer.ggml.tokens", FR_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++) fr_build_string(&b, tokens[i] + (*tokens[i] == '!'));
    fr_build_key_array(&b, "tokenizer.ggml.token_type", FR_GGUF_I32, count);
    for (size_t i = 0; i < count; i++) fr_build_u32(&b, *tokens[i] == '!' ? CONTROL : NORMAL);
    fr_build_key_array(&b, "tokenizer.ggml.merges", FR_GGUF_STRING, 0);
    build_id(&b, "tokenizer.ggml.eos_token_id", by_text[_i].end, (size_t)_i);
    build_id(&b, "tokenizer.ggml.eot_token_id", by_text[_i].end_of_turn, (size_t)_i);
    build_id(&b, "tokenizer.ggml.fim_sep_token_id", by_text[_i].fim_sep, (size_t)_i);
    fr_build_zeros(&b, 64);
    fr_build_write(&b, folder.file);
    fr_build_free(&b);
    fr_tokenizer *tokenizer = open_file();
    const char *wanted[6] = {NULL};
    memcpy(wanted, by_text[_i].ends, sizeof by_text[_i].ends);
    check_ends(tokenizer, wanted, NULL);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* ---------------------------------------------------------------------------------- pre-tokenizers given as options */

static fr_status open_chosen(const char *path, const char *pre, fr_tokenizer **tokenizer) {
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_TOKENIZER_PRE, pre), FR_OK);
    fr_status status = fr_tokenizer_open(path, options, tokenizer);
    fr_options_free(options);
    return status;
}

/* If the user gives the name of a pre-tokenizer as an option, it replaces the name in the file. This must work if the
 * file's name is unknown, missing or known. */
START_TEST(pre_that_is_chosen) {
    static const char *const written[] = {"of-tomorrow", "", "gpt-2"};
    fr_tokenizer *tokenizer;
    write_file("glm4", "mamba", &(extra){.key = "tokenizer.ggml.pre", .text = written[_i]}, 1);
    ck_assert_int_eq(fr_tokenizer_open(folder.file, NULL, &tokenizer) == FR_OK, _i == 2);
    if (_i < 2) ck_assert_int_eq(fr_last_error_option(), FR_OPT_TOKENIZER_PRE);
    fr_tokenizer_close(tokenizer);
    ck_assert_msg(open_chosen(folder.file, "glm4", &tokenizer) == FR_OK, "%s", fr_last_error());
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 0));
    check_cases(tokenizer, "glm4");
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(pre_that_can_not_be_chosen) {
    char line[256];
    fr_tokenizer *tokenizer;
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_TOKENIZER_PRE, "of-tomorrow"), FR_USAGE);
    ck_assert_ptr_nonnull(
        strstr(fr_last_error(), "tokenizer-pre of-tomorrow is not known (gemma4 default jina-v2-en llama-bpe "));
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_TOKENIZER_PRE, ""), FR_USAGE);
    fr_options_free(options);
    write_file("glm4", "mamba", NULL, 0);
    ck_assert_int_eq(open_chosen(TOKENIZERS "glm4", "glm4", &tokenizer), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "tokenizer-pre glm4 is for GGUF files: the tokenizer.json of " TOKENIZERS
                                      "glm4 says how texts are cut");
    ck_assert_int_eq(open_chosen("tests/data/gguf/gemma-tokenizer.gguf", "qwen2", &tokenizer), FR_UNBUILT);
    snprintf(line, sizeof line, "%s: tokenizer-pre \"qwen2\" goes with another tokenizer.ggml.model\nbuilt are gemma4",
             "tests/data/gguf/gemma-tokenizer.gguf");
    ck_assert_str_eq(fr_last_error(), line);
}
END_TEST

/* The command's error line must name the option --tokenizer-pre. Commands that open a whole model must accept this
 * option too. */
START_TEST(pre_of_the_command) {
    write_file("glm4", "mamba", &(extra){.key = "tokenizer.ggml.pre", .text = "of-tomorrow"}, 1);
    char line[160];
    snprintf(line, sizeof line, "tokenize -m %s -p a", folder.file);
    fr_command refused = fr_command_run(line, NULL);
    ck_assert_int_eq(refused.status, 2);
    ck_assert_ptr_nonnull(strstr(refused.err, "\"of-tomorrow\" is not known: choose how texts are cut with "
                                              "--tokenizer-pre\nforerun: built are llama-bpe, "));
    fr_command chosen = fr_command_ok("tokenize -m %s -p a --tokenizer-pre chatglm-bpe", folder.file);
    ck_assert_str_eq(chosen.err, "");
    fr_command_free(&refused);
    fr_command_free(&chosen);
    write_model("tokenizer.ggml.pr", 0, "x", 1);
    fr_command model = fr_command_ok("generate -m %s -p a -n 1 --tokenizer-pre deepseek-v3", folder.file);
    ck_assert_ptr_null(strstr(model.err, "tokenizer.ggml.pre"));
    fr_command_free(&model);
}
END_TEST

/* llama.cpp reads this key only for SentencePiece tokenizers; test_gguf_models.c tests such a tokenizer, Gemma's. With
 * byte-level BPE the key must have no effect. */
START_TEST(space_prefix_of_bytes) {
    const extra extras[] = {{.key = "tokenizer.ggml.pre", .text = "glm4"},
                            {.key = "tokenizer.ggml.add_space_prefix", .flag = &(bool){true}}};
    write_file("glm4", "glm4moe", extras, COUNT_OF(extras));
    fr_tokenizer *tokenizer = open_file();
    check_cases(tokenizer, "glm4");
    ck_assert_ptr_null(fr_tokenizer_note(tokenizer, 0));
    fr_tokenizer_close(tokenizer);
}
END_TEST

FR_SUITE("tokenizer_gguf") {
    TCase *tests = tcase_create("tokenizer_gguf");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, pre_by_family, 0, COUNT_OF(assumed));
    tcase_add_test(tests, pre_of_qwen3);
    tcase_add_test(tests, pre_that_is_there);
    tcase_add_test(tests, note_of_a_model);
    tcase_add_test(tests, note_on_standard_error);
    tcase_add_test(tests, space_prefix_of_bytes);
    tcase_add_loop_test(tests, pre_that_is_chosen, 0, 3);
    tcase_add_test(tests, pre_of_the_command);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 60);
    tcase_add_checked_fixture(damaged, set_up, tear_down);
    tcase_add_test(damaged, pre_that_nothing_tells);
    tcase_add_loop_test(damaged, ids_of_no_token, 0, ID_KEYS * COUNT_OF(no_ids));
    tcase_add_test(damaged, ids_beside_one_of_no_token);
    tcase_add_test(damaged, id_of_no_token_in_a_model);
    tcase_add_test(damaged, id_that_is_a_text);
    tcase_add_loop_test(damaged, ends_by_text, 0, COUNT_OF(by_text));
    tcase_add_test(damaged, pre_that_can_not_be_chosen);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, damaged);
}
