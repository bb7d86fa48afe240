/* Chooses one of a repository's files. They are in a folder of the repository's own, or in a folder with other
 * repositories' files.
 *
 * In: the names of the files, sorted, and the part of a model's name after the colon. Out: one of the files, the same
 * that llama.cpp would choose. */
#ifndef FR_SRC_NAMED_REPOSITORY_H
#define FR_SRC_NAMED_REPOSITORY_H

#include "src/named/names.h"
#include "src/named/stores.h"

/* Finds the GGUF file of a type, or with a name. If `which` is "", a file of type Q4_K_M is preferred, then one of
 * type Q8_0, then the first file that is a model. SIZE_MAX: there is no such file. */
size_t fr_repository_choose(const fr_names *names, const char *which);

/* Gives the text by which a user can choose this file: its type if no other file has that type, else its name. which:
 * has room for size bytes. */
void fr_repository_which(const fr_names *names, size_t index, char *which, size_t size);

/* Finds the file to open in a repository's own folder. If the folder is a published model, it finds the folder
 * itself. */
fr_status fr_repository_find(const char *folder, const char *which, fr_found_files *found);

/* Gives the folder itself if fr_repository_find found nothing in it although it has weights. Opening the folder then
 * fails with an error line that says why. */
fr_status fr_repository_find_other(const char *folder, fr_found_files *found);

/* Lists all models in a folder under the name of the repository. others: also lists a folder that only
 * fr_repository_find_other finds. */
fr_status fr_repository_list(const char *folder, const char *name, const char *store, bool others,
                             const fr_found_told *to);

/* Writes the names of the models, "a.gguf, b.gguf", to found->others. */
fr_status fr_repository_tell(const fr_names *names, fr_found_files *found);

/* Gives the bytes of the file folder/name. If the model is split into several files, gives the bytes of all of
 * them. */
uint64_t fr_repository_bytes(const char *folder, const char *name);

#endif
