/* Tests the writer of GGUF files, and forerun quantize. The keys, tensors and types that quantize writes must be those
 * of llama.cpp.
 *
 * tests/data/gguf_lists.json has the keys, tensors and types that llama.cpp's converter and llama-quantize write for
 * the same folders (tests/references/gguf_lists.py). The library's own reader reads the files back. Other suites test
 * this reader. */
/* suite: hostile damaged threads native */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/gguf_write.h"
#include "quant/encode.h"
#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define DFLASH "tests/data/dflash/"
#define MODELS "tests/data/models/"

static char folder[32];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/test_quantize_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name) {
    static char paths[4][512];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static size_t count_files(void) {
    size_t count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));) count += entry->d_name[0] != '.' || entry->d_name[1] == 'f';
    closedir(entries);
    return count;
}

static void remove_folder(void) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) remove(in_folder(entry->d_name));
    closedir(entries);
    ck_assert_int_eq(rmdir(folder), 0);
}

static fr_checkpoint open_model(const char *path) {
    fr_checkpoint files;
    ck_assert_msg(fr_checkpoint_open(&files, path, true) == FR_OK, "%s", fr_last_error());
    return files;
}

/* Runs forerun quantize on a model. Returns the path of the file, which is in the test's folder. */
static const char *quantized(const char *model, const char *options, const char *name) {
    const char *path = in_folder(name);
    fr_command c = fr_command_ok("quantize -m %s %s -o %s", model, options, path);
    ck_assert_str_eq(c.out, "");
    fr_command_free(&c);
    return path;
}

static void assert_same_files(const char *a, const char *b) {
    fr_map left, right;
    ck_assert(fr_map_open(&left, a, true) == FR_OK && fr_map_open(&right, b, true) == FR_OK);
    ck_assert_uint_eq(left.size, right.size);
    ck_assert(memcmp(left.bytes, right.bytes, left.size) == 0);
    fr_map_close(&left);
    fr_map_close(&right);
}

/* ------------------------------------------------------------------------------------------------------- the writer */

static fr_text text_of(const char *text) {
    return (fr_text){text, strlen(text)};
}

static void put_every_kind(fr_gguf_writer *writer) {
    fr_gguf_put_text(writer, "text", text_of("a\nb"));
    fr_gguf_put_u32(writer, ".u32", 0xFFFFFFFF);
    fr_gguf_put_i32(writer, ".i32", -5);
    fr_gguf_put_f32(writer, ".f32", 0.5F);
    fr_gguf_put_bool(writer, ".bool", true);
    fr_gguf_put_array(writer, "texts", FR_GGUF_STRING, 2);
    fr_gguf_add_text(writer, text_of(""));
    fr_gguf_add_text(writer, text_of("xyz"));
    fr_gguf_put_array(writer, "reals", FR_GGUF_F32, 1);
    fr_gguf_add_f32(writer, -2);
    fr_gguf_put_array(writer, "flags", FR_GGUF_BOOL, 3);
    for (int i = 0; i < 3; i++) fr_gguf_add_bool(writer, i == 1);
}

static void check_every_kind(const fr_gguf *gguf) {
    fr_text text;
    int64_t number;
    double real;
    bool flag;
    ck_assert(fr_gguf_text(gguf, "text", &text) == FR_OK && text.length == 3 && memcmp(text.bytes, "a\nb", 3) == 0);
    ck_assert(fr_gguf_int(gguf, ".u32", 0, INT64_MAX, 0, &number) == FR_OK && number == 0xFFFFFFFF);
    ck_assert(fr_gguf_int(gguf, "made.i32", INT32_MIN, 0, 0, &number) == FR_OK && number == -5);
    ck_assert(fr_gguf_real(gguf, ".f32", 0, 1, 0, &real) == FR_OK && real > 0.4 && real < 0.6);
    ck_assert(fr_gguf_bool(gguf, ".bool", false, &flag) == FR_OK && flag);
    const fr_gguf_value *texts = fr_gguf_find(gguf, "texts"), *flags = fr_gguf_find(gguf, "flags");
    size_t at = 0;
    ck_assert(texts && texts->count == 2 && fr_gguf_next(texts, &at).length == 0);
    text = fr_gguf_next(texts, &at);
    ck_assert(text.length == 3 && memcmp(text.bytes, "xyz", 3) == 0);
    ck_assert(flags && flags->count == 3 && flags->data[1] == 1 && flags->data[2] == 0);
    ck_assert(fr_gguf_f32(fr_gguf_find(gguf, "reals"), 0) < -1.9F);
}

/* Declares tensors whose sizes are not multiples of the alignment. Their data are written in pieces later. */
static void put_tensors(fr_gguf_writer *writer) {
    fr_gguf_put_tensor(writer, "first", FR_F32, false, 1, (uint64_t[]){3});
    fr_gguf_put_tensor(writer, "second", FR_Q8_0, false, 2, (uint64_t[]){5, 64});
    fr_gguf_put_tensor(writer, "third", FR_I32, false, 2, (uint64_t[]){2, 1});
}

static void write_tensors(fr_gguf_writer *writer) {
    uint8_t bytes[340];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    ck_assert_int_eq(fr_gguf_write_header(writer), FR_OK);
    ck_assert_int_eq(fr_gguf_write_data(writer, bytes, 12), FR_OK);
    for (size_t i = 0; i < 340; i += 20) ck_assert_int_eq(fr_gguf_write_data(writer, bytes + i, 20), FR_OK);
    ck_assert_int_eq(fr_gguf_write_data(writer, bytes, 8), FR_OK);
    ck_assert_int_eq(fr_gguf_write_end(writer), FR_OK);
}

START_TEST(writer_and_reader_agree) {
    make_folder();
    fr_gguf_writer writer;
    FILE *out = fopen(in_folder("a.gguf"), "wb");
    fr_gguf_writer_open(&writer, out, "made");
    put_every_kind(&writer);
    put_tensors(&writer);
    write_tensors(&writer);
    fr_gguf_writer_close(&writer);
    ck_assert_int_eq(fclose(out), 0);

    fr_checkpoint files = open_model(in_folder("a.gguf")), again;
    ck_assert_str_eq(files.gguf->architecture, "made");
    ck_assert_uint_eq(files.gguf->version, 3);
    check_every_kind(files.gguf);
    const fr_tensor *second = fr_tensors_find(&files.tensors, "second");
    ck_assert(second && second->shape[0] == 5 && second->shape[1] == 64 && second->bytes == 340);
    ck_assert(((const uint8_t *)second->data)[339] == (uint8_t)339);
    const fr_tensor *third = fr_tensors_find(&files.tensors, "third");
    ck_assert(third && third->type == FR_I32 && ((const uint8_t *)third->data)[7] == 7);

    out = fopen(in_folder("b.gguf"), "wb"); /* b.gguf becomes a copy with the same values */
    fr_gguf_writer_open(&writer, out, "made");
    for (size_t i = 1; i < files.gguf->count; i++) fr_gguf_put_value(&writer, &files.gguf->values[i]);
    put_tensors(&writer);
    write_tensors(&writer);
    fr_gguf_writer_close(&writer);
    ck_assert_int_eq(fclose(out), 0);
    again = open_model(in_folder("b.gguf"));
    check_every_kind(again.gguf);
    fr_checkpoint_close(&again);
    fr_checkpoint_close(&files);
    assert_same_files(in_folder("a.gguf"), in_folder("b.gguf"));
    remove_folder();
}
END_TEST

