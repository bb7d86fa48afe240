/* Implements forerun generate: continues a prompt, and prints the continuation as text, ids or one JSON object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab_ranks.h"
#include "tools/cli/chat_settings.h"
#include "tools/cli/figures.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/prompt_run.h"
#include "tools/cli/reply.h"
#include "tools/cli/verbs.h"

typedef enum fr_form { FORM_TEXT, FORM_IDS, FORM_JSON } fr_form;

static fr_form output_form(const fr_arguments *args) {
    const char *word = args->text[FR_ARG_OUTPUT];
    if (word && strcmp(word, "ids") == 0) return FORM_IDS;
    return word && strcmp(word, "json") == 0 ? FORM_JSON : FORM_TEXT;
}

/* Returns true if the reply's text is needed. It is not needed for printing ids without stop strings. Then the model
 * needs no tokenizer. */
static bool needs_text(const fr_arguments *args) {
    return output_form(args) != FORM_IDS || args->stop_count > 0;
}

static int check_tokenizer(const fr_loaded *loaded, const fr_arguments *args) {
    const fr_tokenizer *tokenizer;
    return needs_text(args) ? fr_loaded_tokenizer(loaded, args, &tokenizer) : 0;
}

static int print_json(const fr_reply *reply, const fr_figures *figures, const fr_session *session,
                      const fr_arguments *args) {
    json_t *object = json_object(), *stats = fr_figures_json(figures, session);
    int code = fr_exit_status(fr_reply_put(reply, object));
    if (args->seed_drawn) fr_json_put(stats, "seed", json_integer(args->number[FR_ARG_SEED]));
    fr_json_put(object, "stats", stats);
    char *text = json_dumps(object, 0);
    if (!text)
        code = fr_bad_input("out of memory: a JSON object");
    else
        puts(text);
    fr_flush_output();
    free(text);
    json_decref(object);
    return code;
}

/* Runs the reply. If the prompt is a chat, the view splits the reply's text into parts. */
static int run_reply(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, const fr_prompt *prompt,
                     fr_stream *text, fr_reply_view *view) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(loaded->model);
    bool pictures = loaded->picture_count > 0;
    json_t *settings = fr_chat_settings(args, loaded->tools, pictures);
    fr_status status = view ? fr_reply_view_open(view, tokenizer, settings, &prompt->rendered, text) : FR_OK;
    json_decref(settings);
    return status != FR_OK ? fr_exit_status(status) : fr_reply_run(reply, loaded, args, text, view, NULL);
}

/* Returns true if generation must stop because of a signal, or because the terminal of the output was lost. */
static bool wants_abort(void *context) {
    return fr_interrupt_came(context) || fr_lab_ranks_decide(fr_output_gone());
}

/* Runs the prompt. If it is interrupted, the session keeps the ids that have been run, and *end is FR_END_INTERRUPT. */
static int run_prompt(fr_loaded *loaded, const fr_arguments *args, const fr_prompt *prompt, fr_end *end) {
    fr_status status =
        fr_prompt_run(loaded->session, prompt->ids, prompt->count, wants_abort, args->given[FR_ARG_QUIET]);
    if (status == FR_ABORTED) {
        *end = FR_END_INTERRUPT;
        if (!args->given[FR_ARG_QUIET]) fr_note("%s", fr_last_error());
        return 0;
    }
    if (status == FR_OK) status = fr_tracer_text(&loaded->trace, "prompt", prompt->ids, prompt->count, true);
    return fr_exit_status(status);
}

