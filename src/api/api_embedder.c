/* Defines the public functions of embedders. Each checks its arguments, sets the floating-point environment, and calls
 * the engine. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "forerun_lab.h"
#include "src/api/rank_leader.h"
#include "src/engine/embed/embedder.h"

fr_status fr_embedder_open(const fr_model *model, fr_engine *engine, const fr_options *options, fr_pooling pooling,
                           fr_embedder **embedder) {
    if (embedder) *embedder = NULL;
    if (!model || !embedder) return fr_fail_null("fr_embedder_open", "a model and a place for the embedder");
    if (pooling < FR_POOLING_NONE || pooling > FR_POOLING_LAST)
        return fr_fail(FR_USAGE, "fr_embedder_open: pooling %d: mean, cls, last or none is needed", (int)pooling);
    if (engine && engine->model != model) return fr_fail(FR_USAGE, "fr_embedder_open: the engine is another model's");
    if (model->ranks && !engine)
        return fr_fail(FR_UNBUILT, "embeddings of a model that several ranks run are not built yet");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_embedder_create(model, engine, &resolved, pooling, embedder);
    fr_fpenv_leave(environment);
    return status;
}

void fr_embedder_close(fr_embedder *embedder) {
    if (embedder && embedder->engine && embedder->group.count) fr_rank_leader_close(*embedder->group.sessions);
    fr_embedder_destroy(embedder);
}

int64_t fr_embedder_fact_of(const fr_embedder *e, fr_embedder_fact fact) {
    if (!e) return -1;
    switch (fact) {
    case FR_EMBEDDER_WIDTH: return e->recipe.mode_count ? (int64_t)e->recipe.width : 0;
    case FR_EMBEDDER_LIMIT: return (int64_t)e->limit;
    case FR_EMBEDDER_SCORES: return fr_embedder_can_score(e);
    case FR_EMBEDDER_NORMALIZES: return fr_embedder_normalizes(e);
    case FR_EMBEDDER_FACT_COUNT: break;
    }
    return -1;
}

const char *fr_embedder_prompt(const fr_embedder *e, const char *name) {
    if (!e) return NULL;
    if (!name) name = e->recipe.default_prompt;
    return name ? json_string_value(json_object_get(e->recipe.prompts, name)) : NULL;
}

const char *fr_embedder_prompt_name(const fr_embedder *e, size_t index) {
    const char *name;
    json_t *value;
    if (!e) return NULL;
    json_object_foreach (e->recipe.prompts, name, value)
        if (index-- == 0) return name;
    return NULL;
}

fr_status fr_embedder_encode(const fr_embedder *embedder, const char *prompt, const char *text, size_t length,
                             fr_embedder_text *encoded) {
    if (encoded) *encoded = (fr_embedder_text){0};
    if (!embedder || !encoded || (length && !text))
        return fr_fail_null("fr_embedder_encode", "an embedder, a text and a place for its ids");
    return fr_embedder_text_of(embedder, prompt, (fr_text){text, length}, encoded);
}

fr_status fr_embedder_encode_pair(const fr_embedder *embedder, const char *instruction, const char *query,
                                  size_t query_length, const char *document, size_t document_length,
                                  fr_embedder_text *encoded) {
    if (encoded) *encoded = (fr_embedder_text){0};
    if (!embedder || !encoded || (query_length && !query) || (document_length && !document))
        return fr_fail_null("fr_embedder_encode_pair", "an embedder, two texts and a place for their ids");
    return fr_embedder_pair_of(embedder, instruction, (fr_text){query, query_length},
                               (fr_text){document, document_length}, encoded);
}

fr_status fr_embedder_encode_ids(const fr_embedder *embedder, const int32_t *ids, size_t count,
                                 fr_embedder_text *encoded) {
    if (encoded) *encoded = (fr_embedder_text){0};
    if (!embedder || !encoded || (count && !ids))
        return fr_fail_null("fr_embedder_encode_ids", "an embedder, ids and a place for them");
    return fr_embedder_ids_of(embedder, ids, count, encoded);
}

void fr_embedder_text_free(fr_embedder_text *encoded) {
    if (!encoded) return;
    free(encoded->ids);
    free(encoded->types);
    *encoded = (fr_embedder_text){0};
}

size_t fr_lab_embedder_done(const fr_embedder *embedder) {
    return embedder ? embedder->done : 0;
}

fr_status fr_lab_embedder_session(fr_embedder *embedder, fr_session **session) {
    if (session) *session = NULL;
    if (!embedder || !session)
        return fr_fail_null("fr_lab_embedder_session", "an embedder and a place for its session");
    if (!embedder->engine)
        return fr_fail(FR_USAGE, "fr_lab_embedder_session: the embedder was opened without an engine");
    if (embedder->group.count == 0) {
        FR_TRY(fr_engine_session(embedder->engine, &embedder->options, embedder->group.sessions));
        embedder->group.count = 1;
    }
    *session = *embedder->group.sessions;
    return FR_OK;
}

/* Makes the rows of texts if the other ranks repeat this rank's calls. It runs one text at a time, in the session that
 * those ranks have too. The other ranks run the same forwards, and their own pooled rows are not used. Afterwards the
 * last text's pages are given back, because other sessions may need them and no later text reads them. */
static fr_status rows_led(fr_embedder *e, const fr_embedder_text *texts, size_t count, size_t dimensions, int normalize,
                          float *rows) {
    size_t width = dimensions ? dimensions : e->recipe.width;
    fr_session *session;
    FR_TRY(fr_lab_embedder_session(e, &session));
    FR_TRY(fr_embedder_run(e, NULL, 0, dimensions, normalize, rows)); /* checks all arguments except the texts */
    FR_TRY(fr_embedder_check(e, texts, count));
    fr_status status = FR_OK;
    for (size_t t = 0; t < count && status == FR_OK; t++) {
        fr_rank_leader_embed(session, texts[t].ids, texts[t].count, FR_POOLING_MEAN);
        status = fr_embedder_run(e, &texts[t], 1, dimensions, normalize, rows + t * width);
        fr_rank_leader_ran(session);
        e->done = t + (status == FR_OK);
    }
    fr_session_reset(session);
    return status;
}

fr_status fr_embedder_rows(fr_embedder *embedder, const fr_embedder_text *texts, size_t count, size_t dimensions,
                           int normalize, float *rows) {
    if (!embedder || (count && (!texts || !rows)))
        return fr_fail_null("fr_embedder_rows", "an embedder, texts and room for their rows");
    bool led = embedder->engine && embedder->engine->leader;
    uint64_t environment = fr_fpenv_enter();
    fr_status status = (led ? rows_led : fr_embedder_run)(embedder, texts, count, dimensions, normalize, rows);
    fr_fpenv_leave(environment);
    return status;
}

fr_status fr_embedder_scores(fr_embedder *embedder, const fr_embedder_text *pairs, size_t count, bool raw,
                             float *scores) {
    if (!embedder || (count && (!pairs || !scores)))
        return fr_fail_null("fr_embedder_scores", "an embedder, pairs and room for their scores");
    if (embedder->engine) FR_TRY(fr_rank_leader_refuse(embedder->engine, "fr_embedder_scores"));
    uint64_t environment = fr_fpenv_enter();
    fr_status status = fr_embedder_score(embedder, pairs, count, raw, scores);
    fr_fpenv_leave(environment);
    return status;
}
