/* The families of targets there are: see families.h. */
#include "src/families/families.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/families/architecture.h"

static const fr_family *const families[] = {
#define FR_FAMILY(name) &fr_family_##name,
#include "src/families/families.def"
#undef FR_FAMILY
};

enum { COUNT = sizeof families / sizeof *families };

const fr_family *fr_family_of(const char *architecture) {
    for (size_t i = 0; i < COUNT; i++)
        if (fr_architecture_in(families[i]->architectures, architecture)) return families[i];
    return NULL;
}

/* By their names in GGUF; two families that share one share what stands for them. */
static void list_built(char *line, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (i && strcmp(families[i]->gguf, families[i - 1]->gguf) == 0) continue;
        int more = snprintf(line + length, size - length, "%s%s", length ? ", " : "", families[i]->gguf);
        if (more < 0 || (size_t)more >= size - length) return;
        length += (size_t)more;
    }
}

fr_status fr_family_refuse(const fr_checkpoint *files, const char *what) {
    char built[1024] = "";
    const char *architecture = fr_checkpoint_architecture(files);
    list_built(built, sizeof built);
    if (!*architecture) return fr_fail(FR_INPUT, "%s names no architecture", files->path);
    fr_status status = what ? fr_fail(FR_INPUT, "%s: architecture \"%.60s\" (%s) can't be run", files->path,
                                      architecture, what)
                            : fr_fail(FR_INPUT, "%s: architecture \"%.60s\" is not known", files->path, architecture);
    return fr_fail_also(status, "those that can, by their names in GGUF: %s", built);
}
