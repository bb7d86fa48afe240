/* Reads the name of a GGUF file: its part number, its type, and if it is a model at all.
 *
 * In: a file's name, or its path. Out: what llama.cpp's rules for names make of it; no file is opened. */
#ifndef FR_FORMATS_GGUF_NAME_H
#define FR_FORMATS_GGUF_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The number and the count that NAME-00002-of-00003.gguf has in its name. Other names have number 1 and count 1. */
typedef struct fr_shard_name {
    size_t stem; /* the length of NAME */
    unsigned number, count;
} fr_shard_name;

fr_shard_name fr_shard_name_of(const char *name);

/* Replaces the part number in the name; a name with no number stays as it is. */
void fr_shard_name_turn(char *name, fr_shard_name shard, unsigned number);

/* True if the name ends in .gguf. */
bool fr_gguf_name(const char *name);

/* True for a file that belongs beside a model: a vision tower, a drafter, an importance matrix. */
bool fr_gguf_name_beside(const char *name);

/* True if a model is opened by this file: a model's only file or the first of its parts. */
bool fr_gguf_name_of_model(const char *name);

/* True if the name has the type in it, before a point or a hyphen, in upper or lower case. llama.cpp looks for types
 * in the same way. */
bool fr_gguf_name_has(const char *name, const char *type, size_t length);

#endif
