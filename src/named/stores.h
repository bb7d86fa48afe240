/* Finds the folders in which other programs keep models that they have downloaded.
 *
 * In: an environment. Out: the folders that Hugging Face's programs, llama.cpp, LM Studio and ollama would use in that
 * environment. For each kind of folder, there are functions that find a model in it and list all its models. Nothing is
 * written or downloaded. */
#ifndef FR_SRC_NAMED_STORES_H
#define FR_SRC_NAMED_STORES_H

#include "src/named/model_name.h"

typedef enum fr_store_kind { FR_STORE_HUB, FR_STORE_LLAMA, FR_STORE_LMSTUDIO, FR_STORE_OLLAMA } fr_store_kind;

#define FR_STORES_MAX 8

typedef struct fr_stores {
    struct fr_store {
        fr_store_kind kind;
        char *folder;
    } at[FR_STORES_MAX];
    size_t count;
} fr_stores;

/* Finds the folders. environment: texts NAME=VALUE, with a NULL after the last one; NULL: there are none. */
fr_status fr_stores_open(const char *const *environment, fr_stores *stores);
void fr_stores_close(fr_stores *stores);

/* The paths, which the caller frees, of a model that was found and of its vision tower. If `path` is NULL, no model has
 * the name; `others` may then list the models of the repository, as in "a.gguf, b.gguf". */
typedef struct fr_found_files {
    char *path, *tower, *others;
} fr_found_files;

void fr_found_files_free(fr_found_files *found);

/* The function `told` receives each model of a store, and `context`. It ends the list by returning false. */
typedef struct fr_found_told {
    fr_found_fn *told;
    void *context;
} fr_found_told;

fr_status fr_hub_find(const char *folder, const fr_model_name *name, fr_found_files *found);
fr_status fr_hub_list(const char *folder, const fr_found_told *to);
fr_status fr_llama_find(const char *folder, const fr_model_name *name, fr_found_files *found);
fr_status fr_llama_list(const char *folder, const fr_found_told *to);
fr_status fr_lmstudio_find(const char *folder, const fr_model_name *name, fr_found_files *found);
fr_status fr_lmstudio_list(const char *folder, const fr_found_told *to);
fr_status fr_ollama_find(const char *folder, const fr_model_name *name, fr_found_files *found);
fr_status fr_ollama_list(const char *folder, const fr_found_told *to);

#endif