START_TEST(writer_counts) {
    fr_gguf_writer writer;
    uint8_t bytes[16] = {0};
    FILE *out = fopen("/dev/null", "wb");
    fr_gguf_writer_open(&writer, out, "made");
    put_tensors(&writer);
    ck_assert_int_eq(fr_gguf_write_header(&writer), FR_OK);
    ck_assert_int_eq(fr_gguf_write_end(&writer), FR_USAGE); /* data are missing */
    /* the first tensor has 12 bytes, but 16 are given */
    ck_assert_int_eq(fr_gguf_write_data(&writer, bytes, 16), FR_USAGE);
    ck_assert_int_eq(fr_gguf_write_data(&writer, bytes, 12), FR_USAGE); /* after an error every call fails */
    fr_gguf_writer_close(&writer);
    fclose(out);
    out = fopen("/dev/full", "wb");
    setvbuf(out, NULL, _IONBF, 0);
    fr_gguf_writer_open(&writer, out, "made");
    ck_assert_int_eq(fr_gguf_write_header(&writer), FR_MACHINE);
    fr_gguf_writer_close(&writer);
    fclose(out);
}
END_TEST

/* ---------------------------------------------------------------------------------------- comparison with llama.cpp */

static void check_element(const char *key, const json_t *expected, const fr_gguf_value *value, size_t index,
                          size_t *text_at) {
    bool same = false;
    if (json_is_string(expected)) {
        fr_text text = {(const char *)value->data, value->bytes};
        if (value->type == FR_GGUF_ARRAY) text = fr_gguf_next(value, text_at);
        same = value->element == FR_GGUF_STRING && text.length == json_string_length(expected) &&
               memcmp(text.bytes, json_string_value(expected), text.length) == 0;
    } else if (json_is_boolean(expected)) {
        same = value->element == FR_GGUF_BOOL && value->data[index] == json_is_true(expected);
    } else if (json_is_integer(expected)) {
        bool whole = value->element == FR_GGUF_U32 || value->element == FR_GGUF_I32;
        same = whole && fr_gguf_i32(value, index) == json_integer_value(expected);
    } else {
        double real = json_real_value(expected);
        same = value->element == FR_GGUF_F32 && fabs((double)fr_gguf_f32(value, index) - real) <= 1e-7 * fabs(real);
    }
    ck_assert_msg(same, "key %s, element %zu", key, index);
}

static void check_key(const fr_gguf *gguf, const char *key, const json_t *expected) {
    const fr_gguf_value *value = fr_gguf_find(gguf, key);
    ck_assert_msg(value != NULL, "key %s is missing", key);
    const json_t *first = json_is_object(expected) ? json_object_get(expected, "first") : expected, *element;
    size_t at = 0, i;
    if (!json_is_array(first)) {
        check_element(key, expected, value, 0, &at);
        return;
    }
    const json_t *length = json_object_get(expected, "length");
    ck_assert_uint_eq(value->count, length ? (size_t)json_integer_value(length) : json_array_size(first));
    json_array_foreach (first, i, element) check_element(key, element, value, i, &at);
}

static void check_tensors(const fr_checkpoint *files, const json_t *shapes, const json_t *types) {
    const char *name;
    json_t *shape;
    ck_assert_uint_eq(files->tensors.count, json_object_size(shapes));
    json_object_foreach ((json_t *)(uintptr_t)shapes, name, shape) {
        const fr_tensor *tensor = fr_tensors_find(&files->tensors, name);
        const char *type = json_string_value(json_object_get(types, name));
        ck_assert_msg(tensor != NULL, "tensor %s is missing", name);
        ck_assert_msg(strcmp(fr_dtype_name(tensor->type), type ? type : "F32") == 0, "tensor %s is %s, expected %s",
                      name, fr_dtype_name(tensor->type), type ? type : "F32");
        ck_assert_uint_eq(tensor->dims, json_array_size(shape));
        for (uint32_t i = 0; i < tensor->dims; i++)
            ck_assert_uint_eq(tensor->shape[i], (uint64_t)json_integer_value(json_array_get(shape, i)));
    }
}

static void check_model(const char *model, const json_t *lists) {
    const char *type, *key;
    json_t *types, *expected;
    json_object_foreach (fr_json_get(lists, "types"), type, types) {
        char path[128], options[64];
        snprintf(path, sizeof path, MODELS "%s", model);
        snprintf(options, sizeof options, "--type %s", type);
        fr_checkpoint files = open_model(quantized(path, options, "model.gguf"));
        check_tensors(&files, fr_json_get(lists, "shapes"), types);
        json_object_foreach (fr_json_get(lists, "keys"), key, expected) {
            bool differs = strcmp(key, "general.name") == 0 || /* llama.cpp prettifies the folder's name */
                           (strcmp(key, "general.file_type") == 0 && strcmp(type, "bf16") != 0);
            if (!differs) check_key(files.gguf, key, expected);
        }
        fr_checkpoint_close(&files);
    }
}

START_TEST(keys_tensors_and_types) {
    json_t *root = json_load_file("tests/data/gguf_lists.json", 0, NULL), *lists;
    const char *model;
    ck_assert_ptr_nonnull(root);
    make_folder();
    json_object_foreach (root, model, lists) check_model(model, lists);
    remove_folder();
    json_decref(root);
}
END_TEST

static void check_same_tensors(const fr_checkpoint *ours, const fr_checkpoint *theirs, bool floats) {
    ck_assert_uint_eq(ours->tensors.count, theirs->tensors.count);
    for (size_t i = 0; i < theirs->tensors.count; i++) {
        const fr_tensor *expected = &theirs->tensors.items[i], *got = fr_tensors_find(&ours->tensors, expected->name);
        ck_assert_msg(got && got->type == expected->type && got->dims == expected->dims &&
                          memcmp(got->shape, expected->shape, got->dims * sizeof *got->shape) == 0,
                      "tensor %s", expected->name);
        /* The converter computes the rotary factors with its operations in another order, so their last bits may
         * differ */
        if (strcmp(expected->name, "rope_freqs.weight") == 0)
            for (size_t v = 0; v < expected->shape[0]; v++)
                ck_assert(fabs((double)((const float *)got->data)[v] / (double)((const float *)expected->data)[v] - 1) <
                          1e-6);
        else if (floats)
            ck_assert_msg(memcmp(got->data, expected->data, (size_t)got->bytes) == 0, "numbers of %s", expected->name);
    }
}

