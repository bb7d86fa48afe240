/* Writes random weights in the published folder form (synth.h). */
#include "bench/synth.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "quant/dtype.h"

/* Describes a safetensors file that is being written. The code walks over the tensors twice: first to write the header,
 * then to write the data. */
typedef struct writer {
    FILE *file;
    char *header;
    size_t used, capacity;
    uint64_t offset;
    uint64_t random;
    bool data; /* true in the second walk, which writes the data */
} writer;

static uint64_t next_random(writer *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static void append(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(writer *w, const char *format, ...) {
    if (w->used + 512 > w->capacity) {
        w->capacity = 2 * w->capacity + 4096;
        w->header = realloc(w->header, w->capacity);
        if (!w->header) abort();
    }
    va_list arguments;
    va_start(arguments, format);
    w->used += (size_t)vsnprintf(w->header + w->used, 512, format, arguments);
    va_end(arguments);
}

/* Writes BF16 values that are uniformly distributed around `mean` with standard deviation `deviation`. Each 64-bit
 * random number gives four values of 16 bits, which is fine enough for noise. */
static void write_noise(writer *w, size_t count, float mean, float deviation) {
    uint16_t buffer[4096];
    float scale = deviation * sqrtf(12.0f) / 65536.0f;
    while (count) {
        size_t n = count < 4096 ? count : 4096;
        for (size_t i = 0; i < n; i += 4) {
            uint64_t bits = next_random(w);
            for (size_t j = i; j < i + 4 && j < n; j++, bits >>= 16)
                buffer[j] = fr_bf16_from_f32(mean + scale * ((float)(bits & 0xffff) - 32767.5f));
        }
        fwrite(buffer, sizeof *buffer, n, w->file);
        count -= n;
    }
}

/* Writes one tensor. If `features` is 0, the tensor is a vector. */
static void tensor(writer *w, size_t features, size_t cols, float mean, float deviation, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
static void tensor(writer *w, size_t features, size_t cols, float mean, float deviation, const char *format, ...) {
    size_t count = (features ? features : 1) * cols;
    if (w->data) {
        write_noise(w, count, mean, deviation);
        return;
    }
    char name[160], shape[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (features)
        snprintf(shape, sizeof shape, "%zu,%zu", features, cols);
    else
        snprintf(shape, sizeof shape, "%zu", cols);
    append(w, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%llu,%llu]}", w->offset ? "," : "{", name,
           shape, (unsigned long long)w->offset, (unsigned long long)(w->offset + 2 * count));
    w->offset += 2 * count;
}

static void matrix(writer *w, size_t layer, const char *name, size_t features, size_t cols) {
    tensor(w, features, cols, 0, 1 / sqrtf((float)cols), "model.layers.%zu.%s.weight", layer, name);
}

static void norm(writer *w, size_t layer, const char *name, size_t n) {
    tensor(w, 0, n, 1, 0.1f, "model.layers.%zu.%s.weight", layer, name);
}

/* Writes the tensors of a layer that targets and assistants have in common. If kv_heads is 0, the layer has queries
 * only. */
static void layer(writer *w, size_t index, size_t hidden, size_t heads, size_t kv_heads, size_t head_dim, size_t ffn) {
    norm(w, index, "input_layernorm", hidden);
    norm(w, index, "post_attention_layernorm", hidden);
    norm(w, index, "pre_feedforward_layernorm", hidden);
    norm(w, index, "post_feedforward_layernorm", hidden);
    tensor(w, 0, 1, 0.7f, 0, "model.layers.%zu.layer_scalar", index);
    matrix(w, index, "self_attn.q_proj", heads * head_dim, hidden);
    tensor(w, 0, head_dim, 0.25f, 0.02f, "model.layers.%zu.self_attn.q_norm.weight", index);
    if (kv_heads) {
        matrix(w, index, "self_attn.k_proj", kv_heads * head_dim, hidden);
        matrix(w, index, "self_attn.v_proj", kv_heads * head_dim, hidden);
        tensor(w, 0, head_dim, 0.25f, 0.02f, "model.layers.%zu.self_attn.k_norm.weight", index);
    }
    matrix(w, index, "self_attn.o_proj", hidden, heads * head_dim);
    matrix(w, index, "mlp.gate_proj", ffn, hidden);
    matrix(w, index, "mlp.up_proj", ffn, hidden);
    matrix(w, index, "mlp.down_proj", hidden, ffn);
}

static bool is_full(const fr_synth_target *t, size_t index) {
    return index + 1 == t->layers || (index + 1) % t->full_every == 0;
}

static void walk_target(writer *w, const void *shape, const void *unused) {
    const fr_synth_target *t = shape;
    (void)unused;
    tensor(w, t->vocab, t->hidden, 0, 1 / sqrtf((float)t->hidden), "model.embed_tokens.weight");
    tensor(w, 0, t->hidden, 1, 0.1f, "model.norm.weight");
    for (size_t i = 0; i < t->layers; i++)
        layer(w, i, t->hidden, t->heads, t->kv_heads, is_full(t, i) ? t->global_head_dim : t->head_dim, t->ffn);
}

static void walk_assistant(writer *w, const void *shape, const void *target) {
    const fr_synth_assistant *a = shape;
    const fr_synth_target *t = target;
    tensor(w, t->vocab, a->hidden, 0, 1 / sqrtf((float)a->hidden), "model.embed_tokens.weight");
    tensor(w, 0, a->hidden, 1, 0.1f, "model.norm.weight");
    for (size_t i = 0; i < a->layers; i++)
        layer(w, i, a->hidden, a->heads, 0, i + 1 == a->layers ? t->global_head_dim : t->head_dim, a->ffn);
    tensor(w, a->hidden, 2 * t->hidden, 0, 1 / sqrtf(2 * (float)t->hidden), "pre_projection.weight");
    tensor(w, t->hidden, a->hidden, 0, 1 / sqrtf((float)a->hidden), "post_projection.weight");
    tensor(w, a->clusters, a->hidden, 0, 1 / sqrtf((float)a->hidden), "masked_embedding.centroids.weight");
}

/* Writes the token ordering, which is the last tensor. It is a permutation of the ids that scatters each cluster over
 * the table. Entry i is i times an odd stride, modulo the number of ids. This is a permutation because the number of
 * ids is a power of two. */
static void write_ordering(writer *w, size_t vocab) {
    size_t stride = (size_t)(0.618 * (double)vocab) | 1;
    for (size_t i = 0; i < vocab; i++) {
        int64_t id = (int64_t)(i * stride % vocab);
        fwrite(&id, sizeof id, 1, w->file);
    }
}

typedef void walk_fn(writer *w, const void *shape, const void *target);

/* Writes all tensors. ordering: length of the token ordering, which is written after the float tensors; 0 if there is
 * none. */
static bool write_tensors(const char *folder, walk_fn *walk, const void *shape, const void *target, size_t ordering) {
    char path[512];
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    writer w = {.file = fopen(path, "wb"), .random = 0x9e3779b97f4a7c15u};
    if (!w.file) return false;
    walk(&w, shape, target);
    if (ordering)
        append(&w,
               ",\"masked_embedding.token_ordering\":{\"dtype\":\"I64\",\"shape\":[%zu],\"data_offsets\":[%llu,%llu]}",
               ordering, (unsigned long long)w.offset, (unsigned long long)(w.offset + 8 * ordering));
    append(&w, "}");
    while (w.used % 8) append(&w, " ");
    uint64_t length = w.used;
    fwrite(&length, sizeof length, 1, w.file);
    fwrite(w.header, 1, w.used, w.file);
    w.data = true;
    walk(&w, shape, target);
    write_ordering(&w, ordering);
    free(w.header);
    bool good = !ferror(w.file);
    return fclose(w.file) == 0 && good;
}

static void write_text_config(FILE *file, const fr_synth_target *t, size_t hidden, size_t layers, size_t heads,
                              size_t ffn, size_t full_every, bool assistant) {
    fprintf(
        file,
        "{\"model_type\": \"gemma4_text\", \"vocab_size\": %zu, \"hidden_size\": %zu, \"num_hidden_layers\": %zu, "
        "\"num_attention_heads\": %zu, \"num_key_value_heads\": %zu, \"head_dim\": %zu, \"global_head_dim\": %zu, "
        "\"intermediate_size\": %zu, \"sliding_window\": %zu, \"hidden_size_per_layer_input\": 0, "
        "\"num_kv_shared_layers\": %zu, \"max_position_embeddings\": 32768, \"eos_token_id\": 1, \"bos_token_id\": 2, ",
        t->vocab, hidden, layers, heads, t->kv_heads, t->head_dim, t->global_head_dim, ffn, t->window,
        assistant ? layers : (size_t)0);
    if (!assistant) fprintf(file, "\"final_logit_softcapping\": 30.0, \"architectures\": [\"Gemma4ForCausalLM\"], ");
    fprintf(file, "\"layer_types\": [");
    for (size_t i = 0; i < layers; i++)
        fprintf(file, "%s\"%s\"", i ? ", " : "",
                i + 1 == layers || (i + 1) % full_every == 0 ? "full_attention" : "sliding_attention");
    fprintf(file, "]}");
}

static FILE *open_config(const char *folder) {
    char path[512];
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return NULL;
    snprintf(path, sizeof path, "%s/config.json", folder);
    return fopen(path, "w");
}

static bool report(const char *folder, bool good) {
    if (!good) fprintf(stderr, "bench: can't write %s: %s\n", folder, strerror(errno));
    return good;
}

bool fr_synth_write_target(const char *folder, const fr_synth_target *t) {
    FILE *file = open_config(folder);
    if (!file) return report(folder, false);
    write_text_config(file, t, t->hidden, t->layers, t->heads, t->ffn, t->full_every, false);
    return report(folder, fclose(file) == 0 && write_tensors(folder, walk_target, t, NULL, 0));
}

bool fr_synth_write_assistant(const char *folder, const fr_synth_assistant *a, const fr_synth_target *t) {
    FILE *file = open_config(folder);
    if (!file) return report(folder, false);
    fprintf(file,
            "{\"architectures\": [\"Gemma4AssistantForCausalLM\"], \"backbone_hidden_size\": %zu, "
            "\"use_ordered_embeddings\": %s, \"num_centroids\": %zu, \"centroid_intermediate_top_k\": %zu, "
            "\"text_config\": ",
            t->hidden, a->plain ? "false" : "true", a->clusters, a->top);
    write_text_config(file, t, a->hidden, a->layers, a->heads, a->ffn, a->layers, true);
    fprintf(file, "}\n");
    return report(folder, fclose(file) == 0 && write_tensors(folder, walk_assistant, a, t, t->vocab));
}
