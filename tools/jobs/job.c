/* Runs a job from its request to its complete text (job.h). */
#include "tools/jobs/job.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/chat_settings.h"
#include "tools/cli/figures.h"
#include "tools/jobs/job_budget.h"
#include "tools/jobs/job_choices.h"
#include "tools/jobs/job_echo.h"
#include "tools/jobs/job_grammar.h"
#include "tools/jobs/job_line.h"
#include "tools/jobs/job_parts.h"

void fr_job_fail(fr_job *job, fr_status status) {
    fr_job_check(job, status);
}

/* ---------------------------------------------------------------------------------------------------------- session */

static fr_status open_view(fr_job *job) {
    const fr_job_setting *setting = job->setting;
    if (!job->prompt.rendered.text) return FR_OK;
    fr_status status = fr_reply_view_open(&job->view, fr_model_tokenizer(setting->loaded->model), job->settings,
                                          &job->prompt.rendered, &job->text);
    job->view.one_call = job->one_call;
    return status;
}

static fr_status start(fr_job *job, const void *kept, size_t size) {
    fr_status status = fr_engine_session(job->setting->engine, job->options, &job->session);
    if (status == FR_OK) status = fr_adapters_use(&job->setting->loaded->adapters, job->adapter_scales, job->session);
    if (status == FR_OK && kept) {
        status = fr_session_restore_bytes(job->session, kept, size);
        if (status == FR_INPUT) status = FR_OK; /* the kept session was run with other adapters, so it is not used */
    }
    if (status == FR_OK && job->picture_count) {
        if (job->pause) fr_session_set_abort(job->session, job->pause, job->pause_context);
        status = fr_session_show(job->session, (const fr_picture *const *)job->pictures, job->picture_count);
        if (job->pause) fr_session_set_abort(job->session, NULL, NULL);
    }
    if (status == FR_OK)
        status =
            job->scores ? fr_job_echo_begin(job) : fr_session_put(job->session, job->prompt.ids, job->prompt.count);
    if (status == FR_OK) status = fr_job_set_grammar(job);
    if (status == FR_OK) status = fr_job_set_budget(job);
    if (status == FR_OK) status = fr_job_set_least(job);
    job->text = (fr_stream){.stops = job->stops, .stop_count = job->stop_count, .keeps_stop = job->keeps_stop};
    if (status == FR_OK) status = open_view(job);
    if (status != FR_OK) return status;
    const fr_model *model = job->setting->loaded->model;
    const fr_reply_setting reply = {.model = model,
                                    .session = job->session,
                                    .most = job->most,
                                    .best = job->best,
                                    .chances = job->chances,
                                    .ignore_eos = job->ignore_eos && !job->grammar,
                                    .stop_ids = job->stop_ids,
                                    .stop_id_count = job->stop_id_count,
                                    .text = fr_model_tokenizer(model) ? &job->text : NULL,
                                    .view = job->prompt.rendered.text ? &job->view : NULL};
    status = fr_reply_begin(&job->reply, &reply);
    if (job->most == 0) job->reply.end = FR_END_LENGTH;
    job->ended = job->most == 0 && !job->scores;
    return status;
}

void fr_job_start(fr_job *job, const void *kept, size_t size) {
    if (!job->ended) fr_job_check(job, start(job, kept, size));
}

fr_status fr_job_resume(const fr_job *job) {
    return job->grammar ? fr_session_begin_grammar(job->session, job->prompt.count) : FR_OK;
}

fr_status fr_job_leave(const fr_job *job) {
    fr_status status = fr_job_lift_budget(job);
    if (status == FR_OK) status = fr_job_lift_least(job);
    return status == FR_OK && job->grammar ? fr_session_set_grammar(job->session, NULL) : status;
}

/* Reads the request in the job's form. The settings are read before the prompt, because rendering a conversation to a
 * prompt needs the settings. */
static bool take_request(fr_job *job) {
    bool plain = job->form == FR_JOB_PLAIN;
    if (!(plain ? fr_job_take_fields(job) : fr_job_take_request(job))) return false;
    if (job->picture_count) fr_json_put(job->settings, "pictures", json_true());
    return fr_job_take_prompt(job) && fr_job_make_grammar(job) && fr_job_make_budget(job) && fr_job_check_least(job);
}

