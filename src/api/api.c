/* Defines the public functions. Each checks its arguments, sets the floating-point environment, and calls the engine.
 *
 * In: a caller's arguments, which may be anything. Out: the results that forerun.h promises. */
#include "forerun.h"

#include "base/error.h"
#include "base/file_place.h"
#include "base/fpenv.h"
#include "base/sizes.h"
#include "base/temporary_file.h"
#include "base/word_list.h"
#include "forerun_lab.h"
#include "formats/json_wide.h"
#include "formats/pre_tokenizers.h"
#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "quant/encode.h"
#include "src/api/rank_leader.h"
#include "src/api/ranks.h"
#include "src/convert/quantize_types.h"
#include "src/convert/synth.h"
#include "src/engine/cache/kv.h"
#include "src/engine/draft/draft_list.h"
#include "src/engine/encoder/encoder.h"
#include "src/engine/session/fingerprint.h"
#include "src/engine/session/round.h"
#include "src/engine/session/session.h"
#include "src/engine/session/session_file.h"
#include "src/engine/session/timeline.h"

const char *fr_version(void) {
    return FR_VERSION;
}

static void log_notes(const fr_log *log, const fr_notes *notes) {
    for (size_t i = 0; fr_notes_line(notes, i); i++) fr_log_line(log, FR_LOG_WARN, "%s", fr_notes_line(notes, i));
}

static void log_model(const fr_log *log, const fr_model *model) {
    fr_log_line(log, FR_LOG_INFO, "%s: %s, %zu layers, %.2f GB of weights, instruction set %s, %zu threads",
                model->files.path, fr_checkpoint_architecture(&model->files),
                (size_t)fr_model_fact(model, FR_FACT_LAYERS), (double)fr_model_bytes(model) / 1e9, model->kernels->isa,
                model->plan.threads);
    log_notes(log, &model->weights.notes);
}

static void log_drafter(const fr_log *log, const fr_drafter *drafter) {
    for (const fr_drafter *d = drafter; d; d = d->beside) {
        fr_log_line(log, FR_LOG_INFO, "%s: drafter %s, %.2f GB of weights", fr_drafter_path(d), d->method->name,
                    (double)d->weights.bytes / 1e9);
        log_notes(log, &d->weights.notes);
    }
}

static void log_session(const fr_session *s) {
    const double *value = s->stats.value;
    fr_log_line(&s->log, FR_LOG_INFO,
                "session: context %zu, keys %s, values %s, MB of KV %.1f, checkpoints %.1f (%zu), scratch %.1f",
                s->context, fr_dtype_name(s->engine->kv_types.k), fr_dtype_name(s->engine->kv_types.v),
                value[FR_STAT_TARGET_KV_BYTES] / 1e6, value[FR_STAT_CHECKPOINT_BYTES] / 1e6,
                s->cache.checkpoints.capacity, value[FR_STAT_SCRATCH_BYTES] / 1e6);
}

/* Checks that all ranks have the same version, model and settings, because their answers depend on them. */
static fr_status share_model(fr_model *model) {
    struct {
        char version[32];
        uint64_t numerics;
    } of = {FR_VERSION, FR_NUMERICS_VERSION};
    uint64_t file = 0;
    model->ranks = fr_job();
    if (!model->ranks) return FR_OK;
    fr_job_note_split(model->trunk.stages != NULL);
    fr_ranks_meet(model->ranks);
    FR_TRY(fr_ranks_agree(model->ranks, &of, sizeof of, "its version of forerun"));
    FR_TRY(fr_fingerprint(model, &file));
    return fr_ranks_agree(model->ranks, &file, sizeof file, "its model");
}

static fr_status open_model(const char *path, const fr_options *options, fr_model **model) {
    uint64_t environment = fr_fpenv_enter();
    fr_options shared = *options;
    shared.ranks = fr_job();
    shared.rank_plan = fr_job_plan();
    fr_status status = fr_model_load(path, &shared, model);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_model(&options->log, *model);
    if (status == FR_OK) status = share_model(*model);
    if (status == FR_OK) return FR_OK;
    fr_model_unload(*model);
    *model = NULL;
    return status;
}

fr_status fr_model_open(const char *path, const fr_options *options, fr_model **model) {
    if (model) *model = NULL;
    if (!path || !model) return fr_fail_null("fr_model_open", "a path and a place for the model");
    fr_options resolved = fr_options_resolve(options);
    return open_model(path, &resolved, model);
}

