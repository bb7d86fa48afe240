/* Reads the name of a GGUF file: its part number, its type, and if it is a model at all.
 *
 * In: a file's name, or its path. Out: the facts that the name states by llama.cpp's rules. No file is opened. */
#ifndef FR_FORMATS_GGUF_NAME_H
#define FR_FORMATS_GGUF_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Holds the part number and the number of parts in a name such as NAME-00002-of-00003.gguf. For other names both
 * numbers are 1. */
typedef struct fr_shard_name {
    size_t stem; /* the length of NAME */
    unsigned number, count;
} fr_shard_name;

fr_shard_name fr_shard_name_of(const char *name);

/* Replaces the part number in the name. A name without a part number stays as it is. */
void fr_shard_name_turn(char *name, fr_shard_name shard, unsigned number);

/* Returns true if the name ends in .gguf. */
bool fr_gguf_name(const char *name);

/* Returns true for a file that is used together with a model: a vision tower, a drafter, an importance matrix. */
bool fr_gguf_name_beside(const char *name);

/* Returns true if a model is opened by this file. The file is then the model's only file or the first of its parts. */
bool fr_gguf_name_of_model(const char *name);

/* Returns true if the name contains the name of the type, followed by a point or a hyphen, in upper or lower case.
 * llama.cpp looks for types in the same way. */
bool fr_gguf_name_has(const char *name, const char *type, size_t length);

#endif
