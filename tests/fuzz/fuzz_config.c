/* libFuzzer's target for the config.json of every family. There is a model of each family. The input replaces the
 * config.json of each model, one model after the other. The weights stay unchanged.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If the weights fit the configuration, the model runs a
 * prompt and some steps. If it has an MTP layer, this layer drafts. */
#include "src/engine/families/architecture.h"
#include "src/engine/families/families.h"
#include "tests/fuzz/harness.h"

static const char *const models[] = {"tests/data/models/gemma4-e",           "tests/data/models/gemma4-dense-odd",
                                     "tests/data/models/gemma4-moe",         "tests/data/models/glm-ocr-odd",
                                     "tests/data/models/llama-odd",          "tests/data/models/qwen2-window",
                                     "tests/data/models/gemma3-odd",         "tests/data/models/gemma3-tower",
                                     "tests/data/models/qwen3-moe-odd",      "tests/data/models/qwen35-odd",
                                     "tests/data/models/qwen35-moe-odd",     "tests/data/models/glm4-moe-odd",
                                     "tests/data/models/deepseek-v3-odd",    "tests/data/models/glm-4.7-flash-odd",
                                     "tests/data/models/mixtral-odd",        "tests/data/models/qwen2-moe-odd",
                                     "tests/data/models/deepseek-v2-groups", "tests/data/models/ernie4.5-moe-steps",
                                     "tests/data/models/qwen3-odd",          "tests/data/models/mistral3-tower",
                                     "tests/data/models/granite-odd",        "tests/data/models/granite4-micro",
                                     "tests/data/models/hunyuan-odd",        "tests/data/models/phi4-longrope",
                                     "tests/data/models/seed-oss-odd",       "tests/data/models/smollm3-window",
                                     "tests/data/models/mimo-odd",           "tests/data/models/qwen3-next-odd",
                                     "tests/data/models/minimax-m2-odd",     "tests/data/models/olmoe-odd",
                                     "tests/data/models/deepseek-v3.2-odd",  "tests/data/models/glm-5-odd",
                                     "tests/data/models/ling3-odd",          "tests/data/models/ling3-saved",
                                     "tests/data/models/ling-odd",           "tests/data/models/granite-moe-shared",
                                     "tests/data/models/hunyuan-moe-odd",    "tests/data/models/cohere2-window",
                                     "tests/data/models/exaone4-window",     "tests/data/models/olmo3-yarn",
                                     "tests/data/models/glm4-dense",         "tests/data/models/glm-chat",
                                     "tests/data/models/ernie45-bias",       "tests/data/models/lfm2-long",
                                     "tests/data/models/stablelm-parallel",  "tests/data/models/gemma2-odd",
                                     "tests/data/models/gpt-oss-odd",        "tests/data/models/arcee-bias",
                                     "tests/data/models/cohere-odd",         "tests/data/models/cwm-odd",
                                     "tests/data/models/gemma-odd",          "tests/data/models/helium-bias",
                                     "tests/data/models/hyperclovax-odd",    "tests/data/models/ministral-odd",
                                     "tests/data/models/nemotron-odd",       "tests/data/models/starcoder2-window",
                                     "tests/data/models/vault-gemma-odd",    "tests/data/models/gpt2-odd",
                                     "tests/data/models/gptj-odd",           "tests/data/models/gpt-neox-odd",
                                     "tests/data/models/phi2-odd",           "tests/data/models/opt-odd",
                                     "tests/data/models/exaone3-odd",        "tests/data/models/olmo-clip",
                                     "tests/data/models/lfm2-moe-odd",       "tests/data/models/flex-olmo-odd",
                                     "tests/data/models/dots1-window",       "tests/data/models/solar-open-odd",
                                     "tests/data/models/mamba2-odd",         "tests/data/models/nemotron-3-odd",
                                     "tests/data/models/nemotron-h-odd",     "tests/data/models/granite-h-odd",
                                     "tests/data/models/granite-h-rope",     "tests/data/models/bamba-odd",
                                     "tests/data/models/falcon-h1-odd",      "tests/data/models/falcon-h1-norm",
                                     "tests/data/models/falcon-40b",         "tests/data/models/apertus-odd",
                                     "tests/data/models/exaone-moe-odd",     "tests/data/models/cohere2-moe-odd",
                                     "tests/data/models/granite-swa-odd",    "tests/data/models/granite-moe-swa",
                                     "tests/data/models/youtu-odd",          "tests/data/models/minicpm3-odd",
                                     "tests/data/models/phimoe-odd",         "tests/data/models/jais2-odd",
                                     "tests/data/models/kimi-linear-odd",    "tests/data/models/kimi-linear-groups",
                                     "tests/data/models/lfm3-odd",           "tests/data/models/laguna-odd",
                                     "tests/data/models/muse-glimmer-odd",   "tests/data/vision/qwen2.5-vl",
                                     "tests/data/vision/qwen3-vl",           "tests/data/vision/qwen3-vl-moe",
                                     "tests/data/models/nemotron-3-mtp",     "tests/data/models/mpt-odd",
                                     "tests/data/models/bloom-odd",          "tests/data/models/llama4-odd",
                                     "tests/data/models/llama4-listed",      "tests/data/models/mellum-odd",
                                     "tests/data/models/stablelm-heads",     "tests/data/models/deepseek-v3.2-mtp",
                                     "tests/data/models/sarvam-odd",         "tests/data/models/exaone-moe-mtp",
                                     "tests/data/models/mellum-mtp",         "tests/data/models/sarvam-mla-odd",
                                     "tests/data/models/ernie4.5-moe-mtp"};
enum { MODELS = sizeof models / sizeof *models };

static const fr_family *const families[] = {
#define FR_FAMILY(name) &fr_family_##name,
#include "src/engine/families/families.def"
#undef FR_FAMILY
};

/* Ends the program if the list has no model for some family. Families are recognized by their names in GGUF. */
static void check_families(const fr_checkpoint *weights) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        bool found = false;
        for (size_t i = 0; i < MODELS && !found; i++) {
            const fr_family *family = fr_family_of(&weights[i]);
            found = family && strcmp(fr_family_word(family), fr_family_word(families[f])) == 0;
        }
        if (!found) die("no model of the family ", fr_family_word(families[f]));
    }
}

static void run(const fr_checkpoint *weights, const fr_checkpoint *configs) {
    fr_checkpoint files = *weights;
    files.path = configs->path;
    files.config = configs->config;
    files.generation = NULL;
    fr_model *model = fuzz_model_open(&files);
    if (!model) return;
    fuzz_inputs_read++;
    fuzz_run(model, NULL);
    fuzz_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_checkpoint weights[MODELS];
    static const char *folder;
    static fuzz_file config;
    fr_checkpoint configs;
    if (!folder) {
        config = fuzz_file_new();
        folder = fuzz_folder();
        fuzz_link(folder, "config.json", config.path);
        fuzz_link(folder, "preprocessor_config.json", "tests/data/models/glm-ocr-odd/preprocessor_config.json");
        for (size_t i = 0; i < MODELS; i++) fuzz_open_files(&weights[i], models[i]);
        check_families(weights);
    }
    fuzz_file_write(&config, bytes, size, NULL, 0);
    if (refused(fr_checkpoint_open_config(&configs, folder))) return 0;
    for (size_t i = 0; i < MODELS; i++) run(&weights[i], &configs);
    fr_checkpoint_close(&configs);
    return 0;
}
