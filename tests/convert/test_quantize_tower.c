/* Tests quantize on vision encoders. quantize writes such an encoder to a file in the folder of the text model's file.
 * It must be the mmproj file that llama.cpp's converter writes.
 *
 * The folders in tests/data/vision, and tests/data/glm-ocr, have the mmproj files that the converter made from them
 * with --outtype bf16. */
/* suite: hostile threads */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "forerun_lab.h"
#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define VISION "tests/data/vision/"
#define BREAK  "v.token_embd.img_break"

static const struct {
    const char *folder, *file;
} towers[] = {{VISION "qwen2.5-vl", VISION "qwen2.5-vl/mmproj.gguf"},
              {VISION "qwen3-vl-moe", VISION "qwen3-vl-moe/mmproj.gguf"},
              {VISION "qwen3.5", VISION "qwen3.5/mmproj.gguf"},
              {VISION "gemma3", VISION "gemma3/mmproj.gguf"},
              {VISION "gemma4-e", VISION "gemma4-e/mmproj.gguf"},
              {VISION "gemma4-dense", VISION "gemma4-dense/mmproj.gguf"},
              {VISION "mistral3", VISION "mistral3/mmproj.gguf"},
              {VISION "smolvlm", VISION "smolvlm/mmproj.gguf"},
              {VISION "gemma4-unified", VISION "gemma4-unified/mmproj.gguf"},
              {"tests/data/glm-ocr", "tests/data/glm-ocr/mmproj-bf16.gguf"}};

enum { TOWERS = sizeof towers / sizeof *towers };

