/* Changes single entries of model files and opens the result, many times in one process. An entry is that of a tensor,
 * a key of config.json, or a key of GGUF's metadata. There is a model of each family. The lists below have the changes
 * that are tried.
 *
 * In: the approximate number of changes of each kind per file (default 30, chosen at random from all changes) and a
 * seed (default 1). Out: exit status 0 if every changed model was either refused or, where the change allows it, opened
 * and run. A refusal must be one line that names the tensor or the key, with the exit status of bad input or of an
 * unsupported model. Must be built with -fsanitize=address,undefined. */
#include <fnmatch.h>
#include <jansson.h>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/model_tables.h"

#define MODELS   "tests/data/models/"
#define DENSE    "tests/data/dense"
#define DEEPSEEK "tests/data/deepseek-v3"
#define GLM      "tests/data/glm-ocr"
#define GGUF     "tests/data/gguf"
#define LLAMA    "tests/data/llama"
#define QWEN35   "tests/data/qwen35"
#define DFLASH   "tests/data/dflash/"

/* An MTP layer that lacks a norm before the head uses the model's norm. So these tensors may be missing. */
#define MTP_NORM   "*@(shared_head|mtp).norm.weight"
#define NEXTN_NORM "*.nextn.shared_head_norm"

/* In GGUF the vectors of Mamba-2 may have any shape. */
#define IN_ROWS "@(output.weight|*.ssm_@(a|d|norm.weight))"

/* A folder with a target and in some cases a drafter, and the file of the folder that is changed. */
typedef struct subject {
    const char *folder;
    const char *target, *drafter; /* "" means the folder; drafter NULL means the target's MTP layer, if any */
    const char *mmproj;           /* the file of the vision encoder, or NULL if there is none */
    const char *file;
    const char *loose; /* fnmatch pattern of tensors that may be missing or are never read */
} subject;

