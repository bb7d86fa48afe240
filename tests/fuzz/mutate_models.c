/* Damages every file of small targets and their drafters many times in one process, and runs the results. The models
 * are folders and GGUF files.
 *
 * In: the number of mutations per file (default 100) and a seed (default 1). Out: exit status 0 if every damaged model
 * was either opened and run, or refused with one clear line. A crash, a hang, a sanitizer's report or a bad error line
 * is a failure. Must be built with -fsanitize=address,undefined. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tests/fuzz/mutation.h"

#define MODELS    "tests/data/models/"
#define GGUF      "tests/data/gguf"
#define GLM       "tests/data/glm-ocr"
#define LLAMA     "tests/data/llama"
#define DFLASH    "tests/data/dflash/"
#define FILES_MAX 16

/* A folder with a target and a drafter. A copy of the folder is damaged. */
typedef struct subject {
    const char *folder;
    const char *target, *drafter; /* "" means the folder; drafter NULL means the target's own MTP layer */
    const char *files[FILES_MAX];
    const char *mmproj; /* the file of the target's vision encoder, or NULL if there is none */
} subject;

static const subject subjects[] = {
    {GGUF, "moe-odd.gguf", "atomic.gguf", {"moe-odd.gguf", "atomic.gguf"}, NULL},
    {GGUF, "moe-odd.gguf", "ik.gguf", {"ik.gguf"}, NULL},
    {GGUF, "e-q4_0.gguf", "moe-odd-assistant.gguf", {"e-q4_0.gguf"}, NULL},
    {MODELS "gemma4-e",
     "",
     "assistant",
     {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
      "assistant/config.json", "assistant/model.safetensors"},
     NULL},
    {MODELS "gemma4-dense",
     "",
     "assistant",
     {"config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors", "assistant/config.json",
      "assistant/model.safetensors"},
     NULL},
    {MODELS "gemma4-moe", "", "assistant", {"config.json", "model.safetensors"}, NULL},
    {MODELS "llama-odd", "", NULL, {"config.json", "model.safetensors"}, NULL},
    {MODELS "deepseek-v3-own", "", NULL, {"config.json", "model.safetensors"}, NULL},
    {MODELS "glm4-moe-own", "", NULL, {"config.json", "model.safetensors"}, NULL},
    {MODELS "qwen3-moe-raw", "", NULL, {"config.json", "model.safetensors"}, NULL},
    {MODELS "qwen35-moe-odd", "", NULL, {"config.json", "model.safetensors"}, NULL},
    {"tests/data/deepseek-v3", "model-bf16.gguf", NULL, {"model-bf16.gguf"}, NULL},
    {"tests/data/qwen35", "moe-odd.gguf", NULL, {"moe-odd.gguf"}, NULL},
    {LLAMA, "q4_0.gguf", NULL, {"q4_0.gguf"}, NULL},
    {LLAMA, "q4_0.gguf", "eagle3", {"eagle3/config.json", "eagle3/model.safetensors"}, NULL},
    {LLAMA, "q4_0.gguf", "eagle3-odd", {"eagle3-odd/config.json", "eagle3-odd/model.safetensors"}, NULL},
    {LLAMA, "q4_0.gguf", "eagle3-layers", {"eagle3-layers/config.json", "eagle3-layers/model.safetensors"}, NULL},
    {LLAMA, "q4_0.gguf", "eagle3.gguf", {"eagle3.gguf"}, NULL},
    {LLAMA, "q4_0.gguf", "eagle", {"eagle/config.json", "eagle/model.safetensors"}, NULL},
    {DFLASH "qwen3", "", "drafter", {"drafter/config.json", "drafter/model.safetensors"}, NULL},
    {DFLASH "llama-sliding", "", "drafter.gguf", {"drafter.gguf"}, NULL},
    {DFLASH "spec-llama", "", "drafter", {"drafter/config.json", "drafter/model.safetensors"}, NULL},
    {DFLASH "v2-qwen3.5", "", "drafter", {"drafter/config.json", "drafter/model.safetensors"}, NULL},
    {DFLASH "v2-qwen3", "", "drafter.gguf", {"drafter.gguf"}, NULL},
    {DFLASH "dspark-qwen3", "", "drafter", {"drafter/config.json", "drafter/model.safetensors"}, NULL},
    {DFLASH "dspark-qwen3", "", "drafter.gguf", {"drafter.gguf"}, NULL},
    /* a small model that drafts for another model */
    {"tests/data", "models/llama", "llama/q4_0.gguf", {"llama/q4_0.gguf"}, NULL},
    {GLM, "model-q4_0.gguf", NULL, {"model-q4_0.gguf"}, NULL},
    {GLM, "model-q4_0.gguf", NULL, {"mmproj-bf16.gguf"}, "mmproj-bf16.gguf"},
    {GLM,
     "",
     NULL,
     {"config.json", "preprocessor_config.json", "tokenizer.json", "model.safetensors", "image/digits.png"},
     NULL},
};

