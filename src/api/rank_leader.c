/* Sends each call to rank 0's engine to all other ranks: see rank_leader.h.
 *
 *      rank 0 -> others    a command; then the bytes that belong to it, if there are any
 *
 * A command names a session by its index in a list that is the same on all ranks. */
#include "src/api/rank_leader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/sizes.h"
#include "forerun_lab.h"
#include "forerun_lab_ranks.h"
#include "src/api/ranks.h"
#include "src/engine/session/prompt_score.h"

/* Commands. The comment after a command says what its `number` is, if that is not 0, and which bytes follow the
 * command. */
typedef enum kind {
    OPEN, /* bytes: options, then their biases */
    CLOSE,
    RESET,
    PUT,    /* number: rank 0's status; bytes: ids */
    SCORED, /* number: rank 0's status; bytes: ids of a prompt that is scored */
    SHOW,   /* bytes: pictures (fr_shown_pack); no bytes if rank 0 itself could not show the pictures */
    DECIDE, /* number: bits of fr_session.leader_decides */
    DRAW,   /* bytes: options, then their biases */
    STOPS,  /* number: the number of strings; bytes: the strings, each with its NUL */
    TRACE,  /* number: 1 if the session has a trace */
    SET_ASIDE,
    TAKE_UP,
    EMBED, /* number: pooling; bytes: ids */
    SCORE, /* bytes: ids */
    STEP,  /* number: the engine's round_chunk; bytes: an array of struct part */
    END
} kind;

typedef struct command {
    uint32_t kind, session;
    uint64_t number, size; /* size: number of bytes that follow the command */
} command;

/* Says what a session runs in a round. session: its index. limit: as in fr_round, at most FR_STEP_MAX. aborts: 1 if its
 * abort callback asked to stop. The bytes of a STEP command are an array of these structs; the command's size gives
 * their number. */
typedef struct part {
    uint32_t session, limit, aborts;
} part;

struct fr_rank_leader {
    fr_ranks *ranks;
    fr_session *sessions[FR_SESSIONS_MAX]; /* NULL: no session has this index */
};

/* ----------------------------------------------------------------------------------------------- commands of rank 0 */

static uint32_t index_of(const fr_rank_leader *leader, const fr_session *session) {
    uint32_t index = 0;
    while (index + 1 < FR_SESSIONS_MAX && leader->sessions[index] != session) index++;
    return index;
}

static void tell(const fr_rank_leader *leader, kind what, uint32_t session, uint64_t number, const void *bytes,
                 size_t size) {
    command c = {what, session, number, size};
    fr_ranks_broadcast(leader->ranks, &c, sizeof c);
    fr_ranks_broadcast(leader->ranks, (void *)(uintptr_t)bytes, size); /* rank 0 only reads these bytes */
}

/* Sends a command about one session. */
static void tell_of(const fr_session *session, kind what, uint64_t number, const void *bytes, size_t size) {
    const fr_rank_leader *leader = session->engine->leader;
    if (leader) tell(leader, what, index_of(leader, session), number, bytes, size);
}

/* Sends options to the other ranks. Pointers are set to NULL, because they mean nothing to other ranks. The biases
 * follow the options. */
static void tell_options(const fr_session *session, kind what, const fr_options *options) {
    size_t biases = options->bias_count * sizeof *options->biases;
    if (!session->engine->leader) return;
    fr_options *told = malloc(sizeof *told + biases);
    if (told) {
        *told = *options;
        told->bytes = NULL;
        told->ranks = NULL;
        told->progress = NULL;
        told->log = (fr_log){0};
        told->biases = NULL;
        if (biases) memcpy(told + 1, options->biases, biases);
    }
    /* if memory ran out, the command is sent without options, and the other ranks then refuse it */
    tell_of(session, what, 0, told, told ? sizeof *told + biases : 0);
    free(told);
}

void fr_rank_leader_opened(const fr_engine *engine, const fr_options *options, fr_session *session) {
    fr_rank_leader *leader = engine->leader;
    if (!leader) return;
    leader->sessions[index_of(leader, NULL)] = session;
    tell_options(session, OPEN, options);
}