/* Compares the keys. Names are left out, because llama.cpp changes them. */
static void check_same_keys(const fr_gguf *ours, const fr_gguf *theirs) {
    for (size_t i = 0; i < theirs->count; i++) {
        const fr_gguf_value *expected = &theirs->values[i];
        char key[64];
        snprintf(key, sizeof key, "%.*s", FR_SHOW(expected->key));
        const fr_gguf_value *got = fr_gguf_find(ours, key);
        if (strcmp(key, "general.name") == 0) continue;
        ck_assert_msg(got && got->type == expected->type && got->bytes == expected->bytes &&
                          memcmp(got->data, expected->data, got->bytes) == 0,
                      "key %s", key);
    }
}

/* Compares the files with those that llama.cpp made from the same folders. Tensors and keys must be equal. The values
 * must be equal too, except in files that llama.cpp's quantizer has rounded. */
START_TEST(files_as_llama_cpp_writes_them) {
    static const struct {
        const char *folder, *file, *options;
        bool floats;
    } pairs[] = {
        {"tests/data/glm-ocr", "tests/data/glm-ocr/model-bf16.gguf", "--type bf16", true},
        {MODELS "llama", "tests/data/llama/q4_0.gguf", "--type q4_0", false},
        {MODELS "llama", "tests/data/llama/eagle3.gguf", "-md tests/data/llama/eagle3 --type bf16", true},
        {DFLASH "qwen3", DFLASH "qwen3/drafter.gguf", "-md " DFLASH "qwen3/drafter --type bf16", true},
        {DFLASH "llama-sliding", DFLASH "llama-sliding/drafter.gguf", "-md " DFLASH "llama-sliding/drafter --type bf16",
         true},
        {DFLASH "v2-qwen3", DFLASH "v2-qwen3/drafter.gguf", "-md " DFLASH "v2-qwen3/drafter --type bf16", true},
    };
    make_folder();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        fr_checkpoint theirs = open_model(pairs[i].file), ours;
        ours = open_model(quantized(pairs[i].folder, pairs[i].options, "written.gguf"));
        check_same_tensors(&ours, &theirs, pairs[i].floats);
        check_same_keys(ours.gguf, theirs.gguf);
        fr_checkpoint_close(&theirs);
        fr_checkpoint_close(&ours);
    }
    remove_folder();
}
END_TEST

static void link_file(const char *name) {
    char from[256], path[PATH_MAX];
    snprintf(from, sizeof from, FOLDER "/%s", name);
    ck_assert_ptr_nonnull(realpath(from, path));
    ck_assert_int_eq(symlink(path, in_folder(name)), 0);
}

static void check_text_key(const fr_gguf *gguf, const char *key, const char *expected) {
    fr_text text;
    ck_assert_int_eq(fr_gguf_text(gguf, key, &text), FR_OK);
    ck_assert_msg(text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0, "key %s", key);
}

/* The folder has several chat templates with names. The first is for conversations with tools. */
START_TEST(named_templates) {
    make_folder();
    link_file("config.json");
    link_file("model.safetensors");
    link_file("tokenizer.json");
    FILE *config = fopen(in_folder("tokenizer_config.json"), "w");
    ck_assert_ptr_nonnull(config);
    fputs("{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"with tools\"}, {\"name\": \"default\", "
          "\"template\": \"without\"}]}",
          config);
    ck_assert_int_eq(fclose(config), 0);
    fr_checkpoint files = open_model(quantized(folder, "--type q8_0", "written.gguf"));
    check_text_key(files.gguf, "tokenizer.chat_template", "without");
    check_text_key(files.gguf, "tokenizer.chat_template.tool_use", "with tools");
    const fr_gguf_value *names;
    size_t at = 0;
    ck_assert_int_eq(fr_gguf_array(files.gguf, "tokenizer.chat_templates", FR_GGUF_STRING, &names), FR_OK);
    ck_assert(names && names->count == 1);
    fr_text name = fr_gguf_next(names, &at);
    ck_assert(name.length == 8 && memcmp(name.bytes, "tool_use", 8) == 0);
    fr_checkpoint_close(&files);
    fr_command c =
        fr_command_feed("[{\"role\": \"user\", \"content\": \"x\"}]",
                        "template -m %s --messages - --tools tests/data/chat/tools.json", in_folder("written.gguf"));
    ck_assert_str_eq(c.out, "with tools");
    fr_command_free(&c);
    remove_folder();
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ the numbers */

/* Checks a tensor of the GGUF file. `name` must be the folder's tensor `published`, encoded in the file's type. */
static void check_numbers(const fr_checkpoint *gguf, const fr_checkpoint *source, const char *name,
                          const char *published) {
    const fr_tensor *made = fr_tensors_find(&gguf->tensors, name), *from = fr_tensors_find(&source->tensors, published);
    ck_assert_msg(made && from, "%s from %s", name, published);
    size_t count = (size_t)(from->bytes / fr_dtype_row_bytes(from->type, 1));
    float *values = malloc(count * sizeof *values);
    uint8_t *expected = malloc((size_t)made->bytes);
    fr_dtype_decode(from->type, from->data, values, count);
    ck_assert_uint_eq(made->bytes, fr_dtype_row_bytes(made->type, count));
    fr_dtype_encode(made->type, values, expected, count);
    ck_assert_msg(memcmp(expected, made->data, (size_t)made->bytes) == 0, "numbers of %s", name);
    free(values);
    free(expected);
}

START_TEST(numbers_of_a_target) {
    static const char *const types[] = {"f32", "bf16", "q8_0", "q4_k"};
    make_folder();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char options[32];
        snprintf(options, sizeof options, "--type %s", types[i]);
        fr_checkpoint source = open_model(MODELS "gemma4-moe"), made;
        made = open_model(quantized(MODELS "gemma4-moe", options, "moe.gguf"));
        check_numbers(&made, &source, "token_embd.weight", "model.language_model.embed_tokens.weight");
        check_numbers(&made, &source, "blk.1.ffn_gate_up_exps.weight",
                      "model.language_model.layers.1.experts.gate_up_proj");
        check_numbers(&made, &source, "blk.2.ffn_down_exps.scale",
                      "model.language_model.layers.2.router.per_expert_scale");
        check_numbers(&made, &source, "blk.0.attn_q.weight", "model.language_model.layers.0.self_attn.q_proj.weight");
        check_numbers(&made, &source, "output_norm.weight", "model.language_model.norm.weight");
        fr_checkpoint_close(&source);
        fr_checkpoint_close(&made);
    }
    remove_folder();
}
END_TEST

/* The assistant's file has the form of the llama.cpp fork that supports its centroid head. The folder's 64-bit ids must
 * become 32-bit ids. */
