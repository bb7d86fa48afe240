/* Tests the same as test_one_answer.c with folders of grouped codes, in the forms that MLX, AutoAWQ and
 * compressed-tensors publish. Each instruction set, number of threads, chunk and pattern of rejected drafts must give
 * the same logits and ids.
 *
 * The test makes the folders itself, with random codes. Their model is a small Llama with tied embeddings, which MLX
 * quantizes too. The base run decodes on one thread with the best instruction set. As a negative control, a folder in
 * which one code was changed must give other logits. */
/* suite: alone neon no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/support/answer.h"
#include "tests/support/block_cases.h"
#include "tests/support/brief.h"
#include "tests/support/suite.h"

enum { COUNT = 48, FEW = 12, HIDDEN = 128, INNER = 192, VOCAB = 80, LAYERS = 2, KV = 32, GROUP = 64 };

typedef enum publisher { MLX, AWQ, COMPRESSED } publisher;

static const struct subject {
    publisher publisher;
    unsigned bits;
    const char *scales; /* the type of scales and biases */
} subjects[] = {{MLX, 4, "BF16"}, {AWQ, 4, "F16"},  {COMPRESSED, 8, "BF16"}, {MLX, 3, "F16"},       {MLX, 2, "F16"},
                {MLX, 5, "F32"},  {MLX, 6, "BF16"}, {MLX, 8, "BF16"},        {COMPRESSED, 4, "F16"}};

static char folder[64];

/* A file of tensors that is being written: its JSON header and its data. */
typedef struct tensor_file {
    char header[1 << 16];
    size_t length, bytes;
    uint8_t *data;
} tensor_file;

/* Adds a tensor to the file. Returns a pointer to the tensor's bytes, which the caller fills. */
static uint8_t *add(tensor_file *file, const char *module, const char *part, const char *type, size_t size, size_t rows,
                    size_t cols) {
    size_t bytes = rows * (cols ? cols : 1) * size, at = file->bytes;
    char shape[64];
    snprintf(shape, sizeof shape, cols ? "%zu, %zu" : "%zu", rows, cols);
    file->length += (size_t)snprintf(file->header + file->length, sizeof file->header - file->length,
                                     "%s\"%s.%s\": {\"dtype\": \"%s\", \"shape\": [%s], \"data_offsets\": [%zu, %zu]}",
                                     file->length > 1 ? ", " : "", module, part, type, shape, at, at + bytes);
    ck_assert_uint_lt(file->length, sizeof file->header - 64);
    file->data = realloc(file->data, at + bytes);
    ck_assert_ptr_nonnull(file->data);
    file->bytes += bytes;
    return file->data + at;
}

static void add_codes(tensor_file *file, const char *module, const char *part, const char *type, size_t rows,
                      size_t words) {
    uint8_t *codes = add(file, module, part, type, 4, rows, words);
    for (size_t i = 0; i < rows * words * 4; i++) codes[i] = (uint8_t)fr_random_bits();
}

/* Adds random floats between `least` and twice `least`. If `with_sign` is true, some of them are negative. */
static void add_floats(tensor_file *file, const char *module, const char *part, const char *type, size_t rows,
                       size_t cols, float least, bool with_sign) {
    size_t size = strcmp(type, "F32") == 0 ? 4 : 2;
    uint8_t *at = add(file, module, part, type, size, rows, cols);
    for (size_t i = 0; i < rows * (cols ? cols : 1); i++, at += size) {
        float value = least * (1 + (float)fr_random_below(128) / 128);
        if (with_sign && fr_random_below(2)) value = -value;
        uint16_t half = strcmp(type, "F16") == 0 ? fr_f16_from_f32(value) : fr_bf16_from_f32(value);
        if (size == 4)
            memcpy(at, &value, size);
        else
            memcpy(at, &half, size);
    }
}

static void add_module(tensor_file *file, const struct subject *s, const char *module, size_t rows, size_t cols) {
    float least = 0.5f / (float)(1u << s->bits);
    size_t groups = cols / GROUP;
    if (s->publisher == MLX) {
        add_codes(file, module, "weight", "U32", rows, cols * s->bits / 32);
        add_floats(file, module, "scales", s->scales, rows, groups, least, true);
        add_floats(file, module, "biases", s->scales, rows, groups, 0.25f, true);
    } else if (s->publisher == AWQ) {
        add_codes(file, module, "qweight", "I32", cols, rows / 8);
        add_codes(file, module, "qzeros", "I32", groups, rows / 8);
        add_floats(file, module, "scales", s->scales, groups, rows, least, false);
    } else {
        const int64_t shape[] = {(int64_t)rows, (int64_t)cols};
        add_codes(file, module, "weight_packed", "I32", rows, cols * s->bits / 32);
        add_floats(file, module, "weight_scale", s->scales, rows, groups, least, true);
        memcpy(add(file, module, "weight_shape", "I64", sizeof *shape, 2, 0), shape, sizeof shape);
    }
}

