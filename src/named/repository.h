/* A repository's files, in a folder of their own or among others': which of them is meant.
 *
 * In: their names, sorted, and what a name says of them. Out: one of them, as llama.cpp chooses. */
#ifndef FR_SRC_NAMED_REPOSITORY_H
#define FR_SRC_NAMED_REPOSITORY_H

#include "src/named/names.h"
#include "src/named/stores.h"

/* The GGUF file of that type or name; of "" Q4_K_M, then Q8_0, then the first that is a model. SIZE_MAX: none. */
size_t fr_repository_choose(const fr_names *names, const char *which);

/* How it is chosen: its type, where that gives it, else its name. Out: texts of the caller's. */
void fr_repository_which(const fr_names *names, size_t index, char *which, size_t size);

/* Of a folder of a repository's own: what of it is opened, itself where it is a published one. */
fr_status fr_repository_find(const char *folder, const char *which, fr_found_files *found);

/* Of a folder in which that found nothing, and which has weights: itself, and opening it says what it lacks. */
fr_status fr_repository_find_other(const char *folder, fr_found_files *found);

/* All models in it, by the name of the repository; others: itself too where that is what the one above finds. */
fr_status fr_repository_list(const char *folder, const char *name, const char *store, bool others,
                             const fr_found_told *to);

/* "a.gguf, b.gguf": the models among them, in found->others. */
fr_status fr_repository_tell(const fr_names *names, fr_found_files *found);

/* Bytes of folder/name and of its other parts. */
uint64_t fr_repository_bytes(const char *folder, const char *name);

#endif
