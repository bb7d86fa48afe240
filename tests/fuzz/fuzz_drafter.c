/* libFuzzer's target for the config.json of drafters: any bytes, before the weights of one assistant after the other.
 *
 * In: bytes. Out: nothing, unless the sanitizers find something. Weights that fit the configuration draft for their
 * target. */
#include "tests/fuzz/harness.h"

static const char *const targets[] = {"tests/data/models/gemma4-e", "tests/data/models/gemma4-dense-odd"};
enum { TARGETS = sizeof targets / sizeof *targets };

typedef struct pair {
    fr_checkpoint files;
    const fr_model *target;
    const char *folder; /* the drafter's */
} pair;

static void open_pair(pair *p, const char *target, const fuzz_file *config) {
    char weights[256];
    snprintf(weights, sizeof weights, "%s/assistant/model.safetensors", target);
    fuzz_open_files(&p->files, target);
    p->target = fuzz_model_open(&p->files);
    p->folder = fuzz_folder();
    if (!p->target) die(fr_last_error(), "");
    fuzz_link(p->folder, "config.json", config->path);
    fuzz_link(p->folder, "model.safetensors", weights);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static pair pairs[TARGETS];
    static fuzz_file config;
    if (!config.fd) {
        config = fuzz_file_new();
        for (size_t i = 0; i < TARGETS; i++) open_pair(&pairs[i], targets[i], &config);
    }
    fuzz_file_write(&config, bytes, size, NULL, 0);
    for (size_t i = 0; i < TARGETS; i++) {
        fr_drafter *drafter = fuzz_drafter_open(pairs[i].folder, pairs[i].target);
        if (!drafter) continue;
        fuzz_inputs_read++;
        fuzz_run(pairs[i].target, drafter);
        fr_drafter_unload(drafter);
    }
    return 0;
}
