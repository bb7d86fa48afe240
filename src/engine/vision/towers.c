/* Lists the kinds of vision towers: see tower.h. */
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

static const fr_tower *const towers[] = {&fr_tower_glm,      &fr_tower_qwen25, &fr_tower_qwen3,
                                         &fr_tower_gemma3,   &fr_tower_gemma4, &fr_tower_gemma4_unified,
                                         &fr_tower_idefics3, &fr_tower_pixtral};

enum { TOWERS = sizeof towers / sizeof *towers };

/* Reads the name of a GGUF file's projector. A file that also has an audio tower has one key for each of the two
 * towers. */
static fr_status read_projector(const fr_gguf *gguf, fr_text *type) {
    FR_TRY(fr_gguf_text(gguf, ".projector_type", type));
    return type->length ? FR_OK : fr_gguf_text(gguf, ".vision.projector_type", type);
}

/* Gives a folder's architecture. If config.json names none, gives its model_type. If there is none either, gives the
 * text model's model_type, or "". */
static const char *read_architecture(const fr_checkpoint *files) {
    const char *name = json_string_value(json_array_get(json_object_get(files->config, "architectures"), 0));
    if (!name || !*name) name = json_string_value(json_object_get(files->config, "model_type"));
    if (!name) name = json_string_value(json_object_get(json_object_get(files->config, "text_config"), "model_type"));
    return name ? name : "";
}

/* Returns true if the kind has this architecture or model_type; a text model's model_type may end in _text. */
static bool has_architecture(const fr_tower *tower, const char *architecture) {
    for (const char *const *name = tower->architectures; *name; name++) {
        size_t length = strlen(*name);
        if (strncmp(*name, architecture, length) == 0 &&
            (!architecture[length] || strcmp(architecture + length, "_text") == 0))
            return true;
    }
    return false;
}

const fr_tower *fr_tower_of(const fr_checkpoint *files) {
    fr_text type = {0};
    if (files->gguf && read_projector(files->gguf, &type) != FR_OK) return NULL;
    for (size_t i = 0; i < TOWERS; i++) {
        const fr_tower *tower = towers[i];
        bool found = files->gguf ? type.length == strlen(tower->projector) &&
                                       memcmp(type.bytes, tower->projector, type.length) == 0
                                 : has_architecture(tower, read_architecture(files));
        if (found) return tower;
    }
    return NULL;
}

fr_status fr_tower_refuse(const fr_checkpoint *files) {
    char built[256] = "";
    fr_text type = {0};
    if (!files->gguf)
        return fr_fail(FR_UNBUILT, "%s: the vision tower of architecture %s is not built", files->path,
                       read_architecture(files));
    FR_TRY(read_projector(files->gguf, &type));
    for (size_t i = 0, at = 0; i < TOWERS; i++)
        at += (size_t)snprintf(built + at, sizeof built - at, "%s%s", i ? ", " : "", towers[i]->projector);
    return fr_fail(FR_UNBUILT, "%s: a vision tower with projector \"%.*s\" is not built (%s %s)", files->path,
                   type.length < 64 ? (int)type.length : 64, type.bytes ? type.bytes : "", built,
                   TOWERS > 1 ? "are" : "is");
}
