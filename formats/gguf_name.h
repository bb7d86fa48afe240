/* What the name of a GGUF file says: which part of how many it is, its type, whether it is a model at all.
 *
 * In: a file's name, or its path. Out: as llama.cpp and its tools name files, and look for them; nothing is opened. */
#ifndef FR_FORMATS_GGUF_NAME_H
#define FR_FORMATS_GGUF_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Of NAME-00002-of-00003.gguf. Count 1, number 1 for other names. */
typedef struct fr_shard_name {
    size_t stem; /* length of NAME */
    unsigned number, count;
} fr_shard_name;

fr_shard_name fr_shard_name_of(const char *name);

/* Makes the name that of another part; nothing to do for a file that is the only one. */
void fr_shard_name_turn(char *name, fr_shard_name shard, unsigned number);

/* Whether it ends in .gguf. */
bool fr_gguf_name(const char *name);

/* Whether it is one of what lies beside models: vision towers, drafters, importance matrices. */
bool fr_gguf_name_beside(const char *name);

/* Whether a model is opened by it: its only file or the first of its parts, and nothing that lies beside one. */
bool fr_gguf_name_of_model(const char *name);

/* Whether it is of that type: it has the word before a point or a hyphen, in any case, as llama.cpp looks for it. */
bool fr_gguf_name_has(const char *name, const char *type, size_t length);

#endif