void fr_rank_leader_close(const fr_session *session) {
    fr_rank_leader *leader = session ? session->engine->leader : NULL;
    if (!leader) return;
    tell_of(session, CLOSE, 0, NULL, 0);
    leader->sessions[index_of(leader, session)] = NULL;
}

void fr_rank_leader_reset(const fr_session *session) {
    tell_of(session, RESET, 0, NULL, 0);
}

void fr_rank_leader_put(const fr_session *session, fr_status status, const int32_t *ids, size_t count) {
    tell_of(session, PUT, (uint64_t)status, ids, count * sizeof *ids);
}

void fr_rank_leader_put_scored(const fr_session *session, fr_status status, const int32_t *ids, size_t count) {
    tell_of(session, SCORED, (uint64_t)status, ids, count * sizeof *ids);
}

void fr_rank_leader_show(const fr_session *session, fr_status *status) {
    void *bytes = NULL;
    size_t size = 0;
    if (!session->engine->leader || (*status != FR_OK && session->shown.count)) return;
    if (*status == FR_OK)
        *status = fr_shown_pack(&session->shown, fr_spec_picture_width(&session->model->trunk.spec), &bytes, &size);
    tell_of(session, SHOW, 0, bytes, size);
    free(bytes);
}

void fr_rank_leader_decide(fr_session *session, fr_status status) {
    if (!session->engine->leader || status != FR_OK) return;
    session->leader_decides = (session->sampling.sampler.mask ? FR_LEADER_HAS_MASK : 0) |
                              (session->sampling.sampler.constraint.grammar ? FR_LEADER_HAS_GRAMMAR : 0);
    tell_of(session, DECIDE, session->leader_decides, NULL, 0);
}

void fr_rank_leader_draw(const fr_session *session, fr_status status, const fr_options *options) {
    if (status == FR_OK) tell_options(session, DRAW, options);
}

void fr_rank_leader_stops(const fr_session *session, fr_status status, const char *const *strings, size_t count) {
    size_t size = 0, at = 0;
    if (!session->engine->leader || status != FR_OK) return;
    for (size_t i = 0; i < count; i++) size += strlen(strings[i]) + 1;
    char *bytes = malloc(size + 1);
    for (size_t i = 0; bytes && i < count; at += strlen(strings[i++]) + 1)
        memcpy(bytes + at, strings[i], strlen(strings[i]) + 1);
    /* if memory ran out, no bytes are sent, and the call then fails on the other ranks */
    tell_of(session, STOPS, count, bytes, bytes ? size : 0);
    free(bytes);
}

void fr_rank_leader_trace(const fr_session *session) {
    tell_of(session, TRACE, session->trace.line != NULL, NULL, 0);
}

void fr_rank_leader_set_aside(const fr_session *session, fr_status status) {
    if (status == FR_OK) tell_of(session, SET_ASIDE, 0, NULL, 0);
}

void fr_rank_leader_take_up(const fr_session *session, fr_status status) {
    if (status == FR_OK) tell_of(session, TAKE_UP, 0, NULL, 0);
}

void fr_rank_leader_embed(fr_session *session, const int32_t *ids, size_t count, fr_pooling pooling) {
    if (session->engine->leader) session->round.abort_told = FR_ABORT_NO;
    tell_of(session, EMBED, (uint64_t)pooling, ids, count * sizeof *ids);
}

void fr_rank_leader_score(fr_session *session, const int32_t *ids, size_t count) {
    if (session->engine->leader) session->round.abort_told = FR_ABORT_NO;
    tell_of(session, SCORE, 0, ids, count * sizeof *ids);
}

void fr_rank_leader_ran(fr_session *session) {
    session->round.abort_told = FR_ABORT_ASKED;
}