/* If the model reads pictures, runs a prompt that has the folder's picture. */
static void run_picture(const fr_model *model, const fr_drafter *drafter, const char *folder,
                        const fr_options *options) {
    char path[512];
    int32_t prompt[48] = {500, 503}, ids[FR_STEP_MAX], image = (int32_t)fr_model_fact(model, FR_FACT_IMAGE_TOKEN);
    size_t count, accepted;
    fr_picture *picture;
    fr_session *session;
    snprintf(path, sizeof path, "%s/image/digits.png", folder);
    if (image < 0 || refused(fr_picture_open(path, model, &picture))) return;
    size_t tokens = fr_picture_tokens(picture) < 40 ? fr_picture_tokens(picture) : 40;
    for (size_t i = 0; i < tokens; i++) prompt[2 + i] = image;
    prompt[2 + tokens] = 504;
    if (!refused(fr_session_open(model, drafter, options, &session))) {
        if (!refused(fr_session_show(session, (const fr_picture *const[]){picture}, 1)) &&
            !refused(fr_session_prompt(session, prompt, tokens + 3)))
            for (int step = 0; step < 3; step++)
                if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
        fr_session_close(session);
    }
    fr_picture_close(picture);
}

static void run_session(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    static const int32_t prompt[] = {2, 9, 40, 7, 100, 61, 5, 8, 77, 30, 31};
    int32_t ids[FR_STEP_MAX], *encoded;
    size_t count = 1, accepted;
    fr_session *session;
    if (refused(fr_session_open(model, drafter, options, &session))) return;
    if (!refused(fr_session_prompt(session, prompt, sizeof prompt / sizeof *prompt)))
        for (int step = 0; step < 4 && count; step++)
            if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
    fr_session_close(session);
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model);
    if (tokenizer && !refused(fr_tokenize(tokenizer, "Text, <bos> 12\xff", 16, true, true, &encoded, &count)))
        fr_free(encoded);
}

/* Opens the target and the drafter as a user would. If both open, runs them. */
static void use(const subject *who, const char *folder, fr_options *options) {
    char target[512], assistant[512], mmproj[512];
    fr_model *model;
    fr_drafter *drafter = NULL;
    snprintf(target, sizeof target, "%s/%s", folder, who->target);
    snprintf(assistant, sizeof assistant, "%s/%s", folder, who->drafter ? who->drafter : "");
    snprintf(mmproj, sizeof mmproj, "%s/%s", folder, who->mmproj ? who->mmproj : "");
    fr_options_set_text(options, FR_OPT_MMPROJ, who->mmproj ? mmproj : "");
    if (refused(fr_model_open(target, options, &model))) return;
    refused(fr_drafter_open(who->drafter ? assistant : NULL, model, options, &drafter));
    run_session(model, drafter, options);
    run_picture(model, drafter, folder, options);
    fr_drafter_close(drafter);
    fr_model_close(model);
}

