/* Tests saved sessions. A restored session may run in any other way (threads, chunks, instruction set and so on). It
 * must continue like a fresh session with the same text, with the same bits. A file that is not a session of this model
 * is refused with one line and changes nothing. */
/* suite: hostile damaged native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "formats/map.h"
#include "src/engine/session/fingerprint.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define MORE 12

static char folder[32], path[64];

/* A way of running a session. It must not change the session's text. */
typedef struct manner {
    int64_t threads, chunk, context, checkpoints, swa_full;
    const char *isa;
    bool draft;
} manner;

static const manner manners[] = {
    {1, 16, 640, 8, 0, NULL, false}, {2, 64, 1000, 2, 0, NULL, true}, {1, 1, 512, 0, 0, "scalar", false},
    {3, 200, 700, 8, 0, NULL, true}, {1, 33, 600, 0, 1, NULL, true},
};
enum { MANNERS = sizeof manners / sizeof *manners };

static fr_options *options_of(const manner *m, const char *kv) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, m->threads));
    require(fr_options_set(options, FR_OPT_CHUNK, m->chunk));
    require(fr_options_set(options, FR_OPT_CONTEXT, m->context));
    require(fr_options_set(options, FR_OPT_CTX_CHECKPOINTS, m->checkpoints));
    require(fr_options_set(options, FR_OPT_SWA_FULL, m->swa_full));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    if (m->isa) require(fr_options_set_text(options, FR_OPT_ISA, m->isa));
    if (kv) require(fr_options_set_text(options, FR_OPT_KV_K, kv));
    if (kv) require(fr_options_set_text(options, FR_OPT_KV_V, kv));
    return options;
}

typedef struct engine {
    fr_reference reference;
    fr_session *session;
} engine;

static engine open_engine(const char *name, const manner *m, const char *kv) {
    engine e;
    fr_options *options = options_of(m, kv);
    fr_reference_open(&e.reference, name, options);
    require(fr_session_open(e.reference.model, m->draft ? e.reference.drafter : NULL, options, &e.session));
    fr_options_free(options);
    return e;
}

static void close_engine(engine *e) {
    fr_session_close(e->session);
    fr_reference_close(&e->reference);
}

static void make_prompt(int32_t *ids, size_t count, size_t vocab) {
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % vocab);
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got) {
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
        ck_assert_uint_ge(got, 1);
    }
}

/* Runs a prompt of `count` ids, generates `made` ids, and saves the session with an attachment. */
static void save_with(const char *name, const manner *m, const char *kv, size_t count, size_t made,
                      const char *attached) {
    int32_t ids[640];
    engine e = open_engine(name, m, kv);
    make_prompt(ids, count, e.reference.model->trunk.spec.vocab);
    if (count) require(fr_session_prompt(e.session, ids, count));
    if (made) generate(e.session, ids, made);
    if (attached) require(fr_session_attach(e.session, attached, strlen(attached)));
    require(fr_session_save(e.session, path));
    close_engine(&e);
}

static void save(const char *name, const manner *m, const char *kv, size_t count, size_t made) {
    save_with(name, m, kv, count, made, NULL);
}

/* --------------------------------------------------------------------------------------------- saving and restoring */

/* A hash of the logits after the session's text, and the ids that are generated next. */
typedef struct outcome {
    int32_t ids[MORE];
    uint64_t logits;
} outcome;

static outcome go_on(fr_session *session) {
    outcome o;
    size_t count, accepted;
    require(fr_session_step(session, o.ids, MORE, &count, &accepted));
    ck_assert_uint_eq(count, 1);
    o.logits = fr_hash(0, session->result.logits, session->model->trunk.spec.vocab * sizeof *session->result.logits);
    generate(session, o.ids + 1, MORE - 1);
    return o;
}

static outcome fresh_run(const char *name, const manner *m, const char *kv, const int32_t *ids, size_t count) {
    engine e = open_engine(name, m, kv);
    require(fr_session_prompt(e.session, ids, count));
    outcome o = go_on(e.session);
    close_engine(&e);
    return o;
}

static void check_same(const outcome *here, const outcome *there) {
    ck_assert_uint_eq(here->logits, there->logits);
    ck_assert_mem_eq(here->ids, there->ids, sizeof here->ids);
}

/* Restores the file in a session that runs in this way. Compares the ids and logits that follow with those of a fresh
 * session, first after the whole text and then after a truncation to a part of it. */
