/* Where weights will lie: see residence.h. */
#include "src/decoder/residence.h"

#include "formats/error.h"

enum { SESSIONS_PART = 16 };

static bool is_mapped(const fr_weights *weights, const fr_bound *bound) {
    return weights->files->files[bound->tensor->file].fd < 0;
}

fr_residence fr_weights_residence(const fr_weights *weights, const fr_experts_spec *experts) {
    fr_residence all = {.own = weights->packed.used + weights->vectors.used + weights->transposed_bytes,
                        .every = weights->transposed_bytes};
    uint64_t every_mapped = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        bool mapped = !bound->packed && is_mapped(weights, bound);
        bool every = !bound->chosen && bound->access == FR_STREAMED;
        uint64_t bytes = bound->tensor->bytes;
        all.mapped += mapped ? bytes : 0;
        all.own += mapped || bound->packed ? 0 : bytes;
        all.experts += bound->chosen ? bytes : 0;
        all.every += every ? bytes : 0;
        every_mapped += every && mapped ? bytes : 0;
    }
    all.stays = all.own + every_mapped;
    if (experts) all.token = all.experts / experts->count * experts->top;
    return all;
}

/* What models may take. */
static uint64_t for_weights(uint64_t available) {
    return available - available / SESSIONS_PART;
}

bool fr_residence_fits(const fr_residence *residence, uint64_t available) {
    return residence->own + residence->mapped <= for_weights(available);
}

static const char *advice(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++)
        if (!is_mapped(weights, &weights->bound[i])) return ": without --no-mmap files are used as they lie";
    return weights->packed.used ? ": `forerun pack` writes a file that is used as it lies" : "";
}

fr_status fr_residence_check(const fr_residence *residence, const fr_weights *weights, uint64_t available) {
    if (residence->own <= for_weights(available)) return FR_OK;
    return fr_fail(FR_MEMORY,
                   "%s: %.1f MB of its weights would have to be copied into memory, which has %.1f MB left%s",
                   weights->files->path, (double)residence->own / 1e6, (double)available / 1e6, advice(weights));
}

void fr_residence_note(const fr_residence *residence, fr_weights *weights, uint64_t available) {
    bool stays = residence->every <= for_weights(available);
    const char *how = "they are read again and again", *rest = "";
    if (residence->experts) {
        how = "experts are read from the file as they are chosen";
        rest = stays ? ", of which all but experts can stay" : ", of which not even the rest can stay";
    }
    fr_notes_add(&weights->notes,
                 "%s: %.1f MB of weights, and memory has %.1f MB left: %s; every token reads %.1f MB%s",
                 weights->files->path, (double)(residence->own + residence->mapped) / 1e6, (double)available / 1e6, how,
                 (double)(residence->every + residence->token) / 1e6, rest);
}
