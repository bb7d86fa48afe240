/* Finds the only GGUF file of a folder (gguf_folder.h). */
#include "formats/gguf_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/text_buffer.h"
#include "formats/checkpoint.h"
#include "formats/gguf_name.h"
#include "formats/map.h"

enum { NAMED_MAX = 8 };

static fr_status look_for(const char *folder, const char *name, bool *there) {
    char *path = fr_path_join(folder, name);
    if (!path) return fr_fail_memory("a path", strlen(folder) + strlen(name) + 2);
    *there = fr_file_exists(path);
    free(path);
    return FR_OK;
}

/* Sets *published if the folder has weights in safetensors, or is the published folder of a tokenizer alone. */
static fr_status look_for_published(const char *folder, bool *published) {
    bool configured, tokenizes;
    FR_TRY(look_for(folder, "model.safetensors", published));
    if (!*published) FR_TRY(look_for(folder, "model.safetensors.index.json", published));
    if (*published) return FR_OK;
    FR_TRY(look_for(folder, "config.json", &configured));
    FR_TRY(look_for(folder, "tokenizer.json", &tokenizes));
    *published = !configured && tokenizes;
    return FR_OK;
}

static int is_model(const struct dirent *entry) {
    return fr_gguf_name_of_model(entry->d_name);
}

static int is_beside(const struct dirent *entry) {
    return fr_gguf_name(entry->d_name) && fr_gguf_name_beside(entry->d_name) &&
           fr_shard_name_of(entry->d_name).number == 1;
}

static fr_status refuse_several(const char *folder, struct dirent **files, int count) {
    fr_text_buffer names = {0};
    for (int i = 0; i < count && i < NAMED_MAX; i++) {
        if (i) fr_text_append_string(&names, ", ");
        fr_text_append_string(&names, files[i]->d_name);
    }
    FR_TRY(fr_text_check(&names, folder));
    fr_status status = fr_fail(FR_INPUT, "%s has %d GGUF files: give one of them: %s%s", folder, count, names.bytes,
                               count > NAMED_MAX ? ", ..." : "");
    fr_text_free(&names);
    return status;
}

fr_status fr_gguf_folder_place(const char *path, char **place) {
    struct stat info;
    struct dirent **files = NULL;
    int count = 0;
    *place = NULL;
    bool published = true;
    fr_status status = FR_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) FR_TRY(look_for_published(path, &published));
    if (!published) {
        count = scandir(path, &files, is_model, alphasort);
        if (count == 0) {
            free(files);
            count = scandir(path, &files, is_beside, alphasort);
        }
    }
    if (count < 0 && errno == ENOMEM)
        status = fr_fail_memory("a folder's list", 0);
    else if (count > 1)
        status = refuse_several(path, files, count);
    else
        *place = count == 1 ? fr_path_join(path, files[0]->d_name) : strdup(path);
    if (status == FR_OK && !*place) status = fr_fail_memory("a path", strlen(path) + 1);
    for (int i = 0; i < count; i++) free(files[i]);
    if (count >= 0) free(files);
    return status;
}
