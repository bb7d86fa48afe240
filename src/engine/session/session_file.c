/* Saves a session to a file, and restores it: see session_file.h. */
#include "src/engine/session/session_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/hash.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "base/temporary_file.h"
#include "src/engine/layers/trunk.h"
#include "src/engine/session/fingerprint.h"
#include "src/engine/session/mean_keys.h"
#include "src/engine/session/timeline.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

#define VERSION         1    /* version of a file without attached bytes */
#define VERSION_MORE    2    /* version of a file with attached bytes */
#define VERSION_BOUND   3    /* version of a file with attached bytes, and mirostat's bound after them */
#define CHECKPOINTS_MAX 1024 /* most checkpoints that a file may have */
#define IN_MEMORY       "a session in memory" /* stands for a path in error lines */

typedef struct fr_session_head {
    char magic[8];
    uint32_t version, k_type, v_type, checkpoints;
    uint64_t model; /* the fingerprint of the model */
    uint64_t length, frontier, from;
} fr_session_head;

typedef struct fr_saved_bounds {
    uint64_t from, position; /* the checkpoint holds positions [from, position) of sliding layers */
} fr_saved_bounds;

static const char magic[8] = "frsessn";

static uint32_t version_of(const fr_session *s) {
    if (fr_sampler_moved(&s->sampling.sampler)) return VERSION_BOUND;
    return s->saving.attached_size ? VERSION_MORE : VERSION;
}

fr_status fr_session_copy_attached(const void *bytes, size_t size, void **copy) {
    *copy = size ? malloc(size) : NULL;
    if (size && !*copy) return fr_fail_memory("attached bytes", size);
    if (size) memcpy(*copy, bytes, size);
    return FR_OK;
}

