/* A text encoder turns a text's tokens into rows, each of which sees the whole text. BERT and its relatives are text
 * encoders.
 *
 * In: a checkpoint's tensors, and its config.json or GGUF metadata; the ids of several texts. Out: a hidden row for
 * each token after the last norm, from which an embedding or a score is made. The rows of all texts are run together in
 * one forward, without padding. A row sees only the rows of its own text. So the bits of a text's rows do not depend on
 * other texts, on the number of threads or on the instruction set. There is no cache: a text is run whole. Source:
 * Devlin et al. 2018, arXiv:1810.04805. The kinds of encoders are in encoder_kinds.h. */
#ifndef FR_SRC_ENGINE_ENCODER_ENCODER_H
#define FR_SRC_ENGINE_ENCODER_ENCODER_H

#include <stdio.h>

#include "base/pool.h"
#include "formats/gguf_write.h"
#include "src/engine/weights/weights.h"

typedef struct fr_encoder fr_encoder;

/* Returns true if the files are those of a text encoder whose kind is supported. */
bool fr_encoder_is(const fr_checkpoint *files);

/* Reads the configuration and binds the weights; fr_weights_load must follow. If a key asks for a computation that is
 * not supported, an error names the key. */
fr_status fr_encoder_open(fr_weights *weights, const fr_kernels *kernels, fr_encoder **encoder);
void fr_encoder_close(fr_encoder *encoder);

/* Prints the layers and widths in words. */
void fr_encoder_describe(const fr_encoder *encoder, FILE *out);

typedef struct fr_encoder_facts {
    size_t vocab, hidden, layers, context; /* context: the most tokens of a text */
    size_t first;                          /* the row of the table of positions that a text's first token gets */
    size_t types;                          /* number of token types; the types of a text must be below this number; 0:
                                            * no types are read */
    size_t labels;                         /* number of scores that the encoder's classifier gives; 0: there is no
                                            * classifier */
    size_t window;                         /* number of positions before and after a row that local layers see; 0: all
                                            * layers see the whole text */
    size_t experts, ffn; /* experts: number of experts of a mixture; 0: there is no mixture; ffn: width of the
                          * feed-forward, or of one expert */
} fr_encoder_facts;
fr_encoder_facts fr_encoder_fact(const fr_encoder *encoder);

/* Functions of encoder_gguf.c. fr_encoder_gguf_architecture gives the architecture's name in llama.cpp's files, or NULL
 * if llama.cpp has no files of this kind. fr_encoder_gguf_name gives a tensor's name in such files and the form in
 * which its values are stored; it returns false if such files don't have the tensor. fr_encoder_put_keys writes the
 * keys of the sizes and settings, and `types` as the number of token types. It returns FR_UNBUILT if there is no key
 * for a setting. */
const char *fr_encoder_gguf_architecture(const fr_encoder *encoder);
bool fr_encoder_gguf_name(const fr_encoder *encoder, const char *published, char *name, size_t size, fr_values *values);
fr_status fr_encoder_put_keys(const fr_encoder *encoder, size_t types, const char *where, fr_gguf_writer *writer);

/* Returns true for the bias of a mixture's experts, which files of GGUF don't have. */
bool fr_encoder_is_expert_bias(const fr_encoder *encoder, const char *published);

/* A text that is run. */
typedef struct fr_encoder_text {
    const int32_t *ids;   /* [count] in [0, vocab) */
    const uint8_t *types; /* [count] the type of each token; NULL: all types are 0 */
    size_t count;         /* 1 to fr_encoder_facts.context */
} fr_encoder_text;

/* The number of rows that one forward should have. With this many rows each weight is used often, and the rows still
 * fit in the caches. A longer text is run alone. */
#define FR_ENCODER_ROWS 512

/* The memory of a forward, for up to `rows` rows. */
typedef struct fr_encoder_memory fr_encoder_memory;
fr_status fr_encoder_memory_open(const fr_encoder *encoder, size_t rows, size_t threads, fr_encoder_memory **memory);
void fr_encoder_memory_close(fr_encoder_memory *memory);

/* Runs texts that have together no more tokens than the memory has rows. *rows: [tokens, hidden], the rows of the texts
 * in their order. They belong to the memory, and stay valid until its next use. */
void fr_encoder_run(fr_encoder_memory *memory, fr_pool *pool, const fr_encoder_text *texts, size_t count,
                    const float **rows);

/* Computes the classifier's scores of a text, [labels], from its rows. */
void fr_encoder_classify(fr_encoder_memory *memory, const float *rows, size_t count, float *scores);

#endif
