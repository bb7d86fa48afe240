/* Implements made_drafter.h: makes a block drafter with random weights. */
#include "tests/support/made_drafter.h"

#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADS = 2, HEAD = 16, WIDTH = 48, BLOCK = 8, WINDOW = 12, LAYERS = 2 };

/* A safetensors file that is being written. The entries of the header come before the data. */
typedef struct writer {
    json_t *header;
    FILE *data;
    size_t size;
    uint32_t state;
} writer;

static float draw(writer *w) {
    w->state = w->state * 1664525u + 1013904223u;
    return (float)(w->state >> 8) / 8388608.0F - 1.0F;
}

/* Adds a float32 tensor. If `cols` is 0, the tensor is the vector of a norm, and all its values are 1. */
static void put(writer *w, const char *name, size_t rows, size_t cols) {
    size_t count = rows * (cols ? cols : 1), bytes = count * sizeof(float);
    json_t *shape = cols ? json_pack("[ii]", (int)rows, (int)cols) : json_pack("[i]", (int)rows);
    float scale = cols ? 2.0F / sqrtf((float)cols) : 0;
    json_object_set_new(w->header, name,
                        json_pack("{s:s, s:o, s:[ii]}", "dtype", "F32", "shape", shape, "data_offsets", (int)w->size,
                                  (int)(w->size + bytes)));
    w->size += bytes;
    for (size_t i = 0; i < count; i++) {
        float value = cols ? draw(w) * scale : 1.0F;
        ck_assert_uint_eq(fwrite(&value, sizeof value, 1, w->data), 1);
    }
}

static void put_layer(writer *w, size_t layer, size_t hidden) {
    static const struct {
        const char *name;
        size_t rows, cols; /* 0 means the hidden size; a norm has only rows */
        bool norm;
    } tensors[] = {{"input_layernorm", 0, 0, true},
                   {"post_attention_layernorm", 0, 0, true},
                   {"self_attn.q_proj", HEADS * HEAD, 0, false},
                   {"self_attn.k_proj", HEAD, 0, false},
                   {"self_attn.v_proj", HEAD, 0, false},
                   {"self_attn.o_proj", 0, HEADS * HEAD, false},
                   {"self_attn.q_norm", HEAD, 0, true},
                   {"self_attn.k_norm", HEAD, 0, true},
                   {"mlp.gate_proj", WIDTH, 0, false},
                   {"mlp.up_proj", WIDTH, 0, false},
                   {"mlp.down_proj", 0, WIDTH, false}};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        char name[64];
        size_t rows = tensors[i].rows ? tensors[i].rows : hidden, cols = tensors[i].cols ? tensors[i].cols : hidden;
        snprintf(name, sizeof name, "layers.%zu.%s.weight", layer, tensors[i].name);
        put(w, name, rows, tensors[i].norm ? 0 : cols);
    }
}

static void write_weights(const char *path, size_t hidden, size_t taps) {
    writer w = {.header = json_object(), .data = tmpfile(), .state = (uint32_t)hidden};
    ck_assert_ptr_nonnull(w.data);
    put(&w, "fc.weight", hidden, taps * hidden);
    put(&w, "hidden_norm.weight", hidden, 0);
    put(&w, "norm.weight", hidden, 0);
    for (size_t i = 0; i < LAYERS; i++) put_layer(&w, i, hidden);
    char *text = json_dumps(w.header, JSON_COMPACT), *bytes = malloc(w.size);
    uint64_t length = strlen(text);
    rewind(w.data);
    ck_assert_uint_eq(fread(bytes, 1, w.size, w.data), w.size);
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(&length, sizeof length, 1, out), 1);
    ck_assert_uint_eq(fwrite(text, 1, length, out), length);
    ck_assert_uint_eq(fwrite(bytes, 1, w.size, out), w.size);
    ck_assert_int_eq(fclose(out), 0);
    fclose(w.data);
    free(text);
    free(bytes);
    json_decref(w.header);
}

void fr_made_drafter(const fr_model *target, const char *folder) {
    char path[256];
    int hidden = (int)fr_model_fact(target, FR_FACT_HIDDEN), layers = (int)fr_model_fact(target, FR_FACT_LAYERS);
    int vocab = (int)fr_model_fact(target, FR_FACT_VOCAB);
    json_t *taps = layers > 1 ? json_pack("[ii]", 0, layers - 1) : json_pack("[i]", 0);
    size_t count = json_array_size(taps);
    json_t *config = json_pack(
        "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:i, s:i, s:b, s:[ss], s:i, s:b, s:i, s:i, "
        "s:{s:i, s:o}}",
        "architectures", "DFlashDraftModel", "model_type", "qwen3", "hidden_size", hidden, "intermediate_size", WIDTH,
        "num_hidden_layers", LAYERS, "num_attention_heads", HEADS, "num_key_value_heads", 1, "head_dim", HEAD,
        "hidden_act", "silu", "rms_norm_eps", 1e-6, "rope_theta", 1e4, "vocab_size", vocab, "max_position_embeddings",
        4096, "attention_bias", 0, "layer_types", "sliding_attention", "full_attention", "sliding_window", WINDOW,
        "use_sliding_window", 1, "num_target_layers", layers, "block_size", BLOCK, "dflash_config", "mask_token_id",
        vocab - 1, "target_layer_ids", taps);
    ck_assert_ptr_nonnull(config);
    snprintf(path, sizeof path, "%s/config.json", folder);
    ck_assert_int_eq(json_dump_file(config, path, 0), 0);
    json_decref(config);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    write_weights(path, (size_t)hidden, count);
}

void fr_made_drafter_remove(const char *folder) {
    char path[256];
    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}
