/* Random weights of a published shape, as GGUF: to time engines on sizes that need no download (fr_lab_synth).
 *
 * In: the name of a shape, a type. Out: a file as llama.cpp's converter writes it. The text such a model writes is
 * noise; speed and memory are those of the shape. The same arguments give the same bytes.
 *
 * Matrices are normal noise of deviation 1 / sqrt(cols). Quantizing billions of values would take minutes, so one pool
 * of blocks is quantized for each number of columns, and a row is a stretch of it, from a random block on. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "formats/gguf_write.h"
#include "forerun_lab.h"
#include "kernels/fpenv.h"
#include "quant/encode.h"
#include "src/options.h"

#define CONTEXT     32768
#define VOCAB       262144
#define POOL        ((size_t)1 << 18) /* values, whole blocks of every type */
#define MOST_POOLS  16                /* types and numbers of columns that a shape has, at most */
#define BUFFER      ((size_t)1 << 20)
#define FIRST_PLAIN 260               /* ids below are special tokens and bytes */

typedef struct shape {
    const char *name;
    uint32_t hidden, layers, heads, kv_heads, head_dim, full_head_dim, ffn, window;
    uint32_t every;  /* each such layer is full, and the last */
    uint32_t shared; /* layers at the end that borrow their KV */
    uint32_t ple;    /* width of the per-layer embeddings, 0: none */
    bool wide;       /* layers that borrow have a feed-forward of twice the width */
} shape;

/* gemma4-1b is no published size: the widths of E2B in a dense model of 18 layers. */
static const shape shapes[] = {
    {"gemma4-e2b", 1536, 35, 8, 1, 256, 512, 6144, 512, 5, 20, 256, true},
    {"gemma4-e4b", 2560, 42, 8, 2, 256, 512, 10240, 512, 6, 18, 256, false},
    {"gemma4-1b", 1536, 18, 8, 2, 256, 512, 6144, 512, 6, 0, 0, false},
};

typedef struct pool {
    fr_dtype type;
    size_t cols;
    uint8_t *blocks; /* POOL values */
} pool;

/* The file on its way: every tensor is announced by a first walk over the shape, and written by a second. */
typedef struct synth {
    const shape *shape;
    size_t vocab;
    fr_dtype type;
    const fr_options *options;
    fr_gguf_writer writer;
    bool writing;
    uint64_t random, done;
    pool pools[MOST_POOLS];
    uint8_t *buffer; /* BUFFER bytes */
    fr_status status;
} synth;

/* ------------------------------------------------------------------------------------------------------ the numbers */

/* Marsaglia 2003, Xorshift RNGs. */
static uint64_t next_random(synth *s) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    return s->random ^= s->random << 17;
}

/* About normal, of deviation 1: the sum of four uniform numbers. */
static float next_noise(synth *s) {
    uint64_t bits = next_random(s);
    int sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16) sum += (int)(bits & 0xffff) - 32768;
    return (float)sum * (1.0f / 37837.2f);
}

static fr_status fill_pool(synth *s, pool *p, fr_dtype type, size_t cols) {
    float *values = malloc(POOL * sizeof *values), deviation = 1.0f / sqrtf((float)cols);
    *p = (pool){.type = type, .cols = cols, .blocks = malloc(fr_dtype_row_bytes(type, POOL))};
    if (values && p->blocks) {
        for (size_t i = 0; i < POOL; i++) values[i] = deviation * next_noise(s);
        fr_dtype_encode(type, values, p->blocks, POOL);
    }
    free(values);
    return values && p->blocks ? FR_OK : fr_fail_memory("random blocks", POOL * sizeof *values);
}

static fr_status find_pool(synth *s, fr_dtype type, size_t cols, const pool **found) {
    pool *p = s->pools;
    while (p->cols && (p->type != type || p->cols != cols)) p++;
    *found = p;
    return p->cols ? FR_OK : fill_pool(s, p, type, cols);
}

/* ------------------------------------------------------------------------------------------------------ the tensors */

static void put_bytes(synth *s, const void *bytes, size_t count) {
    s->status = fr_gguf_write_data(&s->writer, bytes, count);
    s->done += count;
    const fr_options *o = s->options;
    if (o && o->progress) o->progress(o->progress_context, s->done, s->writer.data_size);
}