void fr_rank_leader_step(const fr_engine *engine, const fr_round *rounds, size_t count) {
    part parts[FR_SESSIONS_MAX];
    if (!engine->leader) return;
    for (size_t i = 0; i < count; i++) {
        fr_session *session = rounds[i].session;
        bool aborts = fr_session_wants_abort(session);
        session->round.abort_told = aborts ? FR_ABORT_YES : FR_ABORT_NO;
        parts[i] = (part){.session = index_of(engine->leader, session),
                          .limit = (uint32_t)fr_smaller(rounds[i].limit, FR_STEP_MAX),
                          .aborts = aborts};
    }
    tell(engine->leader, STEP, 0, engine->round_chunk, parts, count * sizeof *parts);
}

void fr_rank_leader_stepped(const fr_engine *engine, const fr_round *rounds, size_t count) {
    for (size_t i = 0; engine->leader && i < count; i++) {
        fr_session *session = rounds[i].session;
        /* the session had nothing to run in this round, so the abort must end the session's next round */
        if (session->round.abort_told == FR_ABORT_YES) fr_session_cancel(session);
        session->round.abort_told = FR_ABORT_ASKED;
    }
}

void fr_rank_leader_end(fr_engine *engine) {
    if (!engine || !engine->leader) return;
    tell(engine->leader, END, 0, 0, NULL, 0);
    free(engine->leader);
    engine->leader = NULL;
}

fr_status fr_rank_leader_refuse(const fr_engine *engine, const char *call) {
    return engine->leader ? fr_fail(FR_UNBUILT, "%s: not built where several ranks serve", call) : FR_OK;
}