void fr_session_replace_attached(fr_session *s, void *copy, size_t size) {
    free(s->saving.attached);
    s->saving.attached = copy;
    s->saving.attached_size = size;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef struct fr_sink {
    FILE *file; /* NULL: the session is written to memory from malloc */
    uint8_t *memory;
    size_t length, capacity;
    uint64_t hash;
    int error;   /* error number of the first write that failed */
    size_t held; /* bytes that still have to be hashed and written */
    uint8_t bytes[1 << 16];
    /* NULL: heads of other ranks are written as zeros. If not NULL, the ranks send each other the heads that they
     * store, and all heads are written. */
    fr_ranks *ranks;
    const fr_model *model;
    uint8_t told[1 << 14]; /* bytes that a rank sends to all other ranks, or gets from another rank */
} fr_sink;

/* Appends bytes in memory. The capacity doubles, so that appending n bytes copies O(n) bytes in all. */
static void append(fr_sink *sink, const void *bytes, size_t size) {
    size_t capacity = fr_larger(2 * sink->capacity, sizeof sink->bytes);
    if (sink->length + size > sink->capacity) {
        uint8_t *memory = realloc(sink->memory, capacity);
        if (!memory) sink->error = ENOMEM;
        if (!memory) return;
        sink->memory = memory;
        sink->capacity = capacity;
    }
    memcpy(sink->memory + sink->length, bytes, size);
    sink->length += size;
}

/* Writes bytes to the file or to memory. size is at most sizeof sink->bytes. */
static void hand_on(fr_sink *sink, const void *bytes, size_t size) {
    if (sink->error) return;
    if (!sink->file)
        append(sink, bytes, size);
    else if (fwrite(bytes, 1, size, sink->file) != size)
        sink->error = errno;
}

static void flush(fr_sink *sink) {
    sink->hash = fr_hash(sink->hash, sink->bytes, sink->held);
    hand_on(sink, sink->bytes, sink->held);
    sink->held = 0;
}

static void put(fr_sink *sink, const void *bytes, size_t size) {
    for (const uint8_t *at = bytes; size > 0 && !sink->error;) {
        size_t part = fr_smaller(size, sizeof sink->bytes - sink->held);
        memcpy(sink->bytes + sink->held, at, part);
        sink->held += part;
        at += part;
        size -= part;
        if (sink->held == sizeof sink->bytes) flush(sink);
    }
}

/* Gives the slot of a position in a head; NULL if another rank stores the head. head: number among the heads of all
 * ranks. */
static uint8_t *slot_of(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t head, size_t position) {
    if (head < layer->first || head >= layer->first + layer->heads) return NULL;
    return fr_kv_slot(layer, rows, head - layer->first, position);
}

/* Writes bytes that only the rank `keeper` has. That rank sends the bytes to the other ranks, which pass NULL. */
static void put_told(fr_sink *sink, fr_ranks *ranks, size_t keeper, const uint8_t *bytes, size_t size) {
    for (size_t at = 0, part; at < size; at += part) {
        part = fr_smaller(size - at, sizeof sink->told);
        if (bytes) memcpy(sink->told, bytes + at, part);
        fr_ranks_hand_on(ranks, keeper, FR_RANKS_ALL, &(fr_ranks_block){sink->told, part, 1, part}, 1);
        put(sink, sink->told, part);
    }
}

static void put_zeros(fr_sink *sink, size_t size) {
    static const uint8_t zeros[256];
    for (size_t part; size > 0; size -= part) {
        part = fr_smaller(size, sizeof zeros);
        put(sink, zeros, part);
    }
}

/* Writes a head of KV layer `kv`. head: its number among the heads of all ranks. */
static void put_head(fr_sink *sink, size_t kv, size_t head, const fr_kv_layer *layer, const fr_kv_rows *rows,
                     size_t from, size_t end) {
    fr_ranks *ranks = sink->ranks;
    size_t keeper = ranks ? fr_trunk_head_keeper(&sink->model->trunk, ranks, kv, head) : 0;
    for (size_t p = from, run; p < end; p += run) {
        const uint8_t *slot = slot_of(layer, rows, head, p);
        run = fr_kv_run(p, end);
        if (ranks)
            put_told(sink, ranks, keeper, slot, run * rows->bytes);
        else if (slot)
            put(sink, slot, run * rows->bytes);
        else
            put_zeros(sink, run * rows->bytes);
    }
}

static void put_layer(fr_sink *sink, size_t kv, const fr_kv_layer *layer, size_t from, size_t end) {
    for (size_t head = 0; head < layer->all; head++) put_head(sink, kv, head, layer, &layer->k, from, end);
    for (size_t head = 0; head < layer->all; head++) put_head(sink, kv, head, layer, &layer->v, from, end);
}

static bool slides(const fr_kv_layer *layer) {
    return layer->kind == FR_KV_SLIDING;
}

/* Writes recurrent states in the layout of a checkpoint's page. For each layer, its states come first, then its inputs
 * before the position. */
static void put_states(fr_sink *sink, const fr_recurrent *r) {
    static const uint8_t zeros[64];
    size_t left = r->pages->bytes;
    for (size_t i = 0; i < r->count; i++) {
        const fr_recurrent_layer *layer = &r->layers[i];
        size_t states = (layer->history_at - layer->state_at) * sizeof(float);
        size_t input = layer->shape.channels * sizeof(float);
        put(sink, (const float *)r->base + layer->state_at, states);
        for (size_t back = layer->shape.conv_kernel - 1; back > 0; back--)
            put(sink, fr_recurrent_slot(r, layer, r->at < back ? 0 : r->at - back), input);
        left -= states + (layer->shape.conv_kernel - 1) * input;
    }
    put(sink, zeros, left);
}

/* Returns true if the keys in the cache were rotated with other frequencies than a text of this length needs. Such
 * caches are not saved, because a reader of the file finds the frequencies only by the text's length. */
static bool has_other_rope(const fr_session *s) {
    size_t most = s->model->trunk.rope_near_max;
    return most && s->cache.kv.rope_far != (s->length > most);
}

static void put_caches(fr_sink *sink, const fr_session *s, size_t frontier, size_t checkpoints) {
    const fr_kv *kv = &s->cache.kv;
    for (size_t i = 0; i < kv->count; i++)
        put_layer(sink, i, &kv->layers[i], slides(&kv->layers[i]) ? kv->from : 0, frontier);
    if (frontier && kv->recurrent.count) put_states(sink, &kv->recurrent);
    for (size_t n = 0; n < checkpoints; n++) {
        const fr_kv_checkpoint *checkpoint = &s->cache.checkpoints.at[n];
        for (size_t i = 0; i < kv->count; i++) {
            if (!slides(&kv->layers[i])) continue;
            fr_kv_layer layer = fr_kv_checkpoint_layer(checkpoint, &kv->layers[i]);
            put_layer(sink, i, &layer, checkpoint->from, checkpoint->position);
        }
        if (checkpoint->states) put(sink, checkpoint->states, kv->recurrent.pages->bytes);
    }
}

static void put_session(fr_sink *sink, const fr_session *s, uint64_t model) {
    size_t frontier = s->length ? fr_smaller(s->cache.kv.length, s->length - 1) : 0;
    /* With recurrent layers, only the positions up to the position of the stored states are saved. The later positions
     * are run again when the session is restored. */
    if (s->cache.kv.recurrent.count) frontier = s->cache.kv.recurrent.at;
    size_t checkpoints = s->cache.checkpoints.count;
    if (has_other_rope(s)) frontier = checkpoints = 0;
    fr_session_head head = {.version = version_of(s),
                            .k_type = (uint32_t)fr_kv_type_index(s->engine->kv_types.k),
                            .v_type = (uint32_t)fr_kv_type_index(s->engine->kv_types.v),
                            .checkpoints = (uint32_t)checkpoints,
                            .model = model,
                            .length = s->length,
                            .frontier = frontier,
                            .from = fr_smaller(s->cache.kv.from, frontier)};
    memcpy(head.magic, magic, sizeof magic);
    put(sink, &head, sizeof head);
    put(sink, s->ids, s->length * sizeof *s->ids);
    for (size_t i = 0; i < checkpoints; i++) {
        fr_saved_bounds bounds = {s->cache.checkpoints.at[i].from, s->cache.checkpoints.at[i].position};
        put(sink, &bounds, sizeof bounds);
    }
    put_caches(sink, s, frontier, checkpoints);
    put(sink, s->saving.attached, s->saving.attached_size);
    if (head.version == VERSION_BOUND) put(sink, &s->sampling.sampler.mu, sizeof s->sampling.sampler.mu);
    flush(sink);
    hand_on(sink, &sink->hash, sizeof sink->hash);
}

static fr_status can_not(const char *path, const char *what) {
    if (errno == ENOMEM) return fr_fail_memory(path, 0);
    return fr_fail(FR_INPUT, "%s: can't be %s: %s", path, what, strerror(errno));
}

/* Writes a temporary file and flushes it to disk. Only then the file is renamed to `path`, so that no reader finds an
 * incomplete file. The file stays locked until it has this name. */
static fr_status write_named(const fr_session *s, uint64_t model, int fd, const char *temporary, const char *path) {
    int own = dup(fd);
    fr_sink sink = {.file = own < 0 ? NULL : fdopen(own, "wb"), .ranks = s->model->ranks, .model = s->model};
    if (!sink.file) {
        fr_status status = can_not(path, "written");
        if (own >= 0) close(own);
        return status;
    }
    put_session(&sink, s, model);
    if (fclose(sink.file) != 0 && !sink.error) sink.error = errno;
    FR_TRY(fr_ranks_check(s->model->ranks));
    if (!sink.error) sink.error = fr_temporary_keep(fd, temporary, path);
    errno = sink.error;
    return sink.error ? can_not(path, "written") : FR_OK;
}

static fr_status check_pictures(const fr_session *s, const char *where) {
    for (size_t i = 0; i < s->length; i++)
        if (s->ids[i] == s->model->image_token)
            return fr_fail(FR_INPUT, "%s: a session with pictures can't be saved yet", where);
    return FR_OK;
}

/* Gives the fingerprint of the session's model. It includes the session's adapters and the means that were subtracted
 * from its keys. */
static fr_status fingerprint_of(const fr_session *s, uint64_t *model) {
    FR_TRY(fr_fingerprint(s->model, model));
    if (s->adapters.count) *model = fr_hash(*model, &s->cache.plain, sizeof s->cache.plain);
    *model = fr_mean_keys_hash(s->engine, *model);
    return FR_OK;
}

/* Checks that the session can be saved, and gives the fingerprint of its model. */
static fr_status check_savable(const fr_session *s, const char *where, uint64_t *model) {
    FR_TRY(check_pictures(s, where));
    if (s->model->ranks && s->cache.kv.recurrent.count)
        return fr_fail(FR_UNBUILT, "%s: states of a model run by ranks can't be saved: each has those of its heads",
                       where);
    return fingerprint_of(s, model);
}

static fr_status write_to(const fr_session *s, uint64_t model, const char *path) {
    char temporary[PATH_MAX];
    int fd = fr_temporary_open(path, temporary, sizeof temporary, 0600);
    if (fd < 0) return can_not(path, "written");
    fr_status status = write_named(s, model, fd, temporary, path);
    if (status != FR_OK) unlink(temporary);
    close(fd);
    return status;
}

/* Saves the session. If the path is a symbolic link, the file that it names is replaced, and the link stays. */
fr_status fr_session_write(const fr_session *s, const char *path) {
    struct stat info;
    uint64_t model;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fr_fail(FR_INPUT, "%s is no regular file: a session can't be saved there", path);
    FR_TRY(check_savable(s, path, &model));
    char *place = fr_file_place(path);
    if (!place) return can_not(path, "written");
    fr_status status = write_to(s, model, place);
    free(place);
    return status;
}

/* Saves the session to memory. If told is true, the heads that other ranks store are written too, as in a file;
 * otherwise these heads are zeros. */
static fr_status write_memory(const fr_session *s, uint64_t model, bool told, void **bytes, size_t *size) {
    fr_sink sink = {.file = NULL, .ranks = told ? s->model->ranks : NULL, .model = s->model};
    put_session(&sink, s, model);
    fr_status status = fr_ranks_check(s->model->ranks);
    if (status == FR_OK && sink.error) status = fr_fail_memory(IN_MEMORY, fr_kv_bytes(&s->cache.kv));
    if (status != FR_OK) {
        free(sink.memory);
        return status;
    }
    *bytes = sink.memory;
    *size = sink.length;
    return FR_OK;
}

fr_status fr_session_write_bytes(const fr_session *s, void **bytes, size_t *size) {
    uint64_t model;
    FR_TRY(check_savable(s, IN_MEMORY, &model));
    return write_memory(s, model, true, bytes, size);
}

/* ---------------------------------------------------------------------------------------------------------- reading */

/* A saved session that has been checked: it is of this model, has these cache types and fits this context. */
typedef struct fr_saved {
    const fr_map *map;
    fr_session_head head;
    const uint8_t *ids, *bounds, *caches; /* parts of the file, which are not aligned */
    size_t attached_size;                 /* bytes attached after the caches */
    double bound;                         /* mirostat's bound; NaN: the file has none */
} fr_saved;

static fr_saved_bounds bounds_of(const fr_saved *saved, size_t index) {
    fr_saved_bounds bounds;
    memcpy(&bounds, saved->bounds + index * sizeof bounds, sizeof bounds);
    return bounds;
}

static size_t layer_bytes(const fr_kv_layer *layer, uint64_t from, uint64_t end) {
    return layer->all * (layer->k.bytes + layer->v.bytes) * (size_t)(end - from);
}

static size_t states_bytes(const fr_kv *kv) {
    return kv->recurrent.count ? kv->recurrent.pages->bytes : 0;
}

/* Counts the bytes of a checkpoint. It has positions of the sliding layers, and recurrent states. */
static size_t checkpoint_bytes(const fr_kv *kv, uint64_t from, uint64_t end) {
    size_t bytes = states_bytes(kv);
    for (size_t i = 0; i < kv->count; i++)
        if (slides(&kv->layers[i])) bytes += layer_bytes(&kv->layers[i], from, end);
    return bytes;
}

static fr_status damaged(const fr_saved *saved) {
    return fr_fail(FR_INPUT, "%s is damaged: its sizes or its hash are not right", saved->map->path);
}

/* Checks the file's head against this session. */
static fr_status check_head(const fr_session *s, const fr_saved *saved) {
    const fr_session_head *head = &saved->head;
    const char *path = saved->map->path;
    uint64_t model;
    if (memcmp(head->magic, magic, sizeof magic) != 0) return fr_fail(FR_INPUT, "%s is no saved session", path);
    if (head->version < VERSION || head->version > VERSION_BOUND)
        return fr_fail(FR_INPUT, "%s: a saved session of version %u, not %d to %d", path, head->version, VERSION,
                       VERSION_BOUND);
    FR_TRY(fingerprint_of(s, &model));
    if (head->model != model)
        return fr_fail(FR_INPUT,
                       "%s is a session of another model than %s, with other adapters, or of a forerun with other "
                       "numerics",
                       path, s->model->files.path);
    const fr_kv_types types = s->engine->kv_types;
    if (head->k_type != fr_kv_type_index(types.k) || head->v_type != fr_kv_type_index(types.v))
        return fr_fail(FR_INPUT, "%s was saved with other types of cached keys or values than this session's %s and %s",
                       path, fr_dtype_name(types.k), fr_dtype_name(types.v));
    if (head->length > s->context)
        return fr_fail_about(FR_OPT_CONTEXT, FR_INPUT, "%s holds %llu tokens, the context %zu", path,
                             (unsigned long long)head->length, s->context);
    if (head->frontier > head->length || (head->length && head->frontier == head->length)) return damaged(saved);
    if (head->from > head->frontier || head->checkpoints > CHECKPOINTS_MAX) return damaged(saved);
    return FR_OK;
}

/* Checks the bytes between the caches and the hash: the attached bytes and mirostat's bound. */
static fr_status check_rest(fr_saved *saved, size_t left) {
    saved->attached_size = left;
    saved->bound = NAN;
    if (saved->head.version == VERSION) return left ? damaged(saved) : FR_OK;
    if (saved->head.version == VERSION_MORE) return FR_OK;
    if (left < sizeof saved->bound) return damaged(saved);
    saved->attached_size -= sizeof saved->bound;
    memcpy(&saved->bound, saved->map->bytes + saved->map->size - sizeof(uint64_t) - sizeof saved->bound,
           sizeof saved->bound);
    return isfinite(saved->bound) ? FR_OK : damaged(saved);
}

/* Finds where the parts of the file begin, and checks that the parts and the hash fill the file. No sum overflows:
 * every position is below the context, and the sizes of caches for the whole context are known to fit in memory. */
static fr_status check_sizes(const fr_session *s, fr_saved *saved) {
    const fr_session_head *head = &saved->head;
    const fr_map *map = saved->map;
    size_t fixed = sizeof *head + (size_t)head->length * sizeof(int32_t) + head->checkpoints * sizeof(fr_saved_bounds);
    if (map->size < fixed + sizeof(uint64_t)) return damaged(saved);
    saved->ids = map->bytes + sizeof *head;
    saved->bounds = saved->ids + head->length * sizeof(int32_t);
    saved->caches = map->bytes + fixed;
    size_t left = map->size - fixed - sizeof(uint64_t);
    size_t caches = head->frontier ? states_bytes(&s->cache.kv) : 0;
    for (size_t i = 0; i < s->cache.kv.count; i++)
        caches += layer_bytes(&s->cache.kv.layers[i], slides(&s->cache.kv.layers[i]) ? head->from : 0, head->frontier);
    if (caches > left) return damaged(saved);
    left -= caches;
    for (size_t i = 0; i < head->checkpoints; i++) {
        fr_saved_bounds bounds = bounds_of(saved, i);
        if (bounds.from > bounds.position || bounds.position > head->length) return damaged(saved);
        size_t bytes = checkpoint_bytes(&s->cache.kv, bounds.from, bounds.position);
        if (bytes > left) return damaged(saved);
        left -= bytes;
    }
    return check_rest(saved, left);
}

static fr_status check_content(const fr_session *s, const fr_saved *saved) {
    size_t size = saved->map->size - sizeof(uint64_t);
    uint64_t hash;
    memcpy(&hash, saved->map->bytes + size, sizeof hash);
    if (hash != fr_hash(0, saved->map->bytes, size)) return damaged(saved);
    for (size_t i = 0; i < saved->head.length; i++) {
        int32_t id;
        memcpy(&id, saved->ids + i * sizeof id, sizeof id);
        if (id < 0 || (size_t)id >= s->model->trunk.spec.vocab) return damaged(saved);
    }
    return FR_OK;
}

/* Copies saved rows of positions [first, end) into the cache, for the heads that this rank stores. bytes: the saved
 * rows of all heads, each with positions [from, end). Returns the bytes after these rows. */
static const uint8_t *take_rows(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t from, size_t first, size_t end,
                                const uint8_t *bytes) {
    for (size_t head = 0; head < layer->all; head++, bytes += (end - from) * rows->bytes)
        for (size_t p = first, run; p < end; p += run) {
            uint8_t *slot = slot_of(layer, rows, head, p);
            run = fr_kv_run(p, end);
            if (slot) memcpy(slot, bytes + (p - from) * rows->bytes, run * rows->bytes);
        }
    return bytes;
}

static const uint8_t *take_layer(const fr_kv_layer *layer, size_t from, size_t first, size_t end,
                                 const uint8_t *bytes) {
    bytes = take_rows(layer, &layer->k, from, first, end, bytes);
    return take_rows(layer, &layer->v, from, first, end, bytes);
}

/* Restores a checkpoint if a session with this window can use the checkpoint; otherwise skips it. */
static const uint8_t *take_checkpoint(fr_session *s, fr_saved_bounds bounds, const uint8_t *bytes) {
    fr_kv *kv = &s->cache.kv;
    size_t from = fr_kv_held_from(kv, (size_t)bounds.from, (size_t)bounds.position), position = (size_t)bounds.position;
    size_t last = s->cache.checkpoints.count ? s->cache.checkpoints.at[s->cache.checkpoints.count - 1].position : 0;
    bool useful = position >= last && (from == 0 || from + kv->window <= position);
    fr_kv_checkpoint *checkpoint = useful ? fr_kv_checkpoints_restore(&s->cache.checkpoints, kv, position, from) : NULL;
    if (!checkpoint) return bytes + checkpoint_bytes(kv, bounds.from, bounds.position);
    for (size_t i = 0; i < kv->count; i++) {
        if (!slides(&kv->layers[i])) continue;
        fr_kv_layer layer = fr_kv_checkpoint_layer(checkpoint, &kv->layers[i]);
        bytes = take_layer(&layer, (size_t)bounds.from, from, position, bytes);
    }
    if (checkpoint->states) memcpy(checkpoint->states, bytes, states_bytes(kv));
    return bytes + states_bytes(kv);
}

static fr_status copy_attached(const fr_saved *saved, void **copy) {
    const uint8_t *end = saved->map->bytes + saved->map->size - sizeof(uint64_t);
    if (saved->head.version == VERSION_BOUND) end -= sizeof saved->bound;
    return fr_session_copy_attached(end - saved->attached_size, saved->attached_size, copy);
}

/* Adds `change` to the holder counts of the session's own pages of a kind. The caller first passes -1 and later +1.
 * Between the two calls, pages are counted as if the session had given up its own pages. */
static void recount(fr_session *s, fr_kv_kind kind, int change) {
    fr_kv *kv = &s->cache.kv;
    fr_kv_pages_recount(&kv->pages[kind], kv->table[kind], kv->blocks, change);
    for (size_t i = 0; kind == FR_KV_SLIDING && i < s->cache.checkpoints.count; i++)
        fr_kv_pages_recount(&kv->pages[kind], s->cache.checkpoints.at[i].pages, kv->blocks, change);
}

/* Checks that there will be enough pages after the session has given up its own pages. The restored session needs pages
 * for positions [from, end) of sliding layers and [0, end) of all other layers. The only session of an engine always
 * has enough pages. */
static fr_status check_pages(fr_session *s, const fr_saved *saved, size_t from, size_t end) {
    const fr_kv *kv = &s->cache.kv;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        if (kv->page_bytes[kind] == 0) continue;
        size_t needed = fr_kv_blocks(end) - (kind == FR_KV_SLIDING ? from / FR_KV_PAGE : 0);
        recount(s, kind, -1);
        size_t unheld = fr_kv_prefixes_unheld(&s->engine->prefixes, kv, kind);
        recount(s, kind, 1);
        if (needed > unheld)
            return fr_fail(FR_MEMORY, "%s: %zu pages for keys and values are needed, others hold all but %zu of %zu",
                           saved->map->path, needed, unheld, kv->pages[kind].count);
    }
    return FR_OK;
}