/* Copies the fixture's folder as links. So only the damaged files are written. */
static void copy_folder(const char *source, const char *folder) {
    char command[1024];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -rs \"$(realpath '%s')\" '%s'", folder, source, folder);
    if (system(command) != 0) die("can't copy", source);
}

static void run_file(const subject *who, const char *folder, const char *name, size_t count, fr_options *options) {
    char source[512], path[512];
    snprintf(source, sizeof source, "%s/%s", who->folder, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    blob original = read_blob(source), damaged = {malloc(original.size + 1), 0};
    if (!damaged.bytes) die("no memory for", name);
    for (size_t i = 0; i < count; i++) {
        memcpy(damaged.bytes, original.bytes, original.size);
        damaged.size = original.size;
        if (i == 0)
            damaged.size = 0;
        else
            mutate(&damaged);
        unlink(path);
        write_blob(path, &damaged);
        use(who, folder, options);
    }
    unlink(path);
    char *absolute = realpath(source, NULL);
    if (!absolute || symlink(absolute, path) != 0) die("can't restore", path);
    free(absolute);
    free(original.bytes);
    free(damaged.bytes);
    printf("%s/%s: %zu mutations\n", who->folder, name, count);
}

static void write_model(const char *path, fr_status (*write)(const char *from, FILE *out), const char *from) {
    FILE *out = fopen(path, "wb");
    if (!out || write(from, out) != FR_OK || fclose(out) != 0) die(fr_last_error(), path);
}

static fr_status quantize(const char *from, FILE *out) {
    return fr_lab_quantize(from, &(fr_lab_quantization){.type = "q8_0", .pure = true}, NULL, out);
}

static fr_status pack(const char *from, FILE *out) {
    return fr_lab_pack(from, NULL, out);
}

/* Writes a packed target and a packed assistant with centroids, as `forerun pack` does. An assistant is a drafter of
 * Gemma 4. */
static void make_packed(const char *folder) {
    static const char *const names[][2] = {{"target.gguf", MODELS "gemma4-e"},
                                           {"drafter.gguf", MODELS "gemma4-e/assistant"}};
    char path[512], plain[512];
    if (mkdir(folder, 0700) != 0) die("can't make", folder);
    snprintf(plain, sizeof plain, "%s/plain.gguf", folder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i][0]);
        write_model(plain, quantize, names[i][1]);
        write_model(path, pack, plain);
    }
    unlink(plain);
}

static void run_packed(const char *root, const char *folder, size_t count, fr_options *options) {
    char packed[128];
    snprintf(packed, sizeof packed, "%s/packed", root);
    make_packed(packed);
    const subject who = {packed, "target.gguf", "drafter.gguf", {"drafter.gguf", "target.gguf"}, NULL};
    copy_folder(packed, folder);
    for (size_t f = 0; who.files[f]; f++) run_file(&who, folder, who.files[f], count, options);
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
    uint64_t seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    char root[] = "/tmp/forerun-mutate-XXXXXX", folder[64], command[128];
    fr_options *options = fr_options_new();
    fr_options_set(options, FR_OPT_CONTEXT, 64);
    fr_options_set(options, FR_OPT_THREADS, 1);
    if (!mkdtemp(root)) die("can't make", root);
    snprintf(folder, sizeof folder, "%s/model", root);
    seed_mutations(seed);
    for (size_t s = 0; s < sizeof subjects / sizeof *subjects; s++) {
        copy_folder(subjects[s].folder, folder);
        for (size_t f = 0; f < FILES_MAX && subjects[s].files[f]; f++)
            run_file(&subjects[s], folder, subjects[s].files[f], count, options);
    }
    run_packed(root, folder, count, options);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    fr_options_free(options);
    return system(command) == 0 ? 0 : 1;
}