/* A stretch of the pool, from a random block on. */
static void copy_row(synth *s, const pool *p, uint8_t *row, size_t row_bytes) {
    size_t block = fr_dtype_row_bytes(p->type, fr_dtype_block(p->type)), size = fr_dtype_row_bytes(p->type, POOL);
    size_t at = next_random(s) % (size / block) * block, first = size - at < row_bytes ? size - at : row_bytes;
    memcpy(row, p->blocks + at, first);
    memcpy(row + first, p->blocks, row_bytes - first);
}

static void write_matrix(synth *s, fr_dtype type, size_t outs, size_t cols) {
    const pool *p;
    size_t row_bytes = fr_dtype_row_bytes(type, cols), batch = BUFFER / row_bytes;
    s->status = find_pool(s, type, cols, &p);
    for (size_t rows; outs > 0 && s->status == FR_OK; outs -= rows) {
        rows = outs < batch ? outs : batch;
        for (size_t r = 0; r < rows; r++) copy_row(s, p, s->buffer + r * row_bytes, row_bytes);
        put_bytes(s, s->buffer, rows * row_bytes);
    }
}

static void tensor_name(char *name, size_t size, int layer, const char *suffix) {
    if (layer < 0) snprintf(name, size, "%s.weight", suffix);
    else snprintf(name, size, "blk.%d.%s.weight", layer, suffix);
}

/* layer -1: a tensor of the whole model. */
static void typed_matrix(synth *s, int layer, const char *suffix, fr_dtype type, size_t outs, size_t cols) {
    char name[64];
    if (s->status != FR_OK) return;
    if (s->writing) {
        write_matrix(s, type, outs, cols);
        return;
    }
    tensor_name(name, sizeof name, layer, suffix);
    fr_gguf_put_tensor(&s->writer, name, type, false, 2, (uint64_t[]){outs, cols});
}

static void matrix(synth *s, int layer, const char *suffix, size_t outs, size_t cols) {
    typed_matrix(s, layer, suffix, s->type, outs, cols);
}

/* Float32: about `mean`. */
static void vector(synth *s, int layer, const char *suffix, size_t n, float mean) {
    char name[64];
    if (s->status != FR_OK) return;
    if (s->writing) {
        float *values = (float *)(void *)s->buffer;
        for (size_t i = 0; i < n; i++) values[i] = mean * (1.0f + 0.1f * next_noise(s));
        put_bytes(s, values, n * sizeof *values);
        return;
    }
    tensor_name(name, sizeof name, layer, suffix);
    fr_gguf_put_tensor(&s->writer, name, FR_F32, false, 1, (uint64_t[]){n});
}

/* What the full layers' frequencies are divided by: a quarter of the angles turn. */
static void rope_factors(synth *s) {
    size_t n = s->shape->full_head_dim / 2;
    if (s->writing) {
        float *values = (float *)(void *)s->buffer;
        for (size_t i = 0; i < n; i++) values[i] = i < n / 4 ? 1.0f : 1e30f;
        put_bytes(s, values, n * sizeof *values);
    } else {
        fr_gguf_put_tensor(&s->writer, "rope_freqs.weight", FR_F32, false, 1, (uint64_t[]){n});
    }
}

static bool is_full(const shape *p, uint32_t layer) {
    return (layer + 1) % p->every == 0 || layer + 1 == p->layers;
}

static uint32_t ffn_of(const shape *p, uint32_t layer) {
    return p->wide && layer >= p->layers - p->shared ? 2 * p->ffn : p->ffn;
}