START_TEST(numbers_of_an_assistant) {
    make_folder();
    fr_checkpoint source = open_model(FOLDER "/assistant"), made;
    made = open_model(quantized(FOLDER "/assistant", "--type q8_0", "assistant.gguf"));
    ck_assert_str_eq(made.gguf->architecture, "gemma4_assistant");
    check_numbers(&made, &source, "mtp.pre_projection.weight", "pre_projection.weight");
    check_numbers(&made, &source, "mtp.post_projection.weight", "post_projection.weight");
    check_numbers(&made, &source, "mtp.centroids.weight", "masked_embedding.centroids.weight");
    const fr_tensor *ids = fr_tensors_find(&made.tensors, "mtp.token_ordering.weight");
    const fr_tensor *published = fr_tensors_find(&source.tensors, "masked_embedding.token_ordering");
    ck_assert(ids && ids->type == FR_I32 && published->type == FR_I64 && ids->shape[0] == published->shape[0]);
    for (size_t i = 0; i < ids->shape[0]; i++)
        ck_assert_uint_eq(fr_little_endian((const uint8_t *)ids->data + 4 * i, 4),
                          fr_little_endian((const uint8_t *)published->data + 8 * i, 8));
    int64_t number;
    ck_assert(fr_gguf_int(made.gguf, ".centroid_top_k", 0, 99, -1, &number) == FR_OK && number == 6);
    ck_assert(fr_gguf_int(made.gguf, ".n_centroids", 0, 99, -1, &number) == FR_OK && number == 32);
    fr_checkpoint_close(&source);
    fr_checkpoint_close(&made);
    remove_folder();
}
END_TEST

/* Converting to bf16 loses no bits, so the folder and the file must give the same text. */
START_TEST(same_text) {
    make_folder();
    const char *target = quantized(FOLDER, "--type bf16", "target.gguf");
    const char *assistant = quantized(FOLDER "/assistant", "--type bf16", "assistant.gguf");
    const char *line = "generate -m %s -md %s --ids 2,415,443 -n 40 --output ids -ctk f32 -ctv f32";
    fr_command from_folder = fr_command_ok(line, FOLDER, FOLDER "/assistant");
    fr_command from_file = fr_command_ok(line, target, assistant);
    ck_assert_str_eq(from_file.out, from_folder.out);
    fr_command_free(&from_folder);
    fr_command_free(&from_file);
    remove_folder();
}
END_TEST

START_TEST(from_gguf) {
    make_folder();
    const char *plain = quantized(FOLDER, "--type bf16", "bf16.gguf");
    const char *direct = quantized(FOLDER, "--type q4_k", "direct.gguf");
    const char *line = "quantize -m %s --type %s -o %s";
    const char *second = in_folder("second.gguf");
    fr_command c = fr_command_ok(line, plain, "q4_k", second);
    ck_assert(!strstr(c.err, "quantized before"));
    fr_command_free(&c);
    fr_checkpoint a = open_model(direct), b = open_model(second);
    ck_assert_uint_eq(a.gguf->count, b.gguf->count);
    for (size_t i = 0; i < a.tensors.count; i++) {
        const fr_tensor *left = &a.tensors.items[i], *right = fr_tensors_find(&b.tensors, left->name);
        ck_assert(right && right->type == left->type && memcmp(right->data, left->data, (size_t)left->bytes) == 0);
    }
    fr_checkpoint_close(&a);
    fr_checkpoint_close(&b);
    /* if a file is already quantized, quantizing it again must give a warning */
    c = fr_command_ok(line, direct, "q8_0", second);
    ck_assert_ptr_nonnull(strstr(c.err, "quantized before"));
    fr_command_free(&c);
    remove_folder();
}
END_TEST

START_TEST(overrides_and_pure) {
    make_folder();
    const char *line = "--type q4_0 --tensor-type attn_v=q8_0 --tensor-type 'blk\\.1\\.ffn.*=F16' "
                       "--tensor-type token_embd=q5_1";
    fr_checkpoint files = open_model(quantized(FOLDER, line, "mixed.gguf"));
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.attn_v.weight")->type, FR_Q8_0);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.1.ffn_up.weight")->type, FR_F16);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.ffn_up.weight")->type, FR_Q4_0);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "per_layer_token_embd.weight")->type, FR_Q5_1);
    fr_checkpoint_close(&files);
    files = open_model(quantized(FOLDER, "--type q4_k --pure", "pure.gguf"));
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "token_embd.weight")->type, FR_Q4_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "per_layer_model_proj.weight")->type, FR_Q4_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.2.ffn_down.weight")->type, FR_Q4_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.proj.weight")->type, FR_Q5_0); /* a block of Q4_K has 256
                                                                                            * values, but a row has
                                                                                            * only 64 */
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.attn_norm.weight")->type, FR_F32);
    fr_checkpoint_close(&files);
    remove_folder();
}
END_TEST

/* llama.cpp's names of types, in upper or lower case, must give the same files as forerun's names. */
START_TEST(names_of_llama_cpp) {
    static const char *const names[][2] = {{"Q4_K_M", "q4_k"}, {"q5_k_m", "q5_k"},   {"Q8_0", "q8_0"},
                                           {"F32", "f32"},     {"IQ4_NL", "iq4_nl"}, {"Bf16", "bf16"}};
    make_folder();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char theirs[32], ours[32];
        snprintf(theirs, sizeof theirs, "--type %s", names[i][0]);
        snprintf(ours, sizeof ours, "--type %s", names[i][1]);
        assert_same_files(quantized(FOLDER, theirs, "theirs.gguf"), quantized(FOLDER, ours, "ours.gguf"));
    }
    assert_same_files(quantized(FOLDER, "--type Q4_0 --tensor-type attn_v=Q8_0", "theirs.gguf"),
                      quantized(FOLDER, "--type q4_0 --tensor-type attn_v=q8_0", "ours.gguf"));
    remove_folder();
}
END_TEST

/* Each mixture of types has a small form ("S") and a medium form ("M"). The small form stores fewer tensors with more
 * bits. Q4_K_S stores the value matrices of the first four layers with more bits, and Q5_K_S stores none with more
 * bits. */
START_TEST(smaller_mixtures) {
    make_folder();
    fr_checkpoint files = open_model(quantized(FOLDER, "--type Q4_K_S", "small.gguf"));
    int64_t number;
    ck_assert(fr_gguf_int(files.gguf, "general.file_type", 0, INT64_MAX, 0, &number) == FR_OK && number == 14);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.attn_v.weight")->type, FR_Q5_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.attn_q.weight")->type, FR_Q4_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.2.ffn_down.weight")->type, FR_Q4_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "token_embd.weight")->type, FR_Q6_K);
    fr_checkpoint_close(&files);
    files = open_model(quantized(FOLDER, "--type q5_k_s", "small.gguf"));
    ck_assert(fr_gguf_int(files.gguf, "general.file_type", 0, INT64_MAX, 0, &number) == FR_OK && number == 16);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.0.attn_v.weight")->type, FR_Q5_K);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "blk.2.ffn_down.weight")->type, FR_Q5_K);
    fr_checkpoint_close(&files);
    remove_folder();
}
END_TEST

