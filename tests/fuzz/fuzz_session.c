/* libFuzzer's target for saved sessions. The input is the file of a session. It is restored into a session, which then
 * continues.
 *
 * In: any bytes. If a file is refused, it is tried again with its model, length and hash corrected, because wrong ones
 * would hide most damage. The corrected file has as many bytes of caches as its head states (the missing bytes are
 * zeros), and an attachment if its version has one. Out: a crash if a sanitizer finds an error. */
#include "base/hash.h"
#include "src/engine/session/fingerprint.h"
#include "src/engine/session/state.h"
#include "tests/fuzz/harness.h"

#define MODEL "tests/data/models/gemma4-dense-odd"

#define LARGEST ((size_t)4 << 20)

/* The head of the file, which session_file.h describes. */
typedef struct head {
    char magic[8];
    uint32_t version, k_type, v_type, checkpoints;
    uint64_t model, length, frontier, from;
} head;

typedef struct bounds {
    uint64_t from, position;
} bounds;

/* Opens a session. Its context is longer than the positions that its sliding layers keep. */
static fr_session *open_session(uint64_t *fingerprint) {
    static fr_checkpoint files;
    fr_session *session = NULL;
    fr_options *options = fr_options_new();
    fuzz_open_files(&files, MODEL);
    fr_model *model = fuzz_model_open(&files);
    if (!options || !model || fr_options_set(options, FR_OPT_CONTEXT, 192) != FR_OK ||
        fr_options_set(options, FR_OPT_CHUNK, 8) != FR_OK || fr_options_set(options, FR_OPT_IGNORE_EOS, 1) != FR_OK ||
        fr_fingerprint(model, fingerprint) != FR_OK || fr_session_open(model, NULL, options, &session) != FR_OK ||
        !session->cache.kv.keeps)
        die(fr_last_error(), "");
    fr_options_free(options);
    return session;
}

static void go_on(fr_session *session) {
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted, size;
    const void *attached = fr_session_attached(session, &size);
    if ((size > 0) != (attached != NULL) || fr_session_attach(session, attached, size) != FR_OK) abort();
    for (int step = 0; step < 2; step++)
        if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
    if (refused(fr_session_truncate(session, fr_session_length(session) * 3 / 4))) return;
    refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
}

/* Returns the bytes of the sliding layers' rows at the positions from `from` to end - 1. If `all` is true, adds the
 * bytes of all other layers' rows at the positions below `end`. */
static size_t cache_bytes(const fr_kv *kv, uint64_t from, uint64_t end, bool all) {
    size_t bytes = 0;
    for (size_t i = 0; i < kv->count; i++) {
        const fr_kv_layer *layer = &kv->layers[i];
        size_t position = layer->heads * (layer->k.bytes + layer->v.bytes);
        if (layer->kind == FR_KV_SLIDING)
            bytes += position * (size_t)(end - from);
        else if (all)
            bytes += position * (size_t)end;
    }
    return bytes;
}

/* Computes the file's length without the hash from the file's head and the bounds of its checkpoints. Returns 0 if the
 * head or the bounds are impossible. */
static size_t length_of(const fr_session *session, const uint8_t *bytes, size_t size) {
    head h;
    memcpy(&h, bytes, sizeof h);
    if (h.length > session->context || h.frontier > h.length || h.from > h.frontier || h.checkpoints > 64) return 0;
    size_t at = sizeof h + (size_t)h.length * sizeof(int32_t), total = at + h.checkpoints * sizeof(bounds);
    total += cache_bytes(&session->cache.kv, h.from, h.frontier, true);
    for (size_t i = 0; i < h.checkpoints && at + sizeof(bounds) <= size; i++, at += sizeof(bounds)) {
        bounds b;
        memcpy(&b, bytes + at, sizeof b);
        if (b.from > b.position || b.position > h.length) return 0;
        total += cache_bytes(&session->cache.kv, b.from, b.position, false);
    }
    return h.version == 2 && size > total ? size : total;
}

/* Writes the file with corrections, so that it looks as if this model had saved it. */
static bool seal(const fuzz_file *file, const fr_session *session, const uint8_t *bytes, size_t size,
                 uint64_t fingerprint) {
    size_t length = size < sizeof(head) ? 0 : length_of(session, bytes, size);
    if (!length || length > LARGEST) return false;
    uint8_t *sealed = calloc(length, 1);
    if (!sealed) die("no memory for", "a session");
    memcpy(sealed, bytes, size < length ? size : length);
    memcpy(sealed + offsetof(head, model), &fingerprint, sizeof fingerprint);
    uint64_t hash = fr_hash(0, sealed, length);
    fuzz_file_write(file, sealed, length, &hash, sizeof hash);
    free(sealed);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_session *session;
    static fuzz_file file;
    static uint64_t fingerprint;
    if (!session) {
        session = open_session(&fingerprint);
        file = fuzz_file_new();
    }
    fuzz_file_write(&file, bytes, size, NULL, 0);
    fr_status status = fr_session_restore(session, file.path);
    if (refused(status) && seal(&file, session, bytes, size, fingerprint))
        status = fr_session_restore(session, file.path);
    if (refused(status)) return 0;
    fuzz_inputs_read++;
    go_on(session);
    return 0;
}
