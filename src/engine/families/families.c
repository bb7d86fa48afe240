/* Finds the family of a target: see families.h. */
#include "src/engine/families/families.h"

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

/* Returns true if the key has a number other than 0. Also returns true if its value is not a number, which the family
 * then reports. */
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

static bool is_listed(size_t index) {
    for (size_t i = 0; i < index; i++)
        if (strcmp(fr_family_word(families[i]), fr_family_word(families[index])) == 0) return true;
    return false;
}

/* Lists the families by their names in GGUF, each name once. */
static void list_built(char *line, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (is_listed(i)) continue;
        int more = snprintf(line + length, size - length, "%s%s", length ? ", " : "", fr_family_word(families[i]));
        if (more < 0 || (size_t)more >= size - length) return;
        length += (size_t)more;
    }
}

fr_status fr_family_refuse(const fr_checkpoint *files, const char *what) {
    char built[1024] = "";
    const char *architecture = fr_checkpoint_architecture(files);
    list_built(built, sizeof built);
    const char *kind = fr_checkpoint_model_type(files) ? "model_type" : "architecture";
    if (!*architecture) return fr_fail(FR_INPUT, "%s names neither an architecture nor a model_type", files->path);
    fr_status status =
        what ? fr_fail(FR_INPUT, "%s: architecture \"%.60s\" (%s) can't be run", files->path, architecture, what)
             : fr_fail(FR_INPUT, "%s: %s \"%.60s\" is not known", files->path, kind, architecture);
    return fr_fail_also(status, "those that can, by their names in GGUF: %s", built);
}
