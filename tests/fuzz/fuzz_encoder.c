/* libFuzzer's target for the config.json of text encoders. There is a model of each kind of encoder. The input replaces
 * the config.json of each model, one model after the other. The weights stay unchanged.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If the weights fit the configuration, the encoder computes
 * embeddings and scores of texts. */
#include "tests/fuzz/harness.h"

static const char *const models[] = {"bert-mean", "roberta",          "mpnet",       "distilbert", "nomic", "gte",
                                     "gemma",     "cross-modernbert", "xlm-roberta", "cross-bert", "qwen3", "jina-v3",
                                     "nomic-moe"};
enum { MODELS = sizeof models / sizeof *models };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint weights[MODELS];
    static const char *folder;
    static fuzz_file config;
    fr_checkpoint configs;
    if (!folder) {
        config = fuzz_file_new();
        folder = fuzz_folder();
        fuzz_link(folder, "config.json", config.path);
        for (size_t i = 0; i < MODELS; i++) {
            char path[128];
            snprintf(path, sizeof path, "tests/data/encoders/%s", models[i]);
            fuzz_open_files(&weights[i], path);
        }
    }
    fuzz_file_write(&config, bytes, size, NULL, 0);
    if (refused(fr_checkpoint_open_config(&configs, folder))) return 0;
    for (size_t i = 0; i < MODELS; i++) {
        fr_checkpoint files = weights[i];
        files.path = configs.path;
        files.config = configs.config;
        files.generation = NULL;
        fr_model *model = fuzz_model_open(&files);
        if (!model) continue;
        fuzz_inputs_read += fuzz_embed(model);
        fuzz_model_close(model);
    }
    fr_checkpoint_close(&configs);
    return 0;
}