fr_status fr_model_open_bytes(const void *bytes, size_t size, const char *name, const fr_options *options,
                              fr_model **model) {
    if (model) *model = NULL;
    if (!bytes || !name || !model)
        return fr_fail_null("fr_model_open_bytes", "a file's bytes, a name and a place for the model");
    if ((uintptr_t)bytes % FR_GGUF_ALIGNMENT)
        return fr_fail(FR_USAGE, "%s: its bytes must begin at a multiple of %d", name, FR_GGUF_ALIGNMENT);
    fr_options resolved = fr_options_resolve(options);
    resolved.bytes = bytes;
    resolved.byte_count = size;
    return open_model(name, &resolved, model);
}

void fr_model_close(fr_model *model) {
    fr_model_unload(model);
}

/* Returns a fact about a text encoder. */
static int64_t encoder_fact(const fr_model *model, fr_fact fact) {
    const fr_encoder_facts facts = fr_encoder_fact(model->encoder);
    switch (fact) {
    case FR_FACT_VOCAB: return (int64_t)facts.vocab;
    case FR_FACT_HIDDEN: return (int64_t)facts.hidden;
    case FR_FACT_LAYERS: return (int64_t)facts.layers;
    case FR_FACT_WINDOW: return (int64_t)facts.window;
    case FR_FACT_CONTEXT_LIMIT: return (int64_t)facts.context;
    case FR_FACT_MTP_LAYERS: return 0;
    case FR_FACT_IMAGE_TOKEN: return -1;
    case FR_FACT_WEIGHT_BYTES: return (int64_t)fr_model_bytes(model);
    case FR_FACT_POOLING: return (int64_t)model->pooling;
    case FR_FACT_ENCODER: return 1;
    case FR_FACT_COUNT: break;
    }
    return -1;
}

int64_t fr_model_fact(const fr_model *model, fr_fact fact) {
    if (!model) return -1;
    if (model->encoder) return encoder_fact(model, fact);
    switch (fact) {
    case FR_FACT_VOCAB: return (int64_t)model->trunk.spec.vocab;
    case FR_FACT_HIDDEN: return (int64_t)model->trunk.spec.hidden;
    case FR_FACT_LAYERS: return (int64_t)model->trunk.spec.layers;
    case FR_FACT_MTP_LAYERS: return (int64_t)model->mtp_layers;
    case FR_FACT_IMAGE_TOKEN: return model->image_token;
    case FR_FACT_WINDOW: return (int64_t)fr_kv_window(model->trunk.kv_shapes, model->trunk.kv_count);
    case FR_FACT_CONTEXT_LIMIT: return (int64_t)model->trunk.spec.context_limit;
    case FR_FACT_WEIGHT_BYTES: return (int64_t)fr_model_bytes(model);
    case FR_FACT_POOLING: return (int64_t)model->pooling;
    case FR_FACT_ENCODER: return 0;
    case FR_FACT_COUNT: break;
    }
    return -1;
}

size_t fr_model_eos(const fr_model *model, const int32_t **ids) {
    if (ids) *ids = model ? model->eos : NULL;
    return model ? model->eos_count : 0;
}

size_t fr_model_suppressed(const fr_model *model, const int32_t **ids) {
    if (ids) *ids = model ? model->suppressed : NULL;
    return model ? model->suppressed_count : 0;
}

const char *fr_model_isa(const fr_model *model) {
    return model ? model->kernels->isa : NULL;
}

const char *fr_model_note(const fr_model *model, size_t index) {
    return model ? fr_notes_line(&model->weights.notes, index) : NULL;
}

const char *fr_drafter_note(const fr_drafter *drafter, size_t index) {
    return drafter ? fr_notes_line(&drafter->weights.notes, index) : NULL;
}

const fr_tokenizer *fr_model_tokenizer(const fr_model *model) {
    return model ? model->tokenizer : NULL;
}

/* Checks that a drafter is the same on all ranks, if they run it together. */
static fr_status compare_drafter(const fr_drafter *drafter) {
    const fr_model *model = fr_drafter_model(drafter);
    uint64_t file = 0;
    if (!model || !model->ranks) return FR_OK;
    fr_ranks_meet(model->ranks);
    FR_TRY(fr_fingerprint(model, &file));
    return fr_ranks_agree(model->ranks, &file, sizeof file, "its draft model");
}

fr_status fr_drafter_open(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    if (drafter) *drafter = NULL;
    if (!target || !drafter) return fr_fail_null("fr_drafter_open", "a target and a place for the drafter");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_drafter_load(path, target, &resolved, drafter);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_drafter(&resolved.log, *drafter);
    if (status == FR_OK) status = compare_drafter(*drafter);
    if (status == FR_OK) return FR_OK;
    fr_drafter_unload(*drafter);
    *drafter = NULL;
    return status;
}

void fr_drafter_close(fr_drafter *drafter) {
    fr_drafter_unload(drafter);
}