static const subject subjects[] = {
    {MODELS "gemma4-e", "", "assistant", NULL, "config.json", ""},
    {MODELS "gemma4-e", "", "assistant", NULL, "model.safetensors", "*.layers.[23].self_attn.[kv]_*"},
    {MODELS "gemma4-e", "", "assistant", NULL, "assistant/config.json", ""},
    {MODELS "gemma4-e", "", "assistant", NULL, "assistant/model.safetensors", ""},
    {MODELS "gemma4-dense-odd", "", "assistant", NULL, "config.json", ""},
    {MODELS "gemma4-dense-odd", "", "assistant", NULL, "model.safetensors", ""},
    {MODELS "gemma4-moe", "", "assistant", NULL, "config.json", ""},
    {MODELS "gemma4-moe", "", "assistant", NULL, "model.safetensors", ""},
    {GLM, "", NULL, NULL, "config.json", ""},
    {GLM, "", NULL, NULL, "model.safetensors", MTP_NORM},
    {MODELS "llama", "", NULL, NULL, "config.json", ""},
    {MODELS "llama", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "llama-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "llama-odd", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "glm4-moe-own", "", NULL, NULL, "config.json", ""},
    {MODELS "glm4-moe-own", "", NULL, NULL, "model.safetensors", "*.layers.3.@(embed_tokens|shared_head.*).weight"},
    {MODELS "glm4-moe-fp8", "", NULL, NULL, "model.safetensors", "*.layers.2.@(embed_tokens|shared_head.*).weight"},
    {MODELS "deepseek-v3-own", "", NULL, NULL, "config.json", ""},
    {MODELS "deepseek-v3-own", "", NULL, NULL, "model.safetensors", "*.layers.2.@(embed_tokens|shared_head.*).weight"},
    {MODELS "deepseek-v3-fp8", "", NULL, NULL, "config.json", ""},
    {MODELS "glm-4.7-flash-odd", "", NULL, NULL, "config.json", ""},
    {DEEPSEEK, "model-bf16.gguf", NULL, NULL, "model-bf16.gguf", "output.weight"},
    {MODELS "qwen3-moe-raw", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen3-moe-raw", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "llama-fp8", "", NULL, NULL, "config.json", ""},
    {MODELS "llama-fp8", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "qwen2-yarn", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen2-window", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen2-window", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "qwen2-tied.gguf", NULL, NULL, "qwen2-tied.gguf", ""},
    {MODELS "gemma3-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "gemma3-odd", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "gemma3-tower.gguf", NULL, NULL, "gemma3-tower.gguf", ""},
    {MODELS "qwen35-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen35-odd", "", NULL, NULL, "model.safetensors", MTP_NORM},
    {MODELS "qwen35-tied", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen35-moe-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "qwen35-moe-odd", "", NULL, NULL, "model.safetensors", MTP_NORM},
    {MODELS "qwen35-moe-tied", "", NULL, NULL, "model.safetensors", MTP_NORM},
    {MODELS "mamba2-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "mamba2-bias", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "mamba2-odd.gguf", NULL, NULL, "mamba2-odd.gguf", IN_ROWS},
    {MODELS "nemotron-h-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "nemotron-3-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "nemotron-3-odd", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "nemotron-h-odd.gguf", NULL, NULL, "nemotron-h-odd.gguf", IN_ROWS},
    {MODELS "granite-h-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "granite-h-rope", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "granite-h-odd.gguf", NULL, NULL, "granite-h-odd.gguf", IN_ROWS},
    {MODELS "bamba-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "falcon-h1-norm", "", NULL, NULL, "config.json", ""},
    {MODELS "falcon-h1-norm", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "falcon-h1-odd.gguf", NULL, NULL, "falcon-h1-odd.gguf", IN_ROWS},
    {MODELS "gpt2-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "gpt2-odd", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "gpt2-odd.gguf", NULL, NULL, "gpt2-odd.gguf", "output.weight"},
    {MODELS "opt-350m", "", NULL, NULL, "config.json", ""},
    {MODELS "opt-350m", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "gpt-neox-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "gpt-neox-odd", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "gpt-neox-odd.gguf", NULL, NULL, "gpt-neox-odd.gguf", "output.weight"},
    {MODELS "gptj-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "gptj-odd", "", NULL, NULL, "model.safetensors", ""},
    {MODELS "falcon-40b", "", NULL, NULL, "config.json", ""},
    {MODELS "falcon-40b", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "falcon-7b.gguf", NULL, NULL, "falcon-7b.gguf", "output.weight"},
    {MODELS "phi2-odd", "", NULL, NULL, "config.json", ""},
    {MODELS "phi2-odd", "", NULL, NULL, "model.safetensors", ""},
    {DENSE, "phi2-odd.gguf", NULL, NULL, "phi2-odd.gguf", "output.weight"},
    {QWEN35, "odd.gguf", NULL, NULL, "odd.gguf", "@(output|" NEXTN_NORM ").weight"},
    {QWEN35, "moe-odd.gguf", NULL, NULL, "moe-odd.gguf", "@(output|" NEXTN_NORM ").weight"},
    {QWEN35, "tied-trunk.gguf", "tied-mtp.gguf", NULL, "tied-mtp.gguf",
     "@(token_embd|output_norm|" NEXTN_NORM ").weight"},
    {GGUF, "e-q4_0.gguf", NULL, NULL, "e-q4_0.gguf", "@(rope_freqs.weight|blk.1.attn_v.weight|blk.[23].attn_[kv]*)"},
    {GGUF, "moe-odd.gguf", "moe-odd-assistant.gguf", NULL, "moe-odd.gguf", "rope_freqs.weight"},
    {GGUF, "moe-odd.gguf", "moe-odd-assistant.gguf", NULL, "moe-odd-assistant.gguf", "rope_freqs.weight"},
    {GLM, "model-q4_0.gguf", NULL, NULL, "model-q4_0.gguf", "@(output|" NEXTN_NORM ").weight"},
    {GLM, "model-q4_0.gguf", NULL, "mmproj-bf16.gguf", "mmproj-bf16.gguf", ""},
    {LLAMA, "q4_0.gguf", NULL, NULL, "q4_0.gguf", "@(rope_freqs|output).weight"},
    {LLAMA, "q4_0.gguf", "eagle3", NULL, "eagle3/config.json", ""},
    {LLAMA, "q4_0.gguf", "eagle3", NULL, "eagle3/model.safetensors", "t2d"},
    {LLAMA, "q4_0.gguf", "eagle3.gguf", NULL, "eagle3.gguf", "rope_freqs.weight"},
    {LLAMA, "q4_0.gguf", "eagle3-odd", NULL, "eagle3-odd/config.json", ""},
    {LLAMA, "q4_0.gguf", "eagle3-odd", NULL, "eagle3-odd/model.safetensors", "t2d"},
    {LLAMA, "q4_0.gguf", "eagle", NULL, "eagle/config.json", ""},
    {LLAMA, "q4_0.gguf", "eagle", NULL, "eagle/model.safetensors", "@(fc.bias|embed_tokens.weight)"},
    {DFLASH "qwen3", "", "drafter", NULL, "drafter/config.json", ""},
    {DFLASH "qwen3", "", "drafter", NULL, "drafter/model.safetensors", ""},
    {DFLASH "llama-sliding", "", "drafter.gguf", NULL, "drafter.gguf", ""},
    {DFLASH "spec-llama", "", "drafter", NULL, "drafter/config.json", ""},
    {DFLASH "spec-llama", "", "drafter", NULL, "drafter/model.safetensors", "t2d"},
    {DFLASH "v2-qwen3.5", "", "drafter", NULL, "drafter/config.json", ""},
    {DFLASH "v2-qwen3.5", "", "drafter", NULL, "drafter/model.safetensors", ""},
    {DFLASH "v2-qwen3", "", "drafter.gguf", NULL, "drafter.gguf", ""},
    {DFLASH "dspark-qwen3", "", "drafter", NULL, "drafter/config.json", ""},
    {DFLASH "dspark-qwen3", "", "drafter", NULL, "drafter/model.safetensors", "@(t2d|confidence_head.proj.bias)"},
    {DFLASH "dspark-qwen3", "", "drafter.gguf", NULL, "drafter.gguf", "conf_proj.*"},
    {DFLASH "dspark-dense-qwen3", "", "drafter", NULL, "drafter/config.json", ""},
};

/* The state of a run. `folder` has links to the subject's files. The link of the changed file leads to `file`, a file
 * in memory. */
typedef struct bench {
    const subject *who;
    const char *folder;
    fuzz_file file;
    fr_options *options;
    size_t changes, failures;
} bench;

static void run(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    static const int32_t prompt[] = {2, 9, 40, 7, 61};
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    fr_session *session;
    if (refused(fr_session_open(model, drafter, options, &session))) return;
    if (!refused(fr_session_prompt(session, prompt, sizeof prompt / sizeof *prompt)))
        for (int step = 0; step < 2; step++)
            if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
    fr_session_close(session);
}

/* Opens and runs the model as a user would. Returns the status of the first part that is refused, the model or the
 * drafter. */
static fr_status open_and_run(const bench *b) {
    char path[512];
    fr_model *model;
    fr_drafter *drafter = NULL;
    snprintf(path, sizeof path, "%s/%s", b->folder, b->who->mmproj ? b->who->mmproj : "");
    fr_options_set_text(b->options, FR_OPT_MMPROJ, b->who->mmproj ? path : "");
    snprintf(path, sizeof path, "%s/%s", b->folder, b->who->target);
    fr_status status = fr_model_open(path, b->options, &model);
    if (status != FR_OK) return status;
    snprintf(path, sizeof path, "%s/%s", b->folder, b->who->drafter ? b->who->drafter : "");
    if (b->who->drafter || fr_model_fact(model, FR_FACT_MTP_LAYERS) > 0)
        status = fr_drafter_open(b->who->drafter ? path : NULL, model, b->options, &drafter);
    if (status == FR_OK) run(model, drafter, b->options);
    fr_drafter_close(drafter);
    fr_model_close(model);
    return status;
}

/* An error line must contain one of these names. Usually it names the changed tensor or key. If two numbers contradict
 * each other, it may name another key, the tensor that does not fit, or the thing that a number counts. */
typedef struct names {
    const char *at[512];
    size_t count;
} names;

static void add_name(names *all, const char *name) {
    if (name && strlen(name) > 2 && all->count < sizeof all->at / sizeof *all->at) all->at[all->count++] = name;
}

static bool names_it(const char *line, const names *all) {
    for (size_t i = 0; i < all->count; i++)
        if (strstr(line, all->at[i])) return true;
    return false;
}

static void judge(bench *b, const char *change, bool may_open, const names *all) {
    fr_status status = open_and_run(b);
    const char *line = fr_last_error(), *fault = NULL;
    b->changes++;
    if (status == FR_OK)
        fault = may_open ? NULL : "opened";
    else if (!are_lines(line))
        fault = "not one line, or two";
    else if (status != FR_INPUT && status != FR_UNBUILT)
        fault = "not the status of bad input";
    else if (!names_it(line, all))
        fault = "names neither tensor nor key";
    if (!fault) return;
    b->failures++;
    printf("%s/%s: %s: %s: %s\n", b->who->folder, b->who->file, change, fault, status == FR_OK ? "" : line);
}

/* Returns true if this change is to be made. Over `total` calls, it returns true about `count` times, at random. */
static bool drawn(size_t count, size_t total) {
    return count >= total || draw(total) < count;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

typedef enum damage {
    MISSING,
    RENAMED,
    TWICE,
    EXTRA,
    OTHER_LAYER,
    HUGE_LAYER, /* a layer's number that does not fit in 64 bits */
    OTHER_SHAPE,
    HUGE_SHAPE,
    NO_SHAPE,
    MORE_DIMS,
    OTHER_TYPE,
    NO_TYPE,
    OTHER_DATA,
    DAMAGES
} damage;

static const char *const damage_names[DAMAGES] = {
    "missing",       "renamed",      "twice",    "an extra",        "of another layer", "of a layer beyond 64 bits",
    "another shape", "a huge shape", "no shape", "more dimensions", "another type",     "no type",
    "other data"};

/* Returns the position of the layer's number in a name ("layers.7." or "blk.7."). Returns NULL if the name has no
 * layer's number. */
static char *number_in(char *name) {
    char *at = strstr(name, "layers.");
    if (at) return at + strlen("layers.");
    at = strstr(name, "blk.");
    return at ? at + strlen("blk.") : NULL;
}

static bool set_layer(table_tensor *tensor, const char *number) {
    char rest[sizeof tensor->name], *at = number_in(tensor->name);
    if (!at) return false;
    snprintf(rest, sizeof rest, "%s", at + strspn(at, "0123456789"));
    snprintf(at, sizeof tensor->name - (size_t)(at - tensor->name), "%s%s", number, rest);
    return true;
}

/* Gives the tensor another shape with the same number of bytes. */
static bool reshape(table_tensor *tensor) {
    uint64_t first = tensor->shape[0];
    if (tensor->dims == 0) return false;
    if (tensor->dims > 1 && first != tensor->shape[tensor->dims - 1]) {
        tensor->shape[0] = tensor->shape[tensor->dims - 1];
        tensor->shape[tensor->dims - 1] = first;
        return true;
    }
    tensor->shape[tensor->dims++] = 1;
    return true;
}

/* Gives the tensor another type with the same number of bytes. In GGUF the new type is any other one. */
static void retype(table_tensor *tensor, bool gguf) {
    static const char *const published[][2] = {{"BF16", "I16"}, {"F16", "U16"}, {"F32", "I32"}, {"I64", "F64"},
                                               {"I32", "F32"},  {"F64", "I64"}, {"U8", "I8"},   {"F8_E4M3", "I8"}};
    if (gguf) snprintf(tensor->type, sizeof tensor->type, "%s", strcmp(tensor->type, "26") == 0 ? "0" : "26" /* I32 */);
    for (size_t i = 0; !gguf && i < sizeof published / sizeof *published; i++)
        if (strcmp(tensor->type, published[i][0]) == 0) {
            snprintf(tensor->type, sizeof tensor->type, "%s", published[i][1]);
            return;
        }
}

static void append(char *name, size_t size, const char *more) {
    size_t length = strlen(name);
    snprintf(name + length, size - length, "%s", more);
}

/* Adds a copy of entry `index` at the end. If `renamed` is true, the copy gets another name. The copy has no data. */
static void add(model_table *t, size_t index, bool renamed) {
    table_tensor *added = &t->tensors[t->tensor_count++];
    *added = t->tensors[index];
    added->dims = 1;
    added->shape[0] = 0;
    if (!t->gguf) added->begin = added->end = t->file.size - t->data_begin;
    if (renamed) append(added->name, sizeof added->name, "_extra");
}

static bool apply_name(model_table *t, damage how, size_t index) {
    table_tensor *tensor = &t->tensors[index];
    switch (how) {
    case MISSING:
        t->hole = t->gguf ? 0 : tensor->begin;
        t->hole_end = t->gguf ? 0 : tensor->end;
        *tensor = t->tensors[--t->tensor_count];
        return true;
    case RENAMED: append(tensor->name, sizeof tensor->name, "x"); return true;
    case TWICE:
    case EXTRA: add(t, index, how == EXTRA); return true;
    case OTHER_LAYER: return set_layer(tensor, "40");
    default: return set_layer(tensor, "18446744073709551616");
    }
}

static bool apply_shape(model_table *t, damage how, size_t index) {
    table_tensor *tensor = &t->tensors[index];
    switch (how) {
    case OTHER_SHAPE: return reshape(tensor);
    case HUGE_SHAPE:
        for (size_t d = 0; d < tensor->dims; d++) tensor->shape[d] = (uint64_t)1 << 47;
        return tensor->dims > 0;
    case NO_SHAPE: tensor->dims = 0; return true;
    case MORE_DIMS:
        if (tensor->dims == 5) return false;
        while (tensor->dims < 5) tensor->shape[tensor->dims++] = 1;
        return true;
    case OTHER_TYPE: retype(tensor, t->gguf); return true;
    case NO_TYPE: snprintf(tensor->type, sizeof tensor->type, "%s", t->gguf ? "4711" : "F7"); return true;
    default: tensor->begin = tensor->end = t->file.size + 32; return true;
    }
}

/* Changes a tensor's entry. The error line may contain the tensor's old name or its new name. */
static void change_tensor(bench *b, const model_table *table, damage how, size_t index) {
    model_table t = table_copy(table);
    char change[512];
    const char *was = table->tensors[index].name;
    if (how <= HUGE_LAYER ? apply_name(&t, how, index) : apply_shape(&t, how, index)) {
        names all = {0};
        add_name(&all, was);
        if (how != MISSING) add_name(&all, t.tensors[how == EXTRA ? t.tensor_count - 1 : index].name);
        /* If a layer has one bias, it must have all of them. So the error may name another bias. */
        if (strstr(was, ".bias")) add_name(&all, ".bias");
        blob file = table_write(&t);
        fuzz_file_write(&b->file, file.bytes, file.size, NULL, 0);
        free(file.bytes);
        snprintf(change, sizeof change, "tensor %s: %s", was, damage_names[how]);
        judge(b, change, fnmatch(b->who->loose, was, FNM_EXTMATCH) == 0, &all);
    }
    table_free_copy(&t);
}

static void change_tensors(bench *b, const model_table *table, size_t count) {
    size_t total = table->tensor_count * DAMAGES;
    for (size_t i = 0; i < total; i++)
        if (drawn(count, total)) change_tensor(b, table, (damage)(i % DAMAGES), i / DAMAGES);
}

/* ---------------------------------------------------------------------------------------------------- GGUF metadata */

typedef struct gguf_value {
    const char *what;
    uint32_t type;
    size_t size;
    uint8_t bytes[24];
} gguf_value;

static const gguf_value gguf_values[] = {
    {"0", 4, 4, {0}},
    {"1", 4, 4, {1}},
    {"3", 4, 4, {3}},
    {"255", 4, 4, {255}},
    {"2^31", 4, 4, {0, 0, 0, 128}},
    {"2^32 - 1", 4, 4, {255, 255, 255, 255}},
    {"-1", 5, 4, {255, 255, 255, 255}},
    {"2^63", 10, 8, {0, 0, 0, 0, 0, 0, 0, 128}},
    {"a NaN", 6, 4, {0, 0, 192, 127}},
    {"infinity", 6, 4, {0, 0, 128, 127}},
    {"-1.0", 6, 4, {0, 0, 128, 191}},
    {"1e-40", 6, 4, {192, 22, 1, 0}},
    {"true", 7, 1, {1}},
    {"a text", 8, 11, {3, 0, 0, 0, 0, 0, 0, 0, 'y', 'a', 'r'}},
    {"no text", 8, 8, {0}},
    {"no array", 9, 12, {4}},
    {"an array of one", 9, 16, {4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7}},
    {"a huge array", 9, 16, {4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128}},
    {"an array of texts", 9, 21, {8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'x'}},
};
enum { GGUF_VALUES = sizeof gguf_values / sizeof *gguf_values, GGUF_CHANGES = GGUF_VALUES + 3 };

/* If numbers contradict each other, error lines use these words instead of a key. Adds the words to the list. */
static void add_counted(names *all) {
    static const char *const counted[] = {"tensor ",
                                          "attention heads",
                                          "rotary values",
                                          "sections of the rotary",
                                          "keys of",
                                          "vocabulary",
                                          "layer ",
                                          "layers share",
                                          "heads of Mamba-2",
                                          "architecture",
                                          "merge_size",
                                          "projector",
                                          "vision tower of width",
                                          "merge 0",
                                          "token types",
                                          "layers stand before",
                                          "experts are",
                                          "experts can't"};
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) add_name(all, counted[i]);
}

static void change_key(bench *b, const model_table *table, size_t how, size_t index) {
    model_table t = table_copy(table);
    table_key *key = &t.keys[index];
    char change[256];
    const char *was = table->keys[index].name, *what = "twice";
    names all = {0};
    add_counted(&all);
    for (size_t i = 0; i < table->key_count; i++) {
        add_name(&all, table->keys[i].name);
        add_name(&all, strchr(table->keys[i].name, '.'));
    }
    if (how < GGUF_VALUES) {
        const gguf_value *value = &gguf_values[how];
        key->type = value->type;
        key->value = value->bytes;
        key->size = value->size;
        what = value->what;
    } else if (how == GGUF_VALUES) {
        what = "missing";
        *key = t.keys[--t.key_count];
    } else if (how == GGUF_VALUES + 1) {
        what = "renamed";
        append(key->name, sizeof key->name, "x");
    } else {
        t.keys[t.key_count++] = *key;
    }
    blob file = table_write(&t);
    fuzz_file_write(&b->file, file.bytes, file.size, NULL, 0);
    free(file.bytes);
    snprintf(change, sizeof change, "key %s: %s", was, what);
    judge(b, change, how < GGUF_VALUES + 2, &all);
    table_free_copy(&t);
}

static void change_keys(bench *b, const model_table *table, size_t count) {
    size_t total = table->key_count * GGUF_CHANGES;
    for (size_t i = 0; i < total; i++)
        if (drawn(count, total)) change_key(b, table, i % GGUF_CHANGES, i / GGUF_CHANGES);
}

/* ------------------------------------------------------------------------------------------------------ config.json */

static const char *const json_values[] = {
    "0",
    "-1",
    "1",
    "3",
    "7",
    "1000000000",
    "2147483648",
    "4294967297",
    "9223372036854775807",
    "18446744073709551616",
    "0.5",
    "-0.5",
    "1e-300",
    "1e300",
    "null",
    "true",
    "false",
    "\"x\"",
    "\"\"",
    "\"yarn\"",
    "[]",
    "[1]",
    "[[1]]",
    "[\"x\"]",
    "{}",
    "{\"x\": 1}",
    "{\"rope_type\": \"x\"}",
    NULL /* missing */,
};
enum { JSON_VALUES = sizeof json_values / sizeof *json_values };

/* Values for the kind of rotary positions. Each family accepts some of them and must refuse the others. */
static const char *const ropes[] = {
    "5",
    "[]",
    "\"linear\"",
    "{\"rope_type\": \"yarn\", \"factor\": 4}",
    "{\"type\": \"dynamic\", \"factor\": 4}",
    "{\"rope_type\": \"longrope\"}",
    "{\"rope_type\": 5}",
    "{\"rope_type\": [\"linear\"], \"factor\": 4}",
    "{\"rope_type\": \"linear\"}",
    "{\"rope_type\": \"linear\", \"factor\": \"4\"}",
    "{\"rope_type\": \"linear\", \"factor\": 0}",
    "{\"rope_type\": \"linear\", \"factor\": -4}",
    "{\"rope_type\": \"linear\", \"factor\": 1e300}",
    "{\"rope_type\": \"linear\", \"factor\": null}",
    "{\"rope_type\": \"llama3\", \"factor\": 8}",
    "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, \"high_freq_factor\": 1,"
    " \"original_max_position_embeddings\": 32}",
    "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4,"
    " \"original_max_position_embeddings\": 0.5}",
};
enum { ROPES = sizeof ropes / sizeof *ropes };

/* Counts all members inside `root`, in the order in which change_member visits them. */
static size_t count_members(const json_t *root) {
    size_t count = 0, i;
    const char *key;
    json_t *member;
    if (json_is_array(root))
        json_array_foreach (root, i, member) count += 1 + count_members(member);
    json_object_foreach ((json_t *)(uintptr_t)root, key, member) count += 1 + count_members(member);
    return count;
}

/* Replaces one member by `value`. If `value` is NULL, removes the member. *left is the member's number in the order of
 * the visit; it is decreased at each visited member. Returns the member's key. For an element of an array, returns the
 * array's key. */
static const char *change_member(json_t *root, const char *below, size_t *left, json_t *value) {
    const char *key, *found = NULL;
    json_t *member;
    size_t i;
    if (json_is_array(root))
        json_array_foreach (root, i, member) {
            if ((*left)-- == 0) {
                if (value)
                    json_array_set(root, i, value);
                else
                    json_array_remove(root, i);
                return below;
            }
            if ((found = change_member(member, below, left, value))) return found;
        }
    json_object_foreach (root, key, member) {
        if ((*left)-- == 0) {
            static char name[128];
            snprintf(name, sizeof name, "%s", key);
            if (value)
                json_object_set(root, name, value);
            else
                json_object_del(root, name);
            return name;
        }
        if ((found = change_member(member, key, left, value))) return found;
    }
    return NULL;
}

static void add_keys(names *all, const json_t *root) {
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_array(root))
        json_array_foreach (root, i, member) add_keys(all, member);
    json_object_foreach ((json_t *)(uintptr_t)root, key, member) {
        add_name(all, key);
        add_keys(all, member);
    }
}

/* Opens the model with a changed config.json. The model may be refused with a line that names the change. It may also
 * be accepted, because a key that is not read may have any value. */
static void try_config(bench *b, const json_t *original, const json_t *changed, const char *change) {
    names all = {0};
    char *text = json_dumps(changed, 0);
    add_counted(&all);
    add_keys(&all, original);
    add_keys(&all, changed);
    fuzz_file_write(&b->file, text, strlen(text), NULL, 0);
    free(text);
    judge(b, change, true, &all);
}

static void change_config(bench *b, const json_t *config, size_t count) {
    size_t members = count_members(config), total = members * JSON_VALUES;
    for (size_t i = 0; i < total; i++) {
        const char *text = json_values[i % JSON_VALUES];
        size_t left = i / JSON_VALUES;
        char change[256];
        if (!drawn(count, total)) continue;
        json_t *copy = json_deep_copy(config);
        json_t *value = text ? json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL) : NULL;
        const char *key = change_member(copy, "", &left, value);
        snprintf(change, sizeof change, "%s: %s", key, text ? text : "missing");
        try_config(b, config, copy, change);
        json_decref(value);
        json_decref(copy);
    }
}

/* Changes the keys of rotary positions, in the outer configuration or in that of the text model. */
static void change_ropes(bench *b, const json_t *config, size_t count) {
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < 4 * ROPES; i++) {
        const char *key = keys[i % 2];
        char change[512];
        json_t *copy = json_deep_copy(config), *text = json_object_get(copy, "text_config");
        json_t *parent = i / 2 % 2 && text ? text : copy;
        if (drawn(count, 4 * ROPES)) {
            json_object_set_new(parent, key, json_loads(ropes[i / 4], JSON_DECODE_ANY, NULL));
            snprintf(change, sizeof change, "%s: %s", key, ropes[i / 4]);
            try_config(b, config, copy, change);
        }
        json_decref(copy);
    }
}

/* --------------------------------------------------------------------------------------------------------- subjects */

/* Makes a folder of links to the subject's files. Only the link of the changed file leads to a file in memory. */
static void make_folder(const subject *who, const char *folder, const fuzz_file *file) {
    char command[1024];
    snprintf(command, sizeof command,
             "rm -rf '%s' && cp -rs \"$(realpath '%s')\" '%s' && rm '%s/%s' && ln -s %s '%s/%s'", folder, who->folder,
             folder, folder, who->file, file->path, folder, who->file);
    if (system(command) != 0) die("can't copy", who->folder);
}

static void run_subject(bench *b, size_t count) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", b->who->folder, b->who->file);
    make_folder(b->who, b->folder, &b->file);
    b->changes = 0;
    if (strstr(path, ".json")) {
        json_t *config = json_load_file(path, 0, NULL);
        change_config(b, config, count);
        change_ropes(b, config, count);
        json_decref(config);
    } else {
        model_table table;
        table_read(&table, path);
        change_tensors(b, &table, count);
        change_keys(b, &table, count);
        table_free(&table);
    }
    printf("%s: %zu mutations\n", path, b->changes);
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 30, subject_count = sizeof subjects / sizeof *subjects;
    bench b = {.folder = fuzz_folder(), .file = fuzz_file_new(), .options = fr_options_new()};
    fr_options_set(b.options, FR_OPT_CONTEXT, 64);
    fr_options_set(b.options, FR_OPT_THREADS, 1);
    fr_options_set(b.options, FR_OPT_PIN, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    seed_mutations(argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
    for (size_t i = 0; i < subject_count; i++) {
        b.who = &subjects[i];
        run_subject(&b, count);
    }
    fr_options_free(b.options);
    return b.failures ? 1 : 0;
}