/* In GGUF a vision encoder is in a file of its own. So quantize leaves it out of the model's file, and must say so. */
START_TEST(a_tower_that_is_left_out_is_said) {
    static const struct {
        const char *model, *words;
    } cases[] = {{"tests/data/glm-ocr", "with --mmproj"}, {"tests/data/glm-ocr --quiet", ""}, {FOLDER, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_command c = fr_command_ok("quantize -m %s --type q8_0 -o /dev/null", cases[i].model);
        ck_assert_msg(*cases[i].words ? strstr(c.err, cases[i].words) != NULL : !*c.err, "%s: \"%s\"", cases[i].model,
                      c.err);
        fr_command_free(&c);
    }
}
END_TEST

/* gguf-py reads the settings from the same folders, and the names and types of the keys must be those of gguf-py
 * (constants.py, metadata.py). A value that no sampler accepts, such as a top_k of -1, must be left out. The file must
 * recommend the same settings as the folder. */
START_TEST(sampling_settings_are_written) {
    static const struct {
        const char *key;
        fr_gguf_type type;
        double value;
    } written[] = {
        {"general.sampling.top_p", FR_GGUF_F32, 0.75},           {"general.sampling.min_p", FR_GGUF_F32, 0.125},
        {"general.sampling.xtc_probability", FR_GGUF_F32, 0.5},  {"general.sampling.xtc_threshold", FR_GGUF_F32, 0.25},
        {"general.sampling.temp", FR_GGUF_F32, 0.625},           {"general.sampling.penalty_last_n", FR_GGUF_I32, -1},
        {"general.sampling.penalty_repeat", FR_GGUF_F32, 1.125}, {"general.sampling.mirostat", FR_GGUF_I32, 2},
        {"general.sampling.mirostat_tau", FR_GGUF_F32, 4.5},     {"general.sampling.mirostat_eta", FR_GGUF_F32, 0.25}};
    fr_changed_folder changed;
    fr_model *models[2];
    fr_options *options[2] = {fr_options_new(), fr_options_new()};
    fr_text order;
    make_folder();
    const char *path = in_folder("sampling.gguf");
    fr_changed_folder_make(&changed, MODELS "llama", "{}");
    fr_changed_folder_write(&changed, "generation_config.json",
                            "{\"temperature\": 0.625, \"top_k\": -1, \"top_p\": 0.75, \"min_p\": 0.125, "
                            "\"repetition_penalty\": 1.125, \"penalty_last_n\": -1, \"xtc_probability\": 0.5, "
                            "\"xtc_threshold\": 0.25, \"mirostat\": 2, \"mirostat_tau\": 4.5, "
                            "\"mirostat_eta\": 0.25, \"sequence\": \"top_k;temperature\"}");
    fr_command c = fr_command_ok("quantize -m %s --type q8_0 -o %s", changed.path, path);
    fr_command_free(&c);
    fr_checkpoint file = open_model(path);
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        const fr_gguf_value *value = fr_gguf_find(file.gguf, written[i].key);
        double number;
        ck_assert_msg(value && value->type == written[i].type, "%s", written[i].key);
        require(fr_gguf_real(file.gguf, written[i].key, -INFINITY, INFINITY, NAN, &number));
        ck_assert_msg(number == written[i].value, "%s: %g", written[i].key, number);
    }
    ck_assert(!fr_gguf_find(file.gguf, "general.sampling.top_k"));
    require(fr_gguf_text(file.gguf, "general.sampling.sequence", &order));
    ck_assert(order.length == strlen("top_k;temperature") && memcmp(order.bytes, "top_k;temperature", 17) == 0);
    fr_checkpoint_close(&file);
    require(fr_model_open(changed.path, NULL, &models[0]));
    require(fr_model_open(path, NULL, &models[1]));
    for (fr_option option = 0; option < FR_OPT_COUNT; option++) {
        bool found[2];
        for (size_t i = 0; i < 2; i++) require(fr_options_recommend(options[i], models[i], option, &found[i]));
        ck_assert_msg(found[0] == found[1], "%s", fr_option_name(option));
        fr_option_kind kind;
        double numbers[2] = {0}, least, most;
        require(fr_option_range(option, &kind, &least, &most));
        for (size_t i = 0; i < 2 && kind == FR_OPTION_NUMBER; i++)
            require(fr_options_get_number(options[i], option, &numbers[i]));
        ck_assert_msg(numbers[0] == numbers[1], "%s", fr_option_name(option));
    }
    for (size_t i = 0; i < 2; i++) {
        fr_model_close(models[i]);
        fr_options_free(options[i]);
    }
    fr_changed_folder_remove(&changed);
    remove_folder();
}
END_TEST

/* A setting that is not a number must give an error that names the setting. Numbers that no sampler accepts must be
 * left out of the file. An invalid order of samplers must be left out too. */
START_TEST(sampling_settings_may_be_anything) {
    static const struct {
        const char *said, *error; /* error: NULL if the setting is left out instead of causing an error */
    } cases[] = {{"{\"min_p\": \"0.1\"}", "\"min_p\""},
                 {"{\"repetition_penalty\": [1.1]}", "\"repetition_penalty\""},
                 {"{\"mirostat\": {}}", "\"mirostat\""},
                 {"{\"temperature\": true}", "\"temperature\""},
                 {"{\"top_p\": 1.5}", NULL},
                 {"{\"top_k\": 2.5}", NULL},
                 {"{\"top_k\": 9007199254740993}", NULL},
                 {"{\"temperature\": -1}", NULL},
                 {"{\"penalty_last_n\": -3000000000}", NULL},
                 {"{\"mirostat\": 3, \"xtc_threshold\": 1e300, \"min_p\": null}", NULL},
                 {"{\"sequence\": [\"top_k\"], \"typical_p\": -0.5}", NULL}};
    make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_changed_folder changed;
        char line[512];
        const char *path = in_folder("odd.gguf");
        fr_changed_folder_make(&changed, MODELS "llama", "{}");
        fr_changed_folder_write(&changed, "generation_config.json", cases[i].said);
        snprintf(line, sizeof line, "quantize -m %s --type q8_0 -o %s", changed.path, path);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_msg(c.status == (cases[i].error != NULL), "%s: exit %d: %s", cases[i].said, c.status, c.err);
        ck_assert_msg(!cases[i].error || strstr(c.err, cases[i].error), "%s: %s", cases[i].said, c.err);
        if (!cases[i].error) {
            fr_checkpoint file = open_model(path);
            for (size_t k = 0; k < file.gguf->count; k++) {
                fr_text key = file.gguf->values[k].key;
                ck_assert_msg(key.length < 17 || memcmp(key.bytes, "general.sampling.", 17) != 0, "%s: %.*s",
                              cases[i].said, (int)key.length, key.bytes);
            }
            fr_checkpoint_close(&file);
        }
        fr_command_free(&c);
        fr_changed_folder_remove(&changed);
    }
    remove_folder();
}
END_TEST

/* If a file of the folder can't be read, for example because it is a broken link, there must be an error. The file must
 * not be left out silently. */