static char folder[32];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/test_tower_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name) {
    static char paths[4][64];
    static size_t next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void remove_file(const char *name) {
    ck_assert_msg(remove(in_folder(name)) == 0, "%s is not there", name);
}

static void remove_folder(void) {
    ck_assert_msg(rmdir(folder) == 0, "a file is left");
}

/* Writes a vision encoder as a file of this type. The encoder is read from a model's folder, or from a file that has
 * only the encoder. */
static const char *write_tower(const char *path, bool tower, const char *type, const char *name) {
    const fr_lab_quantization how = {.type = type, .tower = tower};
    FILE *out = fopen(in_folder(name), "wb");
    ck_assert_ptr_nonnull(out);
    require(fr_lab_quantize(path, &how, NULL, out));
    ck_assert_int_eq(fclose(out), 0);
    return in_folder(name);
}

static fr_checkpoint open_file(const char *path) {
    fr_checkpoint files;
    require(fr_checkpoint_open(&files, path, true));
    return files;
}

/* The converter's file has keys that forerun's file may lack, and this function returns true for them. They are names,
 * settings of samplers, and keys of an audio encoder, which quantize does not write. */
static bool is_left_out(fr_text key) {
    static const char *const words[] = {"general.name", "general.size_label", "general.sampling.", "clip.audio.",
                                        "clip.has_audio_encoder"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (key.length >= strlen(words[i]) && memcmp(key.bytes, words[i], strlen(words[i])) == 0) return true;
    return false;
}

START_TEST(files_are_those_of_the_converter) {
    make_folder();
    const char *path = write_tower(towers[_i].folder, true, "bf16", "tower.gguf");
    fr_checkpoint own = open_file(path), expected = open_file(towers[_i].file);
    bool breaks = fr_tensors_find(&own.tensors, BREAK) != NULL; /* for such a small model the converter does not write
                                                                 * the embedding of [IMG_BREAK] */
    ck_assert_uint_eq(own.tensors.count, expected.tensors.count + breaks);
    for (size_t i = 0; i < expected.tensors.count; i++) {
        const fr_tensor *e = &expected.tensors.items[i], *o = fr_tensors_find(&own.tensors, e->name);
        ck_assert_msg(o != NULL, "%s is missing", e->name);
        ck_assert_msg(o->type == e->type && o->dims == e->dims && o->bytes == e->bytes, "%s", e->name);
        ck_assert_msg(memcmp(o->shape, e->shape, e->dims * sizeof *e->shape) == 0, "the shape of %s", e->name);
        ck_assert_msg(memcmp(o->data, e->data, (size_t)e->bytes) == 0, "the values of %s", e->name);
    }
    for (size_t i = 0; i < expected.gguf->count; i++) {
        const fr_gguf_value *e = &expected.gguf->values[i];
        char key[128];
        if (is_left_out(e->key)) continue;
        snprintf(key, sizeof key, "%.*s", (int)e->key.length, e->key.bytes);
        const fr_gguf_value *o = fr_gguf_find(own.gguf, key);
        ck_assert_msg(o != NULL, "%s is missing", key);
        ck_assert_msg(o->type == e->type && o->element == e->element && o->bytes == e->bytes, "the type of %s", key);
        ck_assert_msg(memcmp(o->data, e->data, e->bytes) == 0, "the value of %s", key);
    }
    fr_checkpoint_close(&own);
    fr_checkpoint_close(&expected);
    remove_file("tower.gguf");
    remove_folder();
}
END_TEST

/* llama.cpp ends each row of patches of a Mistral picture with the embedding of [IMG_BREAK]. So the file must have this
 * row of the text model's embedding table. */
START_TEST(end_of_a_row) {
    make_folder();
    fr_checkpoint own = open_file(write_tower(VISION "mistral3", true, "f16", "tower.gguf"));
    fr_checkpoint text = open_file(VISION "mistral3");
    const fr_tensor *row = fr_tensors_find(&own.tensors, BREAK);
    const fr_tensor *table = fr_tensors_find(&text.tensors, "language_model.model.embed_tokens.weight");
    json_t *root = json_load_file(VISION "mistral3/tokenizer.json", 0, NULL), *token;
    size_t i, id = 0;
    ck_assert(row && table && row->type == FR_F32 && row->dims == 1 && row->shape[0] == table->shape[1]);
    json_array_foreach (json_object_get(root, "added_tokens"), i, token) {
        if (strcmp(json_string_value(json_object_get(token, "content")), "[IMG_BREAK]") == 0)
            id = (size_t)json_integer_value(json_object_get(token, "id"));
    }
    ck_assert_uint_gt(id, 0);
    size_t cols = (size_t)table->shape[1], bytes = fr_dtype_row_bytes(table->type, cols);
    float *values = malloc(cols * sizeof *values);
    fr_dtype_decode(table->type, (const uint8_t *)table->data + id * bytes, values, cols);
    ck_assert(memcmp(values, row->data, cols * sizeof *values) == 0);
    free(values);
    json_decref(root);
    fr_checkpoint_close(&text);
    fr_checkpoint_close(&own);
    remove_file("tower.gguf");
    remove_folder();
}
END_TEST

/* llama.cpp can read some tensors only as floats. So these tensors don't get the file's type. Quantizing the
 * converter's file must give the same tensors as quantizing the folder. */
START_TEST(types) {
    static const char *const words[] = {"f16", "q8_0"};
    const fr_dtype matrices[] = {FR_F16, FR_Q8_0}, patches[] = {FR_F16, FR_F32};
    make_folder();
    for (size_t i = 0; i < 2; i++) {
        fr_checkpoint files = open_file(write_tower("tests/data/glm-ocr", true, words[i], "tower.gguf"));
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "v.blk.1.attn_qkv.weight")->type, matrices[i]);
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "mm.gate.weight")->type, matrices[i]);
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "v.patch_embd.weight")->type, patches[i]);
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "v.patch_embd.weight.1")->type, patches[i]);
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "mm.patch_merger.weight")->type, patches[i]);
        ck_assert_int_eq(fr_tensors_find(&files.tensors, "v.blk.1.attn_qkv.bias")->type, FR_F32);
        fr_checkpoint again = open_file(write_tower(towers[TOWERS - 1].file, false, words[i], "again.gguf"));
        for (size_t t = 0; t < files.tensors.count; t++) {
            const fr_tensor *e = &files.tensors.items[t], *o = fr_tensors_find(&again.tensors, e->name);
            ck_assert_msg(o && o->bytes == e->bytes && memcmp(o->data, e->data, (size_t)e->bytes) == 0, "%s", e->name);
        }
        fr_checkpoint_close(&files);
        fr_checkpoint_close(&again);
    }
    fr_checkpoint files = open_file(write_tower(VISION "gemma3", true, "q8_0", "tower.gguf"));
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "mm.input_projection.weight")->type, FR_F16);
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "v.position_embd.weight")->type, FR_F32);
    fr_checkpoint_close(&files);
    remove_file("tower.gguf");
    remove_file("again.gguf");
    remove_folder();
}
END_TEST

