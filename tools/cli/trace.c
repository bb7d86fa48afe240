/* Writes a trace (trace.h). */
#include "tools/cli/trace.h"

#include <string.h>

int fr_tracer_open(fr_tracer *tracer, const char *path) {
    *tracer = (fr_tracer){0};
    if (!path) return 0;
    if (strcmp(path, "-") == 0) return fr_wrong_usage("--trace -: standard output holds the result; name a file");
    return fr_writer_open(&tracer->writer, path);
}

static void take_line(void *context, const char *text, size_t length) {
    fwrite(text, 1, length, context);
}

void fr_tracer_follow(fr_tracer *tracer, fr_session *session, const fr_tokenizer *tokenizer) {
    tracer->tokenizer = tokenizer;
    if (tracer->writer.file) fr_session_set_trace(session, take_line, tracer->writer.file);
}

/* Writes an object and frees it. */
static void write_object(fr_tracer *tracer, json_t *object) {
    json_dumpf(object, tracer->writer.file, JSON_COMPACT);
    putc('\n', tracer->writer.file);
    json_decref(object);
}

/* Decodes ids, and gives the text of each id. Special tokens have a text here, although the command's own output leaves
 * them out. An id without a token gives an empty text. Such ids can occur because a model may have more logits than its
 * vocabulary has tokens. */
static json_t *take_pieces(fr_tracer *tracer, const int32_t *ids, size_t count, bool last) {
    const char *bytes;
    size_t length;
    json_t *pieces = json_array();
    for (size_t i = 0; i < count; i++) {
        fr_decoder_feed(tracer->decoder, ids[i], &bytes, &length);
        json_array_append_new(pieces, fr_json_bytes(bytes, length));
    }
    if (last && fr_decoder_finish(tracer->decoder, &bytes, &length) == FR_OK && length)
        json_array_append_new(pieces, fr_json_bytes(bytes, length));
    return pieces;
}

fr_status fr_tracer_text(fr_tracer *tracer, const char *of, const int32_t *ids, size_t count, bool last) {
    if (!tracer->writer.file || !tracer->tokenizer) return FR_OK;
    fr_status status = tracer->decoder ? FR_OK : fr_decoder_new(tracer->tokenizer, true, &tracer->decoder);
    if (status != FR_OK) return status;
    json_t *object = json_object(), *pieces = take_pieces(tracer, ids, count, last);
    bool empty = json_array_size(pieces) == 0;
    fr_json_put(object, "event", json_string("text"));
    fr_json_put(object, "of", json_string(of));
    fr_json_put(object, "pieces", pieces);
    if (empty)
        json_decref(object);
    else
        write_object(tracer, object);
    if (last) {
        fr_decoder_free(tracer->decoder);
        tracer->decoder = NULL;
    }
    return FR_OK;
}

void fr_tracer_stats(fr_tracer *tracer, const char *stop, const fr_figures *figures, const fr_session *session) {
    if (!tracer->writer.file) return;
    json_t *object = json_object();
    fr_json_put(object, "event", json_string("stats"));
    fr_json_put(object, "stop", json_string(stop));
    fr_json_put(object, "stats", fr_figures_json(figures, session));
    write_object(tracer, object);
}

int fr_tracer_close(fr_tracer *tracer) {
    int code = tracer->writer.file ? fr_writer_close(&tracer->writer) : 0;
    fr_tracer_abandon(tracer);
    return code;
}

void fr_tracer_abandon(fr_tracer *tracer) {
    fr_decoder_free(tracer->decoder);
    if (tracer->writer.file) fr_writer_abandon(&tracer->writer);
    *tracer = (fr_tracer){0};
}
