/* Defines the public fr_reply_parser, which turns ids into pieces, and pieces into parts (reply.h). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/json.h"
#include "src/language/chat/chat_templates.h"
#include "src/language/chat/reply.h"
#include "src/language/chat/reply_begin.h"
#include "src/language/tokenizer/tokenizer_parts.h"

struct fr_reply_parser {
    const fr_tokenizer *tokenizer;
    fr_decoder *decoder; /* NULL: no reply has begun */
    fr_reply_reader *reader;
};

fr_status fr_reply_parser_new(const fr_tokenizer *tokenizer, fr_reply_fn *part, void *context,
                              fr_reply_parser **parser) {
    if (!parser) return fr_fail_null("fr_reply_parser_new", "a place for the parser");
    *parser = NULL;
    if (!tokenizer) return fr_fail_no_tokenizer("fr_reply_parser_new");
    fr_reply_parser *p = calloc(1, sizeof *p);
    if (!p) return fr_fail_memory("a reply", sizeof *p);
    p->tokenizer = tokenizer;
    fr_status status = fr_reply_reader_new(part, context, &p->reader);
    if (status == FR_OK)
        *parser = p;
    else
        free(p);
    return status;
}

void fr_reply_parser_free(fr_reply_parser *parser) {
    if (!parser) return;
    fr_decoder_free(parser->decoder);
    fr_reply_reader_free(parser->reader);
    free(parser);
}

/* ---------------------------------------------------------------------------------------------------------- a reply */

size_t fr_reply_trusted_end(const fr_marked_text *prompt) {
    size_t count = prompt ? prompt->trusted_count : 0;
    bool ends = count > 0 && prompt->trusted[count - 1].end == prompt->length;
    return ends ? prompt->length - prompt->trusted[count - 1].begin : 0;
}

/* Returns true if the template's text begins with a mark that opens reasoning, ends reasoning, or begins a message. */
static bool is_mark(const fr_reply_format *format, const char *text, size_t length) {
    static const fr_mark kinds[] = {FR_MARK_THINK, FR_MARK_THINK_END, FR_MARK_MESSAGE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *mark = format->marks[kinds[i]];
        size_t size = mark ? strlen(mark) : 0;
        if (size && length >= size && memcmp(text, mark, size) == 0) return true;
    }
    return false;
}

fr_text fr_reply_written(const fr_reply_format *format, const fr_marked_text *prompt, const json_t *options) {
    size_t end = fr_reply_trusted_end(prompt);
    bool continues = prompt && json_is_true(json_object_get(options, "continue_final_message"));
    for (size_t i = continues ? prompt->trusted_count : 0; i-- > 0;) {
        fr_span span = prompt->trusted[i];
        for (size_t at = span.end; at-- > span.begin;)
            if (is_mark(format, prompt->text + at, span.end - at)) return (fr_text){prompt->text + at, span.end - at};
    }
    return end ? (fr_text){prompt->text + prompt->length - end, end} : (fr_text){"", 0};
}

fr_reply_format fr_reply_format_for(const fr_tokenizer *tokenizer, const json_t *options) {
    const fr_template *template = fr_chat_templates_for(tokenizer->chat, options)->ready;
    size_t length = 0;
    const char *source = template ? fr_template_source(template, &length) : "";
    fr_reply_format format = fr_reply_format_of(source, length, tokenizer);
    if (!format.form && json_array_size(json_object_get(options, "tools"))) fr_reply_format_generic(&format, tokenizer);
    return format;
}

static fr_status begin(fr_reply_parser *p, const fr_marked_text *prompt, const json_t *options, bool whole_calls,
                       uint64_t seed) {
    if (options && !json_is_object(options)) return fr_fail(FR_INPUT, "chat options: not a JSON object");
    json_t *tools = json_object_get(options, "tools");
    if (tools && !json_is_array(tools) && !json_is_null(tools))
        return fr_fail(FR_INPUT, "chat options: \"tools\" is not an array");
    fr_reply_format format = fr_reply_format_for(p->tokenizer, options);
    fr_text written = fr_reply_written(&format, prompt, options);
    fr_decoder_free(p->decoder);
    p->decoder = NULL;
    FR_TRY(fr_decoder_new(p->tokenizer, false, &p->decoder));
    if (json_is_true(json_object_get(options, "continue_final_message"))) fr_decoder_follow(p->decoder);
    return fr_reply_reader_begin(p->reader, &format, written.bytes, written.length, json_is_array(tools) ? tools : NULL,
                                 seed, whole_calls);
}

fr_status fr_reply_parser_begin(fr_reply_parser *parser, const fr_marked_text *prompt, const char *options_json,
                                bool whole_calls, uint64_t seed) {
    json_t *options = NULL;
    fr_status status = FR_OK;
    if (!parser) return fr_fail_null("fr_reply_parser_begin", "a parser");
    if (options_json) status = fr_json_parse_texts(options_json, strlen(options_json), "chat options", &options);
    if (status == FR_OK) status = begin(parser, prompt, options, whole_calls, seed);
    json_decref(options);
    return status;
}

static fr_status not_begun(void) {
    return fr_fail(FR_USAGE, "fr_reply_parser_begin comes before what a reply is made of");
}

/* Feeds the bytes that the decoder still holds back, because the next mark, or the end of the reply, follows an
 * incomplete character. */
static fr_status feed_rest(fr_reply_parser *p) {
    const char *text;
    size_t length;
    FR_TRY(fr_decoder_finish(p->decoder, &text, &length));
    return fr_reply_reader_feed(p->reader, text, length, false);
}

fr_status fr_reply_parser_feed(fr_reply_parser *parser, int32_t id) {
    if (!parser || !parser->decoder) return not_begun();
    const fr_reply_format *format = fr_reply_reader_format(parser->reader);
    for (size_t i = 0; i < FR_MARK_COUNT; i++) {
        if (format->ids[i] < 0 || format->ids[i] != id) continue;
        FR_TRY(feed_rest(parser));
        return fr_reply_reader_feed(parser->reader, format->marks[i], strlen(format->marks[i]), true);
    }
    const char *text;
    size_t length;
    FR_TRY(fr_decoder_feed(parser->decoder, id, &text, &length));
    return fr_reply_reader_feed(parser->reader, text, length, false);
}

fr_status fr_reply_parser_feed_text(fr_reply_parser *parser, const char *text, size_t length) {
    if (!parser || !parser->decoder) return not_begun();
    if (length && !text) return fr_fail_null("fr_reply_parser_feed_text", "a text");
    FR_TRY(feed_rest(parser));
    return fr_reply_reader_feed(parser->reader, text, length, false);
}

fr_status fr_reply_parser_cut(fr_reply_parser *parser) {
    if (parser && parser->reader) fr_reply_reader_cut(parser->reader);
    return fr_reply_parser_finish(parser);
}

fr_status fr_reply_parser_finish(fr_reply_parser *parser) {
    if (!parser || !parser->decoder) return not_begun();
    FR_TRY(feed_rest(parser));
    return fr_reply_reader_finish(parser->reader);
}

fr_status fr_reply_parser_message(const fr_reply_parser *parser, char **json, size_t *length) {
    if (!parser || !json || !length) return fr_fail_null("fr_reply_parser_message", "a parser, a text and its length");
    return fr_reply_reader_message(parser->reader, json, length);
}