static void check_restored(const char *name, const manner *m, const char *kv) {
    int32_t ids[640];
    engine e = open_engine(name, m, kv);
    require(fr_session_restore(e.session, path));
    size_t length = fr_session_length(e.session);
    ck_assert_uint_le(length, 640);
    memcpy(ids, e.session->ids, length * sizeof *ids);
    outcome here = go_on(e.session), there = fresh_run(name, m, kv, ids, length);
    check_same(&here, &there);
    for (size_t back = 20; back < 400 && back < length; back += 150) {
        require(fr_session_restore(e.session, path));
        require(fr_session_truncate(e.session, length - back));
        here = go_on(e.session);
        there = fresh_run(name, m, kv, ids, length - back);
        check_same(&here, &there);
    }
    close_engine(&e);
}

/* A model can be run in MANNERS ways. The first model is saved in each of these ways, and each file is restored in
 * every other way. Other models are saved in every second way (in every way if FULL is set in the environment). Each of
 * their files is restored in one way, which differs from model to model. */
START_TEST(a_restored_session_equals_a_fresh_run) {
    static const char *const kv[] = {NULL, "f16", "bf16"};
    const char *name = fr_reference_long((size_t)_i);
    for (size_t from = 0; from < MANNERS; from++) {
        if ((from + (size_t)_i) % 2 && _i && !fr_test_full()) continue;
        size_t type = (from + (size_t)_i) % 3;
        save(name, &manners[from], kv[type], 300 + 20 * from, from % 2 ? 70 : 0);
        for (size_t to = 0; to < MANNERS; to++)
            if (to == (from + (size_t)_i) % MANNERS || (_i == 0 && to != from))
                check_restored(name, &manners[to], kv[type]);
    }
}
END_TEST

START_TEST(short_and_empty_timelines_come_back) {
    for (size_t count = 0; count < 4; count++) {
        save("gemma4-e", &manners[0], NULL, count, count % 2);
        engine e = open_engine("gemma4-e", &manners[1], NULL);
        int32_t ids[8];
        make_prompt(ids, 8, e.reference.model->trunk.spec.vocab);
        require(fr_session_prompt(e.session, ids, 8));
        require(fr_session_restore(e.session, path));
        ck_assert_uint_eq(fr_session_length(e.session), count + count % 2);
        size_t got, accepted;
        if (count == 0) ck_assert_int_eq(fr_session_step(e.session, ids, 1, &got, &accepted), FR_USAGE);
        close_engine(&e);
        if (count) check_restored("gemma4-e", &manners[1], NULL);
    }
}
END_TEST

/* The sliding layers of the restored session may keep fewer or more positions than those of the saved session. The
 * positions that the file contains must not be run again. */
START_TEST(little_is_run_again) {
    for (size_t to = 0; to < MANNERS; to++) {
        save("gemma4-dense", &manners[0], NULL, 500, 0);
        engine e = open_engine("gemma4-dense", &manners[to], NULL);
        require(fr_session_restore(e.session, path));
        ck_assert_uint_eq(e.session->cache.kv.length, manners[to].draft ? e.session->cache.kv.length : 499);
        ck_assert_uint_ge(e.session->cache.kv.length, 440);
        close_engine(&e);
    }
}
END_TEST

/* A caller can attach bytes to a session. They must be saved and restored with the session. */
START_TEST(what_is_attached_comes_back) {
    size_t size;
    engine e = open_engine("gemma4-e", &manners[0], NULL);
    ck_assert(fr_session_attached(e.session, &size) == NULL && size == 0);
    ck_assert_int_eq(fr_session_attach(e.session, NULL, 3), FR_USAGE);
    require(fr_session_attach(e.session, "a\0b", 3));
    fr_session_reset(e.session);
    require(fr_session_save(e.session, path));
    require(fr_session_attach(e.session, NULL, 0));
    ck_assert(fr_session_attached(e.session, &size) == NULL && size == 0);
    require(fr_session_restore(e.session, path));
    const void *attached = fr_session_attached(e.session, &size);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(attached, "a\0b", 3);
    require(fr_session_attach(e.session, attached, 2));
    save("gemma4-e", &manners[0], NULL, 5, 0);
    require(fr_session_restore(e.session, path));
    ck_assert(fr_session_attached(e.session, &size) == NULL && size == 0);
    close_engine(&e);
}
END_TEST