fr_status fr_session_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                          fr_session **session) {
    if (session) *session = NULL;
    if (!model || !session) return fr_fail_null("fr_session_open", "a model and a place for the session");
    if (drafter && drafter->target != model) return fr_fail(FR_USAGE, "the drafter was opened on another model");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_fit(model, drafter, 0, &resolved);
    if (status == FR_OK) status = fr_ranks_agree_options(model->ranks, &resolved);
    if (status == FR_OK) status = fr_session_create_alone(model, drafter, &resolved, session);
    fr_fpenv_leave(environment);
    if (status == FR_OK) log_session(*session);
    return status;
}

void fr_session_close(fr_session *session) {
    fr_rank_leader_close(session);
    fr_session_destroy(session);
}

fr_status fr_engine_open(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t sessions,
                         fr_engine **engine) {
    if (engine) *engine = NULL;
    if (!model || !engine) return fr_fail_null("fr_engine_open", "a model and a place for the engine");
    if (drafter && drafter->target != model) return fr_fail(FR_USAGE, "the drafter was opened on another model");
    if (sessions == 0 || sessions > FR_SESSIONS_MAX)
        return fr_fail(FR_USAGE, "fr_engine_open: 1 to %d sessions, not %zu", FR_SESSIONS_MAX, sessions);
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_fit(model, drafter, sessions, &resolved);
    if (status == FR_OK) status = fr_ranks_agree_options(model->ranks, &resolved);
    if (status == FR_OK) status = fr_engine_create(model, drafter, &resolved, sessions, engine);
    fr_fpenv_leave(environment);
    return status;
}

void fr_engine_close(fr_engine *engine) {
    fr_rank_leader_end(engine);
    fr_engine_destroy(engine);
}

fr_status fr_engine_session(fr_engine *engine, const fr_options *options, fr_session **session) {
    if (session) *session = NULL;
    if (!engine || !session) return fr_fail_null("fr_engine_session", "an engine and a place for the session");
    FR_TRY(fr_engine_check_process(engine));
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_create(engine, &resolved, session);
    fr_fpenv_leave(environment);
    if (status == FR_OK) fr_rank_leader_opened(engine, &resolved, *session);
    return status;
}

fr_status fr_session_fork(const fr_session *session, const fr_options *options, fr_session **fork) {
    if (fork) *fork = NULL;
    if (!session || !fork) return fr_fail_null("fr_session_fork", "a session and a place for its fork");
    FR_TRY(fr_engine_check_process(session->engine));
    FR_TRY(fr_rank_leader_refuse(session->engine, "fr_session_fork"));
    fr_options resolved = options ? *options : session->options;
    fr_engine_settle(session->engine);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_session_copy(session, &resolved, fork);
    fr_fpenv_leave(environment);
    return status;
}

static fr_status check_rounds(const fr_engine *engine, const fr_round *rounds, size_t count) {
    if (!engine || (count && !rounds)) return fr_fail_null("fr_engine_step", "an engine and its rounds");
    FR_TRY(fr_engine_check_process(engine));
    if (count > engine->capacity)
        return fr_fail(FR_USAGE, "fr_engine_step: %zu rounds, and the engine has room for %zu sessions", count,
                       engine->capacity);
    for (size_t i = 0; i < count; i++) {
        const fr_round *r = &rounds[i];
        if (!r->session || r->session->engine != engine)
            return fr_fail(FR_USAGE, "fr_engine_step: session %zu is not of this engine", i);
        if (!r->ids && r->limit) return fr_fail(FR_USAGE, "fr_engine_step: there is no room for ids");
        if (r->session->length == 0) return fr_fail(FR_USAGE, "fr_engine_step: session %zu has no prompt yet", i);
        for (size_t j = 0; j < i; j++)
            if (rounds[j].session == r->session)
                return fr_fail(FR_USAGE, "fr_engine_step: session %zu is there twice", i);
    }
    return FR_OK;
}

fr_status fr_engine_step(fr_engine *engine, fr_round *rounds, size_t count) {
    FR_TRY(check_rounds(engine, rounds, count));
    FR_TRY(fr_engine_check_files(engine));
    fr_rank_leader_step(engine, rounds, count);
    uint64_t environment = fr_fpenv_enter();
    fr_round_run(engine, rounds, count);
    fr_fpenv_leave(environment);
    fr_rank_leader_stepped(engine, rounds, count);
    return FR_OK;
}

size_t fr_engine_set_piece(fr_engine *engine, size_t rows) {
    if (!engine) return 0;
    engine->round_chunk = rows ? fr_smaller(rows, engine->chunk) : engine->chunk;
    return engine->round_chunk;
}

