/* libFuzzer's target for saved sessions: any bytes as the file, restored into a session that then goes on.
 *
 * In: bytes; a file that is refused also with its hash and its model put right, which would hide most damage otherwise.
 * Out: nothing, unless the sanitizers find something. */
#include "src/fingerprint.h"
#include "tests/fuzz/harness.h"

#define MODEL "tests/data/models/gemma4-dense-odd"

#define MODEL_AT 24 /* of the fingerprint, in the file's head */

static fr_session *open_session(uint64_t *fingerprint) {
    static fr_checkpoint files;
    fr_session *session;
    fuzz_open_files(&files, MODEL);
    fr_model *model = fuzz_model_open(&files);
    if (!model || fr_fingerprint(model, fingerprint) != FR_OK ||
        fr_session_open(model, NULL, fuzz_options(), &session) != FR_OK)
        die(fr_last_error(), "");
    return session;
}

static void go_on(fr_session *session) {
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    for (int step = 0; step < 2; step++)
        if (refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted))) break;
    if (refused(fr_session_truncate(session, fr_session_length(session) / 2))) return;
    refused(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
}

/* Writes the file as one that was saved of this model. */
static void seal(const fuzz_file *file, const uint8_t *bytes, size_t size, uint64_t fingerprint) {
    uint8_t *sealed = malloc(size);
    if (!sealed) die("no memory for", "a session");
    memcpy(sealed, bytes, size);
    memcpy(sealed + MODEL_AT, &fingerprint, sizeof fingerprint);
    uint64_t hash = fr_hash(0, sealed, size - sizeof hash);
    memcpy(sealed + size - sizeof hash, &hash, sizeof hash);
    fuzz_file_write(file, sealed, size, NULL, 0);
    free(sealed);
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
    if (refused(status) && size >= MODEL_AT + 2 * sizeof fingerprint) {
        seal(&file, bytes, size, fingerprint);
        status = fr_session_restore(session, file.path);
    }
    if (refused(status)) return 0;
    fuzz_inputs_read++;
    go_on(session);
    return 0;
}