START_TEST(parts_that_can_not_be_read_are_said) {
    static const char *const parts[] = {
        "config.json",         "generation_config.json", "tokenizer.json",          "tokenizer_config.json",
        "chat_template.jinja", "model.safetensors",      "special_tokens_map.json", "added_tokens.json"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        fr_changed_folder model;
        char line[512], path[256];
        struct stat info;
        fr_changed_folder_make(&model, "tests/data/deepseek-v3", "{}");
        snprintf(path, sizeof path, "%s/%s", model.path, parts[i]);
        unlink(path);
        ck_assert_int_eq(symlink("/nowhere", path), 0);
        snprintf(line, sizeof line, "quantize -m %s --type q8_0 -o %s.out", model.path, model.path);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_msg(c.status == 1, "%s: %s", parts[i], c.err);
        ck_assert_msg(strstr(c.err, path), "%s: %s", parts[i], c.err);
        snprintf(line, sizeof line, "%s.out", model.path);
        ck_assert_int_ne(stat(line, &info), 0);
        fr_command_free(&c);
        fr_changed_folder_remove(&model);
    }
}
END_TEST

/* A row of Q4_K must have a multiple of 256 values, but the fixture's rows have other lengths. So in a pure file these
 * matrices get another type. One line must say how many matrices these are, and their types and bytes. If all rows fit,
 * or with --quiet, there must be no such line. */
START_TEST(types_that_rows_do_not_fill_are_said) {
    make_folder();
    const char *path = in_folder("pure.gguf");
    fr_command c = fr_command_ok("quantize -m " MODELS "llama --type q4_k --pure -o %s", path);
    fr_checkpoint files = open_model(path);
    size_t other = 0, kinds[FR_KERNEL_TYPES] = {0};
    unsigned long long bytes = 0, all = 0, said_bytes, said_all;
    for (size_t i = 0; i < files.tensors.count; i++) {
        const fr_tensor *tensor = &files.tensors.items[i];
        all += tensor->bytes;
        if (tensor->type == FR_F32 || tensor->type == FR_Q4_K) continue;
        other++;
        kinds[tensor->type]++;
        bytes += tensor->bytes;
    }
    fr_checkpoint_close(&files);
    size_t said;
    char types[128], expected[128] = "";
    ck_assert_msg(sscanf(c.err,
                         "forerun: %zu matrices have rows that are no multiple of their type's block, and are "
                         "of a larger type: %127[^;]; they take %llu of the file's %llu bytes of tensors",
                         &said, types, &said_bytes, &said_all) == 4,
                  "%s", c.err);
    ck_assert_str_eq(strchr(c.err, '\n'), "\n");
    ck_assert(other > 0 && said == other && said_bytes == bytes && said_all == all);
    for (size_t t = 0; t < FR_KERNEL_TYPES; t++)
        if (kinds[t])
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%zu %s instead of Q4_K",
                     *expected ? ", " : "", kinds[t], fr_dtype_name((fr_dtype)t));
    ck_assert_str_eq(types, expected);
    fr_command_free(&c);
    static const char *const silent[] = {"--type q4_k --quiet", "--type q8_0 --pure", "--type f16"};
    for (size_t i = 0; i < 3; i++) {
        c = fr_command_ok("quantize -m " MODELS "llama %s -o %s", silent[i], path);
        ck_assert_str_eq(c.err, "");
        fr_command_free(&c);
    }
    remove_folder();
}
END_TEST

START_TEST(threads_and_pipes) {
    make_folder();
    const char *one = quantized(FOLDER, "--type q6_k -t 1", "one.gguf");
    const char *three = quantized(FOLDER, "--type q6_k -t 3", "three.gguf");
    assert_same_files(one, three);
    fr_command c = fr_command_ok("quantize -m " FOLDER " --type q6_k -o -");
    FILE *piped = fopen(in_folder("piped.gguf"), "wb");
    ck_assert_uint_eq(fwrite(c.out, 1, c.out_length, piped), c.out_length);
    fclose(piped);
    fr_command_free(&c);
    assert_same_files(one, in_folder("piped.gguf"));
    remove_folder();
}
END_TEST

static void count_warnings(void *context, fr_log_level level, const char *line) {
    ck_assert_ptr_nonnull(strstr(line, "--mmproj"));
    *(size_t *)context += level == FR_LOG_WARN;
}

/* The library's call must write the same file as the command and log the same lines. It may replace an existing file.
 * The new file must then have the permissions of the old one. */
START_TEST(the_call_writes_the_commands_file) {
    make_folder();
    const char *expected =
        quantized(FOLDER, "--type q4_k --token-embedding-type q6_k --tensor-type attn_v=f16", "expected");
    const char *given = in_folder("given"), *link = in_folder("link"), *overrides[] = {"attn_v=f16"};
    fr_quantization how = {.type = "q4_k", .overrides = overrides, .override_count = 1, .embedding_type = "q6_k"};
    struct stat info;
    FILE *old = fopen(given, "wb");
    fputs("old", old);
    fclose(old);
    ck_assert_int_eq(chmod(given, 0640), 0);
    ck_assert_int_eq(symlink(given, link), 0);
    require(fr_quantize(FOLDER, link, &how, NULL));
    assert_same_files(expected, given);
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(given, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0640);

    size_t warnings = 0;
    fr_options *options = fr_options_new();
    fr_options_set_log(options, count_warnings, &warnings);
    require(fr_quantize("tests/data/glm-ocr", given, &(fr_quantization){.type = "q8_0"}, options));
    ck_assert_uint_eq(warnings, 1);
    fr_options_free(options);
    remove_folder();
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- errors */

START_TEST(the_call_leaves_no_file_after_a_failure) {
    fr_quantization how = {.type = "q8_0"};
    make_folder();
    const char *path = in_folder("new");
    ck_assert_int_eq(fr_quantize(NULL, path, &how, NULL), FR_USAGE);
    ck_assert_int_eq(fr_quantize(FOLDER, NULL, &how, NULL), FR_USAGE);
    ck_assert_int_eq(fr_quantize(FOLDER, path, NULL, NULL), FR_USAGE);
    ck_assert_int_eq(fr_quantize(FOLDER, path, &(fr_quantization){.pure = true}, NULL), FR_USAGE);
    ck_assert_int_eq(fr_quantize(FOLDER, path, &(fr_quantization){.type = "q17"}, NULL), FR_USAGE);
    ck_assert_int_eq(fr_quantize("tests/data/answers", path, &how, NULL), FR_INPUT);
    ck_assert_int_eq(fr_quantize(FOLDER, folder, &how, NULL), FR_INPUT);
    ck_assert_int_eq(fr_quantize(FOLDER, "/nonexistent/model.gguf", &how, NULL), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/nonexistent/model.gguf"));
    ck_assert_uint_eq(count_files(), 0);
    remove_folder();
}
END_TEST

static void check_refused(int status, const char *part, const char *line) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d", line, c.status);
    ck_assert_msg(strstr(c.err, part) != NULL, "%s: %s", line, c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1); /* the error is one line */
    fr_command_free(&c);
}

START_TEST(wrong_usage) {
    check_refused(2, "--type", "quantize -m " FOLDER " -o /dev/null");
    check_refused(2, "-o FILE", "quantize -m " FOLDER " --type q4_0");
    check_refused(2, "iq3_m", "quantize -m " FOLDER " --type iq3_m -o /dev/null");
    check_refused(2, "q4_k_m", "quantize -m " FOLDER " --type q4_0 --output-tensor-type q4_k_m -o /dev/null");
    check_refused(2, "q9", "quantize -m " FOLDER " --type q4_0 --token-embedding-type q9 -o /dev/null");
    check_refused(2, "Q4_K_M", "quantize -m " FOLDER " --type q4_0 --tensor-type attn_v=Q4_K_M -o /dev/null");
    /* all matrices of a synthetic model have one type, so mixtures are refused */
    check_refused(2, "Q4_K_M", "synth --shape gemma4-1b --type Q4_K_M /dev/null");
    check_refused(2, "PATTERN=TYPE", "quantize -m " FOLDER " --type q4_0 --tensor-type attn_v -o /dev/null");
    check_refused(2, "q9_9", "quantize -m " FOLDER " --type q4_0 --tensor-type attn_v=q9_9 -o /dev/null");
    check_refused(2, "a(b", "quantize -m " FOLDER " --type q4_0 --tensor-type 'a(b=q8_0' -o /dev/null");
    check_refused(2, "pattern attn_w decides no matrix's type",
                  "quantize -m " FOLDER " --type q4_0 --tensor-type attn_w=q8_0 -o /dev/null");
    /* an earlier pattern matches the same matrices, so this pattern has no effect */
    check_refused(2, "pattern attn_v decides no matrix's type",
                  "quantize -m " FOLDER " --type q4_0 --tensor-type attn=q8_0 --tensor-type attn_v=f16 -o /dev/null");
    check_refused(2, "pattern norm decides no matrix's type", /* norms are not matrices */
                  "quantize -m " FOLDER " --type q4_0 --tensor-type norm=q8_0 -o /dev/null");
    check_refused(2, "-m", "quantize --type q4_0 -o /dev/null");
    check_refused(1, "/dev/full", "quantize -m " FOLDER " --type q4_0 -o /dev/full");
}
END_TEST

/* Copies a file into the folder. */
static void copy_file(const char *from, const char *name) {
    char path[128];
    fr_map map;
    snprintf(path, sizeof path, "%s/%s", from, name);
    ck_assert_int_eq(fr_map_open(&map, path, true), FR_OK);
    FILE *to = fopen(in_folder(name), "wb");
    ck_assert_uint_eq(fwrite(map.bytes, 1, map.size, to), map.size);
    ck_assert_int_eq(fclose(to), 0);
    fr_map_close(&map);
}

/* Copies a model's folder, so that the test may change it. */
static void copy_model(const char *from) {
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) copy_file(from, names[i]);
}