fr_status fr_lab_engine_lead(fr_engine *engine) {
    engine->leader = calloc(1, sizeof *engine->leader);
    if (!engine->leader) return fr_fail_memory("commands for ranks", sizeof *engine->leader);
    engine->leader->ranks = fr_job();
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------ ranks that follow */

typedef struct follower {
    fr_ranks *ranks;
    fr_engine *engine;
    fr_session *sessions[FR_SESSIONS_MAX];
    command what;
    uint8_t *bytes; /* the bytes that followed the command */
    size_t room;    /* number of bytes for which `bytes` has room */
    int32_t ids[FR_SESSIONS_MAX][FR_STEP_MAX];
} follower;

static fr_status refuse(const char *what) {
    return fr_fail(FR_MACHINE, "this rank lacks the %s that rank 0 has", what);
}

static fr_status step(follower *f) {
    fr_round rounds[FR_SESSIONS_MAX];
    const part *parts = (const part *)f->bytes;
    size_t count = f->what.size / sizeof *parts;
    if (count > f->engine->capacity) return refuse("room for sessions");
    for (size_t i = 0; i < count; i++) {
        fr_session *session = parts[i].session < FR_SESSIONS_MAX ? f->sessions[parts[i].session] : NULL;
        if (!session) return refuse("session");
        session->round.abort_told = parts[i].aborts ? FR_ABORT_YES : FR_ABORT_NO;
        rounds[i] = (fr_round){.session = session, .ids = f->ids[i], .limit = fr_smaller(parts[i].limit, FR_STEP_MAX)};
    }
    fr_engine_set_piece(f->engine, f->what.number);
    fr_status status = fr_engine_step(f->engine, rounds, count);
    for (size_t i = 0; i < count; i++) rounds[i].session->round.abort_told = FR_ABORT_ASKED;
    return status;
}

/* Gives the session the prompt that rank 0's session was given. If both ranks refuse the prompt, for example because it
 * is too long, the job continues. */
static fr_status put(const follower *f, fr_session *session) {
    const int32_t *ids = (const int32_t *)f->bytes;
    size_t count = f->what.size / sizeof *ids;
    fr_status status = f->what.kind == SCORED ? fr_session_put_scored(session, ids, count, fr_prompt_score_drop, NULL)
                                              : fr_session_put(session, ids, count);
    if (status == (fr_status)f->what.number) return FR_OK;
    return status == FR_OK ? fr_fail(FR_MACHINE, "this rank accepted a prompt that rank 0 refused") : status;
}

static fr_status set_stops(const follower *f, fr_session *session) {
    const char *strings[FR_STOPS_MAX], *at = (const char *)f->bytes, *end = at + f->what.size;
    size_t count = 0;
    for (; at < end && count < FR_STOPS_MAX; at += strlen(at) + 1) strings[count++] = at;
    return count == f->what.number ? fr_session_set_stops(session, strings, count) : refuse("stop strings");
}

/* Pools a text. If pooling fails here, it fails on rank 0 too, which reports the failure. */
static fr_status embed(const follower *f, fr_session *session) {
    float *values = malloc(session->model->trunk.spec.hidden * sizeof *values);
    if (!values) return fr_fail_memory("an embedding", session->model->trunk.spec.hidden * sizeof *values);
    fr_session_embed(session, (const int32_t *)f->bytes, f->what.size / sizeof(int32_t), (fr_pooling)f->what.number,
                     values);
    free(values);
    return fr_ranks_check(f->ranks);
}

static fr_status score(const follower *f, fr_session *session) {
    fr_session_score(session, (const int32_t *)f->bytes, f->what.size / sizeof(int32_t), fr_prompt_score_drop, NULL);
    return fr_ranks_check(f->ranks);
}

static void pass_by(void *context, const char *line, size_t length) {
    (void)context;
    (void)line;
    (void)length;
}

static void trace(const follower *f, fr_session *session) {
    fr_session_set_trace(session, f->what.number ? pass_by : NULL, NULL);
}

static fr_status decide(const follower *f, fr_session *session) {
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_decide(session, (uint8_t)f->what.number);
    fr_fpenv_leave(environment);
    return status;
}

/* Gives the options that tell_options sent; their biases stay in the message. NULL: the message has no options. */
static const fr_options *options_of(const follower *f) {
    fr_options *options = (fr_options *)(void *)f->bytes;
    if (f->what.size < sizeof *options) return NULL;
    size_t room = f->what.size - sizeof *options;
    if (room % sizeof *options->biases || options->bias_count != room / sizeof *options->biases) return NULL;
    options->biases = room ? (fr_logit_bias *)(options + 1) : NULL;
    return options;
}

static fr_status follow_session(const follower *f, fr_session *session) {
    switch (f->what.kind) {
    case PUT:
    case SCORED: return put(f, session);
    case RESET: fr_session_reset(session); return FR_OK;
    case SHOW: return fr_session_be_shown(session, f->bytes, f->what.size);
    case DECIDE: return decide(f, session);
    case DRAW: return fr_session_set_options(session, options_of(f));
    case STOPS: return set_stops(f, session);
    case TRACE: trace(f, session); return FR_OK;
    case SET_ASIDE: return fr_lab_session_set_aside(session);
    case TAKE_UP: return fr_lab_session_take_up(session);
    case EMBED: return embed(f, session);
    case SCORE: return score(f, session);
    default: return refuse("command");
    }
}

static fr_status follow(follower *f) {
    if (f->what.kind == STEP) return step(f);
    if (f->what.kind == END) return FR_OK;
    if (f->what.session >= FR_SESSIONS_MAX) return refuse("room for sessions");
    if ((f->what.kind == OPEN || f->what.kind == DRAW) && !options_of(f)) return refuse("options");
    fr_session **session = &f->sessions[f->what.session];
    if (f->what.kind == OPEN) return fr_engine_session(f->engine, options_of(f), session);
    if (!*session) return refuse("session");
    if (f->what.kind != CLOSE) return follow_session(f, *session);
    fr_session_close(*session);
    *session = NULL;
    return FR_OK;
}

static fr_status hear(follower *f) {
    fr_ranks_listen(f->ranks, &f->what, sizeof f->what);
    FR_TRY(fr_ranks_check(f->ranks));
    if (f->what.size > f->room) {
        uint8_t *larger = realloc(f->bytes, f->what.size);
        if (!larger) return fr_fail_memory("a command of rank 0", f->what.size);
        f->bytes = larger;
        f->room = f->what.size;
    }
    fr_ranks_broadcast(f->ranks, f->bytes, f->what.size);
    return fr_ranks_check(f->ranks);
}

fr_status fr_lab_engine_follow(fr_engine *engine) {
    follower *f = calloc(1, sizeof *f);
    if (!f) return fr_fail_memory("commands of rank 0", sizeof *f);
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
