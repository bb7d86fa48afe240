/* libFuzzer's target for the configuration files of sentence-transformers in a model's folder. The input's first line
 * is the name of one of these files. The rest of the input replaces that file in two models.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error. If the files are accepted, the model computes embeddings
 * and scores of texts. */
#include "tests/fuzz/harness.h"

static const char *const models[] = {"bert-modes", "cross-qwen3"};
static const char *const names[] = {
    "modules.json",         "1_Pooling/config.json",     "2_Dense/config.json",
    "3_Dense/config.json",  "sentence_bert_config.json", "config_sentence_transformers.json",
    "tokenizer_config.json"};
enum { MODELS = sizeof models / sizeof *models, NAMES = sizeof names / sizeof *names };

/* Puts links to a model's files into the folder, and makes its inner folders. Instead of the model's file `name`, the
 * file `memory` is linked. */
static void link_files(const char *folder, const char *model, const char *name, const char *memory) {
    static const char *const others[] = {"config.json", "model.safetensors", "tokenizer.json",
                                         "2_Dense/model.safetensors", "3_Dense/model.safetensors"};
    for (size_t i = 0; i < NAMES + sizeof others / sizeof *others; i++) {
        const char *file = i < NAMES ? names[i] : others[i - NAMES];
        char place[512];
        struct stat info;
        snprintf(place, sizeof place, "%s/%s", folder, file);
        *strrchr(place, '/') = '\0';
        mkdir(place, 0700);
        snprintf(place, sizeof place, "tests/data/encoders/%s/%s", model, file);
        if (strcmp(file, name) == 0)
            fuzz_link(folder, file, memory);
        else if (stat(place, &info) == 0)
            fuzz_link(folder, file, place);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const char *folders[MODELS][NAMES];
    static fuzz_file file;
    if (!file.fd) {
        file = fuzz_file_new();
        for (size_t m = 0; m < MODELS; m++)
            for (size_t n = 0; n < NAMES; n++)
                link_files(folders[m][n] = fuzz_folder(), models[m], names[n], file.path);
    }
    fuzz_halves halves = fuzz_divide(bytes, size, '\n');
    fuzz_file_write(&file, halves.second ? halves.second : bytes, halves.second_size, NULL, 0);
    for (size_t n = 0; n < NAMES; n++) {
        if (halves.first_size != strlen(names[n]) || memcmp(halves.first, names[n], halves.first_size) != 0) continue;
        for (size_t m = 0; m < MODELS; m++) {
            fr_checkpoint files;
            if (refused(fr_checkpoint_open(&files, folders[m][n], true))) continue;
            fr_model *model = fuzz_model_open(&files);
            if (model) fuzz_inputs_read += fuzz_embed(model);
            fuzz_model_close(model);
            fr_checkpoint_close(&files);
        }
    }
    return 0;
}
