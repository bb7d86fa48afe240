/* Finds the family of a target: see families.h. */
#include "src/engine/families/families.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/architecture.h"

static const fr_family *const families[] = {
#define FR_FAMILY(name) &fr_family_##name,
#include "src/engine/families/families.def"
#undef FR_FAMILY
};

enum { COUNT = sizeof families / sizeof *families };

/* Returns true if the value of the key is a number other than 0. Also returns true if the value is not a number; the
 * family then reports the error. */
static bool has_number(const fr_gguf *gguf, const char *key) {
    int64_t number;
    return fr_gguf_find(gguf, key) && (fr_gguf_int(gguf, key, 0, INT64_MAX, 0, &number) != FR_OK || number);
}

const fr_family *fr_family_named(const char *architecture) {
    for (size_t i = 0; i < COUNT; i++)
        if (fr_architecture_in(families[i]->architectures, architecture)) return families[i];
    return NULL;
}

const fr_family *fr_family_of(const fr_checkpoint *files) {
    const char *architecture = fr_checkpoint_architecture(files);
    for (size_t i = 0; i < COUNT; i++) {
        if (!fr_architecture_in(families[i]->architectures, architecture)) continue;
        if (!files->gguf || !families[i]->gguf_with || has_number(files->gguf, families[i]->gguf_with))
            return families[i];
    }
    return NULL;
}

const char *fr_family_word(const fr_family *family) {
    return family->gguf ? family->gguf : family->architectures[0];
}

/* Shortens an architecture's name: writes its letters and digits in lower case, and leaves out an ending such as
 * ForCausalLM. */
static void shorten(const char *architecture, char *name, size_t size) {
    static const char *const tails[] = {"forcausallm", "forconditionalgeneration", "lmheadmodel", "model", NULL};
    size_t length = 0;
    for (; *architecture && length + 1 < size; architecture++)
        if (isalnum((unsigned char)*architecture)) name[length++] = (char)tolower((unsigned char)*architecture);
    name[length] = '\0';
    for (const char *const *tail = tails; *tail; tail++)
        if (length > strlen(*tail) && strcmp(name + length - strlen(*tail), *tail) == 0) {
            name[length - strlen(*tail)] = '\0';
            return;
        }
}

/* Finds the supported architecture whose name shares the longest beginning with this name. At least four letters must
 * be shared, or three letters if these are one of the names completely. Among equals, the shortest name is taken. Gives
 * NULL if there is no such architecture. */
static const char *find_nearest(const char *architecture) {
    char name[64], other[64];
    const char *nearest = NULL;
    size_t most = 0, shortest = 0;
    shorten(architecture, name, sizeof name);
    for (size_t i = 0; i < COUNT; i++)
        for (const char *const *built = families[i]->architectures; *built; built++) {
            size_t common = 0;
            shorten(*built, other, sizeof other);
            while (name[common] && name[common] == other[common]) common++;
            if (common < 3 || (common == 3 && other[common])) continue;
            if (common < most || (common == most && strlen(other) >= shortest)) continue;
            nearest = *built;
            most = common;
            shortest = strlen(other);
        }
    return nearest;
}

static bool has_word(const char *name, const char *const *words) {
    for (; *words; words++)
        if (strstr(name, *words)) return true;
    return false;
}

void fr_family_hint(const fr_checkpoint *files, char *text, size_t size) {
    static const struct {
        const char *says, *key;
        const char *words[16];
    } kinds[] = {
        {"drafts for another model", NULL, {"Eagle", "Draft", "Speculator", "Assistant", "Medusa", "DFlash", "DSpark"}},
        {"draws pictures", "_class_name", {"Diffusion", "UNet", "Autoencoder", "Transformer2D", "ImageGen", "Flux"}},
        {"hears or speaks",
         "audio_config",
         {"Audio", "Speech", "ASR", "Asr", "Whisper", "Wav2Vec", "CTC", "TTS", "Tts", "Omni", "Voxtral"}},
        {"sees pictures",
         "vision_config",
         {"VL", "Vision", "Image", "Llava", "OCR", "Ocr", "_vl", "-vl", "llava", "Vit", "ViT", "CLIP"}},
        {"is an encoder",
         NULL,
         {"ForMaskedLM", "Classification", "QuestionAnswering", "Bert", "BERT", "bert", "Encoder", "Embedding"}},
    };
    const char *architecture = fr_checkpoint_architecture(files);
    const char *nearest = find_nearest(architecture);
    int length = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !*text; i++)
        if (has_word(architecture, kinds[i].words) || (kinds[i].key && json_object_get(files->config, kinds[i].key)))
            length = snprintf(text, size, "; by its name or configuration it %s", kinds[i].says);
    if (nearest && length >= 0 && (size_t)length < size && !strstr(text, "draws"))
        snprintf(text + length, size - (size_t)length, "; the nearest architecture that can be run is %s", nearest);
}

fr_status fr_family_refuse(const fr_checkpoint *files, const char *what) {
    char hint[160];
    const char *architecture = fr_checkpoint_architecture(files);
    fr_family_hint(files, hint, sizeof hint);
    const char *kind = fr_checkpoint_model_type(files) ? "model_type" : "architecture";
    if (!*architecture) return fr_fail(FR_INPUT, "%s names neither an architecture nor a model_type", files->path);
    fr_status status =
        what
            ? fr_fail(FR_INPUT, "%s: architecture \"%.60s\" (%s) can't be run%s", files->path, architecture, what, hint)
            : fr_fail(FR_INPUT, "%s: %s \"%.60s\" is not known%s", files->path, kind, architecture, hint);
    return fr_fail_also(status, "docs/models.md lists those that can be run");
}
