/* Saves a session's timeline and caches to a file, and restores the session from the file.
 *
 * In: a session to save, or a file to restore it from. The file is not trusted: it may hold any bytes. Out: a file that
 * is either complete or absent; a session that continues bit for bit as a fresh one would after a prompt of the same
 * ids. Threads, instruction set, chunk, context and drafter may differ from those of the session that was saved: caches
 * are stored in the order of positions, whatever their order in memory was. Model and cache types must be the same.
 *     header       fr_session_head
 *     ids          int32[length]
 *     bounds       fr_saved_bounds[checkpoints]
 *     caches       of each layer keys, then values: [heads][positions] rows; positions 0 to `frontier`; of sliding
 *                  layers only `from` to `frontier`
 *     checkpoints  the same for each checkpoint: only the sliding layers, with the checkpoint's own bounds
 *     attached     the caller's own bytes, up to the end, in versions 2 and 3; version 1 has none
 *     bound        float64 in version 3: mirostat's bound
 *     u64          hash of everything before it (fr_hash)
 * Little-endian, no padding. The frontier is at most length - 1, because the last id must be run again for its
 * logits. */
#ifndef FR_SRC_ENGINE_SESSION_SESSION_FILE_H
#define FR_SRC_ENGINE_SESSION_SESSION_FILE_H

#include "src/engine/session/state.h"

/* These do the work of fr_session_save and fr_session_restore of forerun.h, to a file and to memory. */
fr_status fr_session_write(const fr_session *session, const char *path);
fr_status fr_session_read(fr_session *session, const char *path);
fr_status fr_session_write_bytes(const fr_session *session, void **bytes, size_t *size);
fr_status fr_session_read_bytes(fr_session *session, const void *bytes, size_t size);

/* fr_session_set_aside swaps the session out to memory that it owns, and fr_session_take_up swaps it in again. In
 * between, the session is empty. Swapping in needs free pages. A failure changes nothing. With ranks, each rank stores
 * only its own heads. */
fr_status fr_session_set_aside(fr_session *session);
fr_status fr_session_take_up(fr_session *session);

/* fr_session_copy_attached copies the caller's own bytes (NULL for none). fr_session_replace_attached attaches such a
 * copy, in place of the bytes that were attached before. */
fr_status fr_session_copy_attached(const void *bytes, size_t size, void **copy);
void fr_session_replace_attached(fr_session *session, void *copy, size_t size);

#endif