START_TEST(the_file_is_complete_or_not_there) {
    struct stat info;
    char command[256];
    engine e = open_engine("gemma4-e", &manners[0], NULL);
    unlink(path);
    require(fr_session_save(e.session, path));
    ck_assert(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    ck_assert_int_eq(fr_session_save(e.session, folder), FR_INPUT);
    ck_assert_int_eq(fr_session_save(e.session, "/nowhere/at/all"), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/nowhere/at/all"));
    ck_assert_int_eq(fr_session_restore(e.session, "/nowhere/at/all"), FR_INPUT);
    ck_assert_int_eq(fr_session_save(e.session, "/dev/full"), FR_INPUT);
    snprintf(command, sizeof command, "[ $(ls -A %s | wc -l) = 1 ]", folder);
    ck_assert_int_eq(system(command), 0); /* rmdir fails if a temporary file remains */
    close_engine(&e);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

static void check_refused(const char *name, const manner *m, const char *kv, const char *word) {
    engine e = open_engine(name, m, kv);
    int32_t ids[8];
    make_prompt(ids, 8, e.reference.model->trunk.spec.vocab);
    require(fr_session_prompt(e.session, ids, 8));
    ck_assert_int_eq(fr_session_restore(e.session, path), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), word) && strstr(fr_last_error(), path), "%s", fr_last_error());
    ck_assert_uint_eq(fr_session_length(e.session), 8);
    outcome here = go_on(e.session), there = fresh_run(name, m, kv, ids, 8);
    check_same(&here, &there);
    close_engine(&e);
}

START_TEST(another_model_type_or_context_is_refused) {
    manner small = manners[0];
    small.context = 100;
    save("gemma4-e", &manners[0], NULL, 120, 0);
    check_refused("gemma4-dense", &manners[0], NULL, "another model");
    check_refused("gemma4-e-odd", &manners[0], NULL, "another model");
    check_refused("gemma4-e", &manners[0], "f16", "types");
    check_refused("gemma4-e", &small, NULL, "120 tokens");
}
END_TEST

/* Changes the first byte of a tensor. The model's fingerprint covers this byte, so the fingerprint must change. */
START_TEST(one_other_weight_is_another_model) {
    engine e = open_engine("gemma4-e", &manners[0], NULL);
    const fr_checkpoint *files = &e.reference.model->files;
    const fr_tensor *tensor = &files->tensors.items[3];
    uint64_t before, after;
    fr_map copy = files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - copy.bytes);
    uint8_t *bytes = malloc(copy.size);
    memcpy(bytes, copy.bytes, copy.size);
    copy.bytes = bytes;
    fr_tensor moved = *tensor;
    moved.data = bytes + at;
    fr_model model = *e.reference.model;
    model.files.files = &copy;
    model.files.tensors = (fr_tensors){.items = &moved, .count = 1};
    require(fr_fingerprint(&model, &before));
    bytes[at] ^= 1;
    require(fr_fingerprint(&model, &after));
    ck_assert_uint_ne(before, after);
    free(bytes);
    close_engine(&e);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- hostile bytes */

typedef struct blob {
    uint8_t *bytes;
    size_t size;
} blob;

static blob read_file(void) {
    struct stat info;
    FILE *file = fopen(path, "rb");
    ck_assert(file && fstat(fileno(file), &info) == 0);
    blob b = {malloc((size_t)info.st_size), (size_t)info.st_size};
    ck_assert_uint_eq(fread(b.bytes, 1, b.size, file), b.size);
    fclose(file);
    return b;
}

static void write_file(const uint8_t *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static uint64_t state = 1;

static size_t draw(size_t limit) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 0x2545f4914f6cdd1du) >> 33) % limit;
}

START_TEST(a_damaged_file_is_refused) {
    save_with("gemma4-e", &manners[0], NULL, 200, 0, _i ? "beside it" : NULL);
    blob b = read_file();
    engine e = open_engine("gemma4-e", &manners[0], NULL);
    for (size_t i = 0; i < 300; i++) {
        size_t size = i < 100 ? draw(b.size) : b.size, at = draw(i % 2 ? 256 : b.size);
        uint8_t right = b.bytes[at];
        if (i >= 100) b.bytes[at] ^= (uint8_t)(1u << draw(8));
        write_file(b.bytes, size);
        b.bytes[at] = right;
        ck_assert_int_eq(fr_session_restore(e.session, path), FR_INPUT);
        ck_assert_msg(!strchr(fr_last_error(), '\n') && strstr(fr_last_error(), path), "%s", fr_last_error());
        ck_assert_uint_eq(fr_session_length(e.session), 0);
    }
    free(b.bytes);
    close_engine(&e);
}
END_TEST

/* Writes wrong sizes into a file and corrects its hash. The file must be refused, or read with these sizes. The test
 * must not crash, and no memory outside of the buffers may be read or written. */