/* Replaces the session's contents by those of the file. attached: a copy of the file's attached bytes, which the
 * session then owns. A failure changes nothing. */
static fr_status take(fr_session *s, const fr_saved *saved, void *attached) {
    const fr_session_head *head = &saved->head;
    size_t from = (size_t)head->from, frontier = (size_t)head->frontier,
           held = fr_kv_held_from(&s->cache.kv, from, frontier);
    const uint8_t *bytes = saved->caches;
    fr_kv *kv = &s->cache.kv;
    FR_TRY(check_pages(s, saved, held, frontier));
    FR_TRY(fr_timeline_truncate(s, 0));
    FR_TRY(fr_kv_restore(kv, held, frontier));
    fr_session_replace_attached(s, attached, saved->attached_size);
    fr_sampler_restore(&s->sampling.sampler, saved->bound);
    s->cache.restored = true;
    s->length = (size_t)head->length;
    s->phase = s->length ? FR_PHASE_PENDING : FR_PHASE_EMPTY;
    /* The ids before s->ran count as run before. A file never has caches of the last id, because the last id must be
     * run again for its logits. If only the last id lacks caches, all ids count as run before. */
    s->ran = frontier + 1 < s->length ? frontier : s->length;
    memcpy(s->ids, saved->ids, s->length * sizeof *s->ids);
    for (size_t i = 0; i < kv->count; i++)
        bytes = slides(&kv->layers[i]) ? take_layer(&kv->layers[i], from, held, frontier, bytes)
                                       : take_layer(&kv->layers[i], 0, 0, frontier, bytes);
    if (frontier && kv->recurrent.count) {
        FR_TRY(fr_recurrent_restore(&kv->recurrent, bytes, frontier));
        bytes += states_bytes(kv);
    }
    for (size_t i = 0; i < head->checkpoints; i++) bytes = take_checkpoint(s, bounds_of(saved, i), bytes);
    kv->length = frontier;
    kv->from = held;
    kv->rope_far = s->model->trunk.rope_near_max && s->length > s->model->trunk.rope_near_max;
    /* This session may look back farther than the saved one did, so the frontier moves back as far as necessary. A
     * method that follows the target has not seen the target's rows. For such a method the whole text is run again. */
    fr_kv_checkpoints_rewind(&s->cache.checkpoints, kv, s->drafting.draft->follows ? 0 : frontier);
    s->stats.value[FR_STAT_RERUN_TOKENS] += (double)(frontier - kv->length);
    fr_log_line(&s->log, FR_LOG_INFO, "%s: restored %zu tokens, %zu checkpoints", saved->map->path, s->length,
                s->cache.checkpoints.count);
    return FR_OK;
}