static void write_text(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

static void write_config(const struct subject *s) {
    char text[2048], quantization[512];
    if (s->publisher == MLX)
        snprintf(quantization, sizeof quantization, "\"quantization\": {\"group_size\": %d, \"bits\": %u}", GROUP,
                 s->bits);
    else if (s->publisher == AWQ)
        snprintf(quantization, sizeof quantization,
                 "\"quantization_config\": {\"quant_method\": \"awq\", \"zero_point\": true, \"group_size\": %d, "
                 "\"bits\": 4, \"version\": \"gemm\"}",
                 GROUP);
    else
        snprintf(quantization, sizeof quantization,
                 "\"quantization_config\": {\"quant_method\": \"compressed-tensors\", \"format\": \"pack-quantized\", "
                 "\"config_groups\": {\"group_0\": {\"targets\": [\"Linear\"], \"weights\": {\"num_bits\": %u, "
                 "\"type\": \"int\", \"symmetric\": true, \"strategy\": \"group\", \"group_size\": %d}}}, "
                 "\"ignore\": [\"lm_head\"]}",
                 s->bits, GROUP);
    snprintf(text, sizeof text,
             "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": %d, "
             "\"intermediate_size\": %d, \"num_hidden_layers\": %d, \"num_attention_heads\": 4, "
             "\"num_key_value_heads\": 1, \"head_dim\": 32, \"vocab_size\": %d, \"hidden_act\": \"silu\", "
             "\"max_position_embeddings\": 256, \"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, "
             "\"tie_word_embeddings\": true, \"torch_dtype\": \"bfloat16\", %s}",
             HIDDEN, INNER, LAYERS, VOCAB, quantization);
    write_text("config.json", text);
}

static void make_folder(const struct subject *s, bool changed) {
    static tensor_file file;
    free(file.data);
    file = (tensor_file){.header = "{", .length = 1};
    fr_random_start(7);
    mkdir(folder, 0777);
    if (s->publisher == MLX)
        add_module(&file, s, "model.embed_tokens", VOCAB, HIDDEN);
    else
        add_floats(&file, "model.embed_tokens", "weight", "BF16", VOCAB, HIDDEN, 0.25f, true);
    size_t first = file.bytes;
    for (size_t l = 0; l < LAYERS; l++) {
        static const struct {
            const char *name;
            size_t rows, cols;
        } modules[] = {{"self_attn.q_proj", HIDDEN, HIDDEN}, {"self_attn.k_proj", KV, HIDDEN},
                       {"self_attn.v_proj", KV, HIDDEN},     {"self_attn.o_proj", HIDDEN, HIDDEN},
                       {"mlp.gate_proj", INNER, HIDDEN},     {"mlp.up_proj", INNER, HIDDEN},
                       {"mlp.down_proj", HIDDEN, INNER}};
        char name[64];
        for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
            snprintf(name, sizeof name, "model.layers.%zu.%s", l, modules[m].name);
            add_module(&file, s, name, modules[m].rows, modules[m].cols);
        }
        snprintf(name, sizeof name, "model.layers.%zu.input_layernorm", l);
        add_floats(&file, name, "weight", "BF16", HIDDEN, 0, 0.5f, false);
        snprintf(name, sizeof name, "model.layers.%zu.post_attention_layernorm", l);
        add_floats(&file, name, "weight", "BF16", HIDDEN, 0, 0.5f, false);
    }
    add_floats(&file, "model.norm", "weight", "BF16", HIDDEN, 0, 0.5f, false);
    if (changed) file.data[first] ^= 1;
    file.header[file.length++] = '}';
    while (file.length % 8) file.header[file.length++] = ' ';
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    uint64_t length = file.length;
    fwrite(&length, sizeof length, 1, out);
    fwrite(file.header, 1, file.length, out);
    fwrite(file.data, 1, file.bytes, out);
    ck_assert_int_eq(fclose(out), 0);
    write_config(s);
}

static void remove_folder(void) {
    char path[128];
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

START_TEST(grouped_codes_give_one_answer) {
    static const int threads[] = {2, 3, 1}, chunks[] = {7, 1, 64}, depths[] = {1, 3, 7, 2};
    const struct subject *s = &subjects[_i];
    size_t count = fr_test_emulated() ? FEW : COUNT;
    int32_t text[COUNT];
    const char *best = NULL;
    make_folder(s, false);
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) best = fr_lab_word(FR_LAB_ISA, i);
    fr_manner plain = {.isa = best, .threads = 1, .chunk = 64, .depth = 1, .method = FR_TEST_NONE};
    fr_answer base = fr_answer_of(folder, NULL, &plain, count, NULL, text, false);
    for (size_t i = 0, here = 0; fr_lab_word(FR_LAB_ISA, i); i++) {
        if (!fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) continue;
        fr_manner manner = {.isa = fr_lab_word(FR_LAB_ISA, i),
                            .threads = threads[here % 3],
                            .chunk = chunks[here % 3],
                            .depth = depths[here % 4],
                            .method = FR_TEST_SCRIPTED};
        fr_answer got = fr_answer_of(folder, NULL, &manner, count, text, NULL, false);
        ck_assert_msg(got.ids == base.ids && got.logits == base.logits,
                      "%u bits, publisher %d: isa %s, %d threads, chunk %d, depth %d gives other %s", s->bits,
                      (int)s->publisher, manner.isa, manner.threads, manner.chunk, manner.depth,
                      got.ids == base.ids ? "logits" : "ids");
        here++;
    }
    make_folder(s, true);
    ck_assert(fr_answer_of(folder, NULL, &plain, count, NULL, text, false).logits != base.logits);
    remove_folder();
}
END_TEST

static void add_cases(Suite *suite) {
    int count = fr_test_emulated() ? 3 : sizeof subjects / sizeof *subjects;
    TCase *matrix = tcase_create("publishers");
    tcase_set_timeout(matrix, 0);
    tcase_add_loop_test(matrix, grouped_codes_give_one_answer, 0, count);
    suite_add_tcase(suite, matrix);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-grouped-%d", (int)getpid());
    int status = fr_suite_run("one answer, grouped codes", add_cases);
    remove_folder();
    return status;
}
