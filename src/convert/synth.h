/* Random weights of a shape: what a family says of its shapes (synth_gemma4.c, synth_glm.c), and what it writes them
 * with (synth.c).
 *
 * In: an order: a shape, how many of its layers, how many ids. Out: a GGUF file as llama.cpp's converter writes it. A
 * family puts its keys, then walks over its tensors in the file's order. */
#ifndef FR_SRC_SYNTH_H
#define FR_SRC_SYNTH_H

#include "formats/gguf_write.h"

/* Positions: fewer than models are published for, since some engines cache as many as a file allows. */
#define FR_SYNTH_CONTEXT 32768

typedef struct fr_synth_shape {
    const char *name, *architecture;
    size_t layers, vocab; /* as published */
    size_t vocab_unit;    /* a vocabulary is a multiple of it */
    const void *sizes;    /* the family's own */
} fr_synth_shape;

typedef struct fr_synth_order {
    const fr_synth_shape *shape;
    size_t layers, vocab;
} fr_synth_order;

typedef struct fr_synth fr_synth;

typedef struct fr_synth_family {
    const fr_synth_shape *shapes; /* up to one without a name */
    fr_status (*write)(const fr_synth_order *order, fr_gguf_writer *writer, fr_synth *synth);
} fr_synth_family;

extern const fr_synth_family fr_synth_gemma4, fr_synth_glm;

/* -------------------------------------------------------------------------------------------------------- tokenizer */

/* What a family's readers expect around a vocabulary. */
typedef struct fr_synth_tokenizer {
    const char *model, *pre; /* tokenizer.ggml.model and .pre; NULL: no such key */
    const char *special[4];  /* ids 0 to 3 */
    bool byte_level;         /* bytes are printable characters; otherwise "<0x0A>" and so on */
    bool begins;             /* texts begin with `begin` */
    uint32_t begin, end, turn_end, unknown, padding;
} fr_synth_tokenizer;

#define FR_SYNTH_LEAST_VOCAB 262 /* special tokens, bytes, and two more */

/* A vocabulary that every reader takes: special tokens, bytes, then "t0", "t1" and so on. */
void fr_synth_put_tokenizer(const fr_synth_tokenizer *tokenizer, size_t vocab, fr_gguf_writer *writer);

/* ---------------------------------------------------------------------------------------------------------- tensors */

typedef void fr_synth_walk(fr_synth *synth, const void *model);

/* Walks twice: over what the tensors are, and over what is in them. All keys have been put. */
fr_status fr_synth_tensors(fr_synth *synth, fr_synth_walk *walk, const void *model);

/* The steps of a walk. layer -1: a tensor of the whole model. */

/* Noise of deviation 1 / sqrt(cols), of the type that was ordered; where its blocks don't fill the rows, of the one
 * that llama-quantize takes then. */
void fr_synth_matrix(fr_synth *synth, int layer, const char *name, size_t outs, size_t cols);

/* The same of `count` matrices in one tensor. */
void fr_synth_stack(fr_synth *synth, int layer, const char *name, size_t count, size_t outs, size_t cols);

/* A matrix that quantizers leave as it is. */
void fr_synth_float_matrix(fr_synth *synth, int layer, const char *name, fr_dtype type, size_t outs, size_t cols);

/* Float32: noise about `mean`. */
void fr_synth_vector(fr_synth *synth, int layer, const char *name, size_t n, float mean);

/* n given numbers of 4 bytes each. NULL: there was no memory for them. */
void fr_synth_given(fr_synth *synth, const char *name, fr_dtype type, size_t n, const void *values);

#endif