void fr_job_open(fr_job *job, const fr_job_setting *setting, fr_job_form form, const json_t *request) {
    const fr_arguments *args = setting->args;
    *job = (fr_job){.setting = setting,
                    .form = form,
                    .request = request,
                    .options = fr_options_copy(setting->loaded->options),
                    .most = args->number[FR_ARG_PREDICT],
                    .ignore_eos = args->given[FR_ARG_IGNORE_EOS],
                    .each = 1,
                    .best = args->given[FR_ARG_LOGPROBS] ? args->number[FR_ARG_LOGPROBS] : -1,
                    .seed = -1,
                    .stop_count = args->stop_count,
                    .settings = fr_chat_settings(args, setting->loaded->tools, false)};
    memcpy(job->stops, args->stops, sizeof(job->stops));
    if (!job->options) fr_job_refuse(job, FR_MEMORY, "out of memory: options");
}

/* Removes fields that are null. Clients and data frames write null for a field that was not set, so null counts as
 * missing. */
static void drop_nulls(json_t *object) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value) if (json_is_null(value)) json_object_del(object, key);
}

/* Reads a job completely, but does not open its session. A session needs an engine, and the size of the engine depends
 * on all lines. */
static void read_job(fr_job *job, const fr_job_setting *setting, const fr_job_line *line) {
    json_error_t error;
    fr_job_text read = fr_job_text_read(line->text, line->length, &error);
    drop_nulls(read.value);
    drop_nulls(json_object_get(read.value, "body"));
    bool request = read.custom || (json_object_get(read.value, "body") && json_object_get(read.value, "url"));
    fr_job_open(job, setting, request ? FR_JOB_REQUEST : FR_JOB_PLAIN, read.value);
    memcpy(job->adapter_scales, setting->loaded->adapters.scale, sizeof job->adapter_scales);
    job->line = read.value;
    job->id = read.id;
    job->row = line->row;
    if (job->ended) return;
    if (!job->line)
        fr_job_refuse(job, FR_INPUT, "no JSON that can be read: %s", error.text);
    else if (!json_is_object(job->line))
        fr_job_refuse(job, FR_INPUT, "no JSON object");
    else
        take_request(job);
}

void fr_job_copy(fr_job *copy, fr_job *job) {
    bool shared = job->prompt.count || job->picture_count;
    if (shared && !job->sharers) {
        job->sharers = fr_resize(NULL, 1, sizeof(*job->sharers));
        *job->sharers = 1;
    }
    if (shared) ++*job->sharers;
    *copy = *job;
    json_incref(copy->line);
    json_incref(copy->settings);
    fr_job_hold_grammar(copy);
    fr_job_hold_budget(copy);
    copy->id = NULL;
    copy->options = fr_options_copy(job->options);
    if (!copy->options && !copy->ended) fr_job_refuse(copy, FR_MEMORY, "out of memory: options");
}

bool fr_job_measure(const fr_job_setting *setting, const fr_job_line *line, size_t *prompt, int64_t *most) {
    fr_job job;
    read_job(&job, setting, line);
    bool runs = !job.ended;
    *prompt = job.prompt.count;
    *most = job.most;
    fr_job_end(&job);
    return runs;
}

void fr_job_begin(fr_job *job, const fr_job_setting *setting, const fr_job_line *line) {
    read_job(job, setting, line);
    fr_job_start(job, NULL, 0);
}

void fr_job_pass_over(fr_job *job, const fr_job_setting *setting, const fr_job_line *line) {
    read_job(job, setting, line);
    job->ended = true;
    job->reply = (fr_reply){.setting.text = &job->text, .end = FR_END_INTERRUPT};
}

bool fr_job_next_choice(fr_job *job) {
    if (!fr_job_keep_choice(job)) return false;
    fr_reply_view_close(&job->view);
    fr_reply_free(&job->reply);
    fr_stream_free(&job->text);
    fr_session_close(job->session);
    job->session = NULL;
    job->scores = job->ended = false;
    if (!job->error[0] && fr_job_move_seed(job, 1)) fr_job_start(job, NULL, 0);
    return true;
}

