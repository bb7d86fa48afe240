/* Chooses one of a repository's files, which are in a folder of their own or among others.
 *
 * In: their names, sorted, and the part of a model's name after the colon. Out: one of them, as llama.cpp chooses. */
#ifndef FR_SRC_NAMED_REPOSITORY_H
#define FR_SRC_NAMED_REPOSITORY_H

#include "src/named/names.h"
#include "src/named/stores.h"

/* Finds the GGUF file of that type or name; for "" Q4_K_M, then Q8_0, then the first one that is a model. SIZE_MAX:
 * none. */
size_t fr_repository_choose(const fr_names *names, const char *which);

/* Gives the text that chooses a file: its type if that is enough, else its name. which: has room for size bytes. */
void fr_repository_which(const fr_names *names, size_t index, char *which, size_t size);

/* Finds the file to open in a repository's own folder, or the folder itself if it is a published model. */
fr_status fr_repository_find(const char *folder, const char *which, fr_found_files *found);

/* Gives the folder itself if the function above found nothing but it has weights: opening it then tells what it
 * lacks. */
fr_status fr_repository_find_other(const char *folder, fr_found_files *found);

/* Lists all models in a folder by the name of the repository. others: also a folder that fr_repository_find_other
 * finds. */
fr_status fr_repository_list(const char *folder, const char *name, const char *store, bool others,
                             const fr_found_told *to);

/* Writes the models among the names, "a.gguf, b.gguf", to found->others. */
fr_status fr_repository_tell(const fr_names *names, fr_found_files *found);

/* Gives the bytes of folder/name, including its other parts. */
uint64_t fr_repository_bytes(const char *folder, const char *name);

#endif