static int run(fr_loaded *loaded, const fr_arguments *args, const fr_prompt *prompt) {
    fr_form form = output_form(args);
    fr_stream text = {.out = form == FORM_TEXT ? stdout : NULL,
                      .color = args->given[FR_ARG_COLOR],
                      .stops = args->stops,
                      .stop_count = args->stop_count};
    fr_reply reply = {.setting.text = &text, .end = args->number[FR_ARG_PREDICT] == 0 ? FR_END_LENGTH : FR_END_NONE};
    fr_interrupt_watch();
    int code = run_prompt(loaded, args, prompt, &reply.end);
    bool replies = reply.end == FR_END_NONE, reads = needs_text(args);
    fr_reply_view parts = {0}, *view = reads && replies && prompt->rendered.text ? &parts : NULL;
    if (!code && replies) code = run_reply(&reply, loaded, args, prompt, reads ? &text : NULL, view);
    if (!code) {
        fr_figures figures = fr_figures_take(loaded->session);
        figures.of[FR_STAT_GENERATED_TOKENS] = (double)reply.kept;
        if (form == FORM_TEXT && replies) putchar('\n');
        if (form == FORM_IDS) fr_ids_print(reply.ids, reply.kept, stdout);
        if (form == FORM_JSON) code = print_json(&reply, &figures, loaded->session, args);
        fr_flush_output();
        fr_reply_remark(&reply, loaded, args);
        if (args->given[FR_ARG_STATS]) fr_figures_print(&figures, stderr);
        fr_tracer_stats(&loaded->trace, fr_end_name(reply.end), &figures, loaded->session);
    }
    fr_reply_view_close(&parts);
    fr_reply_free(&reply);
    fr_stream_free(&text);
    return code;
}

/* Notes that the model has a chat template that this prompt does not use. The note is left out in two cases. If the
 * prompt has control tokens, its author seems to know the template. If forerun supplied the template, the model may not
 * have been trained with it. */
static void note_template(const fr_loaded *loaded, const fr_arguments *args, const fr_prompt *prompt) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(loaded->model);
    bool asked = args->given[FR_ARG_CHAT] || args->given[FR_ARG_NO_CHAT] || args->given[FR_ARG_IDS];
    if (asked || args->given[FR_ARG_QUIET] || prompt->rendered.text) return;
    if (!fr_chat_template_text(tokenizer, NULL) || fr_chat_note(tokenizer, false)) return;
    int32_t front = fr_tokenizer_bos(tokenizer);
    for (size_t i = 0; i < prompt->count; i++)
        if (prompt->ids[i] != front && fr_token_kind_of(tokenizer, prompt->ids[i]) == FR_TOKEN_CONTROL) return;
    fr_note("this model has a chat template: --chat applies it, -no-cnv is for text as it is");
}

int fr_verb_generate(const fr_arguments *args) {
    bool chat = args->given[FR_ARG_CHAT];
    if (chat && args->given[FR_ARG_IDS]) return fr_wrong_usage("--chat needs a text (-p or -f), not --ids");

    fr_output_outlive_terminal();
    fr_loaded loaded = {0};
    fr_prompt prompt = {0};
    int code = args->given[FR_ARG_PROMPT_CACHE] ? fr_output_check(args->text[FR_ARG_PROMPT_CACHE]) : 0;
    if (!code) code = fr_prompt_read(&prompt, args);
    if (!code) code = fr_loaded_open(&loaded, args);
    if (!code) code = check_tokenizer(&loaded, args);
    if (!code) code = fr_prompt_render(&prompt, &loaded, args);
    if (!code) code = fr_prompt_tokenize(&prompt, &loaded, args);
    if (!code && prompt.rendered.text) loaded.answers = &prompt.rendered;
    if (!code) code = fr_loaded_start(&loaded, args, prompt.count, args->number[FR_ARG_PREDICT]);
    if (!code) note_template(&loaded, args, &prompt);
    if (!code) code = run(&loaded, args, &prompt);
    if (!code) code = fr_tracer_close(&loaded.trace);
    if (!code) code = fr_loaded_save(&loaded, args);
    fr_loaded_close(&loaded);
    fr_prompt_free(&prompt);
    if (!code) fr_interrupt_repeat();
    return !code && fr_output_gone() ? fr_bad_input("standard output: %s", strerror(EIO)) : code;
}
