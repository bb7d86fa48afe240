/* libFuzzer's target for the config.json of drafters. The input replaces the config.json of several drafters, one after
 * the other. The weights stay unchanged.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If the weights fit the configuration, the drafter makes
 * drafts for its target. */
#include "tests/fuzz/harness.h"

#define MODELS "tests/data/models/"
#define LLAMA  "tests/data/llama/"
#define DFLASH "tests/data/dflash/"

static const struct {
    const char *target, *drafter;
} folders[] = {{MODELS "gemma4-e", MODELS "gemma4-e/assistant"},
               {MODELS "gemma4-dense-odd", MODELS "gemma4-dense-odd/assistant"},
               {MODELS "llama", LLAMA "eagle3"},
               {MODELS "llama", LLAMA "eagle3-odd"},
               {MODELS "llama", LLAMA "eagle3-layers"},
               {MODELS "llama", LLAMA "eagle"},
               {DFLASH "llama-sliding", DFLASH "llama-sliding/drafter"},
               {DFLASH "v2-qwen3.5", DFLASH "v2-qwen3.5/drafter"},
               {DFLASH "dspark-qwen3", DFLASH "dspark-qwen3/drafter"},
               {DFLASH "dspark-dense-qwen3", DFLASH "dspark-dense-qwen3/drafter"},
               {DFLASH "muse-glimmer", DFLASH "muse-glimmer/drafter"}};
enum { PAIRS = sizeof folders / sizeof *folders };

typedef struct pair {
    fr_checkpoint files;
    const fr_model *target;
    const char *folder; /* the drafter's folder */
} pair;

static void open_pair(pair *p, size_t which, const fuzz_file *config) {
    char weights[256];
    snprintf(weights, sizeof weights, "%s/model.safetensors", folders[which].drafter);
    fuzz_open_files(&p->files, folders[which].target);
    p->target = fuzz_model_open(&p->files);
    p->folder = fuzz_folder();
    if (!p->target) die(fr_last_error(), "");
    fuzz_link(p->folder, "config.json", config->path);
    fuzz_link(p->folder, "model.safetensors", weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static pair pairs[PAIRS];
    static fuzz_file config;
    if (!config.fd) {
        config = fuzz_file_new();
        for (size_t i = 0; i < PAIRS; i++) open_pair(&pairs[i], i, &config);
    }
    fuzz_file_write(&config, bytes, size, NULL, 0);
    for (size_t i = 0; i < PAIRS; i++) {
        fr_drafter *drafter = fuzz_drafter_open(pairs[i].folder, pairs[i].target);
        if (!drafter) continue;
        fuzz_inputs_read++;
        fuzz_run(pairs[i].target, drafter);
        fr_drafter_unload(drafter);
    }
    return 0;
}
