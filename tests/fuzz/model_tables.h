/* Reads the table of tensors and the metadata of a model file, so that single entries can be changed. Writes files with
 * changed tables.
 *
 * In: a valid safetensors or GGUF file. Out: the entries of its table, or a file with changed entries and unchanged
 * data. A file that is not valid ends the program with one line. */
#ifndef FR_TESTS_FUZZ_MODEL_TABLES_H
#define FR_TESTS_FUZZ_MODEL_TABLES_H

#include "tests/fuzz/mutation.h"

typedef struct table_tensor {
    char name[280];
    char type[16]; /* such as "BF16"; for GGUF, the digits of the type's number */
    uint64_t shape[5];
    size_t dims;         /* at most 5, one more dimension than readers accept */
    uint64_t begin, end; /* offsets of the tensor's data; GGUF has no end */
} table_tensor;

/* A key of GGUF's metadata. */
typedef struct table_key {
    char name[128];
    uint32_t type;
    const uint8_t *value; /* the bytes of the value as in the file */
    size_t size;
} table_key;

typedef struct model_table {
    bool gguf;
    blob file; /* the values of the keys point into this file */
    size_t data_begin;
    table_tensor *tensors;
    table_key *keys;
    size_t tensor_count, key_count;
    uint64_t hole, hole_end; /* offsets of a range in a safetensors file's data that is left out of a written file */
} model_table;

/* Reads the table of a file. Each list gets room for one additional entry. */
void table_read(model_table *table, const char *path);
void table_free(model_table *table);

/* Copies the entries into new lists, which the caller may change. The copy points to the bytes of `from`. It is freed
 * with table_free_copy. */
model_table table_copy(const model_table *from);
void table_free_copy(model_table *table);

/* Returns a file with this table. The caller frees the file's bytes. */
blob table_write(const model_table *table);

#endif