static bool is_there(const char *name) {
    return access(in_folder(name), F_OK) == 0;
}

/* The command must write the vision encoder's file to the folder of the model's file. Both files together must give the
 * same answer as the model's folder. */
START_TEST(a_second_file) {
    static const char *const model = VISION "qwen3.5";
    make_folder();
    fr_command c = fr_command_ok("quantize -m %s --type f32 --mmproj-type f32 -o %s", model, in_folder("a.gguf"));
    ck_assert_msg(strstr(c.err, "mmproj-a.gguf: give it with --mmproj") != NULL, "%s", c.err);
    fr_command_free(&c);
    static const char *const ask = "--image " VISION "qwen3.5/image/a.png -p What -n 6 --temp 0 --output ids";
    fr_command own = fr_command_ok("generate -m %s %s", model, ask);
    fr_command pair =
        fr_command_ok("generate -m %s --mmproj %s %s", in_folder("a.gguf"), in_folder("mmproj-a.gguf"), ask);
    ck_assert_str_eq(own.out, pair.out);
    ck_assert_uint_gt(strlen(own.out), 2);
    fr_command_free(&own);
    fr_command_free(&pair);
    c = fr_command_ok("quantize -m %s --mmproj %s --type q8_0 --quiet -o %s", in_folder("a.gguf"),
                      in_folder("mmproj-a.gguf"), in_folder("b.gguf"));
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
    fr_checkpoint files = open_file(in_folder("mmproj-b.gguf"));
    ck_assert_int_eq(fr_tensors_find(&files.tensors, "mm.0.weight")->type, FR_F16);
    fr_checkpoint_close(&files);
    remove_file("b.gguf");
    remove_file("mmproj-b.gguf");
    remove_file("mmproj-a.gguf");
    remove_file("a.gguf");
    c = fr_command_ok("quantize -m %s --type q8_0 --mmproj-type none --quiet -o %s", model, in_folder("a.gguf"));
    fr_command_free(&c);
    ck_assert(!is_there("mmproj-a.gguf"));
    remove_file("a.gguf");
    remove_folder();
}
END_TEST

/* In a packed file the encoder's matrices are stored in tiles, which the kernels read directly. The answer must stay
 * the same. */
START_TEST(a_packed_tower_answers_alike) {
    make_folder();
    char ask[160] = "--image " VISION "qwen3.5/image/a.png -p What -n 6 --temp 0 --logprobs 3 --output json";
    write_tower(VISION "qwen3.5/mmproj.gguf", false, "q8_0", "tower.gguf");
    fr_command c = fr_command_ok("pack -m %s -o %s", in_folder("tower.gguf"), in_folder("packed.gguf"));
    fr_command_free(&c);
    fr_checkpoint packed = open_file(in_folder("packed.gguf"));
    ck_assert_uint_ne(fr_tensors_find(&packed.tensors, "v.blk.0.attn_qkv.weight")->type, FR_Q8_0);
    fr_checkpoint_close(&packed);
    json_t *answers[2];
    static const char *const names[] = {"tower.gguf", "packed.gguf"};
    for (size_t i = 0; i < 2; i++) {
        c = fr_command_ok("generate -m " VISION "qwen3.5/text.gguf --mmproj %s %s", in_folder(names[i]), ask);
        answers[i] = json_loads(c.out, 0, NULL);
        ck_assert_ptr_nonnull(answers[i]);
        fr_command_free(&c);
    }
    const json_t *logprobs[] = {fr_json_get(answers[0], "logprobs"), fr_json_get(answers[1], "logprobs")};
    ck_assert(json_equal(fr_json_get(answers[0], "ids"), fr_json_get(answers[1], "ids")));
    ck_assert(json_equal(logprobs[0], logprobs[1]));
    for (size_t i = 0; i < 2; i++) {
        json_decref(answers[i]);
        remove_file(names[i]);
    }
    remove_folder();
}
END_TEST