/* Changes one BF16 value of a matrix in the copied model. */
static void change_weight(const char *name, size_t index, uint16_t bits) {
    fr_checkpoint files = open_model(folder);
    const fr_tensor *tensor = fr_tensors_find(&files.tensors, name);
    long at = (long)((const uint8_t *)tensor->data - files.files[0].bytes + 2 * (ptrdiff_t)index);
    fr_checkpoint_close(&files);
    FILE *file = fopen(in_folder("model.safetensors"), "r+b");
    fseek(file, at, SEEK_SET);
    fwrite(&bits, 1, sizeof bits, file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(bad_weights) {
    static const struct {
        uint16_t bits;
        const char *part;
    } values[] = {{0x7FC0, "nan"}, {0x7F80, "inf"}, {0xFF80, "inf"}, {0x7E00, "e+37"}};
    make_folder();
    copy_model(FOLDER);
    size_t before = count_files();
    char line[512];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        change_weight("model.layers.2.mlp.up_proj.weight", 300, values[i].bits);
        snprintf(line, sizeof line, "quantize -m %s --type q4_0 -t 2 -o %s/out.gguf", folder, folder);
        check_refused(1, "model.layers.2.mlp.up_proj.weight has ", line);
        check_refused(1, values[i].part, line);
        check_refused(1, "in row 1:", line);
        ck_assert_uint_eq(count_files(), before);
    }
    remove_folder();
}
END_TEST

START_TEST(bad_models) {
    make_folder();
    char line[512];
    snprintf(line, sizeof line, "quantize -m /nowhere --type q4_0 -o %s/out.gguf", folder);
    check_refused(1, "/nowhere", line);
    copy_model(FOLDER);
    size_t before = count_files();
    ck_assert_int_eq(truncate(in_folder("model.safetensors"), 100000), 0);
    snprintf(line, sizeof line, "quantize -m %s --type q4_0 -o %s/out.gguf", folder, folder);
    check_refused(1, "model.safetensors", line);
    ck_assert_uint_eq(count_files(), before);
    remove_folder();
}
END_TEST

/* The folder has an MTP layer that its configuration doesn't declare. So GGUF has no name for the layer's tensors. If
 * they were left out silently, they would be lost. So the folder must be refused. */
START_TEST(a_tensor_without_a_name) {
    char line[512];
    make_folder();
    copy_model("tests/data/glm-ocr");
    json_t *config = json_load_file(in_folder("config.json"), 0, NULL);
    json_object_set_new(json_object_get(config, "text_config"), "num_nextn_predict_layers", json_integer(0));
    ck_assert_int_eq(json_dump_file(config, in_folder("config.json"), 0), 0);
    json_decref(config);
    snprintf(line, sizeof line, "quantize -m %s --type q4_0 -o %s/out.gguf", folder, folder);
    check_refused(1, "tensor model.language_model.layers.2.", line);
    check_refused(1, "has no name in GGUF", line);
    remove_folder();
}
END_TEST

/* Changes the value of a key in one of the folder's JSON files. */
static void change_json(const char *name, const char *key, json_t *value) {
    json_t *root = json_load_file(in_folder(name), 0, NULL);
    ck_assert_ptr_nonnull(root);
    json_object_set_new(root, key, value);
    ck_assert_int_eq(json_dump_file(root, in_folder(name), 0), 0);
    json_decref(root);
}

/* The tokenizer splits texts in another way than Llama 3's. But the GGUF file would have the name of Llama 3's
 * pre-tokenizer. So the folder must be refused. */
START_TEST(a_tokenizer_of_another_kind) {
    char line[512];
    make_folder();
    copy_model(MODELS "llama");
    change_json("tokenizer.json", "pre_tokenizer",
                json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}", "type", "Sequence", "pretokenizers",
                          "type", "Split", "pattern", "Regex", "[aeiou]+", "behavior", "Isolated", "type", "ByteLevel",
                          "add_prefix_space", 0, "use_regex", 0));
    snprintf(line, sizeof line, "quantize -m %s --type q4_0 -o %s/out.gguf", folder, folder);
    check_refused(2, "cuts texts otherwise than \"llama-bpe\" is not built", line);
    ck_assert_uint_eq(count_files(), 4);
    remove_folder();
}
END_TEST

/* Checks that the GGUF file names this pre-tokenizer, and that the file and the folder tokenize a text in the same
 * way. */
