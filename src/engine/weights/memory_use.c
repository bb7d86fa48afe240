/* Counts the memory that weights will take: see memory_use.h. */
#include "src/engine/weights/memory_use.h"

#include "base/error.h"
#include "base/sizes.h"
#include "formats/storage.h"
#include "src/engine/weights/bound.h"

enum { SESSIONS_PART = 16 }; /* sessions get 1 / SESSIONS_PART of the available memory */

static bool is_mapped(const fr_weights *weights, const fr_bound *bound) {
    return weights->files->files[bound->tensor->file].fd < 0;
}

/* Counts the bytes of the transposed copies that this rank makes, which are those of its own heads. */
static uint64_t transposed_bytes(const fr_weights *weights) {
    uint64_t bytes = weights->transposed_bytes;
    for (size_t i = 0; i < weights->transposed_count; i++) {
        const fr_transposed *t = &weights->transposed[i];
        size_t first, last;
        fr_transposed_own(weights, t, &first, &last);
        bytes -= (t->count - (last - first)) * t->from->features * t->from->cols * sizeof *t->to;
    }
    return bytes;
}

/* Counts the memory of bound weights. */
static fr_memory_use sum_memory_use(const fr_weights *weights, fr_mixture_size experts) {
    uint64_t transposed = transposed_bytes(weights), every_mapped = 0;
    fr_memory_use all = {.own = weights->packed.used + weights->vectors.used + transposed, .every = transposed};
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        bool mapped = !bound->packed && is_mapped(weights, bound);
        bool every = !bound->chosen && bound->access == FR_STREAMED;
        uint64_t foreign = fr_bound_foreign_bytes(weights, bound), bytes = fr_bound_bytes(bound) - foreign;
        /* for a quantized module, adds its tensors other than the codes, such as scales */
        if (bound->tensor->type == FR_STORED && !bound->packed)
            bytes += fr_storage_bytes(bound->tensor->storage) - bound->tensor->bytes;
        all.own -= bound->packed ? foreign : 0; /* other ranks' rows were included above */
        all.mapped += mapped ? bytes : 0;
        all.own += mapped || bound->packed ? 0 : bytes;
        all.experts += bound->chosen ? bytes : 0;
        all.every += every ? bytes : 0;
        every_mapped += every && mapped ? bytes : 0;
    }
    all.stays = all.own + every_mapped;
    if (experts.count) all.token = all.experts / experts.count * experts.chosen;
    return all;
}

fr_memory_use fr_memory_use_sum(const fr_memory_use *a, const fr_memory_use *b) {
    return (fr_memory_use){.own = a->own + b->own,
                           .mapped = a->mapped + b->mapped,
                           .every = a->every + b->every,
                           .stays = a->stays + b->stays,
                           .experts = a->experts + b->experts,
                           .token = a->token + b->token};
}

/* Gives how much of the available memory weights may take. The rest is left for sessions. */
static uint64_t for_weights(uint64_t available) {
    return available - available / SESSIONS_PART;
}

static void note(fr_weights *weights, uint64_t beside) {
    const fr_memory_use *r = &weights->memory_use;
    bool stays = r->every + beside <= for_weights(weights->available);
    const char *how = "they are read again and again", *rest = "";
    char others[64] = ",";
    if (r->experts) {
        how = "experts are read from the file as they are chosen";
        rest = stays ? ", of which all but experts can stay" : ", of which not even the rest can stay";
    }
    if (beside) snprintf(others, sizeof others, " beside %.1f MB that are in use,", (double)beside / 1e6);
    fr_notes_add(&weights->notes,
                 "%s: %.1f MB of weights%s and memory has %.1f MB left: %s; every token reads %.1f MB%s",
                 weights->files->path, (double)(r->own + r->mapped) / 1e6, others, (double)weights->available / 1e6,
                 how, (double)(r->every + r->token) / 1e6, rest);
}

/* Compares the weights with the available memory. If the weights of `beside` are in memory already, the available
 * memory that the system reports does not include their copies any more. If they are not in memory yet, the memory for
 * these copies is subtracted here. */
void fr_weights_compare(fr_weights *weights, fr_mixture_size experts, const fr_weights *beside, uint64_t available) {
    uint64_t to_come = beside && !beside->placed ? beside->memory_use.own : 0;
    uint64_t mapped = beside ? beside->memory_use.mapped : 0;
    const fr_memory_use *r = &weights->memory_use;
    weights->memory_use = sum_memory_use(weights, experts);
    weights->available = available - fr_smaller(to_come, available);
    weights->exceed = r->own + r->mapped + mapped > for_weights(weights->available);
    if (weights->exceed) note(weights, mapped);
}

void fr_weights_count_rest(fr_weights *weights, const fr_weights *of, const fr_matrix *matrix) {
    const fr_bound *shared = fr_bound_find_rank_share(of, matrix);
    uint64_t rest = shared ? fr_bound_foreign_bytes(of, shared) : 0;
    bool mapped = shared && !shared->packed && is_mapped(of, shared);
    *(mapped ? &weights->memory_use.mapped : &weights->memory_use.own) += rest;
    weights->memory_use.stays += rest;
}

static bool has_read_files(const fr_weights *weights) {
    for (size_t i = 0; i < weights->count; i++)
        if (!is_mapped(weights, &weights->bound[i])) return true;
    return false;
}

fr_status fr_weights_check_memory(const fr_weights *weights) {
    uint64_t own = weights->memory_use.own;
    if (own <= for_weights(weights->available)) return FR_OK;
    bool reads = has_read_files(weights);
    const char *advice = reads                  ? ": mapped files would be used as they lie"
                         : weights->packed.used ? ": `forerun pack` writes a file that is used as it lies"
                                                : "";
    return fr_fail_about(reads ? FR_OPT_MMAP : FR_OPT_COUNT, FR_MEMORY,
                         "%s: %.1f MB of its weights would have to be copied into memory, which has %.1f MB left%s",
                         weights->files->path, (double)own / 1e6, (double)weights->available / 1e6, advice);
}

fr_status fr_weights_check_limit(const fr_weights *weights, uint64_t others, uint64_t limit) {
    uint64_t stays = weights->memory_use.stays;
    if (limit == 0 || stays + others <= limit) return FR_OK;
    return fr_fail_about(
        FR_OPT_MEMORY, FR_MEMORY, "%s: %.1f MB of weights must stay in memory, which is limited to %.1f MB%s",
        weights->files->path, (double)stays / 1e6, (double)limit / 1e6, others ? ", its target's among them" : "");
}
