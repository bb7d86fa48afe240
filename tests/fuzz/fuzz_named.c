/* libFuzzer's target for models that are given by the names of other programs (Hugging Face, llama.cpp and ollama). The
 * input is a name and, after a NUL, the content of every file in the caches of these programs. So the same bytes are
 * read as the commit of a branch in Hugging Face's cache and as the manifests of llama.cpp and ollama.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. The caches share one folder, which has every kind of file
 * that a name can lead to. */
#include <stdlib.h>

#include "base/error.h"
#include "src/named/named.h"
#include "tests/fuzz/harness.h"

#define DIGEST "00000000000000000000000000000000000000000000000000000000000000aa"

static char *join(const char *folder, const char *name) {
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0) abort();
    return path;
}

/* Puts a link to `file` at `path` inside the folder. Makes the inner folders of `path`. */
static void put(const char *folder, const char *path, const char *file) {
    const char *slash = strchr(path, '/');
    if (!slash) {
        fuzz_link(folder, path, file);
        return;
    }
    char *name = strndup(path, (size_t)(slash - path)), *below = join(folder, name);
    (void)mkdir(below, 0700);
    put(below, slash + 1, file);
    free(below);
    free(name);
}

static bool told(void *context, const fr_found *found) {
    (void)context;
    return found->name && found->path && found->store;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fuzz_file file;
    static const char *folder;
    static char hub[128], llama[128], ollama[128];
    static const char *const environment[] = {hub, llama, ollama, NULL};
    if (!folder) {
        file = fuzz_file_new();
        folder = fuzz_folder();
        snprintf(hub, sizeof hub, "HF_HUB_CACHE=%s", folder);
        snprintf(llama, sizeof llama, "LLAMA_CACHE=%s", folder);
        snprintf(ollama, sizeof ollama, "OLLAMA_MODELS=%s", folder);
        put(folder, "models--o--m/refs/main", file.path);
        put(folder,
            "models--o--m/snapshots/"
            "0123456789abcdef0123456789abcdef01234567/a.gguf",
            file.path);
        put(folder, "manifest=o=l=latest.json", file.path);
        put(folder, "o_l_a.gguf", file.path);
        put(folder, "manifests/registry.ollama.ai/library/m/latest", file.path);
        put(folder, "blobs/sha256-" DIGEST, file.path);
    }
    fuzz_halves halves = fuzz_divide(bytes, size, 0);
    char *name = strndup((const char *)halves.first, halves.first_size), *path = NULL;
    fuzz_file_write(&file, halves.second, halves.second_size, NULL, 0);
    if (!refused(fr_named_find(name, environment, &path))) fuzz_inputs_read++;
    refused(fr_named_list(environment, told, NULL));
    free(path);
    free(name);
    return 0;
}