START_TEST(lying_sizes_do_no_harm) {
    const char *attached = _i ? "beside it" : NULL;
    static const uint64_t words[] = {0, 1, 63, 64, 199, 200, 201, 640, UINT32_MAX, (uint64_t)1 << 61, UINT64_MAX};
    save_with("gemma4-e", &manners[0], NULL, 200, 0, attached);
    blob original = read_file(), b = {calloc(original.size + 64, 1), 0};
    size_t taken = 0, lies = fr_test_brief() ? 150 : 1500;
    engine e = open_engine("gemma4-e", &manners[0], NULL);
    for (size_t i = 0; i < lies; i++) {
        memcpy(b.bytes, original.bytes, original.size);
        b.size = original.size;
        if (draw(3) == 0) b.size = 8 + draw(b.size + 40);
        size_t at = draw(2) ? 8 + 4 * draw(14) : draw(b.size);
        size_t width = draw(2) ? 8 : 4;
        uint64_t word = words[draw(sizeof words / sizeof *words)];
        if (draw(2) && at + width <= b.size)
            memcpy(b.bytes + at, &word, width);
        else if (at + 4 <= b.size)
            b.bytes[at] ^= (uint8_t)draw(256);
        uint64_t hash = fr_hash(0, b.bytes, b.size - 8);
        memcpy(b.bytes + b.size - 8, &hash, 8);
        write_file(b.bytes, b.size);
        fr_status status = fr_session_restore(e.session, path);
        ck_assert(status == FR_OK || status == FR_INPUT);
        if (status != FR_OK || fr_session_length(e.session) == 0) continue;
        int32_t ids[4];
        size_t count, accepted;
        taken++;
        status = fr_session_step(e.session, ids, 4, &count, &accepted);
        ck_assert(status == FR_OK || status == FR_NUMERIC);
        if (draw(4) == 0) require(fr_session_truncate(e.session, draw(fr_session_length(e.session) + 1)));
    }
    ck_assert_uint_gt(taken, lies / 15);
    free(original.bytes);
    free(b.bytes);
    close_engine(&e);
}
END_TEST

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-session-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/session", folder);
}

static void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

/* A session that is saved to memory has the same bytes as its file. If some of these bytes are missing, they must be
 * refused. */
START_TEST(in_memory) {
    const char *name = fr_reference_name(0);
    char *file;
    void *bytes;
    size_t length, size;
    save(name, &manners[0], NULL, 200, 30);
    engine e = open_engine(name, &manners[0], NULL);
    require(fr_session_restore(e.session, path));
    require(fr_session_save(e.session, path));
    require(fr_session_save_bytes(e.session, &bytes, &size));
    ck_assert(fr_read_text(path, (size_t)1 << 28, &file, &length) == FR_OK);
    ck_assert_uint_eq(size, length);
    ck_assert_mem_eq(bytes, file, size);
    outcome first = go_on(e.session);
    for (size_t cut = 0; cut < size; cut += 1 + size / 97) {
        ck_assert_int_eq(fr_session_restore_bytes(e.session, bytes, cut), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "a session in memory"));
    }
    require(fr_session_restore_bytes(e.session, bytes, size));
    outcome again = go_on(e.session);
    check_same(&first, &again);
    ck_assert_int_eq(fr_session_restore_bytes(e.session, NULL, 0), FR_USAGE);
    fr_free(bytes);
    free(file);
    close_engine(&e);
}
END_TEST

FR_SUITE("session_file") {
    int fixtures = 0;
    while (fr_reference_long((size_t)fixtures)) fixtures++;
    TCase *file = tcase_create("session_file");
    tcase_set_timeout(file, 300);
    tcase_add_checked_fixture(file, make_folder, remove_folder);
    tcase_add_test(file, in_memory);
    fr_test_add_loop(file, a_restored_session_equals_a_fresh_run, fixtures, 2);
    tcase_add_test(file, short_and_empty_timelines_come_back);
    tcase_add_test(file, little_is_run_again);
    tcase_add_test(file, what_is_attached_comes_back);
    tcase_add_test(file, the_file_is_complete_or_not_there);
    tcase_add_test(file, another_model_type_or_context_is_refused);
    tcase_add_test(file, one_other_weight_is_another_model);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 300);
    tcase_add_checked_fixture(damaged, make_folder, remove_folder);
    tcase_add_loop_test(damaged, a_damaged_file_is_refused, 0, 2);
    tcase_add_loop_test(damaged, lying_sizes_do_no_harm, 0, 2);
    suite_add_tcase(suite, file);
    suite_add_tcase(suite, damaged);
}