fr_round fr_job_round(const fr_job *job, int32_t *ids) {
    /* With a limit of 0 only the prompt is run. This is done to get the prompt's log-probabilities. */
    size_t limit = job->most == 0 ? 0 : fr_reply_room(&job->reply);
    return (fr_round){.session = job->session, .ids = ids, .limit = limit};
}

void fr_job_take(fr_job *job, const fr_round *round) {
    if (round->status != FR_OK) {
        fr_job_refuse(job, round->status, "%s", round->error);
        return;
    }
    if (round->count == 0 && fr_session_waiting(job->session) > 0) return;
    if (job->most == 0) {
        job->ended = true;
        return;
    }
    if (!fr_job_check(job, fr_reply_take(&job->reply, round->ids, round->count, round->accepted))) return;
    job->ended = job->reply.end != FR_END_NONE;
    if (job->ended) fr_job_check(job, fr_reply_finish(&job->reply));
}

static void end_here(fr_job *job, fr_end end) {
    job->ended = true;
    job->reply.end = end;
    fr_job_check(job, fr_reply_finish(&job->reply));
}

void fr_job_interrupt(fr_job *job) {
    end_here(job, FR_END_INTERRUPT);
}

void fr_job_limit(fr_job *job) {
    end_here(job, FR_END_LENGTH);
}

/* ----------------------------------------------------------------------------------------------------------- answer */

char *fr_job_behind_id(const char *begin, const char *id, const json_t *rest) {
    char *members = fr_json_line(rest);
    const char *written = id ? id : "null";
    size_t size = strlen(begin) + strlen(written) + strlen(members) + sizeof(",");
    char *line = fr_resize(NULL, size, 1);
    snprintf(line, size, "%s%s,%s", begin, written, members + 1);
    free(members);
    return line;
}

/* Makes the answer in forerun's own form. If the line was skipped, it has no session, so its answer has no
 * log-probabilities and no figures. */
static json_t *plain_answer(fr_job *job) {
    json_t *answer = json_object();
    if (!job->error[0]) fr_job_check(job, fr_reply_put(&job->reply, answer));
    if (job->error[0]) {
        json_object_clear(answer);
        fr_json_put(answer, "error", fr_json_bytes(job->error, strlen(job->error)));
        return answer;
    }
    if (!job->session) return answer;
    fr_figures figures = fr_figures_take(job->session);
    figures.of[FR_STAT_GENERATED_TOKENS] = (double)job->reply.kept;
    json_t *stats = fr_figures_json(&figures, job->session);
    bool drawn = job->setting->args->seed_drawn && !json_object_get(job->line, "seed");
    if (drawn) fr_json_put(stats, "seed", json_integer(job->setting->args->number[FR_ARG_SEED]));
    if (job->seed >= 0) fr_json_put(answer, "seed", json_integer(job->seed));
    fr_json_put(answer, "stats", stats);
    return answer;
}

char *fr_job_answer(fr_job *job) {
    char begin[64] = "{\"id\":";
    bool plain = job->form == FR_JOB_PLAIN;
    if (!plain) snprintf(begin, sizeof begin, "{\"id\":\"batch_req_%zu\",\"custom_id\":", job->row);
    json_t *answer = plain ? plain_answer(job) : fr_job_response(job);
    char *line = fr_job_behind_id(begin, job->id, answer);
    json_decref(answer);
    return line;
}

void fr_job_end(fr_job *job) {
    fr_reply_view_close(&job->view);
    fr_reply_free(&job->reply);
    fr_reply_free(&job->echoed);
    fr_stream_free(&job->text);
    fr_job_drop_choices(job);
    fr_session_close(job->session);
    fr_job_drop_grammar(job);
    fr_job_drop_budget(job);
    if (!job->sharers || --*job->sharers == 0) { /* this is the last job that shares the prompt and its pictures */
        free(job->sharers);
        while (job->picture_count) fr_picture_close(job->pictures[--job->picture_count]);
        fr_prompt_free(&job->prompt);
    }
    fr_options_free(job->options);
    json_decref(job->settings);
    json_decref(job->line);
    free(job->id);
    *job = (fr_job){0};
}
