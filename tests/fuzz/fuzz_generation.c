/* libFuzzer's target for generation_config.json. The input is this file in the folder of a model.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. */
#include "tests/fuzz/harness.h"

#define MODEL "tests/data/models/gemma4-dense-odd"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint weights;
    static const char *folder;
    static fuzz_file generation;
    fr_checkpoint configs;
    if (!folder) {
        generation = fuzz_file_new();
        folder = fuzz_folder();
        fuzz_link(folder, "config.json", MODEL "/config.json");
        fuzz_link(folder, "generation_config.json", generation.path);
        fuzz_open_files(&weights, MODEL);
    }
    fuzz_file_write(&generation, bytes, size, NULL, 0);
    if (refused(fr_checkpoint_open_config(&configs, folder))) return 0;
    fr_checkpoint files = weights;
    files.path = configs.path;
    files.config = configs.config;
    files.generation = configs.generation;
    fr_model *model = fuzz_model_open(&files);
    if (model) {
        fuzz_inputs_read++;
        for (size_t i = 0; i < model->eos_count; i++)
            if (!fr_model_is_eos(model, model->eos[i]) || (size_t)model->eos[i] >= model->trunk.spec.vocab) abort();
        for (size_t i = 0; i < model->suppressed_count; i++)
            if (model->suppressed[i] < 0 || (size_t)model->suppressed[i] >= model->trunk.spec.vocab) abort();
        fuzz_model_close(model);
    }
    fr_checkpoint_close(&configs);
    return 0;
}