START_TEST(failures_leave_nothing) {
    static const struct {
        const char *words, *line;
    } cases[] = {
        {"-m " VISION "gemma3-crops --type q8_0", "do_pan_and_scan"},
        {"-m " VISION "qwen3.5 --type q8_0 --mmproj-type q9", "q9"},
        {"-m " VISION "qwen3.5 --type q8_0 --mmproj " VISION "qwen3.5/config.json", "config.json"},
        {"-m tests/data/models/gemma3-odd --type q8_0 --mmproj-type f16", "has no vision tower"},
    };
    make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        snprintf(line, sizeof line, "quantize %s -o %s", cases[i].words, in_folder("a.gguf"));
        fr_command c = fr_command_run(line, "");
        ck_assert_msg(c.status != 0 && strstr(c.err, cases[i].line), "%s: %d \"%s\"", line, c.status, c.err);
        fr_command_free(&c);
        ck_assert_msg(!is_there("a.gguf") && !is_there("mmproj-a.gguf"), "%s leaves a file", line);
    }
    remove_folder();
}
END_TEST

/* The text model must be refused because of its tokenizer. GGUF has no form for the tokenizer's added token. */
START_TEST(a_refused_text_model_leaves_no_tower) {
    fr_changed_folder changed;
    char line[256];
    json_t *tokenizer = fr_load_json(VISION "gemma3/tokenizer.json");
    json_object_set_new(json_array_get(json_object_get(tokenizer, "added_tokens"), 0), "lstrip", json_true());
    char *text = json_dumps(tokenizer, 0);
    fr_changed_folder_make(&changed, VISION "gemma3", "{}");
    fr_changed_folder_write(&changed, "tokenizer.json", text);
    make_folder();
    snprintf(line, sizeof line, "quantize -m %s --type q8_0 -o %s", changed.path, in_folder("a.gguf"));
    fr_command c = fr_command_run(line, "");
    ck_assert_msg(c.status != 0 && strstr(c.err, "added token"), "%d \"%s\"", c.status, c.err);
    ck_assert(!is_there("a.gguf") && !is_there("mmproj-a.gguf"));
    fr_command_free(&c);
    remove_folder();
    fr_changed_folder_remove(&changed);
    free(text);
    json_decref(tokenizer);
}
END_TEST

/* GGUF has no keys for these settings. So if a folder changes one of them, it must be refused. The error line must name
 * the setting and say how to write the text model alone. */
START_TEST(settings_without_a_key) {
    static const struct {
        const char *folder, *key, *value;
    } cases[] = {
        {"gemma3-crops", "do_pan_and_scan", "true"},
        {"smolvlm", "do_image_splitting", "false"},
        {"smolvlm", "resample", "3"},
        {"smolvlm", "size", "{\"width\": 48, \"height\": 24}"},
        {"mistral3", "size", "{\"width\": 56, \"height\": 28}"},
        {"mistral3", "resample", "2"},
        {"mistral3", "rescale_factor", "0.5"},
        {"gemma3", "resample", "3"},
    };
    make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char from[96], path[160];
        fr_changed_folder changed;
        snprintf(from, sizeof from, VISION "%s", cases[i].folder);
        fr_changed_folder_make(&changed, from, "{}");
        snprintf(path, sizeof path, "%s/preprocessor_config.json", from);
        json_t *processor = fr_load_json(path);
        json_object_set_new(processor, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        char *text = json_dumps(processor, 0);
        fr_changed_folder_write(&changed, "preprocessor_config.json", text);
        const fr_lab_quantization how = {.type = "f16", .tower = true};
        FILE *out = fopen(in_folder("a.gguf"), "wb");
        ck_assert_msg(fr_lab_quantize(changed.path, &how, NULL, out) == FR_UNBUILT, "%s of %s", cases[i].key, from);
        snprintf(path, sizeof path, "with this %s can't be written", cases[i].key);
        ck_assert_msg(strstr(fr_last_error(), path) && strstr(fr_last_error(), "mmproj-type none"), "%s of %s: %s",
                      cases[i].key, from, fr_last_error());
        fclose(out);
        free(text);
        json_decref(processor);
        fr_changed_folder_remove(&changed);
    }
    remove_file("a.gguf");
    remove_folder();
}
END_TEST