static void walk_layer(synth *s, int i) {
    const shape *p = s->shape;
    uint32_t layer = (uint32_t)i, n = is_full(p, layer) ? p->full_head_dim : p->head_dim, ffn = ffn_of(p, layer);
    bool owns = layer < p->layers - p->shared;
    vector(s, i, "attn_norm", p->hidden, 1);
    matrix(s, i, "attn_q", p->heads * n, p->hidden);
    vector(s, i, "attn_q_norm", n, 0.25f);
    if (owns) {
        matrix(s, i, "attn_k", p->kv_heads * n, p->hidden);
        vector(s, i, "attn_k_norm", n, 0.25f);
        matrix(s, i, "attn_v", p->kv_heads * n, p->hidden);
    }
    matrix(s, i, "attn_output", p->hidden, p->heads * n);
    vector(s, i, "post_attention_norm", p->hidden, 1);
    vector(s, i, "ffn_norm", p->hidden, 1);
    matrix(s, i, "ffn_gate", ffn, p->hidden);
    matrix(s, i, "ffn_up", ffn, p->hidden);
    matrix(s, i, "ffn_down", p->hidden, ffn);
    vector(s, i, "post_ffw_norm", p->hidden, 1);
    vector(s, i, "layer_output_scale", 1, 0.7f);
    if (p->ple == 0) return;
    matrix(s, i, "inp_gate", p->ple, p->hidden);
    matrix(s, i, "proj", p->hidden, p->ple);
    vector(s, i, "post_norm", p->hidden, 1);
}

static void walk(synth *s) {
    const shape *p = s->shape;
    matrix(s, -1, "token_embd", s->vocab, p->hidden);
    vector(s, -1, "output_norm", p->hidden, 1);
    rope_factors(s);
    if (p->ple) {
        matrix(s, -1, "per_layer_token_embd", s->vocab, (size_t)p->ple * p->layers);
        /* Quantizers leave it as it is. */
        typed_matrix(s, -1, "per_layer_model_proj", FR_F16, (size_t)p->ple * p->layers, p->hidden);
        vector(s, -1, "per_layer_proj_norm", p->ple, 1);
    }
    for (uint32_t i = 0; i < p->layers; i++) walk_layer(s, (int)i);
}

/* ----------------------------------------------------------------------------------------------------- the metadata */

static void put_text(fr_gguf_writer *writer, const char *key, const char *text) {
    fr_gguf_put_text(writer, key, (fr_text){text, strlen(text)});
}

static void put_layers(fr_gguf_writer *w, const shape *p) {
    fr_gguf_put_array(w, ".feed_forward_length", FR_GGUF_I32, p->layers);
    for (uint32_t i = 0; i < p->layers; i++) fr_gguf_add_u32(w, ffn_of(p, i));
    fr_gguf_put_array(w, ".attention.sliding_window_pattern", FR_GGUF_BOOL, p->layers);
    for (uint32_t i = 0; i < p->layers; i++) fr_gguf_add_bool(w, !is_full(p, i));
}

