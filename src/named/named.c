/* Finds models by name (fr_model_find and fr_model_list in forerun.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "src/named/named.h"
#include "src/named/near_name.h"
#include "src/named/stores.h"

typedef fr_status find_fn(const char *folder, const fr_model_name *name, fr_found_files *found);
typedef fr_status list_fn(const char *folder, const fr_found_told *to);

static const struct {
    find_fn *find;
    list_fn *list;
} kinds[] = {[FR_STORE_HUB] = {fr_hub_find, fr_hub_list},
             [FR_STORE_LLAMA] = {fr_llama_find, fr_llama_list},
             [FR_STORE_LMSTUDIO] = {fr_lmstudio_find, fr_lmstudio_list},
             [FR_STORE_OLLAMA] = {fr_ollama_find, fr_ollama_list}};

/* Searches all stores. One store may have only an unfinished download of the model while another store has the whole
 * model. So the search continues after a failure. */
static fr_status search(const fr_stores *stores, const fr_model_name *name, fr_found_files *found) {
    fr_status status = FR_OK;
    for (size_t i = 0; i < stores->count && !found->path && (status == FR_OK || status == FR_INPUT); i++) {
        if ((stores->at[i].kind == FR_STORE_OLLAMA) != name->ollama) continue;
        fr_status here = kinds[stores->at[i].kind].find(stores->at[i].folder, name, found);
        if (here != FR_OK)
            status = here;
        else if (found->path)
            status = FR_OK;
    }
    return status;
}

/* Refuses a name that no store has. The error line shows the command that would download the model. */
static fr_status refuse(const char *text, const fr_model_name *name, const fr_found_files *found) {
    if (name->ollama)
        return fr_fail(FR_INPUT, "%s: ollama has no model of this name here; this would download it: ollama pull %s",
                       text, text + strlen("ollama:"));
    size_t length = strlen(name->which), model = strlen(name->model);
    bool file = length > 5 && strcmp(name->which + length - 5, ".gguf") == 0;
    /* A repository of GGUF files has the model in many types. So the command in the error line downloads only one of
     * them. */
    if (length == 0 && model > 5 && strcasecmp(name->model + model - 5, "-GGUF") == 0 && !found->others)
        return fr_fail(FR_INPUT,
                       "%s: there is no such path, and no model of this name in a cache; this would download the one "
                       "file: hf download %s/%s --include '*[Qq]4_[Kk]_[Mm].gguf'",
                       text, name->org, name->model);
    const char *before = file ? " " : *name->which ? " --include '*" : "", *after = file || !length ? "" : "*'";
    const char *there = found->others ? "there are " : "there is no such path, and no model of this name in a cache";
    return fr_fail(FR_INPUT, "%s: %s%s; this would download it: hf download %s/%s%s%s%s", text, there,
                   found->others ? found->others : "", name->org, name->model, before, name->which, after);
}

/* Returns true for a path. A text that ends in .gguf is a path, even if no such file exists and the text looks like a
 * name. */
static bool is_path(const char *text) {
    struct stat info;
    size_t length = strlen(text);
    bool file = length > 5 && strcmp(text + length - 5, ".gguf") == 0 && !strchr(text, ':');
    return file || lstat(text, &info) == 0;
}

static bool is_address(const char *text) {
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* Refuses a web address. An address at Hugging Face names a file of a repository, so the error line shows how to
 * download that file. For any other address, the line shows a curl command. */
static fr_status refuse_address(const char *text) {
    static const char host[] = "https://huggingface.co/";
    char org[FR_NAME_PART], model[FR_NAME_PART], file[2 * FR_NAME_PART];
    bool there = strncasecmp(text, host, sizeof host - 1) == 0;
    const char *rest = there ? text + sizeof host - 1 : "";
    int parts = sscanf(rest, "%127[^/]/%127[^/?#]/%*[^/]/%*[^/]/%255[^?#]", org, model, file);
    bool plain = parts >= 2 && fr_model_name_part(org, strlen(org)) && fr_model_name_part(model, strlen(model));
    if (plain && parts == 3 && !strpbrk(file, "' \\"))
        return fr_fail(FR_INPUT, "%s: forerun downloads nothing: run hf download %s/%s %s, then give -m %s/%s:%s", text,
                       org, model, file, org, model, file);
    if (plain)
        return fr_fail(FR_INPUT, "%s: forerun downloads nothing: give -m %s/%s once it is in a cache", text, org,
                       model);
    return fr_fail(FR_INPUT, "%s: forerun downloads nothing: run curl -LO %s, then give -m FILE", text, text);
}

/* Searches for a name that differs from `text` only in upper and lower case, or that has an ORG which `text` lacks. It
 * is called after no store had the exact name. */
static fr_status search_near(const char *text, const char *const *environment, const fr_stores *stores,
                             fr_found_files *found) {
    fr_near_name near;
    fr_model_name name;
    FR_TRY(fr_named_near(text, environment, &near));
    if (near.count > 1) return fr_fail(FR_INPUT, "%s could be any of these: %s", text, near.names);
    if (near.count == 0 || !fr_model_name_read(near.name, &name)) return FR_OK;
    fr_found_files_free(found);
    *found = (fr_found_files){0};
    FR_TRY(search(stores, &name, found));
    return found->path ? FR_OK : refuse(near.name, &name, found);
}

fr_status fr_named_find(const char *text, const char *const *environment, char **path) {
    fr_model_name name;
    fr_stores stores;
    fr_found_files found = {0};
    *path = NULL;
    if (is_address(text)) return refuse_address(text);
    bool names = !is_path(text) && fr_model_name_read(text, &name);
    bool bare = !names && !is_path(text) && !strchr(text, '/'); /* the name may have been written without its ORG */
    if (names || bare) {
        FR_TRY(fr_stores_open(environment, &stores));
        fr_status status = names ? search(&stores, &name, &found) : FR_OK;
        if (status == FR_OK && !found.path && !found.others) status = search_near(text, environment, &stores, &found);
        if (status == FR_OK && !found.path && names) status = refuse(text, &name, &found);
        fr_stores_close(&stores);
        if (status == FR_OK && found.path) {
            *path = found.path;
            found.path = NULL;
        }
        fr_found_files_free(&found);
        if (status != FR_OK || *path) return status;
    }
    *path = strdup(text);
    return *path ? FR_OK : fr_fail_memory("a path", strlen(text) + 1);
}

fr_status fr_named_list(const char *const *environment, fr_found_fn *told, void *context) {
    fr_stores stores;
    const fr_found_told to = {told, context};
    FR_TRY(fr_stores_open(environment, &stores));
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < stores.count; i++)
        status = kinds[stores.at[i].kind].list(stores.at[i].folder, &to);
    fr_stores_close(&stores);
    return status;
}
