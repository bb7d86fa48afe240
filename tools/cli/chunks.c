/* Cuts a text into chunks (chunks.h). */
#include "tools/cli/chunks.h"

#include "tools/cli/output.h"

#define USUAL_IDS 512

static size_t limit_of(const fr_loaded *loaded) {
    return (size_t)fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT);
}

size_t fr_chunks_ids(const fr_loaded *loaded, const fr_arguments *args) {
    size_t limit = limit_of(loaded), wanted = (size_t)args->number[FR_ARG_CHUNK_IDS];
    if (args->given[FR_ARG_CHUNK_IDS]) return wanted ? wanted : limit;
    return limit < USUAL_IDS ? limit : USUAL_IDS;
}

int fr_chunks_check_model(const fr_loaded *loaded, size_t ids) {
    size_t limit = limit_of(loaded);
    if (ids <= limit) return 0;
    return fr_bad_input("a chunk of %zu ids is beyond the model's %zu positions", ids, limit);
}

int fr_chunks_check_text(const fr_arguments *args, size_t count, size_t ids) {
    if (count >= ids) return 0;
    return fr_bad_input("%s has %zu ids, and a chunk takes %zu: lower -c", args->text[FR_ARG_FILE], count, ids);
}

size_t fr_chunks_most(const fr_arguments *args, size_t chunks) {
    size_t most = (size_t)args->number[FR_ARG_CHUNKS];
    return args->given[FR_ARG_CHUNKS] && chunks > most ? most : chunks;
}