/* Gemma 4's text model says whether the rows of a picture attend to later rows of the picture. A GGUF file has no key
 * for this. Its readers assume that they do if the model has no per-layer embeddings, and that they don't if it has
 * some. */
START_TEST(a_sight_without_a_key) {
    static const struct {
        const char *folder, *sight;
        fr_status status;
    } cases[] = {{"gemma4-dense", "null", FR_UNBUILT},
                 {"gemma4-e", "\"vision\"", FR_UNBUILT},
                 {"gemma4-unified", "null", FR_UNBUILT},
                 {"gemma4-e", "null", FR_OK}};
    make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char from[160];
        fr_changed_folder changed;
        snprintf(from, sizeof from, VISION "%s/config.json", cases[i].folder);
        json_t *config = fr_load_json(from);
        *strrchr(from, '/') = 0;
        fr_changed_folder_make(&changed, from, "{}");
        json_object_set_new(json_object_get(config, "text_config"), "use_bidirectional_attention",
                            json_loads(cases[i].sight, JSON_DECODE_ANY, NULL));
        char *text = json_dumps(config, 0);
        fr_changed_folder_write(&changed, "config.json", text);
        const fr_lab_quantization how = {.type = "f16", .tower = true};
        FILE *out = fopen(in_folder("a.gguf"), "wb");
        ck_assert_msg(fr_lab_quantize(changed.path, &how, NULL, out) == cases[i].status, "%s: %s", from,
                      fr_last_error());
        bool named = strstr(fr_last_error(), "with this use_bidirectional_attention can't be written");
        ck_assert_msg(named || cases[i].status == FR_OK, "%s: %s", from, fr_last_error());
        fclose(out);
        free(text);
        json_decref(config);
        fr_changed_folder_remove(&changed);
    }
    remove_file("a.gguf");
    remove_folder();
}
END_TEST

/* The embedding of [IMG_BREAK] comes from the text model's table. If the rows of this table and the rows of the
 * encoder's output differ in width, the folder must be refused. */
START_TEST(a_table_of_another_shape) {
    fr_changed_folder changed;
    char path[96];
    size_t length;
    make_folder();
    fr_changed_folder_make(&changed, VISION "mistral3", "{}");
    char *bytes = fr_load_text(VISION "mistral3/model.safetensors", &length);
    char *name = memmem(bytes, length, "embed_tokens.weight", 19), *shape = name ? strstr(name, "[517,32]") : NULL;
    ck_assert_msg(shape && shape - name < 64, "the table's shape is not found");
    memcpy(shape, "[8272,2]", 8);
    snprintf(path, sizeof path, "%s/model.safetensors", changed.path);
    ck_assert_int_eq(remove(path), 0);
    FILE *file = fopen(path, "wb"), *out = fopen(in_folder("a.gguf"), "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
    const fr_lab_quantization how = {.type = "f16", .tower = true};
    ck_assert_int_eq(fr_lab_quantize(changed.path, &how, NULL, out), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "the embedding of [IMG_BREAK]") != NULL, "%s", fr_last_error());
    fclose(out);
    free(bytes);
    remove_file("a.gguf");
    fr_changed_folder_remove(&changed);
    remove_folder();
}
END_TEST

FR_SUITE("quantize_tower") {
    TCase *tests = tcase_create("quantize_tower");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, files_are_those_of_the_converter, 0, TOWERS);
    tcase_add_test(tests, end_of_a_row);
    tcase_add_test(tests, types);
    tcase_add_test(tests, a_second_file);
    tcase_add_test(tests, a_packed_tower_answers_alike);
    tcase_add_test(tests, failures_leave_nothing);
    tcase_add_test(tests, a_refused_text_model_leaves_no_tower);
    tcase_add_test(tests, settings_without_a_key);
    tcase_add_test(tests, a_sight_without_a_key);
    tcase_add_test(tests, a_table_of_another_shape);
    suite_add_tcase(suite, tests);
}