static fr_status read_map(fr_session *s, const fr_map *map) {
    fr_saved saved = {.map = map};
    void *attached = NULL;
    if (map->size < sizeof saved.head) return fr_fail(FR_INPUT, "%s is no saved session", map->path);
    memcpy(&saved.head, map->bytes, sizeof saved.head);
    FR_TRY(check_head(s, &saved));
    FR_TRY(check_sizes(s, &saved));
    FR_TRY(check_content(s, &saved));
    FR_TRY(copy_attached(&saved, &attached));
    fr_status status = take(s, &saved, attached);
    if (status != FR_OK) free(attached);
    return status;
}

fr_status fr_session_read(fr_session *s, const char *path) {
    fr_map map;
    FR_TRY(fr_map_open(&map, path, true));
    fr_status status = read_map(s, &map);
    fr_map_close(&map);
    return status;
}

fr_status fr_session_read_bytes(fr_session *s, const void *bytes, size_t size) {
    char path[] = IN_MEMORY;
    const fr_map map = {.bytes = bytes, .size = size, .path = path};
    return read_map(s, &map);
}

/* -------------------------------------------------------------------------------------------------------- set aside */

fr_status fr_session_set_aside(fr_session *s) {
    uint64_t model;
    void *bytes = NULL;
    size_t size = 0;
    FR_TRY(check_pictures(s, IN_MEMORY));
    FR_TRY(fingerprint_of(s, &model));
    FR_TRY(write_memory(s, model, false, &bytes, &size));
    fr_prompt_score score = s->sampling.score;
    fr_session_clear(s);
    s->sampling.score = score;
    s->saving.swapped_out = bytes;
    s->saving.swapped_out_size = size;
    return FR_OK;
}

fr_status fr_session_take_up(fr_session *s) {
    if (!s->saving.swapped_out) return fr_fail(FR_USAGE, "the session was not set aside");
    fr_prompt_score score = s->sampling.score;
    fr_status status = fr_session_read_bytes(s, s->saving.swapped_out, s->saving.swapped_out_size);
    s->sampling.score = score;
    FR_TRY(status);
    free(s->saving.swapped_out);
    s->saving.swapped_out = NULL;
    return FR_OK;
}
