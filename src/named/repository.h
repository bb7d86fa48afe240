/* Chooses one of a repository's files. These files are in a folder of their own, or in a folder that also has files of
 * other repositories.
 *
 * In: the sorted names of the files, and the part of a model's name after the colon. Out: the file that llama.cpp would
 * choose, too. */
#ifndef FR_SRC_NAMED_REPOSITORY_H
#define FR_SRC_NAMED_REPOSITORY_H

#include "src/named/names.h"
#include "src/named/stores.h"

/* Finds the GGUF file that has the type or the name `which`. If `which` is "", takes a file of type Q4_K_M; if there is
 * none, one of type Q8_0; if there is none either, the first file that is a model. SIZE_MAX: there is no such file. */
size_t fr_repository_choose(const fr_names *names, const char *which);

/* Gives the text by which a user can choose this file. It is the file's type if no other file has that type; otherwise
 * the file's name. which: room for `size` bytes. */
void fr_repository_which(const fr_names *names, size_t index, char *which, size_t size);

/* Finds what to open in a repository's own folder: a file, or the folder itself if it is a published model. */
fr_status fr_repository_find(const char *folder, const char *which, fr_found_files *found);

/* Gives the folder itself if fr_repository_find found no model in it, although it has weights. Opening the folder then
 * fails with an error line that says why. */
fr_status fr_repository_find_other(const char *folder, fr_found_files *found);

/* Lists all models in a folder under the name of the repository. others: if it is true, also lists a folder that only
 * fr_repository_find_other finds. */
fr_status fr_repository_list(const char *folder, const char *name, const char *store, bool others,
                             const fr_found_told *to);

/* Writes the names of the models, "a.gguf, b.gguf", to found->others. */
fr_status fr_repository_tell(const fr_names *names, fr_found_files *found);

/* Gives the number of bytes of the file folder/name. If the model is split into several files, gives the sum of all of
 * them. */
uint64_t fr_repository_bytes(const char *folder, const char *name);

#endif
