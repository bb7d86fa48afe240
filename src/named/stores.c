/* Finds the folders of other programs from environment variables (stores.h).
 *
 * HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME and XDG_CACHE_HOME are read as huggingface_hub reads them. LLAMA_CACHE
 * is read as llama.cpp reads it: newer versions use Hugging Face's layout in that folder, and Hugging Face's cache if
 * the variable is not set. OLLAMA_MODELS is read as ollama reads it; if it is not set, the user's own folder and that
 * of the system's service are searched. */
#include "src/named/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const char system_ollama[] = "/usr/share/ollama/.ollama/models";

/* Gives a variable's value; NULL: it is not set, or empty. */
static const char *look_up(const char *const *environment, const char *variable) {
    size_t length = strlen(variable);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    return NULL;
}

/* Adds the folder base/rest, if `base` is given. "~/" in it means the user's home folder. */
static fr_status add(fr_stores *stores, fr_store_kind kind, const char *const *environment, const char *base,
                     const char *rest) {
    const char *home = look_up(environment, "HOME");
    bool tilde = base && strncmp(base, "~/", 2) == 0 && home;
    char *folder;
    if (!base || stores->count == FR_STORES_MAX) return FR_OK;
    if (asprintf(&folder, "%s%s%s", tilde ? home : "", tilde ? base + 1 : base, rest) < 0)
        return fr_fail_memory("a path", strlen(base) + strlen(rest));
    stores->at[stores->count].kind = kind;
    stores->at[stores->count++].folder = folder;
    return FR_OK;
}

/* Adds Hugging Face's cache. Several variables may name it; the first of them that is set decides. */
static fr_status add_hub(fr_stores *stores, const char *const *environment) {
    static const struct {
        const char *variable, *rest;
    } ways[] = {{"HF_HUB_CACHE", ""},
                {"HUGGINGFACE_HUB_CACHE", ""},
                {"HF_HOME", "/hub"},
                {"XDG_CACHE_HOME", "/huggingface/hub"},
                {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *base = look_up(environment, ways[i].variable);
        if (base) return add(stores, FR_STORE_HUB, environment, base, ways[i].rest);
    }
    return FR_OK;
}

static fr_status add_llama(fr_stores *stores, const char *const *environment) {
    const char *own = look_up(environment, "LLAMA_CACHE"), *cache = look_up(environment, "XDG_CACHE_HOME");
    FR_TRY(add(stores, FR_STORE_HUB, environment, own, ""));
    if (own) return add(stores, FR_STORE_LLAMA, environment, own, "");
    if (cache) return add(stores, FR_STORE_LLAMA, environment, cache, "/llama.cpp");
    return add(stores, FR_STORE_LLAMA, environment, look_up(environment, "HOME"), "/.cache/llama.cpp");
}

static fr_status add_all(fr_stores *stores, const char *const *environment) {
    const char *home = look_up(environment, "HOME"), *ollama = look_up(environment, "OLLAMA_MODELS");
    FR_TRY(add_hub(stores, environment));
    FR_TRY(add_llama(stores, environment));
    FR_TRY(add(stores, FR_STORE_LMSTUDIO, environment, home, "/.lmstudio/models"));
    FR_TRY(add(stores, FR_STORE_LMSTUDIO, environment, home, "/.cache/lm-studio/models"));
    if (ollama) return add(stores, FR_STORE_OLLAMA, environment, ollama, "");
    FR_TRY(add(stores, FR_STORE_OLLAMA, environment, home, "/.ollama/models"));
    return add(stores, FR_STORE_OLLAMA, environment, system_ollama, "");
}

fr_status fr_stores_open(const char *const *environment, fr_stores *stores) {
    *stores = (fr_stores){0};
    fr_status status = add_all(stores, environment);
    if (status != FR_OK) fr_stores_close(stores);
    return status;
}

void fr_stores_close(fr_stores *stores) {
    for (size_t i = 0; i < stores->count; i++) free(stores->at[i].folder);
    *stores = (fr_stores){0};
}

void fr_found_files_free(fr_found_files *found) {
    free(found->path);
    free(found->tower);
    free(found->others);
    *found = (fr_found_files){0};
}