static void check_written_kind(const char *name) {
    fr_text pre;
    fr_checkpoint files = open_model(quantized(folder, "--type q8_0", "written.gguf"));
    ck_assert_int_eq(fr_gguf_text(files.gguf, "tokenizer.ggml.pre", &pre), FR_OK);
    ck_assert_msg(fr_text_is(pre, name), "%.*s", (int)pre.length, pre.bytes);
    fr_checkpoint_close(&files);
    fr_command theirs = fr_command_ok("tokenize -m %s -p 'def  f(1234567): \u00e9 e\u0301'", folder);
    fr_command ours = fr_command_ok("tokenize -m %s -p 'def  f(1234567): \u00e9 e\u0301'", in_folder("written.gguf"));
    ck_assert_str_eq(ours.out, theirs.out);
    fr_command_free(&theirs);
    fr_command_free(&ours);
}

static const struct {
    const char *pre, *normalizer;
    bool digits;
} other_kinds[] = {{"smollm", NULL, true}, {"gpt-2", NULL, false}, {"olmo", "NFC", false}, {"command-r", "NFC", true}};

/* The model's architecture is Llama's, but its tokenizer splits texts as that of another family does. The file must
 * name that family's pre-tokenizer. */
START_TEST(a_tokenizer_that_another_kind_has) {
    make_folder();
    copy_model(MODELS "llama");
    json_t *root = json_load_file(in_folder("tokenizer.json"), 0, NULL), *parts = json_array();
    json_object_set_new(json_object_get(root, "model"), "ignore_merges", json_false());
    ck_assert_int_eq(json_dump_file(root, in_folder("tokenizer.json"), 0), 0);
    json_decref(root);
    if (other_kinds[_i].normalizer)
        change_json("tokenizer.json", "normalizer", json_pack("{s:s}", "type", other_kinds[_i].normalizer));
    if (other_kinds[_i].digits)
        json_array_append_new(parts, json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", 1));
    json_array_append_new(parts,
                          json_pack("{s:s, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 1));
    change_json("tokenizer.json", "pre_tokenizer", json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", parts));
    check_written_kind(other_kinds[_i].pre);
    remove_folder();
}
END_TEST

/* Gemma 4's tokenizer does not split texts at spaces. llama.cpp's name for such a pre-tokenizer is "gemma4". */
START_TEST(a_tokenizer_of_spaces) {
    make_folder();
    copy_model(MODELS "llama");
    copy_file(FOLDER, "tokenizer.json");
    copy_file(FOLDER, "tokenizer_config.json");
    check_written_kind("gemma4");
    remove_folder();
}
END_TEST

/* tokenizer.json has no rule that adds <bos>. DeepSeek-V3's published folder has none either. The flag add_bos_token in
 * tokenizer_config.json must decide. */
START_TEST(begin_that_the_config_adds) {
    make_folder();
    copy_model("tests/data/deepseek-v3");
    change_json("tokenizer.json", "post_processor", json_null());
    for (int adds = 0; adds < 2; adds++) {
        bool flag;
        change_json("tokenizer_config.json", "add_bos_token", json_boolean(adds));
        fr_checkpoint files = open_model(quantized(folder, "--type q8_0", "written.gguf"));
        ck_assert_int_eq(fr_gguf_bool(files.gguf, "tokenizer.ggml.add_bos_token", !adds, &flag), FR_OK);
        ck_assert_int_eq(flag, adds);
        fr_checkpoint_close(&files);
        fr_command theirs = fr_command_ok("tokenize -m %s -p def", folder);
        fr_command ours = fr_command_ok("tokenize -m %s -p def", in_folder("written.gguf"));
        ck_assert_str_eq(ours.out, theirs.out);
        fr_command_free(&theirs);
        fr_command_free(&ours);
    }
    remove_folder();
}
END_TEST

START_TEST(empty_tensor) {
    make_folder();
    fr_gguf_writer writer;
    FILE *out = fopen(in_folder("empty.gguf"), "wb");
    fr_gguf_writer_open(&writer, out, "made");
    fr_gguf_put_tensor(&writer, "nothing.weight", FR_F32, false, 2, (uint64_t[]){4, 0});
    ck_assert_int_eq(fr_gguf_write_header(&writer), FR_OK);
    fr_gguf_writer_close(&writer);
    ck_assert_int_eq(fclose(out), 0);
    char line[128];
    snprintf(line, sizeof line, "quantize -m %s/empty.gguf --type q4_0 -o %s/out.gguf", folder, folder);
    check_refused(1, "nothing.weight", line);
    ck_assert_uint_eq(count_files(), 1);
    remove_folder();
}
END_TEST

START_TEST(a_signal_leaves_nothing_behind) {
    make_folder();
    char line[256];
    int null = open("/dev/null", O_RDWR);
    snprintf(line, sizeof line, "quantize -m tools/demo/target --type iq4_nl --pure -t 1 -o %s/x.gguf", folder);
    pid_t process = fr_command_start(line, null, null, null);
    while (count_files() == 0) usleep(500);
    ck_assert_int_eq(kill(process, SIGTERM), 0);
    ck_assert_int_eq(fr_command_wait(process), 128 + SIGTERM);
    ck_assert_msg(rmdir(folder) == 0, "a file is left");
    close(null);
}
END_TEST

FR_SUITE("quantize") {
    TCase *tests = tcase_create("quantize");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, keys_tensors_and_types);
    tcase_add_test(tests, files_as_llama_cpp_writes_them);
    tcase_add_test(tests, named_templates);
    tcase_add_test(tests, numbers_of_a_target);
    tcase_add_test(tests, numbers_of_an_assistant);
    tcase_add_test(tests, same_text);
    tcase_add_test(tests, overrides_and_pure);
    tcase_add_test(tests, names_of_llama_cpp);
    tcase_add_test(tests, smaller_mixtures);
    tcase_add_test(tests, a_tower_that_is_left_out_is_said);
    tcase_add_test(tests, sampling_settings_are_written);
    tcase_add_test(tests, types_that_rows_do_not_fill_are_said);
    tcase_add_test(tests, threads_and_pipes);
    tcase_add_test(tests, the_call_writes_the_commands_file);
    tcase_add_test(tests, begin_that_the_config_adds);
    tcase_add_test(tests, a_signal_leaves_nothing_behind);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 120);
    tcase_add_test(damaged, writer_and_reader_agree);
    tcase_add_test(damaged, writer_counts);
    tcase_add_test(damaged, from_gguf);
    tcase_add_test(damaged, parts_that_can_not_be_read_are_said);
    tcase_add_test(damaged, sampling_settings_may_be_anything);
    tcase_add_test(damaged, the_call_leaves_no_file_after_a_failure);
    tcase_add_test(damaged, wrong_usage);
    tcase_add_test(damaged, bad_weights);
    tcase_add_test(damaged, bad_models);
    tcase_add_test(damaged, a_tensor_without_a_name);
    tcase_add_test(damaged, a_tokenizer_of_another_kind);
    tcase_add_loop_test(damaged, a_tokenizer_that_another_kind_has, 0, sizeof other_kinds / sizeof *other_kinds);
    tcase_add_test(damaged, a_tokenizer_of_spaces);
    tcase_add_test(damaged, empty_tensor);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, damaged);
}
