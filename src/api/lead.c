/* What rank 0's engine is asked, told to the other ranks: see lead.h.
 *
 *      rank 0 -> others    a command; then its bytes, if it has any
 *
 * Sessions are called by their places in a list that is the same on all ranks. */
#include "src/api/lead.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "forerun_lab_ranks.h"
#include "src/api/ranks.h"

typedef enum kind { OPEN, CLOSE, RESET, PUT, STEP, END } kind;

typedef struct command {
    uint32_t kind, session;
    uint64_t size; /* of the bytes behind it */
} command;

/* One of a round's; their number follows from the bytes, before which the engine's piece stands. */
typedef struct part {
    uint32_t session, limit;
} part;

struct fr_lead {
    fr_ranks *ranks;
    fr_session *sessions[FR_SESSIONS_MAX]; /* NULL: nobody has that place */
};

/* ---------------------------------------------------------------------------------------------------------- leading */

static uint32_t place_of(const fr_lead *lead, const fr_session *session) {
    uint32_t place = 0;
    while (place + 1 < FR_SESSIONS_MAX && lead->sessions[place] != session) place++;
    return place;
}

static void tell(const fr_lead *lead, kind what, uint32_t session, const void *bytes, size_t size) {
    command c = {what, session, size};
    fr_ranks_broadcast(lead->ranks, &c, sizeof c);
    fr_ranks_broadcast(lead->ranks, (void *)(uintptr_t)bytes, size); /* which only reads them, on rank 0 */
}

void fr_lead_open(const fr_engine *engine, const fr_options *options) {
    if (!engine->lead) return;
    fr_options told = *options;
    told.bytes = NULL;
    told.ranks = NULL;
    told.progress = NULL;
    told.log = (fr_log){0};
    tell(engine->lead, OPEN, place_of(engine->lead, NULL), &told, sizeof told);
}

void fr_lead_opened(const fr_engine *engine, fr_session *session) {
    if (engine->lead) engine->lead->sessions[place_of(engine->lead, NULL)] = session;
}

void fr_lead_close(const fr_session *session) {
    fr_lead *lead = session ? session->engine->lead : NULL;
    if (!lead) return;
    uint32_t place = place_of(lead, session);
    tell(lead, CLOSE, place, NULL, 0);
    lead->sessions[place] = NULL;
}

void fr_lead_reset(const fr_session *session) {
    const fr_lead *lead = session->engine->lead;
    if (lead) tell(lead, RESET, place_of(lead, session), NULL, 0);
}

void fr_lead_put(const fr_session *session, const int32_t *ids, size_t count) {
    const fr_lead *lead = session->engine->lead;
    if (lead) tell(lead, PUT, place_of(lead, session), ids, count * sizeof *ids);
}

void fr_lead_step(const fr_engine *engine, const fr_round *rounds, size_t count) {
    part parts[FR_SESSIONS_MAX];
    if (!engine->lead) return;
    for (size_t i = 0; i < count; i++)
        parts[i] = (part){.session = place_of(engine->lead, rounds[i].session),
                          .limit = (uint32_t)fr_smaller(rounds[i].limit, FR_STEP_MAX)};
    tell(engine->lead, STEP, (uint32_t)engine->piece, parts, count * sizeof *parts);
}

void fr_lead_end(fr_engine *engine) {
    if (!engine || !engine->lead) return;
    tell(engine->lead, END, 0, NULL, 0);
    free(engine->lead);
    engine->lead = NULL;
}

fr_status fr_lead_refuse(const fr_engine *engine, const char *call) {
    return engine->lead ? fr_fail(FR_UNBUILT, "%s: not built where several ranks serve", call) : FR_OK;
}

fr_status fr_lab_engine_lead(fr_engine *engine) {
    engine->lead = calloc(1, sizeof *engine->lead);
    if (!engine->lead) return fr_fail_memory("what ranks are told", sizeof *engine->lead);
    engine->lead->ranks = fr_job();
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- following */

typedef struct follower {
    fr_ranks *ranks;
    fr_engine *engine;
    fr_session *sessions[FR_SESSIONS_MAX];
    command what;
    uint8_t *bytes; /* behind it */
    size_t room;
    int32_t ids[FR_SESSIONS_MAX][FR_STEP_MAX];
} follower;

static fr_status refuse(const char *what) {
    return fr_fail(FR_MACHINE, "it has no %s that rank 0 has", what);
}

static fr_status step(follower *f) {
    fr_round rounds[FR_SESSIONS_MAX];
    const part *parts = (const part *)f->bytes;
    size_t count = f->what.size / sizeof *parts;
    if (count > f->engine->capacity) return refuse("room for sessions");
    for (size_t i = 0; i < count; i++) {
        fr_session *session = parts[i].session < FR_SESSIONS_MAX ? f->sessions[parts[i].session] : NULL;
        if (!session) return refuse("session");
        rounds[i] = (fr_round){.session = session, .ids = f->ids[i], .limit = fr_smaller(parts[i].limit, FR_STEP_MAX)};
    }
    fr_engine_set_piece(f->engine, f->what.session);
    return fr_engine_step(f->engine, rounds, count);
}

/* What fails as it does on rank 0, a prompt that is too long say, is no failure of the job. */
static fr_status follow(follower *f) {
    if (f->what.kind == STEP) return step(f);
    if (f->what.kind == END) return FR_OK;
    if (f->what.session >= FR_SESSIONS_MAX) return refuse("room for sessions");
    fr_session **session = &f->sessions[f->what.session];
    if (f->what.kind == OPEN) {
        if (f->what.size != sizeof(fr_options)) return refuse("such options");
        fr_session_close(*session); /* which rank 0 has found no room for */
        fr_engine_session(f->engine, (const fr_options *)f->bytes, session);
        return FR_OK;
    }
    if (!*session) return refuse("session");
    if (f->what.kind == PUT) fr_session_put(*session, (const int32_t *)f->bytes, f->what.size / sizeof(int32_t));
    if (f->what.kind == RESET) fr_session_reset(*session);
    if (f->what.kind == CLOSE) {
        fr_session_close(*session);
        *session = NULL;
    }
    return FR_OK;
}

static fr_status hear(follower *f) {
    fr_ranks_listen(f->ranks, &f->what, sizeof f->what);
    FR_TRY(fr_ranks_check(f->ranks));
    if (f->what.size > f->room) {
        uint8_t *larger = realloc(f->bytes, f->what.size);
        if (!larger) return fr_fail_memory("what rank 0 tells", f->what.size);
        f->bytes = larger;
        f->room = f->what.size;
    }
    fr_ranks_broadcast(f->ranks, f->bytes, f->what.size);
    return fr_ranks_check(f->ranks);
}

fr_status fr_lab_engine_follow(fr_engine *engine) {
    follower *f = calloc(1, sizeof *f);
    if (!f) return fr_fail_memory("what rank 0 tells", sizeof *f);
    f->ranks = fr_job();
    f->engine = engine;
    fr_status status;
    do {
        status = hear(f);
        if (status == FR_OK) status = follow(f);
    } while (status == FR_OK && f->what.kind != END);
    for (size_t i = 0; i < FR_SESSIONS_MAX; i++) fr_session_close(f->sessions[i]);
    free(f->bytes);
    free(f);
    return status;
}