static void put_shape(fr_gguf_writer *w, const shape *p, size_t vocab) {
    put_text(w, "general.name", p->name);
    fr_gguf_put_u32(w, ".vocab_size", (uint32_t)vocab);
    fr_gguf_put_u32(w, ".context_length", CONTEXT);
    fr_gguf_put_u32(w, ".embedding_length", p->hidden);
    fr_gguf_put_u32(w, ".block_count", p->layers);
    put_layers(w, p);
    fr_gguf_put_u32(w, ".attention.head_count", p->heads);
    fr_gguf_put_u32(w, ".attention.head_count_kv", p->kv_heads);
    fr_gguf_put_u32(w, ".attention.key_length", p->full_head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", p->full_head_dim);
    fr_gguf_put_u32(w, ".attention.key_length_swa", p->head_dim);
    fr_gguf_put_u32(w, ".attention.value_length_swa", p->head_dim);
    fr_gguf_put_u32(w, ".attention.sliding_window", p->window);
    fr_gguf_put_u32(w, ".attention.shared_kv_layers", p->shared);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", 1e-6f);
    fr_gguf_put_u32(w, ".rope.dimension_count", p->full_head_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count_swa", p->head_dim);
    fr_gguf_put_f32(w, ".rope.freq_base", 1e6f);
    fr_gguf_put_f32(w, ".rope.freq_base_swa", 1e4f);
    fr_gguf_put_u32(w, ".embedding_length_per_layer_input", p->ple);
    fr_gguf_put_f32(w, ".final_logit_softcapping", 30);
}

/* A vocabulary that every reader takes: special tokens, bytes, and "t0", "t1", ... */
static void put_tokens(fr_gguf_writer *w, size_t vocab) {
    static const char *const special[] = {"<pad>", "<eos>", "<bos>", "<unk>"};
    enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, BYTE = 6 };
    put_text(w, "tokenizer.ggml.model", "gemma4");
    fr_gguf_put_array(w, "tokenizer.ggml.tokens", FR_GGUF_STRING, vocab);
    for (size_t id = 0; id < vocab; id++) {
        char text[32];
        int length = id < 4             ? snprintf(text, sizeof text, "%s", special[id])
                     : id < FIRST_PLAIN ? snprintf(text, sizeof text, "<0x%02X>", (unsigned)id - 4)
                                        : snprintf(text, sizeof text, "t%zu", id - FIRST_PLAIN);
        fr_gguf_add_text(w, (fr_text){text, (size_t)length});
    }
    fr_gguf_put_array(w, "tokenizer.ggml.scores", FR_GGUF_F32, vocab);
    for (size_t id = 0; id < vocab; id++) fr_gguf_add_f32(w, -(float)id);
    fr_gguf_put_array(w, "tokenizer.ggml.token_type", FR_GGUF_I32, vocab);
    for (size_t id = 0; id < vocab; id++)
        fr_gguf_add_u32(w, id == 3 ? UNKNOWN : id < 3 ? CONTROL : id < FIRST_PLAIN ? BYTE : NORMAL);
    fr_gguf_put_array(w, "tokenizer.ggml.merges", FR_GGUF_STRING, 1);
    fr_gguf_add_text(w, (fr_text){"t 1", 3});
    fr_gguf_put_u32(w, "tokenizer.ggml.bos_token_id", 2);
    fr_gguf_put_u32(w, "tokenizer.ggml.eos_token_id", 1);
    fr_gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", 3);
    fr_gguf_put_u32(w, "tokenizer.ggml.padding_token_id", 0);
    fr_gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    fr_gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

/* --------------------------------------------------------------------------------------------------------- the file */

static fr_status write_all(synth *s) {
    s->buffer = malloc(BUFFER);
    if (!s->buffer) return fr_fail_memory("random weights", BUFFER);
    put_shape(&s->writer, s->shape, s->vocab);
    put_tokens(&s->writer, s->vocab);
    walk(s);
    FR_TRY(fr_gguf_write_header(&s->writer));
    s->writing = true;
    walk(s);
    FR_TRY(s->status);
    return fr_gguf_write_end(&s->writer);
}

static fr_status find_shape(const char *name, const shape **found) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        *found = &shapes[i];
        if (strcmp(shapes[i].name, name) == 0) return FR_OK;
    }
    return fr_fail(FR_USAGE, "there is no shape \"%s\"", name);
}

static fr_status find_type(const char *name, fr_dtype *type) {
    char upper[16] = "";
    for (size_t i = 0; name[i] && i + 1 < sizeof upper; i++) upper[i] = (char)toupper((unsigned char)name[i]);
    *type = fr_dtype_from_name(upper);
    if (*type < FR_WEIGHT_TYPES && fr_encodes(*type)) return FR_OK;
    return fr_fail(FR_USAGE, "there are no random weights of type \"%s\"", name);
}

static fr_status write_file(const char *shape_name, const char *type, size_t vocab, const fr_options *options,
                            FILE *out) {
    synth s = {.options = options, .vocab = vocab ? vocab : VOCAB, .random = 0x9e3779b97f4a7c15u};
    FR_TRY(find_shape(shape_name, &s.shape));
    FR_TRY(find_type(type, &s.type));
    if (s.vocab < FIRST_PLAIN + 2 || s.vocab > (size_t)1 << 24)
        return fr_fail(FR_USAGE, "a vocabulary of %zu: it takes 262 to 2^24 ids", s.vocab);
    fr_gguf_writer_open(&s.writer, out, "gemma4");
    fr_status status = write_all(&s);
    fr_gguf_writer_close(&s.writer);
    for (size_t i = 0; i < MOST_POOLS; i++) free(s.pools[i].blocks);
    free(s.buffer);
    return status;
}

fr_status fr_lab_synth(const char *shape_name, const char *type, size_t vocab, const fr_options *options, FILE *out) {
    if (!shape_name || !type || !out) return fr_fail(FR_USAGE, "fr_lab_synth: a shape, a type and a stream are needed");
    uint64_t environment = fr_fpenv_enter();
    fr_status status = write_file(shape_name, type, vocab, options, out);
    fr_fpenv_leave(environment);
    return status;
}
