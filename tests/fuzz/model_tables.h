/* Reads a model file's table of tensors and its metadata, so that single entries can be changed, and writes a file
 * with the changed table.
 *
 * In: a valid safetensors or GGUF file. Out: its entries; a file made from entries. The data stay as they are. A file
 * that is not valid ends the program with a line. */
#ifndef FR_TESTS_FUZZ_MODEL_TABLES_H
#define FR_TESTS_FUZZ_MODEL_TABLES_H

#include "tests/fuzz/mutation.h"

typedef struct table_tensor {
    char name[280];
    char type[16]; /* such as "BF16"; in GGUF the number of the type, as text */
    uint64_t shape[5];
    size_t dims;         /* at most 5, one more than readers accept */
    uint64_t begin, end; /* offsets of the tensor's data; for GGUF there is no end */
} table_tensor;

/* A key of GGUF's metadata. */
typedef struct table_key {
    char name[128];
    uint32_t type;
    const uint8_t *value; /* the bytes as in the file */
    size_t size;
} table_key;

typedef struct model_table {
    bool gguf;
    blob file; /* the keys' values point into this */
    size_t data_begin;
    table_tensor *tensors;
    table_key *keys;
    size_t tensor_count, key_count;
    uint64_t hole, hole_end; /* offsets of a hole in a safetensors file's data: bytes that a written file leaves out */
} model_table;

/* Reads the table of a file. The lists have room for one more entry. */
void table_read(model_table *table, const char *path);
void table_free(model_table *table);

/* Copies the entries into new lists, which may be changed. The copy uses the bytes of `from`. Free it with
 * table_free_copy. */
model_table table_copy(const model_table *from);
void table_free_copy(model_table *table);

/* Returns a file with this table; the caller frees its bytes. */
blob table_write(const model_table *table);

#endif