static fr_status check_sees(const fr_model *model, const char *name) {
    fr_option about = model->files.gguf && model->family->picture ? FR_OPT_MMPROJ : FR_OPT_COUNT;
    if (model->vision) return FR_OK;
    return fr_fail_about(about, FR_INPUT, "%s has no vision tower: it can't see %s", model->files.path, name);
}

fr_status fr_picture_open(const char *path, const fr_model *model, fr_picture **picture) {
    fr_image image;
    if (picture) *picture = NULL;
    if (!path || !model || !picture) return fr_fail_null("fr_picture_open", "a path, a model and a place for it");
    FR_TRY(check_sees(model, path));
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_image_open(&image, path);
    if (status == FR_OK) status = fr_picture_load(&image, model->vision, picture);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_picture_open_bytes(const void *bytes, size_t size, const char *name, size_t *pixels, const fr_model *model,
                                fr_picture **picture) {
    fr_image image;
    if (picture) *picture = NULL;
    if (!bytes || !name || !model || !picture)
        return fr_fail_null("fr_picture_open_bytes", "bytes, a name, a model and a place for it");
    FR_TRY(check_sees(model, name));
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_image_open_bytes(&image, bytes, size, name, pixels ? *pixels : SIZE_MAX);
    if (status == FR_OK) status = fr_picture_load(&image, model->vision, picture);
    if (status == FR_OK && pixels) *pixels -= (*picture)->image.width * (*picture)->image.height;
    fr_fpenv_leave(environment);
    return status;
}

void fr_picture_close(fr_picture *picture) {
    fr_picture_unload(picture);
}

const char *fr_model_image_mark(const fr_model *model) {
    return model ? fr_model_picture_mark(model) : NULL;
}

fr_status fr_pictures_spell(const fr_model *model, const fr_picture *const *pictures, size_t count,
                            fr_marked_text *text) {
    if (!model || !text || (count && !pictures))
        return fr_fail_null("fr_pictures_spell", "a model, pictures and a text");
    for (size_t i = 0; i < count; i++)
        if (!pictures[i] || pictures[i]->vision != model->vision)
            return fr_fail(FR_USAGE, "fr_pictures_spell: picture %zu was opened for another model", i);
    FR_TRY(fr_marked_text_check(text));
    return fr_model_spell_pictures(model, pictures, count, text);
}

size_t fr_picture_tokens(const fr_picture *picture) {
    return picture ? picture->grid.rows * picture->grid.columns : 0;
}

/* --------------------------------------------------------------------------------------- functions of forerun_lab.h */

fr_lab_range fr_lab_option_range(fr_option option) {
    if ((unsigned)option >= FR_OPT_COUNT) return (fr_lab_range){0};
    const fr_option_bounds *bounds = &fr_options_bounds[option];
    return (fr_lab_range){bounds->whole.low, bounds->whole.high, bounds->number.low, bounds->number.high};
}

const char *fr_lab_word(fr_lab_words of, size_t index) {
    static fr_word_fn *const tables[FR_LAB_WORDS_COUNT] = {
        [FR_LAB_ISA] = fr_isa_word,
        [FR_LAB_DRAFT] = fr_draft_word,
        [FR_LAB_DRAFT_OTHER] = fr_draft_other_word,
        [FR_LAB_CACHED] = fr_kv_type_word,
        [FR_LAB_PRE] = fr_pre_tokenizer_word,
        [FR_LAB_WRITTEN] = fr_written_word,
        [FR_LAB_MIXTURES] = fr_mixture_word,
        [FR_LAB_SHAPES] = fr_synth_shape_word,
    };
    return (unsigned)of < FR_LAB_WORDS_COUNT && tables[of] ? tables[of](index) : NULL;
}

bool fr_lab_takes_drafter(const char *spec_type) {
    return fr_draft_words_take_drafter(spec_type);
}

char *fr_lab_file_place(const char *path) {
    return fr_file_place(path);
}

fr_status fr_lab_files_check(const fr_model *model, const fr_drafter *drafter) {
    return fr_files_check(model, drafter);
}

bool fr_lab_file_is_descriptor(const char *path) {
    return fr_file_is_descriptor(path);
}

int fr_lab_temporary_open(const char *place, char *name, size_t size, mode_t mode) {
    return fr_temporary_open(place, name, size, mode);
}

int fr_lab_temporary_keep(int fd, const char *name, const char *place) {
    return fr_temporary_keep(fd, name, place);
}

json_t *fr_lab_json_load(const char *text, size_t length, size_t flags, json_error_t *error) {
    return fr_json_load_wide(text, length, flags, error);
}

bool fr_lab_isa_here(const char *word) {
    const fr_kernels *kernels;
    return fr_kernels_select(word, &kernels) == FR_OK;
}
